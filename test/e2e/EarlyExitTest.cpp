// Models compiled with early exits. The program itself is untouched, bit for bit;
// exits that draft change nothing; exits that are taken leave no hole in the
// cache (free blocks are NaN), whatever the company.
#include "runtime/engine/Engine.h"
#include "test/e2e/CompiledModel.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string_view>

using namespace ingot;
using namespace ingot::test;
using ::testing::HasSubstr;

namespace {

std::string readHeldOut() {
  std::ostringstream text;
  text << std::ifstream(INGOT_SOURCE_DIR "/test/models/held-out.txt").rdbuf();
  return text.str();
}

// From the second half of the held-out text: maps are fitted on the first.
std::string passage(std::mt19937 &random, std::size_t length) {
  static const std::string text = readHeldOut();
  std::size_t half = text.size() / 2;
  std::size_t at = half + random() % (text.size() - half - 1000);
  return text.substr(text.find('\n', at) + 1, length);
}

std::unique_ptr<Engine> open(const std::string &path, EngineOptions options) {
  auto artifact = Artifact::open(path);
  EXPECT_TRUE(artifact.isOk()) << artifact.status().message();
  if (!artifact)
    return nullptr;
  options.context =
      std::min(256, std::int32_t(artifact->plan().model()->context()));
  options.checkInvariants = true;
  options.cache.poisonFreeBlocks = true;
  options.cache.shuffleSeed = 9;
  auto engine = Engine::open(path, options);
  EXPECT_TRUE(engine.isOk()) << engine.status().message();
  return engine ? std::move(engine).value() : nullptr;
}

GenerateRequest randomRequest(unsigned salt, double threshold) {
  std::mt19937 random(salt + 1);
  GenerateRequest made;
  made.prompt = passage(random, 30 + random() % 150);
  made.sampling.temperature = salt % 2 ? 0.8 : 0.0;
  made.sampling.seed = salt;
  made.sampling.logprobs = 1;
  if (salt % 5 == 1)
    made.sampling.repetitionPenalty = 1.2;
  made.maxTokens = 10 + std::int64_t(random() % 50);
  made.ignoreEos = salt % 4 != 0;
  made.exitThreshold = threshold;
  return made;
}

struct Said {
  std::vector<std::int32_t> tokens;
  std::vector<double> logprobs;
  std::string text;
  bool operator==(const Said &) const = default;
};

// A model without a tokenizer gets ids for the bytes of the prompt.
void givePrompt(Engine &engine, GenerateRequest &request) {
  if (engine.tokenizer())
    return;
  std::vector<std::int32_t> ids;
  for (unsigned char byte : *request.prompt)
    ids.push_back(byte % std::int32_t(engine.model().vocab()));
  std::int32_t context = engine.contract().context;
  ids.resize(std::min(ids.size(), std::size_t(context / 2 - 4)));
  request.maxTokens = std::min<std::int64_t>(request.maxTokens, context / 3);
  request.promptIds = std::move(ids);
  request.prompt.reset();
}

std::vector<Said> runAll(Engine &engine,
                         std::vector<GenerateRequest> requests) {
  std::vector<Said> said(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    givePrompt(engine, requests[i]);
    requests[i].onToken = [&said, i](std::int32_t, const Choice &choice) {
      said[i].logprobs.push_back(choice.logprob);
      EXPECT_TRUE(std::isfinite(choice.logprob));
    };
    auto id = engine.submit(std::move(requests[i]),
                            [&said, i](const GenerateResult &done) {
                              EXPECT_TRUE(done.outcome.status.isOk());
                              said[i].tokens = done.outcome.tokens;
                              said[i].text = done.text;
                            });
    EXPECT_TRUE(id.isOk()) << id.status().message();
  }
  Status status = engine.runUntilIdle();
  EXPECT_TRUE(status.isOk()) << status.message();
  EXPECT_EQ(engine.metrics().kvBlocksUsed, 0);
  return said;
}

std::vector<GenerateRequest> requestsOf(unsigned count, double threshold) {
  std::vector<GenerateRequest> made;
  for (unsigned salt = 0; salt < count; ++salt)
    made.push_back(randomRequest(salt, threshold));
  return made;
}

// A model, how it is compiled, its exits.
struct Form {
  const char *model;
  const char *quantize;
  const char *exits;
  bool hasMaps;
  const char *kv = "f16";
};

class EarlyExitTest : public ::testing::TestWithParam<Form> {
protected:
  void SetUp() override {
    const Form &form = GetParam();
    if (std::string missing = whyNotCompiled(form.model); !missing.empty())
      GTEST_SKIP() << missing;
    std::string flags = std::string("--exits ") + form.exits;
    if (form.hasMaps) {
      std::string maps = fittedExits(form.model, form.quantize, form.exits);
      ASSERT_FALSE(maps.empty());
      flags += " --exit-maps " + maps;
    }
    plain_ = compiledModel(form.model, form.quantize, form.kv);
    early_ = compiledModel(form.model, form.quantize, form.kv, flags);
    ASSERT_FALSE(plain_.empty() || early_.empty());
    firstExit_ = std::atoi(form.exits);
  }

