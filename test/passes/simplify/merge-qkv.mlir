// RUN: ingot-opt %s -split-input-file -merge-qkv -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s

// Three projections become one, whose weight has the rows of q, k and v in order.
// CHECK-NOT: @layer.0.q [
// CHECK: lm.weight @layer.0.qkv [128, 64] encoding <f32> layout r16 parts [{{.*}}name = "layer.0.q"{{.*}}name = "layer.0.k"{{.*}}name = "layer.0.v"
// CHECK-SAME: loc("layer.0.qkv"(fused<"from">[
// CHECK-LABEL: lm.program @main
// CHECK: %[[QKV:.*]] = lm.linear %[[X:.*]], @layer.0.qkv : tensor<?x64xf32> -> tensor<?x128xf32> loc("layer.0.qkv"(fused<array<i64: 64, 32, 32>>["layer.0.q", {{.*}}]))
// CHECK: %[[S:.*]]:3 = lm.split %[[QKV]] : tensor<?x128xf32> -> tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>
// CHECK: %[[Q:.*]] = lm.rotary %[[S]]#0
// CHECK: %[[K:.*]] = lm.rotary %[[S]]#1
// CHECK: lm.attention %[[Q]], %[[K]], %[[S]]#2
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

// Biases merge too, behind head norms, and a taken name is left alone.
// CHECK: lm.weight @layer.0.qkv_0 [128, 64]
// CHECK: lm.weight @layer.0.qkv.bias [128] encoding <f32> layout row parts [{{.*}}name = "bq"{{.*}}name = "bk"{{.*}}name = "bv"
// CHECK-LABEL: lm.program @main
// CHECK: lm.linear %{{.*}}, @layer.0.qkv_0 bias @layer.0.qkv.bias : tensor<?x64xf32> -> tensor<?x128xf32>
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.state @kv0 {layers = 1 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}
lm.weight @layer.0.qkv [3] encoding <f32> layout row value dense<1.0> : tensor<3xf32>
lm.weight @layer.0.q [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.q", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.0.k [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.k", offset = 0, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.weight @layer.0.v [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.v", offset = 0, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.weight @bq [64] encoding <f32> layout row parts [#lm.part<source = @src0, name = "bq", offset = 0, size = 256, stored = f32, rows = 64, columns = 1>]
lm.weight @bk [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "bk", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
lm.weight @bv [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "bv", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
lm.weight @hn [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %rope = lm.rope_table %positions, @rope.0 : tensor<?x16xf32>
  %q = lm.linear %x, @layer.0.q bias @bq : tensor<?x64xf32> -> tensor<?x64xf32> loc("layer.0.q")
  %k = lm.linear %x, @layer.0.k bias @bk : tensor<?x64xf32> -> tensor<?x32xf32>
  %v = lm.linear %x, @layer.0.v bias @bv : tensor<?x64xf32> -> tensor<?x32xf32>
  %qn = lm.head_norm %q, @hn {heads = 4 : i64, head_dim = 16 : i64, eps = 1.0e-6 : f32} : tensor<?x64xf32>
  %kn = lm.head_norm %k, @hn {heads = 2 : i64, head_dim = 16 : i64, eps = 1.0e-6 : f32} : tensor<?x32xf32>
  %qr = lm.rotary %qn, %rope {heads = 4 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x64xf32>, tensor<?x16xf32>
  %kr = lm.rotary %kn, %rope {heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x32xf32>, tensor<?x16xf32>
  %y = lm.attention %qr, %kr, %v state @kv0[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x32xf32> loc("layer.0.attention")
  lm.return %y : tensor<?x64xf32>
}

// -----

// Another use of a projection reads its columns of the merged one.
// CHECK-LABEL: lm.program @main
// CHECK: %[[S:.*]]:3 = lm.split
// CHECK: lm.add %[[S]]#0, %{{.*}}
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
  %a = lm.attention %qr, %kr, %v state @kv0[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x32xf32> loc("layer.0.attention")
  %y = lm.add %q, %a : tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}

// -----

// Encodings that differ stay apart.
// CHECK-LABEL: lm.program @main
// CHECK: lm.linear %{{.*}}, @layer.0.q
// CHECK: lm.linear %{{.*}}, @layer.0.k
// CHECK: lm.linear %{{.*}}, @layer.0.v
// CHECK-NOT: lm.split
// CHECK: lm.attention
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.state @kv0 {layers = 1 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}
lm.weight @layer.0.q [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.q", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.0.k [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.k", offset = 0, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.weight @layer.0.v [32, 64] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.v", offset = 0, size = 2176, stored = q8_0, rows = 32, columns = 64>]
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

// A bias of only one stays apart.
// CHECK-LABEL: lm.program @main
// CHECK: lm.linear %{{.*}}, @layer.0.q
// CHECK: lm.linear %{{.*}}, @layer.0.k
// CHECK: lm.linear %{{.*}}, @layer.0.v
// CHECK-NOT: lm.split
// CHECK: lm.attention
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.state @kv0 {layers = 1 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}
lm.weight @layer.0.q [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.q", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.0.k [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.k", offset = 0, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.weight @layer.0.v [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.v", offset = 0, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.weight @bq [64] encoding <f32> layout row parts [#lm.part<source = @src0, name = "bq", offset = 0, size = 256, stored = f32, rows = 64, columns = 1>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %rope = lm.rope_table %positions, @rope.0 : tensor<?x16xf32>
  %q = lm.linear %x, @layer.0.q bias @bq : tensor<?x64xf32> -> tensor<?x64xf32>
  %k = lm.linear %x, @layer.0.k : tensor<?x64xf32> -> tensor<?x32xf32>
  %v = lm.linear %x, @layer.0.v : tensor<?x64xf32> -> tensor<?x32xf32>
  %qr = lm.rotary %q, %rope {heads = 4 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x64xf32>, tensor<?x16xf32>
  %kr = lm.rotary %k, %rope {heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x32xf32>, tensor<?x16xf32>
  %y = lm.attention %qr, %kr, %v state @kv0[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x32xf32> loc("layer.0.attention")
  lm.return %y : tensor<?x64xf32>
}

// -----

// Projections of different inputs stay apart.
// CHECK-LABEL: lm.program @main
// CHECK: lm.linear %{{.*}}, @layer.0.q
// CHECK: lm.linear %{{.*}}, @layer.0.k
// CHECK: lm.linear %{{.*}}, @layer.0.v
// CHECK-NOT: lm.split
// CHECK: lm.attention
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
  %z = lm.add %x, %x : tensor<?x64xf32>
  %q = lm.linear %x, @layer.0.q : tensor<?x64xf32> -> tensor<?x64xf32>
  %k = lm.linear %x, @layer.0.k : tensor<?x64xf32> -> tensor<?x32xf32>
  %v = lm.linear %z, @layer.0.v : tensor<?x64xf32> -> tensor<?x32xf32>
  %qr = lm.rotary %q, %rope {heads = 4 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x64xf32>, tensor<?x16xf32>
  %kr = lm.rotary %k, %rope {heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x32xf32>, tensor<?x16xf32>
  %y = lm.attention %qr, %kr, %v state @kv0[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x32xf32> loc("layer.0.attention")
  lm.return %y : tensor<?x64xf32>
}

// -----

// A weight that something else uses is not copied.
// CHECK-LABEL: lm.program @main
// CHECK-NOT: lm.split
// CHECK: lm.attention
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
  %a = lm.attention %qr, %kr, %v state @kv0[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x32xf32> loc("layer.0.attention")
  %y = lm.linear %a, @layer.0.q : tensor<?x64xf32> -> tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}

// -----

// A projection with a residual stays apart.
// CHECK-LABEL: lm.program @main
// CHECK-NOT: lm.split
// CHECK: lm.attention
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
  %q = lm.linear %x, @layer.0.q residual %x : tensor<?x64xf32> -> tensor<?x64xf32>, tensor<?x64xf32>
  %k = lm.linear %x, @layer.0.k : tensor<?x64xf32> -> tensor<?x32xf32>
  %v = lm.linear %x, @layer.0.v : tensor<?x64xf32> -> tensor<?x32xf32>
  %qr = lm.rotary %q, %rope {heads = 4 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x64xf32>, tensor<?x16xf32>
  %kr = lm.rotary %k, %rope {heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x32xf32>, tensor<?x16xf32>
  %y = lm.attention %qr, %kr, %v state @kv0[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x32xf32> loc("layer.0.attention")
  lm.return %y : tensor<?x64xf32>
}

// -----

// One projection for both k and v stays.
// CHECK-LABEL: lm.program @main
// CHECK-NOT: lm.split
// CHECK: lm.attention
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
  %q = lm.linear %x, @layer.0.q : tensor<?x64xf32> -> tensor<?x64xf32>
  %k = lm.linear %x, @layer.0.k : tensor<?x64xf32> -> tensor<?x32xf32>
  %qr = lm.rotary %q, %rope {heads = 4 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x64xf32>, tensor<?x16xf32>
  %kr = lm.rotary %k, %rope {heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x32xf32>, tensor<?x16xf32>
  %y = lm.attention %qr, %kr, %k state @kv0[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x32xf32> loc("layer.0.attention")
  lm.return %y : tensor<?x64xf32>
}
