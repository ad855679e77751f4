// The trained pair, speculating: the same tokens and the same text as plain
// decoding, in fewer launch sequences of the target. Counts are functions of
// the weights and the prompts, so they are tested as numbers.
#include "runtime/engine/Engine.h"
#include "test/e2e/CompiledModel.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <fstream>
#include <random>
#include <sstream>

using namespace ingot;
using namespace ingot::test;
using ::testing::HasSubstr;

namespace {

class SpeculationTest : public ::testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    for (const char *model : {"target", "draft"})
      if (std::string missing = whyNotCompiled(model); !missing.empty())
        GTEST_SKIP() << missing;
    target_ = compiledModel("target", GetParam());
    draft_ = compiledModel("draft", GetParam());
    ASSERT_FALSE(target_.empty() || draft_.empty());
    std::ostringstream text;
    text << std::ifstream(INGOT_SOURCE_DIR "/test/models/held-out.txt").rdbuf();
    text_ = text.str();
  }

  std::unique_ptr<Engine> open(Speculation speculation,
                               EngineOptions options = {}) {
    options.context = 512;
    options.speculation = speculation;
    if (speculation == Speculation::Draft)
      options.draft = draft_;
    options.checkInvariants = true;
    auto engine = Engine::open(target_, options);
    EXPECT_TRUE(engine.isOk()) << engine.status().message();
    return engine ? std::move(engine).value() : nullptr;
  }

  // Lines of the held-out text; some of them twice, so that there is something
  // to look up.
  GenerateRequest request(unsigned salt) {
    std::mt19937 random(salt + 1);
    std::size_t at = text_.find('\n', random() % (text_.size() - 2000)) + 1;
    GenerateRequest made;
    made.prompt = text_.substr(at, 40 + random() % 200);
    if (salt % 3 == 0)
      *made.prompt += *made.prompt;
    made.sampling.temperature = salt % 2 ? 0.8 : 0.0;
    made.sampling.seed = salt;
    if (salt % 5 == 1)
      made.sampling.repetitionPenalty = 1.2;
    if (salt % 5 == 2)
      made.sampling.topP = 0.9;
    made.maxTokens = 20 + std::int64_t(random() % 60);
    made.ignoreEos = salt % 4 != 0;
    return made;
  }

  std::string target_, draft_, text_;
};

std::vector<GenerateResult> runAll(Engine &engine,
                                   std::vector<GenerateRequest> requests) {
  std::vector<GenerateResult> results(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    auto id = engine.submit(
        std::move(requests[i]),
        [&results, i](const GenerateResult &done) { results[i] = done; });
    EXPECT_TRUE(id.isOk()) << id.status().message();
  }
  Status status = engine.runUntilIdle();
  EXPECT_TRUE(status.isOk()) << status.message();
  return results;
}

} // namespace

// Alone, in a batch, with few blocks, in chunks: every mode says the same.
TEST_P(SpeculationTest, saysWhatPlainDecodingSays) {
  constexpr unsigned kRequests = 24;
  auto requests = [&] {
    std::vector<GenerateRequest> made;
    for (unsigned salt = 0; salt < kRequests; ++salt)
      made.push_back(request(salt));
    return made;
  };
  auto plain = open(Speculation::None);
  ASSERT_TRUE(plain);
  auto expected = runAll(*plain, requests());
  for (Speculation speculation : {Speculation::Ngram, Speculation::Draft})
    for (std::int32_t sequences : {1, 6}) {
      EngineOptions options;
      options.sequences = sequences;
      options.cache.poisonFreeBlocks = true;
      options.cache.shuffleSeed = 3;
      if (sequences > 1) {
        options.chunkTokens = 17;
        // Blocks for little more than one whole context: preemptions.
        options.kvBytes = plain->contract().stateBytes() * 5 / 4;
      }
      auto engine = open(speculation, options);
      ASSERT_TRUE(engine);
      auto results = runAll(*engine, requests());
      for (unsigned salt = 0; salt < kRequests; ++salt) {
        EXPECT_EQ(results[salt].outcome.tokens, expected[salt].outcome.tokens)
            << "request " << salt << ", " << sequences << " sequences";
        EXPECT_EQ(results[salt].text, expected[salt].text);
        EXPECT_EQ(results[salt].outcome.reason, expected[salt].outcome.reason);
      }
      EXPECT_GT(engine->metrics().acceptedTokens, 0u);
      EXPECT_EQ(engine->metrics().kvBlocksUsed, 0);
    }
}

