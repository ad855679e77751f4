// Registration, types and attributes of the lm dialect.
#include "dialects/lm/LmDialect.h"
#include "dialects/StoredDetailsAttr.h"
#include "dialects/lm/LmOps.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ingot::lm;

#include "dialects/lm/LmDialect.cpp.inc"
#include "dialects/lm/LmEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/lm/LmTypes.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/lm/LmAttrs.cpp.inc"

void LmDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/lm/LmTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/lm/LmAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/lm/LmOps.cpp.inc"
      >();
}

LogicalResult LmDialect::verifyOperationAttribute(Operation *op,
                                                  NamedAttribute attr) {
  if (attr.getName() != kModelAttr)
    return op->emitError() << "unknown lm attribute '"
                           << attr.getName().getValue() << "'";
  if (!isa<ModuleOp>(op))
    return op->emitError() << "'" << kModelAttr << "' belongs to a module";
  return verifyModelAttr([&] { return op->emitError(); }, attr.getValue());
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

LogicalResult
QuantizedType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                      std::int64_t columns, std::int64_t group,
                      std::int64_t bits) {
  if (columns <= 0 || group <= 0)
    return emitError() << "quantized_c1: columns (" << columns
                       << ") and group (" << group << ") must be positive";
  if (bits != 8 && bits != 16)
    return emitError() << "quantized_c2: codes have 8 or 16 bits, found "
                       << bits;
  return success();
}

bool ingot::lm::isActivation(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() == 2 && tensor.isDynamicDim(0) &&
         !tensor.isDynamicDim(1) && tensor.getDimSize(1) > 0 &&
         tensor.getElementType().isF32() && !tensor.getEncoding();
}

bool ingot::lm::isTokenRow(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() == 1 && tensor.isDynamicDim(0) &&
         tensor.getElementType().isSignlessInteger(32) && !tensor.getEncoding();
}

RankedTensorType ingot::lm::activationType(MLIRContext *context,
                                           std::int64_t columns) {
  return RankedTensorType::get({ShapedType::kDynamic, columns},
                               Float32Type::get(context));
}

std::int64_t ingot::lm::columnsOf(Type type) {
  if (auto quantized = dyn_cast<QuantizedType>(type))
    return quantized.getColumns();
  return cast<RankedTensorType>(type).getDimSize(1);
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

// `<` code (`,` `group` `=` N)? (`,` `minimum`)? `>`
Attribute EncodingAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  llvm::StringRef codeName;
  if (parser.parseLess() || parser.parseKeyword(&codeName))
    return {};
  std::optional<WeightCode> code = symbolizeWeightCode(codeName);
  if (!code) {
    parser.emitError(loc) << "unknown code '" << codeName
                          << "', expected f32, f16, bf16, i8 or i4";
    return {};
  }
  std::int64_t group = 0;
  bool minimum = false;
  while (succeeded(parser.parseOptionalComma())) {
    llvm::StringRef key;
    SMLoc keyLoc = parser.getCurrentLocation();
    if (parser.parseKeyword(&key))
      return {};
    if (key == "group" && group == 0 && !minimum) {
      if (parser.parseEqual() || parser.parseInteger(group))
        return {};
    } else if (key == "minimum" && !minimum) {
      minimum = true;
    } else {
      parser.emitError(keyLoc)
          << "unexpected '" << key << "', expected group, then minimum";
      return {};
    }
  }
  if (parser.parseGreater())
    return {};
  return EncodingAttr::getChecked([&] { return parser.emitError(loc); },
                                  parser.getContext(), *code, group, minimum);
}

void EncodingAttr::print(AsmPrinter &printer) const {
  printer << "<" << stringifyWeightCode(getCode());
  if (getGroup() != 0)
    printer << ", group = " << getGroup();
  if (getMinimum())
    printer << ", minimum";
  printer << ">";
}

LogicalResult
EncodingAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                     WeightCode code, std::int64_t group, bool minimum) {
  bool integer = code == WeightCode::I8 || code == WeightCode::I4;
  if (integer && (group <= 0 || group % 32 != 0))
    return emitError() << "encoding_c1: the group of "
                       << stringifyWeightCode(code)
                       << " must be a positive multiple of 32, found " << group;
  if (!integer && group != 0)
    return emitError() << "encoding_c2: " << stringifyWeightCode(code)
                       << " has no group, found " << group;
  if (minimum && code != WeightCode::I4)
    return emitError() << "encoding_c3: only i4 has a minimum, found "
                       << stringifyWeightCode(code);
  return success();
}

std::string EncodingAttr::getShortName() const {
  std::string name = stringifyWeightCode(getCode()).str();
  if (getGroup() != 0)
    name += "-g" + std::to_string(getGroup());
  if (getMinimum())
    name += "-min";
  return name;
}

