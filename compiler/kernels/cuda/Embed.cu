// embed: a row of the table, scaled, for each token; then the bias.
#include "compiler/kernels/cuda/Weights.h"

using namespace ingot;
using namespace ingot::device;

INGOT_KERNEL(INGOT_NAME, abi::EmbedParams, abi::kRowThreads) {
  const int32_t token = params.tokens[blockIdx.x];
  float *output = params.output + (int64_t)blockIdx.x * params.hidden;
  for (int32_t k = (int32_t)threadIdx.x; k < params.hidden;
       k += abi::kRowThreads) {
    const float y =
        weightAt(params.table, token, k, params.hidden) * params.scale;
    output[k] = params.bias ? y + params.bias[k] : y;
  }
}
