// Operators that move elements, or tell or change a shape. The names of inputs,
// outputs and attributes are the standard's.
#ifndef INGOT_DIALECTS_ONNX_SHAPEOPS
#define INGOT_DIALECTS_ONNX_SHAPEOPS

include "dialects/onnx/Base.td"

def Onnx_ConstantOp : Onnx_Op<"Constant", [11, 12, 13, 19, 21, 23, 24, 25],
    (ins),
    (ins ElementsAttr:$value),
    (outs Onnx_Result:$output)> {
  let summary = "A tensor that is part of the model.";
}

def Onnx_WeightOp : Onnx_Op<"Weight", [],
    (ins),
    (ins StrAttr:$name, I64Attr:$source, I64Attr:$offset, I64Attr:$size),
    (outs Onnx_Result:$output)> {
  let summary = "Values of an initializer that stay in a source file.";
}

def Onnx_NoneOp : Onnx_Op<"None", [],
    (ins),
    (ins),
    (outs Onnx_Result:$output)> {
  let summary = "An input or output that is absent.";
}

def Onnx_ShapeOp : Onnx_Op<"Shape", [1, 13, 15, 19, 21, 23, 24, 25],
    (ins Onnx_Tensor:$data),
    (ins DefaultValuedAttr<I64Attr, "0">:$start, OptionalAttr<I64Attr>:$end),
    (outs Onnx_Result:$shape)> {
  let summary = "The dimensions [start, end) of the input.";
}

def Onnx_SizeOp : Onnx_Op<"Size", [1, 13, 19, 21, 23, 24, 25],
    (ins Onnx_Tensor:$data),
    (ins),
    (outs Onnx_Result:$size)> {
  let summary = "How many elements the input has.";
}

def Onnx_ReshapeOp : Onnx_Op<"Reshape", [5, 13, 14, 19, 21, 23, 24, 25],
    (ins Onnx_Tensor:$data, Onnx_IntTensor:$shape),
    (ins DefaultValuedAttr<I64Attr, "0">:$allowzero),
    (outs Onnx_Result:$reshaped)> {
  let summary = "The same elements in another shape; -1 is what is left, 0 keeps a dimension unless allowzero.";
}

def Onnx_FlattenOp : Onnx_Op<"Flatten", [11, 13, 21, 23, 24, 25],
    (ins Onnx_Tensor:$input),
    (ins DefaultValuedAttr<I64Attr, "1">:$axis),
    (outs Onnx_Result:$output)> {
  let summary = "A matrix: the dimensions before axis, and the others.";
}

def Onnx_SqueezeOp : Onnx_Op<"Squeeze", [11, 13, 21, 23, 24, 25],
    (ins Onnx_Tensor:$data, Onnx_Maybe<Onnx_IntTensor>:$axes),
    (ins),
    (outs Onnx_Result:$squeezed)> {
  let summary = "Without the dimensions named by axes, or without all of 1.";
}

def Onnx_UnsqueezeOp : Onnx_Op<"Unsqueeze", [11, 13, 21, 23, 24, 25],
    (ins Onnx_Tensor:$data, Onnx_IntTensor:$axes),
    (ins),
    (outs Onnx_Result:$expanded)> {
  let summary = "With a dimension of 1 at each of axes.";
}

def Onnx_TransposeOp : Onnx_Op<"Transpose", [1, 13, 21, 23, 24, 25],
    (ins Onnx_Tensor:$data),
    (ins OptionalAttr<DenseI64ArrayAttr>:$perm),
    (outs Onnx_Result:$transposed)> {
  let summary = "Dimension i is the input's perm[i]; by default they are reversed.";
}

def Onnx_ConcatOp : Onnx_Op<"Concat", [11, 13],
    (ins Variadic<Onnx_Tensor>:$inputs),
    (ins I64Attr:$axis),
    (outs Onnx_Result:$concat_result)> {
  let summary = "The inputs one after another along an axis.";
  let variadicInputs = true;
}

