#include "compiler/calibrate/GroupCodes.h"

#include "compiler/calibrate/VectorClones.h"
#include "compiler/package/HalfFloat.h"
#include "compiler/package/RoundWeights.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace ingot {

using package::halfToFloat;

void GroupCodes::resize(std::int64_t numRows, std::int64_t numColumns,
                        CodeShape form) {
  rows = numRows;
  columns = numColumns;
  shape = form;
  codes.assign(std::size_t(rows * columns), 0);
  scales.assign(std::size_t(rows * shape.groups(columns)), 0);
}

void GroupCodes::decode(std::int64_t row, std::span<float> values) const {
  std::int64_t groups = shape.groups(columns), offset = shape.offset();
  for (std::int64_t g = 0; g < groups; ++g) {
    float scale = halfToFloat(scales[std::size_t(row * groups + g)]);
    std::int64_t end = std::min((g + 1) * shape.group, columns);
    for (std::int64_t k = g * shape.group; k < end; ++k)
      values[std::size_t(k)] =
          scale *
          float(std::int64_t(codes[std::size_t(row * columns + k)]) - offset);
  }
}

std::vector<std::uint32_t> GroupCodes::packed() const {
  std::int64_t perWord = 32 / shape.bits;
  std::int64_t words = (columns + perWord - 1) / perWord;
  std::vector<std::uint32_t> result(std::size_t(rows * words), 0);
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t k = 0; k < columns; ++k)
      result[std::size_t(row * words + k / perWord)] |=
          std::uint32_t(codes[std::size_t(row * columns + k)])
          << (k % perWord * shape.bits);
  return result;
}

Status checkFiniteWeights(std::span<const float> weights,
                          std::int64_t columns) {
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (!std::isfinite(weights[i]))
      return Status::invalid(
          "row " + std::to_string(std::int64_t(i) / columns) + " column " +
          std::to_string(std::int64_t(i) % columns) +
          ": expected a finite weight, found " +
          (std::isnan(weights[i]) ? "NaN" : "infinity"));
  return Status::ok();
}

Result<GroupScale> scaleOfGroup(std::span<const float> values,
                                const CodeShape &shape) {
  std::uint8_t codes[256];
  GroupScale chosen;
  package::RoundResult result =
      shape.bits == 8 ? package::roundInt8(values, codes, chosen.scale)
                      : package::roundInt4(values, codes, chosen.scale);
  chosen.isUnderflowed = result == package::RoundResult::Underflowed;
  if (result == package::RoundResult::TooLarge)
    return Status::unsupported("a group needs a scale beyond float16");
  return chosen;
}

std::uint8_t nearestCode(float value, float inverse, const CodeShape &shape) {
  float least = shape.bits == 8 ? -127.0f : -8.0f;
  float most = shape.bits == 8 ? 127.0f : 7.0f;
  float scaled = std::min(std::max(value * inverse, least), most);
  // round_half_even for what is far below 2^22.
  float rounded = (scaled + 12582912.0f) - 12582912.0f;
  return std::uint8_t(std::int32_t(rounded) + std::int32_t(shape.offset()));
}

Result<GroupCodes> roundToNearest(std::span<const float> weights,
                                  std::int64_t rows, std::int64_t columns,
                                  const CodeShape &shape) {
  INGOT_RETURN_IF_ERROR(checkFiniteWeights(weights, columns));
  GroupCodes result;
  result.resize(rows, columns, shape);
  std::int64_t groups = shape.groups(columns);
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t g = 0; g < groups; ++g) {
      std::int64_t begin = row * columns + g * shape.group;
      std::int64_t size = std::min(shape.group, columns - g * shape.group);
      auto values = weights.subspan(std::size_t(begin), std::size_t(size));
      auto chosen = scaleOfGroup(values, shape);
      if (!chosen)
        return chosen.status().withContext("row " + std::to_string(row) +
                                           " column " +
                                           std::to_string(g * shape.group));
      result.scales[std::size_t(row * groups + g)] = chosen->scale;
      result.underflowedGroups += chosen->isUnderflowed;
      float inverse = 1.0f / halfToFloat(chosen->scale);
      for (std::int64_t i = 0; i < size; ++i)
        result.codes[std::size_t(begin + i)] =
            nearestCode(values[std::size_t(i)], inverse, shape);
    }
  return result;
}

// out[j] += factor * row[j]
INGOT_VECTOR_CLONES
static void addScaled(float *out, const float *row, float factor,
                      std::int64_t count) {
  for (std::int64_t j = 0; j < count; ++j)
    out[j] = out[j] + factor * row[j];
}

double rowError(std::span<const float> difference,
                std::span<const float> moments) {
  std::int64_t n = std::ssize(difference);
  std::vector<float> image(std::size_t(n), 0.0f);
  for (std::int64_t i = 0; i < n; ++i)
    if (difference[std::size_t(i)] != 0.0f)
      addScaled(image.data(), moments.data() + i * n,
                difference[std::size_t(i)], n);
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i)
    sum += double(image[std::size_t(i)]) * double(difference[std::size_t(i)]);
  return std::max(sum, 0.0);
}

double outputError(std::span<const float> weights, const GroupCodes &codes,
                   std::span<const float> moments) {
  std::vector<float> row(std::size_t(codes.columns));
  double sum = 0;
  for (std::int64_t r = 0; r < codes.rows; ++r) {
    codes.decode(r, row);
    for (std::int64_t k = 0; k < codes.columns; ++k)
      row[std::size_t(k)] =
          weights[std::size_t(r * codes.columns + k)] - row[std::size_t(k)];
    sum += rowError(row, moments);
  }
  return sum;
}

} // namespace ingot
