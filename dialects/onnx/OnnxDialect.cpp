// The dialect, the one textual form of its operators, and their table by name.
#include "dialects/onnx/OnnxDialect.h"

#include "dialects/onnx/OnnxOps.h"
#include "dialects/onnx/TypeInference.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace ingot::onnx {
namespace {

template <typename... Ops> llvm::StringMap<OperatorInfo> makeTable() {
  llvm::StringMap<OperatorInfo> table;
  auto add = [&](llvm::StringRef name, OperatorInfo info) {
    table.try_emplace(name.drop_front(sizeof("onnx.") - 1), std::move(info));
  };
  (
      [&] {
        if constexpr (!std::is_same_v<Ops, YieldOp>)
          add(Ops::getOperationName(), Ops::getInfo());
      }(),
      ...);
  return table;
}

const llvm::StringMap<OperatorInfo> &table() {
  static const llvm::StringMap<OperatorInfo> all = makeTable<
#define GET_OP_LIST
#include "dialects/onnx/OnnxOps.cpp.inc"
      >();
  return all;
}

// onnx.Name(%a, %b) ({ region }) {attributes} : (types) -> types
ParseResult parseOperator(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  FunctionType type;
  llvm::SMLoc at = parser.getCurrentLocation();
  if (parser.parseOperandList(operands, OpAsmParser::Delimiter::Paren))
    return failure();
  if (succeeded(parser.parseOptionalLParen())) {
    do {
      if (parser.parseRegion(*result.addRegion()))
        return failure();
    } while (succeeded(parser.parseOptionalComma()));
    if (parser.parseRParen())
      return failure();
  }
  if (parser.parseOptionalAttrDict(result.attributes) || parser.parseColon() ||
      parser.parseType(type))
    return failure();
  result.addTypes(type.getResults());
  return parser.resolveOperands(operands, type.getInputs(), at,
                                result.operands);
}

void printOperator(Operation *op, OpAsmPrinter &printer) {
  printer << '(' << op->getOperands() << ')';
  if (op->getNumRegions() > 0) {
    printer << " (";
    llvm::interleaveComma(op->getRegions(), printer,
                          [&](Region &region) { printer.printRegion(region); });
    printer << ')';
  }
  printer.printOptionalAttrDict(op->getAttrs());
  printer << " : ";
  printer.printFunctionalType(op);
}

template <typename Predicate> bool isTensorOf(Type type, Predicate &&is) {
  auto tensor = dyn_cast<TensorType>(type);
  return tensor && is(tensor.getElementType());
}

} // namespace

void OnnxDialect::initialize() { registerOnnxDialectOperations(this); }

std::optional<Dialect::ParseOpHook>
OnnxDialect::getParseOperationHook(StringRef name) const {
  return ParseOpHook(parseOperator);
}

llvm::unique_function<void(Operation *, OpAsmPrinter &)>
OnnxDialect::getOperationPrinter(Operation *op) const {
  return
      [](Operation *op, OpAsmPrinter &printer) { printOperator(op, printer); };
}

const OperatorInfo *findOperator(llvm::StringRef name) {
  auto found = table().find(name);
  return found == table().end() ? nullptr : &found->second;
}

llvm::ArrayRef<llvm::StringRef> operatorNames() {
  static const llvm::SmallVector<llvm::StringRef> names = [] {
    llvm::SmallVector<llvm::StringRef> all(table().keys());
    llvm::sort(all);
    return all;
  }();
  return names;
}

bool isNumberTensor(Type type) {
  return isTensorOf(type, [](Type element) {
    return isa<FloatType>(element) ||
           (isa<IntegerType>(element) && !element.isInteger(1));
  });
}
bool isFloatTensor(Type type) {
  return isTensorOf(type, [](Type element) { return isa<FloatType>(element); });
}
bool isIntTensor(Type type) {
  return isTensorOf(type, [](Type element) {
    return isa<IntegerType>(element) && !element.isInteger(1);
  });
}
bool isBoolTensor(Type type) {
  return isTensorOf(type, [](Type element) { return element.isInteger(1); });
}

Location nodeLocation(MLIRContext *context, llvm::StringRef name) {
  return NameLoc::get(StringAttr::get(context, name));
}

std::string describe(Operation *op) {
  std::string text = op->getName().stripDialect().str();
  if (auto name = dyn_cast<NameLoc>(op->getLoc()))
    text += " \"" + name.getName().str() + "\"";
  return text;
}

LogicalResult verifyInferredTypes(Operation *op) {
  FailureOr<SmallVector<Type>> inferred = inferResultTypes(op);
  if (failed(inferred))
    return failure();
  if (inferred->size() != op->getNumResults())
    return op->emitOpError("has ")
           << op->getNumResults() << " results, expected " << inferred->size();
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    Type expected = (*inferred)[index];
    if (!isa<NoneType>(result.getType()) &&
        !areCompatible(expected, result.getType()))
      return op->emitOpError("result ")
             << index << " has the type " << result.getType()
             << ", but its operands give " << expected;
  }
  return success();
}

} // namespace ingot::onnx

#include "dialects/onnx/OnnxDialect.cpp.inc"
