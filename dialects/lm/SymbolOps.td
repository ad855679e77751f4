// The symbols of a model (files, weights, state) and the program over them.
#ifndef INGOT_DIALECTS_LM_SYMBOLOPS
#define INGOT_DIALECTS_LM_SYMBOLOPS

include "dialects/lm/Attrs.td"
include "dialects/lm/Types.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Lm_Op<string mnemonic, list<Trait> traits = []>
    : Op<Lm_Dialect, mnemonic, traits>;

def Lm_SourceOp : Lm_Op<"source", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "An input file that weights point into.";
  let description = [{
    `name` is the file's name within the model's folder and goes into the
    artifact; `path` opens it, and is absent where paths are hidden (tools then
    look for `name` in the folder they are given). `hash` is the XXH3-64 of its
    bytes in 16 hexadecimal digits.

    - source_c1: `size` is not negative.
    - source_c2: `hash` is 16 lower-case hexadecimal digits.

    Example:
    ```mlir
    lm.source @src1 {name = "model.safetensors", size = 4096 : i64,
                     hash = "00000000deadbeef"}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$name,
                       OptionalAttr<StrAttr>:$path, I64Attr:$size,
                       StrAttr:$hash);
  let assemblyFormat = "$sym_name attr-dict";
  let hasVerifier = 1;
}

def Lm_WeightOp : Lm_Op<"weight", [Symbol, HasParent<"::mlir::ModuleOp">,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A constant of the model: where its bytes lie and how they will be encoded.";
  let description = [{
    `shape` is [out, in] for a matrix and [n] for a vector. The value is the
    rows of its parts, one part after another, converted to `encoding`: exactly
    where the stored form is that encoding (q8_0 and q5_0 are i8 group 32, q4_0 is i4
    group 32, q4_1 is i4 group 32 with minimum), else by `method`: `stored` keeps
    the codes and rounds scales and minima to float16, `rtn` goes through float32
    and rounds to nearest.
    A small constant (inverse frequencies) holds its `value` instead of parts.
    `layout` r16 is for tables and matrices, row for vectors.

    - weight_c1: `shape` has one or two positive dimensions.
    - weight_c2: either parts or a float32 `value` of that shape are given.
    - weight_c3: the parts' rows add up to the first dimension, and their columns
      are the second (1 for a vector).
    - weight_c4: each part and each tensor of its details names an `lm.source` and
      lies within its size.
    - weight_c5: an integer encoding and layout r16 belong to matrices.
    - weight_c6: a lossy conversion to an integer encoding names its `method` (rtn or
      stored), and stored is named only where the codes can be kept.

    Example:
    ```mlir
    lm.weight @layer.1.q [32, 64] encoding <f16> layout r16
      parts [#lm.part<source = @src0, name = "q_proj", offset = 0, size = 4096,
                      stored = f16, rows = 32, columns = 64>]
    lm.weight @rope.1 [2] encoding <f32> layout row
      value dense<[1.0, 0.01]> : tensor<2xf32>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI64ArrayAttr:$shape,
                       Lm_Encoding:$encoding, Lm_LayoutAttr:$layout,
                       OptionalAttr<Lm_PartArray>:$parts,
                       OptionalAttr<ElementsAttr>:$value,
                       OptionalAttr<StrAttr>:$method);
  let assemblyFormat = [{
    $sym_name $shape `encoding` $encoding `layout` `` $layout
    (`method` $method^)? (`parts` $parts^)? (`value` $value^)?
    attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    bool isMatrix() { return getShape().size() == 2; }
    /// Rows and columns of the matrix; a vector is n rows of one column.
    int64_t getRows() { return getShape()[0]; }
    int64_t getColumns() { return isMatrix() ? getShape()[1] : 1; }
    int64_t getNumElements() { return getRows() * getColumns(); }
    /// The parts, none for a weight with a value.
    ::llvm::SmallVector<PartAttr> getPartList();
  }];
}

def Lm_StateOp : Lm_Op<"state", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "Keys and values that outlive a step, for layers of one geometry.";
  let description = [{
    Each of `layers` layers keeps `kv_heads` keys and values of `head_dim`
    elements a position, in `dtype`. `window` is how many positions a query can
    still see, 0 for all; older ones may be dropped.

    - state_c1: `layers`, `kv_heads` and `head_dim` are positive, `window` is not negative.
    - state_c2: `dtype` is f16, f32 or i8. The last stores codes of -127 to 127
      and a float32 scale for each position and head (docs/numerics.md).

    Example:
    ```mlir
    lm.state @kv1 {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64,
                   dtype = f16}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$layers,
                       I64Attr:$kv_heads, I64Attr:$head_dim, TypeAttr:$dtype,
                       DefaultValuedAttr<I64Attr, "0">:$window);
  let assemblyFormat = "$sym_name attr-dict";
  let hasVerifier = 1;
}

def Lm_ProgramOp : Lm_Op<"program", [IsolatedFromAbove, FunctionOpInterface,
    HasParent<"::mlir::ModuleOp">, SingleBlock]> {
  let summary = "The model: token ids and positions in, rows of logits (or vectors of texts) out.";
  let description = [{
    One block. The first argument holds the token ids of the step, the second
    their positions in their sequences.

    - program_c1: it takes `tensor<?xi32>` twice.
    - program_c2: it returns one `tensor<?xVxf32>`.
    - program_c3: no op reads selected rows (see `lm.select_rows`, `lm.pool`) together with rows of
      all tokens, and none that uses the state or marks a cut reads selected ones.

    Example:
    ```mlir
    lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>)
        -> tensor<?x128xf32> {
      %0 = lm.embed %tokens, @embed : tensor<?x64xf32>
      %1 = lm.linear %0, @embed : tensor<?x64xf32> -> tensor<?x128xf32>
      lm.return %1 : tensor<?x128xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() {
      return getFunctionType().getInputs();
    }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() {
      return getFunctionType().getResults();
    }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    ::mlir::Block &getEntryBlock() { return getBody().front(); }
    ::mlir::Value getTokens() { return getEntryBlock().getArgument(0); }
    ::mlir::Value getPositions() { return getEntryBlock().getArgument(1); }
  }];
}

def Lm_ReturnOp : Lm_Op<"return", [Pure, Terminator, HasParent<"ProgramOp">]> {
  let summary = "Ends a program with its logits.";
  let description = [{
    - return_c1: the operand's type is the program's result type.

    Example:
    ```mlir
    lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>)
        -> tensor<?x64xf32> {
      %0 = lm.embed %tokens, @embed : tensor<?x64xf32>
      lm.return %0 : tensor<?x64xf32>
    }
    ```
  }];
  let arguments = (ins Lm_Activation:$logits);
  let assemblyFormat = "$logits attr-dict `:` type($logits)";
  let hasVerifier = 1;
}

#endif
