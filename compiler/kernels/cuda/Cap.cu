// cap: a scale, then the soft cap.
#include "compiler/kernels/cuda/Device.h"
// The builtins of Exp.h are defined by Device.h.
#include "compiler/kernels/Exp.h"
#include "runtime/plan/CudaAbi.h"

using namespace ingot;

INGOT_KERNEL(INGOT_NAME, abi::CapParams, abi::kRowThreads) {
  const int64_t begin = (int64_t)blockIdx.x * params.width;
  for (int32_t k = (int32_t)threadIdx.x; k < params.width;
       k += abi::kRowThreads) {
    const float x = params.input[begin + k];
    const float y = params.scale == 1.0f ? x : x * params.scale;
    params.output[begin + k] =
        params.softCap == 0.0f ? y : kernels::softCapLaw(y, params.softCap);
  }
}
