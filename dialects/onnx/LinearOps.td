// Products, convolutions, pooling and reductions. The names of inputs,
// outputs and attributes are the standard's.
#ifndef INGOT_DIALECTS_ONNX_LINEAROPS
#define INGOT_DIALECTS_ONNX_LINEAROPS

include "dialects/onnx/Base.td"

def Onnx_MatMulOp : Onnx_Op<"MatMul", [9, 13],
    (ins Onnx_NumberTensor:$A, Onnx_NumberTensor:$B),
    (ins),
    (outs Onnx_Result:$Y)> {
  let summary = "The matrix product, as numpy.matmul.";
}

def Onnx_GemmOp : Onnx_Op<"Gemm", [11, 13],
    (ins Onnx_NumberTensor:$A, Onnx_NumberTensor:$B, Onnx_Maybe<Onnx_NumberTensor>:$C),
    (ins DefaultValuedAttr<F32Attr, "1.0f">:$alpha, DefaultValuedAttr<F32Attr,
         "1.0f">:$beta, DefaultValuedAttr<I64Attr, "0">:$transA,
         DefaultValuedAttr<I64Attr, "0">:$transB),
    (outs Onnx_Result:$Y)> {
  let summary = "alpha * A * B + beta * C.";
}

def Onnx_MatMulIntegerOp : Onnx_Op<"MatMulInteger", [10],
    (ins Onnx_IntTensor:$A, Onnx_IntTensor:$B, Onnx_Maybe<Onnx_IntTensor>:$a_zero_point, Onnx_Maybe<Onnx_IntTensor>:$b_zero_point),
    (ins),
    (outs Onnx_Result:$Y)> {
  let summary = "The product of 8-bit matrices less their zero points, in int32.";
}

def Onnx_MatMulNBitsOp : Onnx_Op<"MatMulNBits", [1],
    (ins Onnx_FloatTensor:$A, Onnx_IntTensor:$B, Onnx_FloatTensor:$scales, Onnx_Maybe<Onnx_Tensor>:$zero_points, Onnx_Maybe<Onnx_IntTensor>:$g_idx, Onnx_Maybe<Onnx_FloatTensor>:$bias),
    (ins I64Attr:$K, I64Attr:$N, DefaultValuedAttr<I64Attr, "4">:$bits,
         I64Attr:$block_size, DefaultValuedAttr<I64Attr, "0">:$accuracy_level),
    (outs Onnx_Result:$Y)> {
  let summary = "A times the transpose of a matrix kept in codes of few bits with a scale for each block of columns.";
  let domain = "com.microsoft";
}

def Onnx_EinsumOp : Onnx_Op<"Einsum", [12],
    (ins Variadic<Onnx_NumberTensor>:$Inputs),
    (ins StrAttr:$equation),
    (outs Onnx_Result:$Output)> {
  let summary = "A sum of products by a subscript equation.";
  let variadicInputs = true;
}

def Onnx_ConvOp : Onnx_Op<"Conv", [11, 22],
    (ins Onnx_FloatTensor:$X, Onnx_FloatTensor:$W, Onnx_Maybe<Onnx_FloatTensor>:$B),
    (ins DefaultValuedAttr<StrAttr, "\"NOTSET\"">:$auto_pad,
         OptionalAttr<DenseI64ArrayAttr>:$dilations,
         DefaultValuedAttr<I64Attr, "1">:$group,
         OptionalAttr<DenseI64ArrayAttr>:$kernel_shape,
         OptionalAttr<DenseI64ArrayAttr>:$pads,
         OptionalAttr<DenseI64ArrayAttr>:$strides),
    (outs Onnx_Result:$Y)> {
  let summary = "A convolution over any number of spatial dimensions.";
}

def Onnx_ConvTransposeOp : Onnx_Op<"ConvTranspose", [11, 22],
    (ins Onnx_FloatTensor:$X, Onnx_FloatTensor:$W, Onnx_Maybe<Onnx_FloatTensor>:$B),
    (ins DefaultValuedAttr<StrAttr, "\"NOTSET\"">:$auto_pad,
         OptionalAttr<DenseI64ArrayAttr>:$dilations,
         DefaultValuedAttr<I64Attr, "1">:$group,
         OptionalAttr<DenseI64ArrayAttr>:$kernel_shape,
         OptionalAttr<DenseI64ArrayAttr>:$output_padding,
         OptionalAttr<DenseI64ArrayAttr>:$output_shape,
         OptionalAttr<DenseI64ArrayAttr>:$pads,
         OptionalAttr<DenseI64ArrayAttr>:$strides),
    (outs Onnx_Result:$Y)> {
  let summary = "The transpose of a convolution.";
}

