// An executor that chooses tokens changes no token: requests that a temperature and a
// seed describe get them from it, in any company that allows it, with drafts and
// without; all others, and rows without a token, come from the sampler.
#include "runtime/execute/TokenChooser.h"
#include "runtime/speculate/NgramDrafter.h"
#include "test/runtime/engine/CoreHarness.h"
#include "test/runtime/sample/ToyMasks.h"

#include <cmath>
#include <limits>

using namespace ingot;
using namespace ingot::test;

namespace {

// Chooses on the host, with a sampler of its own, from the logits of another executor.
class ChoosingExecutor final : public Executor, public TokenChooser {
public:
  explicit ChoosingExecutor(Executor &inner, bool chooses)
      : inner_(inner), chooses_(chooses), sampler_(inner.limits().vocab) {}

  const StepLimits &limits() const override { return inner_.limits(); }
  Status run(const StepPlan &plan, const KvCache &cache) override {
    ++steps;
    hasLogits_ = true;
    return inner_.run(plan, cache);
  }
  std::span<const float> logits(std::int32_t row) const override {
    if (!hasLogits_)
      return {};
    auto found = inner_.logits(row);
    if (!spoils)
      return found;
    static std::vector<float> spoilt;
    spoilt.assign(found.begin(), found.end());
    spoilt[3] = std::numeric_limits<float>::quiet_NaN();
    return spoilt;
  }
  void setProfiling(bool enabled) override { inner_.setProfiling(enabled); }
  std::vector<LaunchProfile> profile() const override {
    return inner_.profile();
  }

  TokenChooser *chooser() override { return chooses_ ? this : nullptr; }
  Status runAndChoose(const StepPlan &plan, const KvCache &cache,
                      std::span<const RowChoice> choices) override {
    ++chosenSteps;
    EXPECT_EQ(choices.size(), plan.logitRows.size());
    INGOT_RETURN_IF_ERROR(inner_.run(plan, cache));
    tokens_.clear();
    hasLogits_ = true;
    bool isAny = true;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      SamplingParams params;
      params.temperature = choices[i].inverseTemperature == 0
                               ? 0
                               : 1 / choices[i].inverseTemperature;
      auto token = sampler_.choose(logits(std::int32_t(i)),
                                   SamplerState(params, choices[i].seed),
                                   choices[i].position);
      tokens_.push_back(token ? *token : -1);
      isAny = isAny && token.isOk();
    }
    hasLogits_ = !isAny;
    return Status::ok();
  }
  std::span<const std::int32_t> tokens() const override { return tokens_; }

  bool spoils = false; // every row has a NaN
  int steps = 0;
  int chosenSteps = 0;

private:
  Executor &inner_;
  bool chooses_;
  Sampler sampler_;
  std::vector<std::int32_t> tokens_;
  bool hasLogits_ = false;
};

struct CoreRun {
  TinyRunner runner;
  ChoosingExecutor executor;
  EngineCore core;
  std::map<std::pair<RequestId, std::int32_t>, RequestOutcome> outcomes;

  explicit CoreRun(bool chooses, bool drafts = false)
      : runner(contract(), {}), executor(*runner.executor, chooses),
        core(executor, *runner.cache, options(runner),
             speculator(runner, drafts)) {}

  static ContractOptions contract() {
    ContractOptions made;
    made.sequences = 4;
    made.context = 64;
    made.logitRows = 64;
    return made;
  }
  static CoreOptions options(const TinyRunner &runner) {
    CoreOptions made;
    made.context = runner.contract.context;
    made.checkInvariants = true;
    return made;
  }
  static std::unique_ptr<Speculator> speculator(const TinyRunner &runner,
                                                bool drafts) {
    if (!drafts)
      return nullptr;
    SpeculatorOptions speculation;
    speculation.vocab = runner.executor->limits().vocab;
    return std::make_unique<Speculator>(
        std::make_unique<NgramDrafter>(NgramOptions{1, 4}), speculation);
  }
  void submit(TokenRequest request) {
    auto id =
        core.submit(std::move(request), [this](const RequestOutcome &done) {
          outcomes[{done.id, done.copy}] = done;
        });
    ASSERT_TRUE(id.isOk()) << id.status().message();
  }
  std::vector<std::vector<std::int32_t>> finish() {
    Status status = core.runUntilIdle();
    EXPECT_TRUE(status.isOk()) << status.message();
    std::vector<std::vector<std::int32_t>> tokens;
    for (const auto &[id, outcome] : outcomes) {
      EXPECT_TRUE(outcome.status.isOk()) << outcome.status.message();
      tokens.push_back(outcome.tokens);
    }
    return tokens;
  }
};

TokenRequest plain(int length, double temperature, unsigned seed) {
  TokenRequest made = request(length, 20, seed);
  made.sampling.temperature = temperature;
  return made;
}

