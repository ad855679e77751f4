#include "compiler/stored/StoredRows.h"

#include "compiler/stored/Dequantize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace ingot {
namespace {

std::uint32_t loadWord(std::span<const std::uint8_t> bytes,
                       std::uint64_t index) {
  std::uint32_t word;
  std::memcpy(&word, bytes.data() + index * 4, 4);
  return word;
}
std::uint16_t load16(const std::uint8_t *bytes) {
  return static_cast<std::uint16_t>(bytes[0] | bytes[1] << 8);
}

// Code `index` of `bits` bits of a stream of words, `stride` words apart, that
// begins at word `first`. Codes of three bits may lie across two words.
std::int32_t streamCode(std::span<const std::uint8_t> bytes,
                        std::uint64_t first, std::uint64_t stride,
                        std::uint64_t index, unsigned bits) {
  const std::uint64_t bit = index * bits;
  const std::uint64_t word = first + bit / 32 * stride;
  const unsigned shift = static_cast<unsigned>(bit % 32);
  std::uint64_t both = loadWord(bytes, word);
  if (shift + bits > 32)
    both |= static_cast<std::uint64_t>(loadWord(bytes, word + stride)) << 32;
  return static_cast<std::int32_t>(both >> shift & ((1u << bits) - 1));
}

// The nibble of a word of AWQ that holds each of eight columns.
constexpr unsigned awqNibble[8] = {0, 4, 1, 5, 2, 6, 3, 7};

std::int32_t awqCode(std::span<const std::uint8_t> bytes, std::uint64_t row,
                     std::uint64_t columns, std::uint64_t column) {
  const std::uint32_t word = loadWord(bytes, row * (columns / 8) + column / 8);
  return static_cast<std::int32_t>(word >> (4 * awqNibble[column % 8]) & 15);
}

std::uint32_t largestGroup(std::int64_t group) {
  for (std::uint32_t size : {128u, 64u, 32u})
    if (group % size == 0)
      return size;
  return 0;
}

// Bytes of a block of 32 of five-bit codes; see Dequantize.
std::uint8_t fiveBitCode(const std::uint8_t *codes, int i) {
  int nibble = i < 16 ? codes[4 + i] & 15 : codes[4 + i - 16] >> 4;
  return static_cast<std::uint8_t>(nibble | (codes[i / 8] >> (i % 8) & 1) << 4);
}

// One group of 32 of a block form that keeps its codes.
CodeScale readBlockGroup(StoredForm form, const std::uint8_t *row,
                         std::uint64_t group, std::uint8_t *codes) {
  if (form == StoredForm::Q4_K) {
    const std::uint8_t *block = row + group / 8 * 144;
    const int g = static_cast<int>(group % 8);
    CodeScale result;
    kGroupScale(block, g, result.scale, result.minimum);
    result.minimum = -result.minimum;
    for (int i = 0; i < 32; ++i)
      codes[i] = block[16 + g / 2 * 32 + i] >> (g % 2 * 4) & 15;
    return result;
  }
  const std::uint8_t *block = row + group * storedBlockBytes(form);
  CodeScale result{halfToFloat(load16(block)), 0.0f};
  if (form == StoredForm::Q8_0) {
    for (int i = 0; i < 32; ++i)
      codes[i] = block[2 + i] ^ 0x80;
    return result;
  }
  if (form == StoredForm::Q5_0) {
    for (int i = 0; i < 32; ++i)
      codes[i] = static_cast<std::uint8_t>(fiveBitCode(block + 2, i) + 112);
    return result;
  }
  const std::uint8_t *nibbles = block + 2;
  if (form == StoredForm::Q4_1) {
    result.minimum = halfToFloat(load16(nibbles));
    nibbles += 2;
  }
  for (int i = 0; i < 16; ++i) {
    codes[i] = nibbles[i] & 15;
    codes[16 + i] = nibbles[i] >> 4;
  }
  return result;
}

} // namespace

void widenPlane(PlaneType type, std::span<const std::uint8_t> bytes,
                std::span<float> values) {
  switch (type) {
  case PlaneType::F32:
    std::memcpy(values.data(), bytes.data(), values.size() * 4);
    return;
  case PlaneType::F16:
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = halfToFloat(load16(bytes.data() + 2 * i));
    return;
  case PlaneType::BF16:
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = bfloatToFloat(load16(bytes.data() + 2 * i));
    return;
  case PlaneType::F8E8M0:
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = e8m0ToFloat(bytes[i]);
    return;
  case PlaneType::I8:
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(static_cast<std::int8_t>(bytes[i]));
    return;
  case PlaneType::I32:
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] =
          static_cast<float>(static_cast<std::int32_t>(loadWord(bytes, i)));
    return;
  }
}

