// 1. Opsets. 2. Inputs become arguments. 3. Initializers become constants and
// weights, at first use. 4. Nodes in order: inputs are looked up from the inner
// graph outwards, the node is normalised and made. 5. Outputs are returned.
#include "compiler/frontend/onnx/OnnxImporter.h"

#include "compiler/frontend/StrictJson.h"
#include "compiler/frontend/onnx/OnnxNormalize.h"
#include "dialects/onnx/TypeInference.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace ingot {
namespace {

using onnxproto::AttributeProto;
using onnxproto::GraphProto;
using onnxproto::NodeProto;
using onnxproto::TensorProto;

constexpr std::uint64_t kMaxConstantBytes = 4096;
constexpr std::uint64_t kMaxConstantInts = 65536;

std::string domainName(StringRef domain) {
  return domain.empty() ? "ai.onnx" : domain.str();
}

class Importer {
public:
  Importer(MLIRContext &context, OnnxFile &file)
      : context_(context), file_(file), builder_(&context) {}

  Result<OwningOpRef<ModuleOp>> run();

private:
  // A graph's own names. Initializers are made where they are first used.
  struct Scope {
    llvm::StringMap<Value> values;
    llvm::StringMap<const TensorProto *> initializers;
  };

  Status invalid(const std::string &what) const {
    return Status::invalid(file_.name() + ": " + what);
  }
  Status readOpsets();
  Status addInitializers(const GraphProto &graph, Scope &scope);
  Result<Type> typeOf(const onnxproto::ValueInfoProto &info,
                      SmallVectorImpl<Attribute> &dims);
  Result<Value> initializer(const TensorProto &tensor);
  Result<Value> find(const std::string &name, const std::string &where);
  Status addNodes(const GraphProto &graph);
  Status addNode(const NodeProto &proto, const std::string &where);
  Status addIf(const NodeProto &proto, const std::string &where);
  Status addBranch(const NodeProto &proto, const char *name, Region &region,
                   const std::string &where);
  Result<Attribute> attribute(const AttributeProto &proto,
                              const std::string &where);
  Status define(const std::string &name, Value value, const std::string &where);
  Result<SmallVector<Value>> outputs(const GraphProto &graph);

  std::string takeDiagnostic() {
    std::string text = std::move(diagnostic_);
    diagnostic_.clear();
    return text.empty() ? "is not valid" : text;
  }

