// The passes over the lm dialect, phase by phase. Passes that lower to plan are
// in passes/lower/Passes.td.
#ifndef INGOT_PASSES_PASSES
#define INGOT_PASSES_PASSES

include "mlir/Pass/PassBase.td"

class Lm_Pass<string flag> : Pass<flag, "::mlir::ModuleOp"> {
  let dependentDialects = ["::ingot::lm::LmDialect"];
}

//===----------------------------------------------------------------------===//
// Between phases
//===----------------------------------------------------------------------===//

def VerifyPhasePass : Lm_Pass<"verify-phase"> {
  let summary = "Check that a module is what a phase promises.";
  let description = [{
    Changes nothing. `after` names the phase that has just ended:

    - `import`: one program and `lm.model`, no fused or quantised operator;
    - `simplify`: as import;
    - `compress`: every linear operator of an integer encoding takes quantised rows;
    - `fuse`: also, attention reads the cache, and rotation and head norms are part
      of its writes. What has not fused has no kernel, so it is an error here.
  }];
  let options = [Option<"after", "after", "std::string", /*default=*/"",
                        "Phase that has ended: import, simplify, compress or fuse">];
}

//===----------------------------------------------------------------------===//
// simplify
//===----------------------------------------------------------------------===//

def MergeQkvPass : Lm_Pass<"merge-qkv"> {
  let summary = "Make the q, k and v projections of an attention one linear operator.";
  let description = [{
    Needs: three `lm.linear` of one input behind an `lm.attention`, without
    residual, all or none with a bias, weights of one encoding and method that
    nothing else uses. Guarantees: the same bits. Where it cannot, the three stay.

    ```mlir
    %q = lm.linear %x, @layer.0.q : tensor<?x64xf32> -> tensor<?x64xf32>
    %k = lm.linear %x, @layer.0.k : tensor<?x64xf32> -> tensor<?x32xf32>
    %v = lm.linear %x, @layer.0.v : tensor<?x64xf32> -> tensor<?x32xf32>
    // becomes
    %qkv = lm.linear %x, @layer.0.qkv : tensor<?x64xf32> -> tensor<?x128xf32>
    %q, %k, %v = lm.split %qkv
      : tensor<?x128xf32> -> tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>
    ```
  }];
  let statistics = [Statistic<"numMerged", "num-merged", "Projections merged">];
}

def MergeGateUpPass : Lm_Pass<"merge-gate-up"> {
  let summary = "Make the gate and up projections of a gate one linear operator.";
  let description = [{
    Needs: an `lm.gate` of an `lm.concat` of two `lm.linear`, under the
    conditions of merge-qkv. Guarantees: the same bits. Where it cannot, the
    concat stays, and lowering writes both into columns of one buffer.

    ```mlir
    %g = lm.linear %x, @layer.0.gate : tensor<?x64xf32> -> tensor<?x96xf32>
    %u = lm.linear %x, @layer.0.up : tensor<?x64xf32> -> tensor<?x96xf32>
    %gu = lm.concat %g, %u
      : tensor<?x96xf32>, tensor<?x96xf32> -> tensor<?x192xf32>
    %y = lm.gate silu %gu : tensor<?x192xf32> -> tensor<?x96xf32>
    // becomes
    %gu = lm.linear %x, @layer.0.gate_up : tensor<?x64xf32> -> tensor<?x192xf32>
    %y = lm.gate silu %gu : tensor<?x192xf32> -> tensor<?x96xf32>
    ```
  }];
  let statistics = [Statistic<"numMerged", "num-merged", "Projections merged">];
}

//===----------------------------------------------------------------------===//
// quantize
//===----------------------------------------------------------------------===//

