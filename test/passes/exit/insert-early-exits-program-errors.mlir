// RUN: ingot-opt %s -split-input-file -verify-diagnostics -insert-early-exits="layers=1"

// A layer that no operator is named after.
module attributes {lm.model = {family = "llama", name = "tiny", architecture = "LlamaForCausalLM", vocab = 64 : i64, hidden = 32 : i64, context = 128 : i64,
  tied_head = true, parameters = 1000 : i64, eos = array<i64: 2>, source_bytes = 65536 : i64, sampling = {}, layers = [{index = 0 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64, rope_kind = "default", rope_theta = 1.0e4, rope_attention_factor = 1.0, window = 0 : i64, softmax_scale = 0.25, soft_cap = 0.0, ffn = 32 : i64, activation = "silu", norm_eps = 1.0e-5, qk_norm = false, qkv_bias = false, output_bias = false}, {index = 1 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64, rope_kind = "default", rope_theta = 1.0e4, rope_attention_factor = 1.0, window = 0 : i64, softmax_scale = 0.25, soft_cap = 0.0, ffn = 32 : i64, activation = "silu", norm_eps = 1.0e-5, qk_norm = false, qkv_bias = false, output_bias = false}],
  tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
  lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
  lm.weight @embed [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @norm [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "norm", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @qkv [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "qkv", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @o [32, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "o", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32>]
  // expected-error@+1 {{has no residual stream behind layer 0}}
  lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
    %x = lm.embed %tokens, @embed : tensor<?x32xf32> loc("embed")
    %u = lm.linear %x, @o : tensor<?x32xf32> -> tensor<?x32xf32> loc("block.0.down")
    %h = lm.add %x, %u : tensor<?x32xf32> loc("block.0.ffn_residual")
    %v = lm.linear %h, @o : tensor<?x32xf32> -> tensor<?x32xf32> loc("layer.1.down")
    %k = lm.add %h, %v : tensor<?x32xf32> loc("layer.1.ffn_residual")
    %s = lm.select_rows %k : tensor<?x32xf32> loc("select_rows")
    %f = lm.rms_norm %s, @norm {eps = 1.0e-5 : f32} : tensor<?x32xf32> -> tensor<?x32xf32> loc("final_norm")
    %logits = lm.linear %f, @embed : tensor<?x32xf32> -> tensor<?x64xf32> loc("lm_head")
    lm.return %logits : tensor<?x64xf32>
  }
}

// -----

// A program that gives all rows.
module attributes {lm.model = {family = "llama", name = "tiny", architecture = "LlamaForCausalLM", vocab = 64 : i64, hidden = 32 : i64, context = 128 : i64,
  tied_head = true, parameters = 1000 : i64, eos = array<i64: 2>, source_bytes = 65536 : i64, sampling = {}, layers = [{index = 0 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64, rope_kind = "default", rope_theta = 1.0e4, rope_attention_factor = 1.0, window = 0 : i64, softmax_scale = 0.25, soft_cap = 0.0, ffn = 32 : i64, activation = "silu", norm_eps = 1.0e-5, qk_norm = false, qkv_bias = false, output_bias = false}, {index = 1 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64, rope_kind = "default", rope_theta = 1.0e4, rope_attention_factor = 1.0, window = 0 : i64, softmax_scale = 0.25, soft_cap = 0.0, ffn = 32 : i64, activation = "silu", norm_eps = 1.0e-5, qk_norm = false, qkv_bias = false, output_bias = false}],
  tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
  lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
  lm.weight @embed [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @norm [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "norm", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @qkv [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "qkv", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @o [32, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "o", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32>]
  // expected-error@+1 {{selects no rows, so an exit has no head}}
  lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
    %x = lm.embed %tokens, @embed : tensor<?x32xf32> loc("embed")
    %u = lm.linear %x, @o : tensor<?x32xf32> -> tensor<?x32xf32> loc("layer.0.down")
    %h = lm.add %x, %u : tensor<?x32xf32> loc("layer.0.ffn_residual")
    %v = lm.linear %h, @o : tensor<?x32xf32> -> tensor<?x32xf32> loc("layer.1.down")
    %k = lm.add %h, %v : tensor<?x32xf32> loc("layer.1.ffn_residual")
    %f = lm.rms_norm %k, @norm {eps = 1.0e-5 : f32} : tensor<?x32xf32> -> tensor<?x32xf32> loc("final_norm")
    %logits = lm.linear %f, @embed : tensor<?x32xf32> -> tensor<?x64xf32> loc("lm_head")
    lm.return %logits : tensor<?x64xf32>
  }
}
