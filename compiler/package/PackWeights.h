// From weights as a source file stores them to the packed planes that kernels
// read ("r16": 16 output rows interleaved; docs/numerics.md and
// runtime/plan/KernelAbi.h). Blocks whose form already matches the encoding
// keep their codes and scales; everything else is widened to float32 and
// rounded to nearest. Works a tile of 16 rows at a time, so that a model is
// packed in little memory; tiles may be packed by several threads.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ingot::package {

enum class WeightCode { F32, F16, BF16, I8, I4 };

// How the packed weight holds its numbers (as `Encoding` of plan.fbs).
struct WeightEncoding {
  WeightCode code = WeightCode::F32;
  std::uint32_t group = 0; // 0 for float codes
  bool minimum = false;
};

// How the source stores them: plain elements, or ggml's blocks of 32.
enum class StoredForm { F32, F16, BF16, Q8_0, Q4_0, Q4_1 };

// Bytes of one row of `columns` elements; an error where blocks do not divide it.
Result<std::uint64_t> storedRowBytes(StoredForm form, std::uint64_t columns);

// Rows of a weight as they lie in a source file.
struct StoredPart {
  std::string name; // of the tensor, for messages
  StoredForm form = StoredForm::F32;
  std::span<const std::uint8_t> bytes; // [rows, columns]
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  // > 0: the rows are llama.cpp's permuted q or k projection of this many
  // heads; the packed weight holds them in the model's own order.
  std::uint32_t permuteHeads = 0;
  // > 0: the bytes hold this many rows, and row r of the part is stored row
  // first + r / run * stride + r % run.
  std::uint64_t storedRows = 0;
  std::uint64_t first = 0, run = 0, stride = 0;
  // The bytes are [columns, stored rows]; for forms without blocks.
  bool transposed = false;

  std::uint64_t allRows() const { return storedRows ? storedRows : rows; }
};

// Where the planes of a packed tensor lie, from its start; each is 64-byte
// aligned. scalesOffset and minsOffset are 0 where there is no such plane.
struct PackedLayout {
  std::uint64_t rowTiles = 0;
  std::uint64_t paddedColumns = 0; // what the codes plane holds of K
  std::uint64_t groups = 0;        // scales a row
  std::uint64_t codesBytesPerTile = 0;
  std::uint64_t scalesBytesPerTile = 0; // of the minima too
  std::uint64_t scalesOffset = 0;
  std::uint64_t minsOffset = 0;
  std::uint64_t size = 0; // whole tensor, a multiple of 64
};
Result<PackedLayout> packedLayout(const WeightEncoding &encoding,
                                  std::uint64_t rows, std::uint64_t columns);

struct PackStatistics {
  std::uint64_t groups = 0;
  // Groups that are not zero but too small for a float16 scale: stored as zero.
  std::uint64_t underflowedGroups = 0;
};

// One weight: the rows of its parts one after another. Borrows the parts' bytes.
class WeightPacker {
public:
  // Fails where sizes disagree, columns differ or blocks do not fit.
  static Result<WeightPacker> create(const WeightEncoding &encoding,
                                     std::vector<StoredPart> parts);

  const PackedLayout &layout() const { return layout_; }
  std::uint64_t rows() const { return rows_; }
  std::uint64_t columns() const { return columns_; }

  // Packs one tile into its pieces of the planes (layout()'s bytes a tile; empty
  // spans where there is no plane). Fails on a non-finite weight, naming tensor,
  // row and column. Thread-safe.
  Status packTile(std::uint64_t tile, std::span<std::uint8_t> codes,
                  std::span<std::uint8_t> scales, std::span<std::uint8_t> mins,
                  PackStatistics &statistics) const;

  // Packs everything into a buffer of layout().size bytes, padding zeroed.
  Status packAll(std::span<std::uint8_t> out, PackStatistics &statistics,
                 unsigned threads = 1) const;

  // Widens rows [firstRow, firstRow + out.size() / columns) to float32, in the
  // packed order: the "row" layout of norm weights, biases and tables.
  Status widenRows(std::uint64_t firstRow, std::span<float> out) const;

private:
  WeightEncoding encoding_;
  std::vector<StoredPart> parts_;
  PackedLayout layout_;
  std::uint64_t rows_ = 0;
  std::uint64_t columns_ = 0;
};

} // namespace ingot::package
