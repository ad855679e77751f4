// The plan dialect: what will run. One to one with runtime/plan/plan.fbs, so
// that an artifact's plan is a pure translation of the module.
#ifndef INGOT_DIALECTS_PLAN_BASE
#define INGOT_DIALECTS_PLAN_BASE

include "mlir/IR/OpBase.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::ingot::plan";
  let summary = "What will run: buffers, kernel launches, weights and state";
  let description = [{
    A plan module holds the bytes a model needs (`plan.source`, `plan.weight`),
    the state that outlives a step (`plan.state`), and for each target what is
    launched in which order (`plan.target` with buffers, kernels and segments).
    Operands are symbols: weights and states of the module, buffers and kernels
    of the target. There are no SSA values, because memory is assigned.

    The module carries two attributes:
    - `plan.model`: what the model is, with the keys of `lm.model`.
    - `plan.provenance = {compiler, pipeline}`: what made it.

    The name of a launch, and the layer it belongs to, are its location:
    `loc("layer.3.qkv")`.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerTypes();
    void registerAttributes();

    static constexpr ::llvm::StringLiteral getModelAttrName() { return "plan.model"; }
    static constexpr ::llvm::StringLiteral getProvenanceAttrName() { return "plan.provenance"; }
  }];
}

#endif
