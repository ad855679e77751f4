// order_slots: a block for each expert. It counts the slots of the experts before its
// own, then goes through all slots once more and gives its own their rows, in
// ascending order: a ballot says how many of a warp stand before a lane, sums of the
// block's warps the rest. Blocks know nothing of each other.
#include "compiler/kernels/cuda/Device.h"
#include "runtime/plan/CudaExpertsAbi.h"

using namespace ingot;
using namespace ingot::device;

constexpr int32_t kWarps = abi::kRowThreads / 32;

// Of the slot's choice; expert 0 where a plan names a buffer that no route has written.
INGOT_DEVICE int32_t expertOf(const abi::OrderSlotsParams &params,
                              int32_t slot) {
  const float number =
      params.routes[(int64_t)(slot / params.topK) * 2 * params.topK +
                    slot % params.topK];
  return number > 0 && number < (float)params.experts ? (int32_t)number : 0;
}

INGOT_KERNEL(INGOT_NAME, abi::OrderSlotsParams, abi::kRowThreads) {
  SharedMemory memory;
  int32_t *before = memory.take<int32_t>(kWarps);
  int32_t *counts = memory.take<int32_t>(2 * kWarps);
  const int32_t expert = (int32_t)blockIdx.x;
  const int32_t slots = params.numTokens * params.topK;
  int32_t *begins = params.order + 2 * slots;

  int32_t own = 0;
  for (int32_t s = (int32_t)threadIdx.x; s < slots; s += abi::kRowThreads)
    own += expertOf(params, s) < expert;
  own = (int32_t)__reduce_add_sync(kAllLanes, own);
  if (laneOf() == 0)
    before[warpOf()] = own;
  __syncthreads();
  int32_t row = 0; // of the next slot that is this expert's
  for (int32_t warp = 0; warp < kWarps; ++warp)
    row += before[warp];
  if (threadIdx.x == 0) {
    begins[expert] = row;
    if (expert == params.experts - 1)
      begins[params.experts] = slots;
  }

  int32_t turn = 0; // two sets of counts: one barrier a turn
  for (int32_t first = 0; first < slots; first += abi::kRowThreads) {
    const int32_t slot = first + (int32_t)threadIdx.x;
    const bool isOwn = slot < slots && expertOf(params, slot) == expert;
    const uint32_t ballot = __ballot_sync(kAllLanes, isOwn);
    int32_t *count = counts + turn * kWarps;
    if (laneOf() == 0)
      count[warpOf()] = __popc(ballot);
    __syncthreads();
    int32_t place = row + __popc(ballot & ((1u << laneOf()) - 1u));
    for (int32_t warp = 0; warp < kWarps; ++warp) {
      place += warp < warpOf() ? count[warp] : 0;
      row += count[warp];
    }
    if (isOwn) {
      params.order[place] = slot;
      params.order[slots + slot] = place;
    }
    turn = 1 - turn;
  }
}
