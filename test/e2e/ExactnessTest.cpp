// A token's bits are its own. For each small model and weight type: the logits
// of every position are the same bits when its sequence runs alone or in a
// batch of 16, whole or in chunks, on one thread or two, on shuffled blocks,
// with every free block full of NaN, and at every level this machine runs.
// Lengths stand on both sides of every row count where another kernel takes
// over, and the test fails if fewer than two variants of the linear operator
// have run.
#include "runtime/engine/Engine.h"
#include "test/e2e/CompiledModel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <set>

using namespace ingot;
using namespace ingot::test;

namespace {

using Logits = std::vector<std::vector<float>>;

struct Case {
  std::string model;
  std::string quantize;
  std::string kv = "f16";
};

std::string caseName(const ::testing::TestParamInfo<Case> &info) {
  std::string name = info.param.model + "_" + info.param.quantize;
  if (info.param.kv != "f16")
    name += "_kv_" + info.param.kv;
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

std::ostream &operator<<(std::ostream &out, const Case &c) {
  return out << c.model << " " << c.quantize << " " << c.kv;
}

class ExactnessTest : public ::testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    std::string missing = whyNotCompiled(GetParam().model);
    if (!missing.empty())
      GTEST_SKIP() << missing;
    path_ = compiledModel(GetParam().model, GetParam().quantize, GetParam().kv);
    ASSERT_FALSE(path_.empty());
  }

  std::unique_ptr<Engine> open(EngineOptions options) {
    options.context = 256;
    options.logitRows = 512;
    options.sequences = std::max(options.sequences, 1);
    auto engine = Engine::open(path_, options);
    EXPECT_TRUE(engine.isOk()) << engine.status().message();
    return engine ? std::move(engine).value() : nullptr;
  }

  std::vector<std::int32_t> tokens(Engine &engine, int length, unsigned salt) {
    std::mt19937 random(salt + 1);
    std::vector<std::int32_t> made;
    for (int i = 0; i < length; ++i)
      made.push_back(std::int32_t(random() % engine.model().vocab()));
    return made;
  }

  // Scores all inputs together.
  static std::vector<Logits>
  score(Engine &engine, const std::vector<std::vector<std::int32_t>> &inputs) {
    std::vector<Logits> results(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      ScoreRequest request;
      request.tokens = inputs[i];
      request.onLogits = [&results, i](std::int32_t,
                                       std::span<const float> logits) {
        results[i].emplace_back(logits.begin(), logits.end());
      };
      auto id = engine.core().submit(std::move(request), {});
      EXPECT_TRUE(id.isOk()) << id.status().message();
    }
    Status status = engine.runUntilIdle();
    EXPECT_TRUE(status.isOk()) << status.message();
    return results;
  }

  // The first position and token whose bits differ, for the message.
  static std::string difference(const Logits &a, const Logits &b) {
    if (a.size() != b.size())
      return "lengths " + std::to_string(a.size()) + " and " +
             std::to_string(b.size());
    for (std::size_t p = 0; p < a.size(); ++p)
      for (std::size_t t = 0; t < a[p].size(); ++t)
        if (std::memcmp(&a[p][t], &b[p][t], 4) != 0)
          return "position " + std::to_string(p) + ", token " +
                 std::to_string(t) + ": " + std::to_string(a[p][t]) + " and " +
                 std::to_string(b[p][t]);
    return {};
  }

  static std::size_t linearVariants(Engine &engine) {
    std::set<std::string> kernels;
    for (const auto &use : engine.executor().variantUses())
      if (use.uses > 0 && use.kernel.rfind("linear_", 0) == 0)
        kernels.insert(use.kernel);
    return kernels.size();
  }

  // Row counts at which another variant takes over, and their neighbours.
  static std::set<int> edges(Engine &engine) {
    std::set<int> lengths = {1, 31, 32, 33, 70};
    for (const fbs::ProgramSegment *segment :
         *engine.artifact().target("cpu")->segments())
      for (const fbs::Launch *launch : *segment->launches())
        for (const fbs::Variant *variant : *launch->variants())
          for (int near : {-1, 0, 1})
            if (int length = int(variant->first()) + near;
                length >= 1 && length <= 200)
              lengths.insert(length);
    return lengths;
  }

  std::string path_;
};

} // namespace

