// linear for up to 32 tokens: a block has 32 rows; its four warps take units (or
// groups) of K in turn, each from a ring of stages of its own. After each round the
// warps' sums go through shared memory, and the threads that keep the totals add them
// in ascending order of K.
#include "compiler/kernels/cuda/Linear.h"

using namespace ingot;
using namespace ingot::device;

constexpr int32_t kColumns = kTileTokens / 8;
constexpr int32_t kVectors = kBlockTiles * kColumns * 32; // of four sums
constexpr int32_t kThreads = abi::kLinearWarps * 32;
constexpr int32_t kOwned = (kVectors + kThreads - 1) / kThreads;

INGOT_DEVICE void multiplySplit(const abi::LinearParams &params,
                                const LinearBlock &block) {
  SharedMemory memory;
  const Stages stages = takeStages(memory);
  float *exchange = memory.take<float>(abi::kLinearWarps * kVectors * 4);
  const int32_t warp = warpOf();
  const int32_t lane = laneOf();
  const int32_t chunks = divideUp(block.units, kGroupUnits);
  const int32_t rounds = divideUp(chunks, abi::kLinearWarps);
  const int32_t numStages = rounds * kGroupUnits;

  auto issue = [&](int32_t stage) {
    if (stage < numStages) {
      const int32_t chunk = stage / kGroupUnits * abi::kLinearWarps + warp;
      const int32_t unit = chunk * kGroupUnits + stage % kGroupUnits;
      copyUnit(params, block, stages, stage % kStages, warp, unit, lane, 32);
    }
    commitCopies();
  };
  for (int32_t stage = 0; stage < kStages - 1; ++stage)
    issue(stage);

  float total[kOwned][4] = {};
  ColumnSums<kBlockTiles> part[kColumns];
  INGOT_UNROLL
  for (int32_t n = 0; n < kColumns; ++n)
    part[n].clear();
  INGOT_NO_UNROLL
  for (int32_t stage = 0; stage < numStages; ++stage) {
    waitCopies<kStages - 2>();
    __syncwarp(); // the copies of all lanes; and all have left the stage before
    issue(stage + kStages - 1);
    UnitWeights<kBlockTiles> weights;
    loadUnit(weights, stages, stage % kStages, warp, 0);
    float u[kColumns][kBlockTiles][4];
    INGOT_UNROLL
    for (int32_t n = 0; n < kColumns; ++n)
      multiplyColumn(u[n], part[n], weights, stages, stage % kStages, warp, n);
    if (stage % kGroupUnits != kGroupUnits - 1)
      continue;

    __syncthreads(); // the owners have read the round before
    INGOT_UNROLL
    for (int32_t n = 0; n < kColumns; ++n) {
      finishColumn(u[n], part[n], weights);
      INGOT_UNROLL
      for (int32_t r = 0; r < kBlockTiles; ++r)
        storeWords4(exchange + ((warp * kBlockTiles + r) * kColumns + n) * 128 +
                        lane * 4,
                    {bitsOf(u[n][r][0]), bitsOf(u[n][r][1]), bitsOf(u[n][r][2]),
                     bitsOf(u[n][r][3])});
    }
    __syncthreads();
    const int32_t firstChunk = stage / kGroupUnits * abi::kLinearWarps;
    INGOT_UNROLL
    for (int32_t i = 0; i < kOwned; ++i) {
      const int32_t vector = (int32_t)threadIdx.x + i * kThreads;
      if (vector < kVectors)
        for (int32_t other = 0; other < abi::kLinearWarps; ++other)
          if (firstChunk + other < chunks) {
            const uint4 words =
                loadWords4(exchange + (other * kVectors + vector) * 4);
            total[i][0] = total[i][0] + floatOf(words.x);
            total[i][1] = total[i][1] + floatOf(words.y);
            total[i][2] = total[i][2] + floatOf(words.z);
            total[i][3] = total[i][3] + floatOf(words.w);
          }
    }
  }
  INGOT_UNROLL
  for (int32_t i = 0; i < kOwned; ++i) {
    const int32_t vector = (int32_t)threadIdx.x + i * kThreads;
    if (vector < kVectors)
      storeBlock(params, block.firstTile + vector / 32 / kColumns,
                 block.firstToken + vector / 32 % kColumns * 8, vector % 32,
                 total[i]);
  }
}

INGOT_LINEAR(multiplySplit)
