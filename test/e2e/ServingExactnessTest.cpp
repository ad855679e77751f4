// What a request says is its own. Two hundred random requests (greedy, sampled,
// with penalties, biases, masks, stop strings and log-probabilities) answer with
// the same bytes alone, in a crowd, with prompts in pieces of any size, after a
// prefix hit, after preemption, as a copy of another and under each speculation;
// block order shuffled and free blocks full of NaN throughout.
#include "runtime/engine/Engine.h"
#include "test/e2e/CompiledModel.h"
#include "test/runtime/sample/ToyMasks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

using namespace ingot;
using namespace ingot::test;

namespace {

constexpr unsigned kRequests = 200;

// Everything that a request has said, as bytes: log-probabilities included.
struct Said {
  std::string bytes;
  std::string streamed;

  template <typename T> void put(const T &value) {
    bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
  }
  void put(const Choice &choice) {
    put(choice.token);
    put(choice.logprob);
    for (const TokenLogprob &top : choice.top) {
      put(top.token);
      put(top.logprob);
    }
  }
};

struct Case {
  std::string model;
  std::string kv = "f16";
};

class ServingExactnessTest : public ::testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    std::string missing = whyNotCompiled(GetParam().model);
    if (!missing.empty())
      GTEST_SKIP() << missing;
    path_ = compiledModel(GetParam().model, "int8", GetParam().kv);
    ASSERT_FALSE(path_.empty());
  }

  std::unique_ptr<Engine> open(EngineOptions options, unsigned seed) {
    options.context = 192;
    options.threads = int(seed % 2) + 1;
    options.cache.poisonFreeBlocks = true;
    options.cache.shuffleSeed = seed + 1;
    options.checkInvariants = true;
    auto engine = Engine::open(path_, options);
    EXPECT_TRUE(engine.isOk()) << engine.status().message();
    return engine ? std::move(engine).value() : nullptr;
  }

  // Request `index`: one of eight beginnings, an end of its own.
  static GenerateRequest make(const Engine &engine, unsigned index) {
    std::mt19937 random(index);
    unsigned vocab = engine.model().vocab();
    std::mt19937 beginning(index % 8);
    GenerateRequest made;
    made.promptIds.emplace();
    for (unsigned i = 0; i < (index % 8) * 13; ++i)
      made.promptIds->push_back(std::int32_t(beginning() % vocab));
    for (unsigned i = 0; i < 1 + random() % 40; ++i)
      made.promptIds->push_back(std::int32_t(random() % vocab));
    SamplingParams &sampling = made.sampling;
    sampling.seed = index * 1000;
    sampling.temperature = random() % 3 ? 0.5 + 0.1 * double(random() % 10) : 0;
    if (random() % 3 == 0)
      sampling.topK = 1 + std::int64_t(random() % 50);
    if (random() % 3 == 0)
      sampling.topP = 0.7;
    if (random() % 4 == 0)
      sampling.minP = 0.05;
    if (random() % 3 == 0)
      sampling.repetitionPenalty = 1.2;
    if (random() % 3 == 0) {
      sampling.presencePenalty = 0.4;
      sampling.frequencyPenalty = 0.3;
    }
    if (random() % 3 == 0)
      for (int i = 0; i < 3; ++i)
        sampling.logitBias.emplace_back(i * 7 + index % 7, double(i * 3) - 2);
    if (random() % 2)
      sampling.logprobs = std::int32_t(random() % 5);
    made.maxTokens = 1 + std::int64_t(random() % 64);
    made.ignoreEos = random() % 2;
    if (random() % 4 == 0 && engine.tokenizer())
      made.stop = {"e", "zz"};
    made.priority = std::int32_t(random() % 3);
    made.client = std::string(1, char('a' + random() % 3));
    if (unsigned kind = random() % 6; kind == 0)
      made.mask = std::make_shared<RhymeMask>(7, 2.0f);
    else if (kind == 1)
      made.mask = std::make_shared<BracketMask>(30, 5, 100);
    return made;
  }

  // Submits the request as it is; what its copies say goes to `said`.
  static void submit(Engine &engine, GenerateRequest made,
                     std::vector<Said> &said) {
    said.resize(std::size_t(made.copies));
    made.onToken = [&said](std::int32_t copy, const Choice &choice) {
      said[std::size_t(copy)].put(choice);
    };
    made.onText = [&said](std::int32_t copy, std::string_view text) {
      said[std::size_t(copy)].streamed += text;
      return true;
    };
    auto id =
        engine.submit(std::move(made), [&said](const GenerateResult &result) {
          Said &mine = said[std::size_t(result.outcome.copy)];
          EXPECT_EQ(mine.streamed, result.text);
          mine.bytes += finishReasonName(result.outcome.reason);
          mine.bytes += result.text;
          for (std::int32_t token : result.outcome.tokens)
            mine.put(token);
        });
    ASSERT_TRUE(id.isOk()) << id.status().message();
  }

  // Each request alone, its prompt computed whole.
  const std::vector<std::string> &expected() {
    static std::map<std::string, std::vector<std::string>> ofModels;
    std::vector<std::string> &answers = ofModels[path_];
    if (!answers.empty())
      return answers;
    auto engine = open({}, 0);
    for (unsigned index = 0; index < kRequests; ++index) {
      GenerateRequest made = make(*engine, index);
      made.reusePrefix = false;
      std::vector<Said> said;
      submit(*engine, std::move(made), said);
      EXPECT_TRUE(engine->runUntilIdle().isOk());
      answers.push_back(said[0].bytes);
    }
    EXPECT_GT(std::set<std::string>(answers.begin(), answers.end()).size(),
              150u);
    return answers;
  }

  // Requests begin..end of all, submitted in the order of a shuffle, some
  // steps apart, must say what they say alone.
  void expectTheSame(Engine &engine, unsigned seed, unsigned begin = 0,
                     unsigned end = kRequests, bool reuse = true) {
    const auto &alone = expected();
    std::mt19937 random(seed);
    std::vector<unsigned> order;
    for (unsigned index = begin; index < end; ++index)
      order.push_back(index);
    std::shuffle(order.begin(), order.end(), random);
    std::vector<std::vector<Said>> said(kRequests);
    for (unsigned index : order) {
      GenerateRequest made = make(engine, index);
      made.reusePrefix = reuse;
      submit(engine, std::move(made), said[index]);
      for (unsigned steps = random() % 3; steps > 0; --steps) {
        Status status = engine.step();
        ASSERT_TRUE(status.isOk()) << status.message();
      }
    }
    Status status = engine.runUntilIdle();
    ASSERT_TRUE(status.isOk()) << status.message();
    for (unsigned index = begin; index < end; ++index)
      EXPECT_EQ(said[index][0].bytes, alone[index]) << "request " << index;
    EXPECT_EQ(engine.metrics().kvBlocksUsed, 0);
  }

  std::string path_;
};

} // namespace

