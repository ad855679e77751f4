// `ingot eval`: how well the model predicts a text, and how far it stands from
// another artifact of the same vocabulary, position by position.
#include "tools/ingot/Commands.h"
#include "tools/ingot/Report.h"
#include "tools/text/InputText.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace ingot::cli {
namespace {

constexpr int kChunk = 64; // rows of logits held at once

struct Scores {
  double negativeLogLikelihood = 0;
  std::int64_t predicted = 0;
  std::vector<float> divergences; // one a position, of all tokens
  std::int64_t agreed = 0;
  nlohmann::ordered_json windows; // an object for each
};

double logSumExp(const float *row, std::size_t size, float &most) {
  most = *std::max_element(row, row + size);
  double sum = 0;
  for (std::size_t i = 0; i < size; ++i)
    sum += std::exp(double(row[i]) - most);
  return double(most) + std::log(sum);
}

// The logits of one step of one engine.
struct Chunk {
  std::int32_t firstPosition = 0;
  std::vector<std::vector<float>> rows;

  ScoreRequest request(std::vector<std::int32_t> tokens) {
    ScoreRequest score;
    score.tokens = std::move(tokens);
    score.onLogits = [this](std::int32_t position,
                            std::span<const float> logits) {
      if (rows.empty())
        firstPosition = position;
      rows.emplace_back(logits.begin(), logits.end());
    };
    return score;
  }
};

void compare(const std::vector<float> &ours, const std::vector<float> &theirs,
             Scores &scores) {
  float ourMost, theirMost;
  double ourSum = logSumExp(ours.data(), ours.size(), ourMost);
  double theirSum = logSumExp(theirs.data(), theirs.size(), theirMost);
  double divergence = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    double theirLog = double(theirs[i]) - theirSum;
    double weight = std::exp(theirLog);
    if (weight > 0)
      divergence += weight * (theirLog - (double(ours[i]) - ourSum));
  }
  scores.divergences.push_back(float(std::max(divergence, 0.0)));
  auto top = [](const std::vector<float> &row) {
    return std::max_element(row.begin(), row.end()) - row.begin();
  };
  scores.agreed += top(ours) == top(theirs);
}

Status scoreWindow(Engine &engine, Engine *against,
                   const std::vector<std::int32_t> &tokens, Scores &scores) {
  Chunk ours, theirs;
  INGOT_ASSIGN_OR_RETURN(RequestId id,
                         engine.core().submit(ours.request(tokens), {}));
  RequestId other = 0;
  if (against) {
    INGOT_ASSIGN_OR_RETURN(other,
                           against->core().submit(theirs.request(tokens), {}));
  }
  // Both take the same chunks: they are idle otherwise and of one capacity.
  while (!engine.core().isIdle()) {
    ours.rows.clear();
    theirs.rows.clear();
    Status status = engine.step();
    if (status.isOk() && against)
      status = against->step();
    if (status.isOk() && against &&
        (ours.firstPosition != theirs.firstPosition ||
         ours.rows.size() != theirs.rows.size()))
      status = Status::internal("the two engines took different chunks");
    if (!status) {
      engine.core().cancel(id);
      if (against)
        against->core().cancel(other);
      return status;
    }
    for (std::size_t r = 0; r < ours.rows.size(); ++r) {
      std::size_t next = std::size_t(ours.firstPosition) + r + 1;
      if (next >= tokens.size())
        continue; // nothing follows the last token of a window
      const auto &row = ours.rows[r];
      float most;
      double sum = logSumExp(row.data(), row.size(), most);
      if (!std::isfinite(sum))
        return Status::internal("the logits of position " +
                                std::to_string(next - 1) + " are not finite");
      scores.negativeLogLikelihood += sum - double(row[tokens[next]]);
      ++scores.predicted;
      if (against)
        compare(row, theirs.rows[r], scores);
    }
  }
  return Status::ok();
}

} // namespace

