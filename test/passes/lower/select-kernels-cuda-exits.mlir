// RUN: ingot-opt %s -fill-exits -select-kernels="target=cuda" -assign-buffers | FileCheck %s

// Head and fill for CUDA devices. Where a linear behind the cut reads the state itself,
// the program's half rows of it are made behind the cut, where a row that leaves never
// comes: the fill makes its own.
// CHECK: plan.target @cuda layout "mma16" {{.*}} logits @lm_head
// CHECK-NOT: plan.buffer @exit1.lm_head
// CHECK: plan.segment @exit1 output @embed {
// CHECK: plan.segment @exit1.head head_of @exit1 layers 1 input @embed {
// CHECK-NEXT: plan.gather_rows @embed to @exit1.select_rows
// CHECK-NEXT: plan.quantize @exit1.select_rows to @exit1.select_rows.halves {{.*}} domain = logit_row
// CHECK-NEXT: plan.linear @exit1.select_rows.halves weight @embed to @lm_head
// CHECK: plan.segment @exit1.fill fill_of @exit1 input @embed {
// CHECK-NEXT: plan.quantize @embed to [[OWN:@exit1.halves[.0-9]*]] width = 32 domain = token
// CHECK-NEXT: plan.linear [[OWN]] weight @qkv
// CHECK-NEXT: plan.rope_cache_write {{.*}} state @kv0 layer 1
// CHECK: plan.segment @main input @embed {
// CHECK-NEXT: plan.quantize @embed to [[HALVES:@exit1.halves[.0-9]*]] width = 32 domain = token
// CHECK-NEXT: plan.linear [[HALVES]] weight @qkv
module attributes {lm.model = {family = "llama", name = "tiny", architecture = "LlamaForCausalLM", vocab = 64 : i64, hidden = 32 : i64, context = 128 : i64,
  tied_head = true, parameters = 1000 : i64, eos = array<i64: 2>, source_bytes = 65536 : i64, sampling = {}, layers = [{index = 0 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64, rope_kind = "default", rope_theta = 1.0e4, rope_attention_factor = 1.0, window = 0 : i64, softmax_scale = 0.25, soft_cap = 0.0, ffn = 32 : i64, activation = "silu", norm_eps = 1.0e-5, qk_norm = false, qkv_bias = false, output_bias = false}, {index = 1 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64, rope_kind = "default", rope_theta = 1.0e4, rope_attention_factor = 1.0, window = 0 : i64, softmax_scale = 0.25, soft_cap = 0.0, ffn = 32 : i64, activation = "silu", norm_eps = 1.0e-5, qk_norm = false, qkv_bias = false, output_bias = false}],
  tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
  lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
  lm.weight @embed [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @norm [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "norm", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @qkv [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "qkv", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @o [32, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "o", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32>]
  lm.weight @inv_freq [8] encoding <f32> layout row value dense<0.5> : tensor<8xf32>
  lm.state @kv0 {layers = 2 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, dtype = f16}
  lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
    %x = lm.embed %tokens, @embed : tensor<?x32xf32> loc("embed")
    %rope = lm.rope_table %positions, @inv_freq : tensor<?x16xf32> loc("rope.0")
    %c = lm.cut "exit1" %x : tensor<?x32xf32> loc("exit1")
    lm.exit "exit1" %c layers 1 : tensor<?x32xf32> head {
      %s = lm.select_rows %c : tensor<?x32xf32> loc("exit1.select_rows")
      %l = lm.linear %s, @embed : tensor<?x32xf32> -> tensor<?x64xf32> loc("exit1.lm_head")
      lm.yield %l : tensor<?x64xf32>
    } loc("exit1")
    %qkv = lm.linear %c, @qkv : tensor<?x32xf32> -> tensor<?x64xf32> loc("layer.1.qkv")
    %q, %w = lm.rope_cache_write %qkv, %rope state @kv0[1] {heads = 2 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x64xf32>, tensor<?x16xf32> -> tensor<?x32xf32> loc("layer.1.cache_write")
    %a = lm.cached_attention %q, %w state @kv0[1] {heads = 2 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x32xf32> -> tensor<?x32xf32> loc("layer.1.attention")
    %o = lm.linear %a, @o residual %c : tensor<?x32xf32> -> tensor<?x32xf32>, tensor<?x32xf32> loc("layer.1.o")
    %r = lm.select_rows %o : tensor<?x32xf32> loc("select_rows")
    %logits = lm.linear %r, @embed : tensor<?x32xf32> -> tensor<?x64xf32> loc("lm_head")
    lm.return %logits : tensor<?x64xf32>
  }
}
