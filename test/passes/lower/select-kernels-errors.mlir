// RUN: ingot-opt %s -split-input-file -verify-diagnostics -select-kernels

// What has no lowering is an error on the operator.

// A norm of heads that no cache write takes up.
module attributes {lm.model = {family = "llama", name = "tiny", architecture = "LlamaForCausalLM", vocab = 64 : i64, hidden = 32 : i64, context = 128 : i64,
  tied_head = true, parameters = 1000 : i64, eos = array<i64: 2>, source_bytes = 65536 : i64, sampling = {}, layers = [],
  tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
  lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
  lm.weight @embed [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @norm [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "norm", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @q [32, 32] encoding <i8, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "q", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32, permute = 2>]
  lm.weight @k [16, 32] encoding <i8, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "k", offset = 0, size = 1024, stored = f16, rows = 16, columns = 32>]
  lm.weight @v [16, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "v", offset = 0, size = 1024, stored = f16, rows = 16, columns = 32>]
  lm.weight @o [32, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "o", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32>]
  lm.weight @gate_up [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "gu", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @unused [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "unused", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @inv_freq [8] encoding <f32> layout row value dense<[1.0, 0.5, 0.25, 0.125, 0.1, 0.01, 0.001, 0.0001]> : tensor<8xf32>
  lm.state @kv0 {layers = 1 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, dtype = f16, window = 64 : i64}
  lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x32xf32> {
    %h = lm.embed %tokens, @embed : tensor<?x32xf32>
    // expected-error @below {{'lm.head_norm' op has no lowering to plan}}
    %a = lm.head_norm %h, @norm {heads = 1 : i64, head_dim = 32 : i64, eps = 1.0e-5 : f32} : tensor<?x32xf32>
    %s = lm.select_rows %h : tensor<?x32xf32>
    lm.return %s : tensor<?x32xf32>
  }
}
// -----

// Heads that have not been fused.
module attributes {lm.model = {family = "llama", name = "tiny", architecture = "LlamaForCausalLM", vocab = 64 : i64, hidden = 32 : i64, context = 128 : i64,
  tied_head = true, parameters = 1000 : i64, eos = array<i64: 2>, source_bytes = 65536 : i64, sampling = {}, layers = [],
  tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
  lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
  lm.weight @embed [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @norm [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "norm", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @q [32, 32] encoding <i8, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "q", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32, permute = 2>]
  lm.weight @k [16, 32] encoding <i8, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "k", offset = 0, size = 1024, stored = f16, rows = 16, columns = 32>]
  lm.weight @v [16, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "v", offset = 0, size = 1024, stored = f16, rows = 16, columns = 32>]
  lm.weight @o [32, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "o", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32>]
  lm.weight @gate_up [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "gu", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @unused [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "unused", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @inv_freq [8] encoding <f32> layout row value dense<[1.0, 0.5, 0.25, 0.125, 0.1, 0.01, 0.001, 0.0001]> : tensor<8xf32>
  lm.state @kv0 {layers = 1 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, dtype = f16, window = 64 : i64}
  lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x32xf32> {
    %h = lm.embed %tokens, @embed : tensor<?x32xf32>
    %rope = lm.rope_table %positions, @inv_freq : tensor<?x16xf32>
    // expected-error @below {{'lm.rotary' op has no lowering to plan}}
    %a = lm.rotary %h, %rope {heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x32xf32>, tensor<?x16xf32>
    %s = lm.select_rows %h : tensor<?x32xf32>
    lm.return %s : tensor<?x32xf32>
  }
}
// -----

// Columns of a value that something reads apart.
module attributes {lm.model = {family = "llama", name = "tiny", architecture = "LlamaForCausalLM", vocab = 64 : i64, hidden = 32 : i64, context = 128 : i64,
  tied_head = true, parameters = 1000 : i64, eos = array<i64: 2>, source_bytes = 65536 : i64, sampling = {}, layers = [],
  tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
  lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
  lm.weight @embed [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @norm [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "norm", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @q [32, 32] encoding <i8, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "q", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32, permute = 2>]
  lm.weight @k [16, 32] encoding <i8, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "k", offset = 0, size = 1024, stored = f16, rows = 16, columns = 32>]
  lm.weight @v [16, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "v", offset = 0, size = 1024, stored = f16, rows = 16, columns = 32>]
  lm.weight @o [32, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "o", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32>]
  lm.weight @gate_up [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "gu", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @unused [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "unused", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @inv_freq [8] encoding <f32> layout row value dense<[1.0, 0.5, 0.25, 0.125, 0.1, 0.01, 0.001, 0.0001]> : tensor<8xf32>
  lm.state @kv0 {layers = 1 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, dtype = f16, window = 64 : i64}
  lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x32xf32> {
    %h = lm.embed %tokens, @embed : tensor<?x32xf32>
    // expected-error @below {{'lm.split' op has no lowering to plan}}
    %a, %b = lm.split %h : tensor<?x32xf32> -> tensor<?x16xf32>, tensor<?x16xf32>
    %s = lm.select_rows %h : tensor<?x32xf32>
    lm.return %s : tensor<?x32xf32>
  }
}
// -----

// A concatenation of what is not a product.
module attributes {lm.model = {family = "llama", name = "tiny", architecture = "LlamaForCausalLM", vocab = 64 : i64, hidden = 32 : i64, context = 128 : i64,
  tied_head = true, parameters = 1000 : i64, eos = array<i64: 2>, source_bytes = 65536 : i64, sampling = {}, layers = [],
  tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
  lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
  lm.weight @embed [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @norm [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "norm", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @q [32, 32] encoding <i8, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "q", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32, permute = 2>]
  lm.weight @k [16, 32] encoding <i8, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "k", offset = 0, size = 1024, stored = f16, rows = 16, columns = 32>]
  lm.weight @v [16, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "v", offset = 0, size = 1024, stored = f16, rows = 16, columns = 32>]
  lm.weight @o [32, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "o", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32>]
  lm.weight @gate_up [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "gu", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @unused [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "unused", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @inv_freq [8] encoding <f32> layout row value dense<[1.0, 0.5, 0.25, 0.125, 0.1, 0.01, 0.001, 0.0001]> : tensor<8xf32>
  lm.state @kv0 {layers = 1 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, dtype = f16, window = 64 : i64}
  lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x32xf32> {
    %h = lm.embed %tokens, @embed : tensor<?x32xf32>
    // expected-note @above {{the part is made here}}
    // expected-error @below {{part 0 is not the result of a linear without residual that only this concat reads}}
    %a = lm.concat %h, %h : tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x64xf32>
    %s = lm.select_rows %h : tensor<?x32xf32>
    lm.return %s : tensor<?x32xf32>
  }
}
// -----

// Integer weights on float rows.
module attributes {lm.model = {family = "llama", name = "tiny", architecture = "LlamaForCausalLM", vocab = 64 : i64, hidden = 32 : i64, context = 128 : i64,
  tied_head = true, parameters = 1000 : i64, eos = array<i64: 2>, source_bytes = 65536 : i64, sampling = {}, layers = [],
  tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
  lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
  lm.weight @embed [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @norm [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "norm", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @q [32, 32] encoding <i8, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "q", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32, permute = 2>]
  lm.weight @k [16, 32] encoding <i8, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "k", offset = 0, size = 1024, stored = f16, rows = 16, columns = 32>]
  lm.weight @v [16, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "v", offset = 0, size = 1024, stored = f16, rows = 16, columns = 32>]
  lm.weight @o [32, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "o", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32>]
  lm.weight @gate_up [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "gu", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @unused [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "unused", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @inv_freq [8] encoding <f32> layout row value dense<[1.0, 0.5, 0.25, 0.125, 0.1, 0.01, 0.001, 0.0001]> : tensor<8xf32>
  lm.state @kv0 {layers = 1 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, dtype = f16, window = 64 : i64}
  lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x32xf32> {
    %h = lm.embed %tokens, @embed : tensor<?x32xf32>
    // expected-error @below {{has a weight in i8-g32 and an input in float32; insert-quantize gives it quantised rows}}
    %a = lm.linear %h, @q : tensor<?x32xf32> -> tensor<?x32xf32>
    %s = lm.select_rows %h : tensor<?x32xf32>
    lm.return %s : tensor<?x32xf32>
  }
}
// -----

// An activation without a kernel.
module attributes {lm.model = {family = "llama", name = "tiny", architecture = "LlamaForCausalLM", vocab = 64 : i64, hidden = 32 : i64, context = 128 : i64,
  tied_head = true, parameters = 1000 : i64, eos = array<i64: 2>, source_bytes = 65536 : i64, sampling = {}, layers = [],
  tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
  lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
  lm.weight @embed [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @norm [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "norm", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @q [32, 32] encoding <i8, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "q", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32, permute = 2>]
  lm.weight @k [16, 32] encoding <i8, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "k", offset = 0, size = 1024, stored = f16, rows = 16, columns = 32>]
  lm.weight @v [16, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "v", offset = 0, size = 1024, stored = f16, rows = 16, columns = 32>]
  lm.weight @o [32, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "o", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32>]
  lm.weight @gate_up [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "gu", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @unused [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "unused", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @inv_freq [8] encoding <f32> layout row value dense<[1.0, 0.5, 0.25, 0.125, 0.1, 0.01, 0.001, 0.0001]> : tensor<8xf32>
  lm.state @kv0 {layers = 1 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, dtype = f16, window = 64 : i64}
  lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x32xf32> {
    %h = lm.embed %tokens, @embed : tensor<?x32xf32>
    %a = lm.linear %h, @gate_up : tensor<?x32xf32> -> tensor<?x64xf32>
    // expected-error @below {{'lm.quantize' op has no kernel: }}
    %b = lm.quantize %a : tensor<?x64xf32> -> !lm.quantized<64, group = 2048, bits = 16>
    %s = lm.select_rows %h : tensor<?x32xf32>
    lm.return %s : tensor<?x32xf32>
  }
}
// -----

// Logits for every token.
module attributes {lm.model = {family = "llama", name = "tiny", architecture = "LlamaForCausalLM", vocab = 64 : i64, hidden = 32 : i64, context = 128 : i64,
  tied_head = true, parameters = 1000 : i64, eos = array<i64: 2>, source_bytes = 65536 : i64, sampling = {}, layers = [],
  tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
  lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
  lm.weight @embed [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @norm [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "norm", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @q [32, 32] encoding <i8, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "q", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32, permute = 2>]
  lm.weight @k [16, 32] encoding <i8, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "k", offset = 0, size = 1024, stored = f16, rows = 16, columns = 32>]
  lm.weight @v [16, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "v", offset = 0, size = 1024, stored = f16, rows = 16, columns = 32>]
  lm.weight @o [32, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "o", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32>]
  lm.weight @gate_up [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "gu", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @unused [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "unused", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @inv_freq [8] encoding <f32> layout row value dense<[1.0, 0.5, 0.25, 0.125, 0.1, 0.01, 0.001, 0.0001]> : tensor<8xf32>
  lm.state @kv0 {layers = 1 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, dtype = f16, window = 64 : i64}
  lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x32xf32> {
    %h = lm.embed %tokens, @embed : tensor<?x32xf32>
    // expected-error @below {{returns a row for each token; expected logits that follow from lm.select_rows}}
    lm.return %h : tensor<?x32xf32>
  }
}
// -----

// A gate over logits rows.
module attributes {lm.model = {family = "llama", name = "tiny", architecture = "LlamaForCausalLM", vocab = 64 : i64, hidden = 32 : i64, context = 128 : i64,
  tied_head = true, parameters = 1000 : i64, eos = array<i64: 2>, source_bytes = 65536 : i64, sampling = {}, layers = [],
  tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
  lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
  lm.weight @embed [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @norm [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "norm", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @q [32, 32] encoding <i8, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "q", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32, permute = 2>]
  lm.weight @k [16, 32] encoding <i8, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "k", offset = 0, size = 1024, stored = f16, rows = 16, columns = 32>]
  lm.weight @v [16, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "v", offset = 0, size = 1024, stored = f16, rows = 16, columns = 32>]
  lm.weight @o [32, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "o", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32>]
  lm.weight @gate_up [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "gu", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @unused [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "unused", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @inv_freq [8] encoding <f32> layout row value dense<[1.0, 0.5, 0.25, 0.125, 0.1, 0.01, 0.001, 0.0001]> : tensor<8xf32>
  lm.state @kv0 {layers = 1 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, dtype = f16, window = 64 : i64}
  lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x32xf32> {
    %h = lm.embed %tokens, @embed : tensor<?x32xf32>
    %sel = lm.select_rows %h : tensor<?x32xf32>
    %a = lm.linear %sel, @gate_up : tensor<?x32xf32> -> tensor<?x64xf32>
    // expected-error @below {{works on the rows that lm.select_rows kept}}
    %b = lm.gate silu %a : tensor<?x64xf32> -> tensor<?x32xf32>
    %s = lm.select_rows %h : tensor<?x32xf32>
    lm.return %s : tensor<?x32xf32>
  }
}
// -----

// A module without a program.
// expected-error @below {{expected one lm.program, found 0}}
module {
}
// -----

// A module that does not say what the model is.
// expected-error @below {{expected the attribute lm.model}}
module {
  lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
  lm.weight @embed [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @norm [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "norm", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @q [32, 32] encoding <i8, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "q", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32, permute = 2>]
  lm.weight @k [16, 32] encoding <i8, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "k", offset = 0, size = 1024, stored = f16, rows = 16, columns = 32>]
  lm.weight @v [16, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "v", offset = 0, size = 1024, stored = f16, rows = 16, columns = 32>]
  lm.weight @o [32, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "o", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32>]
  lm.weight @gate_up [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "gu", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @unused [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "unused", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @inv_freq [8] encoding <f32> layout row value dense<[1.0, 0.5, 0.25, 0.125, 0.1, 0.01, 0.001, 0.0001]> : tensor<8xf32>
  lm.state @kv0 {layers = 1 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, dtype = f16, window = 64 : i64}
  lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x32xf32> {
    %h = lm.embed %tokens, @embed : tensor<?x32xf32>
    %s = lm.select_rows %h : tensor<?x32xf32>
    lm.return %s : tensor<?x32xf32>
  }
}
