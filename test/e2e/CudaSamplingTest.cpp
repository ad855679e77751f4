// Tokens that the device chooses are those that the sampler of the host chooses from
// the same logits, on the stand-in driver: the text is the same with and without.
#include "test/e2e/CompiledModel.h"
#include "test/e2e/StandInModel.h"

#include <gtest/gtest.h>

#include <random>

using namespace ingot;
using namespace ingot::test;

namespace {

class CudaSamplingTest : public testing::Test {
protected:
  void SetUp() override {
    if (std::string missing = whyNoNvrtc(); !missing.empty())
      GTEST_SKIP() << missing;
    artifact_ =
        compiledModel("draft", "f16", "f16",
                      "--target cuda:sm_90,cpu --levels x86-64-v3 --table f16");
    ASSERT_FALSE(artifact_.empty());
  }

  struct Said {
    std::vector<std::string> texts;
    std::vector<Tokens> tokens;
    bool operator==(const Said &) const = default;
  };
  // Runs the requests together. `numChosen` gets the steps that gave tokens.
  Said run(std::vector<GenerateRequest> requests, bool onDevice,
           std::uint64_t &numChosen,
           Speculation speculation = Speculation::None) {
    EngineOptions options = deviceOptions(96, 4);
    options.cuda.choosesTokens = onDevice;
    options.speculation = speculation;
    auto engine = openEngine(artifact_, options);
    Said said;
    if (!engine)
      return said;
    said.texts.resize(requests.size());
    said.tokens.resize(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      auto id = engine->submit(std::move(requests[i]),
                               [&said, i](const GenerateResult &result) {
                                 EXPECT_TRUE(result.outcome.status.isOk())
                                     << result.outcome.status.message();
                                 said.texts[i] = result.text;
                                 said.tokens[i] = result.outcome.tokens;
                               });
      EXPECT_TRUE(id.isOk()) << id.status().message();
    }
    Status status = engine->runUntilIdle();
    EXPECT_TRUE(status.isOk()) << status.message();
    numChosen = engine->cudaExecutor()->numChosenSteps();
    return said;
  }

  static GenerateRequest request(const std::string &prompt, double temperature,
                                 std::uint64_t seed) {
    GenerateRequest made;
    made.prompt = prompt;
    made.sampling.temperature = temperature;
    made.sampling.seed = seed;
    made.maxTokens = 16;
    made.ignoreEos = true;
    return made;
  }
  static std::vector<GenerateRequest> plainRequests() {
    return {request("The old mill", 0, 1), request("Once", 1.0, 2),
            request("There was a king who", 0.7, 3),
            request("In the morning the", 2.5, 4),
            request("She said", 1.0, 0xffffffffffffffffu)};
  }

  std::string artifact_;
};

TEST_F(CudaSamplingTest, theTextIsTheSamplers) {
  StandInScope scope;
  std::uint64_t withDevice = 0, without = 0;
  Said device = run(plainRequests(), true, withDevice);
  Said host = run(plainRequests(), false, without);
  EXPECT_EQ(device, host);
  EXPECT_GE(withDevice, 16u);
  EXPECT_EQ(without, 0u);
  for (const Tokens &tokens : device.tokens)
    EXPECT_EQ(tokens.size(), 16u);
}

// Guesses are held against what the device chooses.
TEST_F(CudaSamplingTest, theSameWithDrafts) {
  StandInScope scope;
  std::uint64_t withDevice = 0, without = 0;
  Said device = run(plainRequests(), true, withDevice, Speculation::Ngram);
  Said host = run(plainRequests(), false, without);
  EXPECT_EQ(device, host);
  EXPECT_GT(withDevice, 0u);
}

// A step whose rows are not all of that kind gives logits.
TEST_F(CudaSamplingTest, besideAFilterTheHostChooses) {
  StandInScope scope;
  auto requests = [] {
    auto made = plainRequests();
    made[1].sampling.topP = 0.9;
    made[1].maxTokens = 8;
    return made;
  };
  std::uint64_t withDevice = 0, without = 0;
  Said device = run(requests(), true, withDevice);
  Said host = run(requests(), false, without);
  EXPECT_EQ(device, host);
  EXPECT_GT(withDevice, 0u);
}

// With the emulator's checks, in an order of threads that is drawn.
TEST_F(CudaSamplingTest, nothingIsAtFault) {
  StandInScope scope("check=1,seed=5,memory=64");
  auto requests = [] {
    auto made = plainRequests();
    made.resize(3);
    for (GenerateRequest &request : made)
      request.maxTokens = 3;
    return made;
  };
  std::uint64_t withDevice = 0;
  Said device = run(requests(), true, withDevice);
  EXPECT_GT(withDevice, 0u);
  for (const Tokens &tokens : device.tokens)
    EXPECT_EQ(tokens.size(), 3u);
}

} // namespace
