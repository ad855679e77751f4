// RUN: ingot-opt %s | ingot-opt | FileCheck %s
// RUN: ingot-opt %s --mlir-print-op-generic | ingot-opt | FileCheck %s

// Everything that a plan can say, in the order of the schema.

// CHECK: module attributes {
// CHECK-SAME: plan.provenance = {compiler = "ingot 0.1.0", pipeline = "builtin.module()"}
module attributes {plan.provenance = {compiler = "ingot 0.1.0", pipeline = "builtin.module()"}} {
  // CHECK: plan.source @src0 name "model.safetensors" path "tiny/model.safetensors" size 65536 hash "2d06800538d394c2"
  plan.source @src0 name "model.safetensors" path "tiny/model.safetensors" size 65536 hash "2d06800538d394c2"

  // A weight of two parts in an integer encoding, with its place.
  // CHECK: plan.weight @layer.0.qkv encoding <i8, group = 32> layout r16 rows 64 columns 32 method "rtn"
  // CHECK-SAME: parts [#plan.part<source = @src0, name = "q", offset = 64, size = 4096, stored = f32, rows = 32, columns = 32>
  // CHECK-SAME: permute = 2
  // CHECK-SAME: placement <offset = 0, size = 2304, scales = 2048, mins = 0>
  plan.weight @layer.0.qkv encoding <i8, group = 32> layout r16 rows 64 columns 32 method "rtn"
    parts [#plan.part<source = @src0, name = "q", offset = 64, size = 4096, stored = f32, rows = 32, columns = 32>,
           #plan.part<source = @src0, name = "kv", offset = 4160, size = 1088, stored = q8_0, rows = 32, columns = 32, permute = 2>]
    placement <offset = 0, size = 2304, scales = 2048, mins = 0>
  // CHECK: plan.weight @inv_freq encoding <f32> layout row rows 4 columns 1 value dense<[1.000000e+00, 1.000000e-01, 0.00999999977, 1.000000e-03]> : tensor<4xf32>
  plan.weight @inv_freq encoding <f32> layout row rows 4 columns 1 value dense<[1.0, 0.1, 0.01, 0.001]> : tensor<4xf32>
  plan.weight @norm encoding <f32> layout row rows 32 columns 1
    parts [#plan.part<source = @src0, name = "n", offset = 8192, size = 128, stored = f32, rows = 32, columns = 1>]
  plan.weight @head_norm encoding <f32> layout row rows 8 columns 1 value dense<[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]> : tensor<8xf32>
  plan.weight @bias encoding <f32> layout row rows 64 columns 1
    parts [#plan.part<source = @src0, name = "b", offset = 8192, size = 256, stored = f32, rows = 64, columns = 1>]
  // CHECK: plan.weight @embed encoding <f16>
  plan.weight @embed encoding <f16> layout r16 rows 64 columns 32
    parts [#plan.part<source = @src0, name = "e", offset = 8192, size = 4096, stored = f16, rows = 64, columns = 32>]
  // CHECK: encoding <i4, group = 32, minimum>
  plan.weight @o encoding <i4, group = 32, minimum> layout r16 rows 32 columns 32
    parts [#plan.part<source = @src0, name = "o", offset = 8192, size = 640, stored = q4_1, rows = 32, columns = 32>]

  // Two groups of state: layers need not be alike.
  // CHECK: plan.state @kv0 layers 2 kv_heads 2 head_dim 8 dtype f16 window 0
  plan.state @kv0 layers 2 kv_heads 2 head_dim 8 dtype f16 window 0
  // CHECK: plan.state @kv2 layers 1 kv_heads 1 head_dim 16 dtype i8 window 0
  plan.state @kv2 layers 1 kv_heads 1 head_dim 16 dtype i8 window 0
  // CHECK: plan.state @kv1 layers 1 kv_heads 1 head_dim 16 dtype f32 window 64
  plan.state @kv1 layers 1 kv_heads 1 head_dim 16 dtype f32 window 64

  // CHECK: plan.target @cpu layout "r16" levels ["avx512-vnni", "x86-64-v3"] logits @logits token_arena_bytes 4096 logit_row_arena_bytes 512
  plan.target @cpu layout "r16" levels ["avx512-vnni", "x86-64-v3"] logits @logits
      token_arena_bytes 4096 logit_row_arena_bytes 512 {
    // CHECK: plan.buffer @h domain token offset 0 : !plan.rows<32>
    plan.buffer @h domain token offset 0 : !plan.rows<32>
    // CHECK: plan.buffer @xq domain token offset 128 : !plan.quantized_rows<32, group = 32, bits = 16>
    plan.buffer @xq domain token offset 128 : !plan.quantized_rows<32, group = 32, bits = 16>
    plan.buffer @rope domain token offset 256 : !plan.rows<8>
    plan.buffer @qkv domain token offset 320 : !plan.rows<64>
    plan.buffer @q domain token offset 576 : !plan.rows<32>
    plan.buffer @a domain token offset 704 : !plan.rows<32>
    plan.buffer @gu domain token offset 832 : !plan.rows<64>
    plan.buffer @xq8 domain token offset 1088 : !plan.quantized_rows<32, group = 32, bits = 8>
    plan.buffer @last domain logit_row offset 0 : !plan.rows<32>
    plan.buffer @logits domain logit_row offset 128 : !plan.rows<64>
    // CHECK: plan.kernel @embed_f16 op "embed" config {encoding = "f16"} scratch 0
    plan.kernel @embed_f16 op "embed" config {encoding = "f16"} scratch 0
    plan.kernel @rope_table op "rope_table" config {} scratch 0
    plan.kernel @rms_norm_q16g32 op "rms_norm" config {bits = 16 : i64, group = 32 : i64} scratch 0
    plan.kernel @quantize_q16g32 op "quantize" config {bits = 16 : i64, group = 32 : i64} scratch 0
    plan.kernel @linear_t1 op "linear" config {encoding = "i8", group = 32 : i64} scratch 64
    plan.kernel @linear_t2 op "linear" config {encoding = "i8", group = 32 : i64} scratch 64
    plan.kernel @gated op "gated" config {activation = "silu"} scratch 0
    plan.kernel @rope_write op "rope_cache_write" config {} scratch 0
    plan.kernel @attention op "attention" config {} scratch 1024
    plan.kernel @alibi_attention op "alibi_attention" config {} scratch 1024
    plan.kernel @gather op "gather_rows" config {} scratch 0
    plan.kernel @pool op "pool" config {} scratch 0
    // CHECK: plan.segment @early output @h {
    plan.segment @early output @h {
      // CHECK: plan.embed table @embed to @h scale = 1.000000e+00 variants [#plan.variant<1, 0, @embed_f16>]
      plan.embed table @embed to @h scale = 1.0 variants [#plan.variant<1, 0, @embed_f16>]
      // CHECK: plan.rope_table inv_freq @inv_freq to @rope rotary_dim = 8 attention_factor = 1.000000e+00
      plan.rope_table inv_freq @inv_freq to @rope rotary_dim = 8 attention_factor = 1.0 variants [#plan.variant<1, 0, @rope_table>]
      // CHECK: plan.rms_norm @h weight @norm to @a quantized @xq width = 32 eps = 9.99999974E-6 weight_offset = 0.000000e+00 domain = token
      plan.rms_norm @h weight @norm to @a quantized @xq width = 32 eps = 1.0e-5 weight_offset = 0.0 domain = token variants [#plan.variant<1, 0, @rms_norm_q16g32>]
      // CHECK: plan.quantize @a to @xq width = 32 domain = token
      plan.quantize @a to @xq width = 32 domain = token variants [#plan.variant<1, 0, @quantize_q16g32>]
      // Kernels are chosen by ranges of rows.
      // CHECK: plan.linear @xq weight @layer.0.qkv bias @bias to @qkv k = 32 n = 64 column = 0 domain = token variants [#plan.variant<1, 1, @linear_t1>, #plan.variant<2, 0, @linear_t2>]
      plan.linear @xq weight @layer.0.qkv bias @bias to @qkv k = 32 n = 64 column = 0 domain = token
        variants [#plan.variant<1, 1, @linear_t1>, #plan.variant<2, 0, @linear_t2>]
      // CHECK: plan.rope_cache_write @qkv table @rope q_norm @head_norm k_norm @head_norm to @q state @kv0 layer 1 heads = 4 kv_heads = 2 head_dim = 8 rotary_dim = 8 norm_eps = 9.99999997E-7
      plan.rope_cache_write @qkv table @rope q_norm @head_norm k_norm @head_norm to @q state @kv0 layer 1
        heads = 4 kv_heads = 2 head_dim = 8 rotary_dim = 8 norm_eps = 1.0e-6 variants [#plan.variant<1, 0, @rope_write>]
      // CHECK: plan.attention @q state @kv0 layer 1 to @a heads = 4 kv_heads = 2 head_dim = 8 window = 0 scale = 5.000000e-01 soft_cap = 0.000000e+00
      plan.attention @q state @kv0 layer 1 to @a heads = 4 kv_heads = 2 head_dim = 8 window = 0
        scale = 0.5 soft_cap = 0.0 variants [#plan.variant<1, 0, @attention>]
      // CHECK: plan.attention {{.*}}@alibi_attention>] {rounded_slopes, slopes = array<f32: 5.000000e-01, 2.500000e-01, 1.250000e-01, 6.250000e-02>}
      plan.attention @q state @kv0 layer 1 to @a heads = 4 kv_heads = 2 head_dim = 8 window = 0
        scale = 0.5 soft_cap = 0.0 variants [#plan.variant<1, 0, @alibi_attention>] {slopes = array<f32: 0.5, 0.25, 0.125, 0.0625>, rounded_slopes}
      // A residual is updated in place.
      // CHECK: plan.linear @xq8 weight @o residual @h to @h
      plan.linear @xq8 weight @o residual @h to @h k = 32 n = 32 column = 0 domain = token
        variants [#plan.variant<1, 0, @linear_t1>]
    }
    // CHECK: plan.segment @late input @h {
    plan.segment @late input @h {
      // CHECK: plan.gated @gu quantized @xq width = 32 activation = "silu"
      plan.gated @gu quantized @xq width = 32 activation = "silu" variants [#plan.variant<1, 0, @gated>]
      // CHECK: plan.gather_rows @h to @last width = 32
      plan.gather_rows @h to @last width = 32 variants [#plan.variant<1, 0, @gather>]
      // CHECK: plan.pool "cls" @h to @last width = 32 normalize
      plan.pool "cls" @h to @last width = 32 normalize variants [#plan.variant<1, 0, @pool>]
    }
  }

  // A second target has buffers and kernels of its own.
  // CHECK: plan.target @other
  plan.target @other layout "r16" levels ["x"] logits @logits {
    plan.buffer @logits domain logit_row : !plan.rows<64>
    plan.segment @main {
    }
  }
}