Status eval(const EvalFlags &flags) {
  EngineOptions options = flags.model.engineOptions();
  options.context = flags.window;
  options.stepTokens = kChunk;
  options.logitRows = kChunk;
  INGOT_ASSIGN_OR_RETURN(std::string text, readText(flags.textFile));
  INGOT_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                         Engine::open(flags.model.path, options));
  std::unique_ptr<Engine> against;
  if (!flags.against.empty()) {
    INGOT_ASSIGN_OR_RETURN(against, Engine::open(flags.against, options));
    if (against->model().vocab() != engine->model().vocab())
      return Status::invalid(flags.against + ": vocabulary of " +
                             std::to_string(against->model().vocab()) + ", " +
                             flags.model.path + " has " +
                             std::to_string(engine->model().vocab()));
  }
  if (!engine->tokenizer())
    return Status::unsupported(flags.model.path + ": has no tokenizer");
  EncodeOptions plain;
  plain.addSpecialTokens = false;
  // The text is data: nothing in it is a control token.
  TextRange whole{0, text.size()};
  plain.plainRanges = {&whole, 1};
  INGOT_ASSIGN_OR_RETURN(auto ids, engine->tokenizer()->encode(text, plain));
  if (flags.maxTokens > 0 && std::int64_t(ids.size()) > flags.maxTokens)
    ids.resize(std::size_t(flags.maxTokens));

  auto prefix = engine->tokenizer()->prefixIds();
  if (prefix.size() + 2 > std::size_t(flags.window))
    return Status::invalid("--window is too small for the model's prefix");
  std::size_t fresh = std::size_t(flags.window) - prefix.size();
  Scores scores;
  std::size_t windows = 0;
  for (std::size_t begin = 0; begin + 1 < ids.size(); begin += fresh) {
    std::size_t end = std::min(ids.size(), begin + fresh);
    std::vector<std::int32_t> tokens(prefix.begin(), prefix.end());
    tokens.insert(tokens.end(), ids.begin() + std::ptrdiff_t(begin),
                  ids.begin() + std::ptrdiff_t(end));
    if (tokens.size() < 2)
      break;
    double before = scores.negativeLogLikelihood;
    auto first = std::ptrdiff_t(scores.divergences.size());
    std::int64_t predicted = scores.predicted;
    INGOT_RETURN_IF_ERROR(scoreWindow(*engine, against.get(), tokens, scores));
    ++windows;
    scores.windows.push_back(
        {{"predicted_tokens", scores.predicted - predicted},
         {"negative_log_likelihood", scores.negativeLogLikelihood - before}});
    if (against)
      scores.windows.back()["kl"] = std::accumulate(
          scores.divergences.begin() + first, scores.divergences.end(), 0.0);
  }
  if (scores.predicted == 0)
    return Status::invalid(flags.textFile + ": has fewer than two tokens");

  double perplexity =
      std::exp(scores.negativeLogLikelihood / double(scores.predicted));
  nlohmann::ordered_json report = {
      {"model", flags.model.path}, {"text", flags.textFile},
      {"level", engine->level()},  {"window", flags.window},
      {"windows", windows},        {"predicted_tokens", scores.predicted},
      {"perplexity", perplexity}};
  double mean = 0, tail = 0, agreement = 0;
  if (against) {
    auto &all = scores.divergences;
    for (float value : all)
      mean += double(value) / double(all.size());
    std::size_t rank = std::size_t(std::ceil(0.99 * double(all.size()))) - 1;
    std::nth_element(all.begin(), all.begin() + std::ptrdiff_t(rank),
                     all.end());
    tail = all[rank];
    agreement = double(scores.agreed) / double(all.size());
    report["against"] = flags.against;
    report["mean_kl"] = mean;
    report["p99_kl"] = tail;
    report["top1_agreement"] = agreement;
  }
  // Sums over the positions of each window, for intervals of differences.
  report["by_window"] = std::move(scores.windows);
  if (flags.json) {
    std::printf("%s\n", jsonText(report).c_str());
    return Status::ok();
  }
  std::printf("perplexity      %.4f  (%lld tokens, %zu windows of %d)\n",
              perplexity, static_cast<long long>(scores.predicted), windows,
              flags.window);
  if (against)
    std::printf("against %s\n"
                "mean KL         %.6f\n"
                "99th percentile %.6f\n"
                "top-1 agreement %.2f %%\n",
                flags.against.c_str(), mean, tail, agreement * 100);
  return Status::ok();
}

} // namespace ingot::cli
