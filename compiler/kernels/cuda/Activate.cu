// activate: act(input); the output may be the input.
#include "compiler/kernels/cuda/Activation.h"
#include "compiler/kernels/cuda/RowBlock.h"

using namespace ingot;
using namespace ingot::device;

INGOT_KERNEL(INGOT_NAME, abi::ActivateParams, abi::kRowThreads) {
  SharedMemory memory;
  float *scratch = takeRowScratch(memory);
  const int32_t row = (int32_t)blockIdx.x;
  const float *x = params.input + (int64_t)row * params.width;
  writeRow([=](int32_t k) { return activated(x[k]); }, row, params.width,
           params.output, params.quantized, scratch);
}
