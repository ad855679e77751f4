// RUN: ingot-opt %s -split-input-file -merge-gate-up -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s

// Gate and up become one, gate rows first, and the concat goes.
// CHECK: lm.weight @layer.0.gate_up [64, 64] encoding <f32> layout r16 parts [{{.*}}name = "layer.0.gate"{{.*}}name = "layer.0.up"
// CHECK-LABEL: lm.program @main
// CHECK-NEXT: lm.embed
// CHECK-NEXT: %[[GU:.*]] = lm.linear %{{.*}}, @layer.0.gate_up : tensor<?x64xf32> -> tensor<?x64xf32> loc("layer.0.gate_up"(fused<array<i64: 32, 32>>["layer.0.gate", 
// CHECK-NEXT: lm.gate silu %[[GU]]
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.0.gate [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.gate", offset = 0, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.weight @layer.0.up [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.up", offset = 0, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x32xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %g = lm.linear %x, @layer.0.gate : tensor<?x64xf32> -> tensor<?x32xf32> loc("layer.0.gate")
  %u = lm.linear %x, @layer.0.up : tensor<?x64xf32> -> tensor<?x32xf32>
  %gu = lm.concat %g, %u : tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x64xf32>
  %y = lm.gate silu %gu : tensor<?x64xf32> -> tensor<?x32xf32>
  lm.return %y : tensor<?x32xf32>
}

// -----

// Another use of the gate projection reads its columns.
// CHECK-LABEL: lm.program @main
// CHECK: %[[GU:.*]] = lm.linear
// CHECK: %[[S:.*]]:2 = lm.split %[[GU]]
// CHECK: %[[Y:.*]] = lm.gate silu %[[GU]]
// CHECK: lm.add %[[Y]], %[[S]]#0
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.0.gate [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.gate", offset = 0, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.weight @layer.0.up [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.up", offset = 0, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x32xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %g = lm.linear %x, @layer.0.gate : tensor<?x64xf32> -> tensor<?x32xf32> loc("layer.0.gate")
  %u = lm.linear %x, @layer.0.up : tensor<?x64xf32> -> tensor<?x32xf32>
  %gu = lm.concat %g, %u : tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x64xf32>
  %y = lm.gate silu %gu : tensor<?x64xf32> -> tensor<?x32xf32>
  %z = lm.add %y, %g : tensor<?x32xf32>
  lm.return %z : tensor<?x32xf32>
}

// -----

// Encodings that differ stay apart, behind their concat.
// CHECK-LABEL: lm.program @main
// CHECK: %[[G:.*]] = lm.linear %{{.*}}, @layer.0.gate
// CHECK: %[[U:.*]] = lm.linear %{{.*}}, @layer.0.up
// CHECK: lm.concat %[[G]], %[[U]]
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.0.gate [32, 64] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "layer.0.gate", offset = 0, size = 4096, stored = f16, rows = 32, columns = 64>]
lm.weight @layer.0.up [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.up", offset = 0, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x32xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %g = lm.linear %x, @layer.0.gate : tensor<?x64xf32> -> tensor<?x32xf32> loc("layer.0.gate")
  %u = lm.linear %x, @layer.0.up : tensor<?x64xf32> -> tensor<?x32xf32>
  %gu = lm.concat %g, %u : tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x64xf32>
  %y = lm.gate silu %gu : tensor<?x64xf32> -> tensor<?x32xf32>
  lm.return %y : tensor<?x32xf32>
}

// -----

// A gate of something else stays.
// CHECK-LABEL: lm.program @main
// CHECK: lm.gate silu %0
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.0.gate [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.gate", offset = 0, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.weight @layer.0.up [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "layer.0.up", offset = 0, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x32xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %y = lm.gate silu %x : tensor<?x64xf32> -> tensor<?x32xf32>
  lm.return %y : tensor<?x32xf32>
}
