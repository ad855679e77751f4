// RUN: ingot-opt %s -split-input-file -fuse-quantize -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s

// A norm writes quantised rows for all operators that read them.
// CHECK-LABEL: lm.program @main
// CHECK: %[[N:.*]] = lm.rms_norm {{.*}} -> !lm.quantized<64, group = 32, bits = 16>
// CHECK-NOT: lm.quantize
// CHECK: lm.linear %[[N]], @i8
// CHECK: lm.linear %[[N]], @i8
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @i8 [64, 64] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src0, name = "i8", offset = 0, size = 4352, stored = q8_0, rows = 64, columns = 64>]
lm.weight @i8b [64, 64] encoding <i8, group = 64> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "i8b", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @down [64, 32] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src0, name = "down", offset = 0, size = 2176, stored = q8_0, rows = 64, columns = 32>]
lm.weight @norm [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.weight @layer.0.qkv [192, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.qkv", offset = 0, size = 49152, stored = f32, rows = 192, columns = 64>]
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %n = lm.rms_norm %x, @norm {eps = 1.0e-5 : f32} : tensor<?x64xf32> -> tensor<?x64xf32>
  %a = lm.quantize %n : tensor<?x64xf32> -> !lm.quantized<64, group = 32, bits = 16>
  %b = lm.quantize %n : tensor<?x64xf32> -> !lm.quantized<64, group = 32, bits = 16>
  %c = lm.linear %a, @i8 : !lm.quantized<64, group = 32, bits = 16> -> tensor<?x64xf32>
  %d = lm.linear %b, @i8 : !lm.quantized<64, group = 32, bits = 16> -> tensor<?x64xf32>
  %y = lm.add %c, %d : tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}

// -----

// A gate writes quantised rows.
// CHECK-LABEL: lm.program @main
// CHECK: %[[G:.*]] = lm.gate silu {{.*}} -> !lm.quantized<32, group = 32, bits = 16>
// CHECK-NEXT: lm.linear %[[G]], @down
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @i8 [64, 64] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src0, name = "i8", offset = 0, size = 4352, stored = q8_0, rows = 64, columns = 64>]
lm.weight @i8b [64, 64] encoding <i8, group = 64> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "i8b", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @down [64, 32] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src0, name = "down", offset = 0, size = 2176, stored = q8_0, rows = 64, columns = 32>]
lm.weight @norm [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.weight @layer.0.qkv [192, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.qkv", offset = 0, size = 49152, stored = f32, rows = 192, columns = 64>]
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %g = lm.gate silu %x : tensor<?x64xf32> -> tensor<?x32xf32>
  %a = lm.quantize %g : tensor<?x32xf32> -> !lm.quantized<32, group = 32, bits = 16>
  %y = lm.linear %a, @down : !lm.quantized<32, group = 32, bits = 16> -> tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}

// -----

// Attention writes quantised rows where the group divides the head.
// CHECK-LABEL: lm.program @main
// CHECK: %[[A:.*]] = lm.cached_attention {{.*}} -> !lm.quantized<64, group = 32, bits = 16>
// CHECK-NEXT: lm.linear %[[A]], @i8
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @i8 [64, 64] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src0, name = "i8", offset = 0, size = 4352, stored = q8_0, rows = 64, columns = 64>]
lm.weight @i8b [64, 64] encoding <i8, group = 64> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "i8b", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @down [64, 32] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src0, name = "down", offset = 0, size = 2176, stored = q8_0, rows = 64, columns = 32>]
lm.weight @norm [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.weight @layer.0.qkv [192, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.qkv", offset = 0, size = 49152, stored = f32, rows = 192, columns = 64>]
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.state @kv0 {layers = 1 : i64, kv_heads = 1 : i64, head_dim = 64 : i64, dtype = f16}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %rope = lm.rope_table %positions, @rope.0 : tensor<?x16xf32>
  %qkv = lm.linear %x, @layer.0.qkv : tensor<?x64xf32> -> tensor<?x192xf32>
  %q, %c = lm.rope_cache_write %qkv, %rope state @kv0[0] {heads = 1 : i64, kv_heads = 1 : i64, head_dim = 64 : i64, rotary_dim = 16 : i64} : tensor<?x192xf32>, tensor<?x16xf32> -> tensor<?x64xf32>
  %a = lm.cached_attention %q, %c state @kv0[0] {heads = 1 : i64, kv_heads = 1 : i64, head_dim = 64 : i64, scale = 0.125 : f32} : tensor<?x64xf32> -> tensor<?x64xf32>
  %o = lm.quantize %a : tensor<?x64xf32> -> !lm.quantized<64, group = 32, bits = 16>
  %y = lm.linear %o, @i8 : !lm.quantized<64, group = 32, bits = 16> -> tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}

// -----

// Attention leaves a group that straddles heads to a launch of its own.
// CHECK-LABEL: lm.program @main
// CHECK: %[[A:.*]] = lm.cached_attention {{.*}} -> tensor<?x64xf32>
// CHECK: lm.quantize %[[A]]
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @i8 [64, 64] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src0, name = "i8", offset = 0, size = 4352, stored = q8_0, rows = 64, columns = 64>]
lm.weight @i8b [64, 64] encoding <i8, group = 64> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "i8b", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @down [64, 32] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src0, name = "down", offset = 0, size = 2176, stored = q8_0, rows = 64, columns = 32>]
lm.weight @norm [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.weight @layer.0.qkv [192, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.qkv", offset = 0, size = 49152, stored = f32, rows = 192, columns = 64>]
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.state @kv0 {layers = 1 : i64, kv_heads = 4 : i64, head_dim = 16 : i64, dtype = f16}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %rope = lm.rope_table %positions, @rope.0 : tensor<?x16xf32>
  %qkv = lm.linear %x, @layer.0.qkv : tensor<?x64xf32> -> tensor<?x192xf32>
  %q, %c = lm.rope_cache_write %qkv, %rope state @kv0[0] {heads = 4 : i64, kv_heads = 4 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x192xf32>, tensor<?x16xf32> -> tensor<?x64xf32>
  %a = lm.cached_attention %q, %c state @kv0[0] {heads = 4 : i64, kv_heads = 4 : i64, head_dim = 16 : i64, scale = 0.125 : f32} : tensor<?x64xf32> -> tensor<?x64xf32>
  %o = lm.quantize %a : tensor<?x64xf32> -> !lm.quantized<64, group = 32, bits = 16>
  %y = lm.linear %o, @i8 : !lm.quantized<64, group = 32, bits = 16> -> tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}

// -----

// A norm whose float32 rows are read too stays.
// CHECK-LABEL: lm.program @main
// CHECK: lm.rms_norm {{.*}} -> tensor<?x64xf32>
// CHECK: lm.quantize
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @i8 [64, 64] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src0, name = "i8", offset = 0, size = 4352, stored = q8_0, rows = 64, columns = 64>]
lm.weight @i8b [64, 64] encoding <i8, group = 64> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "i8b", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @down [64, 32] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src0, name = "down", offset = 0, size = 2176, stored = q8_0, rows = 64, columns = 32>]
lm.weight @norm [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.weight @layer.0.qkv [192, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.qkv", offset = 0, size = 49152, stored = f32, rows = 192, columns = 64>]
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %n = lm.rms_norm %x, @norm {eps = 1.0e-5 : f32} : tensor<?x64xf32> -> tensor<?x64xf32>
  %a = lm.quantize %n : tensor<?x64xf32> -> !lm.quantized<64, group = 32, bits = 16>
  %c = lm.linear %a, @i8 : !lm.quantized<64, group = 32, bits = 16> -> tensor<?x64xf32>
  %y = lm.add %c, %n : tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}

// -----

// A norm that is read in two groups stays.
// CHECK-LABEL: lm.program @main
// CHECK: lm.rms_norm {{.*}} -> tensor<?x64xf32>
// CHECK-COUNT-2: lm.quantize
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @i8 [64, 64] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src0, name = "i8", offset = 0, size = 4352, stored = q8_0, rows = 64, columns = 64>]
lm.weight @i8b [64, 64] encoding <i8, group = 64> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "i8b", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @down [64, 32] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src0, name = "down", offset = 0, size = 2176, stored = q8_0, rows = 64, columns = 32>]
lm.weight @norm [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.weight @layer.0.qkv [192, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.qkv", offset = 0, size = 49152, stored = f32, rows = 192, columns = 64>]
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %n = lm.rms_norm %x, @norm {eps = 1.0e-5 : f32} : tensor<?x64xf32> -> tensor<?x64xf32>
  %a = lm.quantize %n : tensor<?x64xf32> -> !lm.quantized<64, group = 32, bits = 16>
  %b = lm.quantize %n : tensor<?x64xf32> -> !lm.quantized<64, group = 64, bits = 16>
  %c = lm.linear %a, @i8 : !lm.quantized<64, group = 32, bits = 16> -> tensor<?x64xf32>
  %d = lm.linear %b, @i8b : !lm.quantized<64, group = 64, bits = 16> -> tensor<?x64xf32>
  %y = lm.add %c, %d : tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}

// -----

// A sum has no quantised form.
// CHECK-LABEL: lm.program @main
// CHECK: lm.add
// CHECK: lm.quantize
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @i8 [64, 64] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src0, name = "i8", offset = 0, size = 4352, stored = q8_0, rows = 64, columns = 64>]
lm.weight @i8b [64, 64] encoding <i8, group = 64> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "i8b", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @down [64, 32] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src0, name = "down", offset = 0, size = 2176, stored = q8_0, rows = 64, columns = 32>]
lm.weight @norm [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.weight @layer.0.qkv [192, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.qkv", offset = 0, size = 49152, stored = f32, rows = 192, columns = 64>]
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %s = lm.add %x, %x : tensor<?x64xf32>
  %a = lm.quantize %s : tensor<?x64xf32> -> !lm.quantized<64, group = 32, bits = 16>
  %y = lm.linear %a, @i8 : !lm.quantized<64, group = 32, bits = 16> -> tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}
