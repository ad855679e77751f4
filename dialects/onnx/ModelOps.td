// Normalisations, softmax, attention and quantisation. The names of inputs,
// outputs and attributes are the standard's.
#ifndef INGOT_DIALECTS_ONNX_MODELOPS
#define INGOT_DIALECTS_ONNX_MODELOPS

include "dialects/onnx/Base.td"

def Onnx_SoftmaxOp : Onnx_Op<"Softmax", [11, 13],
    (ins Onnx_FloatTensor:$input),
    (ins DefaultValuedAttr<I64Attr, "-1">:$axis),
    (outs Onnx_Result:$output)> {
  let summary = "Exponentials along an axis divided by their sum.";
}

def Onnx_LogSoftmaxOp : Onnx_Op<"LogSoftmax", [11, 13],
    (ins Onnx_FloatTensor:$input),
    (ins DefaultValuedAttr<I64Attr, "-1">:$axis),
    (outs Onnx_Result:$output)> {
  let summary = "The logarithm of the softmax.";
}

def Onnx_HardmaxOp : Onnx_Op<"Hardmax", [11, 13],
    (ins Onnx_FloatTensor:$input),
    (ins DefaultValuedAttr<I64Attr, "-1">:$axis),
    (outs Onnx_Result:$output)> {
  let summary = "1 at the first greatest element along an axis, else 0.";
}

def Onnx_LayerNormalizationOp : Onnx_Op<"LayerNormalization", [17],
    (ins Onnx_FloatTensor:$X, Onnx_FloatTensor:$Scale, Onnx_Maybe<Onnx_FloatTensor>:$B),
    (ins DefaultValuedAttr<I64Attr, "-1">:$axis, DefaultValuedAttr<F32Attr,
         "1.0e-5f">:$epsilon, DefaultValuedAttr<I64Attr, "1">:$stash_type),
    (outs Onnx_Result:$Y, Onnx_Result:$Mean, Onnx_Result:$InvStdDev)> {
  let summary = "Centred and divided by the deviation over the dimensions from axis on, then scaled.";
}

def Onnx_RMSNormalizationOp : Onnx_Op<"RMSNormalization", [23],
    (ins Onnx_FloatTensor:$X, Onnx_FloatTensor:$scale),
    (ins DefaultValuedAttr<I64Attr, "-1">:$axis, DefaultValuedAttr<F32Attr,
         "1.0e-5f">:$epsilon, DefaultValuedAttr<I64Attr, "1">:$stash_type),
    (outs Onnx_Result:$Y)> {
  let summary = "Divided by the root mean square over the dimensions from axis on, then scaled.";
}

def Onnx_SkipLayerNormalizationOp : Onnx_Op<"SkipLayerNormalization", [1],
    (ins Onnx_FloatTensor:$input, Onnx_FloatTensor:$skip, Onnx_FloatTensor:$gamma, Onnx_Maybe<Onnx_FloatTensor>:$beta, Onnx_Maybe<Onnx_FloatTensor>:$bias),
    (ins DefaultValuedAttr<F32Attr, "1.0e-12f">:$epsilon),
    (outs Onnx_Result:$output, Onnx_Result:$mean, Onnx_Result:$inv_std_var, Onnx_Result:$input_skip_bias_sum)> {
  let summary = "LayerNormalization of a sum, which is output 3.";
  let domain = "com.microsoft";
}

def Onnx_SkipSimplifiedLayerNormalizationOp : Onnx_Op<"SkipSimplifiedLayerNormalization", [1],
    (ins Onnx_FloatTensor:$input, Onnx_FloatTensor:$skip, Onnx_FloatTensor:$gamma, Onnx_Maybe<Onnx_FloatTensor>:$bias),
    (ins DefaultValuedAttr<F32Attr, "1.0e-12f">:$epsilon),
    (outs Onnx_Result:$output, Onnx_Result:$mean, Onnx_Result:$inv_std_var, Onnx_Result:$input_skip_bias_sum)> {
  let summary = "RMSNormalization of a sum, which is output 3.";
  let domain = "com.microsoft";
}

def Onnx_BatchNormalizationOp : Onnx_Op<"BatchNormalization", [9, 14, 15],
    (ins Onnx_FloatTensor:$X, Onnx_FloatTensor:$scale, Onnx_FloatTensor:$B, Onnx_FloatTensor:$input_mean, Onnx_FloatTensor:$input_var),
    (ins DefaultValuedAttr<F32Attr, "1.0e-5f">:$epsilon),
    (outs Onnx_Result:$Y)> {
  let summary = "Normalised by given means and variances of each channel.";
}