def Onnx_MaxPoolOp : Onnx_Op<"MaxPool", [11, 12, 22],
    (ins Onnx_NumberTensor:$X),
    (ins DenseI64ArrayAttr:$kernel_shape, DefaultValuedAttr<StrAttr,
         "\"NOTSET\"">:$auto_pad, DefaultValuedAttr<I64Attr, "0">:$ceil_mode,
         OptionalAttr<DenseI64ArrayAttr>:$dilations,
         OptionalAttr<DenseI64ArrayAttr>:$pads, DefaultValuedAttr<I64Attr,
         "0">:$storage_order, OptionalAttr<DenseI64ArrayAttr>:$strides),
    (outs Onnx_Result:$Y, Onnx_Result:$Indices)> {
  let summary = "The greatest element of each window.";
}

def Onnx_AveragePoolOp : Onnx_Op<"AveragePool", [11, 19, 22],
    (ins Onnx_FloatTensor:$X),
    (ins DenseI64ArrayAttr:$kernel_shape, DefaultValuedAttr<StrAttr,
         "\"NOTSET\"">:$auto_pad, DefaultValuedAttr<I64Attr, "0">:$ceil_mode,
         DefaultValuedAttr<I64Attr, "0">:$count_include_pad,
         OptionalAttr<DenseI64ArrayAttr>:$dilations,
         OptionalAttr<DenseI64ArrayAttr>:$pads,
         OptionalAttr<DenseI64ArrayAttr>:$strides),
    (outs Onnx_Result:$Y)> {
  let summary = "The mean of each window.";
}

def Onnx_LpPoolOp : Onnx_Op<"LpPool", [11, 18, 22],
    (ins Onnx_FloatTensor:$X),
    (ins DenseI64ArrayAttr:$kernel_shape, DefaultValuedAttr<StrAttr,
         "\"NOTSET\"">:$auto_pad, DefaultValuedAttr<I64Attr, "0">:$ceil_mode,
         OptionalAttr<DenseI64ArrayAttr>:$dilations,
         DefaultValuedAttr<I64Attr, "2">:$p,
         OptionalAttr<DenseI64ArrayAttr>:$pads,
         OptionalAttr<DenseI64ArrayAttr>:$strides),
    (outs Onnx_Result:$Y)> {
  let summary = "The p-norm of each window.";
}

def Onnx_GlobalAveragePoolOp : Onnx_Op<"GlobalAveragePool", [1, 22],
    (ins Onnx_FloatTensor:$X),
    (ins),
    (outs Onnx_Result:$Y)> {
  let summary = "The mean of all spatial elements.";
}

def Onnx_GlobalMaxPoolOp : Onnx_Op<"GlobalMaxPool", [1, 22],
    (ins Onnx_FloatTensor:$X),
    (ins),
    (outs Onnx_Result:$Y)> {
  let summary = "The greatest of all spatial elements.";
}

def Onnx_ReduceSumOp : Onnx_Op<"ReduceSum", [11, 13],
    (ins Onnx_NumberTensor:$data, Onnx_Maybe<Onnx_IntTensor>:$axes),
    (ins DefaultValuedAttr<I64Attr, "1">:$keepdims, DefaultValuedAttr<I64Attr,
         "0">:$noop_with_empty_axes),
    (outs Onnx_Result:$reduced)> {
  let summary = "The sum over axes.";
}

def Onnx_ReduceMeanOp : Onnx_Op<"ReduceMean", [11, 13, 18],
    (ins Onnx_NumberTensor:$data, Onnx_Maybe<Onnx_IntTensor>:$axes),
    (ins DefaultValuedAttr<I64Attr, "1">:$keepdims, DefaultValuedAttr<I64Attr,
         "0">:$noop_with_empty_axes),
    (outs Onnx_Result:$reduced)> {
  let summary = "The mean over axes.";
}

def Onnx_ReduceMaxOp : Onnx_Op<"ReduceMax", [11, 12, 13, 18, 20],
    (ins Onnx_Tensor:$data, Onnx_Maybe<Onnx_IntTensor>:$axes),
    (ins DefaultValuedAttr<I64Attr, "1">:$keepdims, DefaultValuedAttr<I64Attr,
         "0">:$noop_with_empty_axes),
    (outs Onnx_Result:$reduced)> {
  let summary = "The greatest element over axes.";
}

def Onnx_ReduceMinOp : Onnx_Op<"ReduceMin", [11, 12, 13, 18, 20],
    (ins Onnx_Tensor:$data, Onnx_Maybe<Onnx_IntTensor>:$axes),
    (ins DefaultValuedAttr<I64Attr, "1">:$keepdims, DefaultValuedAttr<I64Attr,
         "0">:$noop_with_empty_axes),
    (outs Onnx_Result:$reduced)> {
  let summary = "The least element over axes.";
}

def Onnx_ReduceProdOp : Onnx_Op<"ReduceProd", [11, 13, 18],
    (ins Onnx_NumberTensor:$data, Onnx_Maybe<Onnx_IntTensor>:$axes),
    (ins DefaultValuedAttr<I64Attr, "1">:$keepdims, DefaultValuedAttr<I64Attr,
         "0">:$noop_with_empty_axes),
    (outs Onnx_Result:$reduced)> {
  let summary = "The product over axes.";
}

