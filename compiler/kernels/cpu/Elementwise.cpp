// The kernels that touch each element once or twice: rms_norm, layer_norm,
// quantize, gated, activate, add, cap, gather_rows, pool and embed. Entry points take
// the params of KernelAbi.h, the slice and then constants, which code generation
// supplies (KernelEntry.cpp lists them). `group` 0 means float32 output only.
#include "compiler/kernels/cpu/Simd.h"
// Simd.h comes first: the templates of Exp.h use its operations.
#include "compiler/kernels/Exp.h"
#include "compiler/kernels/cpu/QuantizeRow.h"
#include "compiler/kernels/cpu/RowMoments.h"
#include "compiler/kernels/cpu/WeightCodes.h"
#include "runtime/plan/KernelAbi.h"

using namespace ingot;
using namespace ingot::kernels;

// Gives each element to the float32 output, to the quantised row, or to both.
template <typename At>
INGOT_INLINE void writeRow(const abi::QuantizedRows &quantized, float *output,
                           int32_t token, int32_t width,
                           Quantization quantization, At at) {
  if (output)
    output += static_cast<int64_t>(token) * width;
  if (quantization.group != 0 && quantized.data) {
    quantizeRow(rowOf(quantized, token), quantized, 0, width, quantization,
                output, at);
    return;
  }
  if (output)
    for (int32_t k = 0; k < width; k += kLanes)
      storeSome(output + k, at(k, width - k), width - k);
}

extern "C" void ingot_rms_norm(const abi::RmsNormParams *params,
                               const abi::Slice *slice, int32_t group,
                               int32_t bits) {
  const int32_t width = params->width;
  const float *weight = params->weight;
  const float weightOffset = params->weightOffset;
  for (int32_t token = slice->begin; token < slice->end; ++token) {
    const float *x = params->input + static_cast<int64_t>(token) * width;
    VecF sum = splat(0.0f);
    for (int32_t k = 0; k < width; k += kLanes) {
      VecF value = loadSome(x + k, width - k);
      sum = fmaOf(value, value, sum);
    }
    const float mean = sumLanes(sum) / static_cast<float>(width);
    const float r = 1.0f / __builtin_sqrtf(mean + params->eps);
    writeRow(params->quantized, params->output, token, width, {group, bits},
             [&](int32_t k, int32_t lanes) {
               VecF scale = loadSome(weight + k, lanes);
               if (weightOffset != 0.0f)
                 scale = scale + splat(weightOffset);
               VecF y = (loadSome(x + k, lanes) * splat(r)) * scale;
               // Lanes past the row hold 0 * r * (0 + weightOffset), which is no zero
               // where r is not finite.
               return lanes >= kLanes ? y
                                      : select(laneNumbers() < splat(lanes), y,
                                               splat(0.0f));
             });
  }
}

extern "C" void ingot_quantize(const abi::QuantizeParams *params,
                               const abi::Slice *slice, int32_t group,
                               int32_t bits) {
  const int32_t width = params->width;
  for (int32_t token = slice->begin; token < slice->end; ++token) {
    const float *x = params->input + static_cast<int64_t>(token) * width;
    quantizeRow(rowOf(params->quantized, token), params->quantized, 0, width,
                {group, bits}, nullptr, [&](int32_t k, int32_t lanes) {
                  return loadSome(x + k, lanes);
                });
  }
}

template <typename Activation>
INGOT_INLINE void gated(const abi::GatedParams *params, const abi::Slice *slice,
                        Quantization quantization, Activation activation) {
  const int32_t width = params->width;
  for (int32_t token = slice->begin; token < slice->end; ++token) {
    const float *gate =
        params->gateUp + static_cast<int64_t>(token) * 2 * width;
    const float *up = gate + width;
    writeRow(params->quantized, params->output, token, width, quantization,
             [&](int32_t k, int32_t lanes) {
               return activation(loadSome(gate + k, lanes)) *
                      loadSome(up + k, lanes);
             });
  }
}

