// What follows the sum of a linear operator: bias, then residual, then the store
// of 16 output rows for one token.
#pragma once

#include "compiler/kernels/cpu/Simd.h"
#include "runtime/plan/KernelAbi.h"

namespace ingot::kernels {

// totals[t] is of token `token + t`.
INGOT_INLINE void storeOutputs(const abi::LinearParams &params, int32_t tile,
                               int32_t token, const VecF *totals, int tokens) {
  const int32_t first = tile * kLanes;
  const int32_t rows = params.n - first;
  INGOT_NO_UNROLL for (int t = 0; t < tokens; ++t, ++token) {
    VecF total = totals[t];
    if (params.bias)
      total = total + loadSome(params.bias + first, rows);
    if (params.residual)
      total = total +
              loadSome(params.residual + token * params.residualStride + first,
                       rows);
    storeSome(params.output + token * params.outputStride + first, total, rows);
  }
}

} // namespace ingot::kernels
