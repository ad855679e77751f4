#include "test/e2e/GoldenComparison.h"

#include "test/e2e/CompiledModel.h"
#include "test/e2e/Goldens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace ingot::test {
namespace {

using Tokens = std::vector<std::int32_t>;

// The largest of some measured errors relative to what each may be.
struct Worst {
  double measured = 0;
  double allowed = 0;
  double ratio = 0;

  void add(double error, double limit) {
    // A comparison with NaN must not pass.
    double r = std::isnan(error) ? INFINITY : error / limit;
    if (r >= ratio) {
      measured = error;
      allowed = limit;
      ratio = r;
    }
  }
  void print(const std::string &model, const char *what) const {
    std::printf("%-22s %-11s error %.3g, allowed %.3g, ratio %.3f\n",
                model.c_str(), what, measured, allowed, ratio);
  }
};

struct Errors {
  Worst logits, sums, projections;
  double largest = 0; // over all logits that are stored
};

void compareLogits(const GoldenLogits &golden, const std::vector<float> &ours,
                   Errors &errors) {
  SCOPED_TRACE("prompt " + std::to_string(golden.prompt));
  double bound = std::max(1e-4, 4 * golden.maxError);
  double error = 0;
  std::vector<bool> isStored(ours.size());
  for (std::size_t i = 0; i < golden.ids.size(); ++i) {
    std::size_t id = std::size_t(golden.ids[i]);
    isStored[id] = true;
    ASSERT_TRUE(std::isfinite(ours[id])) << "logit of token " << id;
    error = std::max(error, std::abs(double(ours[id]) - golden.logits[i]));
  }
  errors.logits.add(error, bound);
  errors.largest = std::max(errors.largest, error);
  EXPECT_LE(error, bound) << "largest error of the stored logits";

  double excess = 0;
  for (std::size_t id = 0; id < ours.size(); ++id)
    if (!isStored[id]) {
      ASSERT_TRUE(std::isfinite(ours[id])) << "logit of token " << id;
      excess = std::max(excess, double(ours[id]) - golden.logits.back());
    }
  EXPECT_LE(excess, bound) << "a logit that should be smaller than the 64 "
                              "largest exceeds them";

  double sumError = std::abs(logSumExp(ours) - golden.logSumExp);
  errors.sums.add(sumError, bound);
  EXPECT_LE(sumError, bound) << "error of the log of the sum of exp";

  double projectionBound = 6 * std::sqrt(double(ours.size())) * bound;
  for (std::size_t j = 0; j < golden.projections.size(); ++j) {
    double sum = 0;
    for (std::size_t id = 0; id < ours.size(); ++id)
      sum += projectionSign(j, id) * double(ours[id]);
    double difference = std::abs(sum - golden.projections[j]);
    errors.projections.add(difference, projectionBound);
    EXPECT_LE(difference, projectionBound) << "error of projection " << j;
  }

  auto top = std::max_element(ours.begin(), ours.end()) - ours.begin();
  if (top != golden.ids[0]) {
    double lead = golden.logits[0] - golden.logits[1];
    std::printf("prompt %d: token %td instead of %d, whose lead is %.3g\n",
                golden.prompt, top, golden.ids[0], lead);
    EXPECT_LE(lead, 2 * error) << "another largest logit: token " << top
                               << " instead of " << golden.ids[0];
  }
}

// Greedy continuations of all prompts together.
std::vector<Tokens> continueAll(Engine &engine,
                                const std::vector<Tokens> &prompts,
                                const std::vector<std::int64_t> &lengths) {
  std::vector<Tokens> made(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    TokenRequest request;
    request.prompt = prompts[i];
    request.sampling.temperature = 0;
    request.maxTokens = lengths[i];
    request.ignoreEos = true;
    auto id = engine.core().submit(
        std::move(request), [&made, i](const RequestOutcome &done) {
          EXPECT_EQ(done.reason, FinishReason::Length) << done.status.message();
          made[i] = done.tokens;
        });
    EXPECT_TRUE(id.isOk()) << id.status().message();
  }
  Status status = engine.runUntilIdle();
  EXPECT_TRUE(status.isOk()) << status.message();
  return made;
}

// Returns the number of flips, all of them allowed unless the test has failed.
int compareGreedy(Engine &engine, const ModelGoldens &goldens,
                  double allowedLead) {
  int flips = 0;
  std::vector<std::size_t> agreed(goldens.greedy.size(), 0); // steps compared
  while (true) {
    std::vector<std::size_t> rows;
    std::vector<Tokens> prompts;
    std::vector<std::int64_t> lengths;
    for (std::size_t i = 0; i < goldens.greedy.size(); ++i) {
      const GoldenGreedy &golden = goldens.greedy[i];
      if (agreed[i] == golden.tokens.size())
        continue;
      rows.push_back(i);
      prompts.push_back(goldens.prompts[std::size_t(golden.prompt)]);
      prompts.back().insert(prompts.back().end(), golden.tokens.begin(),
                            golden.tokens.begin() + std::ptrdiff_t(agreed[i]));
      lengths.push_back(std::int64_t(golden.tokens.size() - agreed[i]));
    }
    if (rows.empty())
      return flips;
    auto made = continueAll(engine, prompts, lengths);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const GoldenGreedy &golden = goldens.greedy[rows[r]];
      std::size_t &step = agreed[rows[r]];
      if (made[r].size() != golden.tokens.size() - step) {
        ADD_FAILURE() << "prompt " << golden.prompt << ": " << made[r].size()
                      << " tokens, expected " << golden.tokens.size() - step;
        return flips;
      }
      auto [ours, theirs] =
          std::mismatch(made[r].begin(), made[r].end(),
                        golden.tokens.begin() + std::ptrdiff_t(step));
      step += std::size_t(ours - made[r].begin());
      if (ours == made[r].end())
        continue;
      ++flips;
      std::printf("flip: prompt %d, step %zu: token %d instead of %d, whose "
                  "lead is %.4g (allowed %.3g)\n",
                  golden.prompt, step, *ours, *theirs, golden.gaps[step],
                  allowedLead);
      if (golden.gaps[step] > allowedLead) {
        ADD_FAILURE() << "prompt " << golden.prompt << ", step " << step
                      << ": token " << *ours << " instead of " << *theirs
                      << ", whose lead of " << golden.gaps[step]
                      << " is no rounding";
        return flips;
      }
      ++step; // go on behind the reference's token
    }
  }
}

} // namespace

