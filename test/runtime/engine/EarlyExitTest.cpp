// Rows that leave early: what a request says depends on its threshold and on
// nothing around it, exact requests never notice, and no row ever reads a place
// that nothing has written (the fake model refuses to).
#include "runtime/engine/EngineCore.h"
#include "runtime/speculate/NgramDrafter.h"
#include "test/runtime/speculate/FakeModel.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <optional>
#include <random>

using namespace ingot;
using namespace ingot::test;
using ::testing::HasSubstr;

namespace {

constexpr std::int32_t kVocab = 24;

struct Said {
  std::vector<std::int32_t> tokens;
  std::vector<double> logprobs;
  std::optional<FinishReason> reason;
  bool operator==(const Said &) const = default;
};

std::ostream &operator<<(std::ostream &out, const Said &said) {
  out << (said.reason ? finishReasonName(*said.reason) : "nothing") << ":";
  for (std::int32_t token : said.tokens)
    out << " " << token;
  return out;
}

struct Setting {
  std::int32_t sequences = 1;
  std::int32_t blocks = 400;
  std::int32_t chunkTokens = 0;
  bool speculates = false;
  std::vector<float> curve;
  bool hasExits = true;
};

class Harness {
public:
  explicit Harness(const Setting &setting = {})
      : model_(words(setting)),
        cache_(FakeModel::makeCache(setting.blocks, {true, 3})) {
    CoreOptions options;
    options.context = 160;
    options.chunkTokens = setting.chunkTokens;
    options.checkInvariants = true;
    if (setting.hasExits)
      options.exits = {{1, setting.curve}};
    std::unique_ptr<Speculator> speculator;
    if (setting.speculates) {
      SpeculatorOptions speculation;
      speculation.vocab = kVocab;
      speculator = std::make_unique<Speculator>(
          std::make_unique<NgramDrafter>(NgramOptions{1, 4}), speculation);
    }
    core_.emplace(model_, cache_, options, std::move(speculator));
  }

  Status submit(TokenRequest request, const std::string &name = "") {
    auto *all = &said;
    request.onToken = [all, name](std::int32_t copy, const Choice &choice) {
      Said &mine = (*all)[{name, copy}];
      mine.tokens.push_back(choice.token);
      mine.logprobs.push_back(choice.logprob);
      return true;
    };
    auto id = core_->submit(std::move(request),
                            [all, name](const RequestOutcome &done) {
                              (*all)[{name, done.copy}].reason = done.reason;
                            });
    return id ? Status::ok() : id.status();
  }
  void run() {
    Status status = core_->runUntilIdle();
    ASSERT_TRUE(status.isOk()) << status.message();
    EXPECT_EQ(cache_.allocator(0).numHeld(), 0);
  }
  Said runOne(TokenRequest request, const std::string &name = "") {
    Status status = submit(std::move(request), name);
    EXPECT_TRUE(status.isOk()) << status.message();
    run();
    return said[{name, 0}];
  }

  EngineCore &core() { return *core_; }
  FakeModel &model() { return model_; }
  std::map<std::pair<std::string, std::int32_t>, Said> said;

private:
  static FakeModelOptions words(const Setting &setting) {
    FakeModelOptions words;
    words.vocab = kVocab;
    words.memory = 3;
    words.maxSequences = setting.sequences;
    return words;
  }
  FakeModel model_;
  KvCache cache_;
  std::optional<EngineCore> core_;
};

// Some exact, most with thresholds that some rows reach.
TokenRequest randomRequest(unsigned salt) {
  std::mt19937 random(salt * 6007 + 5);
  TokenRequest made;
  std::size_t length = 1 + random() % 30;
  for (std::size_t i = 0; i < length; ++i)
    made.prompt.push_back(std::int32_t(random() % 6));
  made.maxTokens = 5 + std::int64_t(random() % 40);
  made.sampling.seed = salt;
  made.sampling.temperature = salt % 2 ? 0.9 : 0;
  made.sampling.logprobs = 1;
  if (random() % 3 == 0)
    made.sampling.repetitionPenalty = 1.3;
  const double thresholds[] = {0, 0.15, 0.2, 0.25, 0.4, 1};
  made.exitThreshold = thresholds[salt % 6];
  if (random() % 5 == 0)
    made.copies = 2;
  return made;
}

constexpr unsigned kRequests = 60;

using Answers = std::map<std::pair<std::string, std::int32_t>, Said>;

Answers answers(const Setting &setting, EngineMetrics *metrics = nullptr) {
  Harness harness(setting);
  for (unsigned salt = 0; salt < kRequests; ++salt)
    EXPECT_TRUE(
        harness.submit(randomRequest(salt), std::to_string(salt)).isOk());
  harness.run();
  if (metrics)
    *metrics = harness.core().metrics();
  return harness.said;
}

// Each in an engine of its own.
const Answers &answersAlone() {
  static const Answers all = [] {
    Answers made;
    for (unsigned salt = 0; salt < kRequests; ++salt) {
      Setting setting;
      setting.sequences = 2; // for the copies
      Harness harness(setting);
      EXPECT_TRUE(
          harness.submit(randomRequest(salt), std::to_string(salt)).isOk());
      harness.run();
      made.insert(harness.said.begin(), harness.said.end());
    }
    return made;
  }();
  return all;
}

} // namespace

