// rope_table, rope_cache_write and attention over the paged cache.
#include "compiler/kernels/Alibi.h"
#include "compiler/kernels/Exp.h"
#include "compiler/kernels/Power.h"
#include "compiler/kernels/SinCos.h"
#include "compiler/kernels/reference/Reference.h"
#include "compiler/kernels/reference/Scalar.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace ingot::reference {
namespace {

constexpr std::int32_t kBlock = abi::kBlockTokens;

// Element access of one layer of the cache.
class Cache {
public:
  Cache(const abi::KvLayer &layer, const std::int32_t *blockTable,
        const abi::SequenceSpan &sequence, std::int32_t headDim, CacheType type)
      : layer_(layer), blocks_(blockTable + sequence.blockTableOffset),
        headDim_(headDim), type_(type) {}

  // Of int8 a code, without its scale.
  float key(std::int32_t head, std::int32_t d, std::int32_t position) const {
    return read(keys(head, position), keyIndex(d, position));
  }
  float value(std::int32_t head, std::int32_t d, std::int32_t position) const {
    return read(values(head, position), valueIndex(d, position));
  }
  float keyScale(std::int32_t head, std::int32_t position) const {
    return scales(keys(head, position))[position % kBlock];
  }
  float valueScale(std::int32_t head, std::int32_t position) const {
    return scales(values(head, position))[position % kBlock];
  }
  bool hasScales() const { return type_ == CacheType::I8; }

  void setKey(std::int32_t head, std::int32_t position, const float *x) const {
    std::uint8_t *to = keys(head, position);
    const std::vector<float> elements = elementsOf(to, position, x);
    for (std::int32_t d = 0; d < headDim_; ++d)
      write(to, keyIndex(d, position), elements[d]);
  }
  void setValue(std::int32_t head, std::int32_t position,
                const float *x) const {
    std::uint8_t *to = values(head, position);
    const std::vector<float> elements = elementsOf(to, position, x);
    for (std::int32_t d = 0; d < headDim_; ++d)
      write(to, valueIndex(d, position), elements[d]);
  }

private:
  std::uint8_t *keys(std::int64_t head, std::int32_t position) const {
    const std::int64_t block = blocks_[position / kBlock];
    return layer_.base + block * layer_.blockBytes +
           head * abi::kvHeadBytes(headDim_, elementBytes());
  }
  std::uint8_t *values(std::int64_t head, std::int32_t position) const {
    return keys(head, position) + layer_.valueOffsetBytes;
  }
  std::int64_t elementBytes() const {
    return type_ == CacheType::F32 ? 4 : type_ == CacheType::F16 ? 2 : 1;
  }
  static std::int64_t keyIndex(std::int64_t d, std::int32_t position) {
    return d * kBlock + position % kBlock;
  }
  std::int64_t valueIndex(std::int64_t d, std::int32_t position) const {
    return position % kBlock * headDim_ + d;
  }
  float *scales(std::uint8_t *head) const {
    return reinterpret_cast<float *>(head + headDim_ * kBlock);
  }
  // The numbers that stand for x in the cache; of int8 codes, whose scale is
  // written here.
  std::vector<float> elementsOf(std::uint8_t *head, std::int32_t position,
                                const float *x) const {
    if (!hasScales())
      return {x, x + headDim_};
    std::vector<std::int8_t> codes(headDim_);
    scales(head)[position % kBlock] = quantizeHead(x, headDim_, codes.data());
    return {codes.begin(), codes.end()};
  }
  float read(const std::uint8_t *head, std::int64_t index) const {
    if (type_ == CacheType::F32)
      return reinterpret_cast<const float *>(head)[index];
    if (type_ == CacheType::I8)
      return reinterpret_cast<const std::int8_t *>(head)[index];
    return fromHalf(reinterpret_cast<const std::uint16_t *>(head)[index]);
  }
  void write(std::uint8_t *head, std::int64_t index, float x) const {
    if (type_ == CacheType::F32)
      reinterpret_cast<float *>(head)[index] = x;
    else if (type_ == CacheType::I8)
      reinterpret_cast<std::int8_t *>(head)[index] =
          static_cast<std::int8_t>(x);
    else
      reinterpret_cast<std::uint16_t *>(head)[index] = toHalf(x);
  }

