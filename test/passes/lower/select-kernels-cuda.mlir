// RUN: ingot-opt %s -select-kernels="target=cuda sms=sm_80,sm_90a,sm_90" -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s
// RUN: ingot-opt %s -select-kernels="target=cuda,cpu levels=x86-64-v3" | FileCheck %s --check-prefix=BOTH
// RUN: ingot-opt %s -select-kernels="target=cuda" -assign-buffers -assign-weights | FileCheck %s --check-prefix=PLACED
// RUN: sed -e 's/window = 64 : i64} : tensor/window = 64 : i64, slopes = array<f32: 0.5, 0.25>} : tensor/' %s | not ingot-opt -select-kernels="target=cuda" 2>&1 | FileCheck %s --check-prefix=SLOPES

// The same layer for CUDA devices: linears read half rows, which norms, gates and
// attention write, or a quantize launch where whoever makes the rows cannot.

// Chips stand best first, PTX for later ones last.
// CHECK: plan.weight @embed encoding <f16> layout mma16 rows 64 columns 32
// CHECK: plan.weight @norm encoding <f32> layout row
// CHECK: plan.weight @q encoding <i8, group = 32> layout mma16
// CHECK: plan.target @cuda layout "mma16" levels ["sm_90a", "sm_90", "sm_80", "compute_80"] logits @lm_head {
// CHECK-NOT: quantized_rows
// CHECK: plan.buffer @layer.0.attn_norm.halves domain token : !plan.half_rows<32, parts = 2>
// CHECK: plan.kernel @linear_i8g32_t8 op "linear" config {} scratch 0 geometry <threads = 128, shared = {{[0-9]+}}, rows = 32, tokens = 8>
// CHECK: plan.kernel @attention_h16_f16 op "attention"
// CHECK: plan.kernel @attention_split_h16_f16 op "attention_split"
// CHECK: plan.kernel @attention_merge op "attention_merge"
// Chooses tokens where only those are wanted; no launch names it.
// CHECK: plan.kernel @sample op "sample"
// CHECK: plan.segment @exit0 output @layer.0.o {
// CHECK-NEXT: plan.embed table @embed to @embed
// CHECK-NEXT: plan.rope_table

// Nobody reads its float32 rows; both encodings read the same halves.
// CHECK-NEXT: plan.rms_norm @embed weight @norm quantized @layer.0.attn_norm.halves width = 32
// CHECK-NEXT: plan.linear @layer.0.attn_norm.halves weight @q to @layer.0.qkv k = 32 n = 32 column = 0 domain = token variants [#plan.variant<1, 8, @linear_i8g32_t8>, #plan.variant<9, 16, @linear_i8g32_t16>, #plan.variant<17, 32, @linear_i8g32_t32>, #plan.variant<33, 64, @linear_i8g32_t64>, #plan.variant<65, 0, @linear_i8g32_p64>]
// CHECK-NEXT: plan.linear @layer.0.attn_norm.halves weight @k
// CHECK-NEXT: plan.linear @layer.0.attn_norm.halves weight @v {{.*}} variants [#plan.variant<1, 8, @linear_f16x2_t8>
// CHECK-NEXT: plan.rope_cache_write @layer.0.qkv
// CHECK-NEXT: plan.attention @layer.0.rope state @kv0 layer 0 to @layer.0.attention quantized @layer.0.attention.halves {{.*}} split @attention_split_h16_f16 merge @attention_merge
// CHECK-NEXT: plan.linear @layer.0.attention.halves weight @o residual @embed to @layer.0.o

// The residual stream behind the cut is made half rows by a launch of its own.
// CHECK: plan.segment @main input @layer.0.o {
// CHECK-NEXT: plan.quantize @layer.0.o to [[HALVES:@[a-z0-9_.]*halves]] width = 32 domain = token
// CHECK-NEXT: plan.linear [[HALVES]] weight @gate_up
// CHECK-NEXT: plan.gated @layer.0.gate_up quantized @layer.0.gate.halves width = 32
// CHECK-NEXT: plan.linear @layer.0.gate.halves weight @o residual @layer.0.o
// CHECK-NEXT: plan.gather_rows
// CHECK-NEXT: plan.rms_norm @select weight @norm quantized @final_norm.halves {{.*}} domain = logit_row
// CHECK-NEXT: plan.linear @final_norm.halves weight @embed to @lm_head

// Slopes have no kernels on CUDA.
// SLOPES: error: {{.*}}has slopes (ALiBi), for which there is no kernel for CUDA

// Two targets share vectors; matrices are packed for each.
// BOTH: plan.weight @embed.mma16 encoding <f16> layout mma16
// BOTH: plan.weight @embed encoding <f16> layout r16
// BOTH: plan.weight @norm encoding <f32> layout row
// BOTH-NOT: @norm.mma16
// BOTH: plan.target @cuda layout "mma16" levels ["sm_90", "sm_89", "sm_86", "sm_80", "compute_80"]
// BOTH: plan.embed table @embed.mma16
// BOTH: plan.target @cpu layout "r16" levels ["x86-64-v3"]
// BOTH: plan.embed table @embed to

// Rows of K are padded to 64, of n to 16.
// PLACED: plan.weight @embed encoding <f16> layout mma16 {{.*}} placement <offset = 0, size = 8192, scales = 0, mins = 0>
// PLACED: plan.weight @q encoding <i8, group = 32> layout mma16 {{.*}} size = 2112, scales = 2048, mins = 0>
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
