// Mixture of experts beside the products: route chooses each token's experts,
// order_slots groups the choices by expert, dispatch copies rows into that order,
// combine adds what the experts gave. A token's choices and sums are its own;
// only the place of its rows depends on the step.
#include "compiler/kernels/cpu/Simd.h"
// Simd.h comes first: the templates of Exp.h use its operations.
#include "compiler/kernels/Exp.h"
#include "runtime/plan/KernelAbi.h"

using namespace ingot;
using namespace ingot::kernels;

extern "C" void ingot_route(const abi::RouteParams *params,
                            const abi::Slice *slice) {
  const int32_t experts = params->experts;
  const int32_t topK = params->topK;
  for (int32_t token = slice->begin; token < slice->end; ++token) {
    const float *logits =
        params->logits + static_cast<int64_t>(token) * experts;
    float *numbers = params->routes + static_cast<int64_t>(token) * 2 * topK;
    float *probabilities = numbers + topK;
    float most = logits[0];
    for (int32_t e = 1; e < experts; ++e)
      most = logits[e] > most ? logits[e] : most;
    const VecF least = splat(-__builtin_inff());
    VecF sums = splat(0.0f);
    for (int32_t e = 0; e < experts; e += kLanes) {
      VecF x = loadSome(logits + e, experts - e) - splat(most);
      if (experts - e < kLanes)
        x = select(laneNumbers() < splat(experts - e), x, least);
      sums = sums + expLaw(x);
    }
    const float sum = sumLanes(sums);
    // Where a logit is no number the first experts serve, with probabilities
    // that show it.
    const bool isLost = sum != sum;
    // The next smaller logit, or the next expert with an equal one.
    float limit = __builtin_inff();
    int32_t last = -1;
    float chosen = 0.0f;
    for (int32_t j = 0; j < topK; ++j) {
      int32_t best = isLost ? j : -1;
      for (int32_t e = 0; e < experts && !isLost; ++e) {
        const bool isLeft =
            logits[e] < limit || (logits[e] == limit && e > last);
        if (isLeft && (best < 0 || logits[e] > logits[best]))
          best = e;
      }
      limit = logits[best];
      last = best;
      float lanes[kLanes];
      store(lanes, splat(0.0f));
      lanes[0] = logits[best] - most;
      store(lanes, expLaw(load(lanes)));
      const float p = lanes[0] / sum;
      numbers[j] = static_cast<float>(best);
      probabilities[j] = p;
      chosen = chosen + p;
    }
    if (params->normalized)
      for (int32_t j = 0; j < topK; ++j)
        probabilities[j] = probabilities[j] / chosen;
  }
}

extern "C" void ingot_order_slots(const abi::OrderSlotsParams *params,
                                  const abi::Slice *slice) {
  if (slice->begin >= slice->end)
    return;
  const int32_t topK = params->topK;
  const int32_t slots = params->numTokens * topK;
  int32_t *rowOfSlot = params->order + slots;
  int32_t *begins = rowOfSlot + slots;
  for (int32_t e = 0; e <= params->experts; ++e)
    begins[e] = 0;
  // A plan may name a buffer that no route has written.
  const auto expertOf = [&](int32_t slot) {
    const float number =
        params->routes[static_cast<int64_t>(slot / topK) * 2 * topK +
                       slot % topK];
    return number > 0 && number < static_cast<float>(params->experts)
               ? static_cast<int32_t>(number)
               : 0;
  };
  for (int32_t slot = 0; slot < slots; ++slot)
    ++begins[expertOf(slot) + 1];
  for (int32_t e = 0; e < params->experts; ++e)
    begins[e + 1] += begins[e];
  // Each expert's beginning moves to its end as its rows are given out.
  for (int32_t slot = 0; slot < slots; ++slot) {
    const int32_t row = begins[expertOf(slot)]++;
    params->order[row] = slot;
    rowOfSlot[slot] = row;
  }
  for (int32_t e = params->experts; e > 0; --e)
    begins[e] = begins[e - 1];
  begins[0] = 0;
}

extern "C" void ingot_dispatch(const abi::DispatchParams *params,
                               const abi::Slice *slice) {
  const int32_t width = params->width;
  for (int32_t row = slice->begin; row < slice->end; ++row) {
    const int32_t slot = clampOf(params->order[row], params->numSlots - 1);
    const float *from =
        params->input + static_cast<int64_t>(slot / params->topK) * width;
    float *to = params->output + static_cast<int64_t>(row) * width;
    for (int32_t k = 0; k < width; k += kLanes)
      storeSome(to + k, loadSome(from + k, width - k), width - k);
  }
}

extern "C" void ingot_combine(const abi::CombineParams *params,
                              const abi::Slice *slice) {
  const int32_t width = params->width;
  const int32_t topK = params->topK;
  const int32_t *rowOfSlot = params->order + params->numTokens * topK;
  for (int32_t token = slice->begin; token < slice->end; ++token) {
    const float *probabilities =
        params->routes + static_cast<int64_t>(token) * 2 * topK + topK;
    float *output = params->output + static_cast<int64_t>(token) * width;
    for (int32_t k = 0; k < width; k += kLanes) {
      const int32_t lanes = width - k;
      VecF sum = splat(0.0f);
      for (int32_t j = 0; j < topK; ++j) {
        const int64_t row =
            clampOf(rowOfSlot[token * topK + j], params->numTokens * topK - 1);
        const VecF value = loadSome(params->input + row * width + k, lanes);
        sum = j == 0 ? value * splat(probabilities[0])
                     : fmaOf(value, splat(probabilities[j]), sum);
      }
      storeSome(output + k, sum, lanes);
    }
  }
}