TEST(TokenChooser, GivesTheSamplersTokens) {
  for (bool drafts : {false, true}) {
    std::vector<std::vector<std::int32_t>> said[2];
    for (bool chooses : {false, true}) {
      CoreRun run(chooses, drafts);
      unsigned seed = 0;
      for (double temperature : {0.0, 0.5, 1.0, 3.0, 1e-9}) {
        run.submit(plain(3 + int(seed), temperature, seed + 1));
        ++seed;
      }
      // Filters that keep the first alone, or everything.
      TokenRequest first = plain(5, 1, 7), all = plain(6, 1, 8);
      first.sampling.topK = 1;
      all.sampling.topK = run.executor.limits().vocab;
      run.submit(std::move(first));
      run.submit(std::move(all));
      said[chooses] = run.finish();
      if (chooses) {
        EXPECT_GT(run.executor.chosenSteps, 20);
        EXPECT_LT(run.executor.steps, 10) << "steps of prompts alone";
      } else {
        EXPECT_EQ(run.executor.chosenSteps, 0);
      }
      if (drafts)
        EXPECT_GT(run.core.metrics().draftedTokens, 0u);
    }
    EXPECT_EQ(said[0], said[1]) << (drafts ? "with drafts" : "without drafts");
  }
}

// Each of what takes more than a temperature, alone and in the company of a request
// that does not.
TEST(TokenChooser, IsNotAskedForMore) {
  using Change = std::function<void(TokenRequest &)>;
  const std::vector<std::pair<const char *, Change>> changes = {
      {"top_k", [](auto &r) { r.sampling.topK = 5; }},
      {"top_p", [](auto &r) { r.sampling.topP = 0.8; }},
      {"min_p", [](auto &r) { r.sampling.minP = 0.1; }},
      {"repetition", [](auto &r) { r.sampling.repetitionPenalty = 1.3; }},
      {"presence", [](auto &r) { r.sampling.presencePenalty = 0.7; }},
      {"frequency", [](auto &r) { r.sampling.frequencyPenalty = 0.7; }},
      {"bias", [](auto &r) { r.sampling.logitBias = {{3, 2.0}}; }},
      {"logprobs", [](auto &r) { r.sampling.logprobs = 2; }},
      {"min_tokens",
       [](auto &r) {
         r.sampling.minTokens = 20;
         r.stopIds = {1, 2};
       }},
      {"mask",
       [](auto &r) { r.mask = std::make_shared<BracketMask>(3, 4, 9); }},
      {"prompt logprobs",
       [](auto &r) { r.onPromptToken = [](std::int32_t, const Choice &) {}; }},
  };
  for (const auto &[name, change] : changes)
    for (bool isAlone : {true, false}) {
      std::vector<std::vector<std::int32_t>> said[2];
      for (bool chooses : {false, true}) {
        CoreRun run(chooses);
        TokenRequest special = plain(6, 0.9, 3);
        change(special);
        run.submit(std::move(special));
        if (!isAlone)
          run.submit(plain(6, 0.9, 4));
        said[chooses] = run.finish();
        if (isAlone)
          EXPECT_EQ(run.executor.chosenSteps, 0) << name;
      }
      EXPECT_EQ(said[0], said[1]) << name;
    }
}

// Copies draw several tokens from one row; each draws alone from then on.
TEST(TokenChooser, CopiesOfAPrompt) {
  std::vector<std::vector<std::int32_t>> said[2];
  for (bool chooses : {false, true}) {
    CoreRun run(chooses);
    TokenRequest request = plain(6, 1, 3);
    request.copies = 3;
    run.submit(std::move(request));
    said[chooses] = run.finish();
    EXPECT_EQ(run.executor.chosenSteps > 10, chooses);
  }
  ASSERT_EQ(said[0].size(), 3u);
  EXPECT_EQ(said[0], said[1]);
}

TEST(TokenChooser, WithoutATokenTheSamplerSaysWhy) {
  std::string messages[2];
  for (bool chooses : {false, true}) {
    CoreRun run(chooses);
    run.executor.spoils = true;
    run.submit(plain(4, 1, 3));
    Status status = run.core.runUntilIdle();
    EXPECT_TRUE(status.isOk()) << status.message();
    ASSERT_EQ(run.outcomes.size(), 1u);
    const RequestOutcome &outcome = run.outcomes.begin()->second;
    EXPECT_EQ(outcome.reason, FinishReason::Failed);
    messages[chooses] = outcome.status.message();
    EXPECT_EQ(run.executor.chosenSteps, int(chooses));
  }
  EXPECT_NE(messages[0].find("hold NaN"), std::string::npos) << messages[0];
  EXPECT_EQ(messages[0], messages[1]);
}

} // namespace
