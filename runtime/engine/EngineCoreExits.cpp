// How a step runs where some of its sequences may leave the model early. Their
// rows are run apart from those of the others:
//
//   1. rows that run every layer: all of exact sequences, and prompts
//   2. rows that are computed again after a preemption, each to the exit that it
//      left at before
//   3. the next token's row of each sequence that may leave, all together, from
//      exit to exit; at each, those that are sure enough leave
//
// Where a row leaves, the layers behind get its keys and values at once, so no
// later row reads a place that nothing has written.
#include "runtime/engine/EngineCore.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ingot {
namespace {

double firstProbability(std::span<const float> logits) {
  float most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float logit : logits)
    sum += std::exp(double(logit) - double(most));
  return 1 / sum;
}

// Runs parts of a step's rows and gathers the logits of all of them.
class PartialSteps {
public:
  PartialSteps(const StepPlan &plan, Executor &executor, const KvCache &cache,
               std::vector<std::vector<float>> &logits)
      : plan_(plan), executor_(executor), cache_(cache), logits_(logits),
        logitOfRow_(std::size_t(plan.numRows()), -1) {
    logits_.assign(plan.logitRows.size(), {});
    for (std::size_t l = 0; l < plan.logitRows.size(); ++l)
      logitOfRow_[std::size_t(plan.logitRows[l])] = std::int32_t(l);
  }

  // `rows` are ascending rows of the step.
  StepPlan planOf(std::span<const std::int32_t> rows, bool wantsLogits) const {
    StepPlan part;
    std::size_t s = 0;
    for (std::int32_t row : rows) {
      while (row >= plan_.sequences[s].firstRow + plan_.sequences[s].numRows)
        ++s;
      const StepSequence &from = plan_.sequences[s];
      std::int32_t position = from.firstPosition + row - from.firstRow;
      StepSequence *last =
          part.sequences.empty() ? nullptr : &part.sequences.back();
      if (last && last->id == from.id &&
          last->firstPosition + last->numRows == position)
        ++last->numRows;
      else
        part.sequences.push_back(
            {from.id, part.numRows(), 1, position, from.rotaryLength});
      if (wantsLogits && logitOfRow_[std::size_t(row)] >= 0)
        part.logitRows.push_back(part.numRows());
      part.tokens.push_back(plan_.tokens[std::size_t(row)]);
    }
    return part;
  }
  Status run(const StepPlan &part) { return executor_.run(part, cache_); }

  // The latest run's logits row is of this row of the step.
  void keepLogits(std::int32_t row, std::int32_t logit) {
    auto from = executor_.logits(logit);
    logits_[std::size_t(logitOfRow_[std::size_t(row)])].assign(from.begin(),
                                                               from.end());
  }
  // All of them, in order.
  void keepLogits(std::span<const std::int32_t> rows) {
    std::int32_t logit = 0;
    for (std::int32_t row : rows)
      if (logitOfRow_[std::size_t(row)] >= 0)
        keepLogits(row, logit++);
  }

  Status runWhole(std::span<const std::int32_t> rows) {
    if (rows.empty())
      return Status::ok();
    INGOT_RETURN_IF_ERROR(run(planOf(rows, true)));
    keepLogits(rows);
    return Status::ok();
  }

  // Kept rows `hiddenRows` leave at the exit.
  Status fill(std::span<const std::int32_t> rows, std::int32_t exit,
              std::vector<std::int32_t> hiddenRows) {
    StepPlan part = planOf(rows, false);
    part.firstSegment = part.endSegment = after(exit);
    part.exitFill = exit;
    part.hiddenRows = std::move(hiddenRows);
    return run(part);
  }

  Status runToExit(std::span<const std::int32_t> rows, std::int32_t exit) {
    StepPlan part = planOf(rows, true);
    part.endSegment = after(exit);
    part.keepsHidden = true;
    if (!part.logitRows.empty())
      part.exitHead = exit;
    INGOT_RETURN_IF_ERROR(run(part));
    keepLogits(rows);
    std::vector<std::int32_t> all(rows.size());
    std::iota(all.begin(), all.end(), 0);
    return fill(rows, exit, std::move(all));
  }

  std::int32_t after(std::int32_t exit) const {
    return executor_.limits().exitsAfter[std::size_t(exit)];
  }
  std::span<const float> logits(std::int32_t logit) const {
    return executor_.logits(logit);
  }

private:
  const StepPlan &plan_;
  Executor &executor_;
  const KvCache &cache_;
  std::vector<std::vector<float>> &logits_;
  std::vector<std::int32_t> logitOfRow_; // -1: wants none
};

} // namespace

double ExitCurve::confidence(std::span<const float> logits) const {
  double probability = firstProbability(logits);
  if (curve.empty() || !(probability >= 0))
    return probability;
  auto bins = double(curve.size());
  return double(
      curve[std::size_t(std::clamp(probability * bins, 0.0, bins - 1))]);
}

