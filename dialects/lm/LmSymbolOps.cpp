// Verifiers of the symbols of a model and of the program over them.
#include "dialects/StoredDetailsAttr.h"
#include "dialects/lm/LmOps.h"

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace ingot::lm;

LogicalResult SourceOp::verify() {
  if (static_cast<std::int64_t>(getSize()) < 0)
    return emitOpError("source_c1: size ")
           << static_cast<std::int64_t>(getSize()) << " is negative";
  llvm::StringRef hash = getHash();
  bool hexadecimal = llvm::all_of(hash, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  if (hash.size() != 16 || !hexadecimal)
    return emitOpError("source_c2: hash must be 16 lower-case hexadecimal "
                       "digits, found \"")
           << hash << "\"";
  return success();
}

llvm::SmallVector<PartAttr> WeightOp::getPartList() {
  llvm::SmallVector<PartAttr> list;
  if (ArrayAttr parts = getPartsAttr())
    for (Attribute part : parts)
      list.push_back(cast<PartAttr>(part));
  return list;
}

LogicalResult WeightOp::verify() {
  llvm::ArrayRef<std::int64_t> shape = getShape();
  std::int64_t elements = 1;
  bool valid = shape.size() == 1 || shape.size() == 2;
  for (std::int64_t dim : shape)
    valid =
        valid && dim > 0 && !__builtin_mul_overflow(elements, dim, &elements);
  if (!valid)
    return emitOpError("weight_c1: shape must have one or two positive "
                       "dimensions, found [")
           << shape << "]";

  bool hasParts = getPartsAttr() && !getPartsAttr().empty();
  if (hasParts == static_cast<bool>(getValueAttr()))
    return emitOpError("weight_c2: either parts or a value must be given");
  if (ElementsAttr value = getValueAttr()) {
    if (!isa<DenseElementsAttr>(value) ||
        value.getShapedType().getShape() != shape ||
        !value.getElementType().isF32())
      return emitOpError("weight_c2: the value must be dense f32 of shape [")
             << shape << "], found " << value.getShapedType();
  }

  std::int64_t rows = 0;
  for (PartAttr part : getPartList()) {
    if (__builtin_add_overflow(rows, part.getRows(), &rows))
      return emitOpError("weight_c3: the parts' rows overflow");
    if (part.getColumns() != getColumns())
      return emitOpError("weight_c3: part ")
             << part.getName() << " has " << part.getColumns()
             << " columns, expected " << getColumns();
  }
  if (hasParts && rows != getRows())
    return emitOpError("weight_c3: the parts have ")
           << rows << " rows, expected " << getRows();

  if (!isMatrix() && (getEncoding().isInteger() || getLayout() == Layout::R16))
    return emitOpError("weight_c5: a vector is of a float encoding and layout "
                       "row, found ")
           << getEncoding().getShortName() << " and "
           << stringifyLayout(getLayout());
  if (getEncoding().isInteger() && getLayout() != Layout::R16)
    return emitOpError("weight_c5: an integer encoding needs layout r16");

  if (getMethodAttr() && getMethod() != "rtn" && getMethod() != "stored")
    return emitOpError("weight_c6: unknown method ")
           << getMethodAttr() << ", expected \"rtn\" or \"stored\"";
  if (getMethodAttr() && getMethod() == "stored") {
    for (PartAttr part : getPartList())
      if (StringAttr needed = conversionMethod(part, getEncoding());
          needed && needed.getValue() != "stored")
        return emitOpError("weight_c6: part ")
               << part.getName() << " is stored as "
               << stringifyStored(part.getStored()) << "; "
               << getEncoding().getShortName() << " cannot keep its codes";
  }
  if (getEncoding().isInteger() && !getMethodAttr()) {
    for (PartAttr part : getPartList())
      if (conversionMethod(part, getEncoding()))
        return emitOpError("weight_c6: part ")
               << part.getName() << " is stored as "
               << stringifyStored(part.getStored()) << "; its conversion to "
               << getEncoding().getShortName() << " names no method";
    if (getValueAttr())
      return emitOpError("weight_c6: the conversion of a value to ")
             << getEncoding().getShortName() << " names no method";
  }
  return success();
}

LogicalResult WeightOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (PartAttr part : getPartList()) {
    auto source =
        symbols.lookupNearestSymbolFrom<SourceOp>(*this, part.getSource());
    if (!source)
      return emitOpError("weight_c4: ")
             << part.getSource() << " is not an lm.source";
    std::int64_t fileBytes = source.getSize();
    if (part.getOffset() > fileBytes ||
        part.getSize() > fileBytes - part.getOffset())
      return emitOpError("weight_c4: part ")
             << part.getName() << " at [" << part.getOffset() << ", +"
             << part.getSize() << ") is past the end of " << part.getSource()
             << " (" << fileBytes << " bytes)";
    // The verifier of the part has read its details.
    ingot::Result<ingot::StoredDetails> details =
        ingot::readStoredDetails(part.getDetails());
    LogicalResult found = success();
    details->forEachPlane([&](const ingot::StoredPlane &plane) {
      auto file = symbols.lookupNearestSymbolFrom<SourceOp>(
          *this, StringAttr::get(getContext(), plane.source));
      if (failed(found) ||
          (file && plane.byteOffset <= file.getSize() &&
           plane.sizeBytes <= file.getSize() - plane.byteOffset))
        return;
      found = emitOpError("weight_c4: \"")
              << plane.name << "\" at [" << plane.byteOffset << ", +"
              << plane.sizeBytes << ") does not lie within an lm.source @"
              << plane.source;
    });
    if (failed(found))
      return failure();
  }
  return success();
}

