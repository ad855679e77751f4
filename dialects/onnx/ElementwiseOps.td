// Operators that work on each element, with numpy broadcasting where there are several inputs. The names of inputs,
// outputs and attributes are the standard's.
#ifndef INGOT_DIALECTS_ONNX_ELEMENTWISEOPS
#define INGOT_DIALECTS_ONNX_ELEMENTWISEOPS

include "dialects/onnx/Base.td"

def Onnx_AbsOp : Onnx_Op<"Abs", [6, 13],
    (ins Onnx_NumberTensor:$X),
    (ins),
    (outs Onnx_Result:$Y)> {
  let summary = "The absolute value.";
}

def Onnx_AcosOp : Onnx_Op<"Acos", [7, 22],
    (ins Onnx_FloatTensor:$input),
    (ins),
    (outs Onnx_Result:$output)> {
  let summary = "The arc cosine.";
}

def Onnx_AcoshOp : Onnx_Op<"Acosh", [9, 22],
    (ins Onnx_FloatTensor:$input),
    (ins),
    (outs Onnx_Result:$output)> {
  let summary = "The inverse hyperbolic cosine.";
}

def Onnx_AsinOp : Onnx_Op<"Asin", [7, 22],
    (ins Onnx_FloatTensor:$input),
    (ins),
    (outs Onnx_Result:$output)> {
  let summary = "The arc sine.";
}

def Onnx_AsinhOp : Onnx_Op<"Asinh", [9, 22],
    (ins Onnx_FloatTensor:$input),
    (ins),
    (outs Onnx_Result:$output)> {
  let summary = "The inverse hyperbolic sine.";
}

def Onnx_AtanOp : Onnx_Op<"Atan", [7, 22],
    (ins Onnx_FloatTensor:$input),
    (ins),
    (outs Onnx_Result:$output)> {
  let summary = "The arc tangent.";
}

def Onnx_AtanhOp : Onnx_Op<"Atanh", [9, 22],
    (ins Onnx_FloatTensor:$input),
    (ins),
    (outs Onnx_Result:$output)> {
  let summary = "The inverse hyperbolic tangent.";
}

def Onnx_CeilOp : Onnx_Op<"Ceil", [6, 13],
    (ins Onnx_FloatTensor:$X),
    (ins),
    (outs Onnx_Result:$Y)> {
  let summary = "Rounds up.";
}

def Onnx_CosOp : Onnx_Op<"Cos", [7, 22],
    (ins Onnx_FloatTensor:$input),
    (ins),
    (outs Onnx_Result:$output)> {
  let summary = "The cosine.";
}

def Onnx_CoshOp : Onnx_Op<"Cosh", [9, 22],
    (ins Onnx_FloatTensor:$input),
    (ins),
    (outs Onnx_Result:$output)> {
  let summary = "The hyperbolic cosine.";
}

def Onnx_ErfOp : Onnx_Op<"Erf", [9, 13],
    (ins Onnx_FloatTensor:$input),
    (ins),
    (outs Onnx_Result:$output)> {
  let summary = "The error function.";
}

def Onnx_ExpOp : Onnx_Op<"Exp", [6, 13],
    (ins Onnx_FloatTensor:$input),
    (ins),
    (outs Onnx_Result:$output)> {
  let summary = "The exponential function.";
}

def Onnx_FloorOp : Onnx_Op<"Floor", [6, 13],
    (ins Onnx_FloatTensor:$X),
    (ins),
    (outs Onnx_Result:$Y)> {
  let summary = "Rounds down.";
}

def Onnx_LogOp : Onnx_Op<"Log", [6, 13],
    (ins Onnx_FloatTensor:$input),
    (ins),
    (outs Onnx_Result:$output)> {
  let summary = "The natural logarithm.";
}

def Onnx_NegOp : Onnx_Op<"Neg", [6, 13],
    (ins Onnx_NumberTensor:$X),
    (ins),
    (outs Onnx_Result:$Y)> {
  let summary = "The negation.";
}

def Onnx_NotOp : Onnx_Op<"Not", [1],
    (ins Onnx_BoolTensor:$X),
    (ins),
    (outs Onnx_Result:$Y)> {
  let summary = "The logical complement.";
}

