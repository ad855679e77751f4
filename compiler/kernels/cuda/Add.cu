// add: residual + update * scale.
#include "compiler/kernels/cuda/Device.h"
#include "runtime/plan/CudaAbi.h"

using namespace ingot;

INGOT_KERNEL(INGOT_NAME, abi::AddParams, abi::kRowThreads) {
  const int64_t begin = (int64_t)blockIdx.x * params.width;
  for (int32_t k = (int32_t)threadIdx.x; k < params.width;
       k += abi::kRowThreads) {
    const float update = params.update[begin + k];
    params.output[begin + k] =
        params.residual[begin + k] +
        (params.scale == 1.0f ? update : update * params.scale);
  }
}
