// A tile of expert_linear: `linear` over the rows of one expert. Block y of the grid is
// the y-th tile of tokens, counted expert by expert; every warp finds it by itself in
// where the experts' rows begin, 32 experts at a time.
#pragma once

#include "compiler/kernels/cuda/Linear.h"
#include "runtime/plan/CudaExpertsAbi.h"

namespace ingot::device {

// Makes `own` the product of one expert and `block` a tile of it; false where the block
// has nothing to do.
INGOT_DEVICE bool takeExpert(const abi::ExpertLinearParams &params,
                             abi::LinearParams &own, LinearBlock &block) {
  const int32_t slots = params.linear.numTokens;
  const int32_t *begins = params.order + 2 * slots;
  // A plan may name a buffer that no order_slots has written.
  auto beginOf = [&](int32_t e) { return least(most(begins[e], 0), slots); };
  int32_t left = (int32_t)blockIdx.y; // tiles before the one that is looked for
  for (int32_t first = 0; first < params.experts; first += 32) {
    const int32_t expert = first + laneOf();
    const bool exists = expert < params.experts;
    const int32_t begin = exists ? beginOf(expert) : 0;
    const int32_t count = exists ? most(beginOf(expert + 1) - begin, 0) : 0;
    const int32_t tiles = divideUp(count, kTileTokens);
    int32_t end = tiles; // tiles of the experts up to this lane's
    for (int32_t apart = 1; apart < 32; apart *= 2) {
      const int32_t other = __shfl_up_sync(kAllLanes, end, apart);
      end += laneOf() >= apart ? other : 0;
    }
    const uint32_t found = __ballot_sync(kAllLanes, end > left);
    if (found == 0) {
      left -= __shfl_sync(kAllLanes, end, 31);
      continue;
    }
    const int32_t lane = __popc((found & (0u - found)) - 1u); // the lowest
    const int32_t firstRow = __shfl_sync(kAllLanes, begin, lane);
    const int64_t number = first + lane;
    own = params.linear;
    own.numTokens = __shfl_sync(kAllLanes, count, lane);
    own.quantized.data += firstRow * own.quantized.rowBytes;
    own.output += firstRow * own.outputStride;
    own.weights.codes =
        (const uint8_t *)own.weights.codes +
        number * (own.n / abi::kMmaRows) * abi::cudaTileBytes(kCode, own.k);
    if constexpr (kInteger) {
      const int64_t plane = number * own.n * abi::cudaGroups(own.k, kGroup);
      own.weights.scales += plane;
      if constexpr (kMinimum)
        own.weights.mins += plane;
    }
    block = blockOfLinear(own);
    block.firstToken =
        (left - __shfl_sync(kAllLanes, end - tiles, lane)) * kTileTokens;
    return true;
  }
  return false;
}

} // namespace ingot::device

#undef INGOT_LINEAR
#define INGOT_LINEAR(MULTIPLY)                                                 \
  INGOT_KERNEL(INGOT_NAME, abi::ExpertLinearParams, kThreads) {                \
    abi::LinearParams own;                                                     \
    LinearBlock block;                                                         \
    if (takeExpert(params, own, block))                                        \
      MULTIPLY(own, block);                                                    \
  }
