// RUN: ingot-opt %s -quantize-weights=encoding=int4 | FileCheck %s

// A table that serves embedding and head is int8 with int4.
// CHECK: lm.weight @embed {{.*}} encoding <i8, group = 64>
// CHECK: lm.weight @layer.0.b {{.*}} encoding <i4, group = 64>
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.0.q [64, 64] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.q", offset = 0, size = 4352, stored = q8_0, rows = 64, columns = 64>]
lm.weight @layer.0.b [64, 64] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "layer.0.b", offset = 0, size = 8192, stored = f16, rows = 64, columns = 64>]
lm.weight @bias [64] encoding <f32> layout row parts [#lm.part<source = @src0, name = "bias", offset = 0, size = 256, stored = f32, rows = 64, columns = 1>]
lm.weight @norm [64] encoding <f32> layout row parts [#lm.part<source = @src0, name = "norm", offset = 0, size = 256, stored = f32, rows = 64, columns = 1>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %a = lm.linear %x, @layer.0.q : tensor<?x64xf32> -> tensor<?x64xf32>
  %b = lm.linear %a, @layer.0.b bias @bias : tensor<?x64xf32> -> tensor<?x64xf32>
  %n = lm.rms_norm %b, @norm {eps = 1.0e-5 : f32} : tensor<?x64xf32> -> tensor<?x64xf32>
  %y = lm.linear %n, @embed : tensor<?x64xf32> -> tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}
