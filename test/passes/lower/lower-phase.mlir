// RUN: ingot-opt %s -ingot-lower -mlir-print-debuginfo | FileCheck %s
// RUN: ingot-opt %s -ingot-lower -mlir-print-debuginfo > %t.whole
// RUN: ingot-opt %s -select-kernels -mlir-print-debuginfo | ingot-opt -assign-buffers -mlir-print-debuginfo | ingot-opt -assign-weights -mlir-print-debuginfo > %t.parts
// RUN: diff %t.whole %t.parts

// The phase at once, and a pass at a time through text, give the same.
// CHECK: plan.weight @embed {{.*}} placement <offset = 0, size = 4096, scales = 0, mins = 0>
// CHECK: plan.weight @norm {{.*}} placement <offset = 4096, size = 128, scales = 0, mins = 0>
// CHECK: plan.target @cpu {{.*}} token_arena_bytes
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
  lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
    %h = lm.embed %tokens, @embed {scale = 2.0 : f32} : tensor<?x32xf32> loc("embed")
    %rope = lm.rope_table %positions, @inv_freq {attention_factor = 1.5 : f32} : tensor<?x16xf32> loc("rope.0")
    %n = lm.rms_norm %h, @norm {eps = 1.0e-5 : f32} : tensor<?x32xf32> -> tensor<?x32xf32> loc("layer.0.attn_norm")
    %nq = lm.quantize %n : tensor<?x32xf32> -> !lm.quantized<32, group = 32, bits = 16> loc("layer.0.attn_norm.quantize")
    %q = lm.linear %nq, @q : !lm.quantized<32, group = 32, bits = 16> -> tensor<?x32xf32> loc("layer.0.q")
    %k = lm.linear %nq, @k : !lm.quantized<32, group = 32, bits = 16> -> tensor<?x16xf32> loc("layer.0.k")
    %v = lm.linear %n, @v : tensor<?x32xf32> -> tensor<?x16xf32> loc("layer.0.v")
    %qkv = lm.concat %q, %k, %v : tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32> -> tensor<?x64xf32> loc("layer.0.qkv")
    %query, %cache = lm.rope_cache_write %qkv, %rope state @kv0[0] {heads = 2 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x64xf32>, tensor<?x16xf32> -> tensor<?x32xf32> loc("layer.0.rope")
    %a = lm.cached_attention %query, %cache state @kv0[0] {heads = 2 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, scale = 0.25 : f32, window = 64 : i64} : tensor<?x32xf32> -> tensor<?x32xf32> loc("layer.0.attention")
    %r = lm.linear %a, @o residual %h : tensor<?x32xf32> -> tensor<?x32xf32>, tensor<?x32xf32> loc("layer.0.o")
    %c = lm.cut "exit0" %r : tensor<?x32xf32>
    %gu = lm.linear %c, @gate_up : tensor<?x32xf32> -> tensor<?x64xf32> loc("layer.0.gate_up")
    %g = lm.gate silu %gu : tensor<?x64xf32> -> tensor<?x32xf32> loc("layer.0.gate")
    %d = lm.linear %g, @o residual %c : tensor<?x32xf32> -> tensor<?x32xf32>, tensor<?x32xf32> loc("layer.0.down")
    %s = lm.select_rows %d : tensor<?x32xf32> loc("select")
    %f = lm.rms_norm %s, @norm {eps = 1.0e-5 : f32} : tensor<?x32xf32> -> tensor<?x32xf32> loc("final_norm")
    %logits = lm.linear %f, @embed : tensor<?x32xf32> -> tensor<?x64xf32> loc("lm_head")
    lm.return %logits : tensor<?x64xf32>
  }
}
