// Attributes of the plan dialect: encodings, parts of source tensors, places in
// the weights segment and kernel variants.
#ifndef INGOT_DIALECTS_PLAN_ATTRS
#define INGOT_DIALECTS_PLAN_ATTRS

include "dialects/plan/Base.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class Plan_Enum<string name, string description, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, description, cases> {
  let cppNamespace = "::ingot::plan";
  let genSpecializedAttr = 0;
}

def Plan_Domain : Plan_Enum<"Domain", "what a buffer has a row for", [
  I32EnumAttrCase<"Token", 0, "token">,
  I32EnumAttrCase<"LogitRow", 1, "logit_row">,
  I32EnumAttrCase<"Slot", 2, "slot">
]>;
def Plan_DomainAttr : EnumAttr<Plan_Dialect, Plan_Domain, "domain">;

def Plan_Code : Plan_Enum<"Code", "the form of a weight's codes", [
  I32EnumAttrCase<"F32", 0, "f32">, I32EnumAttrCase<"F16", 1, "f16">,
  I32EnumAttrCase<"BF16", 2, "bf16">, I32EnumAttrCase<"I8", 3, "i8">,
  I32EnumAttrCase<"I4", 4, "i4">
]>;

// The order is that of StoredForm in compiler/stored/StoredForm.h.
def Plan_Stored : Plan_Enum<"Stored", "the form of a tensor in its source file", [
  I32EnumAttrCase<"F32", 0, "f32">, I32EnumAttrCase<"F16", 1, "f16">,
  I32EnumAttrCase<"BF16", 2, "bf16">, I32EnumAttrCase<"Q8_0", 3, "q8_0">,
  I32EnumAttrCase<"Q4_0", 4, "q4_0">, I32EnumAttrCase<"Q4_1", 5, "q4_1">,
  I32EnumAttrCase<"Q5_0", 6, "q5_0">, I32EnumAttrCase<"Q5_1", 7, "q5_1">,
  I32EnumAttrCase<"Q4_K", 8, "q4_k">, I32EnumAttrCase<"Q5_K", 9, "q5_k">,
  I32EnumAttrCase<"Q6_K", 10, "q6_k">, I32EnumAttrCase<"F64", 11, "f64">,
  I32EnumAttrCase<"F8E4M3", 12, "f8_e4m3">,
  I32EnumAttrCase<"F8E5M2", 13, "f8_e5m2">,
  I32EnumAttrCase<"F8E8M0", 14, "f8_e8m0">,
  I32EnumAttrCase<"Codes", 15, "codes">
]>;

def Plan_Layout : Plan_Enum<"Layout", "how a weight is packed", [
  I32EnumAttrCase<"Row", 0, "row">, I32EnumAttrCase<"R16", 1, "r16">,
  I32EnumAttrCase<"MMA16", 2, "mma16">
]>;
def Plan_LayoutAttr : EnumAttr<Plan_Dialect, Plan_Layout, "layout">;

def Plan_StateDType : Plan_Enum<"StateDType", "the element of a state", [
  I32EnumAttrCase<"F32", 0, "f32">, I32EnumAttrCase<"F16", 1, "f16">,
  I32EnumAttrCase<"I8", 2, "i8">
]>;
def Plan_StateDTypeAttr : EnumAttr<Plan_Dialect, Plan_StateDType, "state_dtype">;

class Plan_Attr<string name, string attrMnemonic> : AttrDef<Plan_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Plan_EncodingAttr : Plan_Attr<"Encoding", "encoding"> {
  let summary = "How the numbers of a weight are stored.";
  let description = [{
    Float codes have no group. Integer codes share a float16 scale, and where
    `minimum` is given a float16 minimum, in each `group` elements of K.
    - encoding_c1: group is 0 for float codes and a positive multiple of 32 otherwise.
    - encoding_c2: minimum is given for i4 only.

    Examples: `#plan.encoding<f16>`, `#plan.encoding<i4, group = 32, minimum>`
  }];
  let parameters = (ins EnumParameter<Plan_Code>:$code, "int64_t":$group, "bool":$minimum);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isInteger() const { return getCode() == Code::I8 || getCode() == Code::I4; }
    // Bits of the activation codes that an integer code is multiplied with.
    int64_t getActivationBits() const { return getCode() == Code::I8 ? 16 : 8; }
    // "i8-g128", "i4-g32-min", "f16".
    std::string getShortName() const;
  }];
}

