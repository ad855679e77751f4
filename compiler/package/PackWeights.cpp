// A tile is packed row by row: 1. find the stored row; 2. its codes and scales,
// taken over where the block form matches the encoding, else by way of float32;
// 3. the codes into the lanes of the tile.
#include "compiler/package/PackWeights.h"

#include "compiler/package/HalfFloat.h"
#include "compiler/package/RoundWeights.h"
#include "runtime/support/RunOnThreads.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>

namespace ingot::package {
namespace {

constexpr std::uint64_t kTileRows = 16;
constexpr std::uint64_t kBlockColumns =
    32; // of ggml's blocks, and what K is padded to
constexpr std::uint64_t kLargestSide = std::uint64_t{1} << 31;

std::uint64_t roundUp(std::uint64_t value, std::uint64_t to) {
  return (value + to - 1) / to * to;
}

bool isInteger(WeightCode code) {
  return code == WeightCode::I8 || code == WeightCode::I4;
}

// Bytes of an element, or of a block of 32.
std::uint64_t unitBytes(StoredForm form) {
  switch (form) {
  case StoredForm::F32:
    return 4;
  case StoredForm::F16:
  case StoredForm::BF16:
    return 2;
  case StoredForm::Q8_0:
    return 34;
  case StoredForm::Q4_0:
    return 18;
  case StoredForm::Q4_1:
    return 20;
  }
  return 0;
}
bool isBlock(StoredForm form) {
  return form == StoredForm::Q8_0 || form == StoredForm::Q4_0 ||
         form == StoredForm::Q4_1;
}

std::uint16_t load16(const std::uint8_t *from) {
  std::uint16_t value;
  std::memcpy(&value, from, 2);
  return value;
}
void store16(std::uint8_t *to, std::uint16_t value) {
  std::memcpy(to, &value, 2);
}

// The form whose blocks are groups of the encoding, code for code.
bool sameBlocks(StoredForm form, const WeightEncoding &encoding) {
  if (encoding.group != kBlockColumns)
    return false;
  if (encoding.code == WeightCode::I8)
    return form == StoredForm::Q8_0;
  if (encoding.code == WeightCode::I4)
    return form == (encoding.minimum ? StoredForm::Q4_1 : StoredForm::Q4_0);
  return false;
}

void widenRow(StoredForm form, const std::uint8_t *row, std::uint64_t columns,
              float *out) {
  switch (form) {
  case StoredForm::F32:
    std::memcpy(out, row, columns * 4);
    return;
  case StoredForm::F16:
    for (std::uint64_t k = 0; k < columns; ++k)
      out[k] = halfToFloat(load16(row + 2 * k));
    return;
  case StoredForm::BF16:
    for (std::uint64_t k = 0; k < columns; ++k)
      out[k] = brainToFloat(load16(row + 2 * k));
    return;
  case StoredForm::Q8_0:
    for (std::uint64_t b = 0; b < columns / kBlockColumns; ++b) {
      const std::uint8_t *block = row + b * 34;
      const float scale = halfToFloat(load16(block));
      for (std::uint64_t k = 0; k < kBlockColumns; ++k)
        out[b * kBlockColumns + k] =
            static_cast<float>(static_cast<std::int8_t>(block[2 + k])) * scale;
    }
    return;
  case StoredForm::Q4_0:
  case StoredForm::Q4_1:
    for (std::uint64_t b = 0; b < columns / kBlockColumns; ++b) {
      const bool minimum = form == StoredForm::Q4_1;
      const std::uint8_t *block = row + b * (minimum ? 20 : 18);
      const float scale = halfToFloat(load16(block));
      const float base =
          minimum ? halfToFloat(load16(block + 2)) : -8.0f * scale;
      const std::uint8_t *codes = block + (minimum ? 4 : 2);
      for (std::uint64_t k = 0; k < 16; ++k) {
        out[b * kBlockColumns + k] =
            static_cast<float>(codes[k] & 15) * scale + base;
        out[b * kBlockColumns + 16 + k] =
            static_cast<float>(codes[k] >> 4) * scale + base;
      }
    }
    return;
  }
}

// Codes, one a byte, of a row whose blocks are the encoding's groups.
void takeBlocks(StoredForm form, const std::uint8_t *row, std::uint64_t columns,
                std::uint8_t *codes, std::uint16_t *scales,
                std::uint16_t *mins) {
  for (std::uint64_t b = 0; b < columns / kBlockColumns;
       ++b, codes += kBlockColumns) {
    const std::uint8_t *block = row + b * unitBytes(form);
    scales[b] = load16(block);
    if (form == StoredForm::Q8_0) {
      for (std::uint64_t k = 0; k < kBlockColumns; ++k)
        codes[k] = block[2 + k] ^ 0x80;
      continue;
    }
    if (form == StoredForm::Q4_1)
      mins[b] = load16(block + 2);
    block += form == StoredForm::Q4_1 ? 4 : 2;
    for (std::uint64_t k = 0; k < 16; ++k) {
      codes[k] = block[k] & 15;
      codes[16 + k] = block[k] >> 4;
    }
  }
}

bool isFiniteHalf(std::uint16_t half) { return (half & 0x7c00) != 0x7c00; }

// Where a row of the packed weight comes from.
struct RowSource {
  const StoredPart *part = nullptr;
  std::uint64_t row = 0; // within the part
  const std::uint8_t *bytes = nullptr;

