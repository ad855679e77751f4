// Attributes and types of the plan dialect: their text and their rules.
#include "dialects/plan/Plan.h"

#include "dialects/StoredDetailsAttr.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ingot::plan {

static_assert(getMaxEnumValForStored() + 1 == kNumStoredForms);
static_assert(int(Stored::Q6_K) == int(StoredForm::Q6_K) &&
              int(Stored::Codes) == int(StoredForm::Codes));

StoredForm storedForm(Stored stored) { return static_cast<StoredForm>(stored); }

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

// Rows are kept small enough that no product of sizes can overflow.
static constexpr int64_t maxColumns = int64_t(1) << 31;

LogicalResult
RowsType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                 int64_t columns) {
  if (columns <= 0 || columns >= maxColumns)
    return emitError()
           << "rows_c1: expected between 1 and 2^31 - 1 columns, found "
           << columns;
  return success();
}

LogicalResult
QuantizedRowsType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                          int64_t columns, int64_t group, int64_t bits) {
  if (columns <= 0 || columns >= maxColumns)
    return emitError() << "quantized_rows_c1: expected between 1 and 2^31 - 1 "
                          "columns, found "
                       << columns;
  if (group <= 0 || group % 32 != 0 || group >= maxColumns)
    return emitError() << "quantized_rows_c1: expected a group that is a "
                          "positive multiple of "
                          "32, found "
                       << group;
  if (bits != 8 && bits != 16)
    return emitError() << "quantized_rows_c2: expected codes of 8 or 16 bits, "
                          "found "
                       << bits;
  return success();
}

LogicalResult
HalfRowsType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                     int64_t columns, int64_t parts) {
  if (columns <= 0 || columns >= maxColumns)
    return emitError()
           << "half_rows_c1: expected between 1 and 2^31 - 1 columns, found "
           << columns;
  if (parts != 1 && parts != 2)
    return emitError() << "half_rows_c2: expected 1 or 2 parts, found "
                       << parts;
  return success();
}

//===----------------------------------------------------------------------===//
// EncodingAttr
//===----------------------------------------------------------------------===//

Attribute EncodingAttr::parse(AsmParser &parser, Type) {
  int64_t group = 0;
  bool minimum = false;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess())
    return {};
  FailureOr<Code> code = FieldParser<Code>::parse(parser);
  if (failed(code))
    return {};
  if (succeeded(parser.parseOptionalComma())) {
    if (parser.parseKeyword("group") || parser.parseEqual() ||
        parser.parseInteger(group))
      return {};
    if (succeeded(parser.parseOptionalComma())) {
      if (parser.parseKeyword("minimum"))
        return {};
      minimum = true;
    }
  }
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    *code, group, minimum);
}

void EncodingAttr::print(AsmPrinter &printer) const {
  printer << '<' << stringifyCode(getCode());
  if (getGroup())
    printer << ", group = " << getGroup();
  if (getMinimum())
    printer << ", minimum";
  printer << '>';
}

LogicalResult
EncodingAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                     Code code, int64_t group, bool minimum) {
  bool isInteger = code == Code::I8 || code == Code::I4;
  if (!isInteger && group != 0)
    return emitError() << "encoding_c1: " << stringifyCode(code)
                       << " has no group, found " << group;
  if (isInteger && (group <= 0 || group % 32 != 0 || group >= maxColumns))
    return emitError() << "encoding_c1: expected a group that is a positive "
                          "multiple of 32, found "
                       << group;
  if (minimum && code != Code::I4)
    return emitError() << "encoding_c2: only i4 has minima, found "
                       << stringifyCode(code);
  return success();
}

std::string EncodingAttr::getShortName() const {
  std::string name = stringifyCode(getCode()).str();
  if (getGroup())
    name += "-g" + std::to_string(getGroup());
  if (getMinimum())
    name += "-min";
  return name;
}

//===----------------------------------------------------------------------===//
// PartAttr, PlacementAttr, VariantAttr, GeometryAttr
//===----------------------------------------------------------------------===//