  std::string plain_, early_;
  std::int32_t firstExit_ = 0;
};

} // namespace

// The program is the one without exits: logits of every position, bit for bit.
TEST_P(EarlyExitTest, programIsUntouched) {
  auto plain = open(plain_, {}), early = open(early_, {});
  ASSERT_TRUE(plain && early);
  std::mt19937 random(3);
  GenerateRequest request;
  request.prompt = passage(random, 400);
  givePrompt(*plain, request);
  std::vector<std::int32_t> tokens = *plain->promptIds(request);
  tokens.resize(
      std::min<std::size_t>(tokens.size(), plain->contract().context - 1));
  auto logits = [&](Engine &engine) {
    std::vector<float> all;
    ScoreRequest score;
    score.tokens = tokens;
    score.onLogits = [&](std::int32_t, std::span<const float> row) {
      all.insert(all.end(), row.begin(), row.end());
    };
    EXPECT_TRUE(engine.core().submit(std::move(score), {}).isOk());
    EXPECT_TRUE(engine.runUntilIdle().isOk());
    return all;
  };
  std::vector<float> expected = logits(*plain);
  EXPECT_EQ(expected.size(), tokens.size() * plain->model().vocab());
  EXPECT_EQ(logits(*early), expected);
}

// The exit drafts; the text is that of plain decoding.
TEST_P(EarlyExitTest, draftsChangeNothing) {
  constexpr unsigned kRequests = 20;
  auto plain = open(plain_, {});
  ASSERT_TRUE(plain);
  auto expected = runAll(*plain, requestsOf(kRequests, 0));
  for (std::int32_t sequences : {1, 5}) {
    EngineOptions options;
    options.sequences = sequences;
    options.speculation = Speculation::Exit;
    options.exitLayers = firstExit_;
    if (sequences > 1) {
      options.chunkTokens = 17;
      options.kvBytes = plain->contract().stateBytes() * 5 / 4;
    }
    auto engine = open(early_, options);
    ASSERT_TRUE(engine);
    EXPECT_EQ(runAll(*engine, requestsOf(kRequests, 0)), expected);
    EXPECT_GT(engine->metrics().draftedTokens, 0u);
  }
}

// A threshold that is never reached gives the bits of a model without exits.
TEST_P(EarlyExitTest, neverTakenIsExact) {
  auto plain = open(plain_, {}), early = open(early_, {});
  ASSERT_TRUE(plain && early);
  auto expected = runAll(*plain, requestsOf(10, 0));
  for (double threshold : {0.0, 0.99999999, 1.0})
    EXPECT_EQ(runAll(*early, requestsOf(10, threshold)), expected);
  for (std::size_t e = 0; e + 1 < early->metrics().exitDepths.size(); ++e)
    EXPECT_EQ(early->metrics().exitDepths[e], 0u);
}

// Taken exits: no NaN is ever read, and the answer is the same alone, mixed with
// exact requests in a batch, in chunks, preempted, beside drafts of the others.
TEST_P(EarlyExitTest, takenExitsKeepToThemselves) {
  constexpr unsigned kRequests = 16;
  auto requests = [] {
    auto made = requestsOf(kRequests, 0);
    const double thresholds[] = {0.3, 1e-9, 0, 0.6};
    for (unsigned salt = 0; salt < kRequests; ++salt)
      made[salt].exitThreshold = thresholds[salt % 4];
    return made;
  };
  std::vector<Said> alone;
  for (unsigned salt = 0; salt < kRequests; ++salt) {
    auto engine = open(early_, {});
    ASSERT_TRUE(engine);
    std::vector<GenerateRequest> one;
    one.push_back(std::move(requests()[salt]));
    alone.push_back(runAll(*engine, std::move(one))[0]);
    auto depths = engine->metrics().exitDepths;
    if (salt % 4 == 1) // all but the first token, at the first exit
      EXPECT_EQ(depths[0] + 1, alone.back().tokens.size());
  }
  for (Speculation speculation : {Speculation::None, Speculation::Exit})
    for (std::int32_t sequences : {4, 12}) {
      EngineOptions options;
      options.sequences = sequences;
      options.speculation = speculation;
      options.exitLayers = firstExit_;
      options.chunkTokens = sequences == 4 ? 0 : 13;
      auto engine = open(early_, options);
      ASSERT_TRUE(engine);
      if (sequences == 4) {
        options.kvBytes = engine->contract().stateBytes() * 2 / 5;
        engine = open(early_, options);
        ASSERT_TRUE(engine);
      }
      EXPECT_EQ(runAll(*engine, requests()), alone);
      // A window frees the blocks behind it, so that nobody has to yield.
      if (sequences == 4 && speculation == Speculation::None &&
          std::string_view(GetParam().model) != "tiny-mistral")
        EXPECT_GT(engine->metrics().preemptions, 0u);
    }
}

