// sample: the token of a row of logits. First the most likely one; then, with noise,
// each token that may still beat what its thread has seen: most are ruled out by bounds
// that need no logarithm, as in runtime/sample/Sampler.cpp.
#include "compiler/kernels/cuda/Device.h"
// The builtins of Power.h are defined by Device.h.
#include "compiler/kernels/Power.h"
#include "runtime/plan/CudaAbi.h"

using namespace ingot;
using namespace ingot::device;

constexpr int32_t kWarps = abi::kRowThreads / 32;

// The noise of runtime/sample/Noise.h.
INGOT_DEVICE uint64_t noiseBits(uint64_t key, uint64_t token) {
  uint64_t x = key + token * 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
INGOT_DEVICE uint64_t noiseKey(uint64_t seed, uint64_t position) {
  return noiseBits(noiseBits(0x6a09e667f3bcc909ull, seed), position);
}
INGOT_DEVICE double noiseUniform(uint64_t bits) {
  return ((double)(bits >> 12) + 0.5) * 0x1p-52;
}
// 1 - u is exact.
INGOT_DEVICE double gumbel(double uniform) {
  return -kernels::logLaw(-kernels::logLaw(1.0 - uniform));
}
constexpr double kMaxGumbel = 36.8;

// A token and what it is judged by; of equal values the lower token is the better one.
struct Best {
  double value;
  int32_t token; // -1: none
};
INGOT_DEVICE Best better(Best a, Best b) {
  if (a.token < 0 || b.token < 0)
    return a.token < 0 ? b : a;
  if (a.value != b.value)
    return a.value > b.value ? a : b;
  return a.token < b.token ? a : b;
}
// Over the block; every thread gets it. `scratch` is used once.
INGOT_DEVICE Best blockBest(Best best, double *values, int32_t *tokens) {
  for (int32_t apart = 16; apart > 0; apart /= 2)
    best = better(best, {__shfl_xor_sync(kAllLanes, best.value, apart),
                         __shfl_xor_sync(kAllLanes, best.token, apart)});
  __syncthreads(); // what others still read of it
  if (laneOf() == 0) {
    values[warpOf()] = best.value;
    tokens[warpOf()] = best.token;
  }
  __syncthreads();
  for (int32_t warp = 0; warp < kWarps; ++warp)
    best = better(best, {values[warp], tokens[warp]});
  return best;
}

INGOT_KERNEL(INGOT_NAME, abi::CudaSampleParams, abi::kRowThreads) {
  SharedMemory memory;
  double *values = memory.take<double>(kWarps);
  int32_t *tokens = memory.take<int32_t>(kWarps);
  const float *logits = params.logits + (int64_t)blockIdx.x * params.vocab;
  const abi::SampleRow row = params.rows[blockIdx.x];

  Best top = {0.0, -1};
  int32_t isNan = 0;
  for (int32_t token = (int32_t)threadIdx.x; token < params.vocab;
       token += abi::kRowThreads) {
    const float logit = logits[token];
    isNan |= logit != logit;
    top = better(top, {(double)logit, token});
  }
  isNan = __syncthreads_or(isNan);
  top = blockBest(top, values, tokens);
  int32_t chosen = isNan || top.value == -(double)infinity() ? -1 : top.token;
  const bool isFinite = (bitsOf((float)top.value) & 0x7fffffffu) < 0x7f800000u;
  if (!isNan && row.inverseTemperature != 0.0 && isFinite) {
    const uint64_t key = noiseKey(row.seed, (uint64_t)row.position);
    Best best = {top.value * row.inverseTemperature +
                     gumbel(noiseUniform(noiseBits(key, (uint64_t)top.token))),
                 top.token};
    for (int32_t token = (int32_t)threadIdx.x; token < params.vocab;
         token += abi::kRowThreads) {
      const double scaled = (double)logits[token] * row.inverseTemperature;
      const double needed = best.value - scaled; // the noise must reach this
      if (token == top.token || needed > kMaxGumbel)
        continue;
      const double uniform = noiseUniform(noiseBits(key, (uint64_t)token));
      // gumbel(u) >= needed only where u <= exp(-needed).
      if ((needed > 1.0 && uniform > 0.3678794411714424) ||
          (needed > 4.0 && uniform > 0.018315638888734179) ||
          (needed > 8.0 && uniform > 0.00033546262790251186))
        continue;
      best = better(best, {scaled + gumbel(uniform), token});
    }
    chosen = blockBest(best, values, tokens).token;
  }
  if (threadIdx.x == 0)
    params.tokens[blockIdx.x] = chosen;
}