LogicalResult
PartAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                 FlatSymbolRefAttr source, StringAttr name, uint64_t offset,
                 uint64_t size, Stored stored, int64_t rows, int64_t columns,
                 int64_t permute, int64_t storedRows, int64_t first,
                 int64_t run, int64_t stride, bool transposed,
                 DictionaryAttr details) {
  if (rows <= 0 || columns <= 0 || rows >= maxColumns ||
      columns >= maxColumns || storedRows < 0 || storedRows >= maxColumns)
    return emitError() << "part_c1: expected between 1 and 2^31 - 1 rows and "
                          "columns, found "
                       << rows << " x " << columns;
  const StoredForm form = storedForm(stored);
  uint64_t elements = storedBlockElements(form);
  if (columns % int64_t(elements) != 0)
    return emitError() << "part_c2: expected columns in whole blocks of "
                       << elements << ", found " << columns;
  uint64_t need = 0;
  // Sides are below 2^31 and blocks a few bytes an element: no overflow.
  const uint64_t allRows = uint64_t(storedRows ? storedRows : rows);
  need = allRows * (uint64_t(columns) / elements) * storedBlockBytes(form);
  if (details || form == StoredForm::Codes) {
    Result<uint64_t> codes =
        verifyStoredDetails(details, name.getValue(), allRows, columns);
    if (!codes)
      return emitError() << "part_c5: " << codes.status().message();
    if ((*codes != 0) != (form == StoredForm::Codes))
      return emitError() << "part_c5: expected details of codes exactly for "
                            "the form codes, found "
                         << stringifyStored(stored);
    need = form == StoredForm::Codes ? *codes : need;
  }
  if (size != need)
    return emitError() << "part_c1: expected " << need << " bytes for " << rows
                       << " x " << columns << " " << stringifyStored(stored)
                       << ", found " << size;
  if (offset + size < offset)
    return emitError() << "part_c1: offset + size overflows";
  if (permute < 0 ||
      (permute > 0 && (rows % permute != 0 || rows / permute % 2 != 0)))
    return emitError()
           << "part_c3: expected heads of an even number of rows, found "
           << rows << " rows in " << permute << " heads";
  if (storedRows == 0
          ? first != 0 || run != 0 || stride != 0
          : storedRows < rows || first < 0 || run <= 0 || stride < run ||
                permute != 0 || rows % run != 0 || first > storedRows - run ||
                rows / run - 1 > (storedRows - run - first) / stride)
    return emitError() << "part_c4: rows in runs of " << run << " every "
                       << stride << " from " << first << " are not within "
                       << storedRows << " stored rows";
  if (transposed &&
      (elements != 1 || permute != 0 || form == StoredForm::Codes))
    return emitError() << "part_c4: a transposed tensor has no blocks and no "
                          "permutation";
  return success();
}

LogicalResult
PlacementAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                      uint64_t offset, uint64_t size, uint64_t scales,
                      uint64_t mins) {
  if (offset % 64 || scales % 64 || mins % 64)
    return emitError()
           << "placement_c1: expected planes that start at multiples of "
              "64, found "
           << offset << ", " << scales << ", " << mins;
  if (offset + size < offset || scales >= (size ? size : 1) ||
      mins >= (size ? size : 1) || (mins && mins <= scales))
    return emitError() << "placement_c1: expected planes in order within "
                       << size << " bytes, found " << scales << ", " << mins;
  return success();
}

LogicalResult
GeometryAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                     int64_t threads, int64_t shared, int64_t rows,
                     int64_t tokens) {
  if (threads <= 0 || threads > 1024 || threads % 32 != 0 || shared < 0 ||
      shared > 227 * 1024 || rows <= 0 || rows > 1024 || tokens <= 0 ||
      tokens > 1024)
    return emitError() << "geometry_c1: expected whole warps up to 1024 "
                          "threads, at most 227 KiB and tiles of 1 to 1024, "
                          "found "
                       << threads << " threads, " << shared << " bytes, "
                       << rows << " x " << tokens;
  return success();
}

LogicalResult
VariantAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                    uint32_t first, uint32_t last, FlatSymbolRefAttr kernel) {
  if (first < 1 || (last != 0 && last < first))
    return emitError()
           << "variant_c1: expected 1 <= first <= last (or last 0), found "
           << first << ", " << last;
  return success();
}

} // namespace ingot::plan

#include "dialects/plan/Enums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/plan/Types.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/plan/Attrs.cpp.inc"

namespace ingot::plan {

void PlanDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/plan/Types.cpp.inc"
      >();
}

void PlanDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/plan/Attrs.cpp.inc"
      >();
}

} // namespace ingot::plan
