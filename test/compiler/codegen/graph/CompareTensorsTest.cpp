// What counts as equal: a comparison that lets everything pass would make every
// case of the back-end suite pass.
#include "compiler/codegen/graph/CompareTensors.h"
#include "test/compiler/codegen/graph/OnnxModel.h"

#include "gmock/gmock.h"

#include <cmath>

namespace ingot {
namespace {

using graph::compareTensors;
using ::testing::HasSubstr;
using testing::tensor;

std::string compared(float found, float expected) {
  return compareTensors(tensor<float>({1}, {found}),
                        tensor<float>({1}, {expected}));
}

TEST(CompareTensors, FloatsWithinTheirTolerance) {
  EXPECT_EQ(compared(1.0f, 1.0f), "");
  EXPECT_EQ(compared(1.0009f, 1.0f), "");
  EXPECT_THAT(compared(1.002f, 1.0f), HasSubstr("1 of 1 elements differ"));
  EXPECT_THAT(compared(1e-6f, 0.0f), HasSubstr("expected 0.0"));
}

TEST(CompareTensors, InfinitiesAndNansAreThemselves) {
  const float infinity = INFINITY, nan = NAN;
  EXPECT_EQ(compared(infinity, infinity), "");
  EXPECT_EQ(compared(-nan, nan), "");
  for (auto [found, expected] : {std::pair(1.0f, infinity),
                                 {-infinity, infinity},
                                 {nan, infinity},
                                 {infinity, 1.0f},
                                 {nan, 1.0f},
                                 {1.0f, nan}})
    EXPECT_NE(compared(found, expected), "") << found << " " << expected;
}

TEST(CompareTensors, HalvesWithinAUnit) {
  auto halves = [](std::uint16_t found, std::uint16_t expected) {
    return compareTensors(tensor<std::uint16_t>({1}, {found}),
                          tensor<std::uint16_t>({1}, {expected}));
  };
  EXPECT_EQ(halves(0x3c01, 0x3c00), "");
  EXPECT_NE(halves(0x3c02, 0x3c00), "");
}

TEST(CompareTensors, IntegersAndShapesExactly) {
  EXPECT_THAT(compareTensors(tensor<std::int64_t>({2}, {1, 2}),
                             tensor<std::int64_t>({2}, {1, 3})),
              HasSubstr("element 1: expected 3, found 2"));
  EXPECT_EQ(
      compareTensors(tensor<float>({2, 1}, {1, 2}), tensor<float>({2}, {1, 2})),
      "expected float[2], found float[2, 1]");
}

} // namespace
} // namespace ingot
