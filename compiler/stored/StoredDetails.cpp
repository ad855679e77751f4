#include "compiler/stored/StoredDetails.h"

#include <array>

namespace ingot {
namespace {

constexpr std::array<const char *, 6> planeNames = {"f32",     "f16", "bf16",
                                                    "f8_e8m0", "i8",  "i32"};
constexpr std::array<const char *, 6> packingNames = {
    "gptq", "awq", "compressed", "int8", "f8_e4m3", "f8_e5m2"};

constexpr std::uint64_t largestSide = std::uint64_t{1} << 31;

std::uint64_t divideUp(std::uint64_t value, std::uint64_t by) {
  return (value + by - 1) / by;
}

Status checkPlane(const StoredPlane &plane, const std::string &name,
                  const char *what, std::uint64_t elements) {
  // Sides are below 2^31 and elements below 2^62, so nothing overflows.
  std::uint64_t need = elements * planeElementBytes(plane.type);
  if (plane.sizeBytes != need)
    return Status::invalid(
        "tensor \"" + name + "\": " + what + " \"" + plane.name + "\" has " +
        std::to_string(plane.sizeBytes) + " bytes, expected " +
        std::to_string(need) + " (" + std::to_string(elements) + " of " +
        planeTypeName(plane.type) + ")");
  return Status::ok();
}

bool isFloatPlane(PlaneType type) {
  return type != PlaneType::I8 && type != PlaneType::I32;
}

Status checkCodes(const StoredCodes &codes, const std::string &name,
                  std::uint64_t rows, std::uint64_t columns) {
  auto wrong = [&](const std::string &message) {
    return Status::invalid("tensor \"" + name + "\": " + message);
  };
  if (codes.group < 0 || codes.rowGroup < 0)
    return wrong("groups must not be negative");
  const std::uint64_t groups = columnGroups(codes, columns);
  const std::uint64_t bands = rowGroups(codes, rows);
  if (!isFloatPlane(codes.scales.type))
    return wrong(std::string("scales of type ") +
                 planeTypeName(codes.scales.type) + " are not floats");
  INGOT_RETURN_IF_ERROR(
      checkPlane(codes.scales, name, "scales", bands * groups));
  if (codes.zeros) {
    const StoredPlane &zeros = *codes.zeros;
    std::uint64_t elements = bands * groups;
    PlaneType type = PlaneType::I32;
    switch (codes.packing) {
    case CodePacking::Gptq:
    case CodePacking::Awq:
      if (rows * static_cast<std::uint64_t>(codes.bits) % 32 != 0)
        return wrong("zero points of " + std::to_string(rows) +
                     " rows are not whole words");
      elements = groups * (rows * static_cast<std::uint64_t>(codes.bits) / 32);
      break;
    case CodePacking::Compressed:
      elements =
          divideUp(bands, 32 / static_cast<std::uint64_t>(codes.bits)) * groups;
      break;
    case CodePacking::Int8:
      type = PlaneType::I8;
      break;
    case CodePacking::F8E4M3:
    case CodePacking::F8E5M2:
      return wrong("float codes have no zero points");
    }
    if (zeros.type != type)
      return wrong(std::string("zero points of type ") +
                   planeTypeName(zeros.type) + ", expected " +
                   planeTypeName(type));
    INGOT_RETURN_IF_ERROR(checkPlane(zeros, name, "zero points", elements));
  }
  if (codes.index) {
    if (codes.index->type != PlaneType::I32)
      return wrong("the group index must be of int32");
    INGOT_RETURN_IF_ERROR(
        checkPlane(*codes.index, name, "group index", columns));
  }
  return Status::ok();
}

} // namespace

const char *planeTypeName(PlaneType type) {
  return planeNames[static_cast<std::size_t>(type)];
}

std::optional<PlaneType> planeTypeByName(const std::string &name) {
  for (std::size_t i = 0; i < planeNames.size(); ++i)
    if (name == planeNames[i])
      return static_cast<PlaneType>(i);
  return std::nullopt;
}

std::uint64_t planeElementBytes(PlaneType type) {
  switch (type) {
  case PlaneType::F32:
  case PlaneType::I32:
    return 4;
  case PlaneType::F16:
  case PlaneType::BF16:
    return 2;
  case PlaneType::F8E8M0:
  case PlaneType::I8:
    return 1;
  }
  return 1;
}

const char *codePackingName(CodePacking packing) {
  return packingNames[static_cast<std::size_t>(packing)];
}

std::optional<CodePacking> codePackingByName(const std::string &name) {
  for (std::size_t i = 0; i < packingNames.size(); ++i)
    if (name == packingNames[i])
      return static_cast<CodePacking>(i);
  return std::nullopt;
}

bool isFloatPacking(CodePacking packing) {
  return packing == CodePacking::F8E4M3 || packing == CodePacking::F8E5M2;
}

std::uint64_t columnGroups(const StoredCodes &codes, std::uint64_t columns) {
  return codes.group == 0
             ? 1
             : divideUp(columns, static_cast<std::uint64_t>(codes.group));
}

std::uint64_t rowGroups(const StoredCodes &codes, std::uint64_t rows) {
  return codes.rowGroup == 0
             ? 1
             : divideUp(rows, static_cast<std::uint64_t>(codes.rowGroup));
}

Result<std::uint64_t> codesBytes(const StoredCodes &codes, std::uint64_t rows,
                                 std::uint64_t columns) {
  if (rows == 0 || columns == 0 || rows >= largestSide ||
      columns >= largestSide)
    return Status::invalid("expected 1 to 2^31 rows and columns, found " +
                           std::to_string(rows) + " x " +
                           std::to_string(columns));
  const auto bits = static_cast<std::uint64_t>(codes.bits);
  auto packedBits = [&](bool allowed) {
    return allowed ? Status::ok()
                   : Status::unsupported(
                         std::string(codePackingName(codes.packing)) +
                         " codes of " + std::to_string(codes.bits) + " bits");
  };
  switch (codes.packing) {
  case CodePacking::Gptq:
    INGOT_RETURN_IF_ERROR(
        packedBits(bits == 2 || bits == 3 || bits == 4 || bits == 8));
    if (columns * bits % 32 != 0)
      return Status::invalid("codes of " + std::to_string(columns) +
                             " columns are not whole words");
    return columns * bits / 32 * rows * 4;
  case CodePacking::Awq:
    INGOT_RETURN_IF_ERROR(packedBits(bits == 4));
    if (rows % 8 != 0)
      return Status::invalid("codes of " + std::to_string(rows) +
                             " rows are not whole words");
    return columns * (rows / 8) * 4;
  case CodePacking::Compressed:
    INGOT_RETURN_IF_ERROR(packedBits(bits == 2 || bits == 4 || bits == 8));
    return rows * divideUp(columns, 32 / bits) * 4;
  case CodePacking::Int8:
    INGOT_RETURN_IF_ERROR(packedBits(bits == 8 || bits == 4));
    return rows * columns;
  case CodePacking::F8E4M3:
  case CodePacking::F8E5M2:
    return rows * columns;
  }
  return Status::internal("unknown packing of codes");
}

Status checkDetails(const StoredDetails &details, const std::string &name,
                    std::uint64_t rows, std::uint64_t columns) {
  if (details.codes)
    INGOT_RETURN_IF_ERROR(checkCodes(*details.codes, name, rows, columns));
  for (const StoredAdapter &adapter : details.adapters) {
    if (adapter.rank <= 0 || adapter.rank >= std::int64_t(1) << 24)
      return Status::invalid("tensor \"" + name + "\": adapter \"" +
                             adapter.a.name + "\" of rank " +
                             std::to_string(adapter.rank));
    const auto rank = static_cast<std::uint64_t>(adapter.rank);
    for (const StoredPlane *plane : {&adapter.a, &adapter.b})
      if (!isFloatPlane(plane->type) || plane->type == PlaneType::F8E8M0)
        return Status::invalid("tensor \"" + name + "\": adapter \"" +
                               plane->name + "\" of type " +
                               planeTypeName(plane->type));
    INGOT_RETURN_IF_ERROR(
        checkPlane(adapter.a, name, "adapter", rank * columns));
    INGOT_RETURN_IF_ERROR(checkPlane(adapter.b, name, "adapter", rows * rank));
  }
  return Status::ok();
}

} // namespace ingot