TEST_P(ServingExactnessTest, inACrowd) {
  EngineOptions options;
  options.sequences = 16;
  auto engine = open(options, 2);
  ASSERT_TRUE(engine);
  expectTheSame(*engine, 1, 0, kRequests, false);
}

TEST_P(ServingExactnessTest, promptsInPieces) {
  std::mt19937 random(4);
  for (unsigned round = 0; round < 10; ++round) {
    EngineOptions options;
    options.sequences = 1 + std::int32_t(random() % 9);
    options.stepTokens = 1 + std::int32_t(random() % 64);
    options.chunkTokens = 1 + std::int32_t(random() % 40);
    options.mixedPromptTokens = std::int32_t(random() % 20);
    auto engine = open(options, round);
    ASSERT_TRUE(engine);
    expectTheSame(*engine, round, round * 20, round * 20 + 20, false);
  }
}

// With room for everything, the second round finds of each prompt all whole
// blocks but the last token's: under whatever key the first left them, the same
// request looks for them. With little room and a hash that makes everything
// collide, some are found.
TEST_P(ServingExactnessTest, afterPrefixHits) {
  for (bool isRoomy : {true, false}) {
    EngineOptions options;
    options.sequences = isRoomy ? std::int32_t(kRequests) : 8;
    options.cache.prefixHashMask = isRoomy ? ~std::uint64_t(0) : 0;
    auto engine = open(options, 3);
    ASSERT_TRUE(engine);
    for (unsigned round = 0; round < 2; ++round) {
      auto before = engine->metrics();
      expectTheSame(*engine, round);
      auto after = engine->metrics();
      std::uint64_t found = after.prefixHitTokens - before.prefixHitTokens;
      EXPECT_GT(found, 0u);
      if (!isRoomy || round == 0)
        continue;
      std::uint64_t expected = 0;
      for (unsigned index = 0; index < kRequests; ++index)
        expected += (make(*engine, index).promptIds->size() - 1) / 32 * 32;
      EXPECT_EQ(found, expected);
    }
  }
}