  MLIRContext &context_;
  OnnxFile &file_;
  OpBuilder builder_;
  llvm::StringMap<std::int64_t> opsets_;
  SmallVector<std::unique_ptr<Scope>> scopes_;
  std::string diagnostic_; // the first since it was taken
};

//===----------------------------------------------------------------------===//
// Graph
//===----------------------------------------------------------------------===//

Status Importer::readOpsets() {
  for (const auto &opset : file_.model().opset_import()) {
    std::string domain = opset.domain() == "ai.onnx" ? "" : opset.domain();
    if (!opsets_.try_emplace(domain, opset.version()).second)
      return invalid("opset_import names " + quoteName(domainName(domain)) +
                     " twice");
  }
  return Status::ok();
}

Result<Type> Importer::typeOf(const onnxproto::ValueInfoProto &info,
                              SmallVectorImpl<Attribute> &dims) {
  const std::string where = quoteName(info.name());
  if (!info.type().has_tensor_type())
    return Status::unsupported(file_.name() + ": " + where +
                               ": expected a tensor (sequences, maps and "
                               "optional values are not supported)");
  const auto &tensor = info.type().tensor_type();
  Type element = onnxElementType(&context_, tensor.elem_type());
  if (!element)
    return Status::unsupported(file_.name() + ": " + where + ": elements of " +
                               onnxTypeName(tensor.elem_type()) +
                               " are not supported");
  if (!tensor.has_shape())
    return Type(UnrankedTensorType::get(element));
  SmallVector<std::int64_t> shape;
  std::int64_t product = 1;
  for (const auto &dim : tensor.shape().dim()) {
    std::string name;
    std::int64_t size = ShapedType::kDynamic;
    if (dim.has_dim_value()) {
      if (dim.dim_value() < 0)
        return invalid(where + ": dimension " +
                       std::to_string(dim.dim_value()));
      size = dim.dim_value();
      if (__builtin_mul_overflow(product, std::max<std::int64_t>(size, 1),
                                 &product) ||
          product > onnx::kMaxElements)
        return invalid(where + ": too many elements");
    } else {
      name = dim.dim_param();
    }
    shape.push_back(size);
    dims.push_back(builder_.getStringAttr(name));
  }
  return Type(RankedTensorType::get(shape, element));
}

Status Importer::addInitializers(const GraphProto &graph, Scope &scope) {
  if (!graph.sparse_initializer().empty())
    return Status::unsupported(file_.name() +
                               ": sparse initializers are not supported");
  for (const TensorProto &tensor : graph.initializer()) {
    if (tensor.name().empty())
      return invalid("an initializer has no name");
    if (!scope.initializers.try_emplace(tensor.name(), &tensor).second)
      return invalid("initializer " + quoteName(tensor.name()) +
                     " is given twice");
  }
  return Status::ok();
}

Result<Value> Importer::initializer(const TensorProto &proto) {
  INGOT_ASSIGN_OR_RETURN(
      OnnxTensor tensor,
      file_.read(proto, "initializer " + quoteName(proto.name())));
  Type element =
      onnxElementType(&context_, static_cast<std::int32_t>(tensor.type));
  if (!element)
    return Status::unsupported(file_.name() + ": initializer " +
                               quoteName(proto.name()) + ": elements of " +
                               onnxTypeName(proto.data_type()) +
                               " are not supported");
  Location location = onnx::nodeLocation(&context_, proto.name());
  auto type = RankedTensorType::get(tensor.dims, element);
  const bool isSmall =
      tensor.bytes().size() <= kMaxConstantBytes || !tensor.file ||
      (isa<IntegerType>(element) && tensor.numElements <= kMaxConstantInts);
  if (isSmall)
    return Value(builder_.create<onnx::ConstantOp>(
        location, TypeRange{type}, ValueRange(),
        builder_.getNamedAttr("value", onnxElements(&context_, tensor))));
  auto number = [&](StringRef name, std::uint64_t value) {
    return builder_.getNamedAttr(
        name, builder_.getI64IntegerAttr(static_cast<std::int64_t>(value)));
  };
  return Value(builder_.create<onnx::WeightOp>(
      location, TypeRange{type}, ValueRange(),
      ArrayRef<NamedAttribute>{
          builder_.getNamedAttr("name", builder_.getStringAttr(proto.name())),
          number("source", *tensor.file), number("offset", tensor.byteOffset),
          number("size", tensor.mapped.size())}));
}

// A name of this graph or of one around it.
Result<Value> Importer::find(const std::string &name,
                             const std::string &where) {
  if (name.empty())
    return Value(builder_.create<onnx::NoneOp>(
        builder_.getUnknownLoc(), TypeRange{builder_.getNoneType()},
        ValueRange()));
  for (std::size_t i = scopes_.size(); i-- > 0;) {
    Scope &scope = *scopes_[i];
    if (auto found = scope.values.find(name); found != scope.values.end())
      return found->second;
    auto tensor = scope.initializers.find(name);
    if (tensor == scope.initializers.end())
      continue;
    // At the start of the graph that it belongs to, where all may see it.
    OpBuilder::InsertionGuard guard(builder_);
    for (std::size_t out = scopes_.size() - 1; out > i; --out)
      builder_.setInsertionPoint(builder_.getInsertionBlock()->getParentOp());
    builder_.setInsertionPointToStart(builder_.getInsertionBlock());
    INGOT_ASSIGN_OR_RETURN(Value value, initializer(*tensor->second));
    scope.values[name] = value;
    return value;
  }
  return invalid(where + ": input " + quoteName(name) +
                 " is neither an input of the graph, nor an initializer, nor "
                 "the output of a node before it");
}

Status Importer::define(const std::string &name, Value value,
                        const std::string &where) {
  if (name.empty())
    return Status::ok();
  Scope &scope = *scopes_.back();
  if (scope.initializers.count(name) ||
      !scope.values.try_emplace(name, value).second)
    return invalid(where + ": output " + quoteName(name) + " is defined twice");
  return Status::ok();
}

Result<SmallVector<Value>> Importer::outputs(const GraphProto &graph) {
  SmallVector<Value> values;
  for (const auto &output : graph.output()) {
    INGOT_ASSIGN_OR_RETURN(
        Value value, find(output.name(), "output " + quoteName(output.name())));
    if (onnx::isAbsent(value))
      return invalid("an output has no name");
    values.push_back(value);
  }
  return values;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

Result<Attribute> Importer::attribute(const AttributeProto &proto,
                                      const std::string &where) {
  const std::string what = where + ": attribute " + quoteName(proto.name());
  if (!proto.ref_attr_name().empty())
    return invalid(what + " refers to one of a function");
  switch (proto.type()) {
  case AttributeProto::FLOAT:
    return Attribute(builder_.getF32FloatAttr(proto.f()));
  case AttributeProto::INT:
    return Attribute(builder_.getI64IntegerAttr(proto.i()));
  case AttributeProto::STRING:
    return Attribute(builder_.getStringAttr(proto.s()));
  case AttributeProto::FLOATS:
    return Attribute(builder_.getDenseF32ArrayAttr(
        SmallVector<float>(proto.floats().begin(), proto.floats().end())));
  case AttributeProto::INTS:
    return Attribute(builder_.getDenseI64ArrayAttr(
        SmallVector<std::int64_t>(proto.ints().begin(), proto.ints().end())));
  case AttributeProto::TENSOR: {
    INGOT_ASSIGN_OR_RETURN(OnnxTensor tensor, file_.read(proto.t(), what));
    if (ElementsAttr elements = onnxElements(&context_, tensor))
      return Attribute(elements);
    return Status::unsupported(file_.name() + ": " + what + ": elements of " +
                               onnxTypeName(proto.t().data_type()) +
                               " are not supported");
  }
  default:
    return Status::unsupported(file_.name() + ": " + what + " of type " +
                               std::to_string(proto.type()) +
                               " is not supported");
  }
}

// Which attributes hold the number of an element type; 0 is none.
bool namesType(StringRef op, StringRef attribute) {
  return attribute == "to" || attribute == "output_dtype" ||
         (op == "EyeLike" && attribute == "dtype");
}

Status Importer::addNode(const NodeProto &proto, const std::string &where) {
  OnnxNode node;
  node.op = proto.op_type();
  node.domain = proto.domain() == "ai.onnx" ? "" : proto.domain();
  const std::string what =
      where + " (" + node.op + ", " + domainName(node.domain) + " opset ";
  auto opset = opsets_.find(node.domain);
  if (opset == opsets_.end())
    return invalid(what + "?): opset_import does not name its domain");
  const std::string full = what + std::to_string(opset->second) + ")";
  auto refuse = [&](const std::string &why) {
    return Status::unsupported(file_.name() + ": " + full + ": " + why);
  };
  if (node.domain.empty() && (opset->second < 11 || opset->second > 26))
    return refuse("the opsets that are read are 11 to 26");
  std::string normal = normalName(node.domain, node.op);
  if (normal.empty() || !proto.overload().empty())
    return refuse("this operator is not supported");
  node.version = operatorVersion(node.domain, node.op, opset->second);
  if (node.version == 0)
    return refuse("this version of the operator is not supported");
  if (normal == "If")
    return addIf(proto, full);

  // Attributes: those that the operator, or an older version of it, has.
  for (const AttributeProto &one : proto.attribute()) {
    if (node.attributes.get(one.name()))
      return invalid(full + ": attribute " + quoteName(one.name()) +
                     " is given twice");
    INGOT_ASSIGN_OR_RETURN(Attribute value, attribute(one, full));
    if (namesType(node.op, one.name())) {
      auto number = dyn_cast<IntegerAttr>(value);
      std::int64_t type = number ? number.getInt() : -1;
      if (type == 0 && one.name() != "to")
        continue;
      Type element =
          type > 0 && type < 64 ? onnxElementType(&context_, type) : Type();
      if (!element)
        return refuse("attribute " + quoteName(one.name()) + ": elements of " +
                      onnxTypeName(static_cast<std::int32_t>(type)) +
                      " are not supported");
      value = TypeAttr::get(element);
    }
    node.attributes.set(one.name(), value);
  }
  for (const std::string &name : proto.input()) {
    INGOT_ASSIGN_OR_RETURN(Value value, find(name, full));
    node.inputs.push_back(value);
  }
  while (!node.inputs.empty() && onnx::isAbsent(node.inputs.back()))
    node.inputs.pop_back();
  node.numOutputs = static_cast<unsigned>(proto.output_size());

  std::string name =
      proto.name().empty()
          ? node.op + "_" + (proto.output_size() ? proto.output(0) : "")
          : proto.name();
  OnnxOpMaker maker(builder_, onnx::nodeLocation(&context_, name));
  auto results = normalizeNode(maker, node);
  if (!results)
    return refuse(results.status().message());
  SmallVector<Value> values = std::move(*results);
  if (values.empty()) {
    std::string made = normalName(node.domain, node.op);
    made = made.empty() ? node.op : made;
    const onnx::OperatorInfo *info = onnx::findOperator(made);
    if (!info)
      return refuse("this operator is not supported");
    auto known = RegisteredOperationName::lookup("onnx." + made, &context_);
    for (NamedAttribute one : node.attributes)
      if (!llvm::is_contained(known->getAttributeNames(), one.getName()))
        return refuse("attribute " + quoteName(one.getName().str()) +
                      " is not known");
    if (!info->variadicInputs && node.inputs.size() > info->numInputs)
      return refuse("it has " + std::to_string(node.inputs.size()) +
                    " inputs, expected at most " +
                    std::to_string(info->numInputs));
    if (info->variadicInputs && node.inputs.empty())
      return refuse("it has no inputs");
    if ((!info->variadicOutputs && node.numOutputs > info->numOutputs) ||
        node.numOutputs == 0)
      return refuse("it has " + std::to_string(node.numOutputs) +
                    " outputs, expected 1 to " +
                    std::to_string(info->numOutputs));
    FailureOr<Operation *> op = maker.make(
        made, node.inputs, node.attributes.getAttrs(), node.numOutputs);
    if (failed(op))
      return refuse(takeDiagnostic());
    values.assign((*op)->result_begin(), (*op)->result_end());
    // An optional output that has no name is not there.
    if (!info->variadicOutputs)
      for (unsigned i = 1; i < values.size(); ++i)
        if (static_cast<int>(i) >= proto.output_size() ||
            proto.output(i).empty())
          values[i].setType(builder_.getNoneType());
  }
  for (int i = 0; i < proto.output_size(); ++i) {
    if (static_cast<std::size_t>(i) >= values.size())
      return refuse("it has " + std::to_string(proto.output_size()) +
                    " outputs, expected " + std::to_string(values.size()));
    INGOT_RETURN_IF_ERROR(define(proto.output(i), values[i], full));
  }
  return Status::ok();
}

Status Importer::addBranch(const NodeProto &proto, const char *name,
                           Region &region, const std::string &where) {
  const AttributeProto *found = nullptr;
  for (const AttributeProto &one : proto.attribute())
    if (one.name() == name)
      found = &one;
  if (!found || found->type() != AttributeProto::GRAPH || !found->has_g())
    return invalid(where + ": expected a graph " + name);
  const GraphProto &graph = found->g();
  if (!graph.input().empty())
    return invalid(where + ": " + name + " has inputs");
  OpBuilder::InsertionGuard guard(builder_);
  builder_.createBlock(&region);
  scopes_.push_back(std::make_unique<Scope>());
  INGOT_RETURN_IF_ERROR(addInitializers(graph, *scopes_.back()));
  INGOT_RETURN_IF_ERROR(addNodes(graph));
  INGOT_ASSIGN_OR_RETURN(SmallVector<Value> values, outputs(graph));
  OperationState state(builder_.getUnknownLoc(),
                       onnx::YieldOp::getOperationName());
  state.addOperands(values);
  builder_.create(state);
  scopes_.pop_back();
  return Status::ok();
}

Status Importer::addIf(const NodeProto &proto, const std::string &where) {
  for (const AttributeProto &one : proto.attribute())
    if (one.name() != "then_branch" && one.name() != "else_branch")
      return invalid(where + ": attribute " + quoteName(one.name()) +
                     " is not known");
  if (proto.input_size() != 1)
    return invalid(where + ": expected one input");
  INGOT_ASSIGN_OR_RETURN(Value condition, find(proto.input(0), where));
  OperationState state(onnx::nodeLocation(&context_, proto.name()),
                       onnx::IfOp::getOperationName());
  state.addOperands(condition);
  state.addTypes(
      SmallVector<Type>(proto.output_size(), builder_.getNoneType()));
  state.addRegion();
  state.addRegion();
  auto op = cast<onnx::IfOp>(builder_.create(state));
  INGOT_RETURN_IF_ERROR(
      addBranch(proto, "then_branch", op.getThenBranch(), where));
  INGOT_RETURN_IF_ERROR(
      addBranch(proto, "else_branch", op.getElseBranch(), where));
  FailureOr<SmallVector<Type>> types = failure();
  if (onnx::isBoolTensor(condition.getType()))
    types = onnx::inferResultTypes(op);
  if (failed(types) || types->size() != op->getNumResults())
    return Status::unsupported(file_.name() + ": " + where + ": " +
                               takeDiagnostic());
  for (auto [i, type] : llvm::enumerate(*types)) {
    op->getResult(i).setType(type);
    INGOT_RETURN_IF_ERROR(
        define(proto.output(static_cast<int>(i)), op->getResult(i), where));
  }
  return Status::ok();
}

Status Importer::addNodes(const GraphProto &graph) {
  for (int i = 0; i < graph.node_size(); ++i) {
    const NodeProto &node = graph.node(i);
    std::string where =
        "node " +
        (node.name().empty() ? std::to_string(i) : quoteName(node.name()));
    INGOT_RETURN_IF_ERROR(addNode(node, where));
  }
  return Status::ok();
}

Result<OwningOpRef<ModuleOp>> Importer::run() {
  context_.loadDialect<onnx::OnnxDialect, func::FuncDialect>();
  ScopedDiagnosticHandler handler(&context_, [&](Diagnostic &diagnostic) {
    if (diagnostic_.empty())
      diagnostic_ = diagnostic.str();
    return success();
  });
  INGOT_RETURN_IF_ERROR(readOpsets());
  const GraphProto &graph = file_.model().graph();
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder_.getUnknownLoc());
  scopes_.push_back(std::make_unique<Scope>());
  Scope &scope = *scopes_.back();
  INGOT_RETURN_IF_ERROR(addInitializers(graph, scope));

  SmallVector<Type> types;
  SmallVector<DictionaryAttr> argumentAttrs;
  for (const auto &input : graph.input()) {
    SmallVector<Attribute> dims;
    INGOT_ASSIGN_OR_RETURN(Type type, typeOf(input, dims));
    types.push_back(type);
    argumentAttrs.push_back(builder_.getDictionaryAttr(
        {builder_.getNamedAttr(onnx::kNameAttr,
                               builder_.getStringAttr(input.name())),
         builder_.getNamedAttr(onnx::kDimsAttr, builder_.getArrayAttr(dims))}));
  }
  builder_.setInsertionPointToEnd(module->getBody());
  auto function = builder_.create<func::FuncOp>(
      builder_.getUnknownLoc(), "main", builder_.getFunctionType(types, {}));
  Block *entry = function.addEntryBlock();
  builder_.setInsertionPointToEnd(entry);
  for (auto [i, input] : llvm::enumerate(graph.input())) {
    Value argument = entry->getArgument(i);
    if (!scope.values.try_emplace(input.name(), argument).second)
      return invalid("input " + quoteName(input.name()) + " is given twice");
    function.setArgAttrs(i, argumentAttrs[i]);
    auto given = scope.initializers.find(input.name());
    if (given == scope.initializers.end())
      continue;
    // A default, that may be overridden at run time.
    INGOT_ASSIGN_OR_RETURN(Value value, initializer(*given->second));
    if (!onnx::areCompatible(value.getType(), argument.getType()))
      return invalid("input " + quoteName(input.name()) +
                     " and its initializer have different types");
    Operation *made = value.getDefiningOp();
    if (auto constant = dyn_cast<onnx::ConstantOp>(made))
      function.setArgAttr(i, "onnx.default", constant.getValue());
    else
      function.setArgAttr(i, "onnx.default", made->getAttrDictionary());
    function.setArgAttr(i, "onnx.default_type", TypeAttr::get(value.getType()));
    made->erase();
    scope.initializers.erase(given);
  }
  INGOT_RETURN_IF_ERROR(addNodes(graph));
  INGOT_ASSIGN_OR_RETURN(SmallVector<Value> results, outputs(graph));
  builder_.create<func::ReturnOp>(builder_.getUnknownLoc(), results);
  function.setType(builder_.getFunctionType(
      types, llvm::map_to_vector(results,
                                 [](Value value) { return value.getType(); })));
  for (auto [i, output] : llvm::enumerate(graph.output()))
    function.setResultAttr(i, onnx::kNameAttr,
                           builder_.getStringAttr(output.name()));
  SmallVector<Attribute> paths;
  for (const OnnxSource &source : file_.sources())
    paths.push_back(builder_.getStringAttr(source.path));
  (*module)->setAttr(onnx::kSourcesAttr, builder_.getArrayAttr(paths));
  if (failed(verify(*module)))
    return Status::internal(file_.name() + ": " + takeDiagnostic());
  return module;
}

} // namespace

