// gather_rows: copies the rows that are named.
#include "compiler/kernels/cuda/Device.h"
#include "runtime/plan/CudaAbi.h"

using namespace ingot;

INGOT_KERNEL(INGOT_NAME, abi::GatherRowsParams, abi::kRowThreads) {
  const int64_t from = (int64_t)params.rows[blockIdx.x] * params.width;
  const int64_t to = (int64_t)blockIdx.x * params.width;
  for (int32_t k = (int32_t)threadIdx.x; k < params.width;
       k += abi::kRowThreads)
    params.output[to + k] = params.input[from + k];
}
