// Drafts change how many steps a request takes and nothing else: whoever
// drafts, well or badly, whatever the request asks for, in any company.
#include "runtime/engine/EngineCore.h"
#include "runtime/speculate/DraftModel.h"
#include "runtime/speculate/ExitDrafter.h"
#include "runtime/speculate/NgramDrafter.h"
#include "test/runtime/execute/cpu/TinyRunner.h"
#include "test/runtime/sample/ToyMasks.h"
#include "test/runtime/speculate/FakeModel.h"
#include "test/runtime/speculate/ScriptedDrafter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <set>

using namespace ingot;
using namespace ingot::test;

namespace {

constexpr std::int32_t kVocab = 24;
constexpr std::int32_t kEnd = 20;

enum class Mode {
  Plain,
  Ngram,
  Draft,   // a model that often disagrees
  Twin,    // the model itself
  Exit,    // the model's own first layers, over its own cache
  Wrong,   // tokens that are rarely right
  Garbage, // ids that do not exist, drafts without end
  Erratic, // errors, nothing, and now and then a word
};
constexpr Mode kModes[] = {Mode::Ngram, Mode::Draft,   Mode::Twin,   Mode::Exit,
                           Mode::Wrong, Mode::Garbage, Mode::Erratic};

const char *nameOf(Mode mode) {
  switch (mode) {
  case Mode::Plain:
    return "plain";
  case Mode::Ngram:
    return "ngram";
  case Mode::Draft:
    return "draft";
  case Mode::Twin:
    return "twin";
  case Mode::Exit:
    return "exit";
  case Mode::Wrong:
    return "wrong";
  case Mode::Garbage:
    return "garbage";
  case Mode::Erratic:
    return "erratic";
  }
  return "unknown";
}

std::ostream &operator<<(std::ostream &out, Mode mode) {
  return out << nameOf(mode);
}

// What a copy of a request said, to the last bit.
struct Said {
  std::vector<std::int32_t> tokens;
  std::vector<double> logprobs;
  std::vector<TokenLogprob> top;
  std::optional<FinishReason> reason;
  std::uint64_t seed = 0;
  bool operator==(const Said &other) const {
    auto same = [](const TokenLogprob &a, const TokenLogprob &b) {
      return a.token == b.token && a.logprob == b.logprob;
    };
    return tokens == other.tokens && logprobs == other.logprobs &&
           reason == other.reason && seed == other.seed &&
           std::equal(top.begin(), top.end(), other.top.begin(),
                      other.top.end(), same);
  }
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
  double stallFactor = CoreOptions().stallFactor;
  std::int32_t maxTokens = 64; // of a step
  std::int32_t maxLogitRows = 64;
  std::int32_t maxLength = 5; // of a draft
  double cost = 0;
};

class Harness {
public:
  explicit Harness(Mode mode, const Setting &setting = {},
                   FakeModelOptions words = {})
      : model_(limited(words, setting)),
        cache_(FakeModel::makeCache(setting.blocks, {true, 3})) {
    CoreOptions options;
    options.context = 160;
    options.chunkTokens = setting.chunkTokens;
    options.stallFactor = setting.stallFactor;
    options.eosIds = {kEnd};
    options.checkInvariants = true;
    SpeculatorOptions speculation;
    speculation.vocab = model_.limits().vocab;
    speculation.maxLength = setting.maxLength;
    speculation.draftCost = setting.cost;
    std::unique_ptr<Speculator> speculator;
    if (auto drafter = makeDrafter(mode, words, setting))
      speculator =
          std::make_unique<Speculator>(std::move(drafter), speculation);
    core_.emplace(model_, cache_, options, std::move(speculator));
  }

  Result<RequestId> submit(TokenRequest request, const std::string &name = "") {
    auto *said = &this->said;
    request.onToken = [said, name, hears = std::move(request.onToken)](
                          std::int32_t copy, const Choice &choice) {
      Said &mine = (*said)[{name, copy}];
      mine.tokens.push_back(choice.token);
      mine.logprobs.push_back(choice.logprob);
      mine.top.insert(mine.top.end(), choice.top.begin(), choice.top.end());
      return !hears || hears(copy, choice);
    };
    return core_->submit(
        std::move(request), [said, name](const RequestOutcome &done) {
          Said &mine = (*said)[{name, done.copy}];
          EXPECT_FALSE(mine.reason.has_value()) << "finished twice";
          mine.reason = done.reason;
          mine.seed = done.seed;
          EXPECT_EQ(mine.tokens, done.tokens);
        });
  }
  void run() {
    Status status = core_->runUntilIdle();
    ASSERT_TRUE(status.isOk()) << status.message();
    EXPECT_EQ(cache_.allocator(0).numHeld(), 0);
    if (draftCache_)
      EXPECT_EQ(draftCache_->allocator(0).numHeld(), 0);
  }
  Said runOne(TokenRequest request) {
    EXPECT_TRUE(submit(std::move(request)).isOk());
    run();
    return said[{"", 0}];
  }