TEST_P(ExactnessTest, logitsAreTheTokensOwn) {
  EngineOptions single;
  single.threads = 1;
  auto alone = open(single);
  ASSERT_TRUE(alone);
  std::set<int> lengths = edges(*alone);
  std::map<int, Logits> expected;
  for (int length : lengths) {
    auto input = tokens(*alone, length, unsigned(length));
    expected[length] = score(*alone, {input})[0];
    ASSERT_EQ(expected[length].size(), std::size_t(length));
    for (const auto &row : expected[length])
      for (float logit : row)
        ASSERT_TRUE(std::isfinite(logit));
  }
  EXPECT_GE(linearVariants(*alone), 2u);

  // Token by token and in chunks of 7, on two threads, on poisoned and
  // shuffled blocks.
  for (int chunk : {1, 7}) {
    EngineOptions options;
    options.threads = 2;
    options.chunkTokens = chunk;
    options.cache.poisonFreeBlocks = true;
    options.cache.shuffleSeed = unsigned(chunk) + 3;
    auto chunked = open(options);
    ASSERT_TRUE(chunked);
    for (int length : lengths) {
      auto input = tokens(*chunked, length, unsigned(length));
      EXPECT_EQ(difference(score(*chunked, {input})[0], expected[length]), "")
          << "length " << length << " in chunks of " << chunk;
    }
  }

  // Sixteen at once, of all lengths, so that steps mix prompts and ends.
  EngineOptions crowd;
  crowd.threads = 2;
  crowd.sequences = 16;
  crowd.chunkTokens = 13;
  crowd.cache.poisonFreeBlocks = true;
  crowd.cache.shuffleSeed = 1;
  auto together = open(crowd);
  ASSERT_TRUE(together);
  std::vector<std::vector<std::int32_t>> inputs;
  std::vector<int> order(lengths.begin(), lengths.end());
  for (std::size_t i = 0; i < 16; ++i)
    inputs.push_back(tokens(*together, order[i % order.size()],
                            unsigned(order[i % order.size()])));
  auto results = score(*together, inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    EXPECT_EQ(difference(results[i], expected[int(inputs[i].size())]), "")
        << "length " << inputs[i].size() << " among sixteen";
}

// Every level that this machine runs gives the same bits.
TEST_P(ExactnessTest, levelsAgree) {
  EngineOptions options;
  auto best = open(options);
  ASSERT_TRUE(best);
  auto input = tokens(*best, 40, 5);
  Logits expected = score(*best, {input})[0];
  int others = 0;
  for (const fbs::Level *level : *best->artifact().target("cpu")->levels()) {
    if (level->name()->str() == best->level())
      continue;
    options.level = level->name()->str();
    auto other = Engine::open(path_, options);
    if (!other && other.status().code() == StatusCode::Unsupported)
      continue; // this machine does not run it
    auto opened = open(options);
    ASSERT_TRUE(opened);
    EXPECT_EQ(difference(score(*opened, {input})[0], expected), "")
        << options.level;
    ++others;
  }
  if (others == 0)
    GTEST_SKIP() << "this machine runs one level only";
}

// What a generation samples is what scoring the same tokens predicts: decode
// and prefill are one law.
TEST_P(ExactnessTest, decodeEqualsPrefill) {
  auto engine = open({});
  ASSERT_TRUE(engine);
  TokenRequest request;
  request.prompt = tokens(*engine, 20, 9);
  request.sampling.temperature = 0;
  request.maxTokens = 30;
  request.ignoreEos = true;
  std::vector<std::int32_t> all = request.prompt;
  auto id = engine->core().submit(
      std::move(request), [&](const RequestOutcome &done) {
        all.insert(all.end(), done.tokens.begin(), done.tokens.end());
      });
  ASSERT_TRUE(id.isOk());
  ASSERT_TRUE(engine->runUntilIdle().isOk());
  ASSERT_EQ(all.size(), 50u);
  Logits logits = score(*engine, {all})[0];
  for (std::size_t p = 19; p + 1 < all.size(); ++p)
    EXPECT_EQ(std::max_element(logits[p].begin(), logits[p].end()) -
                  logits[p].begin(),
              all[p + 1])
        << p;
}

INSTANTIATE_TEST_SUITE_P(
    Models, ExactnessTest,
    ::testing::Values(Case{"tiny-llama", "none"}, Case{"tiny-llama", "f16"},
                      Case{"tiny-llama", "int8"},
                      Case{"tiny-llama", "int4-g32"},
                      Case{"tiny-qwen2", "int8"}, Case{"tiny-qwen3", "int8"},
                      Case{"tiny-qwen3", "f16"}, Case{"tiny-mistral", "int8"},
                      Case{"tiny-mistral", "int4-g32"}),
    caseName);

// Each kernel that only some families use: norms of every kind, interleaved and
// absent rotation, rotation by length, caps, sums, plain feed-forwards, learned
// positions.
INSTANTIATE_TEST_SUITE_P(
    Families, ExactnessTest,
    ::testing::Values(
        Case{"families/gemma2", "int8"}, Case{"families/olmo2", "int8"},
        Case{"families/cohere", "int8"}, Case{"families/gpt2", "int8"},
        Case{"families/falcon-groups", "f16"},
        Case{"families/falcon-alibi", "int8"}, Case{"families/bloom", "f16"},
        Case{"families/granite", "f16"}, Case{"families/smollm3", "int8"},
        Case{"families/llama-dynamic", "f16"},
        Case{"families/phi4-mini", "int8"}),
    caseName);

// Codes in the cache: plain, with normed heads, with a window, with capped
// scores, with heads of another size, with frequencies by length.
INSTANTIATE_TEST_SUITE_P(
    Int8Cache, ExactnessTest,
    ::testing::Values(Case{"tiny-llama", "int8", "int8"},
                      Case{"tiny-qwen3", "f16", "int8"},
                      Case{"tiny-mistral", "int4-g32", "int8"},
                      Case{"families/gemma2", "int8", "int8"},
                      Case{"families/cohere", "int8", "int8"},
                      Case{"families/llama-dynamic", "f16", "int8"}),
    caseName);

// Experts: the company of a token decides which rows each expert multiplies.
INSTANTIATE_TEST_SUITE_P(
    Experts, ExactnessTest,
    ::testing::Values(Case{"families/mixtral", "none"},
                      Case{"families/mixtral", "int8"},
                      Case{"families/mixtral", "int8,*.router=int8"},
                      Case{"families/mixtral-one", "f16"},
                      Case{"families/qwen3-moe", "int4-g32"},
                      Case{"families/qwen3-moe", "f32"},
                      Case{"families/qwen3-moe-mixed", "int8"}),
    caseName);
