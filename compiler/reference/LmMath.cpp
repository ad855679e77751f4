// Sums are in the order of docs/numerics.md, so that the logits of a module are
// those of its artifact, bit for bit, where nothing was left to choose.
#include "compiler/reference/LmMath.h"

#include "compiler/kernels/Alibi.h"
#include "compiler/kernels/Exp.h"
#include "compiler/kernels/Power.h"
#include "compiler/kernels/SinCos.h"
#include "compiler/kernels/reference/Reference.h"
#include "compiler/kernels/reference/Scalar.h"
#include "runtime/plan/KernelAbi.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace ingot {

LmRows LmRows::zeros(std::int64_t rows, std::int64_t columns) {
  LmRows result;
  result.rows = rows;
  result.columns = columns;
  result.values.resize(rows * columns);
  return result;
}

LmRows quantizeRows(const LmRows &input, std::int64_t group,
                    std::int64_t bits) {
  const float largest = bits == 16 ? 32512.0f : 127.0f;
  LmRows result;
  result.rows = input.rows;
  result.columns = input.columns;
  result.group = group;
  result.groups = (input.columns + group - 1) / group;
  result.codes.resize(input.values.size());
  result.scales.resize(result.rows * result.groups);
  for (std::int64_t r = 0; r < input.rows; ++r)
    for (std::int64_t g = 0; g < result.groups; ++g) {
      std::int64_t begin = g * group;
      std::int64_t end = std::min(begin + group, input.columns);
      float amax = 0;
      bool finite = true;
      for (std::int64_t k = begin; k < end; ++k) {
        amax = std::max(amax, std::fabs(input.row(r)[k]));
        finite = finite && std::isfinite(input.row(r)[k]);
      }
      float inverse = amax > 0 && finite ? largest / amax : 0.0f;
      result.scales[r * result.groups + g] =
          finite ? amax / largest : std::numeric_limits<float>::quiet_NaN();
      for (std::int64_t k = begin; k < end; ++k)
        result.codes[r * input.columns + k] =
            finite ? static_cast<std::int16_t>(
                         kernels::roundEvenOf(input.row(r)[k] * inverse))
                   : std::int16_t(0);
    }
  return result;
}

static float dotFloat(const float *weight, const float *x,
                      std::int64_t columns) {
  float total = 0;
  for (std::int64_t begin = 0; begin < columns; begin += abi::kFloatGroup) {
    std::int64_t end =
        std::min<std::int64_t>(begin + abi::kFloatGroup, columns);
    float part = 0;
    for (std::int64_t k = begin; k < end; ++k)
      part = std::fma(weight[k], x[k], part);
    total = total + part;
  }
  return total;
}

static float dotInteger(const LoadedWeight &weight, std::int64_t n,
                        const LmRows &x, std::int64_t t) {
  float total = 0;
  for (std::int64_t g = 0; g < x.groups; ++g) {
    std::int64_t begin = g * x.group,
                 end = std::min(begin + x.group, x.columns);
    std::int32_t dot = 0, sum = 0;
    for (std::int64_t k = begin; k < end; ++k) {
      dot += weight.codes[n * weight.columns + k] * x.codes[t * x.columns + k];
      sum += x.codes[t * x.columns + k];
    }
    float scaleX = x.scales[t * x.groups + g];
    float both = weight.scales[n * weight.groups + g] * scaleX;
    total = std::fma(static_cast<float>(dot), both, total);
    if (!weight.mins.empty())
      total = std::fma(weight.mins[n * weight.groups + g],
                       scaleX * static_cast<float>(sum), total);
  }
  return total;
}

LmRows linearRows(const LmRows &input, const LoadedWeight &weight,
                  const LoadedWeight *bias, const LmRows *residual) {
  LmRows result = LmRows::zeros(input.rows, weight.rows);
  for (std::int64_t t = 0; t < input.rows; ++t)
    for (std::int64_t n = 0; n < weight.rows; ++n) {
      float y = input.group ? dotInteger(weight, n, input, t)
                            : dotFloat(&weight.values[n * weight.columns],
                                       input.row(t), weight.columns);
      if (bias)
        y = y + bias->values[n];
      if (residual)
        y = y + residual->row(t)[n];
      result.row(t)[n] = y;
    }
  return result;
}

LmRows routeRows(const LmRows &logits, std::int64_t topK, bool normalized) {
  LmRows result = LmRows::zeros(logits.rows, 2 * topK);
  for (std::int64_t t = 0; t < logits.rows; ++t)
    reference::chooseExperts(logits.row(t),
                             static_cast<std::int32_t>(logits.columns),
                             static_cast<std::int32_t>(topK), normalized,
                             result.row(t), result.row(t) + topK);
  return result;
}

