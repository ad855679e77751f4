// The one form of all operators: it round-trips, with absent inputs, several
// results, branches and the names of a graph's inputs.
// RUN: ingot-opt %s | ingot-opt | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: onnx.dims = ["batch", ""]
func.func @main(%x: tensor<?x4xf32> {onnx.name = "x", onnx.dims = ["batch", ""]},
                %c: tensor<i1>) -> tensor<?x4xf32> {
  // CHECK: %[[NONE:.*]] = onnx.None() : () -> none
  %none = onnx.None() : () -> none
  // CHECK: onnx.Constant() {value = dense<2.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %two = onnx.Constant() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  // CHECK: onnx.Weight() {name = "w", offset = 64 : i64, size = 16 : i64, source = 0 : i64}
  %w = onnx.Weight() {name = "w", source = 0 : i64, offset = 64 : i64, size = 16 : i64}
    : () -> tensor<4xf32>
  // CHECK: onnx.Clip(%{{.*}}, %[[NONE]], %{{.*}}) : (tensor<?x4xf32>, none, tensor<f32>) -> tensor<?x4xf32>
  %0 = onnx.Clip(%x, %none, %two) : (tensor<?x4xf32>, none, tensor<f32>) -> tensor<?x4xf32>
  // CHECK: onnx.LayerNormalization({{.*}}) -> (tensor<?x4xf32>, none, none)
  %1:3 = onnx.LayerNormalization(%0, %w, %none) {axis = -1 : i64, epsilon = 1.0e-5 : f32}
    : (tensor<?x4xf32>, tensor<4xf32>, none) -> (tensor<?x4xf32>, none, none)
  // CHECK: onnx.If(%{{.*}}) ({
  // CHECK: onnx.Yield(
  // CHECK: }, {
  // CHECK: }) : (tensor<i1>) -> tensor<?x4xf32>
  %2 = onnx.If(%c) ({
    onnx.Yield(%1#0) : (tensor<?x4xf32>) -> ()
  }, {
    %3 = onnx.Neg(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
    onnx.Yield(%3) : (tensor<?x4xf32>) -> ()
  }) : (tensor<i1>) -> tensor<?x4xf32>
  return %2 : tensor<?x4xf32>
}