Type onnxElementType(MLIRContext *context, std::int32_t type) {
  Builder builder(context);
  switch (static_cast<OnnxType>(type)) {
  case OnnxType::Float:
    return builder.getF32Type();
  case OnnxType::Double:
    return builder.getF64Type();
  case OnnxType::Float16:
    return builder.getF16Type();
  case OnnxType::Bfloat16:
    return builder.getBF16Type();
  case OnnxType::Uint8:
    return builder.getIntegerType(8, false);
  case OnnxType::Uint16:
    return builder.getIntegerType(16, false);
  case OnnxType::Uint32:
    return builder.getIntegerType(32, false);
  case OnnxType::Uint64:
    return builder.getIntegerType(64, false);
  case OnnxType::Int8:
    return builder.getI8Type();
  case OnnxType::Int16:
    return builder.getI16Type();
  case OnnxType::Int32:
    return builder.getI32Type();
  case OnnxType::Int64:
    return builder.getI64Type();
  case OnnxType::Bool:
    return builder.getI1Type();
  default:
    return {};
  }
}

ElementsAttr onnxElements(MLIRContext *context, const OnnxTensor &tensor) {
  Type element =
      onnxElementType(context, static_cast<std::int32_t>(tensor.type));
  if (!element)
    return {};
  auto type = RankedTensorType::get(tensor.dims, element);
  std::span<const std::uint8_t> bytes = tensor.bytes();
  if (tensor.type == OnnxType::Bool) {
    SmallVector<bool> bools(bytes.begin(), bytes.end());
    return DenseElementsAttr::get(type, bools);
  }
  return DenseElementsAttr::getFromRawBuffer(
      type,
      ArrayRef(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
}

Result<OwningOpRef<ModuleOp>> importOnnxGraph(MLIRContext &context,
                                              OnnxFile &file) {
  context.printOpOnDiagnostic(false);
  return Importer(context, file).run();
}

} // namespace ingot
