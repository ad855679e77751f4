// RUN: ingot-opt %s -split-input-file -verify-diagnostics -select-kernels

// Two numbers of experts in one model.
module attributes {lm.model = {family = "mixtral", name = "tiny", architecture = "MixtralForCausalLM", vocab = 64 : i64, hidden = 32 : i64, context = 128 : i64,
  tied_head = true, parameters = 1000 : i64, eos = array<i64: 2>, source_bytes = 65536 : i64, sampling = {}, layers = [],
  tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
  lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
  lm.weight @embed [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @router [4, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "r", offset = 0, size = 256, stored = f16, rows = 4, columns = 32>]
  lm.weight @gate_up [128, 32] encoding <i8, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "gu", offset = 0, size = 8192, stored = f16, rows = 128, columns = 32>]
  lm.weight @down [128, 16] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "d", offset = 0, size = 4096, stored = f16, rows = 128, columns = 16>]
  lm.weight @gate_up_f [128, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "gu", offset = 0, size = 8192, stored = f16, rows = 128, columns = 32>]
  lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x32xf32> {
    %h = lm.embed %tokens, @embed : tensor<?x32xf32>
    %l = lm.linear %h, @router : tensor<?x32xf32> -> tensor<?x4xf32>
    %r = lm.route %l {top_k = 2 : i64} : tensor<?x4xf32> -> tensor<?x4xf32>
    // expected-error @below {{chooses 3 experts, another 2; a model needs one number}}
    %r3 = lm.route %l {top_k = 3 : i64} : tensor<?x4xf32> -> tensor<?x6xf32>
    %s = lm.select_rows %h : tensor<?x32xf32>
    lm.return %s : tensor<?x32xf32>
  }
}

// -----

// Rows of tokens for experts.
module attributes {lm.model = {family = "mixtral", name = "tiny", architecture = "MixtralForCausalLM", vocab = 64 : i64, hidden = 32 : i64, context = 128 : i64,
  tied_head = true, parameters = 1000 : i64, eos = array<i64: 2>, source_bytes = 65536 : i64, sampling = {}, layers = [],
  tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
  lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
  lm.weight @embed [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @router [4, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "r", offset = 0, size = 256, stored = f16, rows = 4, columns = 32>]
  lm.weight @gate_up [128, 32] encoding <i8, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "gu", offset = 0, size = 8192, stored = f16, rows = 128, columns = 32>]
  lm.weight @down [128, 16] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "d", offset = 0, size = 4096, stored = f16, rows = 128, columns = 16>]
  lm.weight @gate_up_f [128, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "gu", offset = 0, size = 8192, stored = f16, rows = 128, columns = 32>]
  lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x32xf32> {
    %h = lm.embed %tokens, @embed : tensor<?x32xf32>
    %l = lm.linear %h, @router : tensor<?x32xf32> -> tensor<?x4xf32>
    %r = lm.route %l {top_k = 2 : i64} : tensor<?x4xf32> -> tensor<?x4xf32>
    // expected-error @below {{works on rows that lm.dispatch has made}}
    %y = lm.expert_linear %h, %r, @gate_up_f : tensor<?x32xf32>, tensor<?x4xf32> -> tensor<?x32xf32>
    %s = lm.select_rows %h : tensor<?x32xf32>
    lm.return %s : tensor<?x32xf32>
  }
}

// -----

// And for their sum.
module attributes {lm.model = {family = "mixtral", name = "tiny", architecture = "MixtralForCausalLM", vocab = 64 : i64, hidden = 32 : i64, context = 128 : i64,
  tied_head = true, parameters = 1000 : i64, eos = array<i64: 2>, source_bytes = 65536 : i64, sampling = {}, layers = [],
  tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
  lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
  lm.weight @embed [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @router [4, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "r", offset = 0, size = 256, stored = f16, rows = 4, columns = 32>]
  lm.weight @gate_up [128, 32] encoding <i8, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "gu", offset = 0, size = 8192, stored = f16, rows = 128, columns = 32>]
  lm.weight @down [128, 16] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "d", offset = 0, size = 4096, stored = f16, rows = 128, columns = 16>]
  lm.weight @gate_up_f [128, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "gu", offset = 0, size = 8192, stored = f16, rows = 128, columns = 32>]
  lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x32xf32> {
    %h = lm.embed %tokens, @embed : tensor<?x32xf32>
    %l = lm.linear %h, @router : tensor<?x32xf32> -> tensor<?x4xf32>
    %r = lm.route %l {top_k = 2 : i64} : tensor<?x4xf32> -> tensor<?x4xf32>
    // expected-error @below {{works on rows that lm.dispatch has made}}
    %y = lm.combine %h, %r : tensor<?x32xf32>, tensor<?x4xf32>
    %s = lm.select_rows %h : tensor<?x32xf32>
    lm.return %s : tensor<?x32xf32>
  }
}

// -----

// Float rows for integer experts.
module attributes {lm.model = {family = "mixtral", name = "tiny", architecture = "MixtralForCausalLM", vocab = 64 : i64, hidden = 32 : i64, context = 128 : i64,
  tied_head = true, parameters = 1000 : i64, eos = array<i64: 2>, source_bytes = 65536 : i64, sampling = {}, layers = [],
  tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
  lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
  lm.weight @embed [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @router [4, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "r", offset = 0, size = 256, stored = f16, rows = 4, columns = 32>]
  lm.weight @gate_up [128, 32] encoding <i8, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "gu", offset = 0, size = 8192, stored = f16, rows = 128, columns = 32>]
  lm.weight @down [128, 16] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "d", offset = 0, size = 4096, stored = f16, rows = 128, columns = 16>]
  lm.weight @gate_up_f [128, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "gu", offset = 0, size = 8192, stored = f16, rows = 128, columns = 32>]
  lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x32xf32> {
    %h = lm.embed %tokens, @embed : tensor<?x32xf32>
    %l = lm.linear %h, @router : tensor<?x32xf32> -> tensor<?x4xf32>
    %r = lm.route %l {top_k = 2 : i64} : tensor<?x4xf32> -> tensor<?x4xf32>
    %d = lm.dispatch %h, %r : tensor<?x32xf32>, tensor<?x4xf32>
    // expected-error @below {{has a weight in i8-g32 and an input in float32; insert-quantize gives it quantised rows}}
    %y = lm.expert_linear %d, %r, @gate_up : tensor<?x32xf32>, tensor<?x4xf32> -> tensor<?x32xf32>
    %s = lm.select_rows %h : tensor<?x32xf32>
    lm.return %s : tensor<?x32xf32>
  }
}
