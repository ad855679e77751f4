// attention_split: at most 16 rows of queries and one segment of the keys. The law,
// which Attention.cu keeps too:
//
//   for each step of kStep tokens, ascending:
//     score = mma over d ascending, from 0; times scale, soft cap
//     M' = max(M, scores);  a = exp(M - M')
//     p  = float16(exp(score - M'))
//     S  = mma of p and ones over the tokens ascending, from S * a
//     V  = mma of p and the values over the tokens ascending, from V * a
//   segments of 256 tokens: (M, S, V) from (-inf, 0, 0), merged in ascending order as
//   in docs/numerics.md
//
// The four warps share a step: tokens of the scores, then elements of the values.
#include "compiler/kernels/cuda/KvTile.h"

using namespace ingot;
using namespace ingot::device;

constexpr int32_t kWarps = kThreads / 32;
constexpr int32_t kWarpTokens = kStep / kWarps;
constexpr int32_t kScoreColumns = kWarpTokens / 8;
constexpr int32_t kProbStride = kStep + 8;
// Pieces of 16 elements of the values that a warp takes, every fourth.
constexpr int32_t kPieces = (kDimSteps + kWarps - 1) / kWarps;

INGOT_KERNEL(INGOT_NAME, abi::CudaAttentionParams, kThreads) {
  SharedMemory memory;
  uint16_t *keys = memory.take<uint16_t>(kStages * kStep * kStride);
  uint16_t *values = memory.take<uint16_t>(kStages * kStep * kStride);
  uint16_t *queries = memory.take<uint16_t>(16 * kStride);
  uint16_t *probs = memory.take<uint16_t>(16 * kProbStride);
  float *largest = memory.take<float>(kWarps * 16);
  const AttentionBlock block = blockOfAttention(params);
  if (block.tile.numQueries == 0 || (int32_t)blockIdx.y >= block.tile.numSplits)
    return;
  const int32_t split = block.tile.firstSplit + (int32_t)blockIdx.y;
  const int32_t warp = warpOf();
  const int32_t lane = laneOf();
  const int32_t begin =
      most(split * abi::kSegmentTokens, block.firstVisible) / kStep * kStep;
  const int32_t end =
      least((split + 1) * abi::kSegmentTokens, block.lastVisible + 1);

  auto issue = [&](int32_t first) {
    const int32_t stage = first / kStep % kStages * kStep * kStride;
    if (first < end)
      loadKeyValues(params, block, first, keys + stage, values + stage);
    commitCopies();
  };
  for (int32_t stage = 0; stage < kStages - 1; ++stage)
    issue(begin + stage * kStep);
  loadQueries(params, block, queries, 16);

  const AttentionRow rows[2] = {rowOf(block, lane / 4, params.window),
                                rowOf(block, lane / 4 + 8, params.window)};
  float M[2] = {-infinity(), -infinity()};
  float sums[4] = {};
  float out[kPieces][2][4] = {};
  INGOT_NO_UNROLL
  for (int32_t first = begin; first < end; first += kStep) {
    const int32_t stage = first / kStep % kStages * kStep * kStride;
    if constexpr (kStages == 1) {
      __syncthreads(); // all have left the step before
      issue(first);
      waitCopies<0>();
      convertKeyValues(keys + stage, values + stage);
      __syncthreads();
    } else {
      waitCopies<kStages - 2>();
      convertKeyValues(keys + stage, values + stage);
      __syncthreads(); // the copies of all; and all have left the step before
      issue(first + (kStages - 1) * kStep);
    }

    float score[2][4] = {};
    const int32_t firstToken = warp * kWarpTokens;
    INGOT_UNROLL
    for (int32_t step = 0; step < kDimSteps; ++step) {
      uint32_t a[4], b[4];
      loadOperandA(a, queries, kStride, 0, step * 16);
      // With eight tokens a warp reads its own and those of the warp beside it.
      loadKeyOperands(b, keys + stage, firstToken / 16 * 16, step * 16);
      if constexpr (kScoreColumns == 2) {
        mmaF16(score[0], a, b[0], b[1]);
        mmaF16(score[1], a, b[2], b[3]);
      } else {
        const bool isSecond = firstToken % 16 != 0;
        mmaF16(score[0], a, isSecond ? b[2] : b[0], isSecond ? b[3] : b[1]);
      }
    }
    float m[2] = {-infinity(), -infinity()};
    INGOT_UNROLL
    for (int32_t n = 0; n < kScoreColumns; ++n) {
      INGOT_UNROLL
      for (int32_t i = 0; i < 4; ++i) {
        score[n][i] = scoreOf(params, score[n][i],
                              first + firstToken + n * 8 + lane % 4 * 2 + i % 2,
                              rows[i / 2]);
        m[i / 2] = fmaxf(m[i / 2], score[n][i]);
      }
    }
    INGOT_UNROLL
    for (int32_t i = 0; i < 2; ++i) {
      m[i] = fmaxf(m[i], __shfl_xor_sync(kAllLanes, m[i], 1));
      m[i] = fmaxf(m[i], __shfl_xor_sync(kAllLanes, m[i], 2));
      if (lane % 4 == 0)
        largest[warp * 16 + lane / 4 + i * 8] = m[i];
    }
    __syncthreads();
    float a[2];
    INGOT_UNROLL
    for (int32_t i = 0; i < 2; ++i) {
      float next = M[i];
      INGOT_UNROLL
      for (int32_t other = 0; other < kWarps; ++other)
        next = fmaxf(next, largest[other * 16 + lane / 4 + i * 8]);
      a[i] = expUnder(M[i], next);
      M[i] = next;
    }
    INGOT_UNROLL
    for (int32_t n = 0; n < kScoreColumns; ++n) {
      INGOT_UNROLL
      for (int32_t i = 0; i < 2; ++i)
        *(uint32_t *)(probs + (lane / 4 + i * 8) * kProbStride + firstToken +
                      n * 8 + lane % 4 * 2) =
            packHalves(expUnder(score[n][2 * i], M[i]),
                       expUnder(score[n][2 * i + 1], M[i]));
    }
    __syncthreads();

    INGOT_UNROLL
    for (int32_t i = 0; i < 4; ++i) {
      sums[i] = sums[i] * a[i / 2];
      INGOT_UNROLL
      for (int32_t piece = 0; piece < kPieces; ++piece) {
        out[piece][0][i] = out[piece][0][i] * a[i / 2];
        out[piece][1][i] = out[piece][1][i] * a[i / 2];
      }
    }
    INGOT_UNROLL
    for (int32_t step = 0; step < kStep / 16; ++step) {
      uint32_t p[4];
      loadOperandA(p, probs, kProbStride, 0, step * 16);
      mmaF16(sums, p, 0x3c003c00u, 0x3c003c00u);
      INGOT_UNROLL
      for (int32_t piece = 0; piece < kPieces; ++piece)
        if (piece * kWarps + warp < kDimSteps) {
          uint32_t b[4];
          loadValueOperands(b, values + stage, step * 16,
                            (piece * kWarps + warp) * 16);
          mmaF16(out[piece][0], p, b[0], b[1]);
          mmaF16(out[piece][1], p, b[2], b[3]);
        }
    }
  }
  INGOT_UNROLL
  for (int32_t i = 0; i < 2; ++i) {
    if (!rows[i].exists)
      continue;
    const int64_t at =
        (int64_t)(block.tile.firstSlot + rows[i].query * block.tile.numSplits +
                  (int32_t)blockIdx.y) *
            params.heads +
        rows[i].head;
    if (warp == 0 && lane % 4 == 0) {
      params.partialStats[at * 2] = M[i];
      params.partialStats[at * 2 + 1] = sums[2 * i];
    }
    INGOT_UNROLL
    for (int32_t piece = 0; piece < kPieces; ++piece) {
      INGOT_UNROLL
      for (int32_t j = 0; j < 4; ++j) {
        const int32_t d =
            (piece * kWarps + warp) * 16 + j / 2 * 8 + lane % 4 * 2 + j % 2;
        if (d < kHeadDim)
          params.partialValues[at * kHeadDim + d] =
              out[piece][j / 2][2 * i + j % 2];
      }
    }
  }
}