  std::string at(std::uint64_t column) const {
    return "tensor \"" + part->name + "\" row " + std::to_string(row) +
           " column " + std::to_string(column);
  }
};

RowSource sourceOf(const std::vector<StoredPart> &parts, std::uint64_t row) {
  for (const StoredPart &part : parts) {
    if (row >= part.rows) {
      row -= part.rows;
      continue;
    }
    RowSource source;
    source.part = &part;
    source.row = row;
    if (part.permuteHeads != 0) {
      // Stored row 2i + j of a head is the model's row j * half + i.
      const std::uint64_t head = part.rows / part.permuteHeads;
      const std::uint64_t within = row % head;
      source.row = row - within + within % (head / 2) * 2 + within / (head / 2);
    }
    if (part.storedRows != 0)
      source.row = part.first + row / part.run * part.stride + row % part.run;
    // A row of a transposed tensor begins with an element of its first line.
    const std::uint64_t step = part.transposed
                                   ? unitBytes(part.form)
                                   : part.bytes.size() / part.allRows();
    source.bytes = part.bytes.data() + source.row * step;
    return source;
  }
  return {};
}

void widenSource(const RowSource &source, std::uint64_t columns, float *out) {
  const StoredPart &part = *source.part;
  if (!part.transposed)
    return widenRow(part.form, source.bytes, columns, out);
  const std::uint64_t line = part.allRows() * unitBytes(part.form);
  for (std::uint64_t k = 0; k < columns; ++k)
    widenRow(part.form, source.bytes + k * line, 1, out + k);
}

Status checkFinite(const RowSource &source, const std::vector<float> &values) {
  std::uint32_t worst = 0;
  for (float value : values)
    worst = std::max(worst, std::bit_cast<std::uint32_t>(value) & 0x7fffffff);
  if (worst < 0x7f800000u)
    return Status::ok();
  for (std::uint64_t k = 0; k < values.size(); ++k)
    if (!std::isfinite(values[k]))
      return Status::invalid(source.at(k) +
                             ": expected a finite weight, found " +
                             (std::isnan(values[k]) ? "NaN" : "infinity"));
  return Status::ok();
}

// Working memory of one thread.
struct RowBuffers {
  std::vector<float> values;
  std::vector<std::uint8_t> codes;
  std::vector<std::uint16_t> scales, mins;
};

// One row of an integer encoding into the buffers.
Status encodeRow(const RowSource &source, const WeightEncoding &encoding,
                 RowBuffers &row, PackStatistics &statistics) {
  const std::uint64_t columns = row.values.size();
  statistics.groups += row.scales.size();
  if (sameBlocks(source.part->form, encoding)) {
    takeBlocks(source.part->form, source.bytes, columns, row.codes.data(),
               row.scales.data(), row.mins.data());
    for (std::uint64_t g = 0; g < row.scales.size(); ++g)
      if (!isFiniteHalf(row.scales[g]) ||
          (encoding.minimum && !isFiniteHalf(row.mins[g])))
        return Status::invalid(source.at(g * kBlockColumns) +
                               ": expected a finite scale of the block");
    return Status::ok();
  }
  widenSource(source, columns, row.values.data());
  INGOT_RETURN_IF_ERROR(checkFinite(source, row.values));
  for (std::uint64_t g = 0; g < row.scales.size(); ++g) {
    const std::uint64_t begin = g * encoding.group;
    const std::span<const float> values(
        row.values.data() + begin,
        std::min<std::uint64_t>(encoding.group, columns - begin));
    std::uint8_t *codes = row.codes.data() + begin;
    RoundResult result;
    if (encoding.code == WeightCode::I8)
      result = roundInt8(values, codes, row.scales[g]);
    else if (encoding.minimum)
      result = roundInt4Minimum(values, codes, row.scales[g], row.mins[g]);
    else
      result = roundInt4(values, codes, row.scales[g]);
    if (result == RoundResult::TooLarge)
      return Status::unsupported(
          source.at(begin) +
          ": weights of this group need a scale beyond float16");
    statistics.underflowedGroups += result == RoundResult::Underflowed;
  }
  return Status::ok();
}

// A row's codes into its lane.
void placeCodes(WeightCode code, const std::vector<std::uint8_t> &row,
                std::uint64_t lane, std::uint8_t *tile) {
  if (code == WeightCode::I8) {
    for (std::uint64_t k = 0; k < row.size(); k += 4)
      std::memcpy(tile + k * kTileRows + lane * 4, row.data() + k, 4);
    return;
  }
  for (std::uint64_t k = 0; k < row.size(); k += 8) {
    std::uint32_t low, high;
    std::memcpy(&low, row.data() + k, 4);
    std::memcpy(&high, row.data() + k + 4, 4);
    const std::uint32_t both = low | high << 4;
    std::memcpy(tile + k / 2 * kTileRows + lane * 4, &both, 4);
  }
}

Status placeFloats(const RowSource &source, WeightCode code,
                   std::vector<float> &values, std::uint64_t lane,
                   std::uint8_t *tile) {
  const std::uint64_t columns = values.size();
  widenSource(source, columns, values.data());
  INGOT_RETURN_IF_ERROR(checkFinite(source, values));
  const std::uint64_t elementBytes = code == WeightCode::F32 ? 4 : 2;
  std::uint8_t *to = tile + lane * elementBytes;
  for (std::uint64_t k = 0; k < columns; ++k, to += kTileRows * elementBytes) {
    if (code == WeightCode::F32) {
      std::memcpy(to, &values[k], 4);
      continue;
    }
    const std::uint16_t bits = code == WeightCode::F16
                                   ? floatToHalf(values[k])
                                   : floatToBrain(values[k]);
    const std::uint16_t infinity = code == WeightCode::F16 ? 0x7c00 : 0x7f80;
    if ((bits & 0x7fff) == infinity)
      return Status::unsupported(
          source.at(k) + ": " + std::to_string(values[k]) + " is beyond " +
          (code == WeightCode::F16 ? "float16" : "bfloat16"));
    store16(to, bits);
  }
  return Status::ok();
}

} // namespace

Result<std::uint64_t> storedRowBytes(StoredForm form, std::uint64_t columns) {
  if (columns == 0 || columns >= kLargestSide)
    return Status::invalid("expected 1 to 2^31 columns, found " +
                           std::to_string(columns));
  if (!isBlock(form))
    return columns * unitBytes(form);
  if (columns % kBlockColumns != 0)
    return Status::invalid("expected columns in blocks of 32, found " +
                           std::to_string(columns));
  return columns / kBlockColumns * unitBytes(form);
}

Result<PackedLayout> packedLayout(const WeightEncoding &encoding,
                                  std::uint64_t rows, std::uint64_t columns) {
  if (rows == 0 || rows >= kLargestSide || columns == 0 ||
      columns >= kLargestSide)
    return Status::invalid("weight of " + std::to_string(rows) + " rows and " +
                           std::to_string(columns) +
                           " columns: expected 1 to 2^31 of each");
  const bool integer = isInteger(encoding.code);
  if (integer && (encoding.group == 0 || encoding.group % 32 != 0))
    return Status::unsupported(
        "expected a group that is a multiple of 32, found " +
        std::to_string(encoding.group));
  if (!integer && encoding.group != 0)
    return Status::unsupported("a float encoding has no group, found " +
                               std::to_string(encoding.group));
  if (encoding.minimum && encoding.code != WeightCode::I4)
    return Status::unsupported("only int4 can have minima");

  PackedLayout layout;
  layout.rowTiles = (rows + kTileRows - 1) / kTileRows;
  layout.paddedColumns = roundUp(columns, kBlockColumns);
  layout.groups = integer ? (columns + encoding.group - 1) / encoding.group : 0;
  const std::uint64_t bits = encoding.code == WeightCode::F32  ? 32
                             : encoding.code == WeightCode::I8 ? 8
                             : encoding.code == WeightCode::I4 ? 4
                                                               : 16;
  layout.codesBytesPerTile = layout.paddedColumns * kTileRows * bits / 8;
  layout.scalesBytesPerTile = layout.groups * kTileRows * 2;
  if (layout.rowTiles > (std::uint64_t{1} << 62) / layout.codesBytesPerTile)
    return Status::unsupported("weight of " + std::to_string(rows) +
                               " rows and " + std::to_string(columns) +
                               " columns is too large");
  layout.size = roundUp(layout.rowTiles * layout.codesBytesPerTile, 64);
  if (integer) {
    layout.scalesOffset = layout.size;
    layout.size += roundUp(layout.rowTiles * layout.scalesBytesPerTile, 64);
  }
  if (encoding.minimum) {
    layout.minsOffset = layout.size;
    layout.size += roundUp(layout.rowTiles * layout.scalesBytesPerTile, 64);
  }
  return layout;
}

Result<WeightPacker> WeightPacker::create(const WeightEncoding &encoding,
                                          std::vector<StoredPart> parts) {
  if (parts.empty())
    return Status::invalid("a weight needs at least one stored tensor");
  WeightPacker packer;
  packer.encoding_ = encoding;
  packer.columns_ = parts.front().columns;
  for (const StoredPart &part : parts) {
    const std::string what = "tensor \"" + part.name + "\"";
    if (part.columns != packer.columns_)
      return Status::invalid(what + ": expected " +
                             std::to_string(packer.columns_) +
                             " columns, as the rows before it, found " +
                             std::to_string(part.columns));
    auto rowBytes = storedRowBytes(part.form, part.columns);
    if (!rowBytes)
      return rowBytes.status().withContext(what);
    if (part.rows == 0 || part.rows >= kLargestSide ||
        part.bytes.size() / *rowBytes != part.allRows() ||
        part.bytes.size() % *rowBytes != 0)
      return Status::invalid(what + ": expected " +
                             std::to_string(part.allRows()) + " rows of " +
                             std::to_string(*rowBytes) + " bytes, found " +
                             std::to_string(part.bytes.size()) + " bytes");
    if (part.permuteHeads != 0 &&
        part.rows % (2 * std::uint64_t{part.permuteHeads}) != 0)
      return Status::invalid(what + ": " + std::to_string(part.rows) +
                             " rows are not pairs of " +
                             std::to_string(part.permuteHeads) + " heads");
    if (part.storedRows != 0 &&
        (part.permuteHeads != 0 || part.run == 0 || part.rows % part.run != 0 ||
         part.stride < part.run || part.first > part.storedRows ||
         part.stride > part.storedRows ||
         part.first + (part.rows / part.run - 1) * part.stride + part.run >
             part.storedRows))
      return Status::invalid(what + ": its rows are not within the " +
                             std::to_string(part.storedRows) + " stored ones");
    if (part.transposed && (isBlock(part.form) || part.permuteHeads != 0))
      return Status::invalid(what + ": a transposed tensor has no blocks");
    packer.rows_ += part.rows;
  }
  INGOT_ASSIGN_OR_RETURN(packer.layout_,
                         packedLayout(encoding, packer.rows_, packer.columns_));
  packer.parts_ = std::move(parts);
  return packer;
}

Status WeightPacker::packTile(std::uint64_t tile, std::span<std::uint8_t> codes,
                              std::span<std::uint8_t> scales,
                              std::span<std::uint8_t> mins,
                              PackStatistics &statistics) const {
  const std::uint64_t minBytes =
      encoding_.minimum ? layout_.scalesBytesPerTile : 0;
  if (tile >= layout_.rowTiles || codes.size() != layout_.codesBytesPerTile ||
      scales.size() != layout_.scalesBytesPerTile || mins.size() != minBytes)
    return Status::internal("packTile: tile or buffers do not fit the layout");
  const std::uint8_t nothing =
      encoding_.code == WeightCode::I8                         ? 128
      : encoding_.code == WeightCode::I4 && !encoding_.minimum ? 8
                                                               : 0;
  RowBuffers row;
  row.values.resize(columns_);
  if (isInteger(encoding_.code)) {
    row.codes.assign(layout_.paddedColumns, nothing);
    row.scales.resize(layout_.groups);
    row.mins.resize(layout_.groups);
  } else {
    std::fill(codes.begin(), codes.end(), std::uint8_t{0});
  }
  for (std::uint64_t lane = 0; lane < kTileRows; ++lane) {
    const std::uint64_t index = tile * kTileRows + lane;
    const bool padding = index >= rows_;
    if (!isInteger(encoding_.code)) {
      if (!padding)
        INGOT_RETURN_IF_ERROR(placeFloats(sourceOf(parts_, index),
                                          encoding_.code, row.values, lane,
                                          codes.data()));
      continue;
    }
    if (padding) {
      std::fill(row.codes.begin(), row.codes.end(), nothing);
      std::fill(row.scales.begin(), row.scales.end(), std::uint16_t{0});
      std::fill(row.mins.begin(), row.mins.end(), std::uint16_t{0});
    } else {
      INGOT_RETURN_IF_ERROR(
          encodeRow(sourceOf(parts_, index), encoding_, row, statistics));
    }
    placeCodes(encoding_.code, row.codes, lane, codes.data());
    for (std::uint64_t g = 0; g < layout_.groups; ++g) {
      store16(scales.data() + (g * kTileRows + lane) * 2, row.scales[g]);
      if (encoding_.minimum)
        store16(mins.data() + (g * kTileRows + lane) * 2, row.mins[g]);
    }
  }
  return Status::ok();
}

Status WeightPacker::packAll(std::span<std::uint8_t> out,
                             PackStatistics &statistics,
                             unsigned threads) const {
  if (out.size() != layout_.size)
    return Status::internal("packAll: expected " +
                            std::to_string(layout_.size) + " bytes, found " +
                            std::to_string(out.size()));
  // Gaps between planes.
  const std::uint64_t codesEnd = layout_.rowTiles * layout_.codesBytesPerTile;
  const std::uint64_t scalesBytes =
      layout_.rowTiles * layout_.scalesBytesPerTile;
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(codesEnd),
            out.begin() + static_cast<std::ptrdiff_t>(layout_.scalesOffset
                                                          ? layout_.scalesOffset
                                                          : layout_.size),
            std::uint8_t{0});
  if (layout_.scalesOffset)
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(layout_.scalesOffset +
                                                        scalesBytes),
              out.end(), std::uint8_t{0});

  // Threads take runs of tiles; of several failures the first tile's is told.
  constexpr std::uint64_t run = 16;
  std::atomic<std::uint64_t> next{0};
  std::mutex mutex;
  std::uint64_t failedTile = layout_.rowTiles;
  Status failure;
  auto work = [&] {
    PackStatistics mine;
    for (std::uint64_t begin = next.fetch_add(run); begin < layout_.rowTiles;
         begin = next.fetch_add(run))
      for (std::uint64_t tile = begin;
           tile < std::min(begin + run, layout_.rowTiles); ++tile) {
        auto piece = [&](std::uint64_t plane, std::uint64_t bytes) {
          return out.subspan(plane + tile * bytes, bytes);
        };
        const Status status =
            packTile(tile, piece(0, layout_.codesBytesPerTile),
                     piece(layout_.scalesOffset, layout_.scalesBytesPerTile),
                     encoding_.minimum
                         ? piece(layout_.minsOffset, layout_.scalesBytesPerTile)
                         : std::span<std::uint8_t>(),
                     mine);
        if (status.isOk())
          continue;
        std::lock_guard<std::mutex> lock(mutex);
        if (tile < failedTile) {
          failedTile = tile;
          failure = status;
        }
        break;
      }
    std::lock_guard<std::mutex> lock(mutex);
    statistics.groups += mine.groups;
    statistics.underflowedGroups += mine.underflowedGroups;
  };
  const std::uint64_t runs = (layout_.rowTiles + run - 1) / run;
  runOnThreads(static_cast<unsigned>(std::min<std::uint64_t>(threads, runs)),
               work);
  return failure;
}

Status WeightPacker::widenRows(std::uint64_t firstRow,
                               std::span<float> out) const {
  if (out.size() % columns_ != 0 || firstRow > rows_ ||
      out.size() / columns_ > rows_ - firstRow)
    return Status::internal("widenRows: rows do not fit the weight");
  std::vector<float> values(columns_);
  for (std::uint64_t i = 0; i < out.size() / columns_; ++i) {
    const RowSource source = sourceOf(parts_, firstRow + i);
    widenSource(source, columns_, values.data());
    INGOT_RETURN_IF_ERROR(checkFinite(source, values));
    std::copy(values.begin(), values.end(),
              out.begin() + static_cast<std::ptrdiff_t>(i * columns_));
  }
  return Status::ok();
}

} // namespace ingot::package
