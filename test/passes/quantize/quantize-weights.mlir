// RUN: ingot-opt %s -quantize-weights=encoding=int8 | FileCheck %s --check-prefix=INT8
// RUN: ingot-opt %s -quantize-weights="encoding=int8 group=32" | FileCheck %s --check-prefix=G32
// RUN: ingot-opt %s -quantize-weights="encoding=int4 group=128" | FileCheck %s --check-prefix=INT4
// RUN: ingot-opt %s -quantize-weights="encoding=int4 table=int4" | FileCheck %s --check-prefix=TABLE
// RUN: ingot-opt %s -quantize-weights="encoding=int8 table=none" | FileCheck %s --check-prefix=TABLENONE
// RUN: ingot-opt %s -quantize-weights=encoding=f16 | FileCheck %s --check-prefix=F16
// RUN: ingot-opt %s -quantize-weights | FileCheck %s --check-prefix=NONE
// RUN: ingot-opt %s -quantize-weights="encoding=int4 skip=layer.*.q,lm_head" | FileCheck %s --check-prefix=SKIP

// The default group is 64; all matrices are rounded, vectors stay.
// INT8: lm.weight @embed {{.*}} encoding <i8, group = 64> layout r16 method "rtn" parts
// INT8: lm.weight @layer.0.q {{.*}} encoding <i8, group = 64> layout r16 method "rtn" parts
// INT8: lm.weight @layer.0.b {{.*}} encoding <i8, group = 64> layout r16 method "rtn" parts
// INT8: lm.weight @bias [64] encoding <f32> layout row parts
// INT8: lm.weight @norm [64] encoding <f32> layout row parts
// INT8: lm.weight @lm_head {{.*}} encoding <i8, group = 64> layout r16 method "rtn" parts

// What is stored in that form already is kept exactly.
// G32: lm.weight @layer.0.q {{.*}} encoding <i8, group = 32> layout r16 parts
// G32: lm.weight @layer.0.b {{.*}} encoding <i8, group = 32> layout r16 method "rtn" parts

// With int4 the head is int8; an embedding that is separate is not.
// INT4: lm.weight @embed {{.*}} encoding <i4, group = 128>
// INT4: lm.weight @layer.0.q {{.*}} encoding <i4, group = 128> layout r16 method "rtn"
// INT4: lm.weight @lm_head {{.*}} encoding <i8, group = 128>

// The tables can be asked for.
// TABLE: lm.weight @embed {{.*}} encoding <i4, group = 64>
// TABLE: lm.weight @lm_head {{.*}} encoding <i4, group = 64>
// TABLENONE: lm.weight @embed {{.*}} encoding <f32> layout r16 parts
// TABLENONE: lm.weight @layer.0.q {{.*}} encoding <i8, group = 64>
// TABLENONE: lm.weight @lm_head {{.*}} encoding <f32> layout r16 parts

// A float encoding has no group.
// F16: lm.weight @embed {{.*}} encoding <f16> layout r16 method "rtn"
// F16: lm.weight @layer.0.b {{.*}} encoding <f16> layout r16 parts

// Without an encoding everything stays as it is stored.
// NONE: lm.weight @embed {{.*}} encoding <f32> layout r16 parts
// NONE: lm.weight @layer.0.q {{.*}} encoding <i8, group = 32> layout r16 parts
// NONE: lm.weight @layer.0.b {{.*}} encoding <f16> layout r16 parts

// What is skipped keeps its encoding.
// SKIP: lm.weight @layer.0.q {{.*}} encoding <i8, group = 32> layout r16 parts
// SKIP: lm.weight @layer.0.b {{.*}} encoding <i4, group = 64>
// SKIP: lm.weight @lm_head {{.*}} encoding <f32> layout r16 parts
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.0.q [64, 64] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.q", offset = 0, size = 4352, stored = q8_0, rows = 64, columns = 64>]
lm.weight @layer.0.b [64, 64] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "layer.0.b", offset = 0, size = 8192, stored = f16, rows = 64, columns = 64>]
lm.weight @bias [64] encoding <f32> layout row parts [#lm.part<source = @src0, name = "bias", offset = 0, size = 256, stored = f32, rows = 64, columns = 1>]
lm.weight @norm [64] encoding <f32> layout row parts [#lm.part<source = @src0, name = "norm", offset = 0, size = 256, stored = f32, rows = 64, columns = 1>]
lm.weight @lm_head [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "lm_head", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %a = lm.linear %x, @layer.0.q : tensor<?x64xf32> -> tensor<?x64xf32>
  %b = lm.linear %a, @layer.0.b bias @bias : tensor<?x64xf32> -> tensor<?x64xf32>
  %n = lm.rms_norm %b, @norm {eps = 1.0e-5 : f32} : tensor<?x64xf32> -> tensor<?x64xf32>
  %y = lm.linear %n, @lm_head : tensor<?x64xf32> -> tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}