extern "C" void ingot_gated_silu(const abi::GatedParams *params,
                                 const abi::Slice *slice, int32_t group,
                                 int32_t bits) {
  gated(params, slice, {group, bits},
        [](VecF x) __attribute__((always_inline)) { return siluLaw(x); });
}

extern "C" void ingot_gated_gelu_tanh(const abi::GatedParams *params,
                                      const abi::Slice *slice, int32_t group,
                                      int32_t bits) {
  gated(params, slice, {group, bits},
        [](VecF x) __attribute__((always_inline)) { return geluTanhLaw(x); });
}

extern "C" void ingot_gated_gelu(const abi::GatedParams *params,
                                 const abi::Slice *slice, int32_t group,
                                 int32_t bits) {
  gated(params, slice, {group, bits},
        [](VecF x) __attribute__((always_inline)) { return geluLaw(x); });
}

extern "C" void ingot_gated_relu(const abi::GatedParams *params,
                                 const abi::Slice *slice, int32_t group,
                                 int32_t bits) {
  gated(params, slice, {group, bits},
        [](VecF x) __attribute__((always_inline)) { return reluLaw(x); });
}

extern "C" void ingot_layer_norm(const abi::LayerNormParams *params,
                                 const abi::Slice *slice, int32_t group,
                                 int32_t bits) {
  const int32_t width = params->width;
  const float *weight = params->weight;
  const float *bias = params->bias;
  for (int32_t token = slice->begin; token < slice->end; ++token) {
    const float *x = params->input + static_cast<int64_t>(token) * width;
    const RowMoments row = momentsOf(x, width, params->eps);
    writeRow(params->quantized, params->output, token, width, {group, bits},
             [&](int32_t k, int32_t lanes) {
               VecF y = ((loadSome(x + k, lanes) - splat(row.mean)) *
                         splat(row.inverse)) *
                        loadSome(weight + k, lanes);
               if (bias)
                 y = y + loadSome(bias + k, lanes);
               // Lanes past the row hold -mean * r * 0, which is no zero where
               // r is not finite.
               return lanes >= kLanes ? y
                                      : select(laneNumbers() < splat(lanes), y,
                                               splat(0.0f));
             });
  }
}

template <typename Activation>
INGOT_INLINE void activate(const abi::ActivateParams *params,
                           const abi::Slice *slice, Quantization quantization,
                           Activation activation) {
  const int32_t width = params->width;
  for (int32_t token = slice->begin; token < slice->end; ++token) {
    const float *x = params->input + static_cast<int64_t>(token) * width;
    writeRow(params->quantized, params->output, token, width, quantization,
             [&](int32_t k, int32_t lanes) {
               return activation(loadSome(x + k, lanes));
             });
  }
}

#define INGOT_ACTIVATE(NAME, LAW)                                              \
  extern "C" void ingot_activate_##NAME(const abi::ActivateParams *params,     \
                                        const abi::Slice *slice,               \
                                        int32_t group, int32_t bits) {         \
    activate(params, slice, {group, bits},                                     \
             [](VecF x) __attribute__((always_inline)) { return LAW(x); });    \
  }
INGOT_ACTIVATE(silu, siluLaw)
INGOT_ACTIVATE(gelu, geluLaw)
INGOT_ACTIVATE(gelu_tanh, geluTanhLaw)
INGOT_ACTIVATE(relu, reluLaw)

extern "C" void ingot_add(const abi::AddParams *params,
                          const abi::Slice *slice) {
  const int32_t width = params->width;
  const float scale = params->scale;
  for (int32_t token = slice->begin; token < slice->end; ++token) {
    const int64_t at = static_cast<int64_t>(token) * width;
    for (int32_t k = 0; k < width; k += kLanes) {
      const int32_t lanes = width - k;
      VecF update = loadSome(params->update + at + k, lanes);
      if (scale != 1.0f)
        update = update * splat(scale);
      storeSome(params->output + at + k,
                loadSome(params->residual + at + k, lanes) + update, lanes);
    }
  }
}

