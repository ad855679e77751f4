// Early exits on the CUDA back end, on the stand-in driver: the program is the one
// without exits, bit for bit; exits that draft change nothing; rows that leave do so
// where the first choice of the CPU's head is as sure, in whatever company.
#include "test/e2e/CompiledModel.h"
#include "test/e2e/StandInModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

using namespace ingot;
using namespace ingot::test;
using testing::HasSubstr;

namespace {

constexpr const char *kTarget = "--target cuda:sm_90,cpu --levels x86-64-v3";

struct Form {
  std::string model;
  std::string quantize;
  std::string table;
  std::string exits;
  std::string kv = "f16";
  // How far log-probabilities on the two targets may be apart, whose activations and
  // caches are rounded in different ways; and how many percent of the tokens are the
  // CPU's, since a text goes on apart behind the first that is not.
  double tolerance = 0.05;
  std::size_t percent = 95;
};

std::ostream &operator<<(std::ostream &out, const Form &form) {
  return out << form.model << " " << form.quantize;
}

struct Said {
  Tokens tokens;
  std::vector<double> logprobs;
  bool operator==(const Said &) const = default;
};

void PrintTo(const Said &said, std::ostream *out) {
  for (std::size_t t = 0; t < said.tokens.size(); ++t)
    *out << " " << said.tokens[t] << " "
         << (t < said.logprobs.size() ? said.logprobs[t] : 0) << ",";
  *out << "\n";
}

GenerateRequest request(unsigned salt, double threshold) {
  GenerateRequest made;
  made.promptIds = randomTokens(3 + salt * 7 % 40, salt, 150);
  made.sampling.temperature = salt % 2 ? 0.8 : 0;
  made.sampling.seed = salt;
  made.sampling.logprobs = 1;
  made.maxTokens = 6 + salt % 5;
  made.ignoreEos = true;
  made.exitThreshold = threshold;
  return made;
}

std::vector<Said> runAll(Engine &engine,
                         std::vector<GenerateRequest> requests) {
  std::vector<Said> said(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].onToken = [&said, i](std::int32_t, const Choice &choice) {
      EXPECT_TRUE(std::isfinite(choice.logprob));
      said[i].logprobs.push_back(choice.logprob);
    };
    auto id = engine.submit(std::move(requests[i]),
                            [&said, i](const GenerateResult &done) {
                              EXPECT_TRUE(done.outcome.status.isOk())
                                  << done.outcome.status.message();
                              said[i].tokens = done.outcome.tokens;
                            });
    EXPECT_TRUE(id.isOk()) << id.status().message();
  }
  Status status = engine.runUntilIdle();
  EXPECT_TRUE(status.isOk()) << status.message();
  return said;
}

constexpr unsigned kRequests = 8;
std::vector<GenerateRequest> requestsOf(std::vector<double> thresholds) {
  std::vector<GenerateRequest> made;
  for (unsigned salt = 0; salt < kRequests; ++salt)
    made.push_back(request(salt, thresholds[salt % thresholds.size()]));
  return made;
}

EngineOptions exitOptions(std::int32_t sequences = 1) {
  EngineOptions options = deviceOptions(96, sequences);
  options.checkInvariants = true;
  options.cache.poisonFreeBlocks = true; // no row reads what nobody wrote
  options.cache.shuffleSeed = 9;
  return options;
}

class CudaExitTest : public testing::TestWithParam<Form> {
protected:
  void SetUp() override {
    if (std::string missing = whyNoNvrtc(); !missing.empty())
      GTEST_SKIP() << missing;
    const Form &form = GetParam();
    std::string flags = std::string(kTarget) + " --table " + form.table;
    plain_ = compiledModel(form.model, form.quantize, form.kv, flags);
    early_ = compiledModel(form.model, form.quantize, form.kv,
                           flags + " --exits " + form.exits);
    ASSERT_FALSE(plain_.empty() || early_.empty());
  }
  std::string plain_, early_;
};

