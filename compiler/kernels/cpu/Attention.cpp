// attention over the paged cache, by the block law of docs/numerics.md. Up to
// four queries of one kv head and one sequence are a tile: they share every load
// of K (tokens as lanes) and of V (elements of the head as lanes). What one query
// sees is its own range of positions; the tile reads a position's V for a query
// only where that query sees it, so that no later token can touch its bits.
#include "compiler/kernels/cpu/Simd.h"
// Simd.h comes first: the templates of Exp.h use its operations.
#include "compiler/kernels/Exp.h"
#include "compiler/kernels/cpu/KvCache.h"
#include "compiler/kernels/cpu/QuantizeRow.h"
#include "runtime/plan/KernelAbi.h"

using namespace ingot;
using namespace ingot::kernels;

static constexpr int kBlock = abi::kBlockTokens;
static constexpr int kTileQueries = 4;

namespace {
struct Item {
  int32_t kvHead;
  int32_t head;
  int32_t token;
  int32_t sequence;
  int32_t position;
  int32_t first; // sees [first, position]
};

template <int Queries> struct alignas(64) TileState {
  float output[Queries][kMaxHeadDim];
  float scores[Queries][kBlock]; // then the weights p of the block
  float maximum[Queries];
  float sum[Queries];
  bool begun[Queries];
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
  return item;
}

// scores[q][j] of the 16 positions from `from`, before mask.
template <typename Element, int Queries>
INGOT_INLINE void scoreHalf(TileState<Queries> &state,
                            const float *const *query, const Element *keys,
                            int32_t headDim, int from, float scale,
                            float softCap) {
  VecF sum[Queries];
  INGOT_UNROLL for (int q = 0; q < Queries; ++q) sum[q] = splat(0.0f);
#pragma clang loop unroll_count(4)
  for (int32_t d = 0; d < headDim; ++d) {
    const VecF k = loadElements(keys + d * kBlock + from);
    INGOT_UNROLL for (int q = 0; q < Queries; ++q) sum[q] =
        fmaOf(splat(query[q][d]), k, sum[q]);
  }
  INGOT_UNROLL for (int q = 0; q < Queries; ++q) {
    VecF score = sum[q] * splat(scale);
    if (softCap != 0.0f)
      score = softCapLaw(score, splat(softCap));
    store(state.scores[q] + from, score);
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

// Runs queries [0, Queries) of the slice's items from `index` on.
template <typename Element, int Queries>
INGOT_INLINE void attendTile(const abi::AttentionParams &params, int32_t index,
                             int32_t headDim, Quantization quantization) {
  TileState<Queries> state;
  Item items[Queries];
  const float *query[Queries];
  int32_t first = 0x7fffffff;
  int32_t last = 0;
  INGOT_UNROLL for (int q = 0; q < Queries; ++q) {
    items[q] = itemAt(params, index + q);
    query[q] =
        params.query +
        (static_cast<int64_t>(items[q].token) * params.heads + items[q].head) *
            headDim;
    first = minOf(first, items[q].first);
    last = maxOf(last, items[q].position);
    state.begun[q] = false;
  }
  const abi::SequenceSpan sequence = params.sequences[items[0].sequence];
  const int64_t headOffset =
      static_cast<int64_t>(items[0].kvHead) * headDim * kBlock;

  INGOT_NO_UNROLL for (int32_t block = first / kBlock; block <= last / kBlock;
                       ++block) {
    const KvBlock<Element> kv =
        blockOf<Element>(params.cache, params.blockTable, sequence, block);
    const Element *keys = kv.keys + headOffset;
    const Element *values = kv.values + headOffset;
    // What each query sees of the block: [low, high); empty where low >= high.
    // All see [commonLow, commonHigh); some see [anyLow, anyHigh).
    int32_t low[Queries], high[Queries];
    int32_t anyLow = kBlock, anyHigh = 0, commonLow = 0, commonHigh = kBlock;
    INGOT_UNROLL for (int q = 0; q < Queries; ++q) {
      low[q] = maxOf(0, items[q].first - block * kBlock);
      high[q] = minOf(kBlock, items[q].position + 1 - block * kBlock);
      if (low[q] < high[q]) {
        anyLow = minOf(anyLow, low[q]);
        anyHigh = maxOf(anyHigh, high[q]);
      } else {
        low[q] = high[q] = 0;
      }
      commonLow = maxOf(commonLow, low[q]);
      commonHigh = minOf(commonHigh, high[q]);
    }
    if (anyLow < kLanes)
      scoreHalf<Element, Queries>(state, query, keys, headDim, 0, params.scale,
                                  params.softCap);
    if (anyHigh > kLanes)
      scoreHalf<Element, Queries>(state, query, keys, headDim, kLanes,
                                  params.scale, params.softCap);

    // Factors that merge the block into the state: old * oldScale + new * newScale.
    // Their exponentials are taken at once, two lanes a query.
    float factors[kLanes];
    store(factors, splat(0.0f));
    BlockSums sums[Queries];
    INGOT_NO_UNROLL for (int q = 0; q < Queries; ++q) {
      if (low[q] >= high[q])
        continue;
      sums[q] = softmaxBlock(state.scores[q], low[q], high[q]);
      if (!state.begun[q])
        continue;
      const float maximum = sums[q].maximum > state.maximum[q]
                                ? sums[q].maximum
                                : state.maximum[q];
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
        store(output, state.begun[q]
                          ? fmaOf(load(output), splat(factors[2 * q]),
                                  value[q] * splat(factors[2 * q + 1]))
                          : value[q]);
      }
    }
    INGOT_UNROLL for (int q = 0; q < Queries; ++q) state.begun[q] |=
        low[q] < high[q];
  }

  INGOT_NO_UNROLL for (int q = 0; q < Queries; ++q) {
    const float inverse = 1.0f / state.sum[q];
    const int32_t column = items[q].head * headDim;
    float *output = params.output ? params.output +
                                        static_cast<int64_t>(items[q].token) *
                                            params.heads * headDim +
                                        column
                                  : nullptr;
    const auto at = [&](int32_t d, int32_t) {
      return load(state.output[q] + d) * splat(inverse);
    };
    if (quantization.group != 0 && params.quantized.data) {
      quantizeRow(rowOf(params.quantized, items[q].token), params.quantized,
                  column, headDim, quantization, output, at);
      continue;
    }
    if (output)
      for (int32_t d = 0; d < headDim; d += kLanes)
        storeSome(output + d, at(d, headDim - d), headDim - d);
  }
}

// Items are taken in runs that share kv head and sequence, up to four at a time.
template <typename Element>
INGOT_INLINE void attention(const abi::AttentionParams *given,
                            const abi::Slice *slice, int32_t headDim,
                            Quantization quantization) {
  const abi::AttentionParams params = *given;
  int32_t index = slice->begin;
  while (index < slice->end) {
    const Item head = itemAt(params, index);
    int32_t run = 1;
    while (run < kTileQueries && index + run < slice->end) {
      const Item next = itemAt(params, index + run);
      if (next.kvHead != head.kvHead || next.sequence != head.sequence)
        break;
      ++run;
    }
    if (run == 4) {
      attendTile<Element, 4>(params, index, headDim, quantization);
    } else if (run == 3) {
      attendTile<Element, 3>(params, index, headDim, quantization);
    } else {
      for (int32_t q = 0; q < run; ++q)
        attendTile<Element, 1>(params, index + q, headDim, quantization);
    }
    index += run;
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