def QuantizeWeightsPass : Lm_Pass<"quantize-weights"> {
  let summary = "Choose the encoding of the weight matrices.";
  let description = [{
    Sets the encoding of every matrix that an `lm.linear` or `lm.embed` uses, and
    the method `rtn` (round to nearest) where the stored form is not already
    that encoding. Norms, biases and frequencies stay float32. Lossy unless the
    stored form is finer or equal.

    `encoding` is int8, int4, f32, f16, bf16, or none, which keeps every matrix
    as it is stored. `group` is 32, 64 or 128, for the integer ones. The default
    is 64: it divides the head size of nearly all models (64 or 128), so that
    attention can quantise its own output, and it costs 1.6 % more bytes at int8
    than 128 for the smaller error of a shorter group. A last group may be
    short: 576 columns are four groups of 128 and one of 64.

    With int4, the table that gives the logits is int8 with the same group,
    since its error reaches the probabilities without a layer between; so a tied
    embedding is int8, and one that is separate from the head is int4. `table`
    overrides both tables' encoding.

    `skip` holds glob patterns of names that keep the encoding they have; a
    pattern without a match is an error. `overrides` holds PATTERN=ENCODING words
    ("layer.0.*=int8-g64-rtn"): the last whose pattern names a matrix chooses for
    it, tables and routers included; a router that none names gets no integers.

    `method` says how the codes of matrices of `lm.linear` are found: by rounding
    (rtn), or by what calibration has put into the module as @NAME.calibrated
    (gptq, awq; docs/quantization.md), which must be there, of the encoding that
    the options ask for. Tables, heads and experts are rounded. `mark-only` changes no weight
    but marks those that calibration has to provide for.

    ```mlir
    lm.weight @layer.0.q [32, 64] encoding <f16> layout r16 parts [...]
    // becomes with encoding=int8
    lm.weight @layer.0.q [32, 64] encoding <i8, group = 64> layout r16
      method "rtn" parts [...]
    ```
  }];
  let options = [
    Option<"encoding", "encoding", "std::string", /*default=*/"\"none\"",
           "int8, int4, f32, f16, bf16 or none">,
    Option<"group", "group", "int64_t", /*default=*/"64",
           "Columns that share a scale: 32, 64 or 128">,
    Option<"table", "table", "std::string", /*default=*/"\"auto\"",
           "Encoding of the embedding and of the head: auto or as encoding">,
    ListOption<"skip", "skip", "std::string",
               "Glob patterns of weights to leave as they are">,
    Option<"method", "method", "std::string", /*default=*/"\"rtn\"",
           "How codes are found: rtn, gptq or awq">,
    ListOption<"overrides", "overrides", "std::string",
               "PATTERN=ENCODING for matrices that differ">,
    Option<"markOnly", "mark-only", "bool", /*default=*/"false",
           "Only mark the matrices that are to be calibrated">,
  ];
  let statistics = [
    Statistic<"numCalibrated", "num-calibrated", "Matrices with calibrated codes">,
    Statistic<"numConverted", "num-converted", "Matrices of another encoding">,
    Statistic<"numExact", "num-exact", "Matrices stored in their encoding">,
  ];
}

def QuantizeKvPass : Lm_Pass<"quantize-kv"> {
  let summary = "Keep keys and values as codes of 8 bits.";
  let description = [{
    Guarantees: every `lm.state` is of i8: codes of -127 to 127 with a float32 scale
    for each position and head (docs/numerics.md), a little more than half the bytes
    of f16. Lossy; the ledger measures it (docs/ledger.md).

    ```mlir
    lm.state @kv0 {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}
    // becomes
    lm.state @kv0 {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = i8}
    ```
  }];
  let statistics = [Statistic<"numStates", "num-states", "States that became codes">];
}

def InsertQuantizePass : Lm_Pass<"insert-quantize"> {
  let summary = "Quantise the rows that go into linear operators of integer encodings.";
  let description = [{
    Guarantees: every `lm.linear` of an integer encoding takes `!lm.quantized`
    rows of its group. Operators that read one value share its rows.

    ```mlir
    %y = lm.linear %x, @layer.0.q : tensor<?x64xf32> -> tensor<?x32xf32>
    // becomes
    %c = lm.quantize %x : tensor<?x64xf32> -> !lm.quantized<64, group = 64, bits = 16>
    %y = lm.linear %c, @layer.0.q
      : !lm.quantized<64, group = 64, bits = 16> -> tensor<?x32xf32>
    ```
  }];
  let statistics = [Statistic<"numInserted", "num-inserted", "Quantize operators">];
}

//===----------------------------------------------------------------------===//
// exit
//===----------------------------------------------------------------------===//

