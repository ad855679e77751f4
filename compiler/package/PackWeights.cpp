// A tile is packed row by row: 1. find the stored row; 2. its codes and scales,
// kept where the encoding can hold them, else by way of float32;
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

void store16(std::uint8_t *to, std::uint16_t value) {
  std::memcpy(to, &value, 2);
}

WeightConversion conversionOf(const StoredRows &part,
                              const WeightEncoding &encoding) {
  return conversionTo(encoding, part.tensor().form, part.tensor().details);
}

bool isFiniteHalf(std::uint16_t half) { return (half & 0x7c00) != 0x7c00; }

// Where a row of the packed weight comes from.
struct RowSource {
  const StoredRows *part = nullptr;
  std::uint64_t row = 0; // within the part, in the model's order

  std::string at(std::uint64_t column) const {
    return "tensor \"" + part->tensor().name + "\" row " +
           std::to_string(part->storedRow(row)) + " column " +
           std::to_string(column);
  }
};

RowSource sourceOf(const std::vector<StoredRows> &parts, std::uint64_t row) {
  for (const StoredRows &part : parts) {
    if (row < part.tensor().rows)
      return {&part, row};
    row -= part.tensor().rows;
  }
  return {};
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

// Adds the error of `values` as `encoded`, in groups of 32. Eight partial sums
// vectorise without leave to reorder.
void measure(std::span<const float> values, std::span<const float> encoded,
             EncodingError &error) {
  for (std::size_t begin = 0; begin < values.size(); begin += kBlockColumns) {
    const std::size_t end =
        std::min<std::size_t>(begin + kBlockColumns, values.size());
    float sums[8] = {}, sizes[8] = {}, worst[8] = {}, most[8] = {};
    auto step = [&](std::size_t k, std::size_t lane) {
      const float size = std::fabs(values[k]);
      const float off = std::fabs(encoded[k] - values[k]);
      sums[lane] += off;
      sizes[lane] += size;
      worst[lane] = std::max(worst[lane], off);
      most[lane] = std::max(most[lane], size);
    };
    std::size_t k = begin;
    for (; k + 8 <= end; k += 8)
      for (std::size_t lane = 0; lane < 8; ++lane)
        step(k + lane, lane);
    for (; k < end; ++k)
      step(k, 0);
    float largest = 0.0f, amax = 0.0f;
    for (std::size_t lane = 0; lane < 8; ++lane) {
      error.error += sums[lane];
      error.magnitude += sizes[lane];
      largest = std::max(largest, worst[lane]);
      amax = std::max(amax, most[lane]);
    }
    if (amax > 0.0f)
      error.largest = std::max(error.largest, double(largest) / double(amax));
  }
}

// Working memory of one thread.
struct RowBuffers {
  std::vector<float> values, encoded;
  std::vector<std::uint8_t> codes;
  std::vector<std::uint16_t> scales, mins;
  std::vector<CodeScale> codeScales;
};

// What the codes of a row stand for.
void decodeRow(const WeightEncoding &encoding, RowBuffers &row) {
  const std::uint64_t columns = row.values.size();
  row.encoded.resize(columns);
  const float offset = encoding.code == WeightCode::I8 ? 128.0f
                       : encoding.minimum              ? 0.0f
                                                       : 8.0f;
  for (std::uint64_t g = 0; g < row.scales.size(); ++g) {
    const std::uint64_t begin = g * encoding.group;
    const std::uint64_t end = std::min(begin + encoding.group, columns);
    const float scale = halfToFloat(row.scales[g]);
    const float base = encoding.minimum ? halfToFloat(row.mins[g]) : 0.0f;
    for (std::uint64_t k = begin; k < end; ++k)
      row.encoded[k] =
          (static_cast<float>(row.codes[k]) - offset) * scale + base;
  }
}

// The codes that the tensor keeps, scale and minimum rounded to float16.
Status keepRow(const RowSource &source, const WeightEncoding &encoding,
               RowBuffers &row, PackStatistics &statistics) {
  row.codeScales.resize(row.scales.size());
  source.part->readCodes(source.row, encoding.group, row.codes.data(),
                         row.codeScales);
  const std::uint64_t columns = row.values.size();
  for (std::uint64_t g = 0; g < row.scales.size(); ++g) {
    const std::uint64_t begin = g * encoding.group;
    const CodeScale &scale = row.codeScales[g];
    if (!std::isfinite(scale.scale) || !std::isfinite(scale.minimum))
      return Status::invalid(source.at(begin) +
                             ": expected a finite scale of the block");
    row.scales[g] = floatToHalf(scale.scale);
    if (encoding.minimum)
      row.mins[g] = floatToHalf(scale.minimum);
    if (!isFiniteHalf(row.scales[g]) ||
        (encoding.minimum && !isFiniteHalf(row.mins[g])))
      return Status::unsupported(
          source.at(begin) +
          ": weights of this group need a scale beyond float16");
    statistics.underflowedGroups +=
        (row.scales[g] & 0x7fff) == 0 && scale.scale != 0.0f;
  }
  if (!source.part->kept().exact) {
    source.part->widen(source.row, row.values);
    INGOT_RETURN_IF_ERROR(checkFinite(source, row.values));
    decodeRow(encoding, row);
    measure(row.values, std::span(row.encoded).first(columns),
            statistics.error);
  }
  return Status::ok();
}

// One row of an integer encoding into the buffers.
Status encodeRow(const RowSource &source, const WeightEncoding &encoding,
                 RowBuffers &row, PackStatistics &statistics) {
  const std::uint64_t columns = row.values.size();
  statistics.groups += row.scales.size();
  if (conversionOf(*source.part, encoding) != WeightConversion::Round)
    return keepRow(source, encoding, row, statistics);
  source.part->widen(source.row, row.values);
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
  decodeRow(encoding, row);
  measure(row.values, row.encoded, statistics.error);
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

Status placeFloats(const RowSource &source, WeightCode code, RowBuffers &row,
                   std::uint64_t lane, std::uint8_t *tile,
                   PackStatistics &statistics) {
  std::vector<float> &values = row.values;
  const std::uint64_t columns = values.size();
  source.part->widen(source.row, values);
  INGOT_RETURN_IF_ERROR(checkFinite(source, values));
  const std::uint64_t elementBytes = code == WeightCode::F32 ? 4 : 2;
  std::uint8_t *to = tile + lane * elementBytes;
  row.encoded.resize(columns);
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
    row.encoded[k] =
        code == WeightCode::F16 ? halfToFloat(bits) : brainToFloat(bits);
    store16(to, bits);
  }
  if (code != WeightCode::F32 &&
      conversionOf(*source.part, {code, 0, false}) != WeightConversion::Exact)
    measure(values, row.encoded, statistics.error);
  return Status::ok();
}

} // namespace

