// gated: act(gate) * up, of rows that hold the gate first.
#include "compiler/kernels/cuda/Activation.h"
#include "compiler/kernels/cuda/RowBlock.h"

using namespace ingot;
using namespace ingot::device;

INGOT_KERNEL(INGOT_NAME, abi::GatedParams, abi::kRowThreads) {
  SharedMemory memory;
  float *scratch = takeRowScratch(memory);
  const int32_t width = params.width;
  const int32_t row = (int32_t)blockIdx.x;
  const float *gate = params.gateUp + (int64_t)row * 2 * width;
  const float *up = gate + width;
  writeRow([=](int32_t k) { return activated(gate[k]) * up[k]; }, row, width,
           params.output, params.quantized, scratch);
}
