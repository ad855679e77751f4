// dispatch: a copy of a token's row for each of its experts, in the order of the
// slots: of float32 rows, of half rows, or of both.
#include "compiler/kernels/cuda/Device.h"
#include "runtime/plan/CudaExpertsAbi.h"

using namespace ingot;
using namespace ingot::device;

INGOT_DEVICE void copyHalves(uint8_t *to, const uint8_t *from, int32_t bytes) {
  for (int32_t at = (int32_t)threadIdx.x * 16; at < bytes;
       at += abi::kRowThreads * 16)
    storeWords4(to + at, loadWords4(from + at));
}

INGOT_KERNEL(INGOT_NAME, abi::CudaDispatchParams, abi::kRowThreads) {
  const int64_t row = (int64_t)blockIdx.x;
  const int32_t slot = least(most(params.order[row], 0), params.numSlots - 1);
  const int64_t token = slot / params.topK;
  if (params.output)
    for (int32_t k = (int32_t)threadIdx.x; k < params.width;
         k += abi::kRowThreads)
      params.output[row * params.width + k] =
          params.input[token * params.width + k];
  if (params.to.data) {
    const uint8_t *from = params.from.data + token * params.from.rowBytes;
    uint8_t *to = params.to.data + row * params.to.rowBytes;
    const int32_t bytes = 2 * (int32_t)abi::cudaPaddedK(params.width);
    copyHalves(to, from, bytes);
    if (params.to.sumsOffset) // rows of two parts
      copyHalves(to + params.to.sumsOffset, from + params.from.sumsOffset,
                 bytes);
    if (threadIdx.x == 0)
      *(float *)(to + params.to.scalesOffset) =
          *(const float *)(from + params.from.scalesOffset);
  }
}
