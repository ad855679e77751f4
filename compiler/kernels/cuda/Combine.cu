// combine: a block for each token adds what its experts gave, each times its
// probability, in the order of the token's choice.
#include "compiler/kernels/cuda/Device.h"
#include "runtime/plan/CudaExpertsAbi.h"

using namespace ingot;
using namespace ingot::device;

INGOT_KERNEL(INGOT_NAME, abi::CombineParams, abi::kRowThreads) {
  const int32_t token = (int32_t)blockIdx.x;
  const int32_t topK = params.topK;
  const int32_t slots = params.numTokens * topK;
  const int32_t *rows = params.order + slots + token * topK;
  const float *probabilities = params.routes + (int64_t)token * 2 * topK + topK;
  for (int32_t k = (int32_t)threadIdx.x; k < params.width;
       k += abi::kRowThreads) {
    float sum = 0.0f;
    for (int32_t j = 0; j < topK; ++j) {
      const int64_t row = least(most(rows[j], 0), slots - 1);
      const float value = params.input[row * params.width + k];
      sum = j == 0 ? value * probabilities[0]
                   : __builtin_fmaf(value, probabilities[j], sum);
    }
    params.output[(int64_t)token * params.width + k] = sum;
  }
}
