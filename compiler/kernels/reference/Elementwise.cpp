// rms_norm, quantize, gated, gather_rows.
#include "compiler/kernels/Exp.h"
#include "compiler/kernels/reference/Reference.h"
#include "compiler/kernels/reference/Scalar.h"

#include <cmath>
#include <vector>

namespace ingot::reference {
namespace {

// The values of a row to float32, to a quantised row, or to both.
void writeRow(const std::vector<float> &values, float *output,
              const abi::QuantizedRows &quantized, std::int32_t token,
              Quantization quantization) {
  const auto width = static_cast<std::int32_t>(values.size());
  if (output)
    for (std::int32_t k = 0; k < width; ++k)
      output[static_cast<std::int64_t>(token) * width + k] = values[k];
  if (quantization.group != 0 && quantized.data)
    quantizeValues(quantized, token, 0, width, quantization, values.data());
}

} // namespace

void rmsNorm(const abi::RmsNormParams &params, const abi::Slice &slice,
             Quantization quantization) {
  std::vector<float> values(params.width);
  for (std::int32_t t = slice.begin; t < slice.end; ++t) {
    const float *x = params.input + static_cast<std::int64_t>(t) * params.width;
    const float sum = sumOfSquares(x, params.width);
    const float r =
        1.0f / std::sqrt(sum / static_cast<float>(params.width) + params.eps);
    for (std::int32_t k = 0; k < params.width; ++k) {
      const float weight = params.weightOffset == 0.0f
                               ? params.weight[k]
                               : params.weight[k] + params.weightOffset;
      values[k] = (x[k] * r) * weight;
    }
    writeRow(values, params.output, params.quantized, t, quantization);
  }
}

void quantize(const abi::QuantizeParams &params, const abi::Slice &slice,
              Quantization quantization) {
  for (std::int32_t t = slice.begin; t < slice.end; ++t)
    quantizeValues(params.quantized, t, 0, params.width, quantization,
                   params.input + static_cast<std::int64_t>(t) * params.width);
}

void gated(const abi::GatedParams &params, const abi::Slice &slice,
           Activation activation, Quantization quantization) {
  std::vector<float> values(params.width);
  for (std::int32_t t = slice.begin; t < slice.end; ++t) {
    const float *gate =
        params.gateUp + static_cast<std::int64_t>(t) * 2 * params.width;
    for (std::int32_t k = 0; k < params.width; ++k) {
      const float g = activation == Activation::Silu
                          ? kernels::siluLaw(gate[k])
                          : kernels::geluTanhLaw(gate[k]);
      values[k] = g * gate[params.width + k];
    }
    writeRow(values, params.output, params.quantized, t, quantization);
  }
}

void gatherRows(const abi::GatherRowsParams &params, const abi::Slice &slice) {
  for (std::int32_t r = slice.begin; r < slice.end; ++r)
    for (std::int32_t k = 0; k < params.width; ++k)
      params.output[static_cast<std::int64_t>(r) * params.width + k] =
          params
              .input[static_cast<std::int64_t>(params.rows[r]) * params.width +
                     k];
}

} // namespace ingot::reference
