// route, order_slots, dispatch, combine: the choice by a full sort, the order by a
// stable one.
#include "compiler/kernels/Exp.h"
#include "compiler/kernels/reference/Reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

namespace ingot::reference {

void chooseExperts(const float *logits, std::int32_t experts, std::int32_t topK,
                   bool normalized, float *numbers, float *probabilities) {
  float most = logits[0];
  for (std::int32_t e = 1; e < experts; ++e)
    most = logits[e] > most ? logits[e] : most;
  float lanes[16] = {};
  for (std::int32_t e = 0; e < experts; ++e)
    lanes[e % 16] = lanes[e % 16] + kernels::expLaw(logits[e] - most);
  for (int apart = 8; apart > 0; apart /= 2)
    for (int lane = 0; lane < apart; ++lane)
      lanes[lane] = lanes[lane] + lanes[lane + apart];
  std::vector<std::int32_t> order(experts);
  std::iota(order.begin(), order.end(), 0);
  // Where a logit is no number the first experts serve.
  if (!std::isnan(lanes[0]))
    std::sort(order.begin(), order.end(), [&](auto a, auto b) {
      return std::pair(-logits[a], a) < std::pair(-logits[b], b);
    });
  float chosen = 0.0f;
  for (std::int32_t j = 0; j < topK; ++j) {
    numbers[j] = static_cast<float>(order[j]);
    probabilities[j] = kernels::expLaw(logits[order[j]] - most) / lanes[0];
    chosen = chosen + probabilities[j];
  }
  if (normalized)
    for (std::int32_t j = 0; j < topK; ++j)
      probabilities[j] = probabilities[j] / chosen;
}

void route(const abi::RouteParams &params, const abi::Slice &slice) {
  for (std::int32_t t = slice.begin; t < slice.end; ++t) {
    float *numbers =
        params.routes + static_cast<std::int64_t>(t) * 2 * params.topK;
    chooseExperts(params.logits + static_cast<std::int64_t>(t) * params.experts,
                  params.experts, params.topK, params.normalized != 0, numbers,
                  numbers + params.topK);
  }
}

void orderSlots(const abi::OrderSlotsParams &params, const abi::Slice &) {
  const std::int32_t slots = params.numTokens * params.topK;
  std::vector<std::int32_t> expert(slots), order(slots);
  for (std::int32_t s = 0; s < slots; ++s)
    expert[s] = static_cast<std::int32_t>(
        params.routes[static_cast<std::int64_t>(s / params.topK) * 2 *
                          params.topK +
                      s % params.topK]);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) {
    return std::pair(expert[a], a) < std::pair(expert[b], b);
  });
  for (std::int32_t r = 0; r < slots; ++r) {
    params.order[r] = order[r];
    params.order[slots + order[r]] = r;
  }
  for (std::int32_t e = 0; e <= params.experts; ++e)
    params.order[2 * slots + e] = static_cast<std::int32_t>(std::count_if(
        expert.begin(), expert.end(), [&](auto x) { return x < e; }));
}

void dispatch(const abi::DispatchParams &params, const abi::Slice &slice) {
  for (std::int32_t r = slice.begin; r < slice.end; ++r)
    for (std::int32_t k = 0; k < params.width; ++k)
      params.output[static_cast<std::int64_t>(r) * params.width + k] =
          params
              .input[static_cast<std::int64_t>(params.order[r] / params.topK) *
                         params.width +
                     k];
}

void combine(const abi::CombineParams &params, const abi::Slice &slice) {
  const std::int32_t topK = params.topK;
  const std::int32_t *rowOfSlot = params.order + params.numTokens * topK;
  for (std::int32_t t = slice.begin; t < slice.end; ++t)
    for (std::int32_t k = 0; k < params.width; ++k) {
      const float *p =
          params.routes + static_cast<std::int64_t>(t) * 2 * topK + topK;
      float sum = 0.0f;
      for (std::int32_t j = 0; j < topK; ++j) {
        const float value =
            params.input[static_cast<std::int64_t>(rowOfSlot[t * topK + j]) *
                             params.width +
                         k];
        sum = j == 0 ? value * p[0] : std::fma(value, p[j], sum);
      }
      params.output[static_cast<std::int64_t>(t) * params.width + k] = sum;
    }
}

} // namespace ingot::reference