  const abi::KvLayer &layer_;
  const std::int32_t *blocks_;
  std::int32_t headDim_;
  CacheType type_;
};

// One of the heads of `row`, normalised where `norm` is given, then rotated.
std::vector<float> madeHead(const abi::RopeCacheWriteParams &params,
                            const float *row, std::int32_t heads,
                            std::int32_t index, const float *norm,
                            const float *table) {
  const std::int32_t headDim = params.headDim;
  const float *head = row + index * headDim;
  std::vector<float> x(head, head + headDim);
  if (norm && params.normKind == abi::HeadNorm::Layer) {
    const Moments of = moments(head, headDim, params.normEps);
    for (std::int32_t d = 0; d < headDim; ++d)
      x[d] = ((head[d] - of.mean) * of.inverse) *
             norm[index * params.normStride + d];
  } else if (norm) {
    const std::int32_t width = params.normRows ? heads * headDim : headDim;
    const float sum = sumOfSquares(params.normRows ? row : head, width);
    const float r =
        1.0f / std::sqrt(sum / static_cast<float>(width) + params.normEps);
    for (std::int32_t d = 0; d < headDim; ++d) {
      const float weight = norm[index * params.normStride + d];
      x[d] = (head[d] * r) *
             (params.normOffset == 0.0f ? weight : weight + params.normOffset);
    }
  }
  const std::int32_t half = params.rotaryDim / 2;
  for (std::int32_t i = 0; i < half; ++i) {
    float &first = x[params.interleaved ? 2 * i : i];
    float &second = x[params.interleaved ? 2 * i + 1 : half + i];
    const float a = first;
    const float b = second;
    first = std::fma(-b, table[half + i], a * table[i]);
    second = std::fma(a, table[half + i], b * table[i]);
  }
  return x;
}

float frequencyOf(const abi::RopeTableParams &params, std::int32_t token,
                  std::int32_t i) {
  const std::int32_t half = params.rotaryDim / 2;
  switch (params.scaling) {
  case abi::RopeScaling::Fixed:
    break;
  case abi::RopeScaling::Listed:
    if (params.rotaryLengths[token] > params.original)
      return params.invFreq[half + i];
    break;
  case abi::RopeScaling::Dynamic: {
    const std::int32_t length =
        std::max(params.rotaryLengths[token], params.positions[token] + 1);
    if (length > params.original)
      return kernels::dynamicFrequency(
          kernels::dynamicBase(params.theta, params.factor, params.original,
                               length, half),
          i);
    break;
  }
  }
  return params.invFreq[i];
}

} // namespace

void ropeTable(const abi::RopeTableParams &params, const abi::Slice &slice) {
  const std::int32_t half = params.rotaryDim / 2;
  for (std::int32_t t = slice.begin; t < slice.end; ++t)
    for (std::int32_t i = 0; i < half; ++i) {
      const float angle =
          static_cast<float>(params.positions[t]) * frequencyOf(params, t, i);
      const kernels::SinCos both = kernels::sinCosLaw(angle);
      float *row =
          params.output + static_cast<std::int64_t>(t) * params.rotaryDim;
      row[i] = static_cast<float>(both.cosine * params.attentionFactor);
      row[half + i] = static_cast<float>(both.sine * params.attentionFactor);
    }
}

void ropeCacheWrite(const abi::RopeCacheWriteParams &params,
                    const abi::Slice &slice, CacheType type) {
  const std::int32_t headDim = params.headDim;
  for (std::int32_t t = slice.begin; t < slice.end; ++t) {
    const abi::SequenceSpan &sequence =
        params.sequences[params.tokenSequence[t]];
    const std::int32_t position =
        sequence.firstPosition + (t - sequence.firstRow);
    const Cache cache(params.cache, params.blockTable, sequence, headDim, type);
    const float *table =
        params.table + static_cast<std::int64_t>(t) * params.rotaryDim;
    const float *q = params.qkv + static_cast<std::int64_t>(t) *
                                      (params.heads + 2 * params.kvHeads) *
                                      headDim;
    const float *k = q + params.heads * headDim;
    const float *v = k + params.kvHeads * headDim;
    for (std::int32_t h = 0; h < params.heads; ++h) {
      const auto head =
          madeHead(params, q, params.heads, h, params.qNorm, table);
      for (std::int32_t d = 0; d < headDim; ++d)
        params
            .query[(static_cast<std::int64_t>(t) * params.heads + h) * headDim +
                   d] = head[d];
    }
    for (std::int32_t h = 0; h < params.kvHeads; ++h) {
      const auto head =
          madeHead(params, k, params.kvHeads, h, params.kNorm, table);
      cache.setKey(h, position, head.data());
      cache.setValue(h, position, v + h * headDim);
    }
  }
}