def Onnx_ReduceL1Op : Onnx_Op<"ReduceL1", [11, 13, 18],
    (ins Onnx_NumberTensor:$data, Onnx_Maybe<Onnx_IntTensor>:$axes),
    (ins DefaultValuedAttr<I64Attr, "1">:$keepdims, DefaultValuedAttr<I64Attr,
         "0">:$noop_with_empty_axes),
    (outs Onnx_Result:$reduced)> {
  let summary = "The sum of absolute values over axes.";
}

def Onnx_ReduceL2Op : Onnx_Op<"ReduceL2", [11, 13, 18],
    (ins Onnx_NumberTensor:$data, Onnx_Maybe<Onnx_IntTensor>:$axes),
    (ins DefaultValuedAttr<I64Attr, "1">:$keepdims, DefaultValuedAttr<I64Attr,
         "0">:$noop_with_empty_axes),
    (outs Onnx_Result:$reduced)> {
  let summary = "The root of the sum of squares over axes.";
}

def Onnx_ReduceLogSumOp : Onnx_Op<"ReduceLogSum", [11, 13, 18],
    (ins Onnx_NumberTensor:$data, Onnx_Maybe<Onnx_IntTensor>:$axes),
    (ins DefaultValuedAttr<I64Attr, "1">:$keepdims, DefaultValuedAttr<I64Attr,
         "0">:$noop_with_empty_axes),
    (outs Onnx_Result:$reduced)> {
  let summary = "The logarithm of the sum over axes.";
}

def Onnx_ReduceLogSumExpOp : Onnx_Op<"ReduceLogSumExp", [11, 13, 18],
    (ins Onnx_NumberTensor:$data, Onnx_Maybe<Onnx_IntTensor>:$axes),
    (ins DefaultValuedAttr<I64Attr, "1">:$keepdims, DefaultValuedAttr<I64Attr,
         "0">:$noop_with_empty_axes),
    (outs Onnx_Result:$reduced)> {
  let summary = "The logarithm of the sum of exponentials over axes.";
}

def Onnx_ReduceSumSquareOp : Onnx_Op<"ReduceSumSquare", [11, 13, 18],
    (ins Onnx_NumberTensor:$data, Onnx_Maybe<Onnx_IntTensor>:$axes),
    (ins DefaultValuedAttr<I64Attr, "1">:$keepdims, DefaultValuedAttr<I64Attr,
         "0">:$noop_with_empty_axes),
    (outs Onnx_Result:$reduced)> {
  let summary = "The sum of squares over axes.";
}

def Onnx_ArgMaxOp : Onnx_Op<"ArgMax", [11, 12, 13],
    (ins Onnx_NumberTensor:$data),
    (ins DefaultValuedAttr<I64Attr, "0">:$axis, DefaultValuedAttr<I64Attr,
         "1">:$keepdims, DefaultValuedAttr<I64Attr, "0">:$select_last_index),
    (outs Onnx_Result:$reduced)> {
  let summary = "The index of the greatest element along an axis.";
}

def Onnx_ArgMinOp : Onnx_Op<"ArgMin", [11, 12, 13],
    (ins Onnx_NumberTensor:$data),
    (ins DefaultValuedAttr<I64Attr, "0">:$axis, DefaultValuedAttr<I64Attr,
         "1">:$keepdims, DefaultValuedAttr<I64Attr, "0">:$select_last_index),
    (outs Onnx_Result:$reduced)> {
  let summary = "The index of the least element along an axis.";
}

def Onnx_CumSumOp : Onnx_Op<"CumSum", [11, 14],
    (ins Onnx_NumberTensor:$x, Onnx_IntTensor:$axis),
    (ins DefaultValuedAttr<I64Attr, "0">:$exclusive,
         DefaultValuedAttr<I64Attr, "0">:$reverse),
    (outs Onnx_Result:$y)> {
  let summary = "Running sums along an axis.";
}

def Onnx_CumProdOp : Onnx_Op<"CumProd", [26],
    (ins Onnx_NumberTensor:$x, Onnx_IntTensor:$axis),
    (ins DefaultValuedAttr<I64Attr, "0">:$exclusive,
         DefaultValuedAttr<I64Attr, "0">:$reverse),
    (outs Onnx_Result:$y)> {
  let summary = "Running products along an axis.";
}

def Onnx_TopKOp : Onnx_Op<"TopK", [11, 24],
    (ins Onnx_NumberTensor:$X, Onnx_IntTensor:$K),
    (ins DefaultValuedAttr<I64Attr, "-1">:$axis, DefaultValuedAttr<I64Attr,
         "1">:$largest, DefaultValuedAttr<I64Attr, "1">:$sorted),
    (outs Onnx_Result:$Values, Onnx_Result:$Indices)> {
  let summary = "The K greatest, or least, elements along an axis and their indices.";
}

#endif
