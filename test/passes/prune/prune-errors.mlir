// RUN: not ingot-opt %s -prune-ffn="columns=64" 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: not ingot-opt %s -prune-ffn="columns=64,128" 2>&1 | FileCheck %s --check-prefix=MORE
// RUN: not ingot-opt %s -prune-ffn="columns=32,96" 2>&1 | FileCheck %s --check-prefix=SHAPE
// RUN: not ingot-opt %s -prune-ffn="columns=96,64" 2>&1 | FileCheck %s --check-prefix=LACKS
// RUN: not ingot-opt %s -prune-ffn="columns=96,96" 2>&1 | FileCheck %s --check-prefix=LEFT
// RUN: sed -e 's/lm.concat %g0, %u0/lm.concat %g0, %g0/' %s | not ingot-opt -prune-ffn="columns=64,96" 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: not ingot-opt %s -prune-heads="kv-heads=2" 2>&1 | FileCheck %s --check-prefix=HEADS
// RUN: not ingot-opt %s -prune-heads="kv-heads=0,2" 2>&1 | FileCheck %s --check-prefix=NOHEAD
// RUN: not ingot-opt %s -prune-heads="kv-heads=1,2" 2>&1 | FileCheck %s --check-prefix=NOQ
// RUN: sed -e 's/scale = 0.25 : f32/scale = 0.25 : f32, slopes = array<f32: 0.5, 0.5, 0.5, 0.5>/' %s | not ingot-opt -prune-heads="kv-heads=1,2" 2>&1 | FileCheck %s --check-prefix=SLOPES
// RUN: not ingot-opt %s -prune-layers="layers=2" 2>&1 | FileCheck %s --check-prefix=LAYER
// RUN: not ingot-opt %s -prune-layers="layers=1,1" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not ingot-opt %s -prune-layers="layers=0,1" 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: sed -e 's/@layer.1.down :/@layer.0.down :/' -e '/^lm.weight.*pruned /d' %s | not ingot-opt -prune-layers="layers=0" 2>&1 | FileCheck %s --check-prefix=TIED

// One number for each layer, and none that grows.
// COUNT: error: prune-ffn: columns of 1 layers, the model has 2
// MORE: error: prune-ffn: layer 1 to 128 columns, it has 96
// Weights of the sizes that the option names.
// SHAPE: error: prune-ffn: has the shape [64, 64], expected [32, 64] as the options ask
// LACKS: error: prune-ffn: needs @layer.1.gate.pruned, which the module lacks
// LEFT: error: prune-ffn: was made for other options: nothing takes it
// What makes the feed-forward's columns has one reader.
// SHARED: error: {{.*}}prune-ffn: expected a value that its feed-forward alone reads
// HEADS: error: prune-heads: key heads of 1 layers, the model has 2
// NOHEAD: error: prune-heads: layer 0 to 0 key heads, it has 2
// NOQ: error: prune-heads: needs @layer.0.q.pruned, which the module lacks
// SLOPES: error: {{.*}}prune-heads: heads with slopes of their own (ALiBi) are not pruned
// LAYER: error: prune-layers: layer 2, expected each of 0 to 1 once at most
// TWICE: error: prune-layers: layer 1, expected each of 0 to 1 once at most
// ALL: error: prune-layers: no layer is left
// The weight of a layer that goes is not another's, by whatever name.
// TIED: error: {{.*}}prune-layers: is of layer 0, which goes, and read by one that stays
module attributes {lm.model = {family = "f", name = "n", architecture = "a", vocab = 64 : i64, hidden = 64 : i64, context = 64 : i64, tied_head = true, parameters = 1 : i64, eos = array<i64: 2>, source_bytes = 1 : i64, sampling = {}, layers = [{index = 0 : i64, heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, ffn = 96 : i64, rotary_dim = 16 : i64, rope_theta = 1.0e4 : f64, rope_kind = "default", rope_attention_factor = 1.0 : f64, window = 0 : i64, softmax_scale = 0.25 : f64, soft_cap = 0.0 : f64, activation = "silu", norm_eps = 1.0e-5 : f64, qk_norm = false, qkv_bias = false, output_bias = false}, {index = 1 : i64, heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, ffn = 96 : i64, rotary_dim = 16 : i64, rope_theta = 1.0e4 : f64, rope_kind = "default", rope_attention_factor = 1.0 : f64, window = 0 : i64, softmax_scale = 0.25 : f64, soft_cap = 0.0 : f64, activation = "silu", norm_eps = 1.0e-5 : f64, qk_norm = false, qkv_bias = false, output_bias = false}], tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
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
lm.weight @layer.0.gate.pruned [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @pruned, name = "layer.0.gate", offset = 263424, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.0.up.pruned [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @pruned, name = "layer.0.up", offset = 279808, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.0.down.pruned [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @pruned, name = "layer.0.down", offset = 296192, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.0.up.bias.pruned [64] encoding <f32> layout row parts [#lm.part<source = @pruned, name = "layer.0.up.bias", offset = 312576, size = 256, stored = f32, rows = 64, columns = 1>]
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.state @kv0 {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}
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
  %s = lm.select_rows %x2 : tensor<?x64xf32> loc("select_rows")
  %y = lm.linear %s, @embed : tensor<?x64xf32> -> tensor<?x64xf32> loc("lm_head")
  lm.return %y : tensor<?x64xf32> loc("return")
}
}