LogicalResult StateOp::verify() {
  auto positive = [](std::uint64_t value) {
    return static_cast<std::int64_t>(value) > 0;
  };
  if (!positive(getLayers()) || !positive(getKvHeads()) ||
      !positive(getHeadDim()) || static_cast<std::int64_t>(getWindow()) < 0)
    return emitOpError("state_c1: layers, kv_heads and head_dim must be "
                       "positive and window not negative");
  if (!getDtype().isF16() && !getDtype().isF32() &&
      !getDtype().isSignlessInteger(8))
    return emitOpError("state_c2: dtype must be f16, f32 or i8, found ")
           << getDtype();
  return success();
}

//===----------------------------------------------------------------------===//
// Program
//===----------------------------------------------------------------------===//

ParseResult ProgramOp::parse(OpAsmParser &parser, OperationState &result) {
  auto buildType = [](Builder &builder, llvm::ArrayRef<Type> inputs,
                      llvm::ArrayRef<Type> results,
                      function_interface_impl::VariadicFlag, std::string &) {
    return builder.getFunctionType(inputs, results);
  };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false,
      getFunctionTypeAttrName(result.name), buildType,
      getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void ProgramOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(
      printer, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
      getArgAttrsAttrName(), getResAttrsAttrName());
}

LogicalResult ProgramOp::verify() {
  FunctionType type = getFunctionType();
  if (type.getNumInputs() != 2 || !isTokenRow(type.getInput(0)) ||
      !isTokenRow(type.getInput(1)))
    return emitOpError("program_c1: it takes token ids and positions, "
                       "tensor<?xi32> each, found ")
           << type;
  if (type.getNumResults() != 1 || !isActivation(type.getResult(0)))
    return emitOpError("program_c2: it returns one tensor<?xVxf32>, found ")
           << type;
  return success();
}