  EngineCore &core() { return *core_; }
  FakeModel &model() { return model_; }
  KvCache &cache() { return cache_; }

  std::map<std::pair<std::string, std::int32_t>, Said> said;

private:
  static FakeModelOptions limited(FakeModelOptions words,
                                  const Setting &setting) {
    if (words.vocab == FakeModelOptions().vocab)
      words.vocab = kVocab;
    if (words.memory == 0)
      words.memory = 2;
    words.maxSequences = setting.sequences;
    words.maxTokens = setting.maxTokens;
    words.maxLogitRows = setting.maxLogitRows;
    return words;
  }

  std::unique_ptr<Drafter> makeDrafter(Mode mode, FakeModelOptions words,
                                       const Setting &setting) {
    auto script = [](ScriptedDrafter::Script script) {
      return std::make_unique<ScriptedDrafter>(std::move(script));
    };
    switch (mode) {
    case Mode::Plain:
      return nullptr;
    case Mode::Ngram:
      return std::make_unique<NgramDrafter>(NgramOptions{1, 4});
    case Mode::Draft:
    case Mode::Twin: {
      words = limited(words, setting);
      words.disagreement = mode == Mode::Draft ? 300 : 0;
      words.maxTokens = 50;
      draftModel_.emplace(words);
      draftCache_.emplace(FakeModel::makeCache(setting.blocks, {true, 8}));
      return std::make_unique<DraftModel>(
          *draftModel_, *draftCache_,
          DraftModelOptions{words.vocab, words.vocab, 140});
    }
    case Mode::Exit:
      return std::make_unique<ExitDrafter>(model_, cache_, 0);
    case Mode::Wrong:
      return script([random = std::mt19937(1)](const DraftRequest &r) mutable {
        Draft draft;
        for (int i = 0; i < r.length; ++i)
          draft.push_back(std::int32_t(random() % kVocab));
        return draft;
      });
    case Mode::Garbage:
      return script([random = std::mt19937(1)](const DraftRequest &) mutable {
        Draft draft(random() % 200, std::int32_t(random() % kVocab));
        for (std::size_t i = random() % 5; i < draft.size(); i += 3)
          draft[i] = std::int32_t(random());
        return draft;
      });
    case Mode::Erratic: {
      auto erratic = std::make_unique<ScriptedDrafter>(nullptr);
      ScriptedDrafter *self = erratic.get();
      *erratic = ScriptedDrafter(
          [self, random = std::mt19937(1)](const DraftRequest &r) mutable {
            self->fails = random() % 3 == 0;
            (void)r.sampler->advance(std::int32_t(random() % kVocab));
            return Draft(random() % 3, r.tokens.back());
          });
      return erratic;
    }
    }
    return nullptr;
  }

