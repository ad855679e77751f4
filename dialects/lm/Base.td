// The lm dialect: what a language model means, before anything is decided
// about how it runs. Includes of the other .td files start here.
#ifndef INGOT_DIALECTS_LM_BASE
#define INGOT_DIALECTS_LM_BASE

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Lm_Dialect : Dialect {
  let name = "lm";
  let cppNamespace = "::ingot::lm";
  let summary = "A language model over a ragged row of tokens.";
  let description = [{
    Activations are `tensor<?xHxf32>`: all tokens of all sequences of a step, one
    row after another, without padding and without a batch dimension. Weights
    are symbols that say where their bytes lie in a source file and how they
    will be encoded. Layers need not be alike: every size belongs to its op.

    Which rows belong to which sequence, where a sequence's state lies and
    which rows want logits is the step's context. It is not an operand: ops
    that use it say so.

    A module that holds a program carries the dictionary `lm.model` (family,
    sizes, end ids, recommended sampling, tokenizer location, a dictionary a
    layer), verified key by key.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
}

#endif
