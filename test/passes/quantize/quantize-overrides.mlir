// RUN: ingot-opt %s -quantize-weights="encoding=int4 group=32 overrides=layer.*=int8-g128-rtn,layer.1.*=f16,embed=bf16" | FileCheck %s

// The last override whose pattern names a weight chooses; others follow the
// encoding. A table can be named.
// CHECK: lm.weight @layer.0.q {{.*}} encoding <i8, group = 128> layout r16 method "rtn"
// CHECK: lm.weight @layer.1.q {{.*}} encoding <f16> layout r16 method "rtn"
// CHECK: lm.weight @other {{.*}} encoding <i4, group = 32> layout r16 method "rtn"
// CHECK: lm.weight @embed {{.*}} encoding <bf16> layout r16 method "rtn"
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @layer.0.q [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "q", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.1.q [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "q", offset = 16384, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @other [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "o", offset = 32768, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 40960, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %q = lm.linear %x, @layer.0.q : tensor<?x64xf32> -> tensor<?x64xf32>
  %r = lm.linear %q, @layer.1.q : tensor<?x64xf32> -> tensor<?x64xf32>
  %o = lm.linear %r, @other : tensor<?x64xf32> -> tensor<?x64xf32>
  %y = lm.linear %o, @embed : tensor<?x64xf32> -> tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}