// Logits of every position, in chunks of several sizes, are those without exits.
TEST_P(CudaExitTest, programIsUntouched) {
  StandInScope scope;
  std::vector<Tokens> inputs = {randomTokens(40, 1, 150),
                                randomTokens(7, 2, 150)};
  std::vector<Logits> found[2];
  for (bool early : {false, true}) {
    EngineOptions options = exitOptions(2);
    options.chunkTokens = 17;
    auto engine = openEngine(early ? early_ : plain_, options);
    ASSERT_TRUE(engine);
    found[early] = scoreTokens(*engine, inputs);
    EXPECT_GT(engine->cudaExecutor()->numGraphSteps(), 0u);
  }
  EXPECT_EQ(found[0], found[1]);
}

// Nobody is ever sure enough: the text without exits, although every head has run.
TEST_P(CudaExitTest, neverTakenIsExact) {
  StandInScope scope;
  auto plain = openEngine(plain_, exitOptions(3));
  ASSERT_TRUE(plain);
  std::vector<Said> expected = runAll(*plain, requestsOf({0}));
  auto early = openEngine(early_, exitOptions(3));
  ASSERT_TRUE(early);
  EXPECT_EQ(runAll(*early, requestsOf({0.99999999, 0, 1})), expected);
  for (std::size_t e = 0; e + 1 < early->metrics().exitDepths.size(); ++e)
    EXPECT_EQ(early->metrics().exitDepths[e], 0u);
  EXPECT_GT(early->metrics().exitDepths.back(), 0u);
}

// The first layers may guess: long enough that they are asked again where guesses
// seem to cost more than they save.
TEST_P(CudaExitTest, draftsChangeNothing) {
  StandInScope scope;
  auto requests = [] {
    std::vector<GenerateRequest> made;
    for (unsigned salt = 0; salt < 3; ++salt) {
      made.push_back(request(salt, 0));
      made.back().maxTokens = 24;
    }
    return made;
  };
  auto plain = openEngine(plain_, exitOptions(3));
  ASSERT_TRUE(plain);
  std::vector<Said> expected = runAll(*plain, requests());
  EngineOptions options = exitOptions(3);
  options.speculation = Speculation::Exit;
  options.exitLayers = std::stoi(GetParam().exits);
  auto drafts = openEngine(early_, options);
  ASSERT_TRUE(drafts);
  EXPECT_EQ(runAll(*drafts, requests()), expected);
  EXPECT_GT(drafts->metrics().draftedTokens, 0u);
}

// Rows that leave: the answer is the same alone, beside exact requests and guesses of
// others, in chunks, preempted, as graphs and as launches.
TEST_P(CudaExitTest, takenExitsKeepToThemselves) {
  StandInScope scope;
  const std::vector<double> thresholds = {0.02, 1e-9, 0, 0.2};
  std::vector<Said> alone;
  std::uint64_t left = 0;
  for (unsigned salt = 0; salt < kRequests; ++salt) {
    auto engine = openEngine(early_, exitOptions());
    ASSERT_TRUE(engine);
    std::vector<GenerateRequest> one;
    one.push_back(request(salt, thresholds[salt % 4]));
    alone.push_back(runAll(*engine, std::move(one))[0]);
    auto depths = engine->metrics().exitDepths;
    if (salt % 4 == 1) // all but the first token, at the first exit
      EXPECT_EQ(depths[0] + 1, alone.back().tokens.size());
    left += depths[0];
    if (salt % 4 == 1)
      EXPECT_GT(engine->cudaExecutor()->numGraphSteps(), 0u);
  }
  EXPECT_GT(left, 0u);
  for (int kind = 0; kind < 3; ++kind) {
    EngineOptions options = exitOptions(kind == 1 ? 4 : 8);
    if (kind == 1) {
      options.chunkTokens = 13;
      options.cuda.useGraphs = false;
    }
    if (kind == 2) {
      options.speculation = Speculation::Exit;
      options.exitLayers = std::stoi(GetParam().exits);
    }
    auto engine = openEngine(early_, options);
    ASSERT_TRUE(engine);
    if (kind ==
        0) { // too little for all: some are preempted and computed again
      options.kvBytes = engine->contract().stateBytes() / 3;
      engine = openEngine(early_, options);
      ASSERT_TRUE(engine);
    }
    EXPECT_EQ(runAll(*engine, requestsOf(thresholds)), alone) << kind;
  }
}