static std::int64_t expertOf(const LmRows &routes, std::int64_t slot) {
  std::int64_t topK = routes.columns / 2;
  return static_cast<std::int64_t>(routes.row(slot / topK)[slot % topK]);
}

std::vector<std::int64_t> orderSlots(const LmRows &routes) {
  std::vector<std::int64_t> order(routes.rows * routes.columns / 2);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) {
    return std::pair(expertOf(routes, a), a) <
           std::pair(expertOf(routes, b), b);
  });
  return order;
}

LmRows expertLinearRows(const LmRows &input, const LmRows &routes,
                        const LoadedWeight &weight, std::int64_t columns) {
  std::vector<std::int64_t> order = orderSlots(routes);
  LmRows result = LmRows::zeros(input.rows, columns);
  for (std::int64_t r = 0; r < input.rows; ++r)
    for (std::int64_t n = 0; n < columns; ++n) {
      std::int64_t row = expertOf(routes, order[r]) * columns + n;
      result.row(r)[n] = input.group
                             ? dotInteger(weight, row, input, r)
                             : dotFloat(&weight.values[row * weight.columns],
                                        input.row(r), weight.columns);
    }
  return result;
}

LmRows combineRows(const LmRows &input, const LmRows &routes) {
  std::int64_t topK = routes.columns / 2;
  std::vector<std::int64_t> order = orderSlots(routes);
  std::vector<std::int64_t> rowOfSlot(order.size());
  for (std::size_t r = 0; r < order.size(); ++r)
    rowOfSlot[order[r]] = static_cast<std::int64_t>(r);
  LmRows result = LmRows::zeros(routes.rows, input.columns);
  for (std::int64_t t = 0; t < routes.rows; ++t)
    for (std::int64_t k = 0; k < input.columns; ++k)
      for (std::int64_t j = 0; j < topK; ++j) {
        float value = input.row(rowOfSlot[t * topK + j])[k];
        float p = routes.row(t)[topK + j];
        float &sum = result.row(t)[k];
        sum = j == 0 ? value * p : std::fma(value, p, sum);
      }
  return result;
}

LmRows ropeTableRows(std::span<const std::int32_t> positions,
                     const LoadedWeight &invFreq, lm::RopeTableOp op) {
  std::int64_t half = lm::columnsOf(op.getType()) / 2;
  auto length = static_cast<std::int64_t>(positions.size());
  auto original = static_cast<std::int64_t>(op.getOriginal());
  float attentionFactor = op.getAttentionFactor().convertToFloat();
  std::vector<float> frequencies(half);
  for (std::int64_t i = 0; i < half; ++i)
    if (op.getScaling() == lm::RopeScaling::Dynamic && length > original)
      frequencies[i] = kernels::dynamicFrequency(
          kernels::dynamicBase(op.getTheta().convertToDouble(),
                               op.getFactor().convertToDouble(),
                               static_cast<std::int32_t>(original),
                               static_cast<std::int32_t>(length),
                               static_cast<std::int32_t>(half)),
          static_cast<std::int32_t>(i));
    else if (op.getScaling() == lm::RopeScaling::Listed && length > original)
      frequencies[i] = invFreq.values[half + i];
    else
      frequencies[i] = invFreq.values[i];
  LmRows result = LmRows::zeros(positions.size(), 2 * half);
  for (std::size_t t = 0; t < positions.size(); ++t)
    for (std::int64_t i = 0; i < half; ++i) {
      float angle = static_cast<float>(positions[t]) * frequencies[i];
      kernels::SinCos both = kernels::sinCosLaw(angle);
      result.row(t)[i] = static_cast<float>(both.cosine * attentionFactor);
      result.row(t)[half + i] = static_cast<float>(both.sine * attentionFactor);
    }
  return result;
}

void normalizeInPlace(float *values, std::int64_t width, const float *weight,
                      float eps, float weightOffset) {
  float sum = reference::sumOfSquares(values, static_cast<std::int32_t>(width));
  float r = 1.0f / std::sqrt(sum / static_cast<float>(width) + eps);
  for (std::int64_t i = 0; i < width; ++i)
    values[i] = (values[i] * r) *
                (weightOffset == 0.0f ? weight[i] : weight[i] + weightOffset);
}

void centreInPlace(float *values, std::int64_t width, const float *weight,
                   const float *bias, float eps) {
  reference::Moments row =
      reference::moments(values, static_cast<std::int32_t>(width), eps);
  for (std::int64_t i = 0; i < width; ++i) {
    values[i] = ((values[i] - row.mean) * row.inverse) * weight[i];
    if (bias)
      values[i] = values[i] + bias[i];
  }
}