def Onnx_ReciprocalOp : Onnx_Op<"Reciprocal", [6, 13],
    (ins Onnx_FloatTensor:$X),
    (ins),
    (outs Onnx_Result:$Y)> {
  let summary = "One divided by the input.";
}

def Onnx_RoundOp : Onnx_Op<"Round", [11, 22],
    (ins Onnx_FloatTensor:$X),
    (ins),
    (outs Onnx_Result:$Y)> {
  let summary = "Rounds to the nearest integer, halves to even.";
}

def Onnx_SignOp : Onnx_Op<"Sign", [9, 13],
    (ins Onnx_NumberTensor:$input),
    (ins),
    (outs Onnx_Result:$output)> {
  let summary = "-1, 0 or 1 by the sign.";
}

def Onnx_SinOp : Onnx_Op<"Sin", [7, 22],
    (ins Onnx_FloatTensor:$input),
    (ins),
    (outs Onnx_Result:$output)> {
  let summary = "The sine.";
}

def Onnx_SinhOp : Onnx_Op<"Sinh", [9, 22],
    (ins Onnx_FloatTensor:$input),
    (ins),
    (outs Onnx_Result:$output)> {
  let summary = "The hyperbolic sine.";
}

def Onnx_SqrtOp : Onnx_Op<"Sqrt", [6, 13],
    (ins Onnx_FloatTensor:$X),
    (ins),
    (outs Onnx_Result:$Y)> {
  let summary = "The square root.";
}

def Onnx_TanOp : Onnx_Op<"Tan", [7, 22],
    (ins Onnx_FloatTensor:$input),
    (ins),
    (outs Onnx_Result:$output)> {
  let summary = "The tangent.";
}

def Onnx_TanhOp : Onnx_Op<"Tanh", [6, 13],
    (ins Onnx_FloatTensor:$input),
    (ins),
    (outs Onnx_Result:$output)> {
  let summary = "The hyperbolic tangent.";
}

def Onnx_IsInfOp : Onnx_Op<"IsInf", [10, 20],
    (ins Onnx_FloatTensor:$X),
    (ins DefaultValuedAttr<I64Attr, "1">:$detect_negative,
         DefaultValuedAttr<I64Attr, "1">:$detect_positive),
    (outs Onnx_Result:$Y)> {
  let summary = "Whether an element is infinite, of the signs asked for.";
}

def Onnx_IsNaNOp : Onnx_Op<"IsNaN", [9, 13, 20],
    (ins Onnx_FloatTensor:$X),
    (ins),
    (outs Onnx_Result:$Y)> {
  let summary = "Whether an element is not a number.";
}

def Onnx_BitwiseNotOp : Onnx_Op<"BitwiseNot", [18],
    (ins Onnx_IntTensor:$X),
    (ins),
    (outs Onnx_Result:$Y)> {
  let summary = "The complement of each bit.";
}

def Onnx_SigmoidOp : Onnx_Op<"Sigmoid", [6, 13],
    (ins Onnx_FloatTensor:$X),
    (ins),
    (outs Onnx_Result:$Y)> {
  let summary = "1 / (1 + exp(-x)).";
}

def Onnx_ReluOp : Onnx_Op<"Relu", [6, 13, 14],
    (ins Onnx_NumberTensor:$X),
    (ins),
    (outs Onnx_Result:$Y)> {
  let summary = "max(x, 0).";
}

def Onnx_LeakyReluOp : Onnx_Op<"LeakyRelu", [6, 16],
    (ins Onnx_FloatTensor:$X),
    (ins DefaultValuedAttr<F32Attr, "0.01f">:$alpha),
    (outs Onnx_Result:$Y)> {
  let summary = "x, or alpha * x where x is negative.";
}

def Onnx_ThresholdedReluOp : Onnx_Op<"ThresholdedRelu", [10, 22],
    (ins Onnx_FloatTensor:$X),
    (ins DefaultValuedAttr<F32Attr, "1.0f">:$alpha),
    (outs Onnx_Result:$Y)> {
  let summary = "x where above alpha, else 0.";
}

def Onnx_EluOp : Onnx_Op<"Elu", [6, 22],
    (ins Onnx_FloatTensor:$X),
    (ins DefaultValuedAttr<F32Attr, "1.0f">:$alpha),
    (outs Onnx_Result:$Y)> {
  let summary = "x, or alpha * (exp(x) - 1) where x is negative.";
}

