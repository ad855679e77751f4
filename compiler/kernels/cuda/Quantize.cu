// quantize: float32 rows to half rows.
#include "compiler/kernels/cuda/RowBlock.h"

using namespace ingot;
using namespace ingot::device;

INGOT_KERNEL(INGOT_NAME, abi::QuantizeParams, abi::kRowThreads) {
  SharedMemory memory;
  float *scratch = takeRowScratch(memory);
  const int32_t row = (int32_t)blockIdx.x;
  const float *x = params.input + (int64_t)row * params.width;
  writeRow([=](int32_t k) { return x[k]; }, row, params.width, nullptr,
           params.quantized, scratch);
}
