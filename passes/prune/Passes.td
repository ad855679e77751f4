// Passes that leave parts of a model out, so that its shapes are really smaller.
#ifndef INGOT_PASSES_PRUNE_PASSES
#define INGOT_PASSES_PRUNE_PASSES

include "mlir/Pass/PassBase.td"

class Prune_Pass<string flag> : Pass<flag, "::mlir::ModuleOp"> {
  let dependentDialects = ["::ingot::lm::LmDialect"];
}

def PruneLayersPass : Prune_Pass<"prune-layers"> {
  let summary = "Leave whole layers out.";
  let description = [{
    Needs: an imported module, whose locations name each operator's layer; a
    residual stream that is all that a layer reads of those before it. Guarantees:
    the operators of `layers` are gone, what read their stream reads that of the
    layer before, and the layers behind are numbered anew, with their weights. A
    weight @NAME.pruned of the module, of the shape of @NAME, takes its place: what
    healing made of it. The layers of `lm.model` and the states follow.

    ```mlir
    %h1 = lm.add %h0, %a : tensor<?x64xf32> loc("layer.1.ffn_residual")
    %h2 = lm.add %h1, %b : tensor<?x64xf32> loc("layer.2.ffn_residual")
    %n = lm.rms_norm %h2, @layer.3.attn_norm ... loc("layer.3.attn_norm")
    // becomes with layers=2
    %h1 = lm.add %h0, %a : tensor<?x64xf32> loc("layer.1.ffn_residual")
    %n = lm.rms_norm %h1, @layer.2.attn_norm ... loc("layer.2.attn_norm")
    ```
  }];
  let options = [
    ListOption<"layers", "layers", "int64_t", "Layers to leave out">,
  ];
  let statistics = [Statistic<"numLayers", "num-layers", "Layers left out">];
}

def PruneHeadsPass : Prune_Pass<"prune-heads"> {
  let summary = "Leave key and value heads out, with the query heads that read them.";
  let description = [{
    Needs: an imported module; for each layer that keeps fewer than it has,
    @layer.N.{q,k,v,o}.pruned (and .bias.pruned where there is a bias) of the
    smaller shape. Guarantees: attention of layer N has `kv-heads[N]` key heads and
    as many query heads to each as before. Layers of one geometry share a state.

    ```mlir
    %q = lm.linear %n, @layer.0.q : tensor<?x64xf32> -> tensor<?x64xf32>
    // becomes with kv-heads=1 of 2
    %q = lm.linear %n, @layer.0.q : tensor<?x64xf32> -> tensor<?x32xf32>
    ```
  }];
  let options = [
    ListOption<"kvHeads", "kv-heads", "int64_t", "Key heads of each layer">,
  ];
  let statistics = [Statistic<"numHeads", "num-heads", "Key heads left out">];
}

def PruneFfnPass : Prune_Pass<"prune-ffn"> {
  let summary = "Leave columns of the feed-forward out.";
  let description = [{
    Needs: an imported module; for each layer that keeps fewer columns than it has,
    @layer.N.{gate,up,down}.pruned (and .bias.pruned of gate and up) of the smaller
    shape. Guarantees: the feed-forward of layer N has `columns[N]` columns.

    ```mlir
    %u = lm.linear %n, @layer.0.up : tensor<?x64xf32> -> tensor<?x96xf32>
    // becomes with columns=64
    %u = lm.linear %n, @layer.0.up : tensor<?x64xf32> -> tensor<?x64xf32>
    ```
  }];
  let options = [
    ListOption<"columns", "columns", "int64_t", "Columns of each layer">,
  ];
  let statistics = [Statistic<"numColumns", "num-columns", "Columns left out">];
}

#endif
