// route, order_slots, dispatch and combine against the reference, bit for bit, with
// equal logits and experts that nobody chooses; and what they promise together.
#include "compiler/kernels/reference/Reference.h"
#include "test/compiler/kernels/KernelFixtures.h"

#include <algorithm>
#include <cmath>

namespace ingot::test {
namespace {

class ExpertsKernelTest : public LevelTest {};

TEST_P(ExpertsKernelTest, EqualTheReference) {
  Random random(1);
  for (const int experts : {1, 2, 8, 16, 33, 128})
    for (const int topK : {1, 2, 3, 8})
      for (const int tokens : {1, 7, 40})
        for (const bool normalized : {false, true}) {
          if (topK > experts)
            continue;
          const int slots = tokens * topK, width = 1 + below(random, 70);
          std::vector<float> logits(tokens * experts), input(tokens * width);
          for (float &x : logits)
            x = static_cast<float>(below(random, 9)) - 4; // many are equal
          for (float &x : input)
            x = uniform(random, -2, 2);

          PoisonedBuffer gotRoutes(8u * slots), wantRoutes(8u * slots);
          abi::RouteParams route = {logits.data(), wantRoutes.as<float>(),
                                    tokens,        experts,
                                    topK,          normalized};
          reference::route(route, wholeSlice(tokens));
          route.routes = gotRoutes.as<float>();
          runSliced(kernelsFor(*level, "route", {}).at(0), &route, tokens, 0,
                    random);
          ASSERT_TRUE(sameBytes(gotRoutes, wantRoutes)) << experts;

          const std::size_t orderBytes = 4u * (2 * slots + experts + 1);
          PoisonedBuffer gotOrder(orderBytes), wantOrder(orderBytes);
          abi::OrderSlotsParams order = {wantRoutes.as<float>(),
                                         wantOrder.as<std::int32_t>(),
                                         tokens,
                                         experts,
                                         topK,
                                         0};
          reference::orderSlots(order, wholeSlice(1));
          order.order = gotOrder.as<std::int32_t>();
          runSliced(kernelsFor(*level, "order_slots", {}).at(0), &order, 1, 0,
                    random);
          ASSERT_TRUE(sameBytes(gotOrder, wantOrder)) << experts;

          PoisonedBuffer gotSlots(4u * slots * width),
              wantSlots(4u * slots * width);
          abi::DispatchParams dispatch = {input.data(),
                                          wantOrder.as<std::int32_t>(),
                                          wantSlots.as<float>(),
                                          slots,
                                          width,
                                          topK,
                                          0};
          reference::dispatch(dispatch, wholeSlice(slots));
          dispatch.output = gotSlots.as<float>();
          runSliced(kernelsFor(*level, "dispatch", {}).at(0), &dispatch, slots,
                    0, random);
          ASSERT_TRUE(sameBytes(gotSlots, wantSlots));

          PoisonedBuffer got(4u * tokens * width), want(4u * tokens * width);
          abi::CombineParams combine = {wantSlots.as<float>(),
                                        wantOrder.as<std::int32_t>(),
                                        wantRoutes.as<float>(),
                                        want.as<float>(),
                                        tokens,
                                        width,
                                        topK,
                                        0};
          reference::combine(combine, wholeSlice(tokens));
          combine.output = got.as<float>();
          runSliced(kernelsFor(*level, "combine", {}).at(0), &combine, tokens,
                    0, random);
          EXPECT_TRUE(sameBytes(got, want));
          // Where the experts change nothing and the probabilities add up to
          // one, every row comes back.
          if (normalized)
            for (int i = 0; i < tokens * width; ++i)
              EXPECT_NEAR(got.as<float>()[i], input[i], 1e-5);
        }
}

// Logits that are no numbers: experts that exist, a full order, and probabilities
// that show it. Other tokens notice nothing.
TEST_P(ExpertsKernelTest, LogitsThatAreNoNumbers) {
  Random random(3);
  constexpr int experts = 20, topK = 3, tokens = 6, slots = tokens * topK;
  const float nan = std::nanf(""), infinity = INFINITY;
  std::vector<float> logits(tokens * experts);
  for (float &x : logits)
    x = uniform(random, -2, 2);
  std::fill_n(logits.begin() + experts, experts, nan);
  logits[2 * experts + 19] = nan;
  logits[3 * experts + 4] = infinity;
  std::fill_n(logits.begin() + 4 * experts, experts, -infinity);
  std::vector<float> routes(slots * 2), want(slots * 2);
  abi::RouteParams route = {logits.data(), routes.data(), tokens,
                            experts,       topK,          1};
  runSliced(kernelsFor(*level, "route", {}).at(0), &route, tokens, 0, random);
  route.routes = want.data();
  reference::route(route, wholeSlice(tokens));
  for (int t = 0; t < tokens; ++t)
    for (int j = 0; j < topK; ++j) {
      const int at = t * 2 * topK + j;
      EXPECT_EQ(routes[at], want[at]);
      EXPECT_EQ(std::isnan(routes[at + topK]), t >= 1 && t <= 4);
    }
  std::vector<std::int32_t> order(2 * slots + experts + 1);
  // Even numbers of experts that no route gives.
  for (float number : {routes[0], nan, -1.0f, 1e30f, float(experts)}) {
    routes[0] = number;
    abi::OrderSlotsParams params = {routes.data(), order.data(), tokens,
                                    experts,       topK,         0};
    runSliced(kernelsFor(*level, "order_slots", {}).at(0), &params, 1, 0,
              random);
    std::vector<std::int32_t> rows(order.begin(), order.begin() + slots);
    std::sort(rows.begin(), rows.end());
    for (int s = 0; s < slots; ++s) {
      EXPECT_EQ(rows[s], s);
      EXPECT_EQ(order[slots + order[s]], s);
    }
    for (int e = 0; e < experts; ++e)
      EXPECT_LE(order[2 * slots + e], order[2 * slots + e + 1]);
    EXPECT_EQ(order[2 * slots], 0);
    EXPECT_EQ(order.back(), slots);
  }
}

// Against float64 softmax, in descending order.
TEST(ExpertsReferenceTest, ChoosesByProbability) {
  Random random(2);
  std::vector<float> logits(40);
  for (float &x : logits)
    x = uniform(random, -5, 5);
  double sum = 0;
  for (float x : logits)
    sum += std::exp(double(x));
  float numbers[6], probabilities[6];
  reference::chooseExperts(logits.data(), 40, 6, false, numbers, probabilities);
  for (int j = 0; j < 6; ++j) {
    EXPECT_NEAR(probabilities[j],
                std::exp(double(logits[int(numbers[j])])) / sum, 1e-6);
    if (j > 0)
      EXPECT_GE(logits[int(numbers[j - 1])], logits[int(numbers[j])]);
  }
}

INGOT_FOR_EACH_LEVEL(ExpertsKernelTest);

} // namespace
} // namespace ingot::test