def Onnx_CeluOp : Onnx_Op<"Celu", [12],
    (ins Onnx_FloatTensor:$X),
    (ins DefaultValuedAttr<F32Attr, "1.0f">:$alpha),
    (outs Onnx_Result:$Y)> {
  let summary = "max(0, x) + min(0, alpha * (exp(x / alpha) - 1)).";
}

def Onnx_SeluOp : Onnx_Op<"Selu", [6, 22],
    (ins Onnx_FloatTensor:$X),
    (ins DefaultValuedAttr<F32Attr, "1.67326319217681884765625f">:$alpha,
         DefaultValuedAttr<F32Attr, "1.05070102214813232421875f">:$gamma),
    (outs Onnx_Result:$Y)> {
  let summary = "gamma * x, or gamma * alpha * (exp(x) - 1) where x is not positive.";
}

def Onnx_GeluOp : Onnx_Op<"Gelu", [20],
    (ins Onnx_FloatTensor:$X),
    (ins DefaultValuedAttr<StrAttr, "\"none\"">:$approximate),
    (outs Onnx_Result:$Y)> {
  let summary = "x times the normal distribution function of x, exactly or by its tanh form.";
}

def Onnx_MishOp : Onnx_Op<"Mish", [18, 22],
    (ins Onnx_FloatTensor:$X),
    (ins),
    (outs Onnx_Result:$Y)> {
  let summary = "x * tanh(log(1 + exp(x))).";
}

def Onnx_SwishOp : Onnx_Op<"Swish", [24],
    (ins Onnx_FloatTensor:$X),
    (ins DefaultValuedAttr<F32Attr, "1.0f">:$alpha),
    (outs Onnx_Result:$Y)> {
  let summary = "x / (1 + exp(-alpha * x)).";
}

def Onnx_HardSigmoidOp : Onnx_Op<"HardSigmoid", [6, 22],
    (ins Onnx_FloatTensor:$X),
    (ins DefaultValuedAttr<F32Attr, "0.2f">:$alpha, DefaultValuedAttr<F32Attr,
         "0.5f">:$beta),
    (outs Onnx_Result:$Y)> {
  let summary = "alpha * x + beta within 0 and 1.";
}

def Onnx_HardSwishOp : Onnx_Op<"HardSwish", [14, 22],
    (ins Onnx_FloatTensor:$X),
    (ins),
    (outs Onnx_Result:$Y)> {
  let summary = "x times x / 6 + 0.5 within 0 and 1.";
}

def Onnx_SoftplusOp : Onnx_Op<"Softplus", [1, 22],
    (ins Onnx_FloatTensor:$X),
    (ins),
    (outs Onnx_Result:$Y)> {
  let summary = "log(1 + exp(x)).";
}

def Onnx_SoftsignOp : Onnx_Op<"Softsign", [1, 22],
    (ins Onnx_FloatTensor:$input),
    (ins),
    (outs Onnx_Result:$output)> {
  let summary = "x / (1 +|x|).";
}

def Onnx_ShrinkOp : Onnx_Op<"Shrink", [9],
    (ins Onnx_NumberTensor:$input),
    (ins DefaultValuedAttr<F32Attr, "0.0f">:$bias, DefaultValuedAttr<F32Attr,
         "0.5f">:$lambd),
    (outs Onnx_Result:$output)> {
  let summary = "x moved by bias towards 0 where|x|is above lambd, else 0.";
}

def Onnx_IdentityOp : Onnx_Op<"Identity", [1, 13, 14, 16, 19, 21, 23, 24, 25],
    (ins Onnx_Tensor:$input),
    (ins),
    (outs Onnx_Result:$output)> {
  let summary = "The input itself.";
}

def Onnx_ClipOp : Onnx_Op<"Clip", [11, 12, 13],
    (ins Onnx_NumberTensor:$input, Onnx_Maybe<Onnx_NumberTensor>:$min, Onnx_Maybe<Onnx_NumberTensor>:$max),
    (ins),
    (outs Onnx_Result:$output)> {
  let summary = "The input within a minimum and a maximum, each where given.";
}