// No threshold, one of 0 or 1, or one that no row reaches: the same bits.
TEST(EarlyExitTest, neverTakenIsExact) {
  for (unsigned salt = 0; salt < 12; ++salt) {
    TokenRequest request = randomRequest(salt);
    request.copies = 1;
    request.exitThreshold = 0;
    Setting without;
    without.hasExits = false;
    Said expected = Harness(without).runOne(request);
    for (double threshold : {0.0, 0.9999, 1.0}) {
      request.exitThreshold = threshold;
      Harness harness;
      EXPECT_EQ(harness.runOne(request), expected) << threshold;
      EXPECT_EQ(harness.model().numFilled, 0);
      EXPECT_EQ(harness.core().metrics().exitDepths[0], 0u);
    }
  }
}

// The lower the threshold, the more rows leave; at the lowest all do. What
// leaves is filled, and counted.
TEST(EarlyExitTest, depthsFollowTheThreshold) {
  std::uint64_t before = 0;
  for (double threshold : {0.9, 0.25, 0.2, 0.15, 1e-9}) {
    TokenRequest request;
    request.prompt = {1, 2, 3, 4, 5};
    request.sampling.temperature = 0;
    request.maxTokens = 100;
    request.exitThreshold = threshold;
    Harness harness;
    harness.runOne(request);
    auto depths = harness.core().metrics().exitDepths;
    ASSERT_EQ(depths.size(), 2u);
    // The first token comes from the prompt's last row.
    EXPECT_EQ(depths[0] + depths[1], 99u);
    EXPECT_GE(depths[0], before);
    EXPECT_EQ(std::int64_t(depths[0]), harness.model().numFilled);
    before = depths[0];
  }
  EXPECT_EQ(before, 99u);
}

// A measured curve says when; without one, the exit's own probability.
TEST(EarlyExitTest, curves) {
  TokenRequest request;
  request.prompt = {1, 2, 3};
  request.maxTokens = 40;
  request.exitThreshold = 0.5;
  Setting never, always;
  never.curve = {0.1f, 0.2f, 0.49f, 0.49f};
  always.curve = {0.5f, 0.6f};
  Harness stays(never), leaves(always);
  stays.runOne(request);
  leaves.runOne(request);
  EXPECT_EQ(stays.core().metrics().exitDepths[0], 0u);
  EXPECT_EQ(leaves.core().metrics().exitDepths[1], 0u);
}

// Alone, in a batch, in chunks, beside drafts of others: the same answers.
TEST(EarlyExitTest, companyChangesNothing) {
  EngineMetrics metrics;
  for (std::int32_t sequences : {1, 4, 16}) {
    Setting setting;
    setting.sequences = sequences;
    EXPECT_EQ(answers(setting, &metrics), answersAlone());
    EXPECT_GT(metrics.exitDepths[0], 20u);
    EXPECT_GT(metrics.exitDepths[1], 20u);
    setting.chunkTokens = 5;
    EXPECT_EQ(answers(setting), answersAlone());
    setting.speculates = true;
    EXPECT_EQ(answers(setting, &metrics), answersAlone());
    EXPECT_GT(metrics.draftedTokens, 0u);
  }
}

// Preempted and computed again: each row leaves where it left before.
TEST(EarlyExitTest, preemptionChangesNothing) {
  Setting setting;
  setting.sequences = 8;
  setting.blocks = 40;
  EngineMetrics metrics;
  EXPECT_EQ(answers(setting, &metrics), answersAlone());
  EXPECT_GT(metrics.preemptions, 0u);
  setting.chunkTokens = 7;
  EXPECT_EQ(answers(setting, &metrics), answersAlone());
}

// What a lossy request has made is no prefix for anyone; what its prompt has
// made is one for everyone.
TEST(EarlyExitTest, lossyBlocksAreNotShared) {
  TokenRequest lossy;
  for (std::int32_t i = 0; i < 13; ++i)
    lossy.prompt.push_back(i % 5);
  lossy.sampling.temperature = 0;
  lossy.sampling.logprobs = 1;
  lossy.maxTokens = 40;
  lossy.exitThreshold = 1e-9;
  Harness shared;
  Said said = shared.runOne(lossy, "lossy");
  for (bool isExact : {true, false}) {
    TokenRequest next = lossy;
    next.exitThreshold = isExact ? 0 : 0.2;
    next.prompt.insert(next.prompt.end(), said.tokens.begin(),
                       said.tokens.end());
    std::uint64_t before = shared.core().metrics().prefixHitTokens;
    EXPECT_EQ(shared.runOne(next, isExact ? "exact" : "again"),
              Harness().runOne(next));
    // Three whole blocks of the prompt; then all of the exact request's own.
    EXPECT_EQ(shared.core().metrics().prefixHitTokens - before,
              isExact ? 12u : next.prompt.size() / 4 * 4);
  }
}

// A step that fails anywhere among its parts changes nothing.
TEST(EarlyExitTest, failedSteps) {
  TokenRequest request = randomRequest(2);
  request.copies = 1;
  request.exitThreshold = 0.2;
  Said expected = Harness().runOne(request);
  for (int failAt = 0; failAt < 8; ++failAt) {
    Harness harness;
    harness.model().failAt = failAt;
    ASSERT_TRUE(harness.submit(request).isOk());
    int failures = 0;
    while (!harness.core().isIdle())
      failures += !harness.core().step();
    EXPECT_EQ(failures, 1);
    EXPECT_EQ((harness.said[{"", 0}]), expected);
  }
}

TEST(EarlyExitTest, refusals) {
  TokenRequest request;
  request.prompt = {1};
  for (double threshold : {-0.1, 1.1, double(NAN)}) {
    request.exitThreshold = threshold;
    EXPECT_THAT(Harness().submit(request).message(),
                HasSubstr("exit_threshold"));
  }
  request.exitThreshold = 0.5;
  Setting without;
  without.hasExits = false;
  EXPECT_THAT(Harness(without).submit(request).message(),
              HasSubstr("has no early exits"));
}