def Onnx_InstanceNormalizationOp : Onnx_Op<"InstanceNormalization", [6, 22],
    (ins Onnx_FloatTensor:$input, Onnx_FloatTensor:$scale, Onnx_FloatTensor:$B),
    (ins DefaultValuedAttr<F32Attr, "1.0e-5f">:$epsilon),
    (outs Onnx_Result:$output)> {
  let summary = "Normalised over the spatial dimensions of each channel.";
}

def Onnx_GroupNormalizationOp : Onnx_Op<"GroupNormalization", [21],
    (ins Onnx_FloatTensor:$X, Onnx_FloatTensor:$scale, Onnx_FloatTensor:$bias),
    (ins I64Attr:$num_groups, DefaultValuedAttr<F32Attr, "1.0e-5f">:$epsilon,
         DefaultValuedAttr<I64Attr, "1">:$stash_type),
    (outs Onnx_Result:$Y)> {
  let summary = "Normalised over each group of channels; scale and bias belong to a channel.";
}

def Onnx_LpNormalizationOp : Onnx_Op<"LpNormalization", [1, 22],
    (ins Onnx_FloatTensor:$input),
    (ins DefaultValuedAttr<I64Attr, "-1">:$axis, DefaultValuedAttr<I64Attr,
         "2">:$p),
    (outs Onnx_Result:$output)> {
  let summary = "Divided by the p-norm along an axis.";
}

def Onnx_MeanVarianceNormalizationOp : Onnx_Op<"MeanVarianceNormalization", [9, 13],
    (ins Onnx_FloatTensor:$X),
    (ins OptionalAttr<DenseI64ArrayAttr>:$axes),
    (outs Onnx_Result:$Y)> {
  let summary = "Centred and divided by the deviation over axes.";
}

def Onnx_LRNOp : Onnx_Op<"LRN", [1, 13],
    (ins Onnx_FloatTensor:$X),
    (ins I64Attr:$size, DefaultValuedAttr<F32Attr, "1.0e-4f">:$alpha,
         DefaultValuedAttr<F32Attr, "0.75f">:$beta, DefaultValuedAttr<F32Attr,
         "1.0f">:$bias),
    (outs Onnx_Result:$Y)> {
  let summary = "Divided by a power of the sum of squares of neighbouring channels.";
}

def Onnx_AttentionOp : Onnx_Op<"Attention", [23, 24, 25],
    (ins Onnx_FloatTensor:$Q, Onnx_FloatTensor:$K, Onnx_FloatTensor:$V, Onnx_Maybe<Onnx_Tensor>:$attn_mask, Onnx_Maybe<Onnx_FloatTensor>:$past_key, Onnx_Maybe<Onnx_FloatTensor>:$past_value, Onnx_Maybe<Onnx_IntTensor>:$nonpad_kv_seqlen),
    (ins DefaultValuedAttr<I64Attr, "0">:$is_causal,
         OptionalAttr<I64Attr>:$kv_num_heads, DefaultValuedAttr<I64Attr,
         "-1">:$left_window_size, OptionalAttr<I64Attr>:$q_num_heads,
         DefaultValuedAttr<I64Attr, "0">:$qk_matmul_output_mode,
         DefaultValuedAttr<I64Attr, "-1">:$right_window_size,
         OptionalAttr<F32Attr>:$scale, DefaultValuedAttr<F32Attr,
         "0.0f">:$softcap, OptionalAttr<I64Attr>:$softmax_precision),
    (outs Onnx_Result:$Y, Onnx_Result:$present_key, Onnx_Result:$present_value, Onnx_Result:$qk_matmul_output)> {
  let summary = "Softmax of scaled, capped and masked products of queries and keys, times values.";
}