def Onnx_CastOp : Onnx_Op<"Cast", [9, 13, 19, 21, 23, 24, 25],
    (ins Onnx_Tensor:$input),
    (ins TypeAttr:$to, DefaultValuedAttr<I64Attr, "1">:$saturate,
         DefaultValuedAttr<StrAttr, "\"up\"">:$round_mode),
    (outs Onnx_Result:$output)> {
  let summary = "Elements as another type.";
}

def Onnx_CastLikeOp : Onnx_Op<"CastLike", [15, 19, 21, 23, 24, 25],
    (ins Onnx_Tensor:$input, Onnx_Tensor:$target_type),
    (ins DefaultValuedAttr<I64Attr, "1">:$saturate, DefaultValuedAttr<StrAttr,
         "\"up\"">:$round_mode),
    (outs Onnx_Result:$output)> {
  let summary = "Elements as the type of another tensor.";
}

def Onnx_BitCastOp : Onnx_Op<"BitCast", [26],
    (ins Onnx_Tensor:$input),
    (ins TypeAttr:$to),
    (outs Onnx_Result:$output)> {
  let summary = "The bits of elements as another type of the same width.";
}

def Onnx_AddOp : Onnx_Op<"Add", [7, 13, 14],
    (ins Onnx_NumberTensor:$A, Onnx_NumberTensor:$B),
    (ins),
    (outs Onnx_Result:$C)> {
  let summary = "The sum.";
}

def Onnx_SubOp : Onnx_Op<"Sub", [7, 13, 14],
    (ins Onnx_NumberTensor:$A, Onnx_NumberTensor:$B),
    (ins),
    (outs Onnx_Result:$C)> {
  let summary = "The difference.";
}

def Onnx_MulOp : Onnx_Op<"Mul", [7, 13, 14],
    (ins Onnx_NumberTensor:$A, Onnx_NumberTensor:$B),
    (ins),
    (outs Onnx_Result:$C)> {
  let summary = "The product.";
}

def Onnx_DivOp : Onnx_Op<"Div", [7, 13, 14],
    (ins Onnx_NumberTensor:$A, Onnx_NumberTensor:$B),
    (ins),
    (outs Onnx_Result:$C)> {
  let summary = "The quotient; integers truncate.";
}

def Onnx_ModOp : Onnx_Op<"Mod", [10, 13],
    (ins Onnx_NumberTensor:$A, Onnx_NumberTensor:$B),
    (ins DefaultValuedAttr<I64Attr, "0">:$fmod),
    (outs Onnx_Result:$C)> {
  let summary = "The remainder, with the sign of B, or with fmod of A.";
}

def Onnx_PowOp : Onnx_Op<"Pow", [7, 12, 13, 15],
    (ins Onnx_NumberTensor:$X, Onnx_NumberTensor:$Y),
    (ins),
    (outs Onnx_Result:$Z)> {
  let summary = "X to the power Y, in the type of X.";
}

def Onnx_PReluOp : Onnx_Op<"PRelu", [9, 16],
    (ins Onnx_NumberTensor:$X, Onnx_NumberTensor:$slope),
    (ins),
    (outs Onnx_Result:$Y)> {
  let summary = "x, or slope * x where x is negative.";
}

def Onnx_AndOp : Onnx_Op<"And", [7],
    (ins Onnx_BoolTensor:$A, Onnx_BoolTensor:$B),
    (ins),
    (outs Onnx_Result:$C)> {
  let summary = "Whether both are true.";
}

def Onnx_OrOp : Onnx_Op<"Or", [7],
    (ins Onnx_BoolTensor:$A, Onnx_BoolTensor:$B),
    (ins),
    (outs Onnx_Result:$C)> {
  let summary = "Whether one is true.";
}

def Onnx_XorOp : Onnx_Op<"Xor", [7],
    (ins Onnx_BoolTensor:$A, Onnx_BoolTensor:$B),
    (ins),
    (outs Onnx_Result:$C)> {
  let summary = "Whether just one is true.";
}

def Onnx_EqualOp : Onnx_Op<"Equal", [11, 13, 19],
    (ins Onnx_Tensor:$A, Onnx_Tensor:$B),
    (ins),
    (outs Onnx_Result:$C)> {
  let summary = "Whether both are equal.";
}

