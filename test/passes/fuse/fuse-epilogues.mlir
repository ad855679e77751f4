// RUN: ingot-opt %s -split-input-file -fuse-epilogues -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s

// The residual goes into the linear operator, behind its bias.
// CHECK-LABEL: lm.program @main
// CHECK: %[[X:.*]] = lm.embed
// CHECK-NEXT: %[[Y:.*]] = lm.linear %[[X]], @o bias @b residual %[[X]] : tensor<?x64xf32> -> tensor<?x64xf32>, tensor<?x64xf32> loc("layer.0.o"(fused<"from">["layer.0.o", {{.*}}]))
// CHECK-NEXT: lm.return %[[Y]]
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @o [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "o", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @b [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %u = lm.linear %x, @o bias @b : tensor<?x64xf32> -> tensor<?x64xf32> loc("layer.0.o")
  %y = lm.add %x, %u : tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}

// -----

// Either operand of the sum will do, and the residual may come later.
// CHECK-LABEL: lm.program @main
// CHECK: %[[S:.*]] = lm.select_rows
// CHECK-NEXT: %[[G:.*]] = lm.select_rows
// CHECK-NEXT: lm.linear %[[S]], @o residual %[[G]]
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @o [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "o", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @b [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %s = lm.select_rows %x : tensor<?x64xf32>
  %u = lm.linear %s, @o : tensor<?x64xf32> -> tensor<?x64xf32>
  %t = lm.select_rows %x : tensor<?x64xf32>
  %y = lm.add %u, %t : tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}

// -----

// A product that something else reads stays.
// CHECK-LABEL: lm.program @main
// CHECK-NOT: residual
// CHECK-COUNT-2: lm.add
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @o [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "o", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @b [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %u = lm.linear %x, @o : tensor<?x64xf32> -> tensor<?x64xf32>
  %z = lm.add %x, %u : tensor<?x64xf32>
  %y = lm.add %u, %u : tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}

// -----

// A linear operator has one residual.
// CHECK-LABEL: lm.program @main
// CHECK: %[[L:.*]] = lm.linear %{{.*}} residual
// CHECK: lm.add %{{.*}}, %[[L]]
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @o [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "o", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @b [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %u = lm.linear %x, @o residual %x : tensor<?x64xf32> -> tensor<?x64xf32>, tensor<?x64xf32>
  %y = lm.add %x, %u : tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}
