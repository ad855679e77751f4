// Attributes of the lm dialect: how a weight is encoded, where its bytes lie.
#ifndef INGOT_DIALECTS_LM_ATTRS
#define INGOT_DIALECTS_LM_ATTRS

include "dialects/lm/Base.td"

class Lm_Attr<string className, string attrMnemonic>
    : AttrDef<Lm_Dialect, className> {
  let mnemonic = attrMnemonic;
}

class Lm_Enum<string name, string description, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, description, cases> {
  let cppNamespace = "::ingot::lm";
  let genSpecializedAttr = 0;
}

// Changing the codes changes WeightCode in runtime/plan/plan.fbs.
def Lm_WeightCodeEnum : Lm_Enum<"WeightCode", "element of an encoding", [
    I32EnumAttrCase<"F32", 0, "f32">, I32EnumAttrCase<"F16", 1, "f16">,
    I32EnumAttrCase<"BF16", 2, "bf16">, I32EnumAttrCase<"I8", 3, "i8">,
    I32EnumAttrCase<"I4", 4, "i4">]>;

// The order is that of StoredForm in compiler/stored/StoredForm.h.
def Lm_StoredEnum : Lm_Enum<"Stored", "element or block of a source file", [
    I32EnumAttrCase<"F32", 0, "f32">, I32EnumAttrCase<"F16", 1, "f16">,
    I32EnumAttrCase<"BF16", 2, "bf16">, I32EnumAttrCase<"Q8_0", 3, "q8_0">,
    I32EnumAttrCase<"Q4_0", 4, "q4_0">, I32EnumAttrCase<"Q4_1", 5, "q4_1">,
    I32EnumAttrCase<"Q5_0", 6, "q5_0">, I32EnumAttrCase<"Q5_1", 7, "q5_1">,
    I32EnumAttrCase<"Q4_K", 8, "q4_k">, I32EnumAttrCase<"Q5_K", 9, "q5_k">,
    I32EnumAttrCase<"Q6_K", 10, "q6_k">, I32EnumAttrCase<"F64", 11, "f64">,
    I32EnumAttrCase<"F8E4M3", 12, "f8_e4m3">,
    I32EnumAttrCase<"F8E5M2", 13, "f8_e5m2">,
    I32EnumAttrCase<"F8E8M0", 14, "f8_e8m0">,
    I32EnumAttrCase<"Codes", 15, "codes">]>;

def Lm_LayoutEnum : Lm_Enum<"Layout", "how a weight will lie in the artifact", [
    I32EnumAttrCase<"R16", 0, "r16">, I32EnumAttrCase<"Row", 1, "row">]>;

def Lm_ActivationEnum : Lm_Enum<"ActivationKind", "function of a gate", [
    I32EnumAttrCase<"Silu", 0, "silu">, I32EnumAttrCase<"Gelu", 1, "gelu">,
    I32EnumAttrCase<"GeluTanh", 2, "gelu_tanh">,
    I32EnumAttrCase<"Relu", 3, "relu">]>;

def Lm_NormKindEnum : Lm_Enum<"NormKind", "norm of a head", [
    I32EnumAttrCase<"Rms", 0, "rms">, I32EnumAttrCase<"Layer", 1, "layer">]>;

def Lm_NormKindAttr : EnumAttr<Lm_Dialect, Lm_NormKindEnum, "norm_kind"> {
  let summary = "Whether a norm of heads divides by the root mean square (rms) or by the deviation (layer).";
}

// Changing the codes changes PoolKind in runtime/plan/plan.fbs.
def Lm_PoolKindEnum : Lm_Enum<"PoolKind", "way to one row of a sequence", [
    I32EnumAttrCase<"Mean", 0, "mean">, I32EnumAttrCase<"Cls", 1, "cls">,
    I32EnumAttrCase<"Last", 2, "last">]>;

def Lm_PoolKindAttr : EnumAttr<Lm_Dialect, Lm_PoolKindEnum, "pool_kind"> {
  let summary = "How the rows of a sequence become one: their mean, the first (cls) or the last.";
}

// Changing the codes changes RopeScaling in runtime/plan/plan.fbs.
def Lm_RopeScalingEnum : Lm_Enum<"RopeScaling", "choice of rotary frequencies", [
    I32EnumAttrCase<"Fixed", 0, "fixed">, I32EnumAttrCase<"Dynamic", 1, "dynamic">,
    I32EnumAttrCase<"Listed", 2, "listed">]>;