  FakeModel model_;
  KvCache cache_;
  std::optional<FakeModel> draftModel_;
  std::optional<KvCache> draftCache_;
  std::optional<EngineCore> core_;
};

// Of every kind that sampling knows.
TokenRequest randomRequest(unsigned salt) {
  std::mt19937 random(salt * 7919 + 1);
  TokenRequest made;
  std::size_t length = 1 + random() % 30;
  for (std::size_t i = 0; i < length; ++i)
    made.prompt.push_back(std::int32_t(random() % 18));
  made.maxTokens = std::int64_t(random() % 40);
  made.sampling.seed = salt;
  const double temperatures[] = {0, 0, 0.8, 0.8, 1.5};
  made.sampling.temperature = temperatures[random() % 5];
  if (random() % 3 == 0)
    made.sampling.topK = std::int64_t(random() % 6);
  if (random() % 3 == 0)
    made.sampling.topP = 0.8;
  if (random() % 4 == 0)
    made.sampling.minP = 0.1;
  if (random() % 3 == 0)
    made.sampling.repetitionPenalty = 1.3;
  if (random() % 3 == 0) {
    made.sampling.presencePenalty = 0.5;
    made.sampling.frequencyPenalty = 0.25;
  }
  if (random() % 4 == 0)
    made.sampling.logitBias = {{3, 4.0}, {5, -100}};
  if (random() % 3 == 0)
    made.sampling.minTokens = std::int64_t(random() % 12);
  if (random() % 2)
    made.sampling.logprobs = std::int32_t(random() % 3);
  if (random() % 3 == 0)
    made.stopIds = {std::int32_t(random() % 18)};
  made.ignoreEos = random() % 3 == 0;
  if (random() % 5 == 0)
    made.copies = 1 + std::int32_t(random() % 3);
  if (random() % 6 == 0)
    made.mask = std::make_shared<BracketMask>(3, 4, kEnd);
  else if (random() % 5 == 0)
    made.mask = std::make_shared<RhymeMask>(4, 1.5f);
  if (random() % 5 == 0)
    made.onToken = [counts = std::map<int, int>(),
                    most = 1 + int(random() % 9)](std::int32_t copy,
                                                  const Choice &) mutable {
      return ++counts[copy] < most;
    };
  return made;
}

constexpr unsigned kRequests = 60;

using Answers = std::map<std::pair<std::string, std::int32_t>, Said>;

// Each alone, without drafts.
const Answers &plainAnswers() {
  static const Answers answers = [] {
    Answers all;
    for (unsigned salt = 0; salt < kRequests; ++salt) {
      Setting roomy;
      roomy.sequences = 4; // for the copies
      Harness plain(Mode::Plain, roomy);
      EXPECT_TRUE(
          plain.submit(randomRequest(salt), std::to_string(salt)).isOk());
      plain.run();
      all.insert(plain.said.begin(), plain.said.end());
    }
    return all;
  }();
  return answers;
}

class SpeculationTest : public ::testing::TestWithParam<Mode> {};

void expectPlainAnswers(Mode mode, const Setting &setting,
                        EngineMetrics *metrics = nullptr) {
  Harness harness(mode, setting);
  for (unsigned salt = 0; salt < kRequests; ++salt)
    ASSERT_TRUE(
        harness.submit(randomRequest(salt), std::to_string(salt)).isOk());
  harness.run();
  ASSERT_EQ(harness.said.size(), plainAnswers().size());
  for (const auto &[key, said] : plainAnswers())
    EXPECT_EQ(harness.said[key], said)
        << "request " << key.first << " copy " << key.second;
  if (metrics)
    *metrics = harness.core().metrics();
}

} // namespace

// The answers themselves use what they are meant to test.
TEST(SpeculationAnswersTest, areOfManyKinds) {
  std::map<FinishReason, int> reasons;
  std::size_t longest = 0;
  for (const auto &[key, said] : plainAnswers()) {
    ++reasons[*said.reason];
    longest = std::max(longest, said.tokens.size());
  }
  EXPECT_GT(reasons[FinishReason::Stop], 10);
  EXPECT_GT(reasons[FinishReason::Length], 10);
  EXPECT_GT(longest, 25u);
}

TEST_P(SpeculationTest, alone) {
  Setting setting;
  setting.sequences = 3; // copies beside one another
  expectPlainAnswers(GetParam(), setting);
}

TEST_P(SpeculationTest, inBatches) {
  for (std::int32_t sequences : {4, 16}) {
    Setting setting;
    setting.sequences = sequences;
    EngineMetrics metrics;
    expectPlainAnswers(GetParam(), setting, &metrics);
    EXPECT_GT(metrics.draftedTokens, 0u);
  }
}

// Prompts in chunks beside drafts, and steps too small for all drafts.
TEST_P(SpeculationTest, inChunksAndSmallSteps) {
  Setting setting;
  setting.sequences = 8;
  setting.chunkTokens = 5;
  setting.maxTokens = 13;
  setting.maxLogitRows = 9;
  expectPlainAnswers(GetParam(), setting);
}

// So few blocks that sequences are preempted, in the middle of anything.
TEST_P(SpeculationTest, preempted) {
  Setting setting;
  setting.sequences = 8;
  setting.blocks = 40; // 160 tokens, as many as one context
  EngineMetrics metrics;
  expectPlainAnswers(GetParam(), setting, &metrics);
  EXPECT_GT(metrics.preemptions, 0u);
}

// With a cost, lengths adapt and drafts come and go.
TEST_P(SpeculationTest, atAnyLength) {
  Setting setting;
  setting.sequences = 4;
  setting.maxLength = 12;
  setting.cost = 0.15;
  expectPlainAnswers(GetParam(), setting);
}

