// RUN: ingot-opt %s | ingot-opt | FileCheck %s
// RUN: ingot-opt -mlir-print-op-generic %s | ingot-opt | FileCheck %s
// RUN: ingot-opt -mlir-print-debuginfo %s | ingot-opt -mlir-print-debuginfo | FileCheck --check-prefix=LOC %s

// Everything known of the model survives.
// CHECK: module attributes {lm.model = {
// CHECK-SAME: family = "llama"
module attributes {lm.model = {
    family = "llama", name = "tiny", architecture = "LlamaForCausalLM", vocab = 128 : i64,
    hidden = 64 : i64, context = 256 : i64, tied_head = true, parameters = 1000 : i64,
    bos = 1 : i64, eos = array<i64: 2, 3>, source_bytes = 65536 : i64,
    sampling = {temperature = 0.7, top_k = -1 : i64},
    tokenizer = {kind = "huggingface", path = "tokenizer.json"},
    templates = [{name = "default", text = "{{ x }}"}], licence = "", model_card = "",
    layers = [{index = 0 : i64, heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64,
      rotary_dim = 16 : i64, rope_kind = "default", rope_theta = 1.0e4,
      rope_attention_factor = 1.0, window = 0 : i64, softmax_scale = 0.25, soft_cap = 0.0,
      ffn = 96 : i64, activation = "silu", norm_eps = 1.0e-5, qk_norm = true,
      qkv_bias = true, output_bias = false}]}} {

// A file with and without a path.
// CHECK: lm.source @src0 {hash = "00000000deadbeef", name = "a.safetensors", path = "m/a.safetensors", size = 65536 : i64}
lm.source @src0 {name = "a.safetensors", path = "m/a.safetensors", size = 65536 : i64, hash = "00000000deadbeef"}
// CHECK: lm.source @src1 {hash = "0123456789abcdef", name = "b.gguf", size = 65536 : i64}
lm.source @src1 {name = "b.gguf", size = 65536 : i64, hash = "0123456789abcdef"}

// A float matrix, a permuted exact block matrix, one rounded to nearest from two parts.
// CHECK: lm.weight @embed [128, 64] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f16, rows = 128, columns = 64>]
lm.weight @embed [128, 64] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f16, rows = 128, columns = 64>]
// CHECK: lm.weight @layer.0.q [64, 64] encoding <i8, group = 32> layout r16 parts [#lm.part<{{.*}}, stored = q8_0, rows = 64, columns = 64, permute = 4>]
lm.weight @layer.0.q [64, 64] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src1, name = "q", offset = 8, size = 4352, stored = q8_0, rows = 64, columns = 64, permute = 4>]
// CHECK: lm.weight @layer.0.qkv [128, 64] encoding <i4, group = 64> layout r16 method "rtn" parts [#lm.part<{{.*}}>, #lm.part<{{.*}}>]
lm.weight @layer.0.qkv [128, 64] encoding <i4, group = 64> layout r16 method "rtn" parts [#lm.part<source = @src1, name = "q", offset = 0, size = 4352, stored = q8_0, rows = 64, columns = 64>, #lm.part<source = @src1, name = "kv", offset = 0, size = 2560, stored = q4_1, rows = 64, columns = 64>]
// CHECK: lm.weight @codes [32, 64] encoding <i4, group = 32> layout r16 method "rtn" parts [#lm.part<{{.*}}, stored = codes, rows = 32, columns = 64, details = {adapters = [{{.*}}rank = 2 : i64, scale = 5.000000e-01 : f32{{.*}}], codes = {bits = 4 : i64, {{.*}}}}>]
lm.weight @codes [32, 64] encoding <i4, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src1, name = "t", offset = 0, size = 1024, stored = codes, rows = 32, columns = 64, details = {adapters = [{a = {name = "a", offset = 0 : i64, size = 512 : i64, source = @src1, type = "f32"}, b = {name = "b", offset = 512 : i64, size = 256 : i64, source = @src1, type = "f32"}, rank = 2 : i64, scale = 5.000000e-01 : f32, transposed = false}], codes = {bits = 4 : i64, group = 32 : i64, packing = "gptq", row_group = 1 : i64, scales = {name = "s", offset = 1024 : i64, size = 128 : i64, source = @src1, type = "f16"}, zero_bias = 1 : i64}}>]
// CHECK: lm.weight @minimum [32, 64] encoding <i4, group = 32, minimum> layout r16 parts
lm.weight @minimum [32, 64] encoding <i4, group = 32, minimum> layout r16 parts [#lm.part<source = @src1, name = "m", offset = 0, size = 1280, stored = q4_1, rows = 32, columns = 64>]
// A vector of a file, and one that is written out.
// CHECK: lm.weight @norm [64] encoding <f32> layout row parts
lm.weight @norm [64] encoding <f32> layout row parts [#lm.part<source = @src0, name = "norm", offset = 0, size = 128, stored = bf16, rows = 64, columns = 1>]
// CHECK: lm.weight @bias [64] encoding <f32> layout row parts
lm.weight @bias [64] encoding <f32> layout row parts [#lm.part<source = @src0, name = "bias", offset = 0, size = 256, stored = f32, rows = 64, columns = 1>]
// CHECK: lm.weight @head_norm [16] encoding <f32> layout row value dense<1.000000e+00>
lm.weight @head_norm [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
// CHECK: lm.weight @rope.0 [8] encoding <f32> layout row value dense<5.000000e-01> : tensor<8xf32>
lm.weight @rope.0 [8] encoding <f32> layout row value dense<0.5> : tensor<8xf32>
// CHECK: lm.state @kv0 {dtype = f16, head_dim = 16 : i64, kv_heads = 2 : i64, layers = 2 : i64, window = 8 : i64}
lm.state @kv0 {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.state @kv_all {layers = 1 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}

// Operators as an importer states them.
// CHECK-LABEL: lm.program @imported(%arg0: tensor<?xi32>, %arg1: tensor<?xi32>) -> tensor<?x128xf32>
lm.program @imported(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x128xf32> {
  // LOC: lm.embed {{.*}} loc(#[[EMBED:.*]])
  // CHECK: %[[X:.*]] = lm.embed %arg0, @embed {scale = 2.000000e+00 : f32} : tensor<?x64xf32>
  %x = lm.embed %tokens, @embed {scale = 2.0 : f32} : tensor<?x64xf32> loc("embed")
  // CHECK: %[[ROPE:.*]] = lm.rope_table %arg1, @rope.0 : tensor<?x16xf32>
  %rope = lm.rope_table %positions, @rope.0 : tensor<?x16xf32>
  // CHECK: %[[N:.*]] = lm.rms_norm %[[X]], @norm {eps = {{.*}} : f32, weight_offset = 1.000000e+00 : f32} : tensor<?x64xf32> -> tensor<?x64xf32>
  %n = lm.rms_norm %x, @norm {eps = 1.0e-5 : f32, weight_offset = 1.0 : f32} : tensor<?x64xf32> -> tensor<?x64xf32>
  // CHECK: %[[Q:.*]] = lm.linear %[[N]], @layer.0.q bias @bias residual %[[X]] : tensor<?x64xf32> -> tensor<?x64xf32>, tensor<?x64xf32>
  %q = lm.linear %n, @layer.0.q bias @bias residual %x : tensor<?x64xf32> -> tensor<?x64xf32>, tensor<?x64xf32>
  // CHECK: %[[S:.*]]:2 = lm.split %[[N]] : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x32xf32>
  %k, %v = lm.split %n : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x32xf32>
  // CHECK: %[[HN:.*]] = lm.head_norm %[[Q]], @head_norm {eps = {{.*}} : f32, head_dim = 16 : i64, heads = 4 : i64} : tensor<?x64xf32>
  %qn = lm.head_norm %q, @head_norm {heads = 4 : i64, head_dim = 16 : i64, eps = 1.0e-6 : f32} : tensor<?x64xf32>
  // CHECK: %[[R:.*]] = lm.rotary %[[HN]], %[[ROPE]] {head_dim = 16 : i64, heads = 4 : i64, interleaved, rotary_dim = 16 : i64} : tensor<?x64xf32>, tensor<?x16xf32>
  %qr = lm.rotary %qn, %rope {heads = 4 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64, interleaved} : tensor<?x64xf32>, tensor<?x16xf32>
  // CHECK: %[[A:.*]] = lm.attention %[[R]], %[[S]]#0, %[[S]]#1 state @kv0[1] {head_dim = 16 : i64, heads = 4 : i64, kv_heads = 2 : i64, scale = 2.500000e-01 : f32, soft_cap = 5.000000e+01 : f32, window = 8 : i64} : tensor<?x64xf32>, tensor<?x32xf32>
  %a = lm.attention %qr, %k, %v state @kv0[1] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32, window = 8 : i64, soft_cap = 50.0 : f32} : tensor<?x64xf32>, tensor<?x32xf32>
  // CHECK: %[[ADD:.*]] = lm.add %[[X]], %[[A]] : tensor<?x64xf32>
  %y = lm.add %x, %a : tensor<?x64xf32>
  // CHECK: %[[CAT:.*]] = lm.concat %[[ADD]], %[[N]] : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x128xf32>
  %c = lm.concat %y, %n : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x128xf32>
  // CHECK: %[[G:.*]] = lm.gate gelu_tanh %[[CAT]] : tensor<?x128xf32> -> tensor<?x64xf32>
  %g = lm.gate gelu_tanh %c : tensor<?x128xf32> -> tensor<?x64xf32>
  // CHECK: %[[CUT:.*]] = lm.cut "exit0" %[[G]] : tensor<?x64xf32>
  %cut = lm.cut "exit0" %g : tensor<?x64xf32>
  // CHECK: %[[SEL:.*]] = lm.select_rows %[[CUT]] : tensor<?x64xf32>
  %s = lm.select_rows %cut : tensor<?x64xf32>
  // CHECK: %[[L:.*]] = lm.linear %[[SEL]], @embed : tensor<?x64xf32> -> tensor<?x128xf32>
  %l = lm.linear %s, @embed : tensor<?x64xf32> -> tensor<?x128xf32>
  // CHECK: lm.return %[[L]] : tensor<?x128xf32>
  lm.return %l : tensor<?x128xf32>
}

// An encoder: a vector added to every row, a look both ways, rows made one.
// CHECK-LABEL: lm.program @encoder
lm.program @encoder(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  // CHECK: %[[X:.*]] = lm.embed %arg0, @embed bias @norm : tensor<?x64xf32>
  %x = lm.embed %tokens, @embed bias @norm : tensor<?x64xf32>
  %k, %v = lm.split %x : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x32xf32>
  // CHECK: lm.attention {{.*}}rounded_slopes, scale = 2.500000e-01 : f32, slopes = array<f32: 5.000000e-01, 2.500000e-01, 1.250000e-01, 6.250000e-02>}
  %rounded = lm.attention %x, %k, %v state @kv_all[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32, slopes = array<f32: 0.5, 0.25, 0.125, 0.0625>, rounded_slopes} : tensor<?x64xf32>, tensor<?x32xf32>
  // CHECK: %[[A:.*]] = lm.attention %[[X]], %{{.*}}, %{{.*}} state @kv_all[0] {bidirectional, head_dim
  %a = lm.attention %x, %k, %v state @kv_all[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32, bidirectional} : tensor<?x64xf32>, tensor<?x32xf32>
  // CHECK: %[[P:.*]] = lm.pool mean %[[A]] {normalize} : tensor<?x64xf32>
  %p = lm.pool mean %a {normalize} : tensor<?x64xf32>
  // CHECK: lm.return %[[P]] : tensor<?x64xf32>
  lm.return %p : tensor<?x64xf32>
}

// Fused and quantised operators.
// CHECK-LABEL: lm.program @fused
lm.program @fused(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %rope = lm.rope_table %positions, @rope.0 : tensor<?x16xf32>
  // CHECK: lm.quantize %{{.*}} : tensor<?x64xf32> -> !lm.quantized<64, group = 32, bits = 16>
  %c = lm.quantize %x : tensor<?x64xf32> -> !lm.quantized<64, group = 32, bits = 16>
  // CHECK: lm.linear %{{.*}}, @layer.0.q : !lm.quantized<64, group = 32, bits = 16> -> tensor<?x64xf32>
  %o = lm.linear %c, @layer.0.q : !lm.quantized<64, group = 32, bits = 16> -> tensor<?x64xf32>
  // CHECK: lm.rms_norm %{{.*}}, @norm {{.*}} -> !lm.quantized<64, group = 64, bits = 8>
  %n = lm.rms_norm %o, @norm {eps = 1.0e-5 : f32} : tensor<?x64xf32> -> !lm.quantized<64, group = 64, bits = 8>
  // CHECK: %[[QKV:.*]] = lm.linear %{{.*}}, @layer.0.qkv : !lm.quantized<64, group = 64, bits = 8> -> tensor<?x128xf32>
  %qkv = lm.linear %n, @layer.0.qkv : !lm.quantized<64, group = 64, bits = 8> -> tensor<?x128xf32>
  // CHECK: %[[Q:.*]], %[[C:.*]] = lm.rope_cache_write %[[QKV]], %{{.*}} state @kv0[0] q_norm @head_norm k_norm @head_norm {{.*}} : tensor<?x128xf32>, tensor<?x16xf32> -> tensor<?x64xf32>
  %q, %cache = lm.rope_cache_write %qkv, %rope state @kv0[0] q_norm @head_norm k_norm @head_norm {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64, norm_eps = 1.0e-6 : f32} : tensor<?x128xf32>, tensor<?x16xf32> -> tensor<?x64xf32>
  // CHECK: %[[A:.*]] = lm.cached_attention %[[Q]], %[[C]] state @kv0[0] {{.*}} : tensor<?x64xf32> -> tensor<?x64xf32>
  %a = lm.cached_attention %q, %cache state @kv0[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32, window = 4 : i64} : tensor<?x64xf32> -> tensor<?x64xf32>
  // CHECK: lm.gate silu %[[QKV]] : tensor<?x128xf32> -> !lm.quantized<64, group = 32, bits = 16>
  %g = lm.gate silu %qkv : tensor<?x128xf32> -> !lm.quantized<64, group = 32, bits = 16>
  %d = lm.linear %g, @layer.0.q residual %a : !lm.quantized<64, group = 32, bits = 16> -> tensor<?x64xf32>, tensor<?x64xf32>
  lm.return %d : tensor<?x64xf32>
}
}
// LOC: #[[EMBED]] = loc("embed")
