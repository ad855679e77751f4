// The raise passes over onnx. What they match and keep is passes/raise/Raise.h.
#ifndef INGOT_PASSES_RAISE_PASSES
#define INGOT_PASSES_RAISE_PASSES

include "mlir/Pass/PassBase.td"

class Raise_Pass<string flag> : Pass<flag, "::mlir::ModuleOp"> {
  let dependentDialects = ["::ingot::onnx::OnnxDialect"];
  let options = [Option<"explainFusion", "explain", "bool", "false",
                        "A remark for each pattern that was raised or left alone">];
  let statistics = [Statistic<"numRaised", "num-raised", "Patterns raised">];
}

def RaiseNormsPass : Raise_Pass<"raise-norms"> {
  let summary = "Make norms of their parts.";
  let description = [{
    com.microsoft's skip norms become Add and a norm where their statistics are not
    used. `weight * (x / sqrt(mean(x^2) + eps))` over the last dimension becomes
    RMSNormalization, the same of `x - mean(x)` LayerNormalization; `weight` may be a
    constant plus a number. Of weights of two dimensions, one row a head, a product
    stays, with a norm whose weights are ones.

    ```mlir
    %2 = onnx.Mul(%x, %x) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %3 = onnx.ReduceMean(%2, %axes) ...
    %6 = onnx.Div(%x, %root) ...
    %7 = onnx.Mul(%weight, %6) ...
    // becomes
    %7 = onnx.RMSNormalization(%x, %weight) {axis = -1 : i64, epsilon = 1.0e-5 : f32} ...
    ```
  }];
}

def RaiseRotaryPass : Raise_Pass<"raise-rotary"> {
  let summary = "Make rotary embeddings of their parts.";
  let description = [{
    `x * cos + concat(-x[second half], x[first half]) * sin` over four known dimensions
    becomes RotaryEmbedding, where both halves of the last dimension of `cos` and of
    `sin` are the same by construction; with neighbours in the place of halves, the
    interleaved one. Where x is the first columns of a tensor whose
    others are joined to the result again, the operator turns those columns only.

    ```mlir
    %5 = onnx.Mul(%x, %cos) ...
    %6 = onnx.Concat(%negated, %first) {axis = -1 : i64} ...
    %7 = onnx.Mul(%6, %sin) ...
    %8 = onnx.Add(%5, %7) ...
    // becomes
    %8 = onnx.RotaryEmbedding(%x, %half_cos, %half_sin, %none) ...
    ```
  }];
}

def RaiseGatedMlpPass : Raise_Pass<"raise-gated-mlp"> {
  let summary = "Make the activations of feed-forwards of their parts.";
  let description = [{
    `x * sigmoid(x)` becomes Swish; `x * 0.5 * (1 + erf(x / sqrt(2)))` and its tanh form
    become Gelu, in any order of the factors.

    ```mlir
    %1 = onnx.Sigmoid(%x) : (tensor<2xf32>) -> tensor<2xf32>
    %2 = onnx.Mul(%x, %1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    // becomes
    %2 = onnx.Swish(%x) {alpha = 1.0 : f32} : (tensor<2xf32>) -> tensor<2xf32>
    ```
  }];
}

def FuseAttentionPass : Raise_Pass<"fuse-attention"> {
  let summary = "Make attentions of their parts.";
  let description = [{
    `softmax(cap(q k^T * scale) + mask) v` over four known dimensions becomes Attention:
    scales on either side of the product, a soft cap by tanh, a mask that is added or
    chosen by, heads of keys and values repeated by Unsqueeze, Expand and Reshape, and
    a past that keys and values are concatenated to. Where one step is another, all
    stays.

    ```mlir
    %1 = onnx.MatMul(%q, %transposed) ...
    %2 = onnx.Mul(%1, %scale) ...
    %3 = onnx.Add(%2, %mask) ...
    %4 = onnx.Softmax(%3) {axis = -1 : i64} ...
    %5 = onnx.MatMul(%4, %v) ...
    // becomes
    %5, %key, %value, %scores = onnx.Attention(%q, %k, %v, %mask, ...) {scale = ...} ...
    ```
  }];
}

#endif
