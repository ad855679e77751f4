// What the verifier of onnx says no to.
// RUN: ingot-opt %s -split-input-file -verify-diagnostics

// A result that contradicts what its operands give.
func.func @type(%x: tensor<2x4xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{result 0 has the type 'tensor<2x3xf32>', but its operands give 'tensor<2x4xf32>'}}
  %0 = onnx.Relu(%x) : (tensor<2x4xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// Shapes that do not broadcast.
func.func @broadcast(%x: tensor<2x4xf32>, %y: tensor<3xf32>) -> tensor<2x4xf32> {
  // expected-error @+1 {{dimensions 4 and 3 do not broadcast}}
  %0 = onnx.Add(%x, %y) : (tensor<2x4xf32>, tensor<3xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// An input that must be there.
func.func @absent(%x: tensor<2xf32>) -> tensor<2xf32> {
  %none = onnx.None() : () -> none
  // expected-error @+1 {{operand #1 must be a tensor of numbers, but got 'none'}}
  %0 = onnx.Add(%x, %none) : (tensor<2xf32>, none) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// An attribute that must be there.
func.func @attribute(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{requires attribute 'axis'}}
  %0 = onnx.Concat(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// An axis outside the tensor.
func.func @axis(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{axis 1 is outside a tensor of rank 1}}
  %0 = onnx.Softmax(%x) {axis = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