KeptCodes keptCodes(const StoredCodes &codes) {
  if (isFloatPacking(codes.packing) || codes.index)
    return {};
  KeptCodes kept;
  // One scale for all columns may be told in any group; 64 is that of int8.
  kept.group = codes.group == 0 ? 64 : largestGroup(codes.group);
  kept.int8 = codes.bits > 4 || codes.packing == CodePacking::Int8;
  kept.minimum = codes.zeros.has_value();
  if (kept.group == 0 || (kept.int8 && kept.minimum))
    return {};
  return kept;
}

Result<StoredRows> StoredRows::create(StoredTensor tensor) {
  const std::string what = "tensor \"" + tensor.name + "\"";
  constexpr std::uint64_t limit = std::uint64_t{1} << 31;
  if (tensor.rows == 0 || tensor.rows >= limit || tensor.columns == 0 ||
      tensor.columns >= limit || tensor.storedRows >= limit)
    return Status::invalid(what +
                           ": expected 1 to 2^31 rows and columns, "
                           "found " +
                           std::to_string(tensor.rows) + " x " +
                           std::to_string(tensor.columns));
  std::uint64_t need = 0;
  if (tensor.form == StoredForm::Codes) {
    if (!tensor.details.codes)
      return Status::invalid(what + ": codes without their scales");
    Result<std::uint64_t> bytes =
        codesBytes(*tensor.details.codes, tensor.allRows(), tensor.columns);
    if (!bytes)
      return bytes.status().withContext(what);
    need = *bytes;
  } else {
    if (tensor.details.codes)
      return Status::invalid(what + ": scales beside " +
                             storedFormName(tensor.form));
    const std::uint64_t block = storedBlockElements(tensor.form);
    if (tensor.columns % block != 0)
      return Status::invalid(what + ": expected columns in blocks of " +
                             std::to_string(block) + ", found " +
                             std::to_string(tensor.columns));
    // At most 2^31 * 2^31 * 8.
    if (__builtin_mul_overflow(
            tensor.allRows(),
            tensor.columns / block * storedBlockBytes(tensor.form), &need))
      return Status::invalid(what + ": its size does not fit 64 bits");
  }
  if (tensor.bytes.size() != need)
    return Status::invalid(
        what + ": expected " + std::to_string(tensor.allRows()) + " rows of " +
        std::to_string(tensor.columns) + " columns in " + std::to_string(need) +
        " bytes, found " + std::to_string(tensor.bytes.size()) + " bytes");
  if (tensor.permuteHeads != 0 &&
      tensor.rows % (2 * std::uint64_t{tensor.permuteHeads}) != 0)
    return Status::invalid(what + ": " + std::to_string(tensor.rows) +
                           " rows are not pairs of " +
                           std::to_string(tensor.permuteHeads) + " heads");
  if (tensor.storedRows != 0 &&
      (tensor.permuteHeads != 0 || tensor.run == 0 ||
       tensor.rows % tensor.run != 0 || tensor.stride < tensor.run ||
       tensor.first >= limit || tensor.stride >= limit ||
       tensor.first + (tensor.rows / tensor.run - 1) * tensor.stride +
               tensor.run >
           tensor.storedRows))
    return Status::invalid(what + ": its rows are not within the " +
                           std::to_string(tensor.storedRows) + " stored ones");
  if (tensor.transposed &&
      (storedBlockElements(tensor.form) != 1 || tensor.permuteHeads != 0 ||
       tensor.form == StoredForm::Codes))
    return Status::invalid(what + ": a transposed tensor has no blocks");
  INGOT_RETURN_IF_ERROR(checkDetails(tensor.details, tensor.name,
                                     tensor.allRows(), tensor.columns));
  Status mapped;
  tensor.details.forEachPlane([&](const StoredPlane &plane) {
    if (plane.bytes.size() != plane.sizeBytes && mapped.isOk())
      mapped =
          Status::internal(what + ": \"" + plane.name + "\" is not mapped");
  });
  INGOT_RETURN_IF_ERROR(mapped);

  StoredRows rows;
  rows.tensor_ = std::move(tensor);
  const StoredDetails &details = rows.tensor_.details;
  if (details.codes && details.codes->index) {
    const std::uint64_t groups =
        columnGroups(*details.codes, rows.tensor_.columns);
    for (std::uint64_t k = 0; k < rows.tensor_.columns; ++k)
      if (loadWord(details.codes->index->bytes, k) >= groups)
        return Status::invalid(
            what + ": column " + std::to_string(k) + " is of group " +
            std::to_string(static_cast<std::int32_t>(
                loadWord(details.codes->index->bytes, k))) +
            ", expected one below " + std::to_string(groups));
  }
  if (details.adapters.empty())
    rows.kept_ = details.codes ? keptCodes(*details.codes)
                               : keptCodes(rows.tensor_.form);
  return rows;
}

