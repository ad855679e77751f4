// Every value out of its range is refused by field, value and range, before it
// comes near a row of logits.
#include "runtime/sample/SamplingParams.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

using namespace ingot;
using ::testing::HasSubstr;

namespace {

constexpr std::int32_t kVocab = 128256;

void refuse(void (*change)(SamplingParams &), const char *message) {
  SamplingParams params;
  change(params);
  Status status = validate(params, kVocab);
  EXPECT_EQ(status.code(), StatusCode::InvalidInput) << message;
  EXPECT_THAT(status.message(), HasSubstr(message));
}

void accept(void (*change)(SamplingParams &)) {
  SamplingParams params;
  change(params);
  Status status = validate(params, kVocab);
  EXPECT_TRUE(status.isOk()) << status.message();
}

} // namespace

TEST(SamplingParamsTest, rangesAreRefusedByName) {
  refuse([](auto &p) { p.temperature = -0.1; },
         "temperature is -0.1, expected 0 to 100");
  refuse([](auto &p) { p.temperature = NAN; }, "temperature is nan");
  refuse([](auto &p) { p.temperature = INFINITY; }, "temperature is inf");
  refuse([](auto &p) { p.topP = 1.5; }, "top_p is 1.5, expected 0 to 1");
  refuse([](auto &p) { p.topP = -1e-9; }, "top_p");
  refuse([](auto &p) { p.topK = -7; }, "top_k is -7");
  refuse([](auto &p) { p.topK = std::numeric_limits<std::int64_t>::min(); },
         "top_k");
  refuse([](auto &p) { p.minP = 2; }, "min_p is 2");
  refuse([](auto &p) { p.repetitionPenalty = 0; }, "repetition_penalty is 0");
  refuse([](auto &p) { p.repetitionPenalty = NAN; }, "repetition_penalty");
  refuse([](auto &p) { p.presencePenalty = 2.1; }, "presence_penalty is 2.1");
  refuse([](auto &p) { p.frequencyPenalty = -3; }, "frequency_penalty is -3");
  refuse([](auto &p) { p.logprobs = 21; }, "logprobs is 21, expected 0 to 20");
  refuse([](auto &p) { p.logprobs = -2; }, "logprobs is -2");
}

TEST(SamplingParamsTest, edgesAreAccepted) {
  for (std::int64_t k :
       {std::int64_t(-1), std::int64_t(0), std::int64_t(9999999)}) {
    SamplingParams params;
    params.topK = k;
    EXPECT_TRUE(validate(params, kVocab).isOk());
  }
  accept([](auto &p) { p.topP = 0; });
  accept([](auto &p) { p.topP = 1e-9; });
  accept([](auto &p) { p.temperature = 0; });
  accept([](auto &p) { p.logitBias = {{0, -100}, {kVocab - 1, 100}}; });
}

// Ids from a client: too large, negative, past 32 bits, twice.
TEST(SamplingParamsTest, idsFromTheClient) {
  refuse([](auto &p) { p.logitBias = {{99999, 5}, {191222, -100}}; },
         "token id 191222 is outside the vocabulary of 128256");
  refuse([](auto &p) { p.logitBias = {{-1, 0}}; }, "token id -1");
  refuse([](auto &p) { p.logitBias = {{std::int64_t(1) << 32, 0}}; },
         "token id 4294967296");
  refuse([](auto &p) { p.logitBias = {{5, 1}, {5, 2}}; }, "given twice");
  refuse([](auto &p) { p.logitBias = {{5, 101}}; }, "logit_bias[5] is 101");
  refuse([](auto &p) { p.logitBias = {{5, NAN}}; }, "logit_bias[5]");
  Status status = validateTokenIds("stop_token_ids", {3, 151645}, 129280);
  EXPECT_THAT(status.message(),
              HasSubstr("stop_token_ids[1]: token id 151645 is outside the "
                        "vocabulary of 129280"));
  EXPECT_FALSE(validateTokenIds("x", {-1}, 10).isOk());
  EXPECT_FALSE(validateTokenIds("x", {std::int64_t(1) << 40}, 10).isOk());
  EXPECT_TRUE(validateTokenIds("x", {0, 9}, 10).isOk());
}
