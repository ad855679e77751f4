// RUN: ingot-opt %s -ingot-import -ingot-simplify -ingot-compress="encoding=int8 group=32" -ingot-fuse | FileCheck %s
// RUN: ingot-opt %s -ingot-import -ingot-simplify | ingot-opt -ingot-compress="encoding=int8 group=32" | ingot-opt -ingot-fuse | FileCheck %s
// RUN: ingot-opt %s -ingot-compress="encoding=int8 group=32" -dump-pass-pipeline 2>&1 | FileCheck %s --check-prefix=TEXT

// RUN: ingot-opt %s -ingot-compress="encoding=int8 group=32 kv-int8=true" -dump-pass-pipeline 2>&1 | FileCheck %s --check-prefix=KV

// The phases end in one operator a launch, whether run at once or through text.
// CHECK-LABEL: lm.program @main
// CHECK-NEXT: lm.embed
// CHECK-NEXT: lm.rope_table
// CHECK-NEXT: lm.rms_norm {{.*}} -> !lm.quantized<64, group = 32, bits = 16>
// CHECK-NEXT: lm.linear {{.*}} @layer.0.qkv
// CHECK-NEXT: lm.rope_cache_write
// CHECK-NEXT: lm.cached_attention
// CHECK-NEXT: lm.quantize
// CHECK-NEXT: lm.linear {{.*}} @layer.0.o residual
// CHECK-NEXT: lm.return

// TEXT: quantize-weights{encoding=int8 group=32{{.*}}table=auto}
// TEXT-NOT: quantize-kv
// TEXT-SAME: insert-quantize

// Keys and values become codes where the pipeline is told so.
// KV: quantize-weights{{.*}},quantize-kv,
// KV-SAME: insert-quantize
// KV: lm.state @kv0 {dtype = i8,
module attributes {lm.model = {family = "f", name = "n", architecture = "a", vocab = 1 : i64, hidden = 1 : i64, context = 1 : i64, tied_head = true, parameters = 1 : i64, eos = array<i64: 2>, source_bytes = 1 : i64, sampling = {}, layers = [], tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.0.q [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.q", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.0.k [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.k", offset = 0, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.weight @layer.0.v [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.v", offset = 0, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.weight @layer.0.o [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.o", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @norm [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.state @kv0 {layers = 1 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %rope = lm.rope_table %positions, @rope.0 : tensor<?x16xf32>
  %n = lm.rms_norm %x, @norm {eps = 1.0e-5 : f32} : tensor<?x64xf32> -> tensor<?x64xf32>
  %q = lm.linear %n, @layer.0.q : tensor<?x64xf32> -> tensor<?x64xf32>
  %k = lm.linear %n, @layer.0.k : tensor<?x64xf32> -> tensor<?x32xf32>
  %v = lm.linear %n, @layer.0.v : tensor<?x64xf32> -> tensor<?x32xf32>
  %qr = lm.rotary %q, %rope {heads = 4 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x64xf32>, tensor<?x16xf32>
  %kr = lm.rotary %k, %rope {heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x32xf32>, tensor<?x16xf32>
  %a = lm.attention %qr, %kr, %v state @kv0[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x32xf32> loc("layer.0.attention")
  %o = lm.linear %a, @layer.0.o : tensor<?x64xf32> -> tensor<?x64xf32>
  %y = lm.add %x, %o : tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}
}
