#include "dialects/onnx/OpMaker.h"

#include "dialects/onnx/OnnxOps.h"
#include "dialects/onnx/TypeInference.h"

using namespace mlir;

namespace ingot::onnx {

FailureOr<Operation *> OpMaker::make(StringRef name, ValueRange inputs,
                                     ArrayRef<NamedAttribute> attributes,
                                     unsigned numOutputs) {
  const OperatorInfo *info = findOperator(name);
  if (!info)
    return emitError(location) << "unknown operator " << name;
  if (!numOutputs)
    numOutputs = info->numOutputs;
  OperationState state(location, ("onnx." + name).str());
  state.addOperands(inputs);
  while (!info->variadicInputs && state.operands.size() < info->numInputs)
    state.operands.push_back(none());
  state.addAttributes(attributes);
  state.name.populateDefaultAttrs(state.attributes);
  unsigned results = info->variadicOutputs ? numOutputs : info->numOutputs;
  state.addTypes(SmallVector<Type>(results, builder.getNoneType()));
  Operation *op = Operation::create(state);
  // The operator's own constraints come first: its rule relies on them. Results
  // of no type are none of its concern.
  FailureOr<SmallVector<Type>> types = failure();
  if (succeeded(op->getName().verifyInvariants(op)))
    types = inferResultTypes(op);
  if (failed(types)) {
    op->destroy();
    return failure();
  }
  for (auto [result, type] : llvm::zip(op->getResults(), *types))
    result.setType(type);
  builder.insert(op);
  return op;
}

FailureOr<Value> OpMaker::value(StringRef name, ValueRange inputs,
                                ArrayRef<NamedAttribute> attributes) {
  FailureOr<Operation *> op = make(name, inputs, attributes);
  if (failed(op))
    return failure();
  return (*op)->getResult(0);
}

Value OpMaker::none() {
  return builder.create<NoneOp>(location, TypeRange{builder.getNoneType()},
                                ValueRange());
}

Value OpMaker::ints(ArrayRef<std::int64_t> values) {
  auto type = RankedTensorType::get({static_cast<std::int64_t>(values.size())},
                                    builder.getI64Type());
  return builder.create<ConstantOp>(
      location, TypeRange{type}, ValueRange(),
      builder.getNamedAttr("value", DenseElementsAttr::get(type, values)));
}

} // namespace ingot::onnx
