// Operators that the fuse phase makes: one kernel launch each.
#ifndef INGOT_DIALECTS_LM_FUSEDOPS
#define INGOT_DIALECTS_LM_FUSEDOPS

include "dialects/lm/ActivationOps.td"

def Lm_RopeCacheWriteOp : Lm_SymbolUserOp<"rope_cache_write",
    [MemoryEffects<[MemWrite]>]> {
  let summary = "Splits a merged projection, normalises and rotates q and k, and stores k and v.";
  let description = [{
    `qkv` holds `heads` heads of q, `kv_heads` of k and `kv_heads` of v, each of
    `head_dim` columns. Where given, `q_norm` and `k_norm` normalise each head as
    `lm.head_norm` does, or with `norm_rows` all heads of q, and of k, as one; q
    and k are then rotated as by `lm.rotary`, or where there is no `table` left as
    they are; k and v are stored, rounded to the state's dtype, at each token's
    position in layer `state_layer`.

    - rope_cache_write_c1: `(heads + 2 * kv_heads) * head_dim` is the columns of `qkv`,
      `heads * head_dim` those of the query.
    - rope_cache_write_c2: `rotary_dim` is even, positive, at most `head_dim`, and the
      columns of `table`; without a table it is 0.
    - rope_cache_write_c3: `q_norm` and `k_norm` are given together with a positive `norm_eps`,
      f32 vectors of `head_dim` elements, or of that for each head of q and of k; with
      `norm_rows` of the latter, and `norm_kind` is rms.
    - rope_cache_write_c4: `state` is an `lm.state` of that `kv_heads` and `head_dim` that
      has the layer `state_layer`.
    - rope_cache_write_c5: `kv_heads` divides `heads`.

    Example:
    ```mlir
    %qkv = lm.concat %x, %kv, %kv
      : tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x128xf32>
    %q, %c = lm.rope_cache_write %qkv, %rope state @kv0[0]
      {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64}
      : tensor<?x128xf32>, tensor<?x16xf32> -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Lm_Activation:$qkv, Optional<Lm_Activation>:$table,
                       FlatSymbolRefAttr:$state, I64Attr:$state_layer,
                       OptionalAttr<FlatSymbolRefAttr>:$q_norm,
                       OptionalAttr<FlatSymbolRefAttr>:$k_norm,
                       I64Attr:$heads, I64Attr:$kv_heads, I64Attr:$head_dim,
                       I64Attr:$rotary_dim,
                       DefaultValuedAttr<F32Attr, "0.0f">:$norm_eps,
                       UnitAttr:$interleaved,
                       DefaultValuedAttr<Lm_NormKindAttr,
                         "::ingot::lm::NormKind::Rms">:$norm_kind,
                       UnitAttr:$norm_rows,
                       DefaultValuedAttr<F32Attr, "0.0f">:$norm_offset);
  let results = (outs Lm_Activation:$query, Lm_Cache:$cache);
  let assemblyFormat = [{
    $qkv (`,` $table^)? `state` $state `[` $state_layer `]`
    (`q_norm` $q_norm^)? (`k_norm` $k_norm^)? attr-dict
    `:` type($qkv) (`,` type($table)^)? `->` type($query)
  }];
  let hasVerifier = 1;
}

def Lm_CachedAttentionOp : Lm_SymbolUserOp<"cached_attention",
    [MemoryEffects<[MemRead]>]> {
  let summary = "Attends over keys and values that are already in the state.";
  let description = [{
    As `lm.attention`, after the writes that gave `cache`. A quantised result is
    that of `lm.quantize` of the float32 one.

    - cached_attention_c1: `heads * head_dim` is the columns of query and result.
    - cached_attention_c2: `kv_heads` divides `heads`.
    - cached_attention_c3: `state`, `state_layer`, `kv_heads` and `head_dim` are those of the
      `lm.rope_cache_write` that gave `cache`; the state's window, where it has one, is at
      least `window` > 0.
    - cached_attention_c4: `window` and `soft_cap` are not negative, and `window` is 0
      where `bidirectional`.
    - cached_attention_c5: the group of a quantised result divides `head_dim`, so that no
      group straddles a head.
    - cached_attention_c6: `slopes` are `heads` finite numbers, of an attention that looks
      back; `rounded_slopes` needs them in bfloat16.

    Example:
    ```mlir
    %qkv = lm.concat %x, %kv, %kv
      : tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x128xf32>
    %q, %c = lm.rope_cache_write %qkv, %rope state @kv0[0]
      {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64}
      : tensor<?x128xf32>, tensor<?x16xf32> -> tensor<?x64xf32>
    %0 = lm.cached_attention %q, %c state @kv0[0]
      {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32}
      : tensor<?x64xf32> -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Lm_Activation:$query, Lm_Cache:$cache,
                       FlatSymbolRefAttr:$state, I64Attr:$state_layer,
                       I64Attr:$heads, I64Attr:$kv_heads, I64Attr:$head_dim,
                       F32Attr:$scale,
                       DefaultValuedAttr<I64Attr, "0">:$window,
                       DefaultValuedAttr<F32Attr, "0.0f">:$soft_cap,
                       UnitAttr:$bidirectional,
                       OptionalAttr<DenseF32ArrayAttr>:$slopes,
                       UnitAttr:$rounded_slopes);
  let results = (outs Lm_ActivationOrQuantized:$result);
  let assemblyFormat = [{
    $query `,` $cache `state` $state `[` $state_layer `]` attr-dict
    `:` type($query) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif
