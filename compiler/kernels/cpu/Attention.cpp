// attention over the paged cache, by the block law of docs/numerics.md. Up to
// four queries of one kv head and one sequence are a tile: they share every load
// of K (tokens as lanes) and of V (elements of the head as lanes). Up to four tiles
// go through the cache together, so that a block is read from memory once for all.
// What one query sees is its own range of positions; the tile reads a position's V
// for a query only where that query sees it, so that no later token can touch its
// bits.
#include "compiler/kernels/cpu/Simd.h"
// Simd.h comes first: the templates of Alibi.h and Exp.h use its operations.
#include "compiler/kernels/Alibi.h"
#include "compiler/kernels/Exp.h"
#include "compiler/kernels/cpu/KvCache.h"
#include "compiler/kernels/cpu/QuantizeRow.h"
#include "runtime/plan/KernelAbi.h"

using namespace ingot;
using namespace ingot::kernels;

static constexpr int kBlock = abi::kBlockTokens;
static constexpr int kTileQueries = 4;
static constexpr int kTiles = 4;

namespace {
struct Item {
  int32_t kvHead;
  int32_t head;
  int32_t token;
  int32_t sequence;
  int32_t position;
  int32_t first; // sees [first, last]
  int32_t last;
};

// What ALiBi adds to the scores; of plain attention, nothing.
struct NoBias {};
struct Alibi {
  const float *slopes; // [heads]
  float scale;
  bool rounded;
};

struct alignas(64) Tile {
  float output[kTileQueries][kMaxHeadDim];
  float scores[kTileQueries][kBlock]; // then the weights p of the block
  Item items[kTileQueries];
  const float *query[kTileQueries];
  float maximum[kTileQueries];
  float sum[kTileQueries];
  bool begun[kTileQueries];
  int queries;
  int32_t firstBlock;
  int32_t lastBlock;
};
} // namespace

INGOT_INLINE Item itemAt(const abi::AttentionParams &params, int32_t index) {
  const int32_t group = params.heads / params.kvHeads;
  const int32_t inGroup = index % group;
  const int32_t rest = index / group;
  Item item;
  item.token = rest % params.numTokens;
  item.kvHead = rest / params.numTokens;
  item.head = item.kvHead * group + inGroup;
  item.sequence = params.tokenSequence[item.token];
  const abi::SequenceSpan &span = params.sequences[item.sequence];
  item.position = span.firstPosition + (item.token - span.firstRow);
  item.first =
      params.window > 0 ? maxOf(0, item.position - params.window + 1) : 0;
  item.last = params.bidirectional ? span.firstPosition + span.numRows - 1
                                   : item.position;
  return item;
}

// scores[q][j] of the 16 positions from `from`, before mask. Meanwhile a plane
// [headDim, kBlock] that is needed next is asked for: each begins a page of its
// own, at which the processor's own prefetch ends.
template <typename Element, int Queries>
INGOT_INLINE void scoreHalf(Tile &tile, const Element *keys, int32_t headDim,
                            int from, float scale, float softCap,
                            const Element *next) {
  const float *query[Queries];
  VecF sum[Queries];
  INGOT_UNROLL for (int q = 0; q < Queries; ++q) query[q] = tile.query[q];
  INGOT_UNROLL for (int q = 0; q < Queries; ++q) sum[q] = splat(0.0f);
#pragma clang loop unroll_count(4)
  for (int32_t d = 0; d < headDim; ++d) {
    __builtin_prefetch(next + d * kBlock);
    if (sizeof(Element) == 4)
      __builtin_prefetch(next + d * kBlock + kLanes);
    const VecF k = loadElements(keys + d * kBlock + from);
    INGOT_UNROLL for (int q = 0; q < Queries; ++q) sum[q] =
        fmaOf(splat(query[q][d]), k, sum[q]);
  }
  if constexpr (kHasKvScales<Element>) {
    const VecF keyScales = load(scalesOf(keys, headDim) + from);
    INGOT_UNROLL for (int q = 0; q < Queries; ++q) sum[q] = sum[q] * keyScales;
  }
  INGOT_UNROLL for (int q = 0; q < Queries; ++q) {
    VecF score = sum[q] * splat(scale);
    if (softCap != 0.0f)
      score = softCapLaw(score, splat(softCap));
    store(tile.scores[q] + from, score);
  }
}

// The bias of the 16 positions from `from` of a block.
template <int Queries>
INGOT_INLINE void addBias(Tile &, int32_t, int, NoBias) {}
template <int Queries>
INGOT_INLINE void addBias(Tile &tile, int32_t block, int from, Alibi alibi) {
  const VecF at = toFloat(laneNumbers() + splat(block * kBlock + from));
  INGOT_UNROLL for (int q = 0; q < Queries; ++q) {
    const Item &item = tile.items[q];
    const VecF bias =
        alibiLaw(at, static_cast<float>(item.position), alibi.slopes[item.head],
                 alibi.scale, alibi.rounded);
    float *scores = tile.scores[q] + from;
    store(scores, load(scores) + bias);
  }
}

// Scores to weights: mask, maximum, exponential, sum. Returns the block's (m, s).
struct BlockSums {
  float maximum;
  float sum;
};
INGOT_INLINE BlockSums softmaxBlock(float *scores, int32_t low, int32_t high) {
  const VecF nothing = splat(-__builtin_inff());
  const VecI lane0 = laneNumbers();
  const VecI lane1 = lane0 + splat(kLanes);
  VecF s0 = select((lane0 >= splat(low)) & (lane0 < splat(high)), load(scores),
                   nothing);
  VecF s1 = select((lane1 >= splat(low)) & (lane1 < splat(high)),
                   load(scores + kLanes), nothing);
  const float maximum = maxLanes(greater(s0, s1));
  const VecF p0 = expOfNegative(s0 - splat(maximum));
  const VecF p1 = expOfNegative(s1 - splat(maximum));
  store(scores, p0);
  store(scores + kLanes, p1);
  return {maximum, sumLanes(p0 + p1)};
}

// The weights of a block, once their sum is taken, as weights of codes.
template <typename Element>
INGOT_INLINE void scaleWeights(float *weights, const Element *values,
                               int32_t headDim) {
  if constexpr (kHasKvScales<Element>) {
    const float *scales = scalesOf(values, headDim);
    store(weights, load(weights) * load(scales));
    store(weights + kLanes, load(weights + kLanes) * load(scales + kLanes));
  }
}

// A tile of the items from `index` on.
INGOT_INLINE void beginTile(Tile &tile, const abi::AttentionParams &params,
                            int32_t index, int queries, int32_t headDim) {
  tile.queries = queries;
  int32_t first = 0x7fffffff;
  int32_t last = 0;
  INGOT_NO_UNROLL for (int q = 0; q < queries; ++q) {
    const Item item = itemAt(params, index + q);
    tile.items[q] = item;
    tile.query[q] =
        params.query +
        (static_cast<int64_t>(item.token) * params.heads + item.head) * headDim;
    first = minOf(first, item.first);
    last = maxOf(last, item.last);
    tile.begun[q] = false;
  }
  tile.firstBlock = first / kBlock;
  tile.lastBlock = last / kBlock;
}

// Merges a block of keys and values [headDim, kBlock] and [kBlock, headDim].
template <typename Element, int Queries, typename Bias>
INGOT_INLINE void
attendBlock(Tile &state, const abi::AttentionParams &params, int32_t block,
            const Element *keys, const Element *values, const Element *nextKeys,
            const Element *nextValues, int32_t headDim, Bias bias) {
  const Item *const items = state.items;
  // What each query sees of the block: [low, high); empty where low >= high.
  // All see [commonLow, commonHigh); some see [anyLow, anyHigh).
  int32_t low[Queries], high[Queries];
  int32_t anyLow = kBlock, anyHigh = 0, commonLow = 0, commonHigh = kBlock;
  INGOT_UNROLL for (int q = 0; q < Queries; ++q) {
    low[q] = maxOf(0, items[q].first - block * kBlock);
    high[q] = minOf(kBlock, items[q].last + 1 - block * kBlock);
    if (low[q] < high[q]) {
      anyLow = minOf(anyLow, low[q]);
      anyHigh = maxOf(anyHigh, high[q]);
    } else {
      low[q] = high[q] = 0;
    }
    commonLow = maxOf(commonLow, low[q]);
    commonHigh = minOf(commonHigh, high[q]);
  }
  if (anyLow < kLanes) {
    scoreHalf<Element, Queries>(state, keys, headDim, 0, params.scale,
                                params.softCap, nextKeys);
    addBias<Queries>(state, block, 0, bias);
  }
  if (anyHigh > kLanes) {
    scoreHalf<Element, Queries>(state, keys, headDim, kLanes, params.scale,
                                params.softCap, nextValues);
    addBias<Queries>(state, block, kLanes, bias);
  }

  // Factors that merge the block into the state: old * oldScale + new * newScale.
  // Their exponentials are taken at once, two lanes a query.
  float factors[kLanes];
  store(factors, splat(0.0f));
  BlockSums sums[Queries];
  INGOT_NO_UNROLL for (int q = 0; q < Queries; ++q) {
    if (low[q] >= high[q])
      continue;
    sums[q] = softmaxBlock(state.scores[q], low[q], high[q]);
    scaleWeights(state.scores[q], values, headDim);
    if (!state.begun[q])
      continue;
    const float maximum =
        sums[q].maximum > state.maximum[q] ? sums[q].maximum : state.maximum[q];
    factors[2 * q] = state.maximum[q] - maximum;
    factors[2 * q + 1] = sums[q].maximum - maximum;
    sums[q].maximum = maximum;
  }
  store(factors, expOfNegative(load(factors)));
  INGOT_NO_UNROLL for (int q = 0; q < Queries; ++q) {
    if (low[q] >= high[q])
      continue;
    state.maximum[q] = sums[q].maximum;
    state.sum[q] = state.begun[q]
                       ? __builtin_fmaf(state.sum[q], factors[2 * q],
                                        sums[q].sum * factors[2 * q + 1])
                       : sums[q].sum;
  }

  if (commonLow >= commonHigh)
    commonLow = commonHigh = anyHigh;
  INGOT_NO_UNROLL for (int32_t d = 0; d < headDim; d += kLanes) {
    const int lanes = headDim - d;
    VecF value[Queries];
    INGOT_UNROLL for (int q = 0; q < Queries; ++q) value[q] = splat(0.0f);
    int32_t j = anyLow;
    INGOT_NO_UNROLL for (; j < commonLow; ++j) {
      const VecF v = loadElements(values + j * headDim + d, lanes);
      INGOT_UNROLL for (int q = 0; q < Queries;
                        ++q) if (j >= low[q] && j < high[q]) value[q] =
          fmaOf(splat(state.scores[q][j]), v, value[q]);
    }
#pragma clang loop unroll_count(4)
    for (; j < commonHigh; ++j) {
      const VecF v = loadElements(values + j * headDim + d, lanes);
      INGOT_UNROLL for (int q = 0; q < Queries; ++q) value[q] =
          fmaOf(splat(state.scores[q][j]), v, value[q]);
    }
    INGOT_NO_UNROLL for (; j < anyHigh; ++j) {
      const VecF v = loadElements(values + j * headDim + d, lanes);
      INGOT_UNROLL for (int q = 0; q < Queries;
                        ++q) if (j >= low[q] && j < high[q]) value[q] =
          fmaOf(splat(state.scores[q][j]), v, value[q]);
    }
    INGOT_UNROLL for (int q = 0; q < Queries; ++q) {
      if (low[q] >= high[q])
        continue;
      float *output = state.output[q] + d;
      store(output, state.begun[q] ? fmaOf(load(output), splat(factors[2 * q]),
                                           value[q] * splat(factors[2 * q + 1]))
                                   : value[q]);
    }
  }
  INGOT_UNROLL for (int q = 0; q < Queries; ++q) state.begun[q] |=
      low[q] < high[q];
}

INGOT_INLINE void finishTile(const Tile &tile,
                             const abi::AttentionParams &params,
                             int32_t headDim, Quantization quantization) {
  INGOT_NO_UNROLL for (int q = 0; q < tile.queries; ++q) {
    const Item &item = tile.items[q];
    const float inverse = 1.0f / tile.sum[q];
    const int32_t column = item.head * headDim;
    float *output = params.output ? params.output +
                                        static_cast<int64_t>(item.token) *
                                            params.heads * headDim +
                                        column
                                  : nullptr;
    const auto at = [&](int32_t d, int32_t) {
      return load(tile.output[q] + d) * splat(inverse);
    };
    if (quantization.group != 0 && params.quantized.data) {
      quantizeRow(rowOf(params.quantized, item.token), params.quantized, column,
                  headDim, quantization, output, at);
      continue;
    }
    if (output)
      for (int32_t d = 0; d < headDim; d += kLanes)
        storeSome(output + d, at(d, headDim - d), headDim - d);
  }
}

// Items are taken in runs that share kv head and sequence.
template <typename Element, typename Bias = NoBias>
INGOT_INLINE void attention(const abi::AttentionParams *given,
                            const abi::Slice *slice, int32_t headDim,
                            Quantization quantization, Bias bias = {}) {
  const abi::AttentionParams params = *given;
  Tile tiles[kTiles];
  int32_t index = slice->begin;
  INGOT_NO_UNROLL while (index < slice->end) {
    const Item head = itemAt(params, index);
    int32_t run = 1;
    INGOT_NO_UNROLL while (run < kTiles * kTileQueries &&
                           index + run < slice->end) {
      const Item next = itemAt(params, index + run);
      if (next.kvHead != head.kvHead || next.sequence != head.sequence)
        break;
      ++run;
    }
    int count = 0;
    int32_t firstBlock = 0x7fffffff;
    int32_t lastBlock = 0;
    INGOT_NO_UNROLL for (; count < kTiles && run > 0; ++count) {
      const int queries = run >= 4 ? 4 : run == 3 ? 3 : 1;
      beginTile(tiles[count], params, index, queries, headDim);
      firstBlock = minOf(firstBlock, tiles[count].firstBlock);
      lastBlock = maxOf(lastBlock, tiles[count].lastBlock);
      index += queries;
      run -= queries;
    }

    const abi::SequenceSpan sequence = params.sequences[head.sequence];
    const int64_t headOffset = head.kvHead * headElements<Element>(headDim);
    INGOT_NO_UNROLL for (int32_t block = firstBlock; block <= lastBlock;
                         ++block) {
      const KvBlock<Element> kv =
          blockOf<Element>(params.cache, params.blockTable, sequence, block);
      const Element *keys = kv.keys + headOffset;
      const Element *values = kv.values + headOffset;
      const KvBlock<Element> next =
          blockOf<Element>(params.cache, params.blockTable, sequence,
                           minOf(block + 1, lastBlock));
      const Element *nextKeys = next.keys + headOffset;
      const Element *nextValues = next.values + headOffset;
      INGOT_NO_UNROLL for (int t = 0; t < count; ++t) {
        Tile &tile = tiles[t];
        if (block < tile.firstBlock || block > tile.lastBlock)
          continue;
        if (tile.queries == 4)
          attendBlock<Element, 4>(tile, params, block, keys, values, nextKeys,
                                  nextValues, headDim, bias);
        else if (tile.queries == 3)
          attendBlock<Element, 3>(tile, params, block, keys, values, nextKeys,
                                  nextValues, headDim, bias);
        else
          attendBlock<Element, 1>(tile, params, block, keys, values, nextKeys,
                                  nextValues, headDim, bias);
      }
    }
    INGOT_NO_UNROLL for (int t = 0; t < count; ++t)
        finishTile(tiles[t], params, headDim, quantization);
  }
}

extern "C" void ingot_attention_f32(const abi::AttentionParams *params,
                                    const abi::Slice *slice, int32_t headDim,
                                    int32_t group, int32_t bits) {
  attention<float>(params, slice, headDim, {group, bits});
}
extern "C" void ingot_attention_f16(const abi::AttentionParams *params,
                                    const abi::Slice *slice, int32_t headDim,
                                    int32_t group, int32_t bits) {
  attention<_Float16>(params, slice, headDim, {group, bits});
}
extern "C" void ingot_attention_i8(const abi::AttentionParams *params,
                                   const abi::Slice *slice, int32_t headDim,
                                   int32_t group, int32_t bits) {
  attention<int8_t>(params, slice, headDim, {group, bits});
}

template <typename Element>
INGOT_INLINE void alibiAttention(const abi::AlibiAttentionParams *params,
                                 const abi::Slice *slice, int32_t headDim,
                                 Quantization quantization) {
  attention<Element>(
      &params->attention, slice, headDim, quantization,
      Alibi{params->slopes, params->attention.scale, params->rounded != 0});
}
extern "C" void
ingot_alibi_attention_f32(const abi::AlibiAttentionParams *params,
                          const abi::Slice *slice, int32_t headDim,
                          int32_t group, int32_t bits) {
  alibiAttention<float>(params, slice, headDim, {group, bits});
}
extern "C" void
ingot_alibi_attention_f16(const abi::AlibiAttentionParams *params,
                          const abi::Slice *slice, int32_t headDim,
                          int32_t group, int32_t bits) {
  alibiAttention<_Float16>(params, slice, headDim, {group, bits});
}
extern "C" void
ingot_alibi_attention_i8(const abi::AlibiAttentionParams *params,
                         const abi::Slice *slice, int32_t headDim,
                         int32_t group, int32_t bits) {
  alibiAttention<int8_t>(params, slice, headDim, {group, bits});
}
