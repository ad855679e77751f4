// layer_norm: the mean, then the mean of squares around it, each summed as in
// RmsNorm.cu.
#include "compiler/kernels/cuda/RowBlock.h"

using namespace ingot;
using namespace ingot::device;

INGOT_KERNEL(INGOT_NAME, abi::LayerNormParams, abi::kRowThreads) {
  SharedMemory memory;
  float *scratch = takeRowScratch(memory);
  const int32_t width = params.width;
  const int32_t row = (int32_t)blockIdx.x;
  const float *x = params.input + (int64_t)row * width;
  float sum = 0.0f;
  for (int32_t k = (int32_t)threadIdx.x; k < width; k += abi::kRowThreads)
    sum = sum + x[k];
  const float mean = blockSum<0>(sum, scratch) / (float)width;
  float squares = 0.0f;
  for (int32_t k = (int32_t)threadIdx.x; k < width; k += abi::kRowThreads)
    squares = __builtin_fmaf(x[k] - mean, x[k] - mean, squares);
  const float variance = blockSum<1>(squares, scratch) / (float)width;
  const float r = 1.0f / sqrtf(variance + params.eps);
  const float *weight = params.weight;
  const float *bias = params.bias;
  writeRow(
      [=](int32_t k) {
        const float y = ((x[k] - mean) * r) * weight[k];
        return bias ? y + bias[k] : y;
      },
      row, width, params.output, params.quantized, scratch);
}