TEST_P(EarlyExitTest, refusals) {
  EngineOptions options;
  options.context = 32;
  options.speculation = Speculation::Exit;
  options.exitLayers = 99;
  EXPECT_THAT(Engine::open(early_, options).status().message(),
              HasSubstr("no exit after 99 layers: the artifact has exits "
                        "after " +
                        std::to_string(firstExit_)));
  options.exitLayers = firstExit_;
  EXPECT_THAT(Engine::open(plain_, options).status().message(),
              HasSubstr("has none; compile it with --exits"));
  auto plain = open(plain_, {});
  ASSERT_TRUE(plain);
  GenerateRequest request = randomRequest(1, 0.5);
  givePrompt(*plain, request);
  auto refused = plain->submit(std::move(request), {});
  EXPECT_THAT(refused.status().message(), HasSubstr("has no early exits"));
}

INSTANTIATE_TEST_SUITE_P(
    Forms, EarlyExitTest,
    ::testing::Values(Form{"target", "f16", "2,4", false},
                      Form{"target", "int8", "2,4", true},
                      Form{"target", "int4-g32", "3", false},
                      Form{"tiny-mistral", "int8", "1", false},
                      Form{"tiny-qwen2", "none", "1", false},
                      Form{"tiny-qwen3", "int8", "1", false},
                      // Norms behind blocks and capped logits, blocks side by
                      // side, learned positions, frequencies by length.
                      Form{"families/gemma2", "int8", "1", false},
                      Form{"families/cohere", "f16", "1", false},
                      Form{"families/gpt2", "int8", "1", false},
                      Form{"families/llama-dynamic", "f16", "1", false},
                      // Fills write codes, too.
                      Form{"tiny-mistral", "int8", "1", false, "int8"},
                      // Experts before, behind and on both sides of an exit.
                      Form{"families/mixtral", "int8", "1", false},
                      Form{"families/qwen3-moe-mixed", "f16", "1,2", false}),
    [](const auto &info) {
      std::string name =
          std::string(info.param.model) + "_" + info.param.quantize +
          (info.param.hasMaps ? "_maps" : "") + "_" + info.param.kv;
      for (char &c : name)
        c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
      return name;
    });

// The fitted maps on text of the other half: the exit's first choice is the
// model's more often, more guesses stand, and the cost of a lossy threshold is
// what the curve says.
TEST(FittedExitsTest, mapsHelp) {
  if (std::string missing = whyNotCompiled("target"); !missing.empty())
    GTEST_SKIP() << missing;
  std::string report;
  std::string maps = fittedExits("target", "int8", "2,4", &report);
  ASSERT_FALSE(maps.empty());
  auto json = nlohmann::json::parse(report);
  for (const auto &exit : json["exits"]) {
    double with = exit["agreement"], without = exit["agreement_without_map"];
    std::printf(
        "exit after %d layers: first choice the same %.1f %%, without "
        "a map %.1f %%; %.1f %% of the difference explained; %.1f %% of "
        "the weights\n",
        exit["layers"].get<int>(), with * 100, without * 100,
        exit["explained"].get<double>() * 100,
        exit["work_share"].get<double>() * 100);
    EXPECT_GT(with, without);
    EXPECT_GT(exit["explained"].get<double>(), 0.1);
    EXPECT_LT(exit["work_share"].get<double>(), 1.0);
  }
  std::string artifacts[] = {
      compiledModel("target", "int8", "f16", "--exits 2,4"),
      compiledModel("target", "int8", "f16",
                    "--exits 2,4 --exit-maps " + maps)};
  for (std::int32_t layers : {2, 4}) {
    double accepted[2];
    for (int i : {0, 1}) {
      ASSERT_FALSE(artifacts[i].empty());
      EngineOptions options;
      options.speculation = Speculation::Exit;
      options.exitLayers = layers;
      auto engine = open(artifacts[i], options);
      ASSERT_TRUE(engine);
      auto requests = requestsOf(12, 0);
      for (GenerateRequest &request : requests) {
        request.sampling = {};
        request.sampling.temperature = 0;
        request.maxTokens = 60;
        request.ignoreEos = true;
      }
      runAll(*engine, std::move(requests));
      EngineMetrics metrics = engine->metrics();
      accepted[i] =
          double(metrics.acceptedTokens) / double(metrics.draftedTokens);
      std::printf("exit after %d layers, %s: %llu of %llu guesses stood, %llu "
                  "steps for %llu tokens\n",
                  layers, i ? "fitted map" : "no map",
                  static_cast<unsigned long long>(metrics.acceptedTokens),
                  static_cast<unsigned long long>(metrics.draftedTokens),
                  static_cast<unsigned long long>(metrics.steps),
                  static_cast<unsigned long long>(metrics.generatedTokens));
      EXPECT_EQ(metrics.steps + metrics.acceptedTokens,
                metrics.generatedTokens);
    }
    EXPECT_GT(accepted[1], accepted[0]);
  }
}
