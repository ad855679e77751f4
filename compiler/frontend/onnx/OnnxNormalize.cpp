// A table from domain and name to a rule. A rule changes the node in place, or
// makes several operators of it.
#include "compiler/frontend/onnx/OnnxNormalize.h"

#include "dialects/onnx/ShapeValues.h"
#include "dialects/onnx/TypeInference.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace ingot {
namespace {

using Values = SmallVector<Value>;
using Rule = Result<Values> (*)(OnnxOpMaker &, OnnxNode &);

Status refused(const std::string &what) { return Status::unsupported(what); }

bool isGiven(const OnnxNode &node, unsigned index) {
  return index < node.inputs.size() && !onnx::isAbsent(node.inputs[index]);
}

std::int64_t takeInteger(OnnxNode &node, StringRef name,
                         std::int64_t otherwise) {
  Attribute attr = node.attributes.erase(name);
  auto integer = dyn_cast_or_null<IntegerAttr>(attr);
  return integer ? integer.getInt() : otherwise;
}

// The lists that were attributes became inputs.
Result<Values> attributeToInput(OnnxOpMaker &maker, OnnxNode &node,
                                StringRef name, unsigned index) {
  auto list = dyn_cast_or_null<DenseI64ArrayAttr>(node.attributes.erase(name));
  if (!list)
    return Values();
  if (node.inputs.size() > index)
    return refused(name.str() + " is both an attribute and an input");
  while (node.inputs.size() < index)
    node.inputs.push_back(maker.none());
  node.inputs.push_back(maker.ints(list.asArrayRef()));
  return Values();
}

template <int version> Result<Values> axes(OnnxOpMaker &maker, OnnxNode &node) {
  if (node.version >= version)
    return Values();
  return attributeToInput(maker, node, "axes", 1);
}

Result<Values> split(OnnxOpMaker &maker, OnnxNode &node) {
  if (node.version >= 13)
    return Values();
  return attributeToInput(maker, node, "split", 1);
}

// Before version 13 the tensor was flattened to a matrix at axis.
Result<Values> softmax(OnnxOpMaker &maker, OnnxNode &node) {
  if (node.version >= 13 || node.inputs.size() != 1)
    return Values();
  std::int64_t axis = takeInteger(node, "axis", 1);
  FailureOr<Value> shape = maker.value("Shape", node.inputs);
  if (mlir::failed(shape))
    return refused("its shape");
  FailureOr<Value> flat =
      maker.value("Flatten", node.inputs, {maker.attr("axis", axis)});
  if (mlir::failed(flat))
    return refused("its axis");
  FailureOr<Value> soft =
      maker.value(node.op, {*flat}, {maker.attr("axis", -1)});
  if (mlir::failed(soft))
    return refused("its type");
  FailureOr<Value> back = maker.value("Reshape", {*soft, *shape});
  if (mlir::failed(back))
    return refused("its shape");
  return Values{*back};
}

Result<Values> dropout(OnnxOpMaker &maker, OnnxNode &node) {
  if (node.version < 12)
    node.attributes.erase("ratio");
  if (isGiven(node, 2)) {
    auto mode = onnx::knownInts(node.inputs[2]);
    if (!mode || mode->size() != 1 || (*mode)[0] != 0)
      return refused("training_mode is not false");
  }
  return Values();
}

Result<Values> batchNorm(OnnxOpMaker &maker, OnnxNode &node) {
  if (takeInteger(node, "training_mode", 0) != 0)
    return refused("training_mode is not supported");
  node.attributes.erase("momentum");
  if (node.numOutputs > 1)
    return refused("its outputs of training are not supported");
  return Values();
}

Result<Values> constant(OnnxOpMaker &maker, OnnxNode &node) {
  if (node.attributes.getAttrs().size() != 1)
    return refused("expected one attribute");
  NamedAttribute given = node.attributes.getAttrs()[0];
  StringRef name = given.getName().strref();
  Builder &builder = maker.builder;
  Attribute value;
  if (name == "value") {
    value = given.getValue();
  } else if (name == "value_int") {
    if (auto one = dyn_cast<IntegerAttr>(given.getValue()))
      value = DenseElementsAttr::get(
          RankedTensorType::get({}, builder.getI64Type()), one.getInt());
  } else if (name == "value_ints") {
    if (auto list = dyn_cast<DenseI64ArrayAttr>(given.getValue()))
      value = DenseElementsAttr::get(
          RankedTensorType::get({list.size()}, builder.getI64Type()),
          list.asArrayRef());
  } else if (name == "value_float") {
    if (auto one = dyn_cast<FloatAttr>(given.getValue()))
      value = DenseElementsAttr::get(
          RankedTensorType::get({}, builder.getF32Type()),
          static_cast<float>(one.getValueAsDouble()));
  } else if (name == "value_floats") {
    if (auto list = dyn_cast<DenseF32ArrayAttr>(given.getValue()))
      value = DenseElementsAttr::get(
          RankedTensorType::get({list.size()}, builder.getF32Type()),
          list.asArrayRef());
  }
  if (!isa_and_nonnull<ElementsAttr>(value))
    return refused("attribute \"" + name.str() + "\" is not supported");
  node.attributes.clear();
  node.attributes.set("value", value);
  return Values();
}

Result<Values> constantOfShape(OnnxOpMaker &maker, OnnxNode &node) {
  if (!node.attributes.get("value"))
    node.attributes.set(
        "value",
        DenseElementsAttr::get(
            RankedTensorType::get({1}, maker.builder.getF32Type()), 0.0f));
  return Values();
}

//===----------------------------------------------------------------------===//
// com.microsoft, and names that onnxruntime has in the default domain
//===----------------------------------------------------------------------===//

Result<Values> simplifiedNorm(OnnxOpMaker &maker, OnnxNode &node) {
  node.op = "RMSNormalization";
  return Values();
}

// Inputs are in another order; a scale and packed batches have no counterpart.
Result<Values> contribRotary(OnnxOpMaker &maker, OnnxNode &node) {
  if (node.inputs.size() != 4)
    return refused("expected input, position_ids, cos_cache, sin_cache");
  if (takeInteger(node, "is_packed_batching", 0) != 0)
    return refused("is_packed_batching is not supported");
  if (auto scale = dyn_cast_or_null<FloatAttr>(node.attributes.erase("scale")))
    if (scale.getValueAsDouble() != 1.0)
      return refused("a scale other than 1 is not supported");
  auto positions = dyn_cast<RankedTensorType>(node.inputs[1].getType());
  if (!positions || positions.getRank() != 2)
    return refused("position_ids [batch, sequence] are supported only");
  node.inputs = {node.inputs[0], node.inputs[2], node.inputs[3],
                 node.inputs[1]};
  return Values();
}

Result<Values> quickGelu(OnnxOpMaker &maker, OnnxNode &node) {
  node.op = "Swish";
  if (!node.attributes.get("alpha"))
    node.attributes.set("alpha", maker.builder.getF32FloatAttr(1.702f));
  return Values();
}

Result<Values> addBias(OnnxOpMaker &maker, OnnxNode &node) {
  if (isGiven(node, 1)) {
    FailureOr<Value> sum = maker.value("Add", {node.inputs[0], node.inputs[1]});
    if (mlir::failed(sum))
      return refused("its bias");
    node.inputs[0] = *sum;
  }
  node.inputs.resize(std::min<std::size_t>(node.inputs.size(), 1));
  return Values();
}

Result<Values> biasGelu(OnnxOpMaker &maker, OnnxNode &node) {
  node.op = "Gelu";
  return addBias(maker, node);
}
Result<Values> fastGelu(OnnxOpMaker &maker, OnnxNode &node) {
  node.op = "Gelu";
  node.attributes.set("approximate", maker.builder.getStringAttr("tanh"));
  return addBias(maker, node);
}

struct Foreign {
  const char *domain, *op, *becomes;
  Rule rule;
};
constexpr Foreign kForeign[] = {
    {"", "SimplifiedLayerNormalization", "RMSNormalization", simplifiedNorm},
    {"com.microsoft", "RotaryEmbedding", "RotaryEmbedding", contribRotary},
    {"com.microsoft", "Gelu", "Gelu", nullptr},
    {"com.microsoft", "BiasGelu", "Gelu", biasGelu},
    {"com.microsoft", "FastGelu", "Gelu", fastGelu},
    {"com.microsoft", "QuickGelu", "Swish", quickGelu},
};

const Foreign *findForeign(StringRef domain, StringRef op) {
  for (const Foreign &row : kForeign)
    if (domain == row.domain && op == row.op)
      return &row;
  return nullptr;
}

Rule findRule(StringRef op) {
  return llvm::StringSwitch<Rule>(op)
      .Cases("Softmax", "LogSoftmax", "Hardmax", softmax)
      .Cases("Squeeze", "Unsqueeze", "ReduceSum", axes<13>)
      .Cases("ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1",
             "ReduceL2", axes<18>)
      .Cases("ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare", axes<18>)
      .Case("Split", split)
      .Case("Dropout", dropout)
      .Case("BatchNormalization", batchNorm)
      .Case("Constant", constant)
      .Case("ConstantOfShape", constantOfShape)
      .Default(nullptr);
}

} // namespace

