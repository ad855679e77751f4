// Encoders as whole artifacts: their vectors are those of transformers, the same
// bits alone and in any company, and what they cannot take is refused by number.
//
// For each text let b = max(1e-6, 4 x the error of transformers' own float32 run),
// its largest difference from float64; each number of a vector differs by at most b.
#include "runtime/engine/Encoder.h"
#include "runtime/engine/Engine.h"
#include "test/e2e/CompiledModel.h"
#include "test/e2e/Goldens.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>

namespace ingot::test {
namespace {

using Tokens = std::vector<std::int32_t>;
using nlohmann::json;

const std::string kGoldens = INGOT_SOURCE_DIR "/test/e2e/goldens/";

json readJson(const std::string &name) {
  std::ifstream file(kGoldens + name);
  return json::parse(file, nullptr, /*allow_exceptions=*/false);
}

std::vector<Tokens> goldenTexts() {
  return readJson("prompts-encoders.json")["prompts"]
      .get<std::vector<Tokens>>();
}

std::string modelPath(const std::string &name) {
  return INGOT_SOURCE_DIR "/test/models/encoders/" + name;
}

std::unique_ptr<Encoder> opened(const std::string &artifact,
                                const EncoderOptions &options = {}) {
  auto encoder = Encoder::open(artifact, options);
  EXPECT_TRUE(encoder.isOk()) << encoder.status().message();
  return encoder ? std::move(*encoder) : nullptr;
}

std::unique_ptr<Encoder> compiled(const std::string &name,
                                  const std::string &quantize,
                                  const std::string &kv,
                                  const std::string &flags,
                                  const EncoderOptions &options = {}) {
  // One level of code is enough: kernels are tested at each.
  std::string path = compiledModel(modelPath(name), quantize, kv,
                                   flags + " --levels x86-64-v3");
  return path.empty() ? nullptr : opened(path, options);
}

class EncoderTest : public ::testing::Test {
protected:
  void SetUp() override {
    std::string missing = whyNotCompiled(modelPath("bert"));
    if (!missing.empty())
      GTEST_SKIP() << missing;
  }
};
// A GGUF file of a folder's model: the same vectors, bit for bit, of the same
// texts, pooled as the file says.
TEST_F(EncoderTest, GgufEqualsItsFolder) {
  std::string file = INGOT_SOURCE_DIR "/test/models/encoders-gguf/bert.gguf";
  auto fromFolder = compiled("bert", "f32", "f32", "");
  std::string path = compiledModel(file, "f32", "f32", "--levels x86-64-v3");
  ASSERT_FALSE(path.empty());
  auto fromFile = opened(path);
  ASSERT_TRUE(fromFolder && fromFile);
  std::vector<Tokens> texts = goldenTexts();
  auto expected = fromFolder->core().embed(texts);
  auto made = fromFile->core().embed(texts);
  ASSERT_TRUE(expected.isOk() && made.isOk()) << made.status().message();
  EXPECT_EQ(*made, *expected);
}

class EncoderGoldenTest : public EncoderTest,
                          public ::testing::WithParamInterface<std::string> {};

double cosine(const Embedding &a, const Embedding &b) {
  double dot = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    dot += double(a[i]) * double(b[i]);
    aa += double(a[i]) * double(a[i]);
    bb += double(b[i]) * double(b[i]);
  }
  return dot / std::sqrt(aa * bb);
}

TEST_P(EncoderGoldenTest, VectorsAreThoseOfTransformers) {
  const std::string name = GetParam();
  json goldens = readJson("encoders/" + name + ".json");
  auto weights = weightsSha256(modelPath(name));
  ASSERT_TRUE(weights.isOk()) << weights.status().message();
  ASSERT_EQ(*weights, goldens["weightsSha256"].get<std::string>());
  std::vector<Tokens> texts = goldenTexts();
  struct Way {
    const char *flags, *key;
  };
  for (const Way &way :
       {Way{"--pooling mean", "mean"}, Way{"--pooling cls:raw", "cls"},
        Way{"--pooling last:raw", "last"}}) {
    auto encoder = compiled(name, "f32", "f32", way.flags);
    ASSERT_TRUE(encoder);
    double worst = 0;
    for (const json &golden : goldens["texts"]) {
      const Tokens &text = texts[golden["prompt"].get<std::size_t>()];
      auto made = encoder->core().embed({&text, 1});
      ASSERT_TRUE(made.isOk()) << made.status().message();
      auto truth = golden[way.key].get<std::vector<double>>();
      ASSERT_EQ(made->front().size(), truth.size());
      double bound = std::max(
          1e-6, 4 * golden[std::string(way.key) + "Error"].get<double>());
      double error = 0;
      for (std::size_t i = 0; i < truth.size(); ++i)
        error = std::max(error, std::abs(double(made->front()[i]) - truth[i]));
      EXPECT_LE(error, bound) << way.key << " of " << text.size() << " tokens";
      worst = std::max(worst, error / bound);
    }
    std::printf("%-12s %-5s largest error %.3f of what is allowed\n",
                name.c_str(), way.key, worst);
  }
}

std::string testName(const ::testing::TestParamInfo<std::string> &info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Models, EncoderGoldenTest,
                         ::testing::Values("bert", "bert-masked", "roberta",
                                           "distilbert"),
                         testName);

// In one step with others, in several, in another order, with one thread or
// many, in blocks of the cache that hold NaN before.
TEST_F(EncoderTest, BitsAreATextsOwn) {
  for (auto [quantize, kv] :
       {std::pair("f32", "f16"), std::pair("int8", "int8")}) {
    EncoderOptions options;
    options.threads = 1;
    auto alone = compiled("bert", quantize, kv, "", options);
    ASSERT_TRUE(alone);
    std::vector<Tokens> texts = goldenTexts();
    std::vector<Embedding> expected;
    for (const Tokens &text : texts) {
      auto made = alone->core().embed({&text, 1});
      ASSERT_TRUE(made.isOk()) << made.status().message();
      expected.push_back(made->front());
    }
    // What is said of texts twice must be equal as well.
    std::vector<Tokens> many = texts;
    many.insert(many.end(), texts.rbegin(), texts.rend());
    for (auto [threads, stepTokens, sequences] :
         {std::tuple(1, 0, 32), std::tuple(4, 0, 32), std::tuple(3, 320, 2),
          std::tuple(2, 2048, 5)}) {
      options.threads = threads;
      options.stepTokens = stepTokens;
      options.sequences = sequences;
      options.cache.poisonFreeBlocks = true;
      options.cache.shuffleSeed = 7;
      auto together = compiled("bert", quantize, kv, "", options);
      ASSERT_TRUE(together);
      auto made = together->core().embed(many);
      ASSERT_TRUE(made.isOk()) << made.status().message();
      for (std::size_t i = 0; i < many.size(); ++i)
        EXPECT_EQ((*made)[i],
                  expected[i < texts.size() ? i : 2 * texts.size() - 1 - i])
            << quantize << ", " << threads << " threads, text " << i;
      EXPECT_EQ(together->cache().numSequences(), 0u);
    }
  }
}

TEST_F(EncoderTest, WhatCannotFitIsRefusedWithBothNumbers) {
  auto encoder = compiled("bert", "f32", "f32", "");
  ASSERT_TRUE(encoder);
  std::vector<Tokens> texts = {Tokens(3, 7), Tokens(321, 7)};
  auto made = encoder->core().embed(texts);
  ASSERT_FALSE(made.isOk());
  EXPECT_EQ(made.status().code(), StatusCode::InvalidInput);
  EXPECT_EQ(made.status().message(),
            "text 2: the text has 321 tokens, the longest that is taken has "
            "320; nothing is cut off in silence");
  texts = {Tokens{}};
  EXPECT_EQ(encoder->core().embed(texts).status().message(),
            "the text has no tokens");
  texts = {Tokens{5, 160}};
  EXPECT_EQ(encoder->core().embed(texts).status().message(),
            "token id 160 at 1 is outside the vocabulary of 160");

  // A step that holds less than the context. (Capacities are multiples of 64.)
  EncoderOptions small;
  small.stepTokens = 64;
  auto narrow = compiled("bert", "f32", "f32", "", small);
  ASSERT_TRUE(narrow);
  texts = {Tokens(65, 7)};
  EXPECT_EQ(narrow->core().embed(texts).status().message(),
            "the text has 65 tokens, the longest that is taken has 64; nothing "
            "is cut off in silence");
  texts = {Tokens(64, 7)};
  EXPECT_TRUE(narrow->core().embed(texts).isOk());
}

// Measured: 0.99996 with int8 weights, also with an int8 cache; 0.9930 with int4.
TEST_F(EncoderTest, Int8KeepsTheDirection) {
  auto exact = compiled("bert", "f32", "f32", "");
  ASSERT_TRUE(exact);
  std::vector<Tokens> texts = goldenTexts();
  auto truth = exact->core().embed(texts);
  ASSERT_TRUE(truth.isOk());
  for (auto [quantize, kv] :
       {std::pair("int8", "f16"), std::pair("int8", "int8"),
        std::pair("int4-g32", "f16")}) {
    auto lossy = compiled("bert", quantize, kv, "");
    ASSERT_TRUE(lossy);
    auto made = lossy->core().embed(texts);
    ASSERT_TRUE(made.isOk()) << made.status().message();
    double least = 1;
    bool differs = false;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      least = std::min(least, cosine((*truth)[i], (*made)[i]));
      differs |= (*truth)[i] != (*made)[i];
    }
    std::printf("%s weights, %s cache: smallest cosine %.6f\n", quantize, kv,
                least);
    EXPECT_TRUE(differs) << "the weights seem not to be rounded";
    EXPECT_GT(least, std::string(quantize) == "int8" ? 0.9995 : 0.95);
  }
}

