// The stop set, options and errors of opening, on an artifact of `ret`s.
#include "runtime/engine/Engine.h"
#include "test/runtime/plan/TinyArtifact.h"

#include <gmock/gmock.h>

using namespace ingot;
using namespace ingot::test;
using ::testing::HasSubstr;

namespace {

class EngineTest : public ::testing::Test {
protected:
  void SetUp() override {
#if !defined(__x86_64__)
    GTEST_SKIP() << "the test's code is x86-64";
#endif
  }
  std::unique_ptr<Engine> open(const TinyArtifact &tiny,
                               const EngineOptions &options = {}) {
    auto engine = Engine::open(folder_.write("a.ingot", tiny.bytes()), options);
    EXPECT_TRUE(engine.isOk()) << engine.status().message();
    return std::move(engine).value();
  }
  TempFolder folder_;
};

GenerateRequest idsRequest(std::vector<std::int32_t> ids) {
  GenerateRequest request;
  request.promptIds = std::move(ids);
  request.sampling.temperature = 0;
  return request;
}

} // namespace

// With zero logits id 0 is chosen: as an end id it stops at once, unless ends
// are ignored.
TEST_F(EngineTest, eosStopsAndCanBeIgnored) {
  TinyArtifact tiny = TinyArtifact::make();
  tiny.plan.model->eos = {7, 0};
  auto engine = open(tiny);
  auto result = engine->generate(idsRequest({1, 2}));
  ASSERT_TRUE(result.isOk());
  EXPECT_EQ(result->outcome.reason, FinishReason::Stop);
  EXPECT_TRUE(result->outcome.tokens.empty());
  auto ignoring = idsRequest({1, 2});
  ignoring.ignoreEos = true;
  ignoring.maxTokens = 5;
  result = engine->generate(std::move(ignoring));
  ASSERT_TRUE(result.isOk());
  EXPECT_EQ(result->outcome.reason, FinishReason::Length);
  EXPECT_EQ(result->outcome.tokens.size(), 5u);
}

// Every default of the plan reaches the sampler.
TEST_F(EngineTest, samplingDefaultsComeFromTheArtifact) {
  TinyArtifact tiny = TinyArtifact::make();
  tiny.plan.model->default_temperature = 0.5f;
  tiny.plan.model->default_top_p = 0.75f;
  tiny.plan.model->default_top_k = 20;
  tiny.plan.model->default_min_p = 0.25f;
  tiny.plan.model->default_repetition_penalty = 1.5f;
  SamplingParams params = defaultSampling(open(tiny)->model());
  EXPECT_EQ(params.temperature, 0.5);
  EXPECT_EQ(params.topP, 0.75);
  EXPECT_EQ(params.topK, 20);
  EXPECT_EQ(params.minP, 0.25);
  EXPECT_EQ(params.repetitionPenalty, 1.5);
}

// What needs a tokenizer or a template says so; nothing is guessed.
TEST_F(EngineTest, textNeedsATokenizer) {
  auto engine = open(TinyArtifact::make());
  GenerateRequest text;
  text.prompt = "hi";
  EXPECT_THAT(engine->generate(std::move(text)).status().message(),
              HasSubstr("no tokenizer"));
  auto stops = idsRequest({1});
  stops.stop = {"x"};
  EXPECT_THAT(engine->generate(std::move(stops)).status().message(),
              HasSubstr("stop strings need a tokenizer"));
  EXPECT_THAT(engine->generate({}).status().message(),
              HasSubstr("exactly one of prompt"));
}

// Tokens of a draft are compared with the model's; without tokenizers they
// cannot be.
TEST_F(EngineTest, aDraftNeedsTokenizers) {
  EngineOptions options;
  options.speculation = Speculation::Draft;
  options.draft = folder_.write("draft.ingot", TinyArtifact::make().bytes());
  auto engine = Engine::open(
      folder_.write("a.ingot", TinyArtifact::make().bytes()), options);
  ASSERT_FALSE(engine.isOk());
  EXPECT_EQ(engine.status().code(), StatusCode::Unsupported);
  EXPECT_THAT(engine.status().message(), HasSubstr("draft.ingot"));
  EXPECT_THAT(engine.status().message(), HasSubstr("no tokenizer"));
}

TEST_F(EngineTest, optionsAreChecked) {
  std::string path = folder_.write("a.ingot", TinyArtifact::make().bytes());
  EngineOptions options;
  options.context = 100000;
  auto engine = Engine::open(path, options);
  ASSERT_FALSE(engine.isOk());
  EXPECT_THAT(engine.status().message(),
              HasSubstr("context is 100000, expected 1 to 256"));
  options = {};
  options.level = "avx9";
  EXPECT_EQ(Engine::open(path, options).status().code(), StatusCode::NotFound);
}

// A damaged tokenizer or template is an error of the artifact.
TEST_F(EngineTest, damagedTextSegments) {
  TinyArtifact tiny = TinyArtifact::make();
  std::vector<std::uint8_t> junk(64, 0x5a);
  for (auto kind :
       {container::SegmentKind::Tokenizer, container::SegmentKind::Template}) {
    auto bytes =
        packContainer({{container::SegmentKind::Plan, tiny.planBytes()},
                       {container::SegmentKind::Code, tiny.code},
                       {container::SegmentKind::Weights, tiny.weights},
                       {kind, junk}});
    auto engine = Engine::open(folder_.write("b.ingot", bytes));
    EXPECT_FALSE(engine.isOk());
  }
}
