// library_linear: float weights of the layout mma16 to plain rows of float16. A warp
// takes a unit of a tile; a lane writes 8 elements of a row side by side, which four
// lanes of the layout hold two each.
#include "compiler/kernels/cuda/Weights.h"
#include "runtime/plan/CudaLibraryAbi.h"

using namespace ingot;
using namespace ingot::device;

INGOT_KERNEL(INGOT_NAME, abi::CudaUnpackParams, abi::kUnpackUnits * 32) {
  const int64_t paddedK = abi::cudaPaddedK(params.k);
  const int64_t unit = (int64_t)blockIdx.y * abi::kUnpackUnits + warpOf();
  if (unit >= paddedK / abi::kCudaUnit)
    return;
  const int32_t lane = laneOf();
  const int32_t half = lane % 2;     // of the 16 elements of a step
  const int32_t high = lane / 2 % 2; // rows 8 to 15
  const int32_t row = lane / 4;
  const uint32_t *from =
      (const uint32_t *)((const uint8_t *)params.codes +
                         (int64_t)blockIdx.x *
                             abi::cudaTileBytes(kCode, params.k) +
                         unit * kUnitBytes);
  uint16_t *to =
      params.output +
      ((int64_t)blockIdx.x * abi::kMmaRows + high * 8 + row) * paddedK +
      unit * abi::kCudaUnit + half * 8;
  INGOT_UNROLL
  for (int32_t step = 0; step < kSteps; ++step) {
    uint32_t pairs[4];
    INGOT_UNROLL
    for (int32_t q = 0; q < 4; ++q) {
      const uint32_t pair =
          from[(step * 32 + row * 4 + q) * 4 + half * 2 + high];
      pairs[q] =
          kCode == abi::CudaCode::F16
              ? pair
              : packHalves(floatOf(pair << 16), floatOf(pair & 0xffff0000u));
    }
    storeWords4(to + step * 16, {pairs[0], pairs[1], pairs[2], pairs[3]});
  }
}