// What modules.json says is what is made, and the option wins over it.
TEST_F(EncoderTest, PoolingIsThatOfTheFiles) {
  auto stated = compiled("roberta", "f32", "f32", "");
  auto chosen = compiled("roberta", "f32", "f32", "--pooling cls:raw");
  auto other = compiled("roberta", "f32", "f32", "--pooling last");
  ASSERT_TRUE(stated && chosen && other);
  std::vector<Tokens> texts = goldenTexts();
  auto a = stated->core().embed(texts), b = chosen->core().embed(texts),
       c = other->core().embed(texts);
  ASSERT_TRUE(a.isOk() && b.isOk() && c.isOk());
  EXPECT_EQ(*a, *b);
  EXPECT_NE(*a, *c);
  EXPECT_EQ(embeddingText(*stated->model().embedding()),
            "cls pooling, of any length");
  EXPECT_EQ(embeddingText(*other->model().embedding()),
            "last pooling, of length 1");
}

// [CLS] and [SEP] are put around a text by the tokenizer's post-processor.
TEST_F(EncoderTest, TextsAreEncodedBetweenTheirMarks) {
  auto encoder = compiled("bert", "f32", "f32", "");
  ASSERT_TRUE(encoder);
  auto ids = encoder->encode("The cat");
  ASSERT_TRUE(ids.isOk()) << ids.status().message();
  ASSERT_GE(ids->size(), 3u);
  EXPECT_EQ(ids->front(), 2);
  EXPECT_EQ(ids->back(), 3);
  std::vector<std::string> texts = {"The cat", "the CAT", "a dog"};
  auto made = encoder->embed(texts);
  ASSERT_TRUE(made.isOk()) << made.status().message();
  EXPECT_EQ((*made)[0], (*made)[1]);
  EXPECT_NE((*made)[0], (*made)[2]);
  double length = 0;
  for (float x : made->front())
    length += double(x) * double(x);
  EXPECT_NEAR(length, 1, 1e-6);
}

TEST_F(EncoderTest, EachKindOfArtifactRefusesTheOthersWork) {
  std::string encoder = compiledModel(modelPath("bert"), "f32", "f32");
  std::string generator = compiledModel("families/gpt2", "f32", "f32");
  ASSERT_FALSE(encoder.empty() || generator.empty());
  auto engine = Engine::open(encoder);
  EXPECT_EQ(engine.status().code(), StatusCode::Unsupported);
  EXPECT_EQ(engine.status().message(),
            encoder + ": is an encoder: it gives vectors (`ingot embed`, "
                      "/v1/embeddings) and generates no text");
  auto vectors = Encoder::open(generator);
  EXPECT_EQ(vectors.status().code(), StatusCode::Unsupported);
  EXPECT_EQ(vectors.status().message(),
            generator + ": generates text and gives no vectors; `ingot embed` "
                        "and /v1/embeddings are for encoders");
}

} // namespace
} // namespace ingot::test
