#include "test/runtime/execute/cpu/FakeKernels.h"

#include "test/runtime/plan/TinyArtifact.h"

#include <cmath>
#include <cstring>

namespace ingot::test {
namespace {

using namespace abi;

std::int64_t padded(std::int64_t k) { return (k + 31) / 32 * 32; }

float element(const PackedWeights &weights, std::int64_t row, std::int64_t k,
              std::int64_t columns) {
  auto *codes = static_cast<const float *>(weights.codes);
  return codes[(row / 16) * padded(columns) * 16 + k * 16 + row % 16];
}

template <typename Params> const Params &as(const void *raw) {
  return *static_cast<const Params *>(raw);
}

void embed(const void *raw, const Slice *slice) {
  const auto &p = as<EmbedParams>(raw);
  for (std::int32_t t = slice->begin; t < slice->end; ++t)
    for (std::int32_t h = 0; h < p.hidden; ++h)
      p.output[std::int64_t(t) * p.hidden + h] =
          element(p.table, p.tokens[t], h, p.hidden) * p.scale;
}

void ropeTable(const void *raw, const Slice *slice) {
  const auto &p = as<RopeTableParams>(raw);
  std::int32_t half = p.rotaryDim / 2;
  for (std::int32_t t = slice->begin; t < slice->end; ++t)
    for (std::int32_t i = 0; i < half; ++i) {
      float angle = float(p.positions[t]) * p.invFreq[i];
      float *row = p.output + std::int64_t(t) * p.rotaryDim;
      row[i] = std::cos(angle) * p.attentionFactor;
      row[half + i] = std::sin(angle) * p.attentionFactor;
    }
}

void rmsNorm(const void *raw, const Slice *slice) {
  const auto &p = as<RmsNormParams>(raw);
  for (std::int32_t t = slice->begin; t < slice->end; ++t) {
    const float *in = p.input + std::int64_t(t) * p.width;
    float sum = 0;
    for (std::int32_t i = 0; i < p.width; ++i)
      sum += in[i] * in[i];
    float r = 1 / std::sqrt(sum / float(p.width) + p.eps);
    for (std::int32_t i = 0; i < p.width; ++i)
      p.output[std::int64_t(t) * p.width + i] =
          in[i] * r * (p.weight[i] + p.weightOffset);
  }
}

void quantize(const void *raw, const Slice *slice) {
  const auto &p = as<QuantizeParams>(raw);
  for (std::int32_t t = slice->begin; t < slice->end; ++t)
    std::memset(p.quantized.data + t * p.quantized.rowBytes, 0,
                std::size_t(p.quantized.rowBytes));
}

void linear(const void *raw, const Slice *slice) {
  const auto &p = as<LinearParams>(raw);
  std::int32_t end = std::min(slice->end * 16, p.n);
  for (std::int32_t t = 0; t < p.numTokens; ++t)
    for (std::int32_t n = slice->begin * 16; n < end; ++n) {
      float sum = 0;
      for (std::int32_t k = 0; k < p.k; ++k)
        sum +=
            element(p.weights, n, k, p.k) * p.input[std::int64_t(t) * p.k + k];
      if (p.bias)
        sum += p.bias[n];
      if (p.residual)
        sum += p.residual[t * p.residualStride + n];
      p.output[t * p.outputStride + n] = sum;
    }
}

void gated(const void *raw, const Slice *slice) {
  const auto &p = as<GatedParams>(raw);
  for (std::int32_t t = slice->begin; t < slice->end; ++t) {
    const float *in = p.gateUp + std::int64_t(t) * 2 * p.width;
    for (std::int32_t i = 0; i < p.width; ++i)
      p.output[std::int64_t(t) * p.width + i] =
          in[i] / (1 + std::exp(-in[i])) * in[p.width + i];
  }
}

void rotate(const float *in, float *out, const float *table, std::int32_t dim,
            std::int32_t rotary) {
  std::int32_t half = rotary / 2;
  for (std::int32_t i = 0; i < half; ++i) {
    float a = in[i], b = in[half + i], c = table[i], s = table[half + i];
    out[i] = a * c - b * s;
    out[half + i] = b * c + a * s;
  }
  for (std::int32_t i = rotary; i < dim; ++i)
    out[i] = in[i];
}

void ropeCacheWrite(const void *raw, const Slice *slice) {
  const auto &p = as<RopeCacheWriteParams>(raw);
  std::int32_t d = p.headDim, width = (p.heads + 2 * p.kvHeads) * d;
  for (std::int32_t t = slice->begin; t < slice->end; ++t) {
    const float *in = p.qkv + std::int64_t(t) * width;
    const float *table = p.table + std::int64_t(t) * p.rotaryDim;
    const SequenceSpan &s = p.sequences[p.tokenSequence[t]];
    std::int32_t position = s.firstPosition + t - s.firstRow;
    std::int32_t block =
        p.blockTable[s.blockTableOffset + position / kBlockTokens];
    std::int32_t slot = position % kBlockTokens;
    std::uint8_t *base = p.cache.base + block * p.cache.blockBytes;
    auto *keys = reinterpret_cast<float *>(base);
    auto *values = reinterpret_cast<float *>(base + p.cache.valueOffsetBytes);
    for (std::int32_t h = 0; h < p.heads; ++h)
      rotate(in + h * d, p.query + (std::int64_t(t) * p.heads + h) * d, table,
             d, p.rotaryDim);
    for (std::int32_t h = 0; h < p.kvHeads; ++h) {
      float key[256];
      rotate(in + (p.heads + h) * d, key, table, d, p.rotaryDim);
      for (std::int32_t i = 0; i < d; ++i) {
        keys[(h * d + i) * kBlockTokens + slot] = key[i];
        values[(h * kBlockTokens + slot) * d + i] =
            in[(p.heads + p.kvHeads + h) * d + i];
      }
    }
  }
}

void attention(const void *raw, const Slice *slice) {
  const auto &p = as<AttentionParams>(raw);
  std::int32_t d = p.headDim, g = p.heads / p.kvHeads;
  for (std::int32_t item = slice->begin; item < slice->end; ++item) {
    std::int32_t kvHead = item / g / p.numTokens;
    std::int32_t t = item / g % p.numTokens;
    std::int32_t head = kvHead * g + item % g;
    const SequenceSpan &s = p.sequences[p.tokenSequence[t]];
    std::int32_t position = s.firstPosition + t - s.firstRow;
    const float *query = p.query + (std::int64_t(t) * p.heads + head) * d;
    float *out = p.output + (std::int64_t(t) * p.heads + head) * d;
    float most = -INFINITY, total = 0, sums[256] = {};
    for (int pass = 0; pass < 2; ++pass)
      for (std::int32_t j = 0; j <= position; ++j) {
        if (p.window > 0 && position - j >= p.window)
          continue;
        const std::uint8_t *base =
            p.cache.base + p.blockTable[s.blockTableOffset + j / kBlockTokens] *
                               p.cache.blockBytes;
        auto *keys = reinterpret_cast<const float *>(base);
        auto *values =
            reinterpret_cast<const float *>(base + p.cache.valueOffsetBytes);
        std::int32_t slot = j % kBlockTokens;
        float score = 0;
        for (std::int32_t i = 0; i < d; ++i)
          score += query[i] * keys[(kvHead * d + i) * kBlockTokens + slot];
        score *= p.scale;
        if (pass == 0) {
          most = std::max(most, score);
          continue;
        }
        float weight = std::exp(score - most);
        total += weight;
        for (std::int32_t i = 0; i < d; ++i)
          sums[i] += weight * values[(kvHead * kBlockTokens + slot) * d + i];
      }
    for (std::int32_t i = 0; i < d; ++i)
      out[i] = sums[i] / total;
  }
}

void gatherRows(const void *raw, const Slice *slice) {
  const auto &p = as<GatherRowsParams>(raw);
  for (std::int32_t r = slice->begin; r < slice->end; ++r)
    std::memcpy(p.output + std::int64_t(r) * p.width,
                p.input + std::int64_t(p.rows[r]) * p.width,
                std::size_t(p.width) * 4);
}

} // namespace

std::vector<abi::KernelFn> fakeKernels() {
  std::vector<abi::KernelFn> kernels(kNumTinyKernels);
  kernels[kEmbed] = embed;
  kernels[kRopeTable] = ropeTable;
  kernels[kRmsNorm] = rmsNorm;
  kernels[kQuantize] = quantize;
  kernels[kLinearOne] = linear;
  kernels[kLinearMany] = linear;
  kernels[kGated] = gated;
  kernels[kRopeCacheWrite] = ropeCacheWrite;
  kernels[kAttention] = attention;
  kernels[kGatherRows] = gatherRows;
  return kernels;
}

} // namespace ingot::test
