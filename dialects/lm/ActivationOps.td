// Operators over rows of activations, as an importer states them. Examples
// stand in a program that has the values and symbols of
// test/dialects/lm/examples-prelude.mlir.
#ifndef INGOT_DIALECTS_LM_ACTIVATIONOPS
#define INGOT_DIALECTS_LM_ACTIVATIONOPS

include "dialects/lm/SymbolOps.td"

// An op that names weights or state checks them as a symbol user.
class Lm_SymbolUserOp<string mnemonic, list<Trait> traits = []>
    : Lm_Op<mnemonic, traits # [DeclareOpInterfaceMethods<SymbolUserOpInterface>]>;

def Lm_EmbedOp : Lm_SymbolUserOp<"embed", [Pure]> {
  let summary = "A row of a table for each token.";
  let description = [{
    `result[t, :] = table[tokens[t], :] * scale`, then `+ bias` where there is one.
    An id outside the table is the caller's mistake and never reaches a program.
    With the program's positions as `tokens` it is a table of learned positions.

    - embed_c1: the table is a matrix with as many columns as the result.
    - embed_c2: `bias` is an f32 vector of as many elements as the result has columns.

    Example:
    ```mlir
    %0 = lm.embed %tokens, @embed : tensor<?x64xf32>
    %1 = lm.embed %tokens, @embed bias @norm : tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Lm_TokenRow:$tokens, FlatSymbolRefAttr:$table,
                       DefaultValuedAttr<F32Attr, "1.0f">:$scale,
                       OptionalAttr<FlatSymbolRefAttr>:$bias);
  let results = (outs Lm_Activation:$result);
  let assemblyFormat = [{
    $tokens `,` $table (`bias` $bias^)? attr-dict `:` type($result)
  }];
}

def Lm_RopeTableOp : Lm_SymbolUserOp<"rope_table", [Pure]> {
  let summary = "Cosines and sines of each token's rotation angles.";
  let description = [{
    With R inverse frequencies: `result[t, i]` is the cosine and
    `result[t, R + i]` the sine of the float32 product
    `positions[t] * inv_freq[i]`, each times `attention_factor`.

    `scaling` says which frequencies a token rotates by. Its *rotary length* is
    fixed when its sequence is admitted (docs/numerics.md, "Rotary"):

    - `fixed`: always `inv_freq`;
    - `dynamic`: `inv_freq` up to a length of `original`; beyond, those of the
      base `theta * (factor * length / original - (factor - 1)) ^ (R / (R - 1))`
      with length = max(rotary length, position + 1);
    - `listed`: `inv_freq` holds two lists of R; the second is for sequences whose
      rotary length is above `original`.

    - rope_table_c1: `inv_freq` is a vector of half as many elements as the result
      has columns, twice that where `listed`.
    - rope_table_c2: `original` is positive unless `fixed`; with `dynamic` also `theta`
      and `factor`, and there are at least 4 columns.

    Example:
    ```mlir
    %0 = lm.rope_table %positions, @rope.0 : tensor<?x16xf32>
    ```
  }];
  let arguments = (ins Lm_TokenRow:$positions, FlatSymbolRefAttr:$inv_freq,
                       DefaultValuedAttr<F32Attr, "1.0f">:$attention_factor,
                       DefaultValuedAttr<Lm_RopeScalingAttr,
                         "::ingot::lm::RopeScaling::Fixed">:$scaling,
                       DefaultValuedAttr<I64Attr, "0">:$original,
                       DefaultValuedAttr<F64Attr, "0.0">:$theta,
                       DefaultValuedAttr<F64Attr, "0.0">:$factor);
  let results = (outs Lm_Activation:$result);
  let assemblyFormat = [{
    $positions `,` $inv_freq attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def Lm_RmsNormOp : Lm_SymbolUserOp<"rms_norm", [Pure]> {
  let summary = "Divides each row by its root mean square and scales its columns.";
  let description = [{
    `y = x / sqrt(mean(x^2) + eps) * (weight + weight_offset)`. A quantised
    result is that of `lm.quantize` of the float32 one.

    - rms_norm_c1: `weight` is an f32 vector of as many elements as the input has columns.
    - rms_norm_c2: input and result have the same columns.
    - rms_norm_c3: `eps` is positive.

    Example:
    ```mlir
    %0 = lm.rms_norm %x, @norm {eps = 1.0e-5 : f32}
      : tensor<?x64xf32> -> tensor<?x64xf32>
    %1 = lm.rms_norm %x, @norm {eps = 1.0e-5 : f32}
      : tensor<?x64xf32> -> !lm.quantized<64, group = 32, bits = 16>
    ```
  }];
  let arguments = (ins Lm_Activation:$input, FlatSymbolRefAttr:$weight,
                       F32Attr:$eps,
                       DefaultValuedAttr<F32Attr, "0.0f">:$weight_offset);
  let results = (outs Lm_ActivationOrQuantized:$result);
  let assemblyFormat = [{
    $input `,` $weight attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Lm_LayerNormOp : Lm_SymbolUserOp<"layer_norm", [Pure]> {
  let summary = "Centres each row, divides it by its deviation and scales its columns.";
  let description = [{
    `y = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) * weight + bias`. A
    quantised result is that of `lm.quantize` of the float32 one.

    - layer_norm_c1: `weight` and `bias` are f32 vectors of as many elements as the
      input has columns.
    - layer_norm_c2: input and result have the same columns.
    - layer_norm_c3: `eps` is positive.

    Example:
    ```mlir
    %0 = lm.layer_norm %x, @norm bias @norm {eps = 1.0e-5 : f32}
      : tensor<?x64xf32> -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Lm_Activation:$input, FlatSymbolRefAttr:$weight,
                       OptionalAttr<FlatSymbolRefAttr>:$bias, F32Attr:$eps);
  let results = (outs Lm_ActivationOrQuantized:$result);
  let assemblyFormat = [{
    $input `,` $weight (`bias` $bias^)? attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Lm_LinearOp : Lm_SymbolUserOp<"linear", [Pure]> {
  let summary = "A matrix product with a weight, then a bias and a residual.";
  let description = [{
    `result[t, n] = (sum_k weight[n, k] * input[t, k] + bias[n]) + residual[t, n]`,
    the two additions where given, in that order. With a quantised input the
    sum is the integer law of docs/numerics.md.

    - linear_c1: `weight` is an r16 matrix [result columns, input columns].
    - linear_c2: `bias` is an f32 vector of as many elements as the result has columns.
    - linear_c3: `residual` has the result's type.
    - linear_c4: a quantised input has the group of an integer encoding.
    - linear_c5: its codes have the bits that the encoding is multiplied with.

    Example:
    ```mlir
    %0 = lm.linear %x, @layer.0.q bias @layer.0.q.bias
      : tensor<?x64xf32> -> tensor<?x64xf32>
    %1 = lm.linear %0, @layer.0.q residual %x
      : tensor<?x64xf32> -> tensor<?x64xf32>, tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Lm_ActivationOrQuantized:$input,
                       FlatSymbolRefAttr:$weight,
                       OptionalAttr<FlatSymbolRefAttr>:$bias,
                       Optional<Lm_Activation>:$residual);
  let results = (outs Lm_Activation:$result);
  let assemblyFormat = [{
    $input `,` $weight (`bias` $bias^)? (`residual` $residual^)? attr-dict
    `:` type($input) `->` type($result) (`,` type($residual)^)?
  }];
  let hasVerifier = 1;
}

def Lm_HeadNormOp : Lm_SymbolUserOp<"head_norm", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "A norm of each head of a row.";
  let description = [{
    The row is `heads` heads of `head_dim` columns; each is normalised as in
    `lm.rms_norm`, or without mean as in `lm.layer_norm` where `kind` is `layer`.
    All heads share the weight, or each has its own part of it. One head as wide
    as the row is a norm of the whole row.

    - head_norm_c1: `heads * head_dim` is the number of columns.
    - head_norm_c2: `weight` is an f32 vector of `head_dim` or `heads * head_dim`
      elements.
    - head_norm_c3: `eps` is positive.
    - head_norm_c4: `weight_offset` is 0 where `kind` is `layer`.

    Example:
    ```mlir
    %0 = lm.head_norm %x, @head_norm
      {heads = 4 : i64, head_dim = 16 : i64, eps = 1.0e-6 : f32}
      : tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Lm_Activation:$input, FlatSymbolRefAttr:$weight,
                       I64Attr:$heads, I64Attr:$head_dim, F32Attr:$eps,
                       DefaultValuedAttr<Lm_NormKindAttr,
                         "::ingot::lm::NormKind::Rms">:$kind,
                       DefaultValuedAttr<F32Attr, "0.0f">:$weight_offset);
  let results = (outs Lm_Activation:$result);
  let assemblyFormat = "$input `,` $weight attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def Lm_RotaryOp : Lm_Op<"rotary", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "Rotates pairs of each head by the token's angles.";
  let description = [{
    In each head, columns [0, rotary_dim) form pairs that rotate by the angles
    of `table` (from `lm.rope_table`); the others are copied. Pair i is
    (i, i + rotary_dim/2), or (2i, 2i + 1) with `interleaved`.

    - rotary_c1: `heads * head_dim` is the number of columns.
    - rotary_c2: `rotary_dim` is even, positive, at most `head_dim`, and the number
      of columns of `table`.

    Example:
    ```mlir
    %0 = lm.rotary %x, %rope
      {heads = 4 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64}
      : tensor<?x64xf32>, tensor<?x16xf32>
    ```
  }];
  let arguments = (ins Lm_Activation:$input, Lm_Activation:$table,
                       I64Attr:$heads, I64Attr:$head_dim, I64Attr:$rotary_dim,
                       UnitAttr:$interleaved);
  let results = (outs Lm_Activation:$result);
  let assemblyFormat = [{
    $input `,` $table attr-dict `:` type($input) `,` type($table)
  }];
  let hasVerifier = 1;
}

def Lm_AttentionOp : Lm_SymbolUserOp<"attention", [MemoryEffects<[MemRead, MemWrite]>,
    AllTypesMatch<["query", "result"]>, AllTypesMatch<["key", "value"]>]> {
  let summary = "Writes keys and values into the state, then attends over it.";
  let description = [{
    Key and value rows are stored, rounded to the state's dtype, at each token's
    position in layer `state_layer`. Query head h of the position i then attends
    to key head `h / (heads / kv_heads)` of the positions j <= i of its sequence
    and, where `window` > 0, i - j < window. Scores are multiplied by `scale` and,
    where `soft_cap` > 0, become `soft_cap * tanh(score / soft_cap)`. A
    `bidirectional` one attends to all positions of the sequence, which the step
    then holds as a whole. With `slopes` (ALiBi), one for each query head, the score of j
    has `slopes[h] * (j - i)` added to it at last; with `rounded_slopes`
    `bf16(slopes[h] * bf16(j)) * scale` instead.

    - attention_c1: `heads * head_dim` is the query's columns, `kv_heads * head_dim`
      those of key and value.
    - attention_c2: `kv_heads` divides `heads`.
    - attention_c3: `state` is an `lm.state` of that `kv_heads` and `head_dim` that has
      the layer `state_layer`, and whose window, where it has one, is at least `window` > 0.
    - attention_c4: `window` and `soft_cap` are not negative, and `window` is 0 where
      `bidirectional`.
    - attention_c5: `slopes` are `heads` finite numbers, of an attention that looks back;
      `rounded_slopes` needs them in bfloat16.

    Example:
    ```mlir
    %0 = lm.attention %x, %kv, %kv state @kv0[0]
      {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32}
      : tensor<?x64xf32>, tensor<?x32xf32>
    ```
  }];
  let arguments = (ins Lm_Activation:$query, Lm_Activation:$key,
                       Lm_Activation:$value, FlatSymbolRefAttr:$state,
                       I64Attr:$state_layer, I64Attr:$heads, I64Attr:$kv_heads,
                       I64Attr:$head_dim, F32Attr:$scale,
                       DefaultValuedAttr<I64Attr, "0">:$window,
                       DefaultValuedAttr<F32Attr, "0.0f">:$soft_cap,
                       UnitAttr:$bidirectional,
                       OptionalAttr<DenseF32ArrayAttr>:$slopes,
                       UnitAttr:$rounded_slopes);
  let results = (outs Lm_Activation:$result);
  let assemblyFormat = [{
    $query `,` $key `,` $value `state` $state `[` $state_layer `]` attr-dict
    `:` type($query) `,` type($key)
  }];
  let hasVerifier = 1;
}

def Lm_AddOp : Lm_Op<"add", [Pure, SameOperandsAndResultType]> {
  let summary = "The sum of two rows.";
  let description = [{
    `residual + update * scale`, without a product where `scale` is 1. Used for
    residuals: `residual` is the stream, `update` what a block adds to it.

    Example:
    ```mlir
    %0 = lm.add %x, %x : tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Lm_Activation:$residual, Lm_Activation:$update,
                       DefaultValuedAttr<F32Attr, "1.0f">:$scale);
  let results = (outs Lm_Activation:$result);
  let assemblyFormat = "$residual `,` $update attr-dict `:` type($result)";
}

def Lm_GateOp : Lm_Op<"gate", [Pure]> {
  let summary = "An activation of the first half of a row, times the second half.";
  let description = [{
    `gate_up` holds F gate columns, then F up columns:
    `result[t, f] = activation(gate_up[t, f]) * gate_up[t, F + f]`. A quantised
    result is that of `lm.quantize` of the float32 one.

    - gate_c1: `gate_up` has twice the columns of the result.

    Example:
    ```mlir
    %0 = lm.gate silu %x : tensor<?x64xf32> -> tensor<?x32xf32>
    %1 = lm.gate silu %x : tensor<?x64xf32> -> !lm.quantized<32, group = 32, bits = 16>
    ```
  }];
  let arguments = (ins Lm_Activation:$gate_up, Lm_ActivationAttr:$activation);
  let results = (outs Lm_ActivationOrQuantized:$result);
  let assemblyFormat = [{
    `` $activation $gate_up attr-dict `:` type($gate_up) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Lm_ActivateOp : Lm_Op<"activate", [Pure]> {
  let summary = "An activation of each element.";
  let description = [{
    `result = activation(input)`. A quantised result is that of `lm.quantize` of
    the float32 one.

    - activate_c1: input and result have the same columns.

    Example:
    ```mlir
    %0 = lm.activate gelu %x : tensor<?x64xf32> -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Lm_Activation:$input, Lm_ActivationAttr:$activation);
  let results = (outs Lm_ActivationOrQuantized:$result);
  let assemblyFormat = [{
    `` $activation $input attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Lm_CapOp : Lm_Op<"cap", [Pure, SameOperandsAndResultType]> {
  let summary = "Scales each element, then caps it softly.";
  let description = [{
    `y = input * scale`, then where `soft_cap` > 0 `soft_cap * tanh(y / soft_cap)`.
    Made for logits.

    - cap_c1: `soft_cap` is not negative.

    Example:
    ```mlir
    %0 = lm.cap %x {soft_cap = 3.0e+01 : f32} : tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Lm_Activation:$input,
                       DefaultValuedAttr<F32Attr, "1.0f">:$scale,
                       DefaultValuedAttr<F32Attr, "0.0f">:$soft_cap);
  let results = (outs Lm_Activation:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Lm_RouteOp : Lm_Op<"route", [Pure]> {
  let summary = "Chooses experts for each row.";
  let description = [{
    `logits` holds a number for each expert. Of their softmax the `top_k` largest
    are taken (of equal ones the first): columns [0, top_k) of the result are the
    numbers of these experts, columns [top_k, 2 * top_k) their probabilities,
    divided by their sum where `normalized`.

    - route_c1: `top_k` is positive and at most the columns of `logits`, and the
      result has twice as many columns.

    Example:
    ```mlir
    %0 = lm.route %x {top_k = 2 : i64} : tensor<?x64xf32> -> tensor<?x4xf32>
    ```
  }];
  let arguments = (ins Lm_Activation:$logits, I64Attr:$top_k,
                       UnitAttr:$normalized);
  let results = (outs Lm_Activation:$routes);
  let assemblyFormat = "$logits attr-dict `:` type($logits) `->` type($routes)";
  let hasVerifier = 1;
}

def Lm_DispatchOp : Lm_Op<"dispatch", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "A copy of each row for each of its experts.";
  let description = [{
    The result has `top_k` rows for each row of `input`, in the order of their
    experts, and for one expert in the order of the tokens. Only operators that
    work on rows one by one, `lm.expert_linear` and `lm.combine` may follow.

    - dispatch_c1: input and result have the same columns, and `routes` comes from an
      `lm.route`.

    Example:
    ```mlir
    %r = lm.route %x {top_k = 2 : i64} : tensor<?x64xf32> -> tensor<?x4xf32>
    %0 = lm.dispatch %x, %r : tensor<?x64xf32>, tensor<?x4xf32>
    ```
  }];
  let arguments = (ins Lm_Activation:$input, Lm_Activation:$routes);
  let results = (outs Lm_Activation:$result);
  let assemblyFormat = "$input `,` $routes attr-dict `:` type($result) `,` type($routes)";
  let hasVerifier = 1;
}

def Lm_ExpertLinearOp : Lm_SymbolUserOp<"expert_linear", [Pure]> {
  let summary = "A matrix product of each dispatched row with the weight of its expert.";
  let description = [{
    `weight` holds the matrices of all experts of `routes`, one after another; the
    sums are those of `lm.linear`.

    - expert_linear_c1: `weight` is an r16 matrix of as many columns as the input, and
      for each expert as many rows as the result has columns, a multiple of 16.
    - expert_linear_c2: a quantised input has the group of an integer encoding, and
      codes of the bits that it takes.
    - expert_linear_c3: `routes` comes from an `lm.route`.

    Example:
    ```mlir
    %r = lm.route %kv {top_k = 1 : i64} : tensor<?x32xf32> -> tensor<?x2xf32>
    %d = lm.dispatch %x, %r : tensor<?x64xf32>, tensor<?x2xf32>
    %s, %t = lm.split %x : tensor<?x64xf32> -> tensor<?x4xf32>, tensor<?x60xf32>
    %four = lm.route %s {top_k = 1 : i64} : tensor<?x4xf32> -> tensor<?x2xf32>
    %0 = lm.expert_linear %d, %four, @layer.0.q
      : tensor<?x64xf32>, tensor<?x2xf32> -> tensor<?x16xf32>
    ```
  }];
  let arguments = (ins Lm_ActivationOrQuantized:$input, Lm_Activation:$routes,
                       FlatSymbolRefAttr:$weight);
  let results = (outs Lm_Activation:$result);
  let assemblyFormat = [{
    $input `,` $routes `,` $weight attr-dict
    `:` type($input) `,` type($routes) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// How many experts the routes choose from.
    int64_t getExperts();
  }];
}

def Lm_CombineOp : Lm_Op<"combine", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "The sum of a token's dispatched rows, each times its probability.";
  let description = [{
    `result[t] = ((row 0 * p0) + row 1 * p1) + ...`, in the order in which `lm.route`
    gave the experts, each addition with `fma`.

    - combine_c1: input and result have the same columns, and `routes` comes from an
      `lm.route`.

    Example:
    ```mlir
    %r = lm.route %x {top_k = 2 : i64} : tensor<?x64xf32> -> tensor<?x4xf32>
    %d = lm.dispatch %x, %r : tensor<?x64xf32>, tensor<?x4xf32>
    %0 = lm.combine %d, %r : tensor<?x64xf32>, tensor<?x4xf32>
    ```
  }];
  let arguments = (ins Lm_Activation:$input, Lm_Activation:$routes);
  let results = (outs Lm_Activation:$result);
  let assemblyFormat = "$input `,` $routes attr-dict `:` type($result) `,` type($routes)";
  let hasVerifier = 1;
}

def Lm_SplitOp : Lm_Op<"split", [Pure]> {
  let summary = "Cuts rows into ranges of columns.";
  let description = [{
    The results are consecutive columns of the input.

    - split_c1: there is at least one result, and their columns add up to the input's.

    Example:
    ```mlir
    %0, %1 = lm.split %x : tensor<?x64xf32> -> tensor<?x48xf32>, tensor<?x16xf32>
    ```
  }];
  let arguments = (ins Lm_Activation:$input);
  let results = (outs Variadic<Lm_Activation>:$parts);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($parts)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Lm_ConcatOp : Lm_Op<"concat", [Pure]> {
  let summary = "Joins rows column by column.";
  let description = [{
    The result's columns are those of the first operand, then the second, and so on.

    - concat_c1: there is at least one operand, and their columns add up to the result's.

    Example:
    ```mlir
    %0 = lm.concat %x, %kv
      : tensor<?x64xf32>, tensor<?x32xf32> -> tensor<?x96xf32>
    ```
  }];
  let arguments = (ins Variadic<Lm_Activation>:$parts);
  let results = (outs Lm_Activation:$result);
  let assemblyFormat = "$parts attr-dict `:` type($parts) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Lm_SelectRowsOp : Lm_Op<"select_rows", [Pure, SameOperandsAndResultType]> {
  let summary = "Keeps the rows that want logits.";
  let description = [{
    Which rows those are is the step's context; they keep their order. All ops
    that follow from the result work on these rows only.

    - select_rows_c1: the input does not itself follow from selected rows.

    Example:
    ```mlir
    %0 = lm.select_rows %x : tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Lm_Activation:$input);
  let results = (outs Lm_Activation:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}

def Lm_PoolOp : Lm_Op<"pool", [Pure, SameOperandsAndResultType]> {
  let summary = "One row of each sequence that wants a result.";
  let description = [{
    Which sequences those are is the step's context, as with `lm.select_rows`: for
    each row that wants a result, the rows of its sequence become one. `mean` is
    their sum, in order, divided by their number; `cls` is the first, `last` the last.
    With `normalize` it is then divided by its Euclidean length. A step holds the
    whole sequence. All ops that follow from the result work on these rows only.

    - pool_c1: the input does not itself follow from selected rows.

    Example:
    ```mlir
    %0 = lm.pool mean %x {normalize} : tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Lm_PoolKindAttr:$kind, Lm_Activation:$input,
                       UnitAttr:$normalize);
  let results = (outs Lm_Activation:$result);
  let assemblyFormat = "`` $kind $input attr-dict `:` type($result)";
}

def Lm_QuantizeOp : Lm_Op<"quantize", [Pure]> {
  let summary = "Quantises rows to integer codes, one scale for each K-group.";
  let description = [{
    By the law of docs/numerics.md ("Linear, integer encodings").

    - quantize_c1: input and result have the same columns.

    Example:
    ```mlir
    %0 = lm.quantize %x : tensor<?x64xf32> -> !lm.quantized<64, group = 128, bits = 16>
    ```
  }];
  let arguments = (ins Lm_Activation:$input);
  let results = (outs Lm_Quantized:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` qualified(type($result))";
  let hasVerifier = 1;
}

def Lm_CutOp : Lm_Op<"cut", [SameOperandsAndResultType,
    MemoryEffects<[MemWrite]>]> {
  let summary = "Marks where a segment of the program ends, with its hidden state.";
  let description = [{
    The value passes unchanged; the op stays although it computes nothing. Rows may leave the program here, and later steps
    may begin here. All that the ops before the cut compute reaches the ops
    after it through cuts, rotation tables and state.

    Example:
    ```mlir
    %0 = lm.cut "exit8" %x : tensor<?x64xf32>
    ```
  }];
  let arguments = (ins StrAttr:$name, Lm_Activation:$input);
  let results = (outs Lm_Activation:$result);
  let assemblyFormat = "$name $input attr-dict `:` type($result)";
}

def Lm_ExitOp : Lm_Op<"exit", [HasParent<"ProgramOp">, SingleBlock, NoRegionArguments,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "What rows that leave the program at a cut run instead of the rest.";
  let description = [{
    `head` gives the logits of the selected rows from the hidden state at the cut,
    after `layers` layers. `fill` writes the keys and values of the layers that
    such a row skips, made from the same state; it is empty until fill-exits has
    run. Both may read the cut and rotation tables, and the program itself runs
    neither.

    Where given, `confidence` says how often a head's first choice was the whole
    model's, measured: of n entries the i-th is for rows whose most likely token
    has a probability in [i/n, (i + 1)/n).

    - exit_c1: the input is the result of an `lm.cut` of the exit's name.
    - exit_c2: `layers` is positive.
    - exit_c3: the head yields the selected rows of one value of the program's result type.
    - exit_c4: the fill yields nothing.
    - exit_c5: the confidence has 2 to 256 entries, each 0 to 1 and none below the one
      before it.
    - exit_c6: what the regions read from outside is the input or a rotation table.

    Example:
    ```mlir
    lm.program @early(%tokens: tensor<?xi32>, %positions: tensor<?xi32>)
        -> tensor<?x128xf32> {
      %0 = lm.embed %tokens, @embed : tensor<?x64xf32>
      %1 = lm.cut "exit1" %0 : tensor<?x64xf32>
      lm.exit "exit1" %1 layers 1 : tensor<?x64xf32> head {
        %4 = lm.select_rows %1 : tensor<?x64xf32>
        %5 = lm.linear %4, @embed : tensor<?x64xf32> -> tensor<?x128xf32>
        lm.yield %5 : tensor<?x128xf32>
      }
      %2 = lm.select_rows %1 : tensor<?x64xf32>
      %3 = lm.linear %2, @embed : tensor<?x64xf32> -> tensor<?x128xf32>
      lm.return %3 : tensor<?x128xf32>
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, Lm_Activation:$input, I64Attr:$layers,
                       OptionalAttr<DenseF32ArrayAttr>:$confidence);
  let regions = (region SizedRegion<1>:$head, AnyRegion:$fill);
  let assemblyFormat = [{
    $name $input `layers` $layers (`confidence` $confidence^)? attr-dict
    `:` type($input) `head` $head (`fill` $fill^)?
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Lm_YieldOp : Lm_Op<"yield", [Pure, Terminator, HasParent<"ExitOp">]> {
  let summary = "Ends a region of an exit, with what it gives.";
  let description = [{
    A head gives its logits, a fill nothing.

    Example:
    ```mlir
    lm.program @yielding(%tokens: tensor<?xi32>, %positions: tensor<?xi32>)
        -> tensor<?x64xf32> {
      %0 = lm.embed %tokens, @embed : tensor<?x64xf32>
      %1 = lm.cut "exit1" %0 : tensor<?x64xf32>
      lm.exit "exit1" %1 layers 1 : tensor<?x64xf32> head {
        %2 = lm.select_rows %1 : tensor<?x64xf32>
        lm.yield %2 : tensor<?x64xf32>
      }
      lm.return %1 : tensor<?x64xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<Lm_Activation>:$results);
  let assemblyFormat = "($results^ `:` type($results))? attr-dict";
}

#endif