void rotateInPlace(float *values, std::int64_t heads, std::int64_t headDim,
                   const float *table, std::int64_t rotaryDim,
                   bool interleaved) {
  std::int64_t half = rotaryDim / 2;
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t i = 0; i < half; ++i) {
      float *head = values + h * headDim;
      float &first = interleaved ? head[2 * i] : head[i];
      float &second = interleaved ? head[2 * i + 1] : head[half + i];
      float a = first, b = second;
      first = std::fma(-b, table[half + i], a * table[i]);
      second = std::fma(a, table[half + i], b * table[i]);
    }
}

float activate(lm::ActivationKind kind, float x) {
  switch (kind) {
  case lm::ActivationKind::Silu:
    return kernels::siluLaw(x);
  case lm::ActivationKind::GeluTanh:
    return kernels::geluTanhLaw(x);
  case lm::ActivationKind::Gelu:
    return kernels::geluLaw(x);
  case lm::ActivationKind::Relu:
    return kernels::reluLaw(x);
  }
  llvm_unreachable("all activations are handled");
}

// One query over the positions [.., last] that it sees, block by block.
static void attendOne(const float *query, std::int64_t position,
                      std::int64_t last, std::int64_t kvHead,
                      const std::vector<float> &keys,
                      const std::vector<float> &values,
                      const AttentionShape &shape, std::int64_t head,
                      float *out) {
  constexpr std::int64_t block = abi::kBlockTokens;
  std::int64_t stride = shape.kvHeads * shape.headDim;
  std::int64_t first =
      shape.window > 0 ? std::max<std::int64_t>(0, position - shape.window + 1)
                       : 0;
  std::vector<float> total(shape.headDim), v(shape.headDim);
  float maximum = 0, sum = 0;
  bool merged = false;
  for (std::int64_t b = first / block; b <= last / block; ++b) {
    float p[block];
    float m = -std::numeric_limits<float>::infinity();
    for (std::int64_t j = 0; j < block; ++j) {
      std::int64_t at = b * block + j;
      p[j] = -std::numeric_limits<float>::infinity();
      if (at < first || at > last)
        continue;
      float score = 0;
      for (std::int64_t d = 0; d < shape.headDim; ++d)
        score = std::fma(query[d],
                         keys[at * stride + kvHead * shape.headDim + d], score);
      score = score * shape.scale;
      p[j] =
          shape.softCap > 0 ? kernels::softCapLaw(score, shape.softCap) : score;
      if (!shape.slopes.empty())
        p[j] += kernels::alibiLaw(
            static_cast<float>(at), static_cast<float>(position),
            shape.slopes[head], shape.scale, shape.roundedSlopes);
      m = std::max(m, p[j]);
    }
    for (float &x : p)
      x = kernels::expLaw(x - m);
    for (std::int64_t d = 0; d < shape.headDim; ++d) {
      v[d] = 0;
      for (std::int64_t j = 0; j < block; ++j)
        if (b * block + j <= last)
          v[d] = std::fma(
              p[j],
              values[(b * block + j) * stride + kvHead * shape.headDim + d],
              v[d]);
    }
    for (std::int64_t apart = block / 2; apart > 0; apart /= 2)
      for (std::int64_t j = 0; j < apart; ++j)
        p[j] = p[j] + p[j + apart];
    if (!merged) {
      maximum = m;
      sum = p[0];
      total = v;
      merged = true;
      continue;
    }
    float next = std::max(maximum, m);
    float old = kernels::expLaw(maximum - next);
    float fresh = kernels::expLaw(m - next);
    sum = std::fma(sum, old, p[0] * fresh);
    for (std::int64_t d = 0; d < shape.headDim; ++d)
      total[d] = std::fma(total[d], old, v[d] * fresh);
    maximum = next;
  }
  float inverse = 1.0f / sum;
  for (std::int64_t d = 0; d < shape.headDim; ++d)
    out[d] = total[d] * inverse;
}

LmRows attendRows(const LmRows &query, const std::vector<float> &keys,
                  const std::vector<float> &values,
                  const AttentionShape &shape) {
  LmRows result = LmRows::zeros(query.rows, query.columns);
  std::int64_t perKey = shape.heads / shape.kvHeads;
  for (std::int64_t t = 0; t < query.rows; ++t)
    for (std::int64_t h = 0; h < shape.heads; ++h)
      attendOne(query.row(t) + h * shape.headDim, t,
                shape.bidirectional ? query.rows - 1 : t, h / perKey, keys,
                values, shape, h, result.row(t) + h * shape.headDim);
  return result;
}

} // namespace ingot
