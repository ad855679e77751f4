// rope_table: cosines and sines of a row's position by the law of SinCos.h.
#include "compiler/kernels/cuda/Device.h"
// The builtins of these headers are defined by Device.h.
#include "compiler/kernels/Power.h"
#include "compiler/kernels/SinCos.h"
#include "runtime/plan/CudaAbi.h"

using namespace ingot;

INGOT_KERNEL(INGOT_NAME, abi::RopeTableParams, abi::kRowThreads) {
  const int32_t row = (int32_t)blockIdx.x;
  const int32_t half = params.rotaryDim / 2;
  const int32_t position = params.positions[row];
  const float *invFreq = params.invFreq;
  bool isComputed = false;
  kernels::DynamicBase base = {};
  if (params.scaling == abi::RopeScaling::Listed) {
    if (params.rotaryLengths[row] > params.original)
      invFreq += half;
  } else if (params.scaling == abi::RopeScaling::Dynamic) {
    const int32_t length =
        device::most(params.rotaryLengths[row], position + 1);
    isComputed = length > params.original;
    if (isComputed)
      base = kernels::dynamicBase(params.theta, params.factor, params.original,
                                  length, half);
  }
  float *cosines = params.output + (int64_t)row * params.rotaryDim;
  for (int32_t i = (int32_t)threadIdx.x; i < half; i += abi::kRowThreads) {
    const float frequency =
        isComputed ? kernels::dynamicFrequency(base, i) : invFreq[i];
    const float angle = (float)position * frequency;
    const kernels::SinCos both = kernels::sinCosLaw((double)angle);
    cosines[i] = (float)(both.cosine * (double)params.attentionFactor);
    cosines[half + i] = (float)(both.sine * (double)params.attentionFactor);
  }
}
