// library_finish: what `linear` makes of its sums (Linear.h), of those that a library
// has made: one block for each token.
#include "compiler/kernels/cuda/Device.h"
#include "runtime/plan/CudaLibraryAbi.h"

using namespace ingot;
using namespace ingot::device;

INGOT_KERNEL(INGOT_NAME, abi::CudaFinishParams, abi::kRowThreads) {
  const abi::LinearParams &linear = params.linear;
  const int64_t token = blockIdx.x;
  const float scale = *(const float *)(linear.quantized.data +
                                       token * linear.quantized.rowBytes +
                                       linear.quantized.scalesOffset);
  const float *sums = params.sums + token * params.sumsStride;
  for (int32_t row = (int32_t)threadIdx.x; row < linear.n;
       row += abi::kRowThreads) {
    float y = sums[row] * scale;
    if (linear.bias)
      y = y + linear.bias[row];
    if (linear.residual)
      y = y + linear.residual[token * linear.residualStride + row];
    linear.output[token * linear.outputStride + row] = y;
  }
}
