// route: a warp for each token. The law of docs/numerics.md, "Experts": the sum over 16
// lanes, then the largest logits one after another, of equal ones the first expert.
// Every lane looks at each 32nd expert; the warp takes the best of their choices.
#include "compiler/kernels/cuda/Device.h"
// The builtins of Exp.h are defined by Device.h.
#include "compiler/kernels/Exp.h"
#include "runtime/plan/CudaExpertsAbi.h"

using namespace ingot;
using namespace ingot::device;

INGOT_KERNEL(INGOT_NAME, abi::CudaRouteParams, 32) {
  const int32_t token = (int32_t)blockIdx.x;
  const int32_t experts = params.experts;
  const int32_t lane = laneOf();
  // A padding row chooses as row 0 does.
  const int32_t row = params.tokenSequence[token] < 0 ? 0 : token;
  const float *logits = params.logits + (int64_t)row * experts;
  float *numbers = params.routes + (int64_t)token * 2 * params.topK;
  float *probabilities = numbers + params.topK;

  float largest = logits[0];
  for (int32_t e = lane; e < experts; e += 32)
    largest = logits[e] > largest ? logits[e] : largest;
  for (int32_t apart = 16; apart > 0; apart /= 2) {
    const float other = __shfl_xor_sync(kAllLanes, largest, apart);
    largest = other > largest ? other : largest;
  }
  // Both halves of the warp make the same 16 sums.
  float sum = 0.0f;
  for (int32_t e = lane % 16; e < experts; e += 16)
    sum = sum + kernels::expLaw(logits[e] - largest);
  for (int32_t apart = 8; apart > 0; apart /= 2)
    sum = sum + __shfl_xor_sync(kAllLanes, sum, apart);

  const bool isLost = sum != sum;
  float limit = infinity();
  int32_t last = -1;
  float chosen = 0.0f;
  for (int32_t j = 0; j < params.topK; ++j) {
    int32_t best = -1;
    float bestLogit = 0.0f;
    for (int32_t e = lane; e < experts; e += 32) {
      const float logit = logits[e];
      const bool isLeft = logit < limit || (logit == limit && e > last);
      if (isLeft && (best < 0 || logit > bestLogit)) {
        best = e;
        bestLogit = logit;
      }
    }
    for (int32_t apart = 16; apart > 0; apart /= 2) {
      const int32_t other = __shfl_xor_sync(kAllLanes, best, apart);
      const float otherLogit = __shfl_xor_sync(kAllLanes, bestLogit, apart);
      const bool isBetter =
          other >= 0 && (best < 0 || otherLogit > bestLogit ||
                         (otherLogit == bestLogit && other < best));
      best = isBetter ? other : best;
      bestLogit = isBetter ? otherLogit : bestLogit;
    }
    if (isLost) {
      best = j;
      bestLogit = logits[j];
    }
    limit = bestLogit;
    last = best;
    const float p = kernels::expLaw(bestLogit - largest) / sum;
    chosen = chosen + p;
    if (lane == 0) {
      numbers[j] = (float)best;
      probabilities[j] = p;
    }
  }
  if (params.normalized && lane == 0)
    for (int32_t j = 0; j < params.topK; ++j)
      probabilities[j] = probabilities[j] / chosen;
}
