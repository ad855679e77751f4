// A matrix in an integer encoding: codes, a float16 scale for each row and group
// of columns, and what they stand for. The method that chose the codes is
// another's business (Gptq.h, AwqScales.h); the canonical encodings are those of
// runtime/plan/KernelAbi.h.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ingot {

// A symmetric integer encoding: value = scale * (code - offset).
struct CodeShape {
  std::int64_t bits = 4;   // 4 or 8
  std::int64_t group = 64; // columns that share a scale; the last may be short

  std::int64_t offset() const { return bits == 8 ? 128 : 8; }
  std::int64_t groups(std::int64_t columns) const {
    return (columns + group - 1) / group;
  }
};

struct GroupCodes {
  std::int64_t rows = 0, columns = 0;
  CodeShape shape;
  std::vector<std::uint8_t> codes;   // [rows, columns], offset included
  std::vector<std::uint16_t> scales; // [rows, groups], float16
  // Groups that are not zero but too small for a float16 scale: they became zero.
  std::int64_t underflowedGroups = 0;

  void resize(std::int64_t numRows, std::int64_t numColumns, CodeShape form);
  // What row `row` stands for.
  void decode(std::int64_t row, std::span<float> values) const;
  // int32 [rows, words], 32 / bits codes a word from the lowest bit: the packing
  // "compressed" of compiler/stored/StoredDetails.h.
  std::vector<std::uint32_t> packed() const;
};

struct GroupScale {
  std::uint16_t scale = 0; // float16; 1 where all values become zero
  bool isUnderflowed = false;
};
// The scale that round-to-nearest gives a group (compiler/package/RoundWeights);
// fails where it needs more than float16.
Result<GroupScale> scaleOfGroup(std::span<const float> values,
                                const CodeShape &shape);
// Methods refuse weights [rows, columns] that are not finite before they choose a
// code: "row 3 column 17: expected a finite weight, found NaN".
Status checkFiniteWeights(std::span<const float> weights, std::int64_t columns);
// The nearest code to `value`, clamped; `inverse` is 1 / scale.
std::uint8_t nearestCode(float value, float inverse, const CodeShape &shape);

// Round to nearest, row by row.
Result<GroupCodes> roundToNearest(std::span<const float> weights,
                                  std::int64_t rows, std::int64_t columns,
                                  const CodeShape &shape);

// The mean over tokens of |(W - Q) x|^2, summed over the rows: trace of
// (W - Q) H (W - Q)' with H the mean of x x' [columns, columns].
double outputError(std::span<const float> weights, const GroupCodes &codes,
                   std::span<const float> moments);
// Of one row, with `difference` = w - q: difference' H difference.
double rowError(std::span<const float> difference,
                std::span<const float> moments);

} // namespace ingot