def Plan_PartAttr : Plan_Attr<"Part", "part"> {
  let summary = "A tensor of a source file that makes rows of a weight.";
  let description = [{
    Bytes [offset, offset + size) of a `plan.source`, the tensor `name` of `rows` x `columns` in the
    form `stored`. Where `permute` is not 0, the rows of each of that many heads are
    stored for interleaved rotation: stored row 2*i + s of a head of D rows is
    logical row s*(D/2) + i. `stored_rows`, `first`, `run`, `stride`, `transposed` and
    `details` are those of `#lm.part`.
    - part_c1: sizes are positive and `size` is what rows, columns and form need.
    - part_c2: columns are whole blocks of the stored form.
    - part_c3: permute is 0 or divides rows into even heads.
    - part_c4: first, run and stride stand with stored_rows, lie within it, and not
      with permute; transposed needs a form without blocks.
    - part_c5: details can be read and their tensors have the sizes that the shape asks for;
      codes are there exactly for the form codes.

    Example: `#plan.part<source = @src0, name = "q_proj", offset = 64, size = 4096,
    stored = f32, rows = 32, columns = 32>`
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$source, "::mlir::StringAttr":$name,
      "uint64_t":$offset, "uint64_t":$size, EnumParameter<Plan_Stored>:$stored,
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

def Plan_PlacementAttr : Plan_Attr<"Placement", "placement"> {
  let summary = "Where a weight lies in the weights segment.";
  let description = [{
    Bytes [offset, offset + size) of the weights segment. The planes of scales
    and minima start at `scales` and `mins` from `offset`; 0 means none.
    - placement_c1: offset, scales and mins are multiples of 64; the planes lie in order
      within size.

    Example: `#plan.placement<offset = 0, size = 4352, scales = 4096, mins = 0>`
  }];
  let parameters = (ins "uint64_t":$offset, "uint64_t":$size, "uint64_t":$scales, "uint64_t":$mins);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Plan_VariantAttr : Plan_Attr<"Variant", "variant"> {
  let summary = "A kernel and the row counts that it serves.";
  let description = [{
    `kernel` serves steps whose launch has r rows, first <= r <= last; last 0
    means that there is no bound.
    - variant_c1: first >= 1 and (last = 0 or last >= first).

    Example: `#plan.variant<1, 8, @linear_f32_r16xt8>`
  }];
  let parameters = (ins "uint32_t":$first, "uint32_t":$last, "::mlir::FlatSymbolRefAttr":$kernel);
  let assemblyFormat = "`<` $first `,` $last `,` $kernel `>`";
  let genVerifyDecl = 1;
}
def Plan_VariantsAttr : TypedArrayAttrBase<Plan_VariantAttr, "kernel variants by row count">;

def Plan_GeometryAttr : Plan_Attr<"Geometry", "geometry"> {
  let summary = "How a CUDA kernel is launched.";
  let description = [{
    Blocks of `threads` with `shared` bytes of dynamic shared memory. A block computes
    `rows` x `tokens` outputs where the operation is tiled, else one row of the step;
    the grids follow from that and from the step (CudaAbi.h).
    - geometry_c1: threads are whole warps up to 1024, shared is at most 227 KiB, rows and
      tokens are 1 to 1024.

    Example: `#plan.geometry<threads = 128, shared = 36864, rows = 32, tokens = 8>`
  }];
  let parameters = (ins "int64_t":$threads, "int64_t":$shared, "int64_t":$rows, "int64_t":$tokens);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Plan_PartsAttr : TypedArrayAttrBase<Plan_PartAttr, "parts of source tensors">;

#endif
