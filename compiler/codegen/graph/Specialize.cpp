// 1. Types and values of the arguments. 2. Operators in order: a condition that
// is known is replaced by its branch, all other types are inferred anew.
// 3. What nobody uses goes. 4. Every type that is left must be static.
#include "compiler/codegen/graph/Specialize.h"

#include "dialects/onnx/OnnxOps.h"
#include "dialects/onnx/ShapeValues.h"
#include "dialects/onnx/TypeInference.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace ingot::graph {
namespace {

class Specializer {
public:
  explicit Specializer(ModuleOp module)
      : module_(module), function_(*module.getOps<func::FuncOp>().begin()) {}

  Status run(ArrayRef<InputBinding> inputs) {
    ScopedDiagnosticHandler handler(module_.getContext(),
                                    [&](Diagnostic &diagnostic) {
                                      if (message_.empty())
                                        message_ = diagnostic.str();
                                      return success();
                                    });
    INGOT_RETURN_IF_ERROR(bind(inputs));
    if (failed(inferBlock(function_.front())))
      return Status::unsupported(message_.empty() ? "types do not fit"
                                                  : message_);
    removeUnused(function_.front());
    return checkStatic();
  }

private:
  Status bind(ArrayRef<InputBinding> inputs);
  LogicalResult inferBlock(Block &block);
  void fold(Operation *op);
  void removeUnused(Block &block);
  Status checkStatic();