FailureOr<Operation *> OnnxOpMaker::make(StringRef name, ValueRange inputs,
                                         ArrayRef<NamedAttribute> attributes,
                                         unsigned numOutputs) {
  const onnx::OperatorInfo *info = onnx::findOperator(name);
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
    types = onnx::inferResultTypes(op);
  if (mlir::failed(types)) {
    op->destroy();
    return failure();
  }
  for (auto [result, type] : llvm::zip(op->getResults(), *types))
    result.setType(type);
  builder.insert(op);
  return op;
}

FailureOr<Value> OnnxOpMaker::value(StringRef name, ValueRange inputs,
                                    ArrayRef<NamedAttribute> attributes) {
  FailureOr<Operation *> op = make(name, inputs, attributes);
  if (mlir::failed(op))
    return failure();
  return (*op)->getResult(0);
}

Value OnnxOpMaker::none() {
  return builder.create<onnx::NoneOp>(
      location, TypeRange{builder.getNoneType()}, ValueRange());
}

Value OnnxOpMaker::ints(ArrayRef<std::int64_t> values) {
  auto type = RankedTensorType::get({static_cast<std::int64_t>(values.size())},
                                    builder.getI64Type());
  return builder.create<onnx::ConstantOp>(
      location, TypeRange{type}, ValueRange(),
      builder.getNamedAttr("value", DenseElementsAttr::get(type, values)));
}

std::string normalName(StringRef domain, StringRef op) {
  if (const Foreign *foreign = findForeign(domain, op))
    return foreign->becomes;
  const onnx::OperatorInfo *info = onnx::findOperator(op);
  if (!info || info->domain != domain || info->versions.empty())
    return {};
  return op.str();
}

std::int64_t operatorVersion(StringRef domain, StringRef op,
                             std::int64_t opset) {
  if (findForeign(domain, op))
    return 1;
  const onnx::OperatorInfo *info = onnx::findOperator(op);
  std::int64_t newest = 0;
  for (std::int64_t version :
       info ? info->versions : SmallVector<std::int64_t>())
    if (version <= opset)
      newest = version;
  return newest;
}

Result<Values> normalizeNode(OnnxOpMaker &maker, OnnxNode &node) {
  if (const Foreign *foreign = findForeign(node.domain, node.op)) {
    if (!foreign->rule)
      return Values();
    return foreign->rule(maker, node);
  }
  Rule rule = findRule(node.op);
  return rule ? rule(maker, node) : Result<Values>(Values());
}

} // namespace ingot