// Follows which values hold the selected rows only, into the regions of exits.
static LogicalResult verifySelection(Block &block,
                                     llvm::DenseSet<Value> &selected) {
  for (Operation &op : block) {
    auto isSelected = [&](Value value) { return selected.contains(value); };
    bool any = llvm::any_of(op.getOperands(), isSelected);
    if (auto select = dyn_cast<SelectRowsOp>(op)) {
      if (any)
        return op.emitOpError("select_rows_c1: the input's rows are selected "
                              "already");
      selected.insert(select.getResult());
      continue;
    }
    if (auto pool = dyn_cast<PoolOp>(op)) {
      if (any)
        return op.emitOpError("pool_c1: the input's rows are selected already");
      selected.insert(pool.getResult());
      continue;
    }
    if (auto exit = dyn_cast<ExitOp>(op); exit && !any) {
      for (Region &region : exit->getRegions())
        if (!region.empty() &&
            failed(verifySelection(region.front(), selected)))
          return failure();
      Operation *yield = exit.getHead().front().getTerminator();
      if (!llvm::all_of(yield->getOperands(), isSelected))
        return exit.emitOpError("exit_c3: the head yields a row for each "
                                "token, expected selected ones");
      continue;
    }
    if (!any)
      continue;
    if (!llvm::all_of(op.getOperands(), isSelected))
      return op.emitOpError("program_c3: reads selected rows together with "
                            "rows of all tokens");
    if (!isPure(&op))
      return op.emitOpError("program_c3: cannot work on selected rows");
    selected.insert(op.result_begin(), op.result_end());
  }
  return success();
}

LogicalResult ProgramOp::verifyRegions() {
  llvm::DenseSet<Value> selected;
  return verifySelection(getEntryBlock(), selected);
}

LogicalResult ReturnOp::verify() {
  auto program = cast<ProgramOp>((*this)->getParentOp());
  // A program whose own type is wrong says so itself.
  if (program.getResultTypes().size() == 1 &&
      program.getResultTypes()[0] != getLogits().getType())
    return emitOpError("return_c1: type ")
           << getLogits().getType() << " is not the program's "
           << program.getResultTypes()[0];
  return success();
}

//===----------------------------------------------------------------------===//
// Exits
//===----------------------------------------------------------------------===//

LogicalResult ExitOp::verify() {
  auto cut = getInput().getDefiningOp<CutOp>();
  if (!cut || cut.getName() != getName())
    return emitOpError("exit_c1: expected the result of an lm.cut \"")
           << getName() << "\"";
  if (static_cast<std::int64_t>(getLayers()) <= 0)
    return emitOpError("exit_c2: expected a positive number of layers, found ")
           << static_cast<std::int64_t>(getLayers());
  if (std::optional<llvm::ArrayRef<float>> confidence = getConfidence()) {
    float before = 0;
    bool valid = confidence->size() >= 2 && confidence->size() <= 256;
    for (float entry : *confidence) {
      valid = valid && entry >= before && entry <= 1;
      before = entry;
    }
    if (!valid)
      return emitOpError("exit_c5: expected 2 to 256 entries from 0 to 1, none "
                         "below the one before it");
  }
  return success();
}

LogicalResult ExitOp::verifyRegions() {
  auto yieldOf = [](Region &region) {
    return dyn_cast<YieldOp>(region.front().back());
  };
  auto program = cast<ProgramOp>((*this)->getParentOp());
  YieldOp head = yieldOf(getHead());
  if (!head || head.getResults().getTypes() != program.getResultTypes())
    return emitOpError("exit_c3: expected a head that yields ")
           << program.getResultTypes();
  if (!getFill().empty()) {
    YieldOp fill = yieldOf(getFill());
    if (!fill || fill.getNumOperands() != 0)
      return emitOpError("exit_c4: expected a fill that yields nothing");
  }
  for (Region &region : (*this)->getRegions())
    for (Operation &op : region.getOps())
      for (Value operand : op.getOperands())
        if (operand.getParentRegion() != &region && operand != getInput() &&
            !operand.getDefiningOp<RopeTableOp>())
          return op.emitOpError("exit_c6: reads a value from outside the exit "
                                "that is neither its cut nor a rotation table");
  return success();
}
