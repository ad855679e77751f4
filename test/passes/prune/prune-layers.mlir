// RUN: ingot-opt %s -prune-layers="layers=1,2" --mlir-print-debuginfo | FileCheck %s
// RUN: ingot-opt %s -prune-layers="layers=1,2" -ingot-import -ingot-simplify -ingot-compress="encoding=int4 group=32" -ingot-fuse -ingot-lower | FileCheck %s --check-prefix=LOWERED
// RUN: sed -e 's/^lm.state @kv0 {layers = 4\(.*\)}$/lm.state @kv0 {layers = 3\1}\nlm.state @kv1 {layers = 1\1, window = 64 : i64}/' -e '/^lm.weight @embed / { p; s/@embed/@unused/ }' -e '/layer.3.attention/ { s/@kv0.3./@kv1[0]/; s/heads = 4/window = 64 : i64, heads = 4/ }' %s | ingot-opt -prune-layers="layers=1,2" | FileCheck %s --check-prefix=WINDOW
// Parameters are of the weights that are read. Layers of one geometry and two windows
// keep two states.
// WINDOW: parameters = 65856 : i64
// WINDOW: lm.state @kv0 {{.*}}layers = 1 : i64}
// WINDOW: lm.state @kv1 {{.*}}layers = 1 : i64, window = 64 : i64}
// WINDOW: lm.attention {{.*}} state @kv0[0]
// WINDOW: lm.attention {{.*}} state @kv1[0]

// Two layers are left: the first, healed, and the last, which has number 1 now, in
// lm.model, in the names of its weights and in the locations.
// CHECK: index = 0 : i64
// CHECK-SAME: index = 1 : i64
// CHECK-NOT: index = 2 : i64
// CHECK: lm.weight @layer.0.down [64, 96] encoding <f32> layout r16 parts [#lm.part<source = @pruned
// CHECK: lm.weight @layer.1.q {{.*}}name = "layer.3.q"
// CHECK-NOT: @layer.2
// CHECK: lm.state @kv0 {{.*}}layers = 2 : i64
// CHECK: lm.linear {{.*}} @layer.0.down
// CHECK-NEXT: %[[STREAM:.*]] = lm.add
// CHECK-NEXT: lm.rms_norm %[[STREAM]], @layer.1.norm
// CHECK: lm.linear {{.*}} @layer.1.q
// CHECK: lm.attention {{.*}} state @kv0[1]
// CHECK: lm.linear {{.*}} @embed
// CHECK: loc("layer.0.ffn_residual")
// CHECK: loc("layer.1.q")
// CHECK-NOT: loc("layer.2
// CHECK-NOT: loc("layer.3

