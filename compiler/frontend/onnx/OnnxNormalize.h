// One meaning for each operator: what an older version, or another domain, says
// of it in the words of the newest one.
#pragma once

#include "dialects/onnx/OnnxOps.h"
#include "dialects/onnx/OpMaker.h"
#include "runtime/support/Status.h"

#include "mlir/IR/Builders.h"

#include <string>

namespace ingot {

// A node before it is an operator. `inputs` are the standard's, absent ones the
// results of onnx.None, without those missing at the end.
struct OnnxNode {
  std::string op;           // as the file spells it
  std::string domain;       // "" for ai.onnx
  std::int64_t version = 0; // of the operator: at most its opset's
  llvm::SmallVector<mlir::Value> inputs;
  mlir::NamedAttrList attributes;
  unsigned numOutputs = 1;
};

using OnnxOpMaker = onnx::OpMaker;

// What a node becomes: results for its outputs. Without results the node, maybe
// changed, is to be made under the name `node.op` as it stands.
Result<llvm::SmallVector<mlir::Value>> normalizeNode(OnnxOpMaker &maker,
                                                     OnnxNode &node);

// The name of the dialect's operator that a node of this domain and name is
// normalised to; empty where it is not supported.
std::string normalName(llvm::StringRef domain, llvm::StringRef op);

// The version of the operator that `opset` of its domain has; 0 where none that
// is read.
std::int64_t operatorVersion(llvm::StringRef domain, llvm::StringRef op,
                             std::int64_t opset);

} // namespace ingot