LogicalResult
PartAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                 FlatSymbolRefAttr source, StringAttr name, std::int64_t offset,
                 std::int64_t size, Stored stored, std::int64_t rows,
                 std::int64_t columns, std::int64_t permute,
                 std::int64_t storedRows, std::int64_t first, std::int64_t run,
                 std::int64_t stride, bool transposed, DictionaryAttr details) {
  ingot::StoredForm form = storedForm(stored);
  std::int64_t block = ingot::storedBlockElements(form);
  std::int64_t allRows = storedRows ? storedRows : rows;
  std::int64_t elements = 0, bytes = 0;
  bool hasCodes = form == ingot::StoredForm::Codes;
  bool valid =
      rows > 0 && columns > 0 && columns % block == 0 && offset >= 0 &&
      storedRows >= 0 && !__builtin_mul_overflow(allRows, columns, &elements) &&
      !__builtin_mul_overflow(
          elements / block,
          static_cast<std::int64_t>(ingot::storedBlockBytes(form)), &bytes);
  if (valid && (details || hasCodes)) {
    ingot::Result<std::uint64_t> codes =
        ingot::verifyStoredDetails(details, name.getValue(), allRows, columns);
    if (!codes)
      return emitError() << "part_c4: " << codes.status().message();
    if ((*codes != 0) != hasCodes)
      return emitError() << "part_c4: " << name
                         << " has details of codes exactly where it is stored "
                            "as codes";
    bytes = hasCodes ? static_cast<std::int64_t>(*codes) : bytes;
  }
  if (!valid || bytes != size)
    return emitError() << "part_c1: " << name << " of " << rows << "x"
                       << columns << " " << stringifyStored(stored)
                       << " elements must be whole blocks of " << block
                       << " in exactly their bytes, found " << size
                       << " bytes at offset " << offset;
  if (permute < 0 ||
      (permute > 0 && (rows % permute != 0 || (rows / permute) % 2 != 0)))
    return emitError() << "part_c2: " << rows << " rows are not " << permute
                       << " heads of an even number of rows";
  if (storedRows == 0
          ? first != 0 || run != 0 || stride != 0
          : storedRows < rows || first < 0 || run <= 0 || stride < run ||
                permute != 0 || rows % run != 0 || first > storedRows - run ||
                rows / run - 1 > (storedRows - run - first) / stride)
    return emitError() << "part_c3: rows in runs of " << run << " every "
                       << stride << " from " << first << " are not within "
                       << storedRows << " stored rows";
  if (transposed && (block != 1 || permute != 0 || hasCodes))
    return emitError() << "part_c3: a transposed tensor has no blocks and no "
                          "permutation";
  return success();
}

//===----------------------------------------------------------------------===//
// Stored forms and encodings
//===----------------------------------------------------------------------===//

static_assert(getMaxEnumValForStored() + 1 == ingot::kNumStoredForms);
static_assert(int(Stored::Q6_K) == int(ingot::StoredForm::Q6_K) &&
              int(Stored::Codes) == int(ingot::StoredForm::Codes));
static_assert(int(WeightCode::I4) == int(ingot::WeightCode::I4));

ingot::StoredForm ingot::lm::storedForm(Stored stored) {
  return static_cast<StoredForm>(stored);
}

Stored ingot::lm::storedOf(StoredForm form) {
  return static_cast<Stored>(form);
}

ingot::WeightEncoding ingot::lm::weightEncoding(EncodingAttr encoding) {
  return {static_cast<ingot::WeightCode>(encoding.getCode()),
          static_cast<std::uint32_t>(encoding.getGroup()),
          encoding.getMinimum()};
}

EncodingAttr ingot::lm::encodingAttr(MLIRContext *context,
                                     const WeightEncoding &encoding) {
  return EncodingAttr::get(context, static_cast<WeightCode>(encoding.code),
                           encoding.group, encoding.minimum);
}

// The verifier of the part has read its details.
static ingot::StoredDetails detailsOf(PartAttr part) {
  ingot::Result<ingot::StoredDetails> details =
      ingot::readStoredDetails(part.getDetails());
  return details ? *details : ingot::StoredDetails();
}

EncodingAttr ingot::lm::nativeEncoding(PartAttr part) {
  return encodingAttr(
      part.getContext(),
      ingot::nativeEncoding(storedForm(part.getStored()), detailsOf(part)));
}

StringAttr ingot::lm::conversionMethod(llvm::ArrayRef<PartAttr> parts,
                                       EncodingAttr encoding) {
  WeightConversion worst = WeightConversion::Exact;
  for (PartAttr part : parts)
    worst = std::max(worst, conversionTo(weightEncoding(encoding),
                                         storedForm(part.getStored()),
                                         detailsOf(part)));
  if (worst == WeightConversion::Exact)
    return {};
  return StringAttr::get(encoding.getContext(),
                         worst == WeightConversion::Round ? "rtn" : "stored");
}

//===----------------------------------------------------------------------===//
// Locations
//===----------------------------------------------------------------------===//

llvm::StringRef ingot::lm::locationName(Location location) {
  if (auto name = dyn_cast<NameLoc>(location))
    return name.getName().getValue();
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location inner : fused.getLocations())
      if (llvm::StringRef name = locationName(inner); !name.empty())
        return name;
  return {};
}

Location ingot::lm::nameLocation(MLIRContext *context, llvm::StringRef name) {
  return NameLoc::get(StringAttr::get(context, name));
}
