lm.source @src0 {name = "model.safetensors", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [128, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 32768, stored = f32, rows = 128, columns = 64>]
lm.weight @norm [64] encoding <f32> layout row parts [#lm.part<source = @src0, name = "norm", offset = 0, size = 256, stored = f32, rows = 64, columns = 1>]
lm.weight @head_norm [16] encoding <f32> layout row parts [#lm.part<source = @src0, name = "head_norm", offset = 0, size = 64, stored = f32, rows = 16, columns = 1>]
lm.weight @layer.0.q [64, 64] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "q", offset = 0, size = 8192, stored = f16, rows = 64, columns = 64>]
lm.weight @layer.0.q.bias [64] encoding <f32> layout row parts [#lm.part<source = @src0, name = "q.bias", offset = 0, size = 128, stored = f16, rows = 64, columns = 1>]
lm.weight @rope.0 [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.state @kv0 {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}
// EXAMPLES HERE
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %rope = lm.rope_table %positions, @rope.0 : tensor<?x16xf32>
  %kv, %rest = lm.split %x : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x32xf32>
// EXAMPLES HERE
  lm.return %x : tensor<?x64xf32>
}