def Onnx_SplitOp : Onnx_Op<"Split", [11, 13, 18],
    (ins Onnx_Tensor:$input, Onnx_Maybe<Onnx_IntTensor>:$split),
    (ins DefaultValuedAttr<I64Attr, "0">:$axis,
         OptionalAttr<I64Attr>:$num_outputs),
    (outs Variadic<Onnx_Result>:$outputs)> {
  let summary = "Parts along an axis, of given or of equal sizes.";
  let variadicOutputs = true;
}

def Onnx_SliceOp : Onnx_Op<"Slice", [11, 13],
    (ins Onnx_Tensor:$data, Onnx_IntTensor:$starts, Onnx_IntTensor:$ends, Onnx_Maybe<Onnx_IntTensor>:$axes, Onnx_Maybe<Onnx_IntTensor>:$steps),
    (ins),
    (outs Onnx_Result:$output)> {
  let summary = "Elements from start to end by a step, for each of axes.";
}

def Onnx_GatherOp : Onnx_Op<"Gather", [11, 13],
    (ins Onnx_Tensor:$data, Onnx_IntTensor:$indices),
    (ins DefaultValuedAttr<I64Attr, "0">:$axis),
    (outs Onnx_Result:$output)> {
  let summary = "Slices along an axis by index; negative ones count from the end.";
}

def Onnx_GatherElementsOp : Onnx_Op<"GatherElements", [11, 13],
    (ins Onnx_Tensor:$data, Onnx_IntTensor:$indices),
    (ins DefaultValuedAttr<I64Attr, "0">:$axis),
    (outs Onnx_Result:$output)> {
  let summary = "An element for each index, along an axis.";
}

def Onnx_GatherNDOp : Onnx_Op<"GatherND", [11, 12, 13],
    (ins Onnx_Tensor:$data, Onnx_IntTensor:$indices),
    (ins DefaultValuedAttr<I64Attr, "0">:$batch_dims),
    (outs Onnx_Result:$output)> {
  let summary = "Slices by index tuples.";
}

def Onnx_ScatterElementsOp : Onnx_Op<"ScatterElements", [11, 13, 16, 18],
    (ins Onnx_Tensor:$data, Onnx_IntTensor:$indices, Onnx_Tensor:$updates),
    (ins DefaultValuedAttr<I64Attr, "0">:$axis, DefaultValuedAttr<StrAttr,
         "\"none\"">:$reduction),
    (outs Onnx_Result:$output)> {
  let summary = "data with updates at indices along an axis.";
}

def Onnx_ScatterNDOp : Onnx_Op<"ScatterND", [11, 13, 16, 18],
    (ins Onnx_Tensor:$data, Onnx_IntTensor:$indices, Onnx_Tensor:$updates),
    (ins DefaultValuedAttr<StrAttr, "\"none\"">:$reduction),
    (outs Onnx_Result:$output)> {
  let summary = "data with updates at index tuples.";
}

def Onnx_ExpandOp : Onnx_Op<"Expand", [8, 13],
    (ins Onnx_Tensor:$input, Onnx_IntTensor:$shape),
    (ins),
    (outs Onnx_Result:$output)> {
  let summary = "Broadcast to a shape.";
}

def Onnx_TileOp : Onnx_Op<"Tile", [6, 13],
    (ins Onnx_Tensor:$input, Onnx_IntTensor:$repeats),
    (ins),
    (outs Onnx_Result:$output)> {
  let summary = "Repeated along each dimension.";
}

def Onnx_PadOp : Onnx_Op<"Pad", [11, 13, 18, 19, 21, 23, 24, 25],
    (ins Onnx_Tensor:$data, Onnx_IntTensor:$pads, Onnx_Maybe<Onnx_Tensor>:$constant_value, Onnx_Maybe<Onnx_IntTensor>:$axes),
    (ins DefaultValuedAttr<StrAttr, "\"constant\"">:$mode),
    (outs Onnx_Result:$output)> {
  let summary = "With elements before and after: a constant, or mirrored, or the edge, or wrapped.";
}