// The same requests take the same steps again, where steps are not bound by what
// they have been seen to take.
TEST_P(SpeculationTest, stepsAreReproducible) {
  auto plans = [&] {
    Setting setting;
    setting.sequences = 4;
    setting.cost = 0.1;
    setting.stallFactor = 0;
    Harness harness(GetParam(), setting);
    for (unsigned salt = 0; salt < 10; ++salt)
      EXPECT_TRUE(
          harness.submit(randomRequest(salt), std::to_string(salt)).isOk());
    std::vector<StepPlan> plans;
    while (!harness.core().isIdle()) {
      EXPECT_TRUE(harness.core().step().isOk());
      plans.push_back(harness.core().latestPlan());
    }
    return plans;
  };
  EXPECT_EQ(plans(), plans());
}

// A step that fails leaves no draft behind; the next goes on as if it had not
// been.
TEST_P(SpeculationTest, failedSteps) {
  TokenRequest wanted = randomRequest(3);
  wanted.maxTokens = 30;
  wanted.stopIds = {};
  wanted.ignoreEos = true;
  wanted.onToken = nullptr;
  wanted.copies = 1;
  Said expected = Harness(Mode::Plain).runOne(wanted);
  for (int failAt : {0, 1, 2, 4}) {
    Harness harness(GetParam());
    harness.model().failAt = failAt;
    ASSERT_TRUE(harness.submit(wanted).isOk());
    int failures = 0;
    while (!harness.core().isIdle())
      if (Status status = harness.core().step(); !status) {
        EXPECT_EQ(status.message(), "planned failure");
        ++failures;
      }
    // One that drafts over the same executor may meet it first.
    if (const Speculator *speculator = harness.core().speculator();
        speculator && GetParam() == Mode::Exit)
      failures += int(speculator->numFailures());
    EXPECT_EQ(failures, 1);
    EXPECT_EQ(harness.said[std::make_pair(std::string(), 0)], expected);
  }
}

// Cancelled by its own receiver, at each token of a draft.
TEST_P(SpeculationTest, cancelledWithin) {
  TokenRequest wanted;
  wanted.prompt = {1, 2, 3, 1, 2, 3, 1, 2};
  wanted.sampling.temperature = 0;
  wanted.ignoreEos = true;
  wanted.maxTokens = 30;
  Said whole = Harness(Mode::Plain).runOne(wanted);
  for (std::size_t at = 1; at < 14; ++at) {
    Harness harness(GetParam());
    RequestId id = 0;
    std::size_t count = 0;
    TokenRequest shy = wanted;
    shy.onToken = [&](std::int32_t, const Choice &) {
      if (++count == at)
        EXPECT_TRUE(harness.core().cancel(id));
      return true;
    };
    id = *harness.submit(std::move(shy));
    harness.run();
    Said &said = harness.said[{"", 0}];
    EXPECT_EQ(said.reason, FinishReason::Cancelled);
    EXPECT_EQ(said.tokens.size(), at);
    EXPECT_TRUE(std::equal(said.tokens.begin(), said.tokens.end(),
                           whole.tokens.begin()));
  }
}

// Nothing that was rejected is found by a later prompt: one that goes on as a
// draft went on says what it says without a cache.
TEST_P(SpeculationTest, rejectedRowsAreNoPrefix) {
  Harness harness(GetParam());
  TokenRequest first;
  first.prompt = {1, 2, 3, 1, 2, 3, 1, 2};
  first.sampling.seed = 1;
  first.sampling.temperature = 0;
  first.sampling.logprobs = 2;
  first.ignoreEos = true;
  first.maxTokens = 24;
  ASSERT_TRUE(harness.submit(first, "first").isOk());
  std::set<std::vector<std::int32_t>> prompts;
  auto whole = first.prompt;
  while (!harness.core().isIdle()) {
    ASSERT_TRUE(harness.core().step().isOk());
    // What each step has run, accepted or not.
    const StepPlan &plan = harness.core().latestPlan();
    const Said &said = harness.said[{"first", 0}];
    whole = first.prompt;
    whole.insert(whole.end(), said.tokens.begin(), said.tokens.end());
    auto prompt = whole;
    prompt.resize(std::size_t(plan.sequences[0].firstPosition));
    prompt.insert(prompt.end(), plan.tokens.begin(), plan.tokens.end());
    prompt.insert(prompt.end(), {5, 6, 7, 8, 9});
    prompts.insert(prompt);
  }
  int number = 0;
  for (const auto &prompt : prompts) {
    TokenRequest second = first;
    second.prompt = prompt;
    second.maxTokens = 3;
    std::string name = "second " + std::to_string(++number);
    ASSERT_TRUE(harness.submit(second, name).isOk());
    harness.run();
    EXPECT_EQ(harness.said[std::make_pair(name, 0)],
              Harness(Mode::Plain).runOne(second));
  }
  EXPECT_GT(harness.core().metrics().prefixHitTokens, 0u);
}