// The law is the CPU's: led by the same threshold, the greedy text and the places where
// rows leave are the CPU's, up to the first place where one of the two has a choice, or
// a confidence, that is closer than the two targets' logits are.
TEST_P(CudaExitTest, leavesWhereTheCpuDoes) {
  StandInScope scope;
  auto device = openEngine(early_, exitOptions());
  EngineOptions onCpu = exitOptions();
  onCpu.device = "cpu";
  auto cpu = openEngine(early_, onCpu);
  ASSERT_TRUE(device && cpu);
  std::size_t compared = 0, same = 0;
  std::vector<std::uint64_t> depths[2];
  for (unsigned salt = 0; salt < 6; ++salt)
    for (double threshold : {0.01, 0.05, 0.3}) {
      std::vector<Said> said[2];
      for (bool isDevice : {false, true}) {
        std::vector<GenerateRequest> one;
        one.push_back(request(2 * salt, threshold));
        said[isDevice] = runAll(isDevice ? *device : *cpu, std::move(one));
      }
      compared += said[0][0].tokens.size();
      for (std::size_t t = 0; t < said[0][0].tokens.size(); ++t) {
        if (said[0][0].tokens[t] != said[1][0].tokens[t])
          break;
        // A row that left elsewhere would differ by far more.
        EXPECT_NEAR(said[0][0].logprobs[t], said[1][0].logprobs[t],
                    GetParam().tolerance);
        ++same;
      }
    }
  depths[0] = cpu->metrics().exitDepths;
  depths[1] = device->metrics().exitDepths;
  std::printf("%zu of %zu tokens are the CPU's; left at", same, compared);
  for (std::size_t e = 0; e < depths[0].size(); ++e)
    std::printf(" %llu/%llu", static_cast<unsigned long long>(depths[1][e]),
                static_cast<unsigned long long>(depths[0][e]));
  std::printf("\n");
  EXPECT_GE(same * 100, compared * GetParam().percent);
  EXPECT_GT(depths[0][0], 0u);
  EXPECT_GT(depths[0].back(), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, CudaExitTest,
    testing::Values(Form{"draft", "f16", "f16", "1"},
                    // Fills write codes, too.
                    Form{"draft", "int4-g32", "int8", "1", "int8", 0.1, 90},
                    Form{"tiny-mistral", "none", "none", "1"}),
    [](const auto &info) {
      std::string name = info.param.model + "_" + info.param.quantize;
      for (char &c : name)
        c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
      return name;
    });

// With the emulator's checks: nothing is read that nobody wrote, in prompts, heads,
// fills, states that are kept and brought back, and padding.
TEST(CudaExitFaultsTest, nothingIsAtFault) {
  if (std::string missing = whyNoNvrtc(); !missing.empty())
    GTEST_SKIP() << missing;
  StandInScope scope("check=1,seed=7,memory=64");
  std::string early = compiledModel(
      "draft", "f16", "f16", std::string(kTarget) + " --table f16 --exits 1");
  ASSERT_FALSE(early.empty());
  auto engine = openEngine(early, deviceOptions(96, 3));
  ASSERT_TRUE(engine);
  std::vector<GenerateRequest> requests;
  for (unsigned salt = 0; salt < 3; ++salt) {
    requests.push_back(request(salt, salt == 0 ? 0.05 : 1e-9));
    requests.back().maxTokens = 4;
  }
  for (const Said &said : runAll(*engine, std::move(requests)))
    EXPECT_EQ(said.tokens.size(), 4u);
  EXPECT_GT(engine->metrics().exitDepths[0], 0u);
}

} // namespace
