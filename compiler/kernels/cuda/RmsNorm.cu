// rms_norm: y = x / sqrt(mean(x^2) + eps) * weight. A thread sums the squares of
// every 256th element, ascending, with fma; then warps and blocks (RowBlock.h).
#include "compiler/kernels/cuda/RowBlock.h"

using namespace ingot;
using namespace ingot::device;

INGOT_KERNEL(INGOT_NAME, abi::RmsNormParams, abi::kRowThreads) {
  SharedMemory memory;
  float *scratch = takeRowScratch(memory);
  const int32_t width = params.width;
  const int32_t row = (int32_t)blockIdx.x;
  const float *x = params.input + (int64_t)row * width;
  float squares = 0.0f;
  for (int32_t k = (int32_t)threadIdx.x; k < width; k += abi::kRowThreads)
    squares = __builtin_fmaf(x[k], x[k], squares);
  const float sum = blockSum<0>(squares, scratch);
  const float r = 1.0f / sqrtf(sum / (float)width + params.eps);
  const float *weight = params.weight;
  const float offset = params.weightOffset;
  writeRow(
      [=](int32_t k) {
        return (x[k] * r) * (offset == 0.0f ? weight[k] : weight[k] + offset);
      },
      row, width, params.output, params.quantized, scratch);
}