// Stop strings that begin and end anywhere within a draft, heard in pieces.
TEST_P(SpeculationTest, stopStrings) {
  auto plain = open(Speculation::None);
  auto speculating = open(Speculation::Draft);
  ASSERT_TRUE(plain && speculating);
  std::mt19937 random(4);
  for (unsigned salt = 0; salt < 12; ++salt) {
    std::string whole = plain->generate(request(salt))->text;
    if (whole.size() < 12)
      continue;
    std::size_t length = 2 + random() % 8;
    std::string stop = whole.substr(random() % (whole.size() - length), length);
    auto stopped = [&](Engine &engine) {
      GenerateRequest made = request(salt);
      made.stop = {stop};
      std::string heard;
      made.onText = [&](std::int32_t, std::string_view text) {
        heard += text;
        return true;
      };
      auto result = engine.generate(std::move(made));
      EXPECT_EQ(heard, result->text);
      EXPECT_EQ(heard.find(stop), std::string::npos);
      EXPECT_EQ(result->outcome.reason, FinishReason::Stop);
      return std::pair(heard, result->outcome.tokens);
    };
    EXPECT_EQ(stopped(*speculating), stopped(*plain)) << "\"" << stop << "\"";
  }
}

// At least 1.5 times fewer steps of the target at temperature 0, and 1.3 times
// at 0.8, over passages that neither model has seen.
TEST_P(SpeculationTest, fewerStepsOfTheTarget) {
  for (double temperature : {0.0, 0.8}) {
    auto plain = open(Speculation::None);
    auto speculating = open(Speculation::Draft);
    ASSERT_TRUE(plain && speculating);
    for (unsigned salt = 0; salt < 10; ++salt)
      for (Engine *engine : {plain.get(), speculating.get()}) {
        GenerateRequest made = request(salt);
        made.sampling = {};
        made.sampling.temperature = temperature;
        made.sampling.seed = salt;
        made.maxTokens = 100;
        made.ignoreEos = true;
        ASSERT_TRUE(engine->generate(std::move(made)).isOk());
      }
    EngineMetrics metrics = speculating->metrics();
    double ratio = double(plain->metrics().steps) / double(metrics.steps);
    std::printf("temperature %.1f: %llu steps of the target for %llu, %.2f "
                "times fewer; %llu of %llu guesses stood\n",
                temperature, static_cast<unsigned long long>(metrics.steps),
                static_cast<unsigned long long>(plain->metrics().steps), ratio,
                static_cast<unsigned long long>(metrics.acceptedTokens),
                static_cast<unsigned long long>(metrics.draftedTokens));
    EXPECT_GE(ratio, temperature == 0 ? 1.5 : 1.3);
    EXPECT_EQ(metrics.steps + metrics.acceptedTokens, plain->metrics().steps);
  }
}

// A draft that is not there, or is given and not used, is refused by name.
TEST_P(SpeculationTest, refusals) {
  EngineOptions options;
  options.speculation = Speculation::Draft;
  options.draft = draft_ + ".missing";
  EXPECT_THAT(Engine::open(target_, options).status().message(),
              HasSubstr(".missing"));
  options.draft.clear();
  EXPECT_THAT(Engine::open(target_, options).status().message(),
              HasSubstr("needs its path"));
  options.speculation = Speculation::Ngram;
  options.draft = draft_;
  EXPECT_THAT(Engine::open(target_, options).status().message(),
              HasSubstr("a draft model is given"));
  options.draft.clear();
  options.draftTokens = 0;
  EXPECT_THAT(Engine::open(target_, options).status().message(),
              HasSubstr("draft tokens is 0, expected 1 to 64"));
}

INSTANTIATE_TEST_SUITE_P(Encodings, SpeculationTest,
                         ::testing::Values("f16", "int8"),
                         [](const auto &info) {
                           return std::string(info.param);
                         });