def Onnx_ConstantOfShapeOp : Onnx_Op<"ConstantOfShape", [9, 20, 21, 23, 24, 25],
    (ins Onnx_IntTensor:$input),
    (ins ElementsAttr:$value),
    (outs Onnx_Result:$output)> {
  let summary = "One value in a shape.";
}

def Onnx_RangeOp : Onnx_Op<"Range", [11],
    (ins Onnx_NumberTensor:$start, Onnx_NumberTensor:$limit, Onnx_NumberTensor:$delta),
    (ins),
    (outs Onnx_Result:$output)> {
  let summary = "start, start + delta and so on, below limit.";
}

def Onnx_TriluOp : Onnx_Op<"Trilu", [14],
    (ins Onnx_Tensor:$input, Onnx_Maybe<Onnx_IntTensor>:$k),
    (ins DefaultValuedAttr<I64Attr, "1">:$upper),
    (outs Onnx_Result:$output)> {
  let summary = "The part of each matrix above, or below, its k-th diagonal; zeros elsewhere.";
}

def Onnx_DepthToSpaceOp : Onnx_Op<"DepthToSpace", [11, 13],
    (ins Onnx_Tensor:$input),
    (ins I64Attr:$blocksize, DefaultValuedAttr<StrAttr, "\"DCR\"">:$mode),
    (outs Onnx_Result:$output)> {
  let summary = "Blocks of channels become blocks of pixels.";
}

def Onnx_SpaceToDepthOp : Onnx_Op<"SpaceToDepth", [1, 13],
    (ins Onnx_Tensor:$input),
    (ins I64Attr:$blocksize),
    (outs Onnx_Result:$output)> {
  let summary = "Blocks of pixels become blocks of channels.";
}

def Onnx_EyeLikeOp : Onnx_Op<"EyeLike", [9, 22],
    (ins Onnx_Tensor:$input),
    (ins OptionalAttr<TypeAttr>:$dtype, DefaultValuedAttr<I64Attr, "0">:$k),
    (outs Onnx_Result:$output)> {
  let summary = "Ones on the k-th diagonal of a matrix.";
}

def Onnx_OneHotOp : Onnx_Op<"OneHot", [11],
    (ins Onnx_NumberTensor:$indices, Onnx_NumberTensor:$depth, Onnx_Tensor:$values),
    (ins DefaultValuedAttr<I64Attr, "-1">:$axis),
    (outs Onnx_Result:$output)> {
  let summary = "A new axis that holds the second value at the index, else the first.";
}

def Onnx_ReverseSequenceOp : Onnx_Op<"ReverseSequence", [10],
    (ins Onnx_Tensor:$input, Onnx_IntTensor:$sequence_lens),
    (ins DefaultValuedAttr<I64Attr, "1">:$batch_axis,
         DefaultValuedAttr<I64Attr, "0">:$time_axis),
    (outs Onnx_Result:$Y)> {
  let summary = "The first elements of each sequence in reverse.";
}

def Onnx_TensorScatterOp : Onnx_Op<"TensorScatter", [24],
    (ins Onnx_Tensor:$past_cache, Onnx_Tensor:$update, Onnx_Maybe<Onnx_IntTensor>:$write_indices),
    (ins DefaultValuedAttr<I64Attr, "-2">:$axis, DefaultValuedAttr<StrAttr,
         "\"linear\"">:$mode),
    (outs Onnx_Result:$present_cache)> {
  let summary = "A cache with an update written at each row's index.";
}

def Onnx_IfOp : Onnx_Op<"If", [11, 13, 16, 19, 21, 23, 24, 25],
    (ins Onnx_BoolTensor:$cond),
    (ins),
    (outs Variadic<Onnx_Result>:$outputs), []> {
  let summary = "One of two graphs, by a condition.";
  let variadicOutputs = true;
  let regions = (region SizedRegion<1>:$then_branch, SizedRegion<1>:$else_branch);
}

def Onnx_YieldOp : Op<Onnx_Dialect, "Yield", [Pure, Terminator, HasParent<"IfOp">]> {
  let summary = "The outputs of a branch.";
  let arguments = (ins Variadic<Onnx_Tensor>:$values);
}

#endif