// LOWERED: plan.linear {{.*}}weight @layer.1.down
module attributes {lm.model = {family = "f", name = "n", architecture = "a", vocab = 64 : i64, hidden = 64 : i64, context = 64 : i64, tied_head = true, parameters = 1 : i64, eos = array<i64: 2>, source_bytes = 1 : i64, sampling = {}, layers = [{index = 0 : i64, heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, ffn = 96 : i64, rotary_dim = 16 : i64, rope_theta = 1.0e4 : f64, rope_kind = "default", rope_attention_factor = 1.0 : f64, window = 0 : i64, softmax_scale = 0.25 : f64, soft_cap = 0.0 : f64, activation = "silu", norm_eps = 1.0e-5 : f64, qk_norm = false, qkv_bias = false, output_bias = false}, {index = 1 : i64, heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, ffn = 96 : i64, rotary_dim = 16 : i64, rope_theta = 1.0e4 : f64, rope_kind = "default", rope_attention_factor = 1.0 : f64, window = 0 : i64, softmax_scale = 0.25 : f64, soft_cap = 0.0 : f64, activation = "silu", norm_eps = 1.0e-5 : f64, qk_norm = false, qkv_bias = false, output_bias = false}, {index = 2 : i64, heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, ffn = 96 : i64, rotary_dim = 16 : i64, rope_theta = 1.0e4 : f64, rope_kind = "default", rope_attention_factor = 1.0 : f64, window = 0 : i64, softmax_scale = 0.25 : f64, soft_cap = 0.0 : f64, activation = "silu", norm_eps = 1.0e-5 : f64, qk_norm = false, qkv_bias = false, output_bias = false}, {index = 3 : i64, heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, ffn = 96 : i64, rotary_dim = 16 : i64, rope_theta = 1.0e4 : f64, rope_kind = "default", rope_attention_factor = 1.0 : f64, window = 0 : i64, softmax_scale = 0.25 : f64, soft_cap = 0.0 : f64, activation = "silu", norm_eps = 1.0e-5 : f64, qk_norm = false, qkv_bias = false, output_bias = false}], tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
lm.source @src0 {name = "a", size = 1048576 : i64, hash = "00000000deadbeef"}
lm.source @pruned {name = "b", size = 1048576 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.0.q [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.q", offset = 16384, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.0.k [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.k", offset = 32768, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.weight @layer.0.v [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.v", offset = 40960, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.weight @layer.0.o [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.o", offset = 49152, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.0.gate [96, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.gate", offset = 65536, size = 24576, stored = f32, rows = 96, columns = 64>]
lm.weight @layer.0.up [96, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.up", offset = 90112, size = 24576, stored = f32, rows = 96, columns = 64>]
lm.weight @layer.0.down [64, 96] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.down", offset = 114688, size = 24576, stored = f32, rows = 64, columns = 96>]
lm.weight @layer.0.norm [64] encoding <f32> layout row parts [#lm.part<source = @src0, name = "layer.0.norm", offset = 139264, size = 256, stored = f32, rows = 64, columns = 1>]
lm.weight @layer.0.up.bias [96] encoding <f32> layout row parts [#lm.part<source = @src0, name = "layer.0.up.bias", offset = 139520, size = 384, stored = f32, rows = 96, columns = 1>]
lm.weight @layer.1.q [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.1.q", offset = 139904, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.1.k [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.1.k", offset = 156288, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.weight @layer.1.v [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.1.v", offset = 164480, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.weight @layer.1.o [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.1.o", offset = 172672, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.1.gate [96, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.1.gate", offset = 189056, size = 24576, stored = f32, rows = 96, columns = 64>]
lm.weight @layer.1.up [96, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.1.up", offset = 213632, size = 24576, stored = f32, rows = 96, columns = 64>]
lm.weight @layer.1.down [64, 96] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.1.down", offset = 238208, size = 24576, stored = f32, rows = 64, columns = 96>]
lm.weight @layer.1.norm [64] encoding <f32> layout row parts [#lm.part<source = @src0, name = "layer.1.norm", offset = 262784, size = 256, stored = f32, rows = 64, columns = 1>]
lm.weight @layer.1.up.bias [96] encoding <f32> layout row parts [#lm.part<source = @src0, name = "layer.1.up.bias", offset = 263040, size = 384, stored = f32, rows = 96, columns = 1>]
lm.weight @layer.2.q [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.2.q", offset = 263424, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.2.k [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.2.k", offset = 279808, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.weight @layer.2.v [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.2.v", offset = 288000, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.weight @layer.2.o [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.2.o", offset = 296192, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.2.gate [96, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.2.gate", offset = 312576, size = 24576, stored = f32, rows = 96, columns = 64>]
lm.weight @layer.2.up [96, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.2.up", offset = 337152, size = 24576, stored = f32, rows = 96, columns = 64>]
lm.weight @layer.2.down [64, 96] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.2.down", offset = 361728, size = 24576, stored = f32, rows = 64, columns = 96>]
lm.weight @layer.2.norm [64] encoding <f32> layout row parts [#lm.part<source = @src0, name = "layer.2.norm", offset = 386304, size = 256, stored = f32, rows = 64, columns = 1>]
lm.weight @layer.2.up.bias [96] encoding <f32> layout row parts [#lm.part<source = @src0, name = "layer.2.up.bias", offset = 386560, size = 384, stored = f32, rows = 96, columns = 1>]
lm.weight @layer.3.q [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.3.q", offset = 386944, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.3.k [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.3.k", offset = 403328, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.weight @layer.3.v [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.3.v", offset = 411520, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.weight @layer.3.o [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.3.o", offset = 419712, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.3.gate [96, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.3.gate", offset = 436096, size = 24576, stored = f32, rows = 96, columns = 64>]
lm.weight @layer.3.up [96, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.3.up", offset = 460672, size = 24576, stored = f32, rows = 96, columns = 64>]
lm.weight @layer.3.down [64, 96] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.3.down", offset = 485248, size = 24576, stored = f32, rows = 64, columns = 96>]
lm.weight @layer.3.norm [64] encoding <f32> layout row parts [#lm.part<source = @src0, name = "layer.3.norm", offset = 509824, size = 256, stored = f32, rows = 64, columns = 1>]
lm.weight @layer.3.up.bias [96] encoding <f32> layout row parts [#lm.part<source = @src0, name = "layer.3.up.bias", offset = 510080, size = 384, stored = f32, rows = 96, columns = 1>]
lm.weight @layer.0.down.pruned [64, 96] encoding <f32> layout r16 parts [#lm.part<source = @pruned, name = "layer.0.down", offset = 510464, size = 24576, stored = f32, rows = 64, columns = 96>]
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.state @kv0 {layers = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x0 = lm.embed %tokens, @embed : tensor<?x64xf32> loc("embed")
  %rope = lm.rope_table %positions, @rope.0 : tensor<?x16xf32> loc("rope.0")
  %n0 = lm.rms_norm %x0, @layer.0.norm {eps = 1.0e-5 : f32} : tensor<?x64xf32> -> tensor<?x64xf32> loc("layer.0.attn_norm")
  %q0 = lm.linear %n0, @layer.0.q : tensor<?x64xf32> -> tensor<?x64xf32> loc("layer.0.q")
  %k0 = lm.linear %n0, @layer.0.k : tensor<?x64xf32> -> tensor<?x32xf32> loc("layer.0.k")
  %v0 = lm.linear %n0, @layer.0.v : tensor<?x64xf32> -> tensor<?x32xf32> loc("layer.0.v")
  %qr0 = lm.rotary %q0, %rope {heads = 4 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x64xf32>, tensor<?x16xf32> loc("layer.0.q_rotary")
  %kr0 = lm.rotary %k0, %rope {heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x32xf32>, tensor<?x16xf32> loc("layer.0.k_rotary")
  %a0 = lm.attention %qr0, %kr0, %v0 state @kv0[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x32xf32> loc("layer.0.attention")
  %o0 = lm.linear %a0, @layer.0.o : tensor<?x64xf32> -> tensor<?x64xf32> loc("layer.0.o")
  %m0 = lm.add %x0, %o0 : tensor<?x64xf32> loc("layer.0.attn_residual")
  %g0 = lm.linear %m0, @layer.0.gate : tensor<?x64xf32> -> tensor<?x96xf32> loc("layer.0.gate")
  %u0 = lm.linear %m0, @layer.0.up bias @layer.0.up.bias : tensor<?x64xf32> -> tensor<?x96xf32> loc("layer.0.up")
  %gu0 = lm.concat %g0, %u0 : tensor<?x96xf32>, tensor<?x96xf32> -> tensor<?x192xf32> loc("layer.0.gate_up")
  %h0 = lm.gate silu %gu0 : tensor<?x192xf32> -> tensor<?x96xf32> loc("layer.0.activation")
  %d0 = lm.linear %h0, @layer.0.down : tensor<?x96xf32> -> tensor<?x64xf32> loc("layer.0.down")
  %x1 = lm.add %m0, %d0 : tensor<?x64xf32> loc("layer.0.ffn_residual")
  %n1 = lm.rms_norm %x1, @layer.1.norm {eps = 1.0e-5 : f32} : tensor<?x64xf32> -> tensor<?x64xf32> loc("layer.1.attn_norm")
  %q1 = lm.linear %n1, @layer.1.q : tensor<?x64xf32> -> tensor<?x64xf32> loc("layer.1.q")
  %k1 = lm.linear %n1, @layer.1.k : tensor<?x64xf32> -> tensor<?x32xf32> loc("layer.1.k")
  %v1 = lm.linear %n1, @layer.1.v : tensor<?x64xf32> -> tensor<?x32xf32> loc("layer.1.v")
  %qr1 = lm.rotary %q1, %rope {heads = 4 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x64xf32>, tensor<?x16xf32> loc("layer.1.q_rotary")
  %kr1 = lm.rotary %k1, %rope {heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x32xf32>, tensor<?x16xf32> loc("layer.1.k_rotary")
  %a1 = lm.attention %qr1, %kr1, %v1 state @kv0[1] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x32xf32> loc("layer.1.attention")
  %o1 = lm.linear %a1, @layer.1.o : tensor<?x64xf32> -> tensor<?x64xf32> loc("layer.1.o")
  %m1 = lm.add %x1, %o1 : tensor<?x64xf32> loc("layer.1.attn_residual")
  %g1 = lm.linear %m1, @layer.1.gate : tensor<?x64xf32> -> tensor<?x96xf32> loc("layer.1.gate")
  %u1 = lm.linear %m1, @layer.1.up bias @layer.1.up.bias : tensor<?x64xf32> -> tensor<?x96xf32> loc("layer.1.up")
  %gu1 = lm.concat %g1, %u1 : tensor<?x96xf32>, tensor<?x96xf32> -> tensor<?x192xf32> loc("layer.1.gate_up")
  %h1 = lm.gate silu %gu1 : tensor<?x192xf32> -> tensor<?x96xf32> loc("layer.1.activation")
  %d1 = lm.linear %h1, @layer.1.down : tensor<?x96xf32> -> tensor<?x64xf32> loc("layer.1.down")
  %x2 = lm.add %m1, %d1 : tensor<?x64xf32> loc("layer.1.ffn_residual")
  %n2 = lm.rms_norm %x2, @layer.2.norm {eps = 1.0e-5 : f32} : tensor<?x64xf32> -> tensor<?x64xf32> loc("layer.2.attn_norm")
  %q2 = lm.linear %n2, @layer.2.q : tensor<?x64xf32> -> tensor<?x64xf32> loc("layer.2.q")
  %k2 = lm.linear %n2, @layer.2.k : tensor<?x64xf32> -> tensor<?x32xf32> loc("layer.2.k")
  %v2 = lm.linear %n2, @layer.2.v : tensor<?x64xf32> -> tensor<?x32xf32> loc("layer.2.v")
  %qr2 = lm.rotary %q2, %rope {heads = 4 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x64xf32>, tensor<?x16xf32> loc("layer.2.q_rotary")
  %kr2 = lm.rotary %k2, %rope {heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x32xf32>, tensor<?x16xf32> loc("layer.2.k_rotary")
  %a2 = lm.attention %qr2, %kr2, %v2 state @kv0[2] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x32xf32> loc("layer.2.attention")
  %o2 = lm.linear %a2, @layer.2.o : tensor<?x64xf32> -> tensor<?x64xf32> loc("layer.2.o")
  %m2 = lm.add %x2, %o2 : tensor<?x64xf32> loc("layer.2.attn_residual")
  %g2 = lm.linear %m2, @layer.2.gate : tensor<?x64xf32> -> tensor<?x96xf32> loc("layer.2.gate")
  %u2 = lm.linear %m2, @layer.2.up bias @layer.2.up.bias : tensor<?x64xf32> -> tensor<?x96xf32> loc("layer.2.up")
  %gu2 = lm.concat %g2, %u2 : tensor<?x96xf32>, tensor<?x96xf32> -> tensor<?x192xf32> loc("layer.2.gate_up")
  %h2 = lm.gate silu %gu2 : tensor<?x192xf32> -> tensor<?x96xf32> loc("layer.2.activation")
  %d2 = lm.linear %h2, @layer.2.down : tensor<?x96xf32> -> tensor<?x64xf32> loc("layer.2.down")
  %x3 = lm.add %m2, %d2 : tensor<?x64xf32> loc("layer.2.ffn_residual")
  %n3 = lm.rms_norm %x3, @layer.3.norm {eps = 1.0e-5 : f32} : tensor<?x64xf32> -> tensor<?x64xf32> loc("layer.3.attn_norm")
  %q3 = lm.linear %n3, @layer.3.q : tensor<?x64xf32> -> tensor<?x64xf32> loc("layer.3.q")
  %k3 = lm.linear %n3, @layer.3.k : tensor<?x64xf32> -> tensor<?x32xf32> loc("layer.3.k")
  %v3 = lm.linear %n3, @layer.3.v : tensor<?x64xf32> -> tensor<?x32xf32> loc("layer.3.v")
  %qr3 = lm.rotary %q3, %rope {heads = 4 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x64xf32>, tensor<?x16xf32> loc("layer.3.q_rotary")
  %kr3 = lm.rotary %k3, %rope {heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x32xf32>, tensor<?x16xf32> loc("layer.3.k_rotary")
  %a3 = lm.attention %qr3, %kr3, %v3 state @kv0[3] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x32xf32> loc("layer.3.attention")
  %o3 = lm.linear %a3, @layer.3.o : tensor<?x64xf32> -> tensor<?x64xf32> loc("layer.3.o")
  %m3 = lm.add %x3, %o3 : tensor<?x64xf32> loc("layer.3.attn_residual")
  %g3 = lm.linear %m3, @layer.3.gate : tensor<?x64xf32> -> tensor<?x96xf32> loc("layer.3.gate")
  %u3 = lm.linear %m3, @layer.3.up bias @layer.3.up.bias : tensor<?x64xf32> -> tensor<?x96xf32> loc("layer.3.up")
  %gu3 = lm.concat %g3, %u3 : tensor<?x96xf32>, tensor<?x96xf32> -> tensor<?x192xf32> loc("layer.3.gate_up")
  %h3 = lm.gate silu %gu3 : tensor<?x192xf32> -> tensor<?x96xf32> loc("layer.3.activation")
  %d3 = lm.linear %h3, @layer.3.down : tensor<?x96xf32> -> tensor<?x64xf32> loc("layer.3.down")
  %x4 = lm.add %m3, %d3 : tensor<?x64xf32> loc("layer.3.ffn_residual")
  %s = lm.select_rows %x4 : tensor<?x64xf32> loc("select_rows")
  %y = lm.linear %s, @embed : tensor<?x64xf32> -> tensor<?x64xf32> loc("lm_head")
  lm.return %y : tensor<?x64xf32> loc("return")
}
}