std::uint64_t StoredRows::storedRow(std::uint64_t row) const {
  if (tensor_.storedRows != 0)
    return tensor_.first + row / tensor_.run * tensor_.stride +
           row % tensor_.run;
  if (tensor_.permuteHeads == 0)
    return row;
  // Stored row 2i + j of a head is the model's row j * half + i.
  const std::uint64_t head = tensor_.rows / tensor_.permuteHeads;
  const std::uint64_t within = row % head;
  return row - within + within % (head / 2) * 2 + within / (head / 2);
}

std::int32_t StoredRows::code(std::uint64_t row, std::uint64_t column) const {
  const StoredCodes &codes = *tensor_.details.codes;
  const auto bits = static_cast<unsigned>(codes.bits);
  switch (codes.packing) {
  case CodePacking::Gptq:
    return streamCode(tensor_.bytes, row, tensor_.allRows(), column, bits);
  case CodePacking::Awq:
    return awqCode(tensor_.bytes, column, tensor_.allRows(), row);
  case CodePacking::Compressed: {
    const std::uint64_t words = (tensor_.columns + 32 / bits - 1) / (32 / bits);
    return streamCode(tensor_.bytes, row * words, 1, column, bits);
  }
  case CodePacking::Int8:
  case CodePacking::F8E4M3:
  case CodePacking::F8E5M2:
    return static_cast<std::int8_t>(
        tensor_.bytes[row * tensor_.columns + column]);
  }
  return 0;
}

std::int32_t StoredRows::zeroPoint(std::uint64_t rowGroup,
                                   std::uint64_t group) const {
  const StoredCodes &codes = *tensor_.details.codes;
  const auto bits = static_cast<unsigned>(codes.bits);
  if (!codes.zeros)
    return codes.packing == CodePacking::Int8 ? 0 : 1 << (bits - 1);
  std::span<const std::uint8_t> bytes = codes.zeros->bytes;
  const std::uint64_t rows = tensor_.allRows();
  const std::uint64_t groups = columnGroups(codes, tensor_.columns);
  std::int32_t zero = 0;
  switch (codes.packing) {
  case CodePacking::Gptq:
    zero = streamCode(bytes, group * (rows * bits / 32), 1, rowGroup, bits);
    break;
  case CodePacking::Awq:
    zero = awqCode(bytes, group, rows, rowGroup);
    break;
  case CodePacking::Compressed:
    zero = streamCode(bytes, group, groups, rowGroup, bits);
    break;
  default:
    zero = static_cast<std::int8_t>(bytes[rowGroup * groups + group]);
    break;
  }
  return zero + static_cast<std::int32_t>(codes.zeroBias);
}

float StoredRows::codeScale(std::uint64_t rowGroup, std::uint64_t group) const {
  const StoredCodes &codes = *tensor_.details.codes;
  const bool across =
      codes.packing == CodePacking::Gptq || codes.packing == CodePacking::Awq;
  const std::uint64_t index =
      across ? group * rowGroups(codes, tensor_.allRows()) + rowGroup
             : rowGroup * columnGroups(codes, tensor_.columns) + group;
  const std::uint64_t size = planeElementBytes(codes.scales.type);
  float scale;
  widenPlane(codes.scales.type, codes.scales.bytes.subspan(index * size, size),
             {&scale, 1});
  return scale;
}

void StoredRows::widenCodes(std::uint64_t row, std::span<float> values) const {
  const StoredCodes &codes = *tensor_.details.codes;
  const std::uint64_t columns = tensor_.columns;
  const std::uint64_t groups = columnGroups(codes, columns);
  const std::uint64_t band =
      codes.rowGroup == 0 ? 0
                          : row / static_cast<std::uint64_t>(codes.rowGroup);
  const bool isFloat = isFloatPacking(codes.packing);
  std::vector<float> scales(groups);
  std::vector<std::int32_t> zeros(groups, 0);
  for (std::uint64_t g = 0; g < groups; ++g) {
    scales[g] = codeScale(band, g);
    if (!isFloat)
      zeros[g] = zeroPoint(band, g);
  }
  const std::uint64_t group =
      codes.group == 0 ? columns : static_cast<std::uint64_t>(codes.group);
  for (std::uint64_t k = 0; k < columns; ++k) {
    const std::uint64_t g =
        codes.index ? loadWord(codes.index->bytes, k) : k / group;
    if (isFloat) {
      const auto bits = static_cast<std::uint8_t>(code(row, k));
      values[k] = (codes.packing == CodePacking::F8E4M3 ? e4m3ToFloat(bits)
                                                        : e5m2ToFloat(bits)) *
                  scales[g];
    } else {
      values[k] = static_cast<float>(code(row, k) - zeros[g]) * scales[g];
    }
  }
}

