// RUN: not ingot-opt %s -quantize-weights=encoding=int5 2>&1 | FileCheck %s --check-prefix=ENCODING
// RUN: not ingot-opt %s -quantize-weights="encoding=int8 group=48" 2>&1 | FileCheck %s --check-prefix=GROUP
// RUN: not ingot-opt %s -quantize-weights="encoding=int8 table=best" 2>&1 | FileCheck %s --check-prefix=TABLE
// RUN: not ingot-opt %s -quantize-weights="encoding=int8 skip=layer.7.*" 2>&1 | FileCheck %s --check-prefix=SKIP
// RUN: not ingot-opt %s -quantize-weights="encoding=int8 skip=layer\\" 2>&1 | FileCheck %s --check-prefix=GLOB

// An encoding that does not exist.
// ENCODING: error: quantize-weights: unknown encoding "int5", expected int8, int4, f32, f16, bf16 or none
// A group that no kernel has.
// GROUP: error: quantize-weights: group 48 is not 32, 64 or 128
// An encoding of the tables that does not exist.
// TABLE: error: quantize-weights: unknown table "best", expected
// A pattern that skips nothing is a mistake.
// SKIP: error: quantize-weights: skip pattern "layer.7.*" matches no weight matrix
// A pattern that is none.
// GLOB: error: quantize-weights: skip pattern "layer{{.*}}":
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