extern "C" void ingot_cap(const abi::CapParams *params,
                          const abi::Slice *slice) {
  const int32_t width = params->width;
  const float scale = params->scale;
  const float softCap = params->softCap;
  for (int32_t row = slice->begin; row < slice->end; ++row) {
    const int64_t at = static_cast<int64_t>(row) * width;
    for (int32_t k = 0; k < width; k += kLanes) {
      const int32_t lanes = width - k;
      VecF y = loadSome(params->input + at + k, lanes);
      if (scale != 1.0f)
        y = y * splat(scale);
      if (softCap != 0.0f)
        y = softCapLaw(y, splat(softCap));
      storeSome(params->output + at + k, y, lanes);
    }
  }
}

extern "C" void ingot_gather_rows(const abi::GatherRowsParams *params,
                                  const abi::Slice *slice) {
  const int32_t width = params->width;
  for (int32_t row = slice->begin; row < slice->end; ++row) {
    const float *from =
        params->input + static_cast<int64_t>(params->rows[row]) * width;
    float *to = params->output + static_cast<int64_t>(row) * width;
    for (int32_t k = 0; k < width; k += kLanes)
      storeSome(to + k, loadSome(from + k, width - k), width - k);
  }
}

extern "C" void ingot_pool(const abi::PoolParams *params,
                           const abi::Slice *slice) {
  const int32_t width = params->width;
  for (int32_t item = slice->begin; item < slice->end; ++item) {
    const abi::SequenceSpan span =
        params->sequences[params->tokenSequence[params->rows[item]]];
    const int32_t first = params->kind == abi::PoolKind::Last
                              ? span.firstRow + span.numRows - 1
                              : span.firstRow;
    const int32_t count =
        params->kind == abi::PoolKind::Mean ? span.numRows : 1;
    const float *from = params->input + static_cast<int64_t>(first) * width;
    float *to = params->output + static_cast<int64_t>(item) * width;
    VecF squares = splat(0.0f);
    for (int32_t k = 0; k < width; k += kLanes) {
      const int32_t lanes = width - k;
      VecF sum = loadSome(from + k, lanes);
      for (int32_t t = 1; t < count; ++t)
        sum = sum + loadSome(from + static_cast<int64_t>(t) * width + k, lanes);
      if (params->kind == abi::PoolKind::Mean)
        sum = sum / splat(static_cast<float>(count));
      squares = fmaOf(sum, sum, squares);
      storeSome(to + k, sum, lanes);
    }
    if (!params->normalize)
      continue;
    const float length = __builtin_sqrtf(sumLanes(squares));
    const float divisor = length > 1e-12f ? length : 1e-12f;
    for (int32_t k = 0; k < width; k += kLanes)
      storeSome(to + k, loadSome(to + k, width - k) / splat(divisor),
                width - k);
  }
}

// One row of the table: a lane of its tile.
template <WeightCode Code>
INGOT_INLINE void embed(const abi::EmbedParams *params, const abi::Slice *slice,
                        int32_t group, int32_t minimum) {
  const int32_t hidden = params->hidden;
  const float scale = params->scale;
  for (int32_t item = slice->begin; item < slice->end; ++item) {
    const int64_t row = params->tokens[item];
    const TileRow<Code> values(params->table, row, hidden, group, minimum != 0);
    float *output = params->output + static_cast<int64_t>(item) * hidden;
    for (int32_t k = 0; k < hidden; ++k)
      output[k] = values.at(k) * scale;
    if (const float *bias = params->bias)
      for (int32_t k = 0; k < hidden; ++k)
        output[k] = output[k] + bias[k];
  }
}

#define INGOT_EMBED(NAME, CODE)                                                \
  extern "C" void ingot_embed_##NAME(const abi::EmbedParams *params,           \
                                     const abi::Slice *slice, int32_t group,   \
                                     int32_t minimum) {                        \
    embed<CODE>(params, slice, group, minimum);                                \
  }
INGOT_EMBED(f32, WeightCode::F32)
INGOT_EMBED(f16, WeightCode::F16)
INGOT_EMBED(bf16, WeightCode::BF16)
INGOT_EMBED(i8, WeightCode::I8)
INGOT_EMBED(i4, WeightCode::I4)