GoldenModel smallModel(const std::string &name) {
  return {name, INGOT_SOURCE_DIR "/test/models/" + name};
}

GoldenModel familyGguf(const std::string &name) {
  GoldenModel model = smallModel("families/" + name);
  model.source = model.path;
  model.path = INGOT_SOURCE_DIR "/test/models/families-gguf/" + name + ".gguf";
  return model;
}

void expectWeights(const GoldenModel &model, const std::string &sha256) {
  const std::string &path = model.source.empty() ? model.path : model.source;
  auto ours = weightsSha256(path);
  ASSERT_TRUE(ours.isOk()) << ours.status().message();
  ASSERT_EQ(*ours, sha256) << "The goldens of " << model.name
                           << " were made with other weights than " << path
                           << " holds: run test/e2e/goldens/make_goldens.py.";
}

std::vector<std::vector<float>> scoreTokens(Engine &engine,
                                            const Tokens &tokens) {
  std::vector<std::vector<float>> rows;
  ScoreRequest request;
  request.tokens = tokens;
  request.onLogits = [&rows](std::int32_t, std::span<const float> logits) {
    rows.emplace_back(logits.begin(), logits.end());
  };
  auto id = engine.core().submit(std::move(request), {});
  EXPECT_TRUE(id.isOk()) << id.status().message();
  Status status = engine.runUntilIdle();
  EXPECT_TRUE(status.isOk()) << status.message();
  EXPECT_EQ(rows.size(), tokens.size());
  return rows.size() == tokens.size() ? rows
                                      : std::vector<std::vector<float>>();
}

double logSumExp(const std::vector<float> &logits) {
  double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float logit : logits)
    sum += std::exp(double(logit) - most);
  return most + std::log(sum);
}