def Onnx_GroupQueryAttentionOp : Onnx_Op<"GroupQueryAttention", [1],
    (ins Onnx_FloatTensor:$query, Onnx_Maybe<Onnx_FloatTensor>:$key, Onnx_Maybe<Onnx_FloatTensor>:$value, Onnx_Maybe<Onnx_FloatTensor>:$past_key, Onnx_Maybe<Onnx_FloatTensor>:$past_value, Onnx_IntTensor:$seqlens_k, Onnx_IntTensor:$total_sequence_length, Onnx_Maybe<Onnx_FloatTensor>:$cos_cache, Onnx_Maybe<Onnx_FloatTensor>:$sin_cache, Onnx_Maybe<Onnx_IntTensor>:$position_ids, Onnx_Maybe<Onnx_FloatTensor>:$attention_bias, Onnx_Maybe<Onnx_FloatTensor>:$head_sink),
    (ins I64Attr:$num_heads, I64Attr:$kv_num_heads, DefaultValuedAttr<F32Attr,
         "0.0f">:$scale, DefaultValuedAttr<F32Attr, "0.0f">:$softcap,
         DefaultValuedAttr<I64Attr, "-1">:$local_window_size,
         DefaultValuedAttr<I64Attr, "0">:$do_rotary,
         DefaultValuedAttr<I64Attr, "0">:$rotary_interleaved,
         DefaultValuedAttr<I64Attr, "0">:$smooth_softmax),
    (outs Onnx_Result:$output, Onnx_Result:$present_key, Onnx_Result:$present_value)> {
  let summary = "Causal attention of grouped heads over a cache, with a rotation.";
  let domain = "com.microsoft";
}

def Onnx_MultiHeadAttentionOp : Onnx_Op<"MultiHeadAttention", [1],
    (ins Onnx_FloatTensor:$query, Onnx_Maybe<Onnx_FloatTensor>:$key, Onnx_Maybe<Onnx_FloatTensor>:$value, Onnx_Maybe<Onnx_FloatTensor>:$bias, Onnx_Maybe<Onnx_IntTensor>:$key_padding_mask, Onnx_Maybe<Onnx_FloatTensor>:$attention_bias, Onnx_Maybe<Onnx_FloatTensor>:$past_key, Onnx_Maybe<Onnx_FloatTensor>:$past_value),
    (ins I64Attr:$num_heads, DefaultValuedAttr<F32Attr,
         "-10000.0f">:$mask_filter_value, DefaultValuedAttr<F32Attr,
         "0.0f">:$scale, DefaultValuedAttr<I64Attr, "0">:$unidirectional),
    (outs Onnx_Result:$output, Onnx_Result:$present_key, Onnx_Result:$present_value)> {
  let summary = "Attention of heads side by side.";
  let domain = "com.microsoft";
}

def Onnx_RotaryEmbeddingOp : Onnx_Op<"RotaryEmbedding", [23],
    (ins Onnx_FloatTensor:$X, Onnx_FloatTensor:$cos_cache, Onnx_FloatTensor:$sin_cache, Onnx_Maybe<Onnx_IntTensor>:$position_ids),
    (ins DefaultValuedAttr<I64Attr, "0">:$interleaved,
         DefaultValuedAttr<I64Attr, "0">:$num_heads,
         DefaultValuedAttr<I64Attr, "0">:$rotary_embedding_dim),
    (outs Onnx_Result:$Y)> {
  let summary = "Pairs of each head rotated by the angles of a position.";
}

def Onnx_QuantizeLinearOp : Onnx_Op<"QuantizeLinear", [10, 13, 19, 21, 23, 24, 25],
    (ins Onnx_NumberTensor:$x, Onnx_NumberTensor:$y_scale, Onnx_Maybe<Onnx_Tensor>:$y_zero_point),
    (ins DefaultValuedAttr<I64Attr, "1">:$axis, DefaultValuedAttr<I64Attr,
         "0">:$block_size, OptionalAttr<TypeAttr>:$output_dtype,
         DefaultValuedAttr<I64Attr, "0">:$precision,
         DefaultValuedAttr<I64Attr, "1">:$saturate),
    (outs Onnx_Result:$y)> {
  let summary = "Elements divided by a scale, rounded to even and moved by a zero point.";
}

def Onnx_DequantizeLinearOp : Onnx_Op<"DequantizeLinear", [10, 13, 19, 21, 23, 24, 25],
    (ins Onnx_Tensor:$x, Onnx_FloatTensor:$x_scale, Onnx_Maybe<Onnx_Tensor>:$x_zero_point),
    (ins DefaultValuedAttr<I64Attr, "1">:$axis, DefaultValuedAttr<I64Attr,
         "0">:$block_size, OptionalAttr<TypeAttr>:$output_dtype),
    (outs Onnx_Result:$y)> {
  let summary = "Codes less a zero point, times a scale.";
}

def Onnx_DynamicQuantizeLinearOp : Onnx_Op<"DynamicQuantizeLinear", [11],
    (ins Onnx_FloatTensor:$x),
    (ins),
    (outs Onnx_Result:$y, Onnx_Result:$y_scale, Onnx_Result:$y_zero_point)> {
  let summary = "uint8 codes with the scale and zero point of the input's range.";
}

#endif
