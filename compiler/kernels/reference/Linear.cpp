// embed and linear: what a packed weight stands for, and the two laws of sums.
#include "compiler/kernels/reference/Reference.h"
#include "compiler/kernels/reference/Scalar.h"

#include <cmath>

namespace ingot::reference {
namespace {

std::int64_t padded(std::int64_t columns) { return (columns + 31) / 32 * 32; }

// The stored code of an integer encoding.
std::int32_t codeAt(const abi::PackedWeights &weights, std::int64_t row,
                    std::int64_t column, std::int64_t columns, Code code) {
  const auto *bytes = static_cast<const std::uint8_t *>(weights.codes);
  const std::int64_t tile = row / 16;
  const std::int64_t lane = row % 16;
  if (code == Code::I8)
    return bytes[((tile * (padded(columns) / 4) + column / 4) * 16 + lane) * 4 +
                 column % 4];
  const std::uint8_t both =
      bytes[((tile * (padded(columns) / 8) + column / 8) * 16 + lane) * 4 +
            column % 4];
  return column % 8 < 4 ? both & 15 : both >> 4;
}

std::int32_t offsetOf(const Encoding &encoding) {
  if (encoding.minimum)
    return 0;
  return encoding.code == Code::I8 ? 128 : 8;
}

// Scale or minimum of a row's group.
float factorAt(const std::uint16_t *plane, std::int64_t row, std::int64_t group,
               std::int64_t groups) {
  return fromHalf(plane[(row / 16 * groups + group) * 16 + row % 16]);
}

float integerTotal(const abi::LinearParams &params, std::int32_t token,
                   std::int32_t row, const Encoding &encoding) {
  const std::uint8_t *x =
      params.quantized.data + token * params.quantized.rowBytes;
  const auto *scales =
      reinterpret_cast<const float *>(x + params.quantized.scalesOffset);
  const auto *sums =
      reinterpret_cast<const std::int32_t *>(x + params.quantized.sumsOffset);
  const std::int64_t groups = (params.k + encoding.group - 1) / encoding.group;
  const std::int32_t bits = activationBits(encoding.code);
  float total = 0.0f;
  for (std::int64_t g = 0; g < groups; ++g) {
    std::int32_t dot = 0;
    for (std::int64_t k = g * encoding.group;
         k < (g + 1) * encoding.group && k < params.k; ++k)
      dot += (codeAt(params.weights, row, k, params.k, encoding.code) -
              offsetOf(encoding)) *
             activationCode(x, k, bits);
    const float both =
        factorAt(params.weights.scales, row, g, groups) * scales[g];
    total = std::fma(static_cast<float>(dot), both, total);
    if (encoding.minimum)
      total = std::fma(factorAt(params.weights.mins, row, g, groups),
                       scales[g] * static_cast<float>(sums[g]), total);
  }
  return total;
}

float floatTotal(const abi::LinearParams &params, std::int32_t token,
                 std::int32_t row, const Encoding &encoding) {
  const float *x = params.input + static_cast<std::int64_t>(token) * params.k;
  float total = 0.0f;
  for (std::int32_t begin = 0; begin < params.k; begin += abi::kFloatGroup) {
    float part = 0.0f;
    for (std::int32_t k = begin; k < begin + abi::kFloatGroup && k < params.k;
         ++k)
      part = std::fma(weightAt(params.weights, row, k, params.k, encoding),
                      x[k], part);
    total = total + part;
  }
  return total;
}

} // namespace

std::int32_t activationBits(Code code) { return code == Code::I8 ? 16 : 8; }

float weightAt(const abi::PackedWeights &weights, std::int64_t row,
               std::int64_t column, std::int64_t columns,
               const Encoding &encoding) {
  const std::int64_t element =
      (row / 16 * padded(columns) + column) * 16 + row % 16;
  switch (encoding.code) {
  case Code::F32:
    return static_cast<const float *>(weights.codes)[element];
  case Code::F16:
    return fromHalf(static_cast<const std::uint16_t *>(weights.codes)[element]);
  case Code::BF16:
    return fromBrain(
        static_cast<const std::uint16_t *>(weights.codes)[element]);
  case Code::I8:
  case Code::I4:
    break;
  }
  const std::int64_t groups = (columns + encoding.group - 1) / encoding.group;
  const float scale =
      factorAt(weights.scales, row, column / encoding.group, groups);
  const auto code =
      static_cast<float>(codeAt(weights, row, column, columns, encoding.code) -
                         offsetOf(encoding));
  if (!encoding.minimum)
    return code * scale;
  return std::fma(code, scale,
                  factorAt(weights.mins, row, column / encoding.group, groups));
}

void embed(const abi::EmbedParams &params, const abi::Slice &slice,
           const Encoding &encoding) {
  for (std::int32_t t = slice.begin; t < slice.end; ++t)
    for (std::int32_t k = 0; k < params.hidden; ++k) {
      float &y =
          params.output[static_cast<std::int64_t>(t) * params.hidden + k];
      y = weightAt(params.table, params.tokens[t], k, params.hidden, encoding) *
          params.scale;
      if (params.bias)
        y = y + params.bias[k];
    }
}

void linear(const abi::LinearParams &params, const abi::Slice &slice,
            const Encoding &encoding) {
  const bool integer = encoding.code == Code::I8 || encoding.code == Code::I4;
  for (std::int32_t row = slice.begin * 16;
       row < slice.end * 16 && row < params.n; ++row)
    for (std::int32_t token = 0; token < params.numTokens; ++token) {
      float y = integer ? integerTotal(params, token, row, encoding)
                        : floatTotal(params, token, row, encoding);
      if (params.bias)
        y = y + params.bias[row];
      if (params.residual)
        y = y + params.residual[token * params.residualStride + row];
      params.output[token * params.outputStride + row] = y;
    }
}

void expertLinear(const abi::ExpertLinearParams &params,
                  const abi::Slice &slice, const Encoding &encoding) {
  const abi::LinearParams &all = params.linear;
  const std::int32_t tiles = all.n / 16;
  const std::int32_t *begins = params.order + 2 * all.numTokens;
  const bool integer = encoding.code == Code::I8 || encoding.code == Code::I4;
  for (std::int32_t item = slice.begin; item < slice.end; ++item)
    for (std::int32_t lane = 0; lane < 16; ++lane) {
      const std::int32_t expert = item / tiles;
      const std::int32_t column = item % tiles * 16 + lane;
      for (std::int32_t r = begins[expert]; r < begins[expert + 1]; ++r)
        all.output[r * all.outputStride + column] =
            integer ? integerTotal(all, r, item * 16 + lane, encoding)
                    : floatTotal(all, r, item * 16 + lane, encoding);
    }
}

} // namespace ingot::reference