def Onnx_LessOp : Onnx_Op<"Less", [9, 13],
    (ins Onnx_NumberTensor:$A, Onnx_NumberTensor:$B),
    (ins),
    (outs Onnx_Result:$C)> {
  let summary = "Whether A is less than B.";
}

def Onnx_LessOrEqualOp : Onnx_Op<"LessOrEqual", [12, 16],
    (ins Onnx_NumberTensor:$A, Onnx_NumberTensor:$B),
    (ins),
    (outs Onnx_Result:$C)> {
  let summary = "Whether A is at most B.";
}

def Onnx_GreaterOp : Onnx_Op<"Greater", [9, 13],
    (ins Onnx_NumberTensor:$A, Onnx_NumberTensor:$B),
    (ins),
    (outs Onnx_Result:$C)> {
  let summary = "Whether A is greater than B.";
}

def Onnx_GreaterOrEqualOp : Onnx_Op<"GreaterOrEqual", [12, 16],
    (ins Onnx_NumberTensor:$A, Onnx_NumberTensor:$B),
    (ins),
    (outs Onnx_Result:$C)> {
  let summary = "Whether A is at least B.";
}

def Onnx_BitShiftOp : Onnx_Op<"BitShift", [11],
    (ins Onnx_IntTensor:$X, Onnx_IntTensor:$Y),
    (ins StrAttr:$direction),
    (outs Onnx_Result:$Z)> {
  let summary = "X shifted by Y bits, LEFT or RIGHT; unsigned integers.";
}

def Onnx_BitwiseAndOp : Onnx_Op<"BitwiseAnd", [18],
    (ins Onnx_IntTensor:$A, Onnx_IntTensor:$B),
    (ins),
    (outs Onnx_Result:$C)> {
  let summary = "The bits that both have.";
}

def Onnx_BitwiseOrOp : Onnx_Op<"BitwiseOr", [18],
    (ins Onnx_IntTensor:$A, Onnx_IntTensor:$B),
    (ins),
    (outs Onnx_Result:$C)> {
  let summary = "The bits that one has.";
}

def Onnx_BitwiseXorOp : Onnx_Op<"BitwiseXor", [18],
    (ins Onnx_IntTensor:$A, Onnx_IntTensor:$B),
    (ins),
    (outs Onnx_Result:$C)> {
  let summary = "The bits that just one has.";
}

def Onnx_MaxOp : Onnx_Op<"Max", [8, 12, 13],
    (ins Variadic<Onnx_NumberTensor>:$data_0),
    (ins),
    (outs Onnx_Result:$max)> {
  let summary = "The greatest of the inputs.";
  let variadicInputs = true;
}

def Onnx_MinOp : Onnx_Op<"Min", [8, 12, 13],
    (ins Variadic<Onnx_NumberTensor>:$data_0),
    (ins),
    (outs Onnx_Result:$min)> {
  let summary = "The least of the inputs.";
  let variadicInputs = true;
}

def Onnx_SumOp : Onnx_Op<"Sum", [8, 13],
    (ins Variadic<Onnx_FloatTensor>:$data_0),
    (ins),
    (outs Onnx_Result:$sum)> {
  let summary = "The sum of the inputs.";
  let variadicInputs = true;
}

def Onnx_MeanOp : Onnx_Op<"Mean", [8, 13],
    (ins Variadic<Onnx_FloatTensor>:$data_0),
    (ins),
    (outs Onnx_Result:$mean)> {
  let summary = "The mean of the inputs.";
  let variadicInputs = true;
}

def Onnx_WhereOp : Onnx_Op<"Where", [9, 16],
    (ins Onnx_BoolTensor:$condition, Onnx_Tensor:$X, Onnx_Tensor:$Y),
    (ins),
    (outs Onnx_Result:$output)> {
  let summary = "X where the condition is true, else Y.";
}

def Onnx_DropoutOp : Onnx_Op<"Dropout", [10, 12, 13, 22],
    (ins Onnx_FloatTensor:$data, Onnx_Maybe<Onnx_FloatTensor>:$ratio, Onnx_Maybe<Onnx_BoolTensor>:$training_mode),
    (ins OptionalAttr<I64Attr>:$seed),
    (outs Onnx_Result:$output, Onnx_Result:$mask)> {
  let summary = "The input itself: training is not supported.";
}

#endif
