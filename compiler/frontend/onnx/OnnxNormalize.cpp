// A table from domain and name to a rule. A rule changes the node in place, or
// makes several operators of it.
#include "compiler/frontend/onnx/OnnxNormalize.h"

#include "dialects/onnx/ShapeValues.h"

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

// Takes an attribute from the node. One of another type stays, and is refused as
// one that is not known.
std::int64_t takeInteger(OnnxNode &node, StringRef name,
                         std::int64_t otherwise) {
  auto integer = dyn_cast_or_null<IntegerAttr>(node.attributes.get(name));
  if (!integer)
    return otherwise;
  node.attributes.erase(name);
  return integer.getInt();
}
FloatAttr takeFloat(OnnxNode &node, StringRef name) {
  auto number = dyn_cast_or_null<FloatAttr>(node.attributes.get(name));
  if (number)
    node.attributes.erase(name);
  return number;
}

// Of a node that is made here, and nowhere else checked.
Status refuseLeft(const OnnxNode &node) {
  if (node.attributes.empty())
    return Status::ok();
  return refused("attribute \"" + node.attributes.begin()->getName().str() +
                 "\" is not supported, or not of its type");
}

// The lists that were attributes became inputs.
Result<Values> attributeToInput(OnnxOpMaker &maker, OnnxNode &node,
                                StringRef name, unsigned index) {
  auto list = dyn_cast_or_null<DenseI64ArrayAttr>(node.attributes.get(name));
  if (!list)
    return Values();
  node.attributes.erase(name);
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
  INGOT_RETURN_IF_ERROR(refuseLeft(node));
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
    takeFloat(node, "ratio");
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
  takeFloat(node, "momentum");
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
  if (FloatAttr scale = takeFloat(node, "scale"))
    if (scale.getValueAsDouble() != 1.0)
      return refused("a scale other than 1 is not supported");
  auto positions = dyn_cast<RankedTensorType>(node.inputs[1].getType());
  if (!positions || positions.getRank() != 2)
    return refused("position_ids [batch, sequence] are supported only");
  // Of heads side by side that turn whole, the caches tell how many there are.
  auto x = dyn_cast<RankedTensorType>(node.inputs[0].getType()),
       cache = dyn_cast<RankedTensorType>(node.inputs[2].getType());
  auto number = [&](StringRef name) {
    auto attr = dyn_cast_or_null<IntegerAttr>(node.attributes.get(name));
    return attr ? attr.getInt() : 0;
  };
  if (x && cache && x.getRank() == 3 && cache.getRank() == 2 &&
      number("num_heads") == 0 && number("rotary_embedding_dim") == 0) {
    const std::int64_t columns = x.getDimSize(2), half = cache.getDimSize(1);
    if (columns == ShapedType::kDynamic || half < 1 || columns % (2 * half))
      return refused("num_heads follows neither from itself nor from "
                     "cos_cache");
    node.attributes.set(
        "num_heads", maker.attr("num_heads", columns / (2 * half)).getValue());
  }
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

// A chain of operators; the first that cannot be made is the reason.
class Chain {
public:
  explicit Chain(OnnxOpMaker &maker) : maker_(maker) {}
  Value operator()(StringRef op, ValueRange inputs,
                   ArrayRef<NamedAttribute> attributes = {}) {
    if (failedAt_.empty()) {
      FailureOr<Value> value = maker_.value(op, inputs, attributes);
      if (succeeded(value))
        return *value;
      failedAt_ = op.str();
    }
    return maker_.none();
  }
  Status status() const {
    return failedAt_.empty() ? Status::ok()
                             : refused("its " + failedAt_ + " is not possible");
  }

private:
  OnnxOpMaker &maker_;
  std::string failedAt_;
};

// Rows of tables for words, positions and segments, added, and a norm of them.
Result<Values> embedNorm(OnnxOpMaker &maker, OnnxNode &node) {
  if (node.inputs.size() < 7 || !isGiven(node, 0) || !isGiven(node, 2) ||
      !isGiven(node, 3) || !isGiven(node, 5) || !isGiven(node, 6))
    return refused("expected ids, tables, gamma and beta");
  if (isGiven(node, 7))
    return refused("a mask is not supported");
  if (!isGiven(node, 8))
    return refused("position_ids are expected");
  if (isGiven(node, 1) != isGiven(node, 4))
    return refused("segment ids and their table are expected together");
  FloatAttr eps = takeFloat(node, "epsilon");
  takeInteger(node, "mask_index_type", 0); // of an output that is not made
  INGOT_RETURN_IF_ERROR(refuseLeft(node));
  Chain chain(maker);
  Value sum = chain("Add", {chain("Gather", {node.inputs[2], node.inputs[0]}),
                            chain("Gather", {node.inputs[3], node.inputs[8]})});
  if (isGiven(node, 1) && isGiven(node, 4))
    sum =
        chain("Add", {sum, chain("Gather", {node.inputs[4], node.inputs[1]})});
  Value norm =
      chain("LayerNormalization", {sum, node.inputs[5], node.inputs[6]},
            {maker.builder.getNamedAttr(
                "epsilon", eps ? eps : maker.builder.getF32FloatAttr(1e-12f))});
  INGOT_RETURN_IF_ERROR(chain.status());
  return Values{norm, maker.none(), sum};
}

// q, k and v from one product, a past and a present in one tensor of two.
Result<Values> contribAttention(OnnxOpMaker &maker, OnnxNode &node) {
  const std::int64_t heads = takeInteger(node, "num_heads", 0);
  const bool causal = takeInteger(node, "unidirectional", 0) != 0;
  FloatAttr scale = takeFloat(node, "scale");
  // What is masked gets no weight; the number that stands for it is not kept.
  takeFloat(node, "mask_filter_value");
  for (const char *name :
       {"do_rotary", "past_present_share_buffer", "rotary_embedding_dim"})
    if (takeInteger(node, name, 0) != 0)
      return refused("attribute \"" + std::string(name) +
                     "\" is not supported");
  INGOT_RETURN_IF_ERROR(refuseLeft(node));
  if (heads < 1 || node.inputs.size() < 2 || isGiven(node, 6))
    return refused("expected num_heads, an input and weights");
  OpBuilder &builder = maker.builder;
  Chain chain(maker);
  Value qkv = chain("MatMul", {node.inputs[0], node.inputs[1]});
  if (isGiven(node, 2))
    qkv = chain("Add", {qkv, node.inputs[2]});
  INGOT_RETURN_IF_ERROR(chain.status());
  FailureOr<Operation *> parts = maker.make(
      "Split", {qkv}, {maker.attr("axis", 2), maker.attr("num_outputs", 3)}, 3);
  if (failed(parts))
    return refused("its q, k and v are not of one size");
  Values inputs((*parts)->getResults());
  auto of = [&](Value both, std::int64_t index) {
    auto type = RankedTensorType::get({}, builder.getI64Type());
    Value at = builder.create<onnx::ConstantOp>(
        maker.location, TypeRange{type}, ValueRange(),
        builder.getNamedAttr("value", DenseElementsAttr::get(type, index)));
    return chain("Gather", {both, at});
  };
  Value mask = maker.none();
  if (isGiven(node, 3)) {
    auto type = dyn_cast<RankedTensorType>(node.inputs[3].getType());
    if (!type || type.getRank() != 2)
      return refused("a mask [batch, keys] is supported only");
    mask =
        chain("Cast", {node.inputs[3]},
              {builder.getNamedAttr("to", TypeAttr::get(builder.getI1Type()))});
    mask = chain("Unsqueeze", {mask, maker.ints({1, 2})});
  }
  if (isGiven(node, 5)) {
    if (isGiven(node, 3))
      return refused("a mask beside an attention bias is not supported");
    mask = node.inputs[5];
  }
  inputs.push_back(mask);
  const bool hasPast = isGiven(node, 4);
  if (hasPast) {
    inputs.push_back(of(node.inputs[4], 0));
    inputs.push_back(of(node.inputs[4], 1));
  }
  NamedAttrList attributes;
  attributes.append(maker.attr("is_causal", causal));
  attributes.append(maker.attr("q_num_heads", heads));
  attributes.append(maker.attr("kv_num_heads", heads));
  if (scale && scale.getValueAsDouble() != 0)
    attributes.append("scale", scale);
  INGOT_RETURN_IF_ERROR(chain.status());
  FailureOr<Operation *> attention =
      maker.make("Attention", inputs, attributes.getAttrs());
  if (failed(attention))
    return refused("its shapes are not those of an attention");
  (*attention)->getResult(3).setType(builder.getNoneType());
  Value zero = maker.ints({0});
  Value present =
      chain("Concat",
            {chain("Unsqueeze", {(*attention)->getResult(1), zero}),
             chain("Unsqueeze", {(*attention)->getResult(2), zero})},
            {maker.attr("axis", 0)});
  INGOT_RETURN_IF_ERROR(chain.status());
  return Values{(*attention)->getResult(0), present};
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
    {"com.microsoft", "EmbedLayerNormalization", "LayerNormalization",
     embedNorm},
    {"com.microsoft", "Attention", "Attention", contribAttention},
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
