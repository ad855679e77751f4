// RUN: ingot-opt %s -split-input-file -insert-early-exits="layers=1" -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s

// The stream behind layer 0 is cut; the head is the tail on the cut, and the
// program goes on from it.
// CHECK-LABEL: lm.program @main
// CHECK: %[[H:.*]] = lm.add {{.*}} loc("layer.0.ffn_residual")
// CHECK-NEXT: %[[C:.*]] = lm.cut "exit1" %[[H]] : tensor<?x32xf32> loc("exit1")
// CHECK-NEXT: lm.exit "exit1" %[[C]] layers 1 : tensor<?x32xf32> head {
// CHECK-NEXT: %[[S:.*]] = lm.select_rows %[[C]] : tensor<?x32xf32> loc("exit1.select_rows")
// CHECK-NEXT: %[[F:.*]] = lm.rms_norm %[[S]], @norm {{.*}} loc("exit1.final_norm"(fused<"from">["final_norm"]))
// CHECK-NEXT: %[[L:.*]] = lm.linear %[[F]], @embed : {{.*}} loc("exit1.lm_head"(fused<"from">["lm_head"]))
// CHECK-NEXT: lm.yield %[[L]]
// CHECK: lm.linear %[[C]], @o : {{.*}} loc("layer.1.down")
// CHECK-NEXT: lm.add %[[C]],
module attributes {lm.model = {family = "llama", name = "tiny", architecture = "LlamaForCausalLM", vocab = 64 : i64, hidden = 32 : i64, context = 128 : i64,
  tied_head = true, parameters = 1000 : i64, eos = array<i64: 2>, source_bytes = 65536 : i64, sampling = {}, layers = [{index = 0 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64, rope_kind = "default", rope_theta = 1.0e4, rope_attention_factor = 1.0, window = 0 : i64, softmax_scale = 0.25, soft_cap = 0.0, ffn = 32 : i64, activation = "silu", norm_eps = 1.0e-5, qk_norm = false, qkv_bias = false, output_bias = false}, {index = 1 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64, rope_kind = "default", rope_theta = 1.0e4, rope_attention_factor = 1.0, window = 0 : i64, softmax_scale = 0.25, soft_cap = 0.0, ffn = 32 : i64, activation = "silu", norm_eps = 1.0e-5, qk_norm = false, qkv_bias = false, output_bias = false}],
  tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
  lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
  lm.weight @embed [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @norm [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "norm", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @qkv [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "qkv", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @o [32, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "o", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32>]
  lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
    %x = lm.embed %tokens, @embed : tensor<?x32xf32> loc("embed")
    %u = lm.linear %x, @o : tensor<?x32xf32> -> tensor<?x32xf32> loc("layer.0.down")
    %h = lm.add %x, %u : tensor<?x32xf32> loc("layer.0.ffn_residual")
    %v = lm.linear %h, @o : tensor<?x32xf32> -> tensor<?x32xf32> loc("layer.1.down")
    %k = lm.add %h, %v : tensor<?x32xf32> loc("layer.1.ffn_residual")
    %s = lm.select_rows %k : tensor<?x32xf32> loc("select_rows")
    %f = lm.rms_norm %s, @norm {eps = 1.0e-5 : f32} : tensor<?x32xf32> -> tensor<?x32xf32> loc("final_norm")
    %logits = lm.linear %f, @embed : tensor<?x32xf32> -> tensor<?x64xf32> loc("lm_head")
    lm.return %logits : tensor<?x64xf32>
  }
}

// -----

// A map is added to the state, and the confidence is the exit's.
// CHECK-LABEL: lm.program @main
// CHECK: lm.exit "exit1" %[[C:.*]] layers 1 confidence [2.500000e-01, 7.500000e-01] :
// CHECK-NEXT: %[[S:.*]] = lm.select_rows %[[C]]
// CHECK-NEXT: %[[M:.*]] = lm.linear %[[S]], @exit.1.map bias @exit.1.bias residual %[[S]] : {{.*}} loc("exit1.map")
// CHECK-NEXT: lm.rms_norm %[[M]], @norm
module attributes {lm.model = {family = "llama", name = "tiny", architecture = "LlamaForCausalLM", vocab = 64 : i64, hidden = 32 : i64, context = 128 : i64,
  tied_head = true, parameters = 1000 : i64, eos = array<i64: 2>, source_bytes = 65536 : i64, sampling = {}, layers = [{index = 0 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64, rope_kind = "default", rope_theta = 1.0e4, rope_attention_factor = 1.0, window = 0 : i64, softmax_scale = 0.25, soft_cap = 0.0, ffn = 32 : i64, activation = "silu", norm_eps = 1.0e-5, qk_norm = false, qkv_bias = false, output_bias = false}, {index = 1 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64, rope_kind = "default", rope_theta = 1.0e4, rope_attention_factor = 1.0, window = 0 : i64, softmax_scale = 0.25, soft_cap = 0.0, ffn = 32 : i64, activation = "silu", norm_eps = 1.0e-5, qk_norm = false, qkv_bias = false, output_bias = false}],
  tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
  lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
  lm.weight @embed [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @norm [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "norm", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @qkv [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "qkv", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @o [32, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "o", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32>]
  lm.weight @exit.1.map [32, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "m", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32>]
  lm.weight @exit.1.bias [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "b", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @exit.1.confidence [2] encoding <f32> layout row value dense<[0.25, 0.75]> : tensor<2xf32>
  lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
    %x = lm.embed %tokens, @embed : tensor<?x32xf32> loc("embed")
    %u = lm.linear %x, @o : tensor<?x32xf32> -> tensor<?x32xf32> loc("layer.0.down")
    %h = lm.add %x, %u : tensor<?x32xf32> loc("layer.0.ffn_residual")
    %v = lm.linear %h, @o : tensor<?x32xf32> -> tensor<?x32xf32> loc("layer.1.down")
    %k = lm.add %h, %v : tensor<?x32xf32> loc("layer.1.ffn_residual")
    %s = lm.select_rows %k : tensor<?x32xf32> loc("select_rows")
    %f = lm.rms_norm %s, @norm {eps = 1.0e-5 : f32} : tensor<?x32xf32> -> tensor<?x32xf32> loc("final_norm")
    %logits = lm.linear %f, @embed : tensor<?x32xf32> -> tensor<?x64xf32> loc("lm_head")
    lm.return %logits : tensor<?x64xf32>
  }
}