void StoredRows::addAdapters(std::uint64_t row, std::span<float> values) const {
  const std::uint64_t columns = tensor_.columns;
  std::vector<float> sum(columns), line(columns), weights;
  // `count` elements of a plane, `stride` apart.
  auto read = [](const StoredPlane &plane, std::uint64_t first,
                 std::uint64_t stride, std::span<float> to) {
    const std::uint64_t size = planeElementBytes(plane.type);
    if (stride == 1)
      return widenPlane(
          plane.type, plane.bytes.subspan(first * size, to.size() * size), to);
    for (std::uint64_t i = 0; i < to.size(); ++i)
      widenPlane(plane.type,
                 plane.bytes.subspan((first + i * stride) * size, size),
                 to.subspan(i, 1));
  };
  for (const StoredAdapter &adapter : tensor_.details.adapters) {
    const auto rank = static_cast<std::uint64_t>(adapter.rank);
    weights.resize(rank);
    if (adapter.transposed)
      read(adapter.b, row, tensor_.allRows(), weights);
    else
      read(adapter.b, row * rank, 1, weights);
    std::fill(sum.begin(), sum.end(), 0.0f);
    for (std::uint64_t r = 0; r < rank; ++r) {
      if (adapter.transposed)
        read(adapter.a, r, rank, line);
      else
        read(adapter.a, r * columns, 1, line);
      const float weight = weights[r];
      for (std::uint64_t k = 0; k < columns; ++k)
        sum[k] += weight * line[k];
    }
    for (std::uint64_t k = 0; k < columns; ++k)
      values[k] += adapter.scale * sum[k];
  }
}

void StoredRows::widen(std::uint64_t row, std::span<float> values) const {
  const std::uint64_t stored = storedRow(row);
  if (tensor_.form == StoredForm::Codes)
    widenCodes(stored, values);
  else
    widenPlain(stored, values);
  addAdapters(tensor_.permuteHeads != 0 ? row : stored, values);
}

void StoredRows::widenPlain(std::uint64_t row, std::span<float> values) const {
  // Sizes were checked by create(), so that this fails nowhere.
  if (!tensor_.transposed) {
    const std::uint64_t rowBytes = tensor_.bytes.size() / tensor_.allRows();
    if (!dequantize(tensor_.form,
                    tensor_.bytes.subspan(row * rowBytes, rowBytes), values))
      std::fill(values.begin(), values.end(), NAN);
    return;
  }
  const std::uint64_t element = storedBlockBytes(tensor_.form);
  std::vector<std::uint8_t> column(values.size() * element);
  for (std::uint64_t k = 0; k < values.size(); ++k)
    std::memcpy(column.data() + k * element,
                tensor_.bytes.data() + (k * tensor_.allRows() + row) * element,
                element);
  if (!dequantize(tensor_.form, column, values))
    std::fill(values.begin(), values.end(), NAN);
}

void StoredRows::readCodes(std::uint64_t row, std::uint32_t group,
                           std::uint8_t *codes,
                           std::span<CodeScale> scales) const {
  const std::uint64_t stored = storedRow(row);
  const std::uint64_t columns = tensor_.columns;
  if (tensor_.form != StoredForm::Codes) {
    const std::uint8_t *bytes =
        tensor_.bytes.data() +
        stored * (tensor_.bytes.size() / tensor_.allRows());
    for (std::uint64_t g = 0; g < columns / 32; ++g)
      scales[g] = readBlockGroup(tensor_.form, bytes, g, codes + g * 32);
    return;
  }
  const StoredCodes &details = *tensor_.details.codes;
  const std::uint64_t wide =
      details.group == 0 ? columns : static_cast<std::uint64_t>(details.group);
  const std::uint64_t band =
      details.rowGroup == 0
          ? 0
          : stored / static_cast<std::uint64_t>(details.rowGroup);
  // What to add so that a code stands for itself less the zero point, plus the
  // offset of the encoding; with a minimum codes stay as they are.
  const std::int32_t offset = kept_.int8 ? 128 : 8;
  const std::int32_t shift = kept_.minimum ? 0 : offset - zeroPoint(band, 0);
  for (std::uint64_t k = 0; k < columns; ++k)
    codes[k] = static_cast<std::uint8_t>(code(stored, k) + shift);
  for (std::uint64_t g = 0; g < scales.size(); ++g) {
    const std::uint64_t from = g * group / wide;
    scales[g].scale = codeScale(band, from);
    const std::int32_t zero = kept_.minimum ? zeroPoint(band, from) : 0;
    scales[g].minimum =
        zero == 0 ? 0.0f : -static_cast<float>(zero) * scales[g].scale;
  }
}

} // namespace ingot
