// attention_merge: the segments of a row in ascending order, then its half row. A
// thread for each head turns the segments' statistics into the factors of the merge,
// in place; then every element goes through the segments.
#include "compiler/kernels/cuda/MergeSegment.h"
#include "compiler/kernels/cuda/RowBlock.h"

using namespace ingot;
using namespace ingot::device;

INGOT_KERNEL(INGOT_NAME, abi::CudaAttentionMergeParams, abi::kRowThreads) {
  SharedMemory memory;
  float *scratch = takeRowScratch(memory);
  float *inverse = memory.take<float>((uint32_t)params.heads); // of the sums
  const int32_t row = (int32_t)blockIdx.x;
  const abi::TokenSlots slots = params.tokenSlots[row];
  const int32_t heads = params.heads;
  const int32_t headDim = params.headDim;
  const int32_t width = heads * headDim;
  float *own = params.output + (int64_t)row * width;
  for (int32_t h = (int32_t)threadIdx.x; h < heads; h += abi::kRowThreads) {
    float M = -infinity();
    float S = 0.0f;
    for (int32_t j = 0; j < slots.numSplits; ++j) {
      float *stats = params.partialStats +
                     ((int64_t)(slots.firstSlot + j) * heads + h) * 2;
      const MergeFactors by = mergeSegment(M, S, stats[0], stats[1]);
      stats[0] = by.old;
      stats[1] = by.added;
    }
    inverse[h] = 1.0f / S;
  }
  __syncthreads();
  for (int32_t k = (int32_t)threadIdx.x; k < width; k += abi::kRowThreads) {
    if (slots.numSplits == 0)
      break; // it is there already
    float value = 0.0f;
    const int32_t h = k / headDim;
    for (int32_t j = 0; j < slots.numSplits; ++j) {
      const int64_t slot = slots.firstSlot + j;
      const float *factors = params.partialStats + (slot * heads + h) * 2;
      value =
          __builtin_fmaf(value, factors[0],
                         params.partialValues[slot * width + k] * factors[1]);
    }
    own[k] = slots.numSplits < 0 ? 0.0f : value * inverse[h];
  }
  writeRow([=](int32_t k) { return own[k]; }, row, width, params.output,
           params.quantized, scratch);
}
