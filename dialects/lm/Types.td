// Types of the lm dialect and the constraints that its operands share.
#ifndef INGOT_DIALECTS_LM_TYPES
#define INGOT_DIALECTS_LM_TYPES

include "dialects/lm/Base.td"

class Lm_Type<string className, string typeMnemonic>
    : TypeDef<Lm_Dialect, className> {
  let mnemonic = typeMnemonic;
}

def Lm_Quantized : Lm_Type<"Quantized", "quantized"> {
  let summary = "Activation rows quantised to integers, a float32 scale for each K-group.";
  let description = [{
    One row a token: `columns` codes of `bits` bits and, for each group of
    `group` columns (the last may be short), a float32 scale and the sum of the
    codes. The law of its values is in docs/numerics.md. The encoding of the
    weights that read it decides the bits: int8 weights take codes of 16 bits,
    int4 weights of 8.

    - quantized_c1: `columns` and `group` are positive.
    - quantized_c2: `bits` is 8 or 16.

    Example: `!lm.quantized<576, group = 128, bits = 16>`
  }];
  let parameters = (ins "int64_t":$columns, "int64_t":$group, "int64_t":$bits);
  let assemblyFormat = "`<` $columns `,` `group` `=` $group `,` `bits` `=` $bits `>`";
  let genVerifyDecl = 1;
}

def Lm_Cache : Lm_Type<"Cache", "cache"> {
  let summary = "Proof that the step's keys and values of a layer are in the cache.";
  let description = [{
    A token without data: it orders the reads of a layer's state after its
    writes.

    Example: `!lm.cache`
  }];
}

def Lm_Activation
    : Type<CPred<"::ingot::lm::isActivation($_self)">,
           "rows of float32 activations (tensor<?xHxf32>)",
           "::mlir::RankedTensorType">;

def Lm_TokenRow
    : Type<CPred<"::ingot::lm::isTokenRow($_self)">,
           "an int32 for each token (tensor<?xi32>)",
           "::mlir::RankedTensorType">,
      BuildableType<[{::mlir::RankedTensorType::get(
          {::mlir::ShapedType::kDynamic}, $_builder.getI32Type())}]>;

def Lm_ActivationOrQuantized
    : AnyTypeOf<[Lm_Activation, Lm_Quantized],
                "rows of float32 or quantised activations">;

#endif