def Lm_RopeScalingAttr : EnumAttr<Lm_Dialect, Lm_RopeScalingEnum, "rope_scaling"> {
  let summary = "Which frequencies a token rotates by: always the same (fixed), by length (dynamic) or one of two lists (listed).";
}

def Lm_LayoutAttr : EnumAttr<Lm_Dialect, Lm_LayoutEnum, "layout"> {
  let summary = "Interleaved 16 output rows at a time (r16), or plain rows (row).";
}

def Lm_ActivationAttr : EnumAttr<Lm_Dialect, Lm_ActivationEnum, "activation"> {
  let summary = "The function of a gate.";
}

def Lm_Encoding : Lm_Attr<"Encoding", "encoding"> {
  let summary = "How the numbers of a weight are stored in the artifact.";
  let description = [{
    A float code stores each element. An integer code stores, for each output
    row, groups of `group` elements along K (the last may be short) that share
    a float16 scale: `value = scale * (code - offset)` with offset 128 (i8) or 8
    (i4), or with `minimum`, `value = scale * code + min`.

    - encoding_c1: an integer code has a positive group that is a multiple of 32.
    - encoding_c2: a float code has no group.
    - encoding_c3: only i4 has a minimum.

    Examples: `#lm.encoding<f16>`, `#lm.encoding<i8, group = 128>`,
    `#lm.encoding<i4, group = 32, minimum>`
  }];
  let parameters = (ins EnumParameter<Lm_WeightCodeEnum>:$code,
                        DefaultValuedParameter<"int64_t", "0">:$group,
                        DefaultValuedParameter<"bool", "false">:$minimum);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isInteger() const {
      return getCode() == WeightCode::I8 || getCode() == WeightCode::I4;
    }
    /// Bits of the activation codes that an integer code is multiplied with.
    std::int64_t getActivationBits() const {
      return getCode() == WeightCode::I8 ? 16 : 8;
    }
    /// As people write it: "f16", "i8-g128", "i4-g32-min".
    std::string getShortName() const;
  }];
}

def Lm_Part : Lm_Attr<"Part", "part"> {
  let summary = "Consecutive rows of a source file that form part of a weight.";
  let description = [{
    `size` bytes at `offset` of the file that the `lm.source` symbol names,
    holding the tensor `name` of `rows` x `columns` elements in the form
    `stored`. A vector is a tensor of one column. `permute = H` undoes the
    reordering of GGUF's llama architecture: in each of H heads of D rows, stored
    row `2*i + s` is logical row `s*(D/2) + i`. Where `stored_rows` is not 0, the
    bytes hold that many rows, and logical row r is stored row
    `first + r / run * stride + r % run` (a projection that is fused with others).
    `transposed` bytes are [columns, stored rows].

    `details` tells of further tensors: `codes` (the scales, zero points and column
    groups of the form `codes`; compiler/stored/StoredDetails.h) and `adapters`,
    products of two low-rank matrices that are added to the rows.

    - part_c1: `rows` and `columns` are positive, `columns` is a multiple of the block of
      `stored`, and `size` is the bytes of that many blocks.
    - part_c2: `permute` (0 for none) divides `rows` into heads of an even number of rows.
    - part_c3: `first`, `run` and `stride` stand with `stored_rows`, lie within it, and not
      with `permute`; `transposed` needs a stored form without blocks.
    - part_c4: `details` has only keys that are known, its tensors have the sizes
      that the shape asks for, and `codes` is there exactly for the form `codes`.

    Example: `#lm.part<source = @src0, name = "blk.0.attn_q.weight", offset = 4096,
    size = 2176, stored = q8_0, rows = 32, columns = 64, permute = 4>`
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$source,
                        "::mlir::StringAttr":$name,
                        "int64_t":$offset, "int64_t":$size,
                        EnumParameter<Lm_StoredEnum>:$stored,
                        "int64_t":$rows, "int64_t":$columns,
                        DefaultValuedParameter<"int64_t", "0">:$permute,
                        DefaultValuedParameter<"int64_t", "0">:$stored_rows,
                        DefaultValuedParameter<"int64_t", "0">:$first,
                        DefaultValuedParameter<"int64_t", "0">:$run,
                        DefaultValuedParameter<"int64_t", "0">:$stride,
                        DefaultValuedParameter<"bool", "false">:$transposed,
                        OptionalParameter<"::mlir::DictionaryAttr">:$details);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Lm_PartArray : TypedArrayAttrBase<Lm_Part, "an array of parts">;

#endif
