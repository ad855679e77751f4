// RUN: ingot-opt %s -split-input-file -insert-quantize -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s

// Linear operators of one group share the rows, named after what made them; another group, and codes of other bits, have their own; a float one reads float32.
// CHECK-LABEL: lm.program @main
// CHECK: %[[X:.*]] = lm.embed {{.*}} loc("embed")
// CHECK-DAG: %[[G32:.*]] = lm.quantize %[[X]] : tensor<?x64xf32> -> !lm.quantized<64, group = 32, bits = 16> loc("embed.quantize"(fused<"from">["embed"]))
// CHECK-DAG: %[[B8:.*]] = lm.quantize %[[X]] : tensor<?x64xf32> -> !lm.quantized<64, group = 32, bits = 8> loc("embed.quantize"(fused<"from">["embed"]))
// CHECK-DAG: %[[G64:.*]] = lm.quantize %[[X]] : tensor<?x64xf32> -> !lm.quantized<64, group = 64, bits = 16> loc("embed.quantize"(fused<"from">["embed"]))
// CHECK: lm.linear %[[G32]], @i8 :
// CHECK: lm.linear %[[G32]], @i8 :
// CHECK: lm.linear %[[G64]], @i8b :
// CHECK: lm.linear %[[B8]], @i4 :
// CHECK: lm.linear %[[X]], @f :
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @i8 [64, 64] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src0, name = "i8", offset = 0, size = 4352, stored = q8_0, rows = 64, columns = 64>]
lm.weight @i8b [64, 64] encoding <i8, group = 64> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "i8b", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @i4 [64, 64] encoding <i4, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "i4", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @f [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "f", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32> loc("embed")
  %a = lm.linear %x, @i8 : tensor<?x64xf32> -> tensor<?x64xf32>
  %b = lm.linear %x, @i8 : tensor<?x64xf32> -> tensor<?x64xf32>
  %c = lm.linear %x, @i8b : tensor<?x64xf32> -> tensor<?x64xf32>
  %d = lm.linear %x, @i4 : tensor<?x64xf32> -> tensor<?x64xf32>
  %y = lm.linear %x, @f : tensor<?x64xf32> -> tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}

// -----

// Rows that are quantised already stay.
// CHECK-LABEL: lm.program @main
// CHECK-COUNT-1: = lm.quantize
// CHECK-NOT: = lm.quantize
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @i8 [64, 64] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src0, name = "i8", offset = 0, size = 4352, stored = q8_0, rows = 64, columns = 64>]
lm.weight @i8b [64, 64] encoding <i8, group = 64> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "i8b", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @f [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "f", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %q = lm.quantize %x : tensor<?x64xf32> -> !lm.quantized<64, group = 32, bits = 16>
  %y = lm.linear %q, @i8 : !lm.quantized<64, group = 32, bits = 16> -> tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}
