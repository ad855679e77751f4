#include "compiler/calibrate/MeasureText.h"

#include "compiler/package/OutputFile.h"
#include "runtime/support/RunOnThreads.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>

namespace ingot {
namespace {

// What is kept of the logits of one row.
struct RowMeasure {
  double logLikelihood = 0, divergence = 0;
  bool agrees = false;
};

double logSumExp(std::span<const float> row) {
  float most = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (float value : row)
    sum += std::exp(double(value) - most);
  return double(most) + std::log(sum);
}

RowMeasure measureRow(std::span<const float> ours,
                      std::span<const float> theirs, std::int32_t next) {
  double ourSum = logSumExp(ours), theirSum = logSumExp(theirs);
  RowMeasure row;
  row.logLikelihood = double(ours[std::size_t(next)]) - ourSum;
  double sum = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    double theirLog = double(theirs[i]) - theirSum;
    double weight = std::exp(theirLog);
    if (weight > 0)
      sum += weight * (theirLog - (double(ours[i]) - ourSum));
  }
  // Rounding may leave a little less than nothing; NaN shows.
  row.divergence = sum < 0 ? 0.0 : sum;
  auto top = [](std::span<const float> all) {
    return std::max_element(all.begin(), all.end()) - all.begin();
  };
  row.agrees = top(ours) == top(theirs);
  return row;
}

} // namespace

std::string planHashOf(const Artifact &artifact) {
  return package::xxh3Text(artifact.segment(container::SegmentKind::Plan));
}

Result<TextMeasurer> TextMeasurer::create(const std::string &reference,
                                          const std::string &text,
                                          std::int32_t windowTokens,
                                          std::int64_t maxTokens,
                                          unsigned threads) {
  TextMeasurer measurer;
  measurer.threads_ = threads;
  INGOT_ASSIGN_OR_RETURN(Artifact artifact, Artifact::open(reference));
  measurer.windowTokens_ = std::min<std::int32_t>(
      windowTokens, std::int32_t(artifact.plan().model()->context()));
  INGOT_ASSIGN_OR_RETURN(
      WindowRunner runner,
      WindowRunner::open(reference, measurer.windowTokens_, threads));
  measurer.reference_.emplace(std::move(runner));
  INGOT_ASSIGN_OR_RETURN(
      measurer.windows_,
      measurer.reference_->windowsOf(text, measurer.windowTokens_, maxTokens));
  if (measurer.windows_.size() < 2)
    return Status::invalid(
        "the evaluation text has " + std::to_string(measurer.windows_.size()) +
        " windows of " + std::to_string(measurer.windowTokens_) +
        " tokens, expected at least 2");
  return measurer;
}

Result<TextMeasure> TextMeasurer::measure(
    const std::string &path,
    const std::function<void(std::int64_t, std::int64_t)> &progress) {
  auto start = std::chrono::steady_clock::now();
  INGOT_ASSIGN_OR_RETURN(WindowRunner runner,
                         WindowRunner::open(path, windowTokens_, threads_));
  if (runner.engine().model().vocab() != reference_->engine().model().vocab())
    return Status::invalid(path + ": has another vocabulary");
  TextMeasure result;
  result.planHash = planHashOf(runner.engine().artifact());
  result.level = runner.engine().level();
  std::error_code error;
  result.fileBytes = std::filesystem::file_size(path, error);
  auto vocab = std::size_t(runner.engine().model().vocab());
  std::uint64_t keptBytes = 0;
  for (const std::vector<std::int32_t> &window : windows_)
    keptBytes += (window.size() - 1) * vocab * sizeof(float);
  if (keptBytes <= kKeptLogitsBytes)
    kept_.resize(windows_.size());
  double logLikelihood = 0, agreed = 0;
  std::vector<double> divergences;
  for (std::size_t w = 0; w < windows_.size(); ++w) {
    if (progress)
      progress(std::int64_t(w), std::ssize(windows_));
    const std::vector<std::int32_t> &window = windows_[w];
    bool isKept = !kept_.empty() && !kept_[w].empty();
    for (WindowRunner *one : {&runner, &*reference_}) {
      if (one == &*reference_ && isKept)
        continue;
      INGOT_RETURN_IF_ERROR(one->begin(window));
      INGOT_RETURN_IF_ERROR(one->runTo(-1));
    }
    std::vector<RowMeasure> rows(window.size() - 1);
    auto reference = [&](std::size_t r) {
      return isKept ? std::span<const float>(kept_[w]).subspan(r * vocab, vocab)
                    : reference_->executor().logits(std::int32_t(r));
    };
    std::atomic<std::size_t> nextRow{0};
    runOnThreads(threads_, [&] {
      for (std::size_t r = nextRow++; r < rows.size(); r = nextRow++)
        rows[r] = measureRow(runner.executor().logits(std::int32_t(r)),
                             reference(r), window[r + 1]);
    });
    if (!kept_.empty() && !isKept)
      for (std::size_t r = 0; r < rows.size(); ++r) {
        auto logits = reference_->executor().logits(std::int32_t(r));
        kept_[w].insert(kept_[w].end(), logits.begin(), logits.end());
      }
    double sum = 0;
    for (const RowMeasure &row : rows) {
      logLikelihood += row.logLikelihood;
      sum += row.divergence;
      agreed += row.agrees;
      divergences.push_back(row.divergence);
    }
    result.windowKl.push_back(sum / double(rows.size()));
  }
  auto count = double(divergences.size());
  result.tokens = std::ssize(divergences);
  result.perplexity = std::exp(-logLikelihood / count);
  for (double value : divergences)
    result.meanKl += value / count;
  result.agreement = agreed / count;
  if (!std::isfinite(result.perplexity) || !std::isfinite(result.meanKl))
    return Status::internal(path + ": the logits on the evaluation text are "
                                   "not finite");
  auto rank = std::ptrdiff_t(std::ceil(0.99 * count)) - 1;
  std::nth_element(divergences.begin(), divergences.begin() + rank,
                   divergences.end());
  result.p99Kl = divergences[std::size_t(rank)];
  std::chrono::duration<double> taken =
      std::chrono::steady_clock::now() - start;
  result.seconds = taken.count();
  return result;
}

} // namespace ingot