void compareWithTransformers(const GoldenModel &model) {
  std::string missing = whyNotCompiled(model.path);
  if (!missing.empty())
    GTEST_SKIP() << missing;
  auto goldens = readGoldens(model.name);
  if (goldens.status().code() == StatusCode::NotFound)
    GTEST_SKIP() << goldens.status().message();
  ASSERT_TRUE(goldens.isOk()) << goldens.status().message();
  ASSERT_NO_FATAL_FAILURE(expectWeights(model, goldens->weightsSha256));
  auto length = [&](const auto &golden) {
    return goldens->prompts[std::size_t(golden.prompt)].size();
  };
  auto isLeftOut = [&](const auto &golden) {
    return length(golden) > model.longest;
  };
  std::erase_if(goldens->logits, isLeftOut);
  std::erase_if(goldens->greedy, isLeftOut);
  for (GoldenGreedy &golden : goldens->greedy)
    if (model.longest - length(golden) < golden.tokens.size())
      golden.tokens.resize(model.longest - length(golden) + 1);
  ASSERT_FALSE(goldens->logits.empty() || goldens->greedy.empty());

  std::string path = compiledModel(model.path, "f32", "f32");
  ASSERT_FALSE(path.empty());
  EngineOptions options;
  options.sequences = std::int32_t(goldens->greedy.size());
  options.logitRows = options.stepTokens;
  for (const Tokens &prompt : goldens->prompts)
    options.context = std::max(options.context, std::int32_t(prompt.size()));
  for (const GoldenGreedy &golden : goldens->greedy)
    options.context = std::max(
        options.context,
        std::int32_t(goldens->prompts[std::size_t(golden.prompt)].size() +
                     golden.tokens.size()));
  auto opened = Engine::open(path, options);
  ASSERT_TRUE(opened.isOk()) << opened.status().message();
  Engine &engine = **opened;
  ASSERT_EQ(std::int32_t(engine.model().vocab()), goldens->vocabulary);

  Errors errors;
  double theirs = 0;
  for (const GoldenLogits &golden : goldens->logits) {
    auto rows =
        scoreTokens(engine, goldens->prompts[std::size_t(golden.prompt)]);
    ASSERT_FALSE(rows.empty());
    theirs = std::max(theirs, golden.maxError);
    compareLogits(golden, rows.back(), errors);
    if (::testing::Test::HasFatalFailure())
      return;
  }
  int flips = compareGreedy(engine, *goldens, 2 * (errors.largest + theirs));

  errors.logits.print(model.name, "logits");
  errors.sums.print(model.name, "log sum exp");
  errors.projections.print(model.name, "projections");
  std::printf("%-22s largest error %.3g, that of transformers in float32 %.3g; "
              "%d flips in %zu greedy tokens\n",
              model.name.c_str(), errors.largest, theirs, flips,
              goldens->greedy.size() * goldens->greedy[0].tokens.size());
}

void compareInt8Cache(const GoldenModel &model, double share) {
  std::string missing = whyNotCompiled(model.path);
  if (!missing.empty())
    GTEST_SKIP() << missing;
  auto goldens = readGoldens(model.name);
  if (goldens.status().code() == StatusCode::NotFound)
    GTEST_SKIP() << goldens.status().message();
  ASSERT_TRUE(goldens.isOk()) << goldens.status().message();
  ASSERT_NO_FATAL_FAILURE(expectWeights(model, goldens->weightsSha256));
  std::string path = compiledModel(model.path, "f32", "int8");
  ASSERT_FALSE(path.empty());
  EngineOptions options;
  options.logitRows = options.stepTokens;
  for (const Tokens &prompt : goldens->prompts)
    options.context = std::max(options.context, std::int32_t(prompt.size()));
  auto engine = Engine::open(path, options);
  ASSERT_TRUE(engine.isOk()) << engine.status().message();
  double worst = 0;
  for (const GoldenLogits &golden : goldens->logits) {
    auto rows =
        scoreTokens(**engine, goldens->prompts[std::size_t(golden.prompt)]);
    ASSERT_FALSE(rows.empty());
    double error = 0;
    for (std::size_t i = 0; i < golden.ids.size(); ++i)
      error = std::max(
          error, std::abs(double(rows.back()[std::size_t(golden.ids[i])]) -
                          golden.logits[i]));
    error /= std::abs(golden.logits[0]);
    EXPECT_LE(error, share) << "prompt " << golden.prompt;
    worst = std::max(worst, error);
  }
  EXPECT_GT(worst, 1e-5) << "the cache seems to hold no codes";
  std::printf("%-22s int8 cache: largest error %.3g of the largest logit "
              "(allowed %.3g)\n",
              model.name.c_str(), worst, share);
}

} // namespace ingot::test