INSTANTIATE_TEST_SUITE_P(Modes, SpeculationTest, ::testing::ValuesIn(kModes),
                         [](const auto &info) {
                           return std::string(nameOf(info.param));
                         });

// A draft of four that always stands: five tokens a step. The counts say so.
TEST(SpeculationCountsTest, stepsFall) {
  Setting setting;
  setting.maxLength = 4;
  TokenRequest wanted;
  wanted.prompt = {1, 2, 3};
  wanted.ignoreEos = true;
  wanted.maxTokens = 41;
  for (double temperature : {0.0, 0.8}) {
    wanted.sampling.temperature = temperature;
    wanted.sampling.seed = 5;
    Harness twin(Mode::Twin, setting), plain(Mode::Plain);
    EXPECT_EQ(twin.runOne(wanted), plain.runOne(wanted));
    EXPECT_EQ(plain.core().metrics().steps, 41u);
    EXPECT_EQ(twin.core().metrics().steps, 1u + 40 / 5);
    EXPECT_EQ(twin.core().metrics().draftedTokens, 32u);
    EXPECT_EQ(twin.core().metrics().acceptedTokens, 32u);
    EXPECT_EQ(twin.core().metrics().generatedTokens, 41u);
    Harness wrong(Mode::Wrong, setting);
    EXPECT_EQ(wrong.runOne(wanted), plain.said[std::make_pair("", 0)]);
    EngineMetrics metrics = wrong.core().metrics();
    // Each step gives one token and one for every guess that stood.
    EXPECT_EQ(metrics.steps + metrics.acceptedTokens, 41u);
    EXPECT_LT(metrics.acceptedTokens, metrics.draftedTokens / 3);
  }
}

// Where a request ends within a draft, what follows there is not said: at its
// last token, at an end id, at a stop id, at its receiver's word.
TEST(SpeculationCountsTest, endsWithinADraft) {
  TokenRequest wanted;
  wanted.prompt = {4, 2, 3};
  wanted.sampling.seed = 1;
  wanted.sampling.temperature = 0;
  wanted.ignoreEos = true;
  wanted.maxTokens = 30;
  Said whole = Harness(Mode::Plain).runOne(wanted);
  for (std::int64_t most = 1; most < 30; ++most) {
    TokenRequest cut = wanted;
    cut.maxTokens = most;
    Said said = Harness(Mode::Twin).runOne(cut);
    EXPECT_EQ(std::int64_t(said.tokens.size()), most);
    EXPECT_EQ(said, Harness(Mode::Plain).runOne(cut));
    TokenRequest stopped = wanted;
    stopped.stopIds = {whole.tokens[std::size_t(most)]};
    EXPECT_EQ(Harness(Mode::Twin).runOne(stopped),
              Harness(Mode::Plain).runOne(stopped));
  }
}

