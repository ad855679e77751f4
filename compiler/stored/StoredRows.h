// Reads the rows of a stored tensor in the model's own order: every form of
// codes, the reordering of rows that a converter did, and low-rank adapters.
// Sizes and group indices are checked once, so that reading cannot fail.
#pragma once

#include "compiler/stored/StoredDetails.h"
#include "compiler/stored/StoredForm.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ingot {

// Rows of a weight as they lie in a source file.
struct StoredTensor {
  std::string name; // for messages
  StoredForm form = StoredForm::F32;
  std::span<const std::uint8_t> bytes; // [rows, columns]
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  // > 0: the rows are llama.cpp's permuted q or k projection of this many
  // heads.
  std::uint32_t permuteHeads = 0;
  // > 0: the bytes hold this many rows, and row r is stored row
  // first + r / run * stride + r % run.
  std::uint64_t storedRows = 0;
  std::uint64_t first = 0, run = 0, stride = 0;
  // The bytes are [columns, stored rows]; for forms of single elements.
  bool transposed = false;
  // Of all stored rows. Adapters are by stored row too, except beside
  // permuteHeads, which they know nothing of.
  StoredDetails details = {};

  std::uint64_t allRows() const { return storedRows ? storedRows : rows; }
};

// The scale and minimum of `group` columns, before they are rounded to float16.
struct CodeScale {
  float scale = 0.0f;
  float minimum = 0.0f;
};

class StoredRows {
public:
  static Result<StoredRows> create(StoredTensor tensor);

  const StoredTensor &tensor() const { return tensor_; }
  // The stored row that holds logical row `row`.
  std::uint64_t storedRow(std::uint64_t row) const;

  // Logical row `row` as float32, adapters added.
  void widen(std::uint64_t row, std::span<float> values) const;

  // How the codes can be kept; group 0 where they cannot (an index scatters the
  // groups, adapters move the values, codes are floats).
  KeptCodes kept() const { return kept_; }
  // For a tensor that keeps codes: those of a row, one a byte and with the
  // offset of the encoding (128 for int8; 8 for int4 without minimum), and the
  // scale of each `group` columns, a divisor of kept().group.
  void readCodes(std::uint64_t row, std::uint32_t group, std::uint8_t *codes,
                 std::span<CodeScale> scales) const;

  // Of a tensor of integer codes.
  std::int32_t zeroPoint(std::uint64_t rowGroup, std::uint64_t group) const;

private:
  void widenCodes(std::uint64_t row, std::span<float> values) const;
  void addAdapters(std::uint64_t row, std::span<float> values) const;
  std::int32_t code(std::uint64_t row, std::uint64_t column) const;
  float codeScale(std::uint64_t rowGroup, std::uint64_t group) const;

  void widenPlain(std::uint64_t row, std::span<float> values) const;

  StoredTensor tensor_;
  KeptCodes kept_;
};

// How codes with scales of their own can be kept, apart from adapters.
KeptCodes keptCodes(const StoredCodes &codes);

// A plane's elements as float32.
void widenPlane(PlaneType type, std::span<const std::uint8_t> bytes,
                std::span<float> values);

} // namespace ingot
