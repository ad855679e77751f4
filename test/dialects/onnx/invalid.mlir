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

// -----

// A kernel that the weights do not have.
func.func @kernel(%x: tensor<1x1x8xf32>, %w: tensor<1x1x2xf32>) -> tensor<1x1x5xf32> {
  %none = onnx.None() : () -> none
  // expected-error @+1 {{kernel_shape is [4], but the weights are [1, 1, 2]}}
  %0 = onnx.Conv(%x, %w, %none) {kernel_shape = array<i64: 4>} : (tensor<1x1x8xf32>, tensor<1x1x2xf32>, none) -> tensor<1x1x5xf32>
  return %0 : tensor<1x1x5xf32>
}

// -----

// A bias of fewer channels.
func.func @bias(%x: tensor<1x1x8xf32>, %w: tensor<3x1x2xf32>, %b: tensor<2xf32>) -> tensor<1x3x7xf32> {
  // expected-error @+1 {{B is [2], expected [3]}}
  %0 = onnx.Conv(%x, %w, %b) : (tensor<1x1x8xf32>, tensor<3x1x2xf32>, tensor<2xf32>) -> tensor<1x3x7xf32>
  return %0 : tensor<1x3x7xf32>
}

// -----

// A slope broadcasts to the input, not the other way.
func.func @slope(%x: tensor<1x3xf32>, %s: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{slope is [2, 3], which does not broadcast to [1, 3]}}
  %0 = onnx.PRelu(%x, %s) : (tensor<1x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// Words that an attribute does not know.
func.func @approximate(%x: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{approximate "sigmoid", expected none or tanh}}
  %0 = onnx.Gelu(%x) {approximate = "sigmoid"} : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @direction(%x: tensor<3xui8>) -> tensor<3xui8> {
  // expected-error @+1 {{direction "UP", expected LEFT or RIGHT}}
  %0 = onnx.BitShift(%x, %x) {direction = "UP"} : (tensor<3xui8>, tensor<3xui8>) -> tensor<3xui8>
  return %0 : tensor<3xui8>
}

// -----

func.func @blocks(%x: tensor<1x4x1x1xf32>) -> tensor<1x1x2x2xf32> {
  // expected-error @+1 {{mode "RCD", expected DCR or CRD}}
  %0 = onnx.DepthToSpace(%x) {blocksize = 2 : i64, mode = "RCD"} : (tensor<1x4x1x1xf32>) -> tensor<1x1x2x2xf32>
  return %0 : tensor<1x1x2x2xf32>
}

// -----

func.func @padMode(%x: tensor<3xf32>, %p: tensor<2xi64>) -> tensor<?xf32> {
  %none = onnx.None() : () -> none
  // expected-error @+1 {{mode "mirror", expected constant, reflect, edge or wrap}}
  %0 = onnx.Pad(%x, %p, %none, %none) {mode = "mirror"} : (tensor<3xf32>, tensor<2xi64>, none, none) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A value to pad with is one, and of the data's type.
func.func @padValue(%x: tensor<3xf32>, %p: tensor<2xi64>, %v: tensor<2xf32>) -> tensor<?xf32> {
  %none = onnx.None() : () -> none
  // expected-error @+1 {{constant_value is [2], expected one element}}
  %0 = onnx.Pad(%x, %p, %v, %none) : (tensor<3xf32>, tensor<2xi64>, tensor<2xf32>, none) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func @constantOfShape(%s: tensor<1xi64>) -> tensor<?xf32> {
  // expected-error @+1 {{value is [0], expected one element}}
  %0 = onnx.ConstantOfShape(%s) {value = dense<> : tensor<0xf32>} : (tensor<1xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Indices of lines that the data does not have.
func.func @gatherElements(%x: tensor<2x3xf32>, %i: tensor<4x1xi64>) -> tensor<4x1xf32> {
  // expected-error @+1 {{indices [4, 1] are not within [2, 3]}}
  %0 = onnx.GatherElements(%x, %i) {axis = 1 : i64} : (tensor<2x3xf32>, tensor<4x1xi64>) -> tensor<4x1xf32>
  return %0 : tensor<4x1xf32>
}

// -----

func.func @gatherNd(%x: tensor<2x3xf32>, %i: tensor<4x1xi64>) -> tensor<4xf32> {
  // expected-error @+1 {{data [2, 3] and indices [4, 1] are of different batches}}
  %0 = onnx.GatherND(%x, %i) {batch_dims = 1 : i64} : (tensor<2x3xf32>, tensor<4x1xi64>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @scatterElements(%x: tensor<2x3xf32>, %i: tensor<1x3xi64>, %u: tensor<1x2xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{updates is [1, 2], expected [1, 3]}}
  %0 = onnx.ScatterElements(%x, %i, %u) : (tensor<2x3xf32>, tensor<1x3xi64>, tensor<1x2xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// Rows of an update that are longer than those of the data.
func.func @scatterNd(%x: tensor<2x3xf32>, %i: tensor<1x1xi64>, %u: tensor<1x5xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{updates is [1, 5], expected [1, 3]}}
  %0 = onnx.ScatterND(%x, %i, %u) : (tensor<2x3xf32>, tensor<1x1xi64>, tensor<1x5xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

func.func @scatterTuple(%x: tensor<2xf32>, %i: tensor<1x2xi64>, %u: tensor<1xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{index tuples of 2}}
  %0 = onnx.ScatterND(%x, %i, %u) : (tensor<2xf32>, tensor<1x2xi64>, tensor<1xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// More heads in an update than the cache has.
func.func @tensorScatter(%x: tensor<1x2x4x3xf32>, %u: tensor<1x5x1x3xf32>) -> tensor<1x2x4x3xf32> {
  %none = onnx.None() : () -> none
  // expected-error @+1 {{update is [1, 5, 1, 3], expected [1, 2, ?, 3]}}
  %0 = onnx.TensorScatter(%x, %u, %none) : (tensor<1x2x4x3xf32>, tensor<1x5x1x3xf32>, none) -> tensor<1x2x4x3xf32>
  return %0 : tensor<1x2x4x3xf32>
}

// -----

func.func @tensorScatterLength(%x: tensor<1x2x4x3xf32>, %u: tensor<1x2x6x3xf32>) -> tensor<1x2x4x3xf32> {
  %none = onnx.None() : () -> none
  // expected-error @+1 {{an update of 6 positions for a cache of 4}}
  %0 = onnx.TensorScatter(%x, %u, %none) : (tensor<1x2x4x3xf32>, tensor<1x2x6x3xf32>, none) -> tensor<1x2x4x3xf32>
  return %0 : tensor<1x2x4x3xf32>
}

// -----

func.func @reverseSequence(%x: tensor<4x2xf32>, %n: tensor<3xi64>) -> tensor<4x2xf32> {
  // expected-error @+1 {{sequence_lens is [3], expected [2]}}
  %0 = onnx.ReverseSequence(%x, %n) : (tensor<4x2xf32>, tensor<3xi64>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

func.func @reverseTime(%x: tensor<4xf32>, %n: tensor<4xi64>) -> tensor<4xf32> {
  // expected-error @+1 {{expected a matrix or more, with time_axis and batch_axis 0 and 1}}
  %0 = onnx.ReverseSequence(%x, %n) : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @oneHot(%i: tensor<2xi64>, %d: tensor<i64>, %v: tensor<1xf32>) -> tensor<2x?xf32> {
  // expected-error @+1 {{values is [1], expected [2]}}
  %0 = onnx.OneHot(%i, %d, %v) : (tensor<2xi64>, tensor<i64>, tensor<1xf32>) -> tensor<2x?xf32>
  return %0 : tensor<2x?xf32>
}

// -----

// A scale is not larger than what it scales.
func.func @layerNorm(%x: tensor<2x3xf32>, %s: tensor<4xf32>) -> tensor<2x3xf32> {
  %none = onnx.None() : () -> none
  // expected-error @+1 {{Scale is [4], which does not broadcast to [2, 3]}}
  %0:3 = onnx.LayerNormalization(%x, %s, %none) : (tensor<2x3xf32>, tensor<4xf32>, none) -> (tensor<2x3xf32>, none, none)
  return %0#0 : tensor<2x3xf32>
}

// -----

// Statistics in less than float32 of float32.
func.func @stash(%x: tensor<2x3xf32>, %s: tensor<3xf32>) -> tensor<2x3xf32> {
  %none = onnx.None() : () -> none
  // expected-error @+1 {{stash_type 16, expected 1}}
  %0:3 = onnx.LayerNormalization(%x, %s, %none) {stash_type = 16 : i64} : (tensor<2x3xf32>, tensor<3xf32>, none) -> (tensor<2x3xf32>, none, none)
  return %0#0 : tensor<2x3xf32>
}

// -----

func.func @groupStash(%x: tensor<2x4x3xf16>, %s: tensor<4xf16>) -> tensor<2x4x3xf16> {
  // expected-error @+1 {{stash_type 11, expected 1 or 10, the type of X}}
  %0 = onnx.GroupNormalization(%x, %s, %s) {num_groups = 2 : i64, stash_type = 11 : i64} : (tensor<2x4x3xf16>, tensor<4xf16>, tensor<4xf16>) -> tensor<2x4x3xf16>
  return %0 : tensor<2x4x3xf16>
}

// -----

func.func @channels(%x: tensor<2x4x3xf32>, %s: tensor<3xf32>) -> tensor<2x4x3xf32> {
  // expected-error @+1 {{input 1 is [3], expected [4]}}
  %0 = onnx.InstanceNormalization(%x, %s, %s) : (tensor<2x4x3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x4x3xf32>
  return %0 : tensor<2x4x3xf32>
}

// -----

// A norm along an axis of a scalar.
func.func @lpNorm(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{axis -1 is outside a tensor of rank 0}}
  %0 = onnx.LpNormalization(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @meanVariance(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{axis 1 is named twice}}
  %0 = onnx.MeanVarianceNormalization(%x) {axes = array<i64: 1, -1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// Keys of fewer columns than the queries.
func.func @keys(%q: tensor<1x2x3x8xf32>, %k: tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  %none = onnx.None() : () -> none
  // expected-error @+1 {{Q, K and V do not go together: [1, 2, 3, 8], [1, 2, 3, 4], [1, 2, 3, 4]}}
  %0:4 = onnx.Attention(%q, %k, %k, %none, %none, %none, %none) : (tensor<1x2x3x8xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, none, none, none, none) -> (tensor<1x2x3x4xf32>, none, none, none)
  return %0#0 : tensor<1x2x3x4xf32>
}

// -----

// A past of fewer heads.
func.func @past(%q: tensor<1x2x3x8xf32>, %p: tensor<1x1x5x8xf32>) -> tensor<1x2x3x8xf32> {
  %none = onnx.None() : () -> none
  // expected-error @+1 {{past_key is [1, 1, 5, 8], expected [1, 2, ?, 8]}}
  %0:4 = onnx.Attention(%q, %q, %q, %none, %p, %p, %none) : (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, none, tensor<1x1x5x8xf32>, tensor<1x1x5x8xf32>, none) -> (tensor<1x2x3x8xf32>, none, none, none)
  return %0#0 : tensor<1x2x3x8xf32>
}

// -----

// Heads side by side: keys as wide as the queries, a bias for all three.
func.func @multiHead(%q: tensor<1x3x8xf32>, %k: tensor<1x3x4xf32>) -> tensor<1x3x4xf32> {
  %none = onnx.None() : () -> none
  // expected-error @+1 {{key is [1, 3, 4], expected [1, ?, 8]}}
  %0:3 = onnx.MultiHeadAttention(%q, %k, %k, %none, %none, %none, %none, %none) {num_heads = 2 : i64} : (tensor<1x3x8xf32>, tensor<1x3x4xf32>, tensor<1x3x4xf32>, none, none, none, none, none) -> (tensor<1x3x4xf32>, none, none)
  return %0#0 : tensor<1x3x4xf32>
}

// -----

func.func @multiHeadBias(%q: tensor<1x3x8xf32>, %b: tensor<8xf32>) -> tensor<1x3x8xf32> {
  %none = onnx.None() : () -> none
  // expected-error @+1 {{bias is [8], expected [24]}}
  %0:3 = onnx.MultiHeadAttention(%q, %q, %q, %b, %none, %none, %none, %none) {num_heads = 2 : i64} : (tensor<1x3x8xf32>, tensor<1x3x8xf32>, tensor<1x3x8xf32>, tensor<8xf32>, none, none, none, none) -> (tensor<1x3x8xf32>, none, none)
  return %0#0 : tensor<1x3x8xf32>
}

// -----

// A key that has other heads than the operator says.
func.func @grouped(%q: tensor<1x3x8xf32>, %k: tensor<1x3x2xf32>, %n: tensor<1xi32>) -> tensor<1x3x8xf32> {
  %none = onnx.None() : () -> none
  // expected-error @+1 {{key is [1, 3, 2], expected [1, 3, 4]}}
  %0:3 = onnx.GroupQueryAttention(%q, %k, %k, %none, %none, %n, %n, %none, %none, %none, %none, %none) {num_heads = 2 : i64, kv_num_heads = 1 : i64} : (tensor<1x3x8xf32>, tensor<1x3x2xf32>, tensor<1x3x2xf32>, none, none, tensor<1xi32>, tensor<1xi32>, none, none, none, none, none) -> (tensor<1x3x8xf32>, none, none)
  return %0#0 : tensor<1x3x8xf32>
}

// -----

// Angles for fewer positions than there are.
func.func @rotary(%x: tensor<1x2x5x4xf32>, %c: tensor<1x3x2xf32>) -> tensor<1x2x5x4xf32> {
  %none = onnx.None() : () -> none
  // expected-error @+1 {{cos_cache is [1, 3, 2], which does not broadcast to [1, 5, 2]}}
  %0 = onnx.RotaryEmbedding(%x, %c, %c, %none) : (tensor<1x2x5x4xf32>, tensor<1x3x2xf32>, tensor<1x3x2xf32>, none) -> tensor<1x2x5x4xf32>
  return %0 : tensor<1x2x5x4xf32>
}

// -----

// An equation whose output has a letter twice, or loses the ellipsis.
func.func @einsum(%x: tensor<3xf32>) -> tensor<3x3xf32> {
  // expected-error @+1 {{the output names a letter twice}}
  %0 = onnx.Einsum(%x) {equation = "i->ii"} : (tensor<3xf32>) -> tensor<3x3xf32>
  return %0 : tensor<3x3xf32>
}

// -----

func.func @ellipsis(%x: tensor<2x3xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{the output leaves out the dimensions of "..."}}
  %0 = onnx.Einsum(%x) {equation = "...i->i"} : (tensor<2x3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
