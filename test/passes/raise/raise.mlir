// Each raise pass on its own pattern; what the others match stays.
// RUN: ingot-opt %s --raise-norms | FileCheck %s --check-prefix=NORMS
// RUN: ingot-opt %s --raise-gated-mlp | FileCheck %s --check-prefix=MLP
// RUN: ingot-opt %s "--raise-gated-mlp=explain=true" 2>&1 | FileCheck %s --check-prefix=SAID

// NORMS-LABEL: func.func @norm
// NORMS-NOT: onnx.Sqrt
// NORMS: onnx.RMSNormalization(%{{.*}}, %{{.*}}) {axis = -1 : i64, epsilon = 9.99999974E-6 : f32
// MLP-LABEL: func.func @norm
// MLP: onnx.Sqrt
func.func @norm(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %w = onnx.Constant() {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  %two = onnx.Constant() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %eps = onnx.Constant() {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %axes = onnx.Constant() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = onnx.Pow(%x, %two) : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %1 = onnx.ReduceMean(%0, %axes) : (tensor<2x4xf32>, tensor<1xi64>) -> tensor<2x1xf32>
  %2 = onnx.Add(%1, %eps) : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xf32>
  %3 = onnx.Sqrt(%2) : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %4 = onnx.Div(%x, %3) : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  %5 = onnx.Mul(%w, %4) : (tensor<4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %5 : tensor<2x4xf32>
}

// MLP-LABEL: func.func @swish
// MLP: onnx.Swish(%{{.*}}) {alpha = 1.000000e+00 : f32}
// MLP-NOT: onnx.Mul
// NORMS-LABEL: func.func @swish
// NORMS: onnx.Sigmoid
// SAID: remark: raise-gated-mlp: Swish from Mul
func.func @swish(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = onnx.Sigmoid(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = onnx.Mul(%x, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
