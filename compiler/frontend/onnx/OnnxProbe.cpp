#include "compiler/frontend/onnx/OnnxProbe.h"

#include "compiler/codegen/graph/RunGraph.h"
#include "compiler/codegen/graph/Specialize.h"
#include "compiler/frontend/StrictJson.h"
#include "dialects/onnx/OnnxOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"

#include <cstring>

using namespace mlir;

namespace ingot {
namespace {

func::FuncOp mainOf(ModuleOp module) {
  return *module.getOps<func::FuncOp>().begin();
}

// "past_key_values.3.key", "past_key_3", "past.3.key" and so on.
std::optional<ProbeInput> pastInput(StringRef name) {
  if (!name.contains("past"))
    return std::nullopt;
  std::string digits;
  for (char c : name)
    if (llvm::isDigit(c))
      digits.push_back(c);
  std::int64_t layer = 0;
  if (digits.empty() || StringRef(digits).getAsInteger(10, layer))
    return std::nullopt;
  StringRef rest = name;
  rest.consume_front("past_key_values");
  const bool isKey = rest.contains("key"), isValue = rest.contains("value");
  if (isKey && isValue)
    return std::nullopt;
  return ProbeInput{name.str(),
                    isKey     ? InputRole::PastKey
                    : isValue ? InputRole::PastValue
                              : InputRole::Past,
                    layer};
}

} // namespace

Result<std::vector<ProbeInput>> inputRoles(ModuleOp module) {
  func::FuncOp function = mainOf(module);
  std::vector<ProbeInput> inputs;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    StringRef name =
        function.getArgAttrOfType<StringAttr>(i, onnx::kNameAttr).getValue();
    if (name == "input_ids" || name == "tokens")
      inputs.push_back({name.str(), InputRole::Tokens});
    else if (name == "attention_mask")
      inputs.push_back({name.str(), InputRole::Mask});
    else if (name == "position_ids")
      inputs.push_back({name.str(), InputRole::Positions});
    else if (auto past = pastInput(name))
      inputs.push_back(*past);
    else
      return Status::unsupported(
          "input " + quoteName(name.str()) +
          " is none that a decoder has (input_ids, attention_mask, "
          "position_ids, past_key_values.N.key and .value, past_N)");
  }
  return inputs;
}

Result<OwningOpRef<ModuleOp>> probeGraph(ModuleOp module,
                                         const std::vector<ProbeInput> &inputs,
                                         const ProbeSizes &sizes) {
  func::FuncOp function = mainOf(module);
  SmallVector<graph::InputBinding> bindings;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    auto type = dyn_cast<RankedTensorType>(function.getArgumentTypes()[i]);
    // Both keys and values have a dimension before the batch.
    const unsigned batchAt = input.role == InputRole::Past;
    if (!type || type.getRank() != (isPast(input.role) ? 4 + batchAt : 2) ||
        (batchAt && type.getDimSize(0) != 2))
      return Status::unsupported("input " + quoteName(input.name) +
                                 ": expected " +
                                 (batchAt ? "[2, batch, heads, positions, size]"
                                  : isPast(input.role) ? "four dimensions"
                                                       : "two dimensions"));
    SmallVector<std::int64_t> dims(type.getShape());
    auto choose = [&](unsigned at, std::int64_t size) {
      if (dims[at] == ShapedType::kDynamic)
        dims[at] = size;
    };
    choose(batchAt, sizes.batch);
    if (isPast(input.role))
      choose(batchAt + 2, sizes.past);
    else
      choose(1,
             input.role == InputRole::Mask ? sizes.total() : sizes.positions);
    if (llvm::is_contained(dims, ShapedType::kDynamic))
      return Status::unsupported("input " + quoteName(input.name) +
                                 ": its heads or their size are not known");
    graph::InputBinding binding;
    binding.type = RankedTensorType::get(dims, type.getElementType());
    auto integer = dyn_cast<IntegerType>(type.getElementType());
    if (input.role == InputRole::Mask || input.role == InputRole::Positions) {
      if (!integer)
        return Status::unsupported("input " + quoteName(input.name) +
                                   ": expected integers");
      SmallVector<APInt> values;
      for (std::int64_t at = 0; at < binding.type.getNumElements(); ++at)
        values.push_back(APInt(
            integer.getWidth(),
            input.role == InputRole::Mask ? 1 : sizes.past + at % dims[1]));
      binding.value = DenseElementsAttr::get(binding.type, values);
    }
    bindings.push_back(binding);
  }
  return graph::specializeGraph(module, bindings);
}

Result<std::vector<OnnxTensor>>
ValueEvaluator::evaluate(ArrayRef<Value> values) {
  // A copy of the graph that returns them; its inputs must not be needed.
  IRMapping mapping;
  OwningOpRef<ModuleOp> copy = cast<ModuleOp>(probed_->clone(mapping));
  func::FuncOp function = mainOf(*copy);
  Operation *end = function.front().getTerminator();
  SmallVector<Value> wanted;
  for (Value value : values)
    wanted.push_back(mapping.lookup(value));
  end->setOperands(wanted);
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(function.front())))
    if (!op.hasTrait<OpTrait::IsTerminator>() && op.use_empty())
      op.erase();
  for (BlockArgument argument : function.getArguments())
    if (!argument.use_empty())
      return Status::unsupported("it depends on an input of the graph");
  // Weights are said by name, so equal text is an equal result.
  std::string text;
  llvm::raw_string_ostream(text) << *copy;
  if (auto found = known_.find(text); found != known_.end())
    return found->second;
  INGOT_ASSIGN_OR_RETURN(graph::LoweredGraph lowered, graph::lowerGraph(*copy));
  INGOT_ASSIGN_OR_RETURN(std::vector<OnnxTensor> results,
                         graph::runLowered(lowered, file_, {}));
  return known_[text] = std::move(results);
}

std::vector<double> numbersOf(const OnnxTensor &tensor) {
  const llvm::fltSemantics *semantics = nullptr;
  switch (tensor.type) {
  case OnnxType::Float:
    semantics = &llvm::APFloat::IEEEsingle();
    break;
  case OnnxType::Double:
    semantics = &llvm::APFloat::IEEEdouble();
    break;
  case OnnxType::Float16:
    semantics = &llvm::APFloat::IEEEhalf();
    break;
  case OnnxType::Bfloat16:
    semantics = &llvm::APFloat::BFloat();
    break;
  default:
    break;
  }
  const std::uint64_t size =
      onnxElementBytes(static_cast<std::int32_t>(tensor.type));
  std::vector<double> numbers;
  for (std::uint64_t i = 0; i < tensor.numElements; ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, tensor.bytes().data() + i * size, size);
    if (!semantics) {
      const unsigned unused = 64 - unsigned(size) * 8;
      numbers.push_back(double(std::int64_t(bits << unused) >> unused));
      continue;
    }
    llvm::APFloat value(*semantics, llvm::APInt(unsigned(size) * 8, bits));
    bool lossy = false;
    value.convert(llvm::APFloat::IEEEdouble(),
                  llvm::APFloat::rmNearestTiesToEven, &lossy);
    numbers.push_back(value.convertToDouble());
  }
  return numbers;
}

} // namespace ingot