  ModuleOp module_;
  func::FuncOp function_;
  std::string message_;
};

Status Specializer::bind(ArrayRef<InputBinding> inputs) {
  Block &entry = function_.front();
  if (inputs.size() != entry.getNumArguments())
    return Status::invalid("expected " +
                           std::to_string(entry.getNumArguments()) +
                           " inputs, found " + std::to_string(inputs.size()));
  OpBuilder builder(&entry, entry.begin());
  for (auto [i, input] : llvm::enumerate(inputs)) {
    BlockArgument argument = entry.getArgument(i);
    auto name = function_.getArgAttrOfType<StringAttr>(i, onnx::kNameAttr);
    std::string what = "input " + std::to_string(i);
    if (name)
      what += " \"" + name.getValue().str() + "\"";
    if (!input.type) {
      Attribute given = function_.getArgAttr(i, "onnx.default");
      auto type = function_.getArgAttrOfType<TypeAttr>(i, "onnx.default_type");
      if (!given || !type)
        return Status::invalid(what + " is not given and has no default");
      OperationState state(builder.getUnknownLoc(),
                           isa<ElementsAttr>(given)
                               ? onnx::ConstantOp::getOperationName()
                               : onnx::WeightOp::getOperationName());
      if (auto value = dyn_cast<ElementsAttr>(given))
        state.addAttribute("value", value);
      else
        state.addAttributes(cast<DictionaryAttr>(given).getValue());
      state.addTypes(type.getValue());
      argument.replaceAllUsesWith(builder.create(state)->getResult(0));
      argument.setType(type.getValue());
      continue;
    }
    if (!onnx::areCompatible(input.type, argument.getType())) {
      std::string text;
      llvm::raw_string_ostream(text)
          << what << ": expected " << argument.getType() << ", found "
          << input.type;
      return Status::invalid(text);
    }
    argument.setType(input.type);
    if (!input.value)
      continue;
    OperationState state(builder.getUnknownLoc(),
                         onnx::ConstantOp::getOperationName());
    state.addAttribute("value", input.value);
    state.addTypes(input.type);
    argument.replaceAllUsesWith(builder.create(state)->getResult(0));
  }
  return Status::ok();
}

// Integers and booleans that are known become constants, so that shapes are
// not computed from the tensors that they are shapes of.
void Specializer::fold(Operation *op) {
  if (isa<onnx::ConstantOp, onnx::WeightOp, onnx::NoneOp, onnx::IfOp>(op))
    return;
  for (Value result : op->getResults()) {
    auto type = dyn_cast<RankedTensorType>(result.getType());
    if (!type || !type.hasStaticShape() ||
        !isa<IntegerType>(type.getElementType()))
      continue;
    auto known = onnx::shapeValue(result);
    if (!known || !known->isKnown() ||
        ArrayRef<std::int64_t>(known->dims) != type.getShape())
      continue;
    const unsigned width = type.getElementTypeBitWidth();
    const bool isUnsigned =
        type.getElementType().isUnsignedInteger() || width == 1;
    SmallVector<APInt> values;
    bool fits = true;
    for (auto element : known->elements) {
      fits &= isUnsigned ? *element >= 0 &&
                               (width >= 64 || llvm::isUIntN(width, *element))
                         : width >= 64 || llvm::isIntN(width, *element);
      values.push_back(APInt(64, *element).trunc(width));
    }
    if (!fits)
      continue;
    OpBuilder builder(op);
    OperationState state(op->getLoc(), onnx::ConstantOp::getOperationName());
    state.addAttribute("value", DenseElementsAttr::get(type, values));
    state.addTypes(type);
    result.replaceAllUsesWith(builder.create(state)->getResult(0));
  }
}

LogicalResult Specializer::inferBlock(Block &block) {
  for (auto at = block.begin(); at != block.end();) {
    Operation *op = &*at;
    if (op->hasTrait<OpTrait::IsTerminator>()) {
      ++at;
      continue;
    }
    if (auto branch = dyn_cast<onnx::IfOp>(op)) {
      auto condition = onnx::knownInts(branch.getCond());
      if (condition && condition->size() == 1) {
        Block &chosen =
            ((*condition)[0] ? branch.getThenBranch() : branch.getElseBranch())
                .front();
        Operation *yield = chosen.getTerminator();
        SmallVector<Value> values(yield->getOperands());
        yield->erase();
        Operation *first = chosen.empty() ? nullptr : &chosen.front();
        block.getOperations().splice(Block::iterator(op),
                                     chosen.getOperations());
        Block::iterator next = first ? Block::iterator(first) : std::next(at);
        branch->replaceAllUsesWith(values);
        branch->erase();
        at = next;
        continue;
      }
      if (failed(inferBlock(branch.getThenBranch().front())) ||
          failed(inferBlock(branch.getElseBranch().front())))
        return failure();
    }
    ++at;
    FailureOr<SmallVector<Type>> types = onnx::inferResultTypes(op);
    if (failed(types))
      return failure();
    for (auto [result, type] : llvm::zip(op->getResults(), *types)) {
      if (onnx::isAbsent(result))
        continue;
      if (!onnx::areCompatible(type, result.getType()))
        return op->emitError() << onnx::describe(op) << ": has the type "
                               << type << " for these inputs, but "
                               << result.getType() << " by the model";
      result.setType(onnx::meet(type, result.getType()));
    }
    fold(op);
  }
  return success();
}

void Specializer::removeUnused(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (op.hasTrait<OpTrait::IsTerminator>())
      continue;
    if (op.use_empty())
      op.erase();
    else
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          removeUnused(inner);
  }
}

Status Specializer::checkStatic() {
  Status status = Status::ok();
  module_.walk([&](Operation *op) {
    for (Value result : op->getResults()) {
      auto type = dyn_cast<TensorType>(result.getType());
      if (!type || type.hasStaticShape())
        continue;
      std::string text;
      llvm::raw_string_ostream(text)
          << onnx::describe(op) << ": the shape of its result, " << type
          << ", depends on values that are not known beforehand";
      status = Status::unsupported(text);
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (!status.isOk())
    return status;
  Operation *end = function_.front().getTerminator();
  function_.setType(FunctionType::get(module_.getContext(),
                                      function_.front().getArgumentTypes(),
                                      end->getOperandTypes()));
  return status;
}

} // namespace

Result<OwningOpRef<ModuleOp>> specializeGraph(ModuleOp module,
                                              ArrayRef<InputBinding> inputs) {
  OwningOpRef<ModuleOp> copy = module.clone();
  INGOT_RETURN_IF_ERROR(Specializer(*copy).run(inputs));
  return copy;
}

} // namespace ingot::graph
