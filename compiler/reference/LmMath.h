// The arithmetic of the reference executor, line by line from docs/numerics.md.
#pragma once

#include "compiler/reference/LmWeights.h"

#include <cstdint>
#include <vector>

namespace ingot {

// Rows of a step: float32, or codes with a scale and sum for each group.
struct LmRows {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<float> values;       // [rows, columns]; empty where quantised
  std::int64_t group = 0;          // 0 for float32
  std::int64_t groups = 0;         // of a row
  std::vector<std::int16_t> codes; // [rows, columns]
  std::vector<float> scales;       // [rows, groups]

  static LmRows zeros(std::int64_t rows, std::int64_t columns);
  float *row(std::int64_t r) { return values.data() + r * columns; }
  const float *row(std::int64_t r) const { return values.data() + r * columns; }
};

// Codes of `bits` bits, 8 or 16.
LmRows quantizeRows(const LmRows &input, std::int64_t group, std::int64_t bits);
// The experts of each row: columns [0, topK) their numbers, then probabilities.
LmRows routeRows(const LmRows &logits, std::int64_t topK, bool normalized);
// The slots (row * topK + choice) in the order of their experts.
std::vector<std::int64_t> orderSlots(const LmRows &routes);
// Row r of `input` is of slot order[r].
LmRows expertLinearRows(const LmRows &input, const LmRows &routes,
                        const LoadedWeight &weight, std::int64_t columns);
LmRows combineRows(const LmRows &input, const LmRows &routes);
LmRows linearRows(const LmRows &input, const LoadedWeight &weight,
                  const LoadedWeight *bias, const LmRows *residual);
// The sequence's rotary length is the number of positions.
LmRows ropeTableRows(std::span<const std::int32_t> positions,
                     const LoadedWeight &invFreq, lm::RopeTableOp op);
// Normalises `width` columns in place.
void normalizeInPlace(float *values, std::int64_t width, const float *weight,
                      float eps, float weightOffset);
// The layer norm of `width` columns in place; `bias` may be null.
void centreInPlace(float *values, std::int64_t width, const float *weight,
                   const float *bias, float eps);
// Rotates `heads` heads of a row in place by one row of a table.
void rotateInPlace(float *values, std::int64_t heads, std::int64_t headDim,
                   const float *table, std::int64_t rotaryDim,
                   bool interleaved);
float activate(lm::ActivationKind kind, float x);

struct AttentionShape {
  std::int64_t heads, kvHeads, headDim, window;
  float scale, softCap;
  bool bidirectional;
  llvm::ArrayRef<float> slopes; // of ALiBi, [heads]; empty: none
  bool roundedSlopes;
};
// `keys` and `values` are [positions, kvHeads * headDim]; row t of `query` is
// position t.
LmRows attendRows(const LmRows &query, const std::vector<float> &keys,
                  const std::vector<float> &values,
                  const AttentionShape &shape);

} // namespace ingot
