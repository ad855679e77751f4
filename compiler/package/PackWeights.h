// From weights as a source file stores them to the packed planes that kernels
// read ("r16": 16 output rows interleaved; docs/numerics.md and
// runtime/plan/KernelAbi.h). Codes that the encoding can hold are kept, with
// their scales rounded to float16 where they are not already; everything else
// is widened to float32 and rounded to nearest, and the error is measured. Works
// a tile of 16 rows at a time, so that a model is packed in little memory; tiles
// may be packed by several threads.
#pragma once

#include "compiler/stored/StoredRows.h"
#include "compiler/stored/WeightConversion.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ingot::package {

using ingot::StoredForm;
using ingot::WeightCode;
using ingot::WeightEncoding;

// One tensor of a weight; the packed weight holds its rows in the model's order.
using StoredPart = StoredTensor;

// Bytes of one row of `columns` elements; an error where blocks do not divide it.
Result<std::uint64_t> storedRowBytes(StoredForm form, std::uint64_t columns);

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

// The difference between what was stored and what the encoding holds. Sums are
// by row and must be added in the order of rows, so that they are reproducible.
struct EncodingError {
  double error = 0.0;     // sum of |encoded - stored|
  double magnitude = 0.0; // sum of |stored|
  // The largest |encoded - stored| of a group of 32 (of a row, for floats)
  // relative to the largest |stored| of that group.
  double largest = 0.0;

  void add(const EncodingError &other);
  double mean() const { return magnitude > 0.0 ? error / magnitude : 0.0; }
};

struct PackStatistics {
  std::uint64_t groups = 0;
  // Groups that are not zero but too small for a float16 scale: stored as zero.
  std::uint64_t underflowedGroups = 0;
  EncodingError error;

  void add(const PackStatistics &other);
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
  std::vector<StoredRows> parts_;
  PackedLayout layout_;
  std::uint64_t rows_ = 0;
  std::uint64_t columns_ = 0;
};

} // namespace ingot::package
