// Operations of the plan dialect, in the order of runtime/plan/plan.fbs.
#ifndef INGOT_DIALECTS_PLAN_OPS
#define INGOT_DIALECTS_PLAN_OPS

include "dialects/plan/Attrs.td"
include "dialects/plan/Interfaces.td"
include "dialects/plan/Types.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

class Plan_Op<string mnemonic, list<Trait> traits = []> : Op<Plan_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Bytes and state of the module
//===----------------------------------------------------------------------===//

def Plan_SourceOp : Plan_Op<"source", [Symbol]> {
  let summary = "An input file that weights are made from.";
  let description = [{
    `name` is the file's name and goes into the artifact; `path` opens it, and is
    absent where paths are hidden. Size and XXH3-64 are those found at import: the
    writer refuses a file that has changed since.
    - source_c1: size is not negative.
    - source_c2: the hash is 16 lower-case hexadecimal digits.

    Example:
    ```mlir
    plan.source @src0 name "model.safetensors" size 4160 hash "2d06800538d394c2"
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$name, OptionalAttr<StrAttr>:$path,
      I64Attr:$size, StrAttr:$hash);
  let assemblyFormat = "$sym_name `name` $name (`path` $path^)? `size` $size `hash` $hash attr-dict";
  let hasVerifier = 1;
}

def Plan_WeightOp : Plan_Op<"weight", [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A packed tensor of the weights segment.";
  let description = [{
    `rows` x `columns` numbers in `encoding`, packed as `layout`: "r16" (16 output
    rows interleaved, docs/numerics.md) for matrices, "mma16" for those that tensor
    cores read (CudaAbi.h), "row" for vectors of n rows and one column.
    The numbers are the rows of `parts` one after another, or the float32 values
    given in `value`. Stored numbers that already have the encoding's blocks are
    moved, not rounded again; all others are rounded by `method` (stored: codes
    are kept, scales and minima rounded to float16). `placement`
    is absent until assign-weights has run.
    - weight_c1: rows and columns are positive.
    - weight_c2: there are either parts or a value.
    - weight_c3: the parts' rows sum to rows, and each part has `columns` columns.
    - weight_c4: a value is dense float32 of rows x columns elements, and the
      encoding is f32. (Elements, not an array: the text of arrays rounds floats.)
    - weight_c5: layout "row" holds f32.
    - weight_c6: the source of each part exists, and the part lies within it.
    - weight_c7: method is "rtn" or "stored".
    - weight_c8: layout "mma16" holds no f32.

    Example:
    ```mlir
    plan.source @src0 name "model.safetensors" size 4160 hash "2d06800538d394c2"
    plan.weight @layer.0.q encoding <i8, group = 32> layout r16 rows 32 columns 32 method "rtn"
      parts [#plan.part<source = @src0, name = "q_proj", offset = 64, size = 4096,
                        stored = f32, rows = 32, columns = 32>]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_EncodingAttr:$encoding,
      Plan_LayoutAttr:$layout, I64Attr:$rows, I64Attr:$columns,
      OptionalAttr<StrAttr>:$method, OptionalAttr<Plan_PartsAttr>:$parts,
      OptionalAttr<ElementsAttr>:$value, OptionalAttr<Plan_PlacementAttr>:$placement);
  let assemblyFormat = [{
    $sym_name `encoding` $encoding `layout` $layout `rows` $rows `columns` $columns
    (`method` $method^)? (`parts` $parts^)? (`value` $value^)?
    (`placement` $placement^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    // A float32 vector of `size` elements as it is, without packing.
    bool isVector(int64_t size) {
      return getLayout() == Layout::Row && int64_t(getRows()) == size && getColumns() == 1;
    }
    uint64_t getNumElements() { return uint64_t(getRows()) * uint64_t(getColumns()); }
  }];
}

def Plan_StateOp : Plan_Op<"state", [Symbol]> {
  let summary = "A group of layers whose keys and values share one geometry.";
  let description = [{
    One paged cache: a block holds 32 positions of all layers of the group. A
    window of 0 keeps all positions. `dtype` i8 stores codes, with a float32 scale
    for each position and head.
    - state_c1: layers, kv_heads and head_dim are positive; window is not negative.

    Example:
    ```mlir
    plan.state @kv0 layers 2 kv_heads 2 head_dim 16 dtype f16 window 0
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$layers, I64Attr:$kv_heads,
      I64Attr:$head_dim, Plan_StateDTypeAttr:$dtype, I64Attr:$window);
  let assemblyFormat = [{
    $sym_name `layers` $layers `kv_heads` $kv_heads `head_dim` $head_dim
    `dtype` $dtype `window` $window attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    // Of one head's key, or value, at one position.
    uint64_t getHeadBytes();
    // Of one layer's part of a block; the values follow the keys.
    uint64_t getValueOffset();
    uint64_t getLayerBlockBytes() { return 2 * getValueOffset(); }
  }];
}

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

def Plan_TargetOp : Plan_Op<"target", [Symbol, SymbolTable, NoTerminator, SingleBlock,
                                       IsolatedFromAbove, NoRegionArguments]> {
  let summary = "What runs on one kind of device.";
  let description = [{
    Buffers, kernels and segments. Segments run in the order in which they stand,
    without the heads and fills of exits, which stand behind the cut that they
    begin at and run instead of what follows it.
    `levels` names the feature levels that code is made for, best first; `logits` is
    the buffer that a step is run for. The arenas' sizes, in bytes
    for one row of capacity, are absent until assign-buffers has run.
    - target_c1: there is at least one level, and their names differ.
    - target_c2: logits names a buffer of float32 rows in the domain logit_row.
    - target_c3: the region holds buffers, kernels and segments only, and at least one
      segment.
    - target_c4: once the arenas have sizes, each buffer has an offset, a multiple of
      64, and lies within the arena of its domain.
    - target_c5: a segment's input is the output of the segment before it; that of a
      head or fill, of the segment that it names.
    - target_c6: slots is positive.
    - target_c7: the target @cuda has levels that are called sm_N, with or without a
      letter, or compute_N.

    Example:
    ```mlir
    plan.target @cpu layout "r16" levels ["x86-64-v3"] logits @logits {
      plan.buffer @logits domain logit_row : !plan.rows<64>
      plan.segment @main {
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$weight_layout,
      StrArrayAttr:$levels, FlatSymbolRefAttr:$logits,
      OptionalAttr<I64Attr>:$token_arena_bytes, OptionalAttr<I64Attr>:$logit_row_arena_bytes,
      DefaultValuedAttr<I64Attr, "1">:$slots);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `layout` $weight_layout `levels` $levels `logits` $logits
    (`token_arena_bytes` $token_arena_bytes^)?
    (`logit_row_arena_bytes` $logit_row_arena_bytes^)? attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    // Whether CUDA devices run it; any other target is the cpu's.
    bool isCuda() { return getSymName() == "cuda"; }
    // How its matrices are packed.
    Layout getMatrixLayout() { return isCuda() ? Layout::MMA16 : Layout::R16; }
  }];
}

def Plan_BufferOp : Plan_Op<"buffer", [Symbol, HasParent<"TargetOp">]> {
  let summary = "Scratch of a step: a row for each token or logits row.";
  let description = [{
    Row r starts at arena(domain) + capacity * offset + r * row bytes, so that one
    plan serves any capacity. The domain slot has the target's `slots` rows for
    each token (one for each expert of a token) in the arena of tokens. Two buffers may
    share memory where their lives do
    not meet.
    - buffer_c1: the type is `!plan.rows`, or for the cpu `!plan.quantized_rows`, for
      CUDA devices `!plan.half_rows`.
    - buffer_c2: an offset is not negative.

    Example:
    ```mlir
    plan.target @cpu layout "r16" levels ["x86-64-v3"] logits @logits {
      plan.buffer @logits domain logit_row : !plan.rows<64>
      plan.buffer @x domain token offset 0 : !plan.quantized_rows<64, group = 32, bits = 16>
      plan.segment @main {
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_DomainAttr:$domain,
      OptionalAttr<I64Attr>:$offset, TypeAttr:$type);
  let assemblyFormat = "$sym_name `domain` $domain (`offset` $offset^)? attr-dict `:` $type";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    uint64_t getRowBytes();
    int64_t getColumns();
    // Anything but float32 rows.
    bool isQuantized() { return !::mlir::isa<RowsType>(getType()); }
    // The K-group of quantised rows, else 0.
    int64_t getGroup();
  }];
}

def Plan_KernelOp : Plan_Op<"kernel", [Symbol, HasParent<"TargetOp">]> {
  let summary = "A compiled kernel: an operation and its constants.";
  let description = [{
    `config` holds the constants that the code is specialised for, as the kernel
    catalogue gives them; docs/kernel-names.md has the grammar of the names.
    `scratch` is the private memory of a worker in bytes.
    A kernel of the target @cuda has a geometry; beside the operations it may be for
    "attention_split" or "attention_merge", the other two kernels of an attention;
    for "sample", which chooses tokens from logits; for "library_linear", of variants
    that are left to cuBLASLt, and "library_finish", which stands behind those. No
    launch names "sample" and "library_finish".
    - kernel_c1: scratch is not negative, and op is the name of a launch operation.
    - kernel_c2: there is a geometry in the target @cuda, and in no other.

    Example:
    ```mlir
    plan.target @cpu layout "r16" levels ["x86-64-v3"] logits @logits {
      plan.buffer @logits domain logit_row : !plan.rows<64>
      plan.kernel @gather_rows op "gather_rows" config {} scratch 0
      plan.segment @main {
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$op, DictionaryAttr:$config, I64Attr:$scratch,
      OptionalAttr<Plan_GeometryAttr>:$geometry);
  let assemblyFormat = "$sym_name `op` $op `config` $config `scratch` $scratch (`geometry` $geometry^)? attr-dict";
  let hasVerifier = 1;
}

def Plan_SegmentOp : Plan_Op<"segment", [Symbol, HasParent<"TargetOp">, NoTerminator,
                                         SingleBlock, NoRegionArguments,
                                         DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A stretch of the program between two cuts.";
  let description = [{
    Launches in the order in which they run. The hidden states at the end may
    leave (`output`), and later steps may begin at the start (`input`).
    - segment_c1: the region holds launches only.
    - segment_c2: input and output name buffers of float32 rows in the domain token.
    - segment_c3: a head or fill names a segment before it, with an output, that is
      neither; it is one of the two, and has no output.
    - segment_c4: a head has the number of layers that run before it, more than the
      head before it, and writes the target's logits; nothing but a head has a
      number of layers or confidences.
    - segment_c5: a segment has at most one head and one fill, and no fill alone.

    Example:
    ```mlir
    plan.target @cpu layout "r16" levels ["x86-64-v3"] logits @logits {
      plan.buffer @logits domain logit_row : !plan.rows<64>
      plan.buffer @h domain token : !plan.rows<64>
      plan.segment @early output @h {
      }
      plan.segment @late input @h {
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<FlatSymbolRefAttr>:$input,
      OptionalAttr<FlatSymbolRefAttr>:$output, OptionalAttr<FlatSymbolRefAttr>:$head_of,
      OptionalAttr<FlatSymbolRefAttr>:$fill_of, OptionalAttr<I64Attr>:$layers,
      OptionalAttr<DenseF32ArrayAttr>:$confidence);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name (`head_of` $head_of^)? (`fill_of` $fill_of^)? (`layers` $layers^)?
    (`confidence` $confidence^)? (`input` $input^)? (`output` $output^)?
    attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    // A stretch of the program itself, neither head nor fill.
    bool isChain() { return !getHeadOfAttr() && !getFillOfAttr(); }
    // The segment whose end a head or fill begins at; null for others.
    ::mlir::FlatSymbolRefAttr getExitOf() {
      return getHeadOfAttr() ? getHeadOfAttr() : getFillOfAttr();
    }
  }];
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

class Plan_LaunchOp<string mnemonic, list<string> readNames, list<string> writeNames,
                    list<string> weightNames, string domain = "Domain::Token">
    : Plan_Op<mnemonic, [HasParent<"SegmentOp">,
        DeclareOpInterfaceMethods<SymbolUserOpInterface>,
        DeclareOpInterfaceMethods<Plan_LaunchOpInterface,
          ["getKernelOp", "getRowDomain", "getReadNames", "getWriteNames", "getWeightNames"]>]> {
  // The constraints of every launch; each operation goes on from c5.
  string common = [{
    - c1: the variants cover [1, inf) in ascending order, without gap or overlap.
    - c2: each variant's kernel exists in the target and is for this operation.
    - c3: operands exist and are of the right kind.
    - c4: buffers have the launch's row domain.
  }];
  let extraClassDefinition = [{
    ::llvm::StringRef $cppClass::getKernelOp() { return "}] # mnemonic # [{"; }
    void $cppClass::setVariants(::mlir::ArrayAttr variants) { setVariantsAttr(variants); }
    ::ingot::plan::Domain $cppClass::getRowDomain() { return }] # domain # [{; }
    ::llvm::SmallVector<::mlir::StringAttr, 3> $cppClass::getReadNames() {
      return detail::presentNames(*this, }] # "{" # !interleave(!foreach(n, readNames, "\"" # n # "\""), ", ") # "}" # [{);
    }
    ::llvm::SmallVector<::mlir::StringAttr, 3> $cppClass::getWriteNames() {
      return detail::presentNames(*this, }] # "{" # !interleave(!foreach(n, writeNames, "\"" # n # "\""), ", ") # "}" # [{);
    }
    ::llvm::SmallVector<::mlir::StringAttr, 3> $cppClass::getWeightNames() {
      return detail::presentNames(*this, }] # "{" # !interleave(!foreach(n, weightNames, "\"" # n # "\""), ", ") # "}" # [{);
    }
  }];
}

def Plan_EmbedOp : Plan_LaunchOp<"embed", [], ["output"], ["table", "bias"]> {
  let summary = "Rows of the embedding table for the step's tokens.";
  let description = [{
    output[t, :] = table[tokens[t], :] * scale (+ bias). The token ids are the step's own
    input; with `by_position` the rows are those of the tokens' positions. Aliases
    nothing.
    - embed_c5: the table is packed as the target's matrices; output is float32 rows as wide as it.
    - embed_c6: bias is a vector as wide as the table.

  }] # common # [{

    Example:
    ```mlir
    plan.embed table @embed to @h scale = 1.0 variants [#plan.variant<1, 0, @embed_f32>]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$table, FlatSymbolRefAttr:$output, F32Attr:$scale, Plan_VariantsAttr:$variants, UnitAttr:$by_position, OptionalAttr<FlatSymbolRefAttr>:$bias);
  let assemblyFormat = [{
    `table` $table (`bias` $bias^)? `to` $output (`by_position` $by_position^)? `scale` `=` $scale `variants` $variants attr-dict
  }];
}

def Plan_RopeTableOp : Plan_LaunchOp<"rope_table", [], ["output"], ["inv_freq"]> {
  let summary = "Cosines and sines of the step's positions.";
  let description = [{
    output[t] holds rotary_dim/2 cosines, then as many sines, of
    position * inv_freq, times attention_factor. `scaling` with original, theta and
    factor is that of `lm.rope_table`.
    - rope_table_c5: inv_freq is a vector of rotary_dim/2, twice that where listed;
      output is float32 rows of rotary_dim columns.
    - rope_table_c6: scaling is fixed, dynamic or listed; original is positive unless
      fixed; with dynamic also theta and factor, and rotary_dim is 4 or more.

  }] # common # [{

    Example:
    ```mlir
    plan.rope_table inv_freq @inv_freq to @rope rotary_dim = 16 attention_factor = 1.0 variants [#plan.variant<1, 0, @rope_table>]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$inv_freq, FlatSymbolRefAttr:$output, I64Attr:$rotary_dim, F32Attr:$attention_factor, Plan_VariantsAttr:$variants,
      DefaultValuedAttr<StrAttr, "\"fixed\"">:$scaling, DefaultValuedAttr<I64Attr, "0">:$original,
      DefaultValuedAttr<F64Attr, "0.0">:$theta, DefaultValuedAttr<F64Attr, "0.0">:$factor);
  let assemblyFormat = [{
    `inv_freq` $inv_freq `to` $output `rotary_dim` `=` $rotary_dim `attention_factor` `=` $attention_factor `variants` $variants attr-dict
  }];
}

def Plan_RmsNormOp : Plan_LaunchOp<"rms_norm", ["input"], ["output", "quantized"], ["weight"], "getDomain()"> {
  let summary = "Root mean square norm to float32, to quantised rows, or to both.";
  let description = [{
    The output may not alias the input.
    - rms_norm_c5: input and output are float32 rows of `width` columns, quantized is
      quantised rows of as many; at least one of the two is given.
    - rms_norm_c6: the weight is a vector of `width`.

  }] # common # [{

    Example:
    ```mlir
    plan.rms_norm @h weight @norm to @x width = 64 eps = 1.0e-5 weight_offset = 0.0 domain = token variants [#plan.variant<1, 0, @rms_norm>]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$input, FlatSymbolRefAttr:$weight, OptionalAttr<FlatSymbolRefAttr>:$output, OptionalAttr<FlatSymbolRefAttr>:$quantized, I64Attr:$width, F32Attr:$eps, F32Attr:$weight_offset, Plan_DomainAttr:$domain, Plan_VariantsAttr:$variants);
  let assemblyFormat = [{
    $input `weight` $weight (`to` $output^)? (`quantized` $quantized^)? `width` `=` $width
    `eps` `=` $eps `weight_offset` `=` $weight_offset `domain` `=` $domain `variants` $variants attr-dict
  }];
}

def Plan_LayerNormOp : Plan_LaunchOp<"layer_norm", ["input"], ["output", "quantized"], ["weight", "bias"], "getDomain()"> {
  let summary = "Layer norm to float32, to quantised rows, or to both.";
  let description = [{
    The output may not alias the input.
    - layer_norm_c5: input and output are float32 rows of `width` columns, quantized is
      quantised rows of as many; at least one of the two is given.
    - layer_norm_c6: weight and bias are vectors of `width`.

  }] # common # [{

    Example:
    ```mlir
    plan.layer_norm @h weight @norm to @x width = 64 eps = 1.0e-5 domain = token variants [#plan.variant<1, 0, @layer_norm>]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$input, FlatSymbolRefAttr:$weight, OptionalAttr<FlatSymbolRefAttr>:$bias, OptionalAttr<FlatSymbolRefAttr>:$output, OptionalAttr<FlatSymbolRefAttr>:$quantized, I64Attr:$width, F32Attr:$eps, Plan_DomainAttr:$domain, Plan_VariantsAttr:$variants);
  let assemblyFormat = [{
    $input `weight` $weight (`bias` $bias^)? (`to` $output^)? (`quantized` $quantized^)? `width` `=` $width
    `eps` `=` $eps `domain` `=` $domain `variants` $variants attr-dict
  }];
}

def Plan_QuantizeOp : Plan_LaunchOp<"quantize", ["input"], ["output"], [], "getDomain()"> {
  let summary = "Float32 rows to quantised rows.";
  let description = [{
    Each token and K-group has a scale of its own (docs/numerics.md).
    - quantize_c5: input is float32 rows and output quantised rows of `width` columns.

  }] # common # [{

    Example:
    ```mlir
    plan.quantize @x to @xq width = 64 domain = token variants [#plan.variant<1, 0, @quantize_g32>]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$input, FlatSymbolRefAttr:$output, I64Attr:$width, Plan_DomainAttr:$domain, Plan_VariantsAttr:$variants);
  let assemblyFormat = [{
    $input `to` $output `width` `=` $width `domain` `=` $domain `variants` $variants attr-dict
  }];
}

def Plan_LinearOp : Plan_LaunchOp<"linear", ["input", "residual"], ["output"], ["weight", "bias"], "getDomain()"> {
  let summary = "A matrix product with bias and residual.";
  let description = [{
    output[t, output_column + i] = sum over k of weight[i, k] * input[t, k], plus
    bias[i], plus residual[t, i]. The residual may be the output itself; the input
    may not.
    - linear_c5: k and n are the weight's columns and rows; it is packed as the target's
      matrices.
    - linear_c6: the input is k columns: on the cpu quantised rows of the group and bits
      that an integer encoding takes, float32 rows for a float encoding; in the target
      @cuda half rows for any.
    - linear_c7: columns [output_column, output_column + n) lie within the output, which
      is float32 rows.
    - linear_c8: a bias is a vector of n; a residual is float32 rows of n
      columns, and then the column is 0.
    - linear_c9: the output is not the input.
    - linear_c10: a variant whose kernel is for "library_linear" serves 65 rows and more
      of the domain token, of f16 or bf16 weights, in the target @cuda, which has a
      kernel for "library_finish".
    - linear_c11: a kernel for activations of two parts reads half rows that have them.

  }] # common # [{

    Example:
    ```mlir
    plan.linear @x weight @layer.0.o residual @h to @h k = 64 n = 64 column = 0 domain = token
      variants [#plan.variant<1, 8, @linear_f32_r16xt8>, #plan.variant<9, 0, @linear_f32_r16xt16>]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$input, FlatSymbolRefAttr:$weight, OptionalAttr<FlatSymbolRefAttr>:$bias, OptionalAttr<FlatSymbolRefAttr>:$residual, FlatSymbolRefAttr:$output, I64Attr:$k, I64Attr:$n, I64Attr:$output_column, Plan_DomainAttr:$domain, Plan_VariantsAttr:$variants);
  let assemblyFormat = [{
    $input `weight` $weight (`bias` $bias^)? (`residual` $residual^)? `to` $output
    `k` `=` $k `n` `=` $n `column` `=` $output_column `domain` `=` $domain `variants` $variants attr-dict
  }];
}

def Plan_GatedOp : Plan_LaunchOp<"gated", ["input"], ["output", "quantized"], [], "getDomain()"> {
  let summary = "The activated gate times the up projection.";
  let description = [{
    output[t, f] = act(input[t, f]) * input[t, width + f].
    - gated_c5: input is float32 rows of 2 * width columns, output float32 rows and
      quantized quantised rows of width columns; at least one of the two is given.

  }] # common # [{

    Example:
    ```mlir
    plan.gated @gu to @act width = 128 activation = "silu" variants [#plan.variant<1, 0, @gated_silu>]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$input, OptionalAttr<FlatSymbolRefAttr>:$output, OptionalAttr<FlatSymbolRefAttr>:$quantized, I64Attr:$width, StrAttr:$activation, Plan_VariantsAttr:$variants,
      DefaultValuedAttr<Plan_DomainAttr, "::ingot::plan::Domain::Token">:$domain);
  let assemblyFormat = [{
    $input (`to` $output^)? (`quantized` $quantized^)? `width` `=` $width `activation` `=` $activation `variants` $variants attr-dict
  }];
}

def Plan_ActivateOp : Plan_LaunchOp<"activate", ["input"], ["output", "quantized"], []> {
  let summary = "An activation of each element.";
  let description = [{
    output[t, f] = act(input[t, f]). The output may be the input.
    - activate_c5: input and output are float32 rows of width columns, quantized is
      quantised rows of as many; at least one of the two is given.

  }] # common # [{

    Example:
    ```mlir
    plan.activate @x to @h width = 64 activation = "gelu" variants [#plan.variant<1, 0, @activate_gelu>]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$input, OptionalAttr<FlatSymbolRefAttr>:$output, OptionalAttr<FlatSymbolRefAttr>:$quantized, I64Attr:$width, StrAttr:$activation, Plan_VariantsAttr:$variants);
  let assemblyFormat = [{
    $input (`to` $output^)? (`quantized` $quantized^)? `width` `=` $width `activation` `=` $activation `variants` $variants attr-dict
  }];
}

def Plan_AddOp : Plan_LaunchOp<"add", ["residual", "update"], ["output"], []> {
  let summary = "The residual stream plus a scaled update.";
  let description = [{
    output[t, i] = residual[t, i] + update[t, i] * scale. The output may be the
    residual.
    - add_c5: all three are float32 rows of `width` columns.

  }] # common # [{

    Example:
    ```mlir
    plan.add @h update @x to @h width = 64 scale = 1.0 variants [#plan.variant<1, 0, @add>]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$residual, FlatSymbolRefAttr:$update, FlatSymbolRefAttr:$output, I64Attr:$width, F32Attr:$scale, Plan_VariantsAttr:$variants);
  let assemblyFormat = [{
    $residual `update` $update `to` $output `width` `=` $width `scale` `=` $scale `variants` $variants attr-dict
  }];
}

def Plan_CapOp : Plan_LaunchOp<"cap", ["input"], ["output"], [], "getDomain()"> {
  let summary = "Scales each element, then caps it softly.";
  let description = [{
    y = input * scale; output = y, or soft_cap * tanh(y / soft_cap) where soft_cap is
    not 0. The output may be the input.
    - cap_c5: input and output are float32 rows of `width` columns, and soft_cap is not
      negative.

  }] # common # [{

    Example:
    ```mlir
    plan.cap @x to @h width = 64 scale = 1.0 soft_cap = 3.0e+1 domain = token variants [#plan.variant<1, 0, @cap>]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$input, FlatSymbolRefAttr:$output, I64Attr:$width, F32Attr:$scale, F32Attr:$soft_cap, Plan_DomainAttr:$domain, Plan_VariantsAttr:$variants);
  let assemblyFormat = [{
    $input `to` $output `width` `=` $width `scale` `=` $scale `soft_cap` `=` $soft_cap `domain` `=` $domain `variants` $variants attr-dict
  }];
}

def Plan_RopeCacheWriteOp : Plan_LaunchOp<"rope_cache_write", ["input", "table"], ["query"], ["q_norm", "k_norm"]> {
  let summary = "Splits q, k and v, norms and rotates heads, and stores keys and values.";
  let description = [{
    Writes the keys and values of the step's tokens to layer `state_layer` of the
    state, and the rotated queries to `query`. Without a table nothing rotates.
    `interleaved`, `norm_kind`, `norm_rows` and `norm_offset` are those of
    `lm.rope_cache_write`.
    - rope_cache_write_c5: input is float32 rows of (heads + 2 * kv_heads) * head_dim columns,
      query float32 rows of heads * head_dim, table of rotary_dim.
    - rope_cache_write_c6: kv_heads and head_dim are the state's, and state_layer is one of its
      layers.
    - rope_cache_write_c7: norms are vectors of head_dim, or of that for each head, both or
      none; of the latter with norm_rows. norm_kind is rms or layer.
    - rope_cache_write_c8: heads is a multiple of kv_heads; rotary_dim is even and at most head_dim,
      and 0 without a table.

  }] # common # [{

    Example:
    ```mlir
    plan.rope_cache_write @qkv table @rope to @q state @kv0 layer 0 heads = 4 kv_heads = 2 head_dim = 16 rotary_dim = 16
      norm_eps = 0.0 variants [#plan.variant<1, 0, @rope_cache_write>]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$input, OptionalAttr<FlatSymbolRefAttr>:$table, OptionalAttr<FlatSymbolRefAttr>:$q_norm, OptionalAttr<FlatSymbolRefAttr>:$k_norm, FlatSymbolRefAttr:$query, FlatSymbolRefAttr:$state, I64Attr:$state_layer, I64Attr:$heads, I64Attr:$kv_heads, I64Attr:$head_dim, I64Attr:$rotary_dim, F32Attr:$norm_eps, Plan_VariantsAttr:$variants,
      UnitAttr:$interleaved, DefaultValuedAttr<StrAttr, "\"rms\"">:$norm_kind, UnitAttr:$norm_rows,
      DefaultValuedAttr<F32Attr, "0.0f">:$norm_offset);
  let assemblyFormat = [{
    $input (`table` $table^)? (`q_norm` $q_norm^)? (`k_norm` $k_norm^)? `to` $query `state` $state `layer` $state_layer
    `heads` `=` $heads `kv_heads` `=` $kv_heads `head_dim` `=` $head_dim `rotary_dim` `=` $rotary_dim `norm_eps` `=` $norm_eps `variants` $variants attr-dict
  }];
}

def Plan_AttentionOp : Plan_LaunchOp<"attention", ["query"], ["output", "quantized"], []> {
  let summary = "Grouped attention of each query over the cache.";
  let description = [{
    Reads layer `state_layer` of the state up to each token's own position, and
    not further back than `window` positions where that is not 0; with
    `bidirectional` all positions of the sequence, which the step holds as a whole.
    - attention_c5: query and output are float32 rows, quantized is quantised rows, of
      heads * head_dim columns; at least one of the two results is given.
    - attention_c6: kv_heads and head_dim are the state's, state_layer is one of its layers,
      and the window is no longer than what the state keeps.
    - attention_c7: heads is a multiple of kv_heads.
    - attention_c8: the group of quantised results divides head_dim.
    - attention_c9: a bidirectional one has no window.
    - attention_c10: the target @cuda has kernels `split` and `merge` for it, a float32
      output and a head_dim that is a multiple of 8; no other has the kernels.
    - attention_c11: `slopes`, as of `lm.attention`, are `heads` numbers and make it a launch of
      kernels for "alibi_attention", which @cuda has not; `rounded_slopes` needs them.

  }] # common # [{

    Example:
    ```mlir
    plan.attention @q state @kv0 layer 0 to @a heads = 4 kv_heads = 2 head_dim = 16 window = 0
      scale = 0.25 soft_cap = 0.0 variants [#plan.variant<1, 0, @attention>]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$query, FlatSymbolRefAttr:$state, I64Attr:$state_layer, OptionalAttr<FlatSymbolRefAttr>:$output, OptionalAttr<FlatSymbolRefAttr>:$quantized, I64Attr:$heads, I64Attr:$kv_heads, I64Attr:$head_dim, I64Attr:$window, F32Attr:$scale, F32Attr:$soft_cap, Plan_VariantsAttr:$variants, OptionalAttr<FlatSymbolRefAttr>:$split, OptionalAttr<FlatSymbolRefAttr>:$merge, UnitAttr:$bidirectional, OptionalAttr<DenseF32ArrayAttr>:$slopes, UnitAttr:$rounded_slopes);
  let assemblyFormat = [{
    $query `state` $state `layer` $state_layer (`to` $output^)? (`quantized` $quantized^)?
    `heads` `=` $heads `kv_heads` `=` $kv_heads `head_dim` `=` $head_dim `window` `=` $window `scale` `=` $scale `soft_cap` `=` $soft_cap `variants` $variants (`split` $split^)? (`merge` $merge^)? attr-dict
  }];
}

def Plan_RouteOp : Plan_LaunchOp<"route", ["logits"], ["routes"], []> {
  let summary = "Chooses experts for each token.";
  let description = [{
    As `lm.route`.
    - route_c5: logits is float32 rows of `experts` columns, routes of 2 * top_k; top_k
      is the target's slots and at most experts.

  }] # common # [{

    Example:
    ```mlir
    plan.route @x to @r4 experts = 64 top_k = 2 normalized variants [#plan.variant<1, 0, @route>]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$logits, FlatSymbolRefAttr:$routes, I64Attr:$experts, I64Attr:$top_k, UnitAttr:$normalized, Plan_VariantsAttr:$variants);
  let assemblyFormat = [{
    $logits `to` $routes `experts` `=` $experts `top_k` `=` $top_k (`normalized` $normalized^)? `variants` $variants attr-dict
  }];
}

def Plan_OrderSlotsOp : Plan_LaunchOp<"order_slots", ["routes"], ["order"], []> {
  let summary = "Orders the slots of the step by expert.";
  let description = [{
    Slot t * top_k + j is of choice j of token t. `order` holds int32: the slot of each
    ordered row, the ordered row of each slot, and where the rows of each expert begin.
    - order_slots_c5: routes is float32 rows of 2 * top_k columns, order of
      2 * top_k + experts + 1; top_k is the target's slots.

  }] # common # [{

    Example:
    ```mlir
    plan.order_slots @r4 to @order experts = 64 top_k = 2 variants [#plan.variant<1, 0, @order_slots>]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$routes, FlatSymbolRefAttr:$order, I64Attr:$experts, I64Attr:$top_k, Plan_VariantsAttr:$variants);
  let assemblyFormat = [{
    $routes `to` $order `experts` `=` $experts `top_k` `=` $top_k `variants` $variants attr-dict
  }];
}

def Plan_DispatchOp : Plan_LaunchOp<"dispatch", ["input", "order"], ["output"], [], "Domain::Slot"> {
  let summary = "A copy of each token's row for each of its experts.";
  let description = [{
    output[r, :] = input[order[r] / top_k, :].
    - dispatch_c5: input and output are float32 rows of `width` columns, order of
      2 * top_k + experts + 1; top_k is the target's slots.
    - dispatch_c6: or both are half rows of `width` columns, the input of at least as many
      parts.

  }] # common # [{

    Example:
    ```mlir
    plan.dispatch @x order @order to @slots width = 64 experts = 64 top_k = 2 variants [#plan.variant<1, 0, @dispatch>]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$input, FlatSymbolRefAttr:$order, FlatSymbolRefAttr:$output, I64Attr:$width, I64Attr:$experts, I64Attr:$top_k, Plan_VariantsAttr:$variants);
  let assemblyFormat = [{
    $input `order` $order `to` $output `width` `=` $width `experts` `=` $experts `top_k` `=` $top_k `variants` $variants attr-dict
  }];
}

def Plan_ExpertLinearOp : Plan_LaunchOp<"expert_linear", ["input", "order"], ["output"], ["weight"], "Domain::Slot"> {
  let summary = "A matrix product of each slot's row with the weight of its expert.";
  let description = [{
    The rows of expert e are multiplied with rows [e * n, (e + 1) * n) of the weight.
    - expert_linear_c5: the weight is in the target's layout, experts * n rows of k
      columns; n is a multiple of 16.
    - expert_linear_c6: the input is k columns: quantised rows as the weight takes them for
      an integer encoding, float32 rows for a float encoding, for CUDA devices half rows;
      the output float32 rows of n, and not the input.
    - expert_linear_c7: order is float32 rows of 2 * top_k + experts + 1 columns; top_k is
      the target's slots.
    - expert_linear_c8: where a kernel reads half rows of two parts, the input has them.

  }] # common # [{

    Example:
    ```mlir
    plan.expert_linear @slots order @order4 weight @layer.0.o to @slots16 k = 64 n = 16 experts = 4 top_k = 2
      variants [#plan.variant<1, 0, @expert_linear>]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$input, FlatSymbolRefAttr:$order, FlatSymbolRefAttr:$weight, FlatSymbolRefAttr:$output, I64Attr:$k, I64Attr:$n, I64Attr:$experts, I64Attr:$top_k, Plan_VariantsAttr:$variants);
  let assemblyFormat = [{
    $input `order` $order `weight` $weight `to` $output `k` `=` $k `n` `=` $n `experts` `=` $experts `top_k` `=` $top_k `variants` $variants attr-dict
  }];
}

def Plan_CombineOp : Plan_LaunchOp<"combine", ["input", "order", "routes"], ["output"], []> {
  let summary = "The sum of a token's slots, each times its probability.";
  let description = [{
    In the order of the routes, with `fma`.
    - combine_c5: input and output are float32 rows of `width` columns, routes of
      2 * top_k, order of 2 * top_k + experts + 1; top_k is the target's slots.

  }] # common # [{

    Example:
    ```mlir
    plan.combine @slots order @order routes @r4 to @x width = 64 experts = 64 top_k = 2 variants [#plan.variant<1, 0, @combine>]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$input, FlatSymbolRefAttr:$order, FlatSymbolRefAttr:$routes, FlatSymbolRefAttr:$output, I64Attr:$width, I64Attr:$experts, I64Attr:$top_k, Plan_VariantsAttr:$variants);
  let assemblyFormat = [{
    $input `order` $order `routes` $routes `to` $output `width` `=` $width `experts` `=` $experts `top_k` `=` $top_k `variants` $variants attr-dict
  }];
}

def Plan_GatherRowsOp : Plan_LaunchOp<"gather_rows", ["input"], ["output"], [], "Domain::LogitRow"> {
  let summary = "The rows of the step that want logits.";
  let description = [{
    output[r, :] = input[rows[r], :]; the row numbers are the step's own input.
    - gather_rows_c5: input and output are float32 rows of `width` columns; the input has the
      domain token.

  }] # common # [{

    Example:
    ```mlir
    plan.gather_rows @h to @last width = 64 variants [#plan.variant<1, 0, @gather_rows>]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$input, FlatSymbolRefAttr:$output, I64Attr:$width, Plan_VariantsAttr:$variants);
  let assemblyFormat = [{
    $input `to` $output `width` `=` $width `variants` $variants attr-dict
  }];
}

def Plan_PoolOp : Plan_LaunchOp<"pool", ["input"], ["output"], [], "Domain::LogitRow"> {
  let summary = "One row of each sequence that wants a result.";
  let description = [{
    As `lm.pool`; the row numbers and sequences are the step's own input.
    - pool_c5: input and output are float32 rows of `width` columns; the input has the
      domain token.
    - pool_c6: kind is mean, cls or last.

  }] # common # [{

    Example:
    ```mlir
    plan.pool "mean" @h to @last width = 64 normalize variants [#plan.variant<1, 0, @pool>]
    ```
  }];
  let arguments = (ins StrAttr:$kind, FlatSymbolRefAttr:$input, FlatSymbolRefAttr:$output, I64Attr:$width, UnitAttr:$normalize, Plan_VariantsAttr:$variants);
  let assemblyFormat = [{
    $kind $input `to` $output `width` `=` $width (`normalize` $normalize^)? `variants` $variants attr-dict
  }];
}

#endif
