// Types of the buffers of a step: how one row is laid out.
#ifndef INGOT_DIALECTS_PLAN_TYPES
#define INGOT_DIALECTS_PLAN_TYPES

include "dialects/plan/Base.td"
include "mlir/IR/AttrTypeBase.td"

class Plan_Type<string name, string typeMnemonic>
    : TypeDef<Plan_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Plan_RowsType : Plan_Type<"Rows", "rows"> {
  let summary = "Rows of float32.";
  let description = [{
    `columns` float32 values a row, rows one after another without padding.
    - rows_c1: columns > 0.

    Example: `!plan.rows<576>`
  }];
  let parameters = (ins "int64_t":$columns);
  let assemblyFormat = "`<` $columns `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    uint64_t getRowBytes() const { return uint64_t(getColumns()) * 4; }
  }];
}

def Plan_QuantizedRowsType : Plan_Type<"QuantizedRows", "quantized_rows"> {
  let summary = "Rows quantised for integer dot products.";
  let description = [{
    Codes of 8 or 16 bits, then a float32 scale for each group of K, then the
    int32 sum of each group's codes: QuantizedRows in runtime/plan/KernelAbi.h.
    The codes are padded to a multiple of 32, the row to a multiple of 64 bytes.
    - quantized_rows_c1: columns > 0; group is a positive multiple of 32.
    - quantized_rows_c2: bits is 8 or 16.

    Example: `!plan.quantized_rows<576, group = 128, bits = 16>`
  }];
  let parameters = (ins "int64_t":$columns, "int64_t":$group, "int64_t":$bits);
  let assemblyFormat = "`<` $columns `,` `group` `=` $group `,` `bits` `=` $bits `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    uint64_t getNumGroups() const { return (uint64_t(getColumns()) + getGroup() - 1) / getGroup(); }
    uint64_t getScalesOffset() const { return (uint64_t(getColumns()) + 31) / 32 * 32 * getBits() / 8; }
    uint64_t getSumsOffset() const { return getScalesOffset() + 4 * getNumGroups(); }
    uint64_t getRowBytes() const { return (getSumsOffset() + 4 * getNumGroups() + 63) / 64 * 64; }
  }];
}

def Plan_HalfRowsType : Plan_Type<"HalfRows", "half_rows"> {
  let summary = "Rows of float16 with one scale, as the tensor cores read them.";
  let description = [{
    `columns` halves, zero up to a multiple of 64, then in rows of two parts as many
    halves of what the first leave of each element, then the float32 scale of the row:
    "activations" in runtime/plan/CudaAbi.h. Rows are multiples of 64 bytes.
    - half_rows_c1: columns > 0.
    - half_rows_c2: parts is 1 or 2.

    Example: `!plan.half_rows<576>`, `!plan.half_rows<576, parts = 2>`
  }];
  let parameters = (ins "int64_t":$columns, DefaultValuedParameter<"int64_t", "1">:$parts);
  let assemblyFormat = "`<` $columns (`,` `parts` `=` $parts^)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    // Of the second part; 0 where there is none.
    uint64_t getRestOffset() const { return getParts() == 2 ? getScaleOffset() / 2 : 0; }
    uint64_t getScaleOffset() const { return (uint64_t(getColumns()) + 63) / 64 * 64 * 2 * getParts(); }
    uint64_t getRowBytes() const { return (getScaleOffset() + 4 + 63) / 64 * 64; }
  }];
}

#endif
