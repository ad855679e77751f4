// attention: up to 64 rows of queries and all segments of their keys, by the law of
// AttentionSplit.cu. A warp has 16 rows; with heads above 128 two warps share them and
// take half of the elements each.
#include "compiler/kernels/cuda/KvTile.h"

using namespace ingot;
using namespace ingot::device;

constexpr int32_t kBlockRows = abi::attentionRows(kHeadDim);
constexpr int32_t kDimWarps = kThreads / 32 * 16 / kBlockRows;
constexpr int32_t kPieces = (kDimSteps + kDimWarps - 1) / kDimWarps;
constexpr int32_t kColumns = kStep / 8;

INGOT_KERNEL(INGOT_NAME, abi::CudaAttentionParams, kThreads) {
  SharedMemory memory;
  uint16_t *keys = memory.take<uint16_t>(kStages * kStep * kStride);
  uint16_t *values = memory.take<uint16_t>(kStages * kStep * kStride);
  uint16_t *queries = memory.take<uint16_t>(kBlockRows * kStride);
  const AttentionBlock block = blockOfAttention(params);
  if (block.tile.numQueries == 0)
    return;
  const int32_t lane = laneOf();
  const int32_t firstRow = warpOf() / kDimWarps * 16;
  const int32_t firstPiece = warpOf() % kDimWarps * kPieces;
  const int32_t begin = block.firstVisible / kStep * kStep;
  const int32_t end = block.lastVisible + 1;

  auto issue = [&](int32_t first) {
    const int32_t stage = first / kStep % kStages * kStep * kStride;
    if (first < end)
      loadKeyValues(params, block, first, keys + stage, values + stage);
    commitCopies();
  };
  for (int32_t stage = 0; stage < kStages - 1; ++stage)
    issue(begin + stage * kStep);
  loadQueries(params, block, queries, kBlockRows);

  const AttentionRow rows[2] = {
      rowOf(block, firstRow + lane / 4, params.window),
      rowOf(block, firstRow + lane / 4 + 8, params.window)};
  float M[2] = {-infinity(), -infinity()};
  float sums[4] = {};
  float out[kPieces][2][4] = {};
  float totalM[2] = {-infinity(), -infinity()};
  float totalS[2] = {};
  float total[kPieces][2][4] = {};
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

    float score[kColumns][4] = {};
    INGOT_UNROLL
    for (int32_t step = 0; step < kDimSteps; ++step) {
      uint32_t a[4];
      loadOperandA(a, queries, kStride, firstRow, step * 16);
      INGOT_UNROLL
      for (int32_t n = 0; n < kColumns; n += 2) {
        uint32_t b[4];
        loadKeyOperands(b, keys + stage, n * 8, step * 16);
        mmaF16(score[n], a, b[0], b[1]);
        mmaF16(score[n + 1], a, b[2], b[3]);
      }
    }
    float next[2] = {M[0], M[1]};
    INGOT_UNROLL
    for (int32_t n = 0; n < kColumns; ++n) {
      INGOT_UNROLL
      for (int32_t i = 0; i < 4; ++i) {
        score[n][i] =
            scoreOf(params, score[n][i], first + n * 8 + lane % 4 * 2 + i % 2,
                    rows[i / 2]);
        next[i / 2] = fmaxf(next[i / 2], score[n][i]);
      }
    }
    float a[2];
    INGOT_UNROLL
    for (int32_t i = 0; i < 2; ++i) {
      next[i] = fmaxf(next[i], __shfl_xor_sync(kAllLanes, next[i], 1));
      next[i] = fmaxf(next[i], __shfl_xor_sync(kAllLanes, next[i], 2));
      a[i] = expUnder(M[i], next[i]);
      M[i] = next[i];
    }
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
      INGOT_UNROLL
      for (int32_t r = 0; r < 4; ++r) {
        const float *pair = &score[2 * step + r / 2][r % 2 * 2];
        p[r] = packHalves(expUnder(pair[0], M[r % 2]),
                          expUnder(pair[1], M[r % 2]));
      }
      mmaF16(sums, p, 0x3c003c00u, 0x3c003c00u);
      INGOT_UNROLL
      for (int32_t piece = 0; piece < kPieces; ++piece)
        if (kDimSteps % kDimWarps == 0 || firstPiece + piece < kDimSteps) {
          uint32_t b[4];
          loadValueOperands(b, values + stage, step * 16,
                            (firstPiece + piece) * 16);
          mmaF16(out[piece][0], p, b[0], b[1]);
          mmaF16(out[piece][1], p, b[2], b[3]);
        }
    }

    if ((first + kStep) % abi::kSegmentTokens == 0 || first + kStep >= end) {
      INGOT_UNROLL
      for (int32_t i = 0; i < 2; ++i) {
        const MergeFactors by =
            mergeSegment(totalM[i], totalS[i], M[i], sums[2 * i]);
        INGOT_UNROLL
        for (int32_t piece = 0; piece < kPieces; ++piece) {
          INGOT_UNROLL
          for (int32_t j = 0; j < 4; ++j) {
            float &to = total[piece][j / 2][2 * i + j % 2];
            float &from = out[piece][j / 2][2 * i + j % 2];
            to = __builtin_fmaf(to, by.old, from * by.added);
            from = 0.0f;
          }
        }
        M[i] = -infinity();
      }
      sums[0] = sums[1] = sums[2] = sums[3] = 0.0f;
    }
  }
  INGOT_UNROLL
  for (int32_t i = 0; i < 2; ++i) {
    if (!rows[i].exists)
      continue;
    const float inverse = 1.0f / totalS[i];
    float *output =
        params.output +
        ((int64_t)(block.tile.firstRow + rows[i].query) * params.heads +
         rows[i].head) *
            kHeadDim;
    INGOT_UNROLL
    for (int32_t piece = 0; piece < kPieces; ++piece) {
      INGOT_UNROLL
      for (int32_t j = 0; j < 4; ++j) {
        const int32_t d =
            (firstPiece + piece) * 16 + j / 2 * 8 + lane % 4 * 2 + j % 2;
        if (d < kHeadDim)
          output[d] = total[piece][j / 2][2 * i + j % 2] * inverse;
      }
    }
  }
}