def InsertEarlyExitsPass : Lm_Pass<"insert-early-exits"> {
  let summary = "Let rows leave the program behind chosen layers.";
  let description = [{
    Needs: one selection of rows; locations that name each operator's layer; a
    residual stream that is all that layers read of those before them.
    Guarantees: the program's own bits. Behind each of `layers` layers the
    stream is cut, and the cut gets an `lm.exit`, whose head is the program's
    tail on the stream there. Where the module has @exit.N.map (and
    @exit.N.bias), the head first adds their product with the state to it: the
    fitted map to what the last layer would have made of it. @exit.N.confidence
    becomes the exit's.

    ```mlir
    %h = lm.add %a, %b : tensor<?x64xf32> loc("layer.1.ffn_residual")
    // becomes with layers=2
    %h = lm.add %a, %b : tensor<?x64xf32>
    %c = lm.cut "exit2" %h : tensor<?x64xf32>
    lm.exit "exit2" %c layers 2 : tensor<?x64xf32> head {
      %s = lm.select_rows %c : tensor<?x64xf32>
      %n = lm.rms_norm %s, @final_norm {...} : ...
      %l = lm.linear %n, @embed : ...
      lm.yield %l : tensor<?x128xf32>
    }
    ```
  }];
  let options = [
    ListOption<"layers", "layers", "int64_t",
               "Exits, by the number of layers that run before them">,
    Option<"cutFinal", "cut-final", "bool", /*default=*/"false",
           "Cut behind the last layer too, so that its state can be seen">,
  ];
  let statistics = [Statistic<"numExits", "num-exits", "Exits">];
}

def FillExitsPass : Lm_Pass<"fill-exits"> {
  let summary = "Give each exit what fills the caches of the layers it skips.";
  let description = [{
    Needs: fused cache writes, each of which stores what follows from the
    residual stream at the beginning of its layer. Guarantees: the program is as
    it was; the fill of each exit writes the keys and values of all later layers
    from the state at its cut.

    ```mlir
    // in the fill of "exit2"
    %n = lm.rms_norm %c, @layer.2.attn_norm {...} : ...
    %q = lm.linear %n, @layer.2.qkv : ...
    %u, %w = lm.rope_cache_write %q, %rope state @kv0[2] {...} : ...
    ```
  }];
  let statistics = [Statistic<"numFilled", "num-filled", "Cache writes cloned">];
}

//===----------------------------------------------------------------------===//
// fuse
//===----------------------------------------------------------------------===//

def FuseRotaryCacheWritePass : Lm_Pass<"fuse-rotary-cache-write"> {
  let summary = "Make head norms, rotation and the cache write of an attention one operator.";
  let description = [{
    Needs: an `lm.attention` whose q and k are rotated alike by one table, or both
    not at all, both after a norm of one kind and eps (of each head, or of all
    heads together) or neither. Guarantees: the same bits;
    other uses of the rotated values keep their operators. Where q, k and v are
    not one linear operator's columns, an `lm.concat` joins them.

    ```mlir
    %q, %k, %v = lm.split %qkv : ...
    %qr = lm.rotary %q, %rope {...} : ...
    %kr = lm.rotary %k, %rope {...} : ...
    %y = lm.attention %qr, %kr, %v state @kv0[0] {...} : ...
    // becomes
    %qw, %cache = lm.rope_cache_write %qkv, %rope state @kv0[0] {...} : ...
    %y = lm.cached_attention %qw, %cache state @kv0[0] {...} : ...
    ```
  }];
  let statistics = [Statistic<"numFused", "num-fused", "Attentions fused">];
}

def FuseQuantizePass : Lm_Pass<"fuse-quantize"> {
  let summary = "Let norms, gates and attention write quantised rows themselves.";
  let description = [{
    Needs: a norm of rows, an `lm.gate`, `lm.activate` or `lm.cached_attention` whose result
    only `lm.quantize` of one group reads; for attention, a group that divides
    the head. Guarantees: the same bits.

    ```mlir
    %n = lm.rms_norm %x, @norm {...} : tensor<?x64xf32> -> tensor<?x64xf32>
    %c = lm.quantize %n : tensor<?x64xf32> -> !lm.quantized<64, group = 64, bits = 16>
    // becomes
    %c = lm.rms_norm %x, @norm {...}
      : tensor<?x64xf32> -> !lm.quantized<64, group = 64, bits = 16>
    ```
  }];
  let statistics = [Statistic<"numFused", "num-fused", "Quantize operators fused">];
}

def FuseEpiloguesPass : Lm_Pass<"fuse-epilogues"> {
  let summary = "Let a linear operator add the residual stream.";
  let description = [{
    Needs: an `lm.add` without scale of an `lm.linear` without residual that
    nothing else reads. Guarantees: the same bits, since an addition has no order.

    ```mlir
    %y = lm.linear %a, @layer.0.o : tensor<?x64xf32> -> tensor<?x64xf32>
    %z = lm.add %x, %y : tensor<?x64xf32>
    // becomes
    %z = lm.linear %a, @layer.0.o residual %x
      : tensor<?x64xf32> -> tensor<?x64xf32>, tensor<?x64xf32>
    ```
  }];
  let statistics = [Statistic<"numFused", "num-fused", "Residuals fused">];
}

#endif