TEST_P(ServingExactnessTest, preempted) {
  for (bool reuse : {true, false}) {
    EngineOptions options;
    options.sequences = 12;
    options.stallFactor = 0; // the same steps on any machine
    auto roomy = open(options, 5);
    ASSERT_TRUE(roomy);
    options.kvBytes =
        roomy->contract().stateBytes() / 72 * 7; // of 12 x 6 blocks
    auto engine = open(options, 5);
    ASSERT_TRUE(engine);
    expectTheSame(*engine, 7, 0, kRequests, reuse);
    EXPECT_GT(engine->metrics().preemptions, 5u);
  }
}

// Guesses of the text's own past, and of a rougher encoding of the same model
// that is right often but not always; in pieces, preempted, after prefix hits.
TEST_P(ServingExactnessTest, speculating) {
  for (Speculation speculation : {Speculation::Ngram, Speculation::Draft}) {
    EngineOptions options;
    options.sequences = 8;
    auto roomy = open(options, 8);
    ASSERT_TRUE(roomy);
    if (speculation == Speculation::Draft && !roomy->tokenizer())
      continue; // refused: nothing says that the two have the same tokens
    options.speculation = speculation;
    if (speculation == Speculation::Draft)
      options.draft = compiledModel(GetParam().model, "int4");
    options.chunkTokens = 11;
    options.stallFactor = 0; // the same steps on any machine
    options.kvBytes = roomy->contract().stateBytes() / 48 * 9;
    auto engine = open(options, 8);
    ASSERT_TRUE(engine);
    expectTheSame(*engine, 9);
    auto metrics = engine->metrics();
    EXPECT_GT(metrics.acceptedTokens, 5u); // the weights are random
    EXPECT_GT(metrics.draftedTokens, metrics.acceptedTokens);
    EXPECT_GT(metrics.preemptions, 5u);
    EXPECT_GT(metrics.prefixHitTokens, 0u);
  }
}

// Copies say what requests with the next seeds say.
TEST_P(ServingExactnessTest, forked) {
  EngineOptions options;
  options.sequences = 8;
  auto alone = open({}, 0);
  auto engine = open(options, 6);
  ASSERT_TRUE(alone && engine);
  std::vector<std::vector<Said>> said(40), expected(120);
  for (unsigned index = 0; index < 40; ++index) {
    GenerateRequest made = make(*engine, index);
    for (std::int32_t copy = 0; copy < 3; ++copy) {
      GenerateRequest one = made;
      one.sampling.seed = seedOfCopy(*made.sampling.seed, copy);
      one.reusePrefix = false;
      submit(*alone, std::move(one), expected[index * 3 + unsigned(copy)]);
      ASSERT_TRUE(alone->runUntilIdle().isOk());
    }
    made.copies = 3;
    submit(*engine, std::move(made), said[index]);
  }
  ASSERT_TRUE(engine->runUntilIdle().isOk());
  for (unsigned index = 0; index < 40; ++index)
    for (unsigned copy = 0; copy < 3; ++copy)
      EXPECT_EQ(said[index][copy].bytes, expected[index * 3 + copy][0].bytes)
          << "request " << index << " copy " << copy;
}

INSTANTIATE_TEST_SUITE_P(
    Models, ServingExactnessTest,
    ::testing::Values(Case{"tiny-llama"}, Case{"tiny-mistral"},
                      Case{"families/llama-dynamic"},
                      Case{"families/phi4-mini"}, Case{"tiny-mistral", "int8"}),
    [](const auto &info) {
      std::string name = info.param.model;
      if (info.param.kv != "f16")
        name += "_kv_" + info.param.kv;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return c == '-' || c == '/'; },
          '_');
      return name;
    });