void EncodingError::add(const EncodingError &other) {
  error += other.error;
  magnitude += other.magnitude;
  largest = std::max(largest, other.largest);
}

void PackStatistics::add(const PackStatistics &other) {
  groups += other.groups;
  underflowedGroups += other.underflowedGroups;
  error.add(other.error);
}

Result<std::uint64_t> storedRowBytes(StoredForm form, std::uint64_t columns) {
  if (columns == 0 || columns >= kLargestSide)
    return Status::invalid("expected 1 to 2^31 columns, found " +
                           std::to_string(columns));
  const std::uint64_t block = storedBlockElements(form);
  if (columns % block != 0)
    return Status::invalid("expected columns in blocks of " +
                           std::to_string(block) + ", found " +
                           std::to_string(columns));
  return columns / block * storedBlockBytes(form);
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
  for (StoredPart &part : parts) {
    if (part.columns != packer.columns_)
      return Status::invalid("tensor \"" + part.name + "\": expected " +
                             std::to_string(packer.columns_) +
                             " columns, as the rows before it, found " +
                             std::to_string(part.columns));
    INGOT_ASSIGN_OR_RETURN(StoredRows rows,
                           StoredRows::create(std::move(part)));
    packer.rows_ += rows.tensor().rows;
    packer.parts_.push_back(std::move(rows));
  }
  INGOT_ASSIGN_OR_RETURN(packer.layout_,
                         packedLayout(encoding, packer.rows_, packer.columns_));
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
                                          encoding_.code, row, lane,
                                          codes.data(), statistics));
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
  const std::uint64_t runs = (layout_.rowTiles + run - 1) / run;
  std::vector<PackStatistics> byRun(runs);
  std::atomic<std::uint64_t> next{0};
  std::mutex mutex;
  std::uint64_t failedTile = layout_.rowTiles;
  Status failure;
  auto work = [&] {
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
                     byRun[begin / run]);
        if (status.isOk())
          continue;
        std::lock_guard<std::mutex> lock(mutex);
        if (tile < failedTile) {
          failedTile = tile;
          failure = status;
        }
        break;
      }
  };
  runOnThreads(static_cast<unsigned>(std::min<std::uint64_t>(threads, runs)),
               work);
  for (const PackStatistics &each : byRun)
    statistics.add(each);
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
    source.part->widen(source.row, values);
    INGOT_RETURN_IF_ERROR(checkFinite(source, values));
    std::copy(values.begin(), values.end(),
              out.begin() + static_cast<std::ptrdiff_t>(i * columns_));
  }
  return Status::ok();
}

} // namespace ingot::package
