// RUN: ingot-opt %s -split-input-file -verify-phase=after=fuse -verify-diagnostics

// Attention and rotation that did not fuse have no kernel.
module attributes {lm.model = {family = "f", name = "n", architecture = "a", vocab = 1 : i64, hidden = 1 : i64, context = 1 : i64, tied_head = true, parameters = 1 : i64, eos = array<i64: 2>, source_bytes = 1 : i64, sampling = {}, layers = [], tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.state @kv0 {layers = 1 : i64, kv_heads = 4 : i64, head_dim = 16 : i64, dtype = f16}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %rope = lm.rope_table %positions, @rope.0 : tensor<?x16xf32>
  // expected-error@+1 {{'lm.rotary' op did not fuse into lm.rope_cache_write and has no kernel of its own}}
  %r = lm.rotary %x, %rope {heads = 4 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x64xf32>, tensor<?x16xf32>
  // expected-error@+1 {{'lm.attention' op did not fuse into lm.rope_cache_write and has no kernel of its own}}
  %y = lm.attention %r, %r, %x state @kv0[0] {heads = 4 : i64, kv_heads = 4 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}
}