// 4000 draws of [2.0, 1.5, 1.0, 0.5] with drafts by the most likely token, by
// the same model and by chance: the softmax, and the very tokens of plain
// decoding.
TEST(SpeculationCountsTest, distributionIsTheSoftmax) {
  const std::vector<float> logits = {2.0f, 1.5f, 1.0f, 0.5f};
  FakeModelOptions words;
  words.vocab = 4;
  words.says = [&](std::span<const std::int32_t>) { return logits; };
  double total = 0;
  for (float logit : logits)
    total += std::exp(double(logit));
  auto draws = [&](int kind) {
    std::vector<std::int32_t> drawn;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      FakeModel model(words), twin(words);
      KvCache cache = FakeModel::makeCache(40),
              other = FakeModel::makeCache(40);
      std::unique_ptr<Drafter> drafter;
      if (kind == 0)
        drafter = std::make_unique<ScriptedDrafter>(
            [](const DraftRequest &r) { return Draft(r.length, 0); });
      if (kind == 1)
        drafter = std::make_unique<DraftModel>(twin, other,
                                               DraftModelOptions{4, 4, 160});
      if (kind == 2)
        drafter = std::make_unique<ScriptedDrafter>(
            [random = std::mt19937(7)](const DraftRequest &r) mutable {
              Draft draft;
              for (int i = 0; i < r.length; ++i)
                draft.push_back(std::int32_t(random() % 4));
              return draft;
            });
      SpeculatorOptions speculation;
      speculation.vocab = 4;
      CoreOptions options;
      options.context = 160;
      EngineCore core(model, cache, options,
                      drafter ? std::make_unique<Speculator>(std::move(drafter),
                                                             speculation)
                              : nullptr);
      TokenRequest request;
      request.prompt = {0};
      request.maxTokens = 100;
      request.sampling.seed = seed;
      EXPECT_TRUE(core.submit(request,
                              [&](const RequestOutcome &done) {
                                drawn.insert(drawn.end(), done.tokens.begin(),
                                             done.tokens.end());
                              })
                      .isOk());
      EXPECT_TRUE(core.runUntilIdle().isOk());
    }
    return drawn;
  };
  auto plain = draws(-1);
  ASSERT_EQ(plain.size(), 4000u);
  for (int kind : {0, 1, 2}) {
    auto drawn = draws(kind);
    EXPECT_EQ(drawn, plain) << "drafts of kind " << kind;
    std::vector<double> counts(4, 0);
    for (std::int32_t token : drawn)
      ++counts[std::size_t(token)];
    EXPECT_NEAR(counts[0], 1820, 110);
    double chiSquare = 0;
    for (std::size_t t = 0; t < 4; ++t) {
      double expected = 4000 * std::exp(double(logits[t])) / total;
      chiSquare += (counts[t] - expected) * (counts[t] - expected) / expected;
    }
    EXPECT_LT(chiSquare, 16.27) << "3 degrees of freedom, p = 0.001";
  }
}

// Blocks behind a sliding window go back as tokens become final, not as they
// are guessed: over a real executor, with every free block full of NaN.
TEST(SpeculationCountsTest, slidingWindows) {
  for (std::uint32_t window : {0u, 20u, 64u}) {
    auto say = [&](Mode mode) {
      ContractOptions contract;
      contract.sequences = 3;
      contract.stepTokens = 64;
      contract.logitRows = 64;
      TinyRunner runner(contract, {true, 5}, window);
      SpeculatorOptions speculation;
      speculation.vocab = runner.executor->limits().vocab;
      std::unique_ptr<Drafter> drafter;
      if (mode == Mode::Ngram)
        drafter = std::make_unique<NgramDrafter>(NgramOptions{1, 4});
      if (mode == Mode::Wrong)
        drafter = std::make_unique<ScriptedDrafter>(
            [random = std::mt19937(2)](const DraftRequest &r) mutable {
              Draft draft;
              for (int i = 0; i < r.length; ++i)
                draft.push_back(std::int32_t(random() % 40));
              return draft;
            });
      CoreOptions options;
      options.context = runner.contract.context;
      options.checkInvariants = true;
      EngineCore core(*runner.executor, *runner.cache, options,
                      drafter ? std::make_unique<Speculator>(std::move(drafter),
                                                             speculation)
                              : nullptr);
      std::map<unsigned, std::vector<double>> said;
      for (unsigned salt = 0; salt < 5; ++salt) {
        TokenRequest request;
        std::mt19937 random(salt);
        for (unsigned i = 0; i < 3 + salt * 13; ++i)
          request.prompt.push_back(std::int32_t(random() % 6));
        request.maxTokens = 90;
        request.sampling.temperature = salt % 2 ? 0.9 : 0;
        request.sampling.seed = salt;
        request.sampling.logprobs = 0;
        request.onToken = [&said, salt](std::int32_t, const Choice &choice) {
          said[salt].push_back(choice.token);
          said[salt].push_back(choice.logprob);
          return true;
        };
        EXPECT_TRUE(core.submit(std::move(request), {}).isOk());
      }
      Status status = core.runUntilIdle();
      EXPECT_TRUE(status.isOk()) << status.message();
      EXPECT_EQ(runner.cache->allocator(0).numHeld(), 0);
      if (mode != Mode::Plain)
        EXPECT_GT(core.metrics().draftedTokens, 0u);
      return said;
    };
    auto expected = say(Mode::Plain);
    EXPECT_EQ(expected[4].size(), 180u);
    EXPECT_EQ(say(Mode::Ngram), expected) << "window " << window;
    EXPECT_EQ(say(Mode::Wrong), expected) << "window " << window;
  }
}
