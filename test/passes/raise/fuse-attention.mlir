// Each form of a decomposed attention that fuses, and what is near one and does not, or
// keeps what else is used. Values are compared in test/compiler/codegen/graph/RaiseTest.cpp.
// RUN: ingot-opt %s --split-input-file --fuse-attention | FileCheck %s
// RUN: ingot-opt %s --split-input-file "--fuse-attention=explain=true" 2>&1 >/dev/null | FileCheck %s --check-prefix=SAID

// No mask: not causal. No scale: a scale of 1.
// CHECK-LABEL: func.func @plain
// CHECK-NOT: onnx.Softmax
// CHECK: %[[NONE:.*]] = onnx.None
// CHECK: %[[Y:[A-Za-z]+]], %{{.*}} = onnx.Attention(%arg0, %arg1, %arg2, %[[NONE]], {{[%0-9, ]+}}) {is_causal = 0 : i64
// CHECK-SAME: scale = 1.000000e+00 : f32
// CHECK-SAME: softcap = 0.000000e+00 : f32
// CHECK: return %[[Y]]
// SAID: remark: fuse-attention: Attention of 4 heads over 4 from MatMul
func.func @plain(%q: tensor<1x4x3x8xf32>, %k: tensor<1x4x3x8xf32>, %v: tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32> {
  %0 = onnx.Transpose(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x4x3x8xf32>) -> tensor<1x4x8x3xf32>
  %1 = onnx.MatMul(%q, %0) : (tensor<1x4x3x8xf32>, tensor<1x4x8x3xf32>) -> tensor<1x4x3x3xf32>
  %2 = onnx.Softmax(%1) {axis = -1 : i64} : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %3 = onnx.MatMul(%2, %v) : (tensor<1x4x3x3xf32>, tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32>
  return %3 : tensor<1x4x3x8xf32>
}

// A mask that is added, and an odd scale by Mul.
// CHECK-LABEL: func.func @added_mask
// CHECK-NOT: onnx.Softmax
// CHECK: onnx.Attention(%arg0, %arg1, %arg2, %arg3, {{[%0-9, ]+}}) {is_causal = 0 : i64
// CHECK-SAME: scale = 0.76999998 : f32
// CHECK-SAME: softcap = 0.000000e+00 : f32
func.func @added_mask(%q: tensor<1x4x3x8xf32>, %k: tensor<1x4x3x8xf32>, %v: tensor<1x4x3x8xf32>, %mask: tensor<1x1x3x3xf32>) -> tensor<1x4x3x8xf32> {
  %0 = onnx.Transpose(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x4x3x8xf32>) -> tensor<1x4x8x3xf32>
  %1 = onnx.MatMul(%q, %0) : (tensor<1x4x3x8xf32>, tensor<1x4x8x3xf32>) -> tensor<1x4x3x3xf32>
  %scale = onnx.Constant() {value = dense<7.7e-01> : tensor<f32>} : () -> tensor<f32>
  %2 = onnx.Mul(%1, %scale) : (tensor<1x4x3x3xf32>, tensor<f32>) -> tensor<1x4x3x3xf32>
  %3 = onnx.Add(%2, %mask) : (tensor<1x4x3x3xf32>, tensor<1x1x3x3xf32>) -> tensor<1x4x3x3xf32>
  %4 = onnx.Softmax(%3) {axis = -1 : i64} : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %5 = onnx.MatMul(%4, %v) : (tensor<1x4x3x3xf32>, tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32>
  return %5 : tensor<1x4x3x8xf32>
}

// A mask that chooses, and a scale by Div.
// CHECK-LABEL: func.func @chosen_mask
// CHECK-NOT: onnx.Softmax
// CHECK: onnx.Attention(%arg0, %arg1, %arg2, %arg3, {{[%0-9, ]+}}) {is_causal = 0 : i64
// CHECK-SAME: scale = 2.500000e-01 : f32
// CHECK-SAME: softcap = 0.000000e+00 : f32
// CHECK-SAME: tensor<1x1x3x3xi1>
func.func @chosen_mask(%q: tensor<1x4x3x8xf32>, %k: tensor<1x4x3x8xf32>, %v: tensor<1x4x3x8xf32>, %mask: tensor<1x1x3x3xi1>) -> tensor<1x4x3x8xf32> {
  %0 = onnx.Transpose(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x4x3x8xf32>) -> tensor<1x4x8x3xf32>
  %1 = onnx.MatMul(%q, %0) : (tensor<1x4x3x8xf32>, tensor<1x4x8x3xf32>) -> tensor<1x4x3x3xf32>
  %scale = onnx.Constant() {value = dense<4.0> : tensor<f32>} : () -> tensor<f32>
  %2 = onnx.Div(%1, %scale) : (tensor<1x4x3x3xf32>, tensor<f32>) -> tensor<1x4x3x3xf32>
  %low = onnx.Constant() {value = dense<-1.0e30> : tensor<f32>} : () -> tensor<f32>
  %3 = onnx.Where(%mask, %2, %low) : (tensor<1x1x3x3xi1>, tensor<1x4x3x3xf32>, tensor<f32>) -> tensor<1x4x3x3xf32>
  %4 = onnx.Softmax(%3) {axis = -1 : i64} : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %5 = onnx.MatMul(%4, %v) : (tensor<1x4x3x3xf32>, tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32>
  return %5 : tensor<1x4x3x8xf32>
}

// The root of the scale on queries and on keys.
// CHECK-LABEL: func.func @both_sides
// CHECK-NOT: onnx.Softmax
// CHECK: onnx.Attention(%arg0, %arg1, %arg2, {{[%0-9, ]+}})
// CHECK-SAME: scale = 2.500000e-01 : f32
// CHECK-SAME: softcap = 0.000000e+00 : f32
func.func @both_sides(%q: tensor<1x4x3x8xf32>, %k: tensor<1x4x3x8xf32>, %v: tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32> {
  %0 = onnx.Transpose(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x4x3x8xf32>) -> tensor<1x4x8x3xf32>
  %half = onnx.Constant() {value = dense<5.0e-01> : tensor<f32>} : () -> tensor<f32>
  %1 = onnx.Mul(%q, %half) : (tensor<1x4x3x8xf32>, tensor<f32>) -> tensor<1x4x3x8xf32>
  %2 = onnx.Mul(%0, %half) : (tensor<1x4x8x3xf32>, tensor<f32>) -> tensor<1x4x8x3xf32>
  %3 = onnx.MatMul(%1, %2) : (tensor<1x4x3x8xf32>, tensor<1x4x8x3xf32>) -> tensor<1x4x3x3xf32>
  %4 = onnx.Softmax(%3) {axis = -1 : i64} : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %5 = onnx.MatMul(%4, %v) : (tensor<1x4x3x3xf32>, tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32>
  return %5 : tensor<1x4x3x8xf32>
}

// A soft cap of 2.
// CHECK-LABEL: func.func @soft_cap
// CHECK-NOT: onnx.Softmax
// CHECK: onnx.Attention(%arg0, %arg1, %arg2, %arg3, {{[%0-9, ]+}})
// CHECK-SAME: scale = 5.000000e-01 : f32
// CHECK-SAME: softcap = 2.000000e+00 : f32
func.func @soft_cap(%q: tensor<1x4x3x8xf32>, %k: tensor<1x4x3x8xf32>, %v: tensor<1x4x3x8xf32>, %mask: tensor<1x1x3x3xf32>) -> tensor<1x4x3x8xf32> {
  %0 = onnx.Transpose(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x4x3x8xf32>) -> tensor<1x4x8x3xf32>
  %1 = onnx.MatMul(%q, %0) : (tensor<1x4x3x8xf32>, tensor<1x4x8x3xf32>) -> tensor<1x4x3x3xf32>
  %scale = onnx.Constant() {value = dense<5.0e-01> : tensor<f32>} : () -> tensor<f32>
  %2 = onnx.Mul(%1, %scale) : (tensor<1x4x3x3xf32>, tensor<f32>) -> tensor<1x4x3x3xf32>
  %inner = onnx.Constant() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %outer = onnx.Constant() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %3 = onnx.Div(%2, %inner) : (tensor<1x4x3x3xf32>, tensor<f32>) -> tensor<1x4x3x3xf32>
  %4 = onnx.Tanh(%3) : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %5 = onnx.Mul(%4, %outer) : (tensor<1x4x3x3xf32>, tensor<f32>) -> tensor<1x4x3x3xf32>
  %6 = onnx.Add(%5, %mask) : (tensor<1x4x3x3xf32>, tensor<1x1x3x3xf32>) -> tensor<1x4x3x3xf32>
  %7 = onnx.Softmax(%6) {axis = -1 : i64} : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %8 = onnx.MatMul(%7, %v) : (tensor<1x4x3x3xf32>, tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32>
  return %8 : tensor<1x4x3x8xf32>
}

// Two heads of keys for four of queries, repeated after the past that they are joined to: the
// past is the operator's, and so is the present that the graph returns.
// CHECK-LABEL: func.func @grouped_with_past
// CHECK-NOT: onnx.Expand
// CHECK-NOT: onnx.Concat
// CHECK: %[[Y:[A-Za-z]+]], %[[K:[a-z_]+]], %[[V:[a-z_]+]], %{{.*}} = onnx.Attention(%arg0, %arg1, %arg2, %arg5, %arg3, %arg4, %{{[0-9]+}})
// CHECK-SAME: scale = 5.000000e-01 : f32
// CHECK-SAME: softcap = 0.000000e+00 : f32
// CHECK: return %[[Y]], %[[K]], %[[V]]
// SAID: remark: fuse-attention: Attention of 4 heads over 2 with a past from MatMul
func.func @grouped_with_past(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x3x8xf32>, %v: tensor<1x2x3x8xf32>, %pk: tensor<1x2x2x8xf32>, %pv: tensor<1x2x2x8xf32>, %mask: tensor<1x1x3x5xf32>) -> (tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>) {
  %0 = onnx.Concat(%pk, %k) {axis = 2 : i64} : (tensor<1x2x2x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x5x8xf32>
  %1 = onnx.Concat(%pv, %v) {axis = 2 : i64} : (tensor<1x2x2x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x5x8xf32>
  %two = onnx.Constant() {value = dense<[2]> : tensor<1xi64>} : () -> tensor<1xi64>
  %wide = onnx.Constant() {value = dense<[1, 2, 2, 5, 8]> : tensor<5xi64>} : () -> tensor<5xi64>
  %flat = onnx.Constant() {value = dense<[1, 4, 5, 8]> : tensor<4xi64>} : () -> tensor<4xi64>
  %2 = onnx.Unsqueeze(%0, %two) : (tensor<1x2x5x8xf32>, tensor<1xi64>) -> tensor<1x2x1x5x8xf32>
  %3 = onnx.Expand(%2, %wide) : (tensor<1x2x1x5x8xf32>, tensor<5xi64>) -> tensor<1x2x2x5x8xf32>
  %4 = onnx.Reshape(%3, %flat) : (tensor<1x2x2x5x8xf32>, tensor<4xi64>) -> tensor<1x4x5x8xf32>
  %5 = onnx.Unsqueeze(%1, %two) : (tensor<1x2x5x8xf32>, tensor<1xi64>) -> tensor<1x2x1x5x8xf32>
  %6 = onnx.Expand(%5, %wide) : (tensor<1x2x1x5x8xf32>, tensor<5xi64>) -> tensor<1x2x2x5x8xf32>
  %7 = onnx.Reshape(%6, %flat) : (tensor<1x2x2x5x8xf32>, tensor<4xi64>) -> tensor<1x4x5x8xf32>
  %8 = onnx.Transpose(%4) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x4x5x8xf32>) -> tensor<1x4x8x5xf32>
  %9 = onnx.MatMul(%q, %8) : (tensor<1x4x3x8xf32>, tensor<1x4x8x5xf32>) -> tensor<1x4x3x5xf32>
  %scale = onnx.Constant() {value = dense<5.0e-01> : tensor<f32>} : () -> tensor<f32>
  %10 = onnx.Mul(%9, %scale) : (tensor<1x4x3x5xf32>, tensor<f32>) -> tensor<1x4x3x5xf32>
  %11 = onnx.Add(%mask, %10) : (tensor<1x1x3x5xf32>, tensor<1x4x3x5xf32>) -> tensor<1x4x3x5xf32>
  %12 = onnx.Softmax(%11) {axis = 3 : i64} : (tensor<1x4x3x5xf32>) -> tensor<1x4x3x5xf32>
  %13 = onnx.MatMul(%12, %7) : (tensor<1x4x3x5xf32>, tensor<1x4x5x8xf32>) -> tensor<1x4x3x8xf32>
  return %13, %0, %1 : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>
}

// -----

// The scores are a result too: they stay, and the attention fuses beside them.
// CHECK-LABEL: func.func @scores_are_used
// CHECK: %[[S:.*]] = onnx.MatMul(%arg0,
// CHECK: %[[Y:[A-Za-z]+]], %{{.*}} = onnx.Attention(%arg0, %arg1, %arg2
// CHECK: return %[[Y]], %[[S]]
func.func @scores_are_used(%q: tensor<1x4x3x8xf32>, %k: tensor<1x4x3x8xf32>, %v: tensor<1x4x3x8xf32>, %mask: tensor<1x1x3x3xf32>) -> (tensor<1x4x3x8xf32>, tensor<1x4x3x3xf32>) {
  %0 = onnx.Transpose(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x4x3x8xf32>) -> tensor<1x4x8x3xf32>
  %1 = onnx.MatMul(%q, %0) : (tensor<1x4x3x8xf32>, tensor<1x4x8x3xf32>) -> tensor<1x4x3x3xf32>
  %scale = onnx.Constant() {value = dense<5.0e-01> : tensor<f32>} : () -> tensor<f32>
  %2 = onnx.Mul(%1, %scale) : (tensor<1x4x3x3xf32>, tensor<f32>) -> tensor<1x4x3x3xf32>
  %3 = onnx.Add(%2, %mask) : (tensor<1x4x3x3xf32>, tensor<1x1x3x3xf32>) -> tensor<1x4x3x3xf32>
  %4 = onnx.Softmax(%3) {axis = -1 : i64} : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %5 = onnx.MatMul(%4, %v) : (tensor<1x4x3x3xf32>, tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32>
  return %5, %1 : tensor<1x4x3x8xf32>, tensor<1x4x3x3xf32>
}

// So do the weights.
// CHECK-LABEL: func.func @weights_are_used
// CHECK: %[[P:.*]] = onnx.Softmax(
// CHECK: %[[Y:[A-Za-z]+]], %{{.*}} = onnx.Attention(%arg0, %arg1, %arg2
// CHECK: return %[[Y]], %[[P]]
func.func @weights_are_used(%q: tensor<1x4x3x8xf32>, %k: tensor<1x4x3x8xf32>, %v: tensor<1x4x3x8xf32>, %mask: tensor<1x1x3x3xf32>) -> (tensor<1x4x3x8xf32>, tensor<1x4x3x3xf32>) {
  %0 = onnx.Transpose(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x4x3x8xf32>) -> tensor<1x4x8x3xf32>
  %1 = onnx.MatMul(%q, %0) : (tensor<1x4x3x8xf32>, tensor<1x4x8x3xf32>) -> tensor<1x4x3x3xf32>
  %scale = onnx.Constant() {value = dense<5.0e-01> : tensor<f32>} : () -> tensor<f32>
  %2 = onnx.Mul(%1, %scale) : (tensor<1x4x3x3xf32>, tensor<f32>) -> tensor<1x4x3x3xf32>
  %3 = onnx.Add(%2, %mask) : (tensor<1x4x3x3xf32>, tensor<1x1x3x3xf32>) -> tensor<1x4x3x3xf32>
  %4 = onnx.Softmax(%3) {axis = -1 : i64} : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %5 = onnx.MatMul(%4, %v) : (tensor<1x4x3x3xf32>, tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32>
  return %5, %4 : tensor<1x4x3x8xf32>, tensor<1x4x3x3xf32>
}

// And keys that were repeated: with them their present, where its operator comes before.
// CHECK-LABEL: func.func @keys_are_used
// CHECK: %[[KEYS:.*]] = onnx.Transpose(
// CHECK: %[[Y:[A-Za-z]+]], %[[K:[a-z_]+]], %[[V:[a-z_]+]], %{{.*}} = onnx.Attention(%arg0, %arg1, %arg2, %arg5, %arg3, %arg4, %{{[0-9]+}})
// CHECK: return %[[Y]], %[[K]], %[[V]], %[[KEYS]]
func.func @keys_are_used(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x3x8xf32>, %v: tensor<1x2x3x8xf32>, %pk: tensor<1x2x2x8xf32>, %pv: tensor<1x2x2x8xf32>, %mask: tensor<1x1x3x5xf32>) -> (tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x4x8x5xf32>) {
  %0 = onnx.Concat(%pk, %k) {axis = 2 : i64} : (tensor<1x2x2x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x5x8xf32>
  %1 = onnx.Concat(%pv, %v) {axis = 2 : i64} : (tensor<1x2x2x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x5x8xf32>
  %two = onnx.Constant() {value = dense<[2]> : tensor<1xi64>} : () -> tensor<1xi64>
  %wide = onnx.Constant() {value = dense<[1, 2, 2, 5, 8]> : tensor<5xi64>} : () -> tensor<5xi64>
  %flat = onnx.Constant() {value = dense<[1, 4, 5, 8]> : tensor<4xi64>} : () -> tensor<4xi64>
  %2 = onnx.Unsqueeze(%0, %two) : (tensor<1x2x5x8xf32>, tensor<1xi64>) -> tensor<1x2x1x5x8xf32>
  %3 = onnx.Expand(%2, %wide) : (tensor<1x2x1x5x8xf32>, tensor<5xi64>) -> tensor<1x2x2x5x8xf32>
  %4 = onnx.Reshape(%3, %flat) : (tensor<1x2x2x5x8xf32>, tensor<4xi64>) -> tensor<1x4x5x8xf32>
  %5 = onnx.Unsqueeze(%1, %two) : (tensor<1x2x5x8xf32>, tensor<1xi64>) -> tensor<1x2x1x5x8xf32>
  %6 = onnx.Expand(%5, %wide) : (tensor<1x2x1x5x8xf32>, tensor<5xi64>) -> tensor<1x2x2x5x8xf32>
  %7 = onnx.Reshape(%6, %flat) : (tensor<1x2x2x5x8xf32>, tensor<4xi64>) -> tensor<1x4x5x8xf32>
  %8 = onnx.Transpose(%4) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x4x5x8xf32>) -> tensor<1x4x8x5xf32>
  %9 = onnx.MatMul(%q, %8) : (tensor<1x4x3x8xf32>, tensor<1x4x8x5xf32>) -> tensor<1x4x3x5xf32>
  %scale = onnx.Constant() {value = dense<5.0e-01> : tensor<f32>} : () -> tensor<f32>
  %10 = onnx.Mul(%9, %scale) : (tensor<1x4x3x5xf32>, tensor<f32>) -> tensor<1x4x3x5xf32>
  %11 = onnx.Add(%mask, %10) : (tensor<1x1x3x5xf32>, tensor<1x4x3x5xf32>) -> tensor<1x4x3x5xf32>
  %12 = onnx.Softmax(%11) {axis = 3 : i64} : (tensor<1x4x3x5xf32>) -> tensor<1x4x3x5xf32>
  %13 = onnx.MatMul(%12, %7) : (tensor<1x4x3x5xf32>, tensor<1x4x5x8xf32>) -> tensor<1x4x3x8xf32>
  return %13, %0, %1, %8 : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x4x8x5xf32>
}

// -----

// A cap of 2 that is multiplied by 3.
// CHECK-LABEL: func.func @two_caps
// CHECK-NOT: onnx.Attention
// CHECK: onnx.Softmax
// CHECK-NOT: onnx.Attention
// SAID: remark: fuse-attention: left alone MatMul{{.*}}: its scores are capped by one number and scaled by another
func.func @two_caps(%q: tensor<1x4x3x8xf32>, %k: tensor<1x4x3x8xf32>, %v: tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32> {
  %0 = onnx.Transpose(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x4x3x8xf32>) -> tensor<1x4x8x3xf32>
  %1 = onnx.MatMul(%q, %0) : (tensor<1x4x3x8xf32>, tensor<1x4x8x3xf32>) -> tensor<1x4x3x3xf32>
  %inner = onnx.Constant() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %outer = onnx.Constant() {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
  %2 = onnx.Div(%1, %inner) : (tensor<1x4x3x3xf32>, tensor<f32>) -> tensor<1x4x3x3xf32>
  %3 = onnx.Tanh(%2) : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %4 = onnx.Mul(%3, %outer) : (tensor<1x4x3x3xf32>, tensor<f32>) -> tensor<1x4x3x3xf32>
  %5 = onnx.Softmax(%4) {axis = -1 : i64} : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %6 = onnx.MatMul(%5, %v) : (tensor<1x4x3x3xf32>, tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32>
  return %6 : tensor<1x4x3x8xf32>
}

// A softmax along the queries.
// CHECK-LABEL: func.func @softmax_of_queries
// CHECK-NOT: onnx.Attention
// CHECK: onnx.Softmax
// CHECK-NOT: onnx.Attention
// SAID: remark: fuse-attention: left alone MatMul{{.*}}: its softmax is not along the keys of four dimensions
func.func @softmax_of_queries(%q: tensor<1x4x3x8xf32>, %k: tensor<1x4x3x8xf32>, %v: tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32> {
  %0 = onnx.Transpose(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x4x3x8xf32>) -> tensor<1x4x8x3xf32>
  %1 = onnx.MatMul(%q, %0) : (tensor<1x4x3x8xf32>, tensor<1x4x8x3xf32>) -> tensor<1x4x3x3xf32>
  %2 = onnx.Softmax(%1) {axis = 2 : i64} : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %3 = onnx.MatMul(%2, %v) : (tensor<1x4x3x3xf32>, tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32>
  return %3 : tensor<1x4x3x8xf32>
}

// A mask that chooses a number that is not minus infinity.
// CHECK-LABEL: func.func @weak_mask
// CHECK-NOT: onnx.Attention
// CHECK: onnx.Softmax
// CHECK-NOT: onnx.Attention
// SAID: remark: fuse-attention: left alone MatMul{{.*}}: Where{{.*}} does not keep scores or drop them
func.func @weak_mask(%q: tensor<1x4x3x8xf32>, %k: tensor<1x4x3x8xf32>, %v: tensor<1x4x3x8xf32>, %mask: tensor<1x1x3x3xi1>) -> tensor<1x4x3x8xf32> {
  %0 = onnx.Transpose(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x4x3x8xf32>) -> tensor<1x4x8x3xf32>
  %1 = onnx.MatMul(%q, %0) : (tensor<1x4x3x8xf32>, tensor<1x4x8x3xf32>) -> tensor<1x4x3x3xf32>
  %low = onnx.Constant() {value = dense<-1.0> : tensor<f32>} : () -> tensor<f32>
  %2 = onnx.Where(%mask, %1, %low) : (tensor<1x1x3x3xi1>, tensor<1x4x3x3xf32>, tensor<f32>) -> tensor<1x4x3x3xf32>
  %3 = onnx.Softmax(%2) {axis = -1 : i64} : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %4 = onnx.MatMul(%3, %v) : (tensor<1x4x3x3xf32>, tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32>
  return %4 : tensor<1x4x3x8xf32>
}

// Heads repeated in turn, 0 1 0 1: no grouping that an attention has. It fuses over four heads of
// keys, whose repetition stays.
// CHECK-LABEL: func.func @heads_in_turn
// CHECK-COUNT-2: onnx.Expand
// CHECK: onnx.Attention(%arg0, %[[K:[0-9]+]], %[[V:[0-9]+]], %arg5, {{[%0-9, ]+}}) {is_causal = 0 : i64
// SAID: remark: fuse-attention: Attention of 4 heads over 4 from MatMul
func.func @heads_in_turn(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x3x8xf32>, %v: tensor<1x2x3x8xf32>, %pk: tensor<1x2x2x8xf32>, %pv: tensor<1x2x2x8xf32>, %mask: tensor<1x1x3x5xf32>) -> (tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>) {
  %0 = onnx.Concat(%pk, %k) {axis = 2 : i64} : (tensor<1x2x2x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x5x8xf32>
  %1 = onnx.Concat(%pv, %v) {axis = 2 : i64} : (tensor<1x2x2x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x5x8xf32>
  %two = onnx.Constant() {value = dense<[2]> : tensor<1xi64>} : () -> tensor<1xi64>
  %wide = onnx.Constant() {value = dense<[1, 2, 2, 5, 8]> : tensor<5xi64>} : () -> tensor<5xi64>
  %flat = onnx.Constant() {value = dense<[1, 4, 5, 8]> : tensor<4xi64>} : () -> tensor<4xi64>
  %one = onnx.Constant() {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = onnx.Unsqueeze(%0, %one) : (tensor<1x2x5x8xf32>, tensor<1xi64>) -> tensor<1x1x2x5x8xf32>
  %3 = onnx.Expand(%2, %wide) : (tensor<1x1x2x5x8xf32>, tensor<5xi64>) -> tensor<1x2x2x5x8xf32>
  %4 = onnx.Reshape(%3, %flat) : (tensor<1x2x2x5x8xf32>, tensor<4xi64>) -> tensor<1x4x5x8xf32>
  %5 = onnx.Unsqueeze(%1, %one) : (tensor<1x2x5x8xf32>, tensor<1xi64>) -> tensor<1x1x2x5x8xf32>
  %6 = onnx.Expand(%5, %wide) : (tensor<1x1x2x5x8xf32>, tensor<5xi64>) -> tensor<1x2x2x5x8xf32>
  %7 = onnx.Reshape(%6, %flat) : (tensor<1x2x2x5x8xf32>, tensor<4xi64>) -> tensor<1x4x5x8xf32>
  %8 = onnx.Transpose(%4) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x4x5x8xf32>) -> tensor<1x4x8x5xf32>
  %9 = onnx.MatMul(%q, %8) : (tensor<1x4x3x8xf32>, tensor<1x4x8x5xf32>) -> tensor<1x4x3x5xf32>
  %scale = onnx.Constant() {value = dense<5.0e-01> : tensor<f32>} : () -> tensor<f32>
  %10 = onnx.Mul(%9, %scale) : (tensor<1x4x3x5xf32>, tensor<f32>) -> tensor<1x4x3x5xf32>
  %11 = onnx.Add(%mask, %10) : (tensor<1x1x3x5xf32>, tensor<1x4x3x5xf32>) -> tensor<1x4x3x5xf32>
  %12 = onnx.Softmax(%11) {axis = 3 : i64} : (tensor<1x4x3x5xf32>) -> tensor<1x4x3x5xf32>
  %13 = onnx.MatMul(%12, %7) : (tensor<1x4x3x5xf32>, tensor<1x4x5x8xf32>) -> tensor<1x4x3x8xf32>
  return %13, %0, %1 : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>
}

// Keys of as many columns as positions, not transposed: another product.
// CHECK-LABEL: func.func @keys_as_they_are
// CHECK-NOT: onnx.Attention
// CHECK: onnx.Softmax
// CHECK-NOT: onnx.Attention
// SAID: remark: fuse-attention: left alone MatMul{{.*}}: its keys are not transposed in their last two dimensions
func.func @keys_as_they_are(%q: tensor<1x4x3x3xf32>, %k: tensor<1x4x3x3xf32>, %v: tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32> {
  %0 = onnx.MatMul(%q, %k) : (tensor<1x4x3x3xf32>, tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %1 = onnx.Softmax(%0) {axis = -1 : i64} : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %2 = onnx.MatMul(%1, %v) : (tensor<1x4x3x3xf32>, tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  return %2 : tensor<1x4x3x3xf32>
}

// Two products added: neither is a mask.
// CHECK-LABEL: func.func @sum_of_scores
// CHECK-NOT: onnx.Attention
// CHECK: onnx.Softmax
// CHECK-NOT: onnx.Attention
// SAID: remark: fuse-attention: left alone MatMul{{.*}}: which side of Add{{.*}} is the mask?
func.func @sum_of_scores(%q: tensor<1x4x3x8xf32>, %k: tensor<1x4x3x8xf32>, %v: tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32> {
  %0 = onnx.Transpose(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x4x3x8xf32>) -> tensor<1x4x8x3xf32>
  %1 = onnx.MatMul(%q, %0) : (tensor<1x4x3x8xf32>, tensor<1x4x8x3xf32>) -> tensor<1x4x3x3xf32>
  %2 = onnx.MatMul(%v, %0) : (tensor<1x4x3x8xf32>, tensor<1x4x8x3xf32>) -> tensor<1x4x3x3xf32>
  %3 = onnx.Add(%1, %2) : (tensor<1x4x3x3xf32>, tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %4 = onnx.Softmax(%3) {axis = -1 : i64} : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %5 = onnx.MatMul(%4, %v) : (tensor<1x4x3x3xf32>, tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32>
  return %5 : tensor<1x4x3x8xf32>
}

// A scale of its own for each head is no scale that an attention has.
// CHECK-LABEL: func.func @scale_by_head
// CHECK-NOT: onnx.Attention
// CHECK: onnx.Softmax
// CHECK-NOT: onnx.Attention
// SAID: remark: fuse-attention: left alone MatMul{{.*}}: its scores are no product of queries and keys
func.func @scale_by_head(%q: tensor<1x4x3x8xf32>, %k: tensor<1x4x3x8xf32>, %v: tensor<1x4x3x8xf32>, %scales: tensor<1x4x1x1xf32>) -> tensor<1x4x3x8xf32> {
  %0 = onnx.Transpose(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x4x3x8xf32>) -> tensor<1x4x8x3xf32>
  %1 = onnx.MatMul(%q, %0) : (tensor<1x4x3x8xf32>, tensor<1x4x8x3xf32>) -> tensor<1x4x3x3xf32>
  %2 = onnx.Mul(%1, %scales) : (tensor<1x4x3x3xf32>, tensor<1x4x1x1xf32>) -> tensor<1x4x3x3xf32>
  %3 = onnx.Softmax(%2) {axis = -1 : i64} : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %4 = onnx.MatMul(%3, %v) : (tensor<1x4x3x3xf32>, tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32>
  return %4 : tensor<1x4x3x8xf32>
}

// -----

// Rotations before it keep what they say: pairs of neighbours.
// CHECK-LABEL: func.func @interleaved
// CHECK: %[[Q:.*]] = onnx.RotaryEmbedding(%arg0, %arg3, %arg4, %{{[0-9]+}}) {interleaved = 1 : i64
// CHECK: %[[K:.*]] = onnx.RotaryEmbedding(%arg1, %arg3, %arg4, %{{[0-9]+}}) {interleaved = 1 : i64
// CHECK: onnx.Attention(%[[Q]], %[[K]], %arg2,
func.func @interleaved(%q: tensor<1x4x3x8xf32>, %k: tensor<1x4x3x8xf32>, %v: tensor<1x4x3x8xf32>, %cos: tensor<1x3x4xf32>, %sin: tensor<1x3x4xf32>) -> tensor<1x4x3x8xf32> {
  %none = onnx.None() : () -> none
  %0 = onnx.RotaryEmbedding(%q, %cos, %sin, %none) {interleaved = 1 : i64} : (tensor<1x4x3x8xf32>, tensor<1x3x4xf32>, tensor<1x3x4xf32>, none) -> tensor<1x4x3x8xf32>
  %1 = onnx.RotaryEmbedding(%k, %cos, %sin, %none) {interleaved = 1 : i64} : (tensor<1x4x3x8xf32>, tensor<1x3x4xf32>, tensor<1x3x4xf32>, none) -> tensor<1x4x3x8xf32>
  %2 = onnx.Transpose(%1) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x4x3x8xf32>) -> tensor<1x4x8x3xf32>
  %3 = onnx.MatMul(%0, %2) : (tensor<1x4x3x8xf32>, tensor<1x4x8x3xf32>) -> tensor<1x4x3x3xf32>
  %4 = onnx.Softmax(%3) {axis = -1 : i64} : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %5 = onnx.MatMul(%4, %v) : (tensor<1x4x3x3xf32>, tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32>
  return %5 : tensor<1x4x3x8xf32>
}

// And part of a head.
// CHECK-LABEL: func.func @partial
// CHECK: %[[Q:.*]] = onnx.RotaryEmbedding(%arg0, %arg3, %arg4, %{{[0-9]+}}) {{.*}}rotary_embedding_dim = 4 : i64
// CHECK: %[[K:.*]] = onnx.RotaryEmbedding(%arg1, %arg3, %arg4, %{{[0-9]+}}) {{.*}}rotary_embedding_dim = 4 : i64
// CHECK: onnx.Attention(%[[Q]], %[[K]], %arg2,
func.func @partial(%q: tensor<1x4x3x8xf32>, %k: tensor<1x4x3x8xf32>, %v: tensor<1x4x3x8xf32>, %cos: tensor<1x3x2xf32>, %sin: tensor<1x3x2xf32>) -> tensor<1x4x3x8xf32> {
  %none = onnx.None() : () -> none
  %0 = onnx.RotaryEmbedding(%q, %cos, %sin, %none) {rotary_embedding_dim = 4 : i64} : (tensor<1x4x3x8xf32>, tensor<1x3x2xf32>, tensor<1x3x2xf32>, none) -> tensor<1x4x3x8xf32>
  %1 = onnx.RotaryEmbedding(%k, %cos, %sin, %none) {rotary_embedding_dim = 4 : i64} : (tensor<1x4x3x8xf32>, tensor<1x3x2xf32>, tensor<1x3x2xf32>, none) -> tensor<1x4x3x8xf32>
  %2 = onnx.Transpose(%1) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x4x3x8xf32>) -> tensor<1x4x8x3xf32>
  %3 = onnx.MatMul(%0, %2) : (tensor<1x4x3x8xf32>, tensor<1x4x8x3xf32>) -> tensor<1x4x3x3xf32>
  %4 = onnx.Softmax(%3) {axis = -1 : i64} : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %5 = onnx.MatMul(%4, %v) : (tensor<1x4x3x3xf32>, tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32>
  return %5 : tensor<1x4x3x8xf32>
}

// Keys that were rounded to eight bits on the way stay rounded.
// CHECK-LABEL: func.func @rounded_keys
// CHECK: %[[ROUNDED:.*]] = onnx.Cast(%{{.*}}) {{.*}}(tensor<1x4x3x8xf8E4M3FN>) -> tensor<1x4x3x8xf32>
// CHECK: onnx.Attention(%arg0, %[[ROUNDED]], %arg2,
func.func @rounded_keys(%q: tensor<1x4x3x8xf32>, %k: tensor<1x4x3x8xf32>, %v: tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32> {
  %c = onnx.Cast(%k) {to = f8E4M3FN} : (tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf8E4M3FN>
  %d = onnx.Cast(%c) {to = f32} : (tensor<1x4x3x8xf8E4M3FN>) -> tensor<1x4x3x8xf32>
  %0 = onnx.Transpose(%d) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x4x3x8xf32>) -> tensor<1x4x8x3xf32>
  %1 = onnx.MatMul(%q, %0) : (tensor<1x4x3x8xf32>, tensor<1x4x8x3xf32>) -> tensor<1x4x3x3xf32>
  %2 = onnx.Softmax(%1) {axis = -1 : i64} : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %3 = onnx.MatMul(%2, %v) : (tensor<1x4x3x3xf32>, tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32>
  return %3 : tensor<1x4x3x8xf32>
}

// A cap that is negative on both sides of an odd function is the cap.
// CHECK-LABEL: func.func @negative_cap
// CHECK: onnx.Attention
// CHECK-SAME: softcap = 2.000000e+00 : f32
func.func @negative_cap(%q: tensor<1x4x3x8xf32>, %k: tensor<1x4x3x8xf32>, %v: tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32> {
  %0 = onnx.Transpose(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x4x3x8xf32>) -> tensor<1x4x8x3xf32>
  %1 = onnx.MatMul(%q, %0) : (tensor<1x4x3x8xf32>, tensor<1x4x8x3xf32>) -> tensor<1x4x3x3xf32>
  %cap = onnx.Constant() {value = dense<-2.0> : tensor<f32>} : () -> tensor<f32>
  %c0 = onnx.Div(%1, %cap) : (tensor<1x4x3x3xf32>, tensor<f32>) -> tensor<1x4x3x3xf32>
  %c1 = onnx.Tanh(%c0) : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %c2 = onnx.Mul(%c1, %cap) : (tensor<1x4x3x3xf32>, tensor<f32>) -> tensor<1x4x3x3xf32>
  %2 = onnx.Softmax(%c2) {axis = -1 : i64} : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %3 = onnx.MatMul(%2, %v) : (tensor<1x4x3x3xf32>, tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32>
  return %3 : tensor<1x4x3x8xf32>
}

// As many positions as heads, and keys [batch, positions, heads, size]: another transposition than that
// of the last two dimensions is no attention over them as they are.
// CHECK-LABEL: func.func @positions_before_heads
// CHECK-NOT: onnx.Attention
// CHECK: onnx.Softmax
func.func @positions_before_heads(%q: tensor<1x4x4x8xf32>, %k: tensor<1x4x4x8xf32>, %v: tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32> {
  %0 = onnx.Transpose(%k) {perm = array<i64: 0, 2, 3, 1>} : (tensor<1x4x4x8xf32>) -> tensor<1x4x8x4xf32>
  %1 = onnx.MatMul(%q, %0) : (tensor<1x4x4x8xf32>, tensor<1x4x8x4xf32>) -> tensor<1x4x4x4xf32>
  %2 = onnx.Softmax(%1) {axis = -1 : i64} : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  %3 = onnx.MatMul(%2, %v) : (tensor<1x4x4x4xf32>, tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
  return %3 : tensor<1x4x4x8xf32>
}

// Heads that a reshape cut out of positions are not those of the tensor before it.
// CHECK-LABEL: func.func @heads_of_positions
// CHECK-NOT: onnx.Attention(%arg0, %arg1,
// CHECK: return
func.func @heads_of_positions(%q: tensor<1x4x3x8xf32>, %k: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x8xf32>) -> tensor<1x4x3x8xf32> {
  %five = onnx.Constant() {value = dense<[1, 2, 1, 3, 8]> : tensor<5xi64>} : () -> tensor<5xi64>
  %wide = onnx.Constant() {value = dense<[1, 2, 2, 3, 8]> : tensor<5xi64>} : () -> tensor<5xi64>
  %four = onnx.Constant() {value = dense<[1, 4, 3, 8]> : tensor<4xi64>} : () -> tensor<4xi64>
  %k0 = onnx.Reshape(%k, %five) : (tensor<1x1x6x8xf32>, tensor<5xi64>) -> tensor<1x2x1x3x8xf32>
  %k1 = onnx.Expand(%k0, %wide) : (tensor<1x2x1x3x8xf32>, tensor<5xi64>) -> tensor<1x2x2x3x8xf32>
  %k2 = onnx.Reshape(%k1, %four) : (tensor<1x2x2x3x8xf32>, tensor<4xi64>) -> tensor<1x4x3x8xf32>
  %v0 = onnx.Reshape(%v, %five) : (tensor<1x1x6x8xf32>, tensor<5xi64>) -> tensor<1x2x1x3x8xf32>
  %v1 = onnx.Expand(%v0, %wide) : (tensor<1x2x1x3x8xf32>, tensor<5xi64>) -> tensor<1x2x2x3x8xf32>
  %v2 = onnx.Reshape(%v1, %four) : (tensor<1x2x2x3x8xf32>, tensor<4xi64>) -> tensor<1x4x3x8xf32>
  %0 = onnx.Transpose(%k2) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x4x3x8xf32>) -> tensor<1x4x8x3xf32>
  %1 = onnx.MatMul(%q, %0) : (tensor<1x4x3x8xf32>, tensor<1x4x8x3xf32>) -> tensor<1x4x3x3xf32>
  %2 = onnx.Softmax(%1) {axis = -1 : i64} : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %3 = onnx.MatMul(%2, %v2) : (tensor<1x4x3x3xf32>, tensor<1x4x3x8xf32>) -> tensor<1x4x3x8xf32>
  return %3 : tensor<1x4x3x8xf32>
}