namespace {

// `alibi` is null where nothing is added to the scores.
void attend(const abi::AttentionParams &params,
            const abi::AlibiAttentionParams *alibi, const abi::Slice &slice,
            CacheType type, Quantization quantization) {
  const std::int32_t perKv = params.heads / params.kvHeads;
  const std::int32_t headDim = params.headDim;
  for (std::int32_t item = slice.begin; item < slice.end; ++item) {
    const std::int32_t token = item / perKv % params.numTokens;
    const std::int32_t kvHead = item / perKv / params.numTokens;
    const std::int32_t head = kvHead * perKv + item % perKv;
    const abi::SequenceSpan &sequence =
        params.sequences[params.tokenSequence[token]];
    const std::int32_t position =
        sequence.firstPosition + (token - sequence.firstRow);
    const std::int32_t first =
        params.window > 0 && position - params.window + 1 > 0
            ? position - params.window + 1
            : 0;
    const std::int32_t last =
        params.bidirectional ? sequence.firstPosition + sequence.numRows - 1
                             : position;
    const Cache cache(params.cache, params.blockTable, sequence, headDim, type);
    const float *q =
        params.query +
        (static_cast<std::int64_t>(token) * params.heads + head) * headDim;

    float M = 0.0f, S = 0.0f;
    std::vector<float> A(headDim, 0.0f);
    bool begun = false;
    for (std::int32_t block = first / kBlock; block <= last / kBlock; ++block) {
      float p[kBlock];
      float maximum[kBlock];
      for (std::int32_t j = 0; j < kBlock; ++j) {
        const std::int32_t at = block * kBlock + j;
        p[j] = -std::numeric_limits<float>::infinity();
        if (at >= first && at <= last) {
          float score = 0.0f;
          for (std::int32_t d = 0; d < headDim; ++d)
            score = std::fma(q[d], cache.key(kvHead, d, at), score);
          if (cache.hasScales())
            score = score * cache.keyScale(kvHead, at);
          p[j] = score * params.scale;
          if (params.softCap != 0.0f)
            p[j] = kernels::softCapLaw(p[j], params.softCap);
          if (alibi)
            p[j] += kernels::alibiLaw(
                static_cast<float>(at), static_cast<float>(position),
                alibi->slopes[head], params.scale, alibi->rounded != 0);
        }
        maximum[j] = p[j];
      }
      for (std::int32_t apart = kBlock / 2; apart > 0; apart /= 2)
        for (std::int32_t j = 0; j < apart; ++j)
          maximum[j] =
              maximum[j] > maximum[j + apart] ? maximum[j] : maximum[j + apart];
      const float m = maximum[0];
      float sum[kBlock];
      for (std::int32_t j = 0; j < kBlock; ++j)
        sum[j] = p[j] = kernels::expLaw(p[j] - m);
      for (std::int32_t apart = kBlock / 2; apart > 0; apart /= 2)
        for (std::int32_t j = 0; j < apart; ++j)
          sum[j] = sum[j] + sum[j + apart];
      const float s = sum[0];
      if (cache.hasScales())
        for (std::int32_t j = 0; j < kBlock; ++j) {
          const std::int32_t at = block * kBlock + j;
          if (at >= first && at <= last)
            p[j] = p[j] * cache.valueScale(kvHead, at);
        }
      std::vector<float> v(headDim, 0.0f);
      for (std::int32_t d = 0; d < headDim; ++d)
        for (std::int32_t j = 0; j < kBlock; ++j) {
          const std::int32_t at = block * kBlock + j;
          if (at >= first && at <= last)
            v[d] = std::fma(p[j], cache.value(kvHead, d, at), v[d]);
        }
      if (!begun) {
        M = m, S = s, A = v;
        begun = true;
        continue;
      }
      const float next = m > M ? m : M;
      const float a = kernels::expLaw(M - next);
      const float b = kernels::expLaw(m - next);
      S = std::fma(S, a, s * b);
      for (std::int32_t d = 0; d < headDim; ++d)
        A[d] = std::fma(A[d], a, v[d] * b);
      M = next;
    }
    const float inverse = 1.0f / S;
    for (float &x : A)
      x = x * inverse;
    if (params.output)
      for (std::int32_t d = 0; d < headDim; ++d)
        params.output[(static_cast<std::int64_t>(token) * params.heads + head) *
                          headDim +
                      d] = A[d];
    if (quantization.group != 0 && params.quantized.data)
      quantizeValues(params.quantized, token, head * headDim, headDim,
                     quantization, A.data());
  }
}

} // namespace

void attention(const abi::AttentionParams &params, const abi::Slice &slice,
               CacheType type, Quantization quantization) {
  attend(params, nullptr, slice, type, quantization);
}

void alibiAttention(const abi::AlibiAttentionParams &params,
                    const abi::Slice &slice, CacheType type,
                    Quantization quantization) {
  attend(params.attention, &params, slice, type, quantization);
}

} // namespace ingot::reference
