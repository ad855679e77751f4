// The held-out text is as likely to the trained models as transformers says,
// and integer weights take little of that away.
#include "test/e2e/PerplexityComparison.h"

#include <gtest/gtest.h>

using namespace ingot::test;

namespace {

const std::string kHeldOut = INGOT_SOURCE_DIR "/test/models/held-out.txt";

} // namespace

TEST(PerplexityTest, targetAgreesWithTransformers) {
  comparePerplexity(smallModel("target"), readText(kHeldOut));
}

TEST(PerplexityTest, draftAgreesWithTransformers) {
  comparePerplexity(smallModel("draft"), readText(kHeldOut));
}

// Measured: int8 0.03 % and 1e-4 nats, int4 0.3 % and 4e-3 nats.
TEST(PerplexityTest, targetWithInt8StaysNearFloat32) {
  compareIntegers(smallModel("target"), readText(kHeldOut), 20,
                  {"int8", 0.002, 0.0005});
}

TEST(PerplexityTest, targetWithInt4StaysNearFloat32) {
  compareIntegers(smallModel("target"), readText(kHeldOut), 20,
                  {"int4-g32", 0.02, 0.02});
}

TEST(PerplexityTest, targetWithInt8CacheStaysNearFloat32) {
  compareIntegers(smallModel("target"), readText(kHeldOut), 20,
                  {"f32", 0.002, 0.0005, "int8"});
}
