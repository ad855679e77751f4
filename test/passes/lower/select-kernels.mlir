// RUN: ingot-opt %s -select-kernels="levels=x86-64-v3" -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s
// RUN: ingot-opt %s -select-kernels | FileCheck %s --check-prefix=ALL
// RUN: sed -e 's/window = 64 : i64} : tensor/window = 64 : i64, slopes = array<f32: 0.5, 0.25>, rounded_slopes} : tensor/' %s | ingot-opt -select-kernels="levels=x86-64-v3" | FileCheck %s --check-prefix=SLOPES

// A layer with a mixed projection, cut in two segments: each operator becomes a
// launch that is named by its location, and nothing of lm is left.

// Attention with slopes has kernels of its own.
// SLOPES: plan.kernel @[[K:alibi_attention_h16_f16_[a-z0-9]+]] op "alibi_attention"
// SLOPES: plan.attention {{.*}}variants [#plan.variant<1, 0, @[[K]]>] {rounded_slopes, slopes = array<f32: 5.000000e-01, 2.500000e-01>}

// All levels, the best first, where none is named.
// ALL: plan.target @cpu layout "r16" levels ["avx512-vnni", "x86-64-v3"]

// CHECK: module attributes {plan.model = {
// CHECK-NOT: lm.
// CHECK: plan.source @src0 name "a" size 65536 hash "00000000deadbeef"
// CHECK: plan.weight @embed encoding <f16> layout r16 rows 64 columns 32 parts
// CHECK: plan.weight @norm encoding <f32> layout row rows 32 columns 1
// CHECK: plan.weight @q encoding <i8, group = 32> layout r16 rows 32 columns 32 method "rtn"
// CHECK-SAME: permute = 2

// Nothing reads it.
// CHECK-NOT: @unused
// CHECK: plan.weight @inv_freq {{.*}} value dense<[
// CHECK: plan.state @kv0 layers 1 kv_heads 1 head_dim 16 dtype f16 window 64
// CHECK: plan.target @cpu layout "r16" levels ["x86-64-v3"] logits @lm_head {
// CHECK: plan.buffer @embed domain token : !plan.rows<32>
// CHECK: plan.buffer @layer.0.attn_norm.quantize domain token : !plan.quantized_rows<32, group = 32, bits = 16>
// CHECK: plan.buffer @layer.0.qkv domain token : !plan.rows<64>
// CHECK: plan.buffer @lm_head domain logit_row : !plan.rows<64>
// CHECK-DAG: plan.kernel @embed_f16 op "embed" config {encoding = "f16"} scratch 0
// CHECK-DAG: plan.kernel @rope_table op "rope_table" config {}
// CHECK-DAG: plan.kernel @linear_i8g32_t1 op "linear"
// CHECK: plan.segment @exit0 output @layer.0.o {
// CHECK-NEXT: plan.embed table @embed to @embed scale = 2.000000e+00 variants [#plan.variant<1, 0, @embed_f16>] loc("embed")
// CHECK-NEXT: plan.rope_table inv_freq @inv_freq to @rope.0 rotary_dim = 16 attention_factor = 1.500000e+00 {{.*}} loc("rope.0")
// CHECK-NEXT: plan.rms_norm @embed weight @norm to @layer.0.attn_norm width = 32 eps = 9.99999974E-6 weight_offset = 0.000000e+00 domain = token {{.*}} loc("layer.0.attn_norm")
// CHECK-NEXT: plan.quantize @layer.0.attn_norm to @layer.0.attn_norm.quantize width = 32 domain = token

// The parts of the concatenation are written into one buffer.
// CHECK-NEXT: plan.linear @layer.0.attn_norm.quantize weight @q to @layer.0.qkv k = 32 n = 32 column = 0 domain = token variants [#plan.variant<1, 1, @linear_i8g32_t1>, {{.*}}, 0, @linear_i8g32_t16>] loc("layer.0.q")
// CHECK-NEXT: plan.linear @layer.0.attn_norm.quantize weight @k to @layer.0.qkv k = 32 n = 16 column = 32
// CHECK-NEXT: plan.linear @layer.0.attn_norm weight @v to @layer.0.qkv k = 32 n = 16 column = 48
// CHECK-NEXT: plan.rope_cache_write @layer.0.qkv table @rope.0 to @layer.0.rope state @kv0 layer 0 heads = 2 kv_heads = 1 head_dim = 16 rotary_dim = 16 norm_eps = 0.000000e+00
// CHECK-NEXT: plan.attention @layer.0.rope state @kv0 layer 0 to @layer.0.attention heads = 2 kv_heads = 1 head_dim = 16 window = 64 scale = 2.500000e-01 soft_cap = 0.000000e+00
// CHECK-NEXT: plan.linear @layer.0.attention weight @o residual @embed to @layer.0.o k = 32 n = 32 column = 0 domain = token
// CHECK: plan.segment @main input @layer.0.o {
// CHECK-NEXT: plan.linear @layer.0.o weight @gate_up to @layer.0.gate_up
// CHECK-NEXT: plan.gated @layer.0.gate_up to @layer.0.gate width = 32 activation = "silu"
// CHECK-NEXT: plan.linear @layer.0.gate weight @o residual @layer.0.o to @layer.0.down
// CHECK-NEXT: plan.gather_rows @layer.0.down to @select width = 32
// CHECK-NEXT: plan.rms_norm @select weight @norm to @final_norm {{.*}} domain = logit_row
// CHECK-NEXT: plan.linear @final_norm weight @embed to @lm_head k = 32 n = 64 column = 0 domain = logit_row
// CHECK-NOT: lm.program
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
