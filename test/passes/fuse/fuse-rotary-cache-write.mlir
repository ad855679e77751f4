// RUN: ingot-opt %s -split-input-file -fuse-rotary-cache-write -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s

// The split, both rotations and the write become one operator.
// CHECK-LABEL: lm.program @main
// CHECK: %[[ROPE:.*]] = lm.rope_table
// CHECK-NEXT: %[[QKV:.*]] = lm.linear
// CHECK-NEXT: %[[Q:.*]], %[[C:.*]] = lm.rope_cache_write %[[QKV]], %[[ROPE]] state @kv0[0] {head_dim = 16 : i64, heads = 4 : i64, kv_heads = 2 : i64, rotary_dim = 16 : i64} : tensor<?x128xf32>, tensor<?x16xf32> -> tensor<?x64xf32> loc("layer.0.cache_write"(fused<"from">[
// CHECK-NEXT: lm.cached_attention %[[Q]], %[[C]] state @kv0[0] {head_dim = 16 : i64, heads = 4 : i64, kv_heads = 2 : i64, scale = 2.500000e-01 : f32} : tensor<?x64xf32> -> tensor<?x64xf32> loc("layer.0.attention")
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.state @kv0 {layers = 1 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}
lm.weight @layer.0.qkv [128, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.qkv", offset = 0, size = 32768, stored = f32, rows = 128, columns = 64>]
lm.weight @hn [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.weight @kn [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.weight @rope.1 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %rope = lm.rope_table %positions, @rope.0 : tensor<?x16xf32>
  %qkv = lm.linear %x, @layer.0.qkv : tensor<?x64xf32> -> tensor<?x128xf32>
  %q, %k, %v = lm.split %qkv : tensor<?x128xf32> -> tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>
  %qr = lm.rotary %q, %rope {heads = 4 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x64xf32>, tensor<?x16xf32>
  %kr = lm.rotary %k, %rope {heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x32xf32>, tensor<?x16xf32>
  %y = lm.attention %qr, %kr, %v state @kv0[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x32xf32> loc("layer.0.attention")
  lm.return %y : tensor<?x64xf32>
}

// -----

// Head norms fuse with it.
// CHECK-LABEL: lm.program @main
// CHECK-NOT: lm.head_norm
// CHECK: lm.rope_cache_write %{{.*}}, %{{.*}} state @kv0[0] q_norm @hn k_norm @kn {{.*}}norm_eps = 9.99999997E-7 : f32
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.state @kv0 {layers = 1 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}
lm.weight @layer.0.qkv [128, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.qkv", offset = 0, size = 32768, stored = f32, rows = 128, columns = 64>]
lm.weight @hn [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.weight @kn [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.weight @rope.1 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %rope = lm.rope_table %positions, @rope.0 : tensor<?x16xf32>
  %qkv = lm.linear %x, @layer.0.qkv : tensor<?x64xf32> -> tensor<?x128xf32>
  %q, %k, %v = lm.split %qkv : tensor<?x128xf32> -> tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>
  %qn = lm.head_norm %q, @hn {heads = 4 : i64, head_dim = 16 : i64, eps = 1.0e-6 : f32} : tensor<?x64xf32>
  %kn = lm.head_norm %k, @kn {heads = 2 : i64, head_dim = 16 : i64, eps = 1.0e-6 : f32} : tensor<?x32xf32>
  %qr = lm.rotary %qn, %rope {heads = 4 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x64xf32>, tensor<?x16xf32>
  %kr = lm.rotary %kn, %rope {heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x32xf32>, tensor<?x16xf32>
  %y = lm.attention %qr, %kr, %v state @kv0[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x32xf32> loc("layer.0.attention")
  lm.return %y : tensor<?x64xf32>
}

// -----

// Projections that did not merge are joined.
// CHECK-LABEL: lm.program @main
// CHECK: %[[QKV:.*]] = lm.concat %[[Q:.*]], %[[K:.*]], %[[V:.*]] : tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x128xf32> loc("layer.0.qkv")
// CHECK: lm.rope_cache_write %[[QKV]]
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.state @kv0 {layers = 1 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}
lm.weight @layer.0.q [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.q", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.0.k [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.k", offset = 0, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.weight @layer.0.v [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.v", offset = 0, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %rope = lm.rope_table %positions, @rope.0 : tensor<?x16xf32>
  %q = lm.linear %x, @layer.0.q : tensor<?x64xf32> -> tensor<?x64xf32> loc("layer.0.q")
  %k = lm.linear %x, @layer.0.k : tensor<?x64xf32> -> tensor<?x32xf32>
  %v = lm.linear %x, @layer.0.v : tensor<?x64xf32> -> tensor<?x32xf32>
  %qr = lm.rotary %q, %rope {heads = 4 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x64xf32>, tensor<?x16xf32>
  %kr = lm.rotary %k, %rope {heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x32xf32>, tensor<?x16xf32>
  %y = lm.attention %qr, %kr, %v state @kv0[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x32xf32> loc("layer.0.attention")
  lm.return %y : tensor<?x64xf32>
}

// -----

// Another use of the rotated query keeps its rotation.
// CHECK-LABEL: lm.program @main
// CHECK: %[[S:.*]]:3 = lm.split
// CHECK: %[[R:.*]] = lm.rotary %[[S]]#0
// CHECK-NOT: lm.rotary
// CHECK: lm.rope_cache_write
// CHECK: lm.add %{{.*}}, %[[R]]
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.state @kv0 {layers = 1 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}
lm.weight @layer.0.qkv [128, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.qkv", offset = 0, size = 32768, stored = f32, rows = 128, columns = 64>]
lm.weight @hn [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.weight @kn [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.weight @rope.1 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %rope = lm.rope_table %positions, @rope.0 : tensor<?x16xf32>
  %qkv = lm.linear %x, @layer.0.qkv : tensor<?x64xf32> -> tensor<?x128xf32>
  %q, %k, %v = lm.split %qkv : tensor<?x128xf32> -> tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>
  %qr = lm.rotary %q, %rope {heads = 4 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x64xf32>, tensor<?x16xf32>
  %kr = lm.rotary %k, %rope {heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x32xf32>, tensor<?x16xf32>
  %a = lm.attention %qr, %kr, %v state @kv0[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x32xf32> loc("layer.0.attention")
  %y = lm.add %a, %qr : tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}

// -----

// Interleaved pairs stay so.
// CHECK-LABEL: lm.program @main
// CHECK: lm.rope_cache_write {{.*}}interleaved
// CHECK: lm.cached_attention
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.state @kv0 {layers = 1 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}
lm.weight @layer.0.qkv [128, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.qkv", offset = 0, size = 32768, stored = f32, rows = 128, columns = 64>]
lm.weight @hn [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.weight @kn [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.weight @rope.1 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %rope = lm.rope_table %positions, @rope.0 : tensor<?x16xf32>
  %qkv = lm.linear %x, @layer.0.qkv : tensor<?x64xf32> -> tensor<?x128xf32>
  %q, %k, %v = lm.split %qkv : tensor<?x128xf32> -> tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>
  %qr = lm.rotary %q, %rope {heads = 4 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64, interleaved} : tensor<?x64xf32>, tensor<?x16xf32>
  %kr = lm.rotary %k, %rope {heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64, interleaved} : tensor<?x32xf32>, tensor<?x16xf32>
  %y = lm.attention %qr, %kr, %v state @kv0[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x32xf32> loc("layer.0.attention")
  lm.return %y : tensor<?x64xf32>
}

// -----

// Without rotation there is no table.
// CHECK-LABEL: lm.program @main
// CHECK: lm.rope_cache_write %{{[^,]*}} state @kv0[0] {{.*}}rotary_dim = 0 : i64
// CHECK: lm.cached_attention
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.state @kv0 {layers = 1 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}
lm.weight @layer.0.qkv [128, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.qkv", offset = 0, size = 32768, stored = f32, rows = 128, columns = 64>]
lm.weight @hn [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.weight @kn [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.weight @rope.1 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %qkv = lm.linear %x, @layer.0.qkv : tensor<?x64xf32> -> tensor<?x128xf32>
  %q, %k, %v = lm.split %qkv : tensor<?x128xf32> -> tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>
  %y = lm.attention %q, %k, %v state @kv0[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x32xf32> loc("layer.0.attention")
  lm.return %y : tensor<?x64xf32>
}

// -----

// Two tables do not fuse.
// CHECK-LABEL: lm.program @main
// CHECK-NOT: lm.rope_cache_write
// CHECK: lm.attention
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.state @kv0 {layers = 1 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}
lm.weight @layer.0.qkv [128, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.qkv", offset = 0, size = 32768, stored = f32, rows = 128, columns = 64>]
lm.weight @hn [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.weight @kn [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.weight @rope.1 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %rope = lm.rope_table %positions, @rope.0 : tensor<?x16xf32>
  %rope2 = lm.rope_table %positions, @rope.1 : tensor<?x16xf32>
  %qkv = lm.linear %x, @layer.0.qkv : tensor<?x64xf32> -> tensor<?x128xf32>
  %q, %k, %v = lm.split %qkv : tensor<?x128xf32> -> tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>
  %qr = lm.rotary %q, %rope {heads = 4 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x64xf32>, tensor<?x16xf32>
  %kr = lm.rotary %k, %rope2 {heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x32xf32>, tensor<?x16xf32>
  %y = lm.attention %qr, %kr, %v state @kv0[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x32xf32> loc("layer.0.attention")
  lm.return %y : tensor<?x64xf32>
}

// -----

// A norm of only q does not fuse.
// CHECK-LABEL: lm.program @main
// CHECK-NOT: lm.rope_cache_write
// CHECK: lm.attention
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.state @kv0 {layers = 1 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}
lm.weight @layer.0.qkv [128, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.qkv", offset = 0, size = 32768, stored = f32, rows = 128, columns = 64>]
lm.weight @hn [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.weight @kn [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.weight @rope.1 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %rope = lm.rope_table %positions, @rope.0 : tensor<?x16xf32>
  %qkv = lm.linear %x, @layer.0.qkv : tensor<?x64xf32> -> tensor<?x128xf32>
  %q, %k, %v = lm.split %qkv : tensor<?x128xf32> -> tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>
  %qn = lm.head_norm %q, @hn {heads = 4 : i64, head_dim = 16 : i64, eps = 1.0e-6 : f32} : tensor<?x64xf32>
  %qr = lm.rotary %qn, %rope {heads = 4 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x64xf32>, tensor<?x16xf32>
  %kr = lm.rotary %k, %rope {heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x32xf32>, tensor<?x16xf32>
  %y = lm.attention %qr, %kr, %v state @kv0[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x32xf32> loc("layer.0.attention")
  lm.return %y : tensor<?x64xf32>
}

// -----

// Norms of two epsilons do not fuse.
// CHECK-LABEL: lm.program @main
// CHECK-NOT: lm.rope_cache_write
// CHECK: lm.attention
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.state @kv0 {layers = 1 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}
lm.weight @layer.0.qkv [128, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.qkv", offset = 0, size = 32768, stored = f32, rows = 128, columns = 64>]
lm.weight @hn [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.weight @kn [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.weight @rope.1 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %rope = lm.rope_table %positions, @rope.0 : tensor<?x16xf32>
  %qkv = lm.linear %x, @layer.0.qkv : tensor<?x64xf32> -> tensor<?x128xf32>
  %q, %k, %v = lm.split %qkv : tensor<?x128xf32> -> tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>
  %qn = lm.head_norm %q, @hn {heads = 4 : i64, head_dim = 16 : i64, eps = 1.0e-6 : f32} : tensor<?x64xf32>
  %kn = lm.head_norm %k, @hn {heads = 2 : i64, head_dim = 16 : i64, eps = 1.0e-5 : f32} : tensor<?x32xf32>
  %qr = lm.rotary %qn, %rope {heads = 4 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x64xf32>, tensor<?x16xf32>
  %kr = lm.rotary %kn, %rope {heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x32xf32>, tensor<?x16xf32>
  %y = lm.attention %qr, %kr, %v state @kv0[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x32xf32> loc("layer.0.attention")
  lm.return %y : tensor<?x64xf32>
}

// -----

// A rotation of other heads does not fuse.
// CHECK-LABEL: lm.program @main
// CHECK-NOT: lm.rope_cache_write
// CHECK: lm.attention
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.state @kv0 {layers = 1 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}
lm.weight @layer.0.qkv [128, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.qkv", offset = 0, size = 32768, stored = f32, rows = 128, columns = 64>]
lm.weight @hn [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.weight @kn [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.weight @rope.1 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %rope = lm.rope_table %positions, @rope.0 : tensor<?x16xf32>
  %qkv = lm.linear %x, @layer.0.qkv : tensor<?x64xf32> -> tensor<?x128xf32>
  %q, %k, %v = lm.split %qkv : tensor<?x128xf32> -> tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>
  %qr = lm.rotary %q, %rope {heads = 2 : i64, head_dim = 32 : i64, rotary_dim = 16 : i64} : tensor<?x64xf32>, tensor<?x16xf32>
  %kr = lm.rotary %k, %rope {heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x32xf32>, tensor<?x16xf32>
  %y = lm.attention %qr, %kr, %v state @kv0[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x32xf32> loc("layer.0.attention")
  lm.return %y : tensor<?x64xf32>
}

// -----

// A query without rotation does not fuse.
// CHECK-LABEL: lm.program @main
// CHECK-NOT: lm.rope_cache_write
// CHECK: lm.attention
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.state @kv0 {layers = 1 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}
lm.weight @layer.0.qkv [128, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.qkv", offset = 0, size = 32768, stored = f32, rows = 128, columns = 64>]
lm.weight @hn [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.weight @kn [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.weight @rope.1 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %rope = lm.rope_table %positions, @rope.0 : tensor<?x16xf32>
  %qkv = lm.linear %x, @layer.0.qkv : tensor<?x64xf32> -> tensor<?x128xf32>
  %q, %k, %v = lm.split %qkv : tensor<?x128xf32> -> tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>
  %kr = lm.rotary %k, %rope {heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x32xf32>, tensor<?x16xf32>
  %y = lm.attention %q, %kr, %v state @kv0[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x32xf32> loc("layer.0.attention")
  lm.return %y : tensor<?x64xf32>
}
