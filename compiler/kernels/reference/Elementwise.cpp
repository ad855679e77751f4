// rms_norm, layer_norm, quantize, gated, activate, add, cap, gather_rows.
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

float activated(Activation activation, float x) {
  switch (activation) {
  case Activation::Silu:
    return kernels::siluLaw(x);
  case Activation::GeluTanh:
    return kernels::geluTanhLaw(x);
  case Activation::Gelu:
    return kernels::geluLaw(x);
  case Activation::Relu:
    return kernels::reluLaw(x);
  }
  return x;
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
      const float g = activated(activation, gate[k]);
      values[k] = g * gate[params.width + k];
    }
    writeRow(values, params.output, params.quantized, t, quantization);
  }
}

void layerNorm(const abi::LayerNormParams &params, const abi::Slice &slice,
               Quantization quantization) {
  std::vector<float> values(params.width);
  for (std::int32_t t = slice.begin; t < slice.end; ++t) {
    const float *x = params.input + static_cast<std::int64_t>(t) * params.width;
    const Moments row = moments(x, params.width, params.eps);
    for (std::int32_t k = 0; k < params.width; ++k) {
      values[k] = ((x[k] - row.mean) * row.inverse) * params.weight[k];
      if (params.bias)
        values[k] = values[k] + params.bias[k];
    }
    writeRow(values, params.output, params.quantized, t, quantization);
  }
}

void activate(const abi::ActivateParams &params, const abi::Slice &slice,
              Activation activation, Quantization quantization) {
  std::vector<float> values(params.width);
  for (std::int32_t t = slice.begin; t < slice.end; ++t) {
    const float *x = params.input + static_cast<std::int64_t>(t) * params.width;
    for (std::int32_t k = 0; k < params.width; ++k)
      values[k] = activated(activation, x[k]);
    writeRow(values, params.output, params.quantized, t, quantization);
  }
}

void add(const abi::AddParams &params, const abi::Slice &slice) {
  for (std::int64_t i = std::int64_t{slice.begin} * params.width;
       i < std::int64_t{slice.end} * params.width; ++i) {
    const float update = params.scale == 1.0f ? params.update[i]
                                              : params.update[i] * params.scale;
    params.output[i] = params.residual[i] + update;
  }
}

void cap(const abi::CapParams &params, const abi::Slice &slice) {
  for (std::int64_t i = std::int64_t{slice.begin} * params.width;
       i < std::int64_t{slice.end} * params.width; ++i) {
    const float y =
        params.scale == 1.0f ? params.input[i] : params.input[i] * params.scale;
    params.output[i] =
        params.softCap == 0.0f ? y : kernels::softCapLaw(y, params.softCap);
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

void pool(const abi::PoolParams &params, const abi::Slice &slice) {
  for (std::int32_t r = slice.begin; r < slice.end; ++r) {
    const abi::SequenceSpan &span =
        params.sequences[params.tokenSequence[params.rows[r]]];
    float *to = params.output + static_cast<std::int64_t>(r) * params.width;
    auto at = [&](std::int32_t row, std::int32_t k) {
      return params.input[static_cast<std::int64_t>(row) * params.width + k];
    };
    for (std::int32_t k = 0; k < params.width; ++k)
      switch (params.kind) {
      case abi::PoolKind::Mean: {
        float sum = at(span.firstRow, k);
        for (std::int32_t t = 1; t < span.numRows; ++t)
          sum = sum + at(span.firstRow + t, k);
        to[k] = sum / static_cast<float>(span.numRows);
        break;
      }
      case abi::PoolKind::Cls:
        to[k] = at(span.firstRow, k);
        break;
      case abi::PoolKind::Last:
        to[k] = at(span.firstRow + span.numRows - 1, k);
        break;
      }
    if (params.normalize)
      normalizeLength(to, params.width);
  }
}

} // namespace ingot::reference