// Where the row at `position` left, or leaves; numExits: nowhere, -1: that is
// still to be seen.
std::int32_t EngineCore::exitOf(const Request &request,
                                std::int32_t position) const {
  auto whole = std::int32_t(options_.exits.size());
  if (!request.mayExit() || position < request.promptTokens)
    return whole;
  auto index = std::size_t(position - request.promptTokens);
  return index < request.exits.size() ? request.exits[index] : -1;
}

Status EngineCore::runStep(const StepPlan &plan) {
  stepLogits_.clear();
  stepExits_.clear();
  stepChose_ = false;
  if (std::none_of(plan.sequences.begin(), plan.sequences.end(),
                   [&](const auto &rows) { return find(rows.id)->mayExit(); }))
    return runWhole(plan);

  PartialSteps steps(plan, executor_, cache_, stepLogits_);
  auto whole = std::int32_t(options_.exits.size());
  struct Piece {
    std::int32_t exit;
    std::vector<std::int32_t> rows;
  };
  std::vector<std::int32_t> exact, open;
  std::vector<double> thresholds; // of each row of `open`
  std::vector<Piece> again;
  for (const StepSequence &rows : plan.sequences) {
    const Request &request = *find(rows.id);
    bool isAgain = false; // behind a row that left, order matters
    for (std::int32_t r = 0; r < rows.numRows; ++r) {
      std::int32_t row = rows.firstRow + r;
      std::int32_t exit = exitOf(request, rows.firstPosition + r);
      if (exit == -1) {
        open.push_back(row);
        thresholds.push_back(request.exitThreshold);
      } else if (exit == whole && !isAgain) {
        exact.push_back(row);
      } else {
        if (!isAgain || again.back().exit != exit)
          again.push_back({exit, {}});
        again.back().rows.push_back(row);
        isAgain = true;
      }
    }
  }
  INGOT_RETURN_IF_ERROR(steps.runWhole(exact));
  for (const Piece &piece : again)
    INGOT_RETURN_IF_ERROR(piece.exit == whole
                              ? steps.runWhole(piece.rows)
                              : steps.runToExit(piece.rows, piece.exit));

  std::vector<std::int32_t> kept; // of `open`, among the states kept last
  std::int32_t segment = 0;
  for (std::int32_t exit = 0; exit < whole && !open.empty(); ++exit) {
    StepPlan part = steps.planOf(open, true);
    part.firstSegment = segment;
    part.endSegment = segment = steps.after(exit);
    part.exitHead = exit;
    part.keepsHidden = true;
    part.hiddenRows = kept;
    INGOT_RETURN_IF_ERROR(steps.run(part));
    std::vector<std::int32_t> leaving, leavingKept, staying, stayingKept;
    std::vector<double> stayingThresholds;
    for (std::size_t i = 0; i < open.size(); ++i) {
      auto index = std::int32_t(i);
      double confidence =
          options_.exits[std::size_t(exit)].confidence(steps.logits(index));
      if (confidence >= thresholds[i]) {
        steps.keepLogits(open[i], index);
        leaving.push_back(open[i]);
        leavingKept.push_back(index);
        stepExits_.emplace_back(open[i], exit);
      } else {
        staying.push_back(open[i]);
        stayingKept.push_back(index);
        stayingThresholds.push_back(thresholds[i]);
      }
    }
    if (!leaving.empty())
      INGOT_RETURN_IF_ERROR(steps.fill(leaving, exit, std::move(leavingKept)));
    open = std::move(staying);
    kept = std::move(stayingKept);
    thresholds = std::move(stayingThresholds);
  }
  if (open.empty())
    return Status::ok();
  StepPlan part = steps.planOf(open, true);
  part.firstSegment = segment;
  part.hiddenRows = kept;
  INGOT_RETURN_IF_ERROR(steps.run(part));
  steps.keepLogits(open);
  for (std::int32_t row : open)
    stepExits_.emplace_back(row, whole);
  return Status::ok();
}

std::span<const float> EngineCore::stepLogits(std::size_t logit) const {
  return stepLogits_.empty() ? executor_.logits(std::int32_t(logit))
                             : std::span<const float>(stepLogits_[logit]);
}

// Where the rows of the step have left is part of their sequences from now on.
void EngineCore::commitExits(const StepPlan &plan) {
  for (auto [row, exit] : stepExits_)
    for (const StepSequence &rows : plan.sequences)
      if (row >= rows.firstRow && row < rows.firstRow + rows.numRows) {
        find(rows.id)->exits.push_back(exit);
        ++totals_.exitDepths[std::size_t(exit)];
      }
}

} // namespace ingot
