// 1. Weigh the parts of a row: run each once for one row and look at its launches.
// 2. For each window: run its prompt whole, then row by row without exits, and
//    again with each threshold; in another order for each window, as what runs
//    first finds other caches and clocks.
// 3. Sum up where rows left, what that weighs and how their choices differ; the
//    ratio of times within each window gives speed and its spread.
#include "compiler/calibrate/ExitTradeoff.h"

#include "compiler/calibrate/WindowRunner.h"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace ingot {
namespace {

constexpr SequenceId kSequence = 1;

RowWork workOf(const BoundLaunch &launch, std::int32_t rows) {
  RowWork work;
  work.bytes = launch.fixedBytes + launch.bytesPerRow * rows;
  work.bytesPerPosition = launch.bytesPerPosition;
  auto product = [&](const abi::LinearParams &linear) {
    work.operations = 2.0 * linear.n * linear.k * rows;
  };
  if (launch.op == fbs::Params::Linear)
    product(launch.params.linear);
  else if (launch.op == fbs::Params::ExpertLinear)
    product(launch.params.expertLinear.linear);
  else if (launch.op == fbs::Params::Attention)
    work.operationsPerPosition = 4.0 * launch.params.attention.heads *
                                 launch.params.attention.headDim * rows;
  return work;
}

class Measuring {
public:
  explicit Measuring(const ExitTradeoffRequest &request) : request_(request) {}

  Result<ExitTradeoffs> run() {
    INGOT_RETURN_IF_ERROR(open());
    INGOT_RETURN_IF_ERROR(weigh());
    std::size_t passes = request_.thresholds.size() + 1;
    std::vector<std::vector<double>> seconds(passes); // [pass][window]
    for (std::size_t w = 0; w < windows_.size(); ++w) {
      if (request_.progress)
        request_.progress(std::int64_t(w), std::ssize(windows_));
      std::vector<std::int32_t> whole;
      std::vector<std::vector<std::int32_t>> chosen(passes);
      for (std::size_t i = 0; i < passes; ++i) {
        std::size_t pass = (i + w) % passes; // 0: without exits
        double threshold = pass == 0 ? 0 : request_.thresholds[pass - 1];
        INGOT_ASSIGN_OR_RETURN(
            double taken,
            runWindow(windows_[w], threshold,
                      pass == 0 ? nullptr : &result_.points[pass - 1],
                      chosen[pass]));
        seconds[pass].push_back(taken);
      }
      for (std::size_t pass = 1; pass < passes; ++pass)
        for (std::size_t r = 0; r < chosen[0].size(); ++r)
          result_.points[pass - 1].disagreement +=
              chosen[pass][r] != chosen[0][r];
      result_.rows += std::ssize(chosen[0]);
    }
    finish(seconds);
    return std::move(result_);
  }

private:
  Status open() {
    for (double threshold : request_.thresholds)
      if (!(threshold >= 0 && threshold <= 1))
        return Status::invalid("a threshold of " + std::to_string(threshold) +
                               ", expected 0 to 1");
    if (request_.promptTokens < 1 ||
        request_.promptTokens >= request_.windowTokens)
      return Status::invalid(
          "prompts of " + std::to_string(request_.promptTokens) +
          " tokens in windows of " + std::to_string(request_.windowTokens) +
          ", expected at least one and fewer than the window has");
    INGOT_ASSIGN_OR_RETURN(WindowRunner runner,
                           WindowRunner::open(request_.artifact,
                                              request_.windowTokens,
                                              request_.threads));
    runner_.emplace(std::move(runner));
    const StepLimits &limits = executor().limits();
    if (limits.exitsAfter.empty())
      return Status::unsupported(request_.artifact +
                                 ": has no early exits; compile it with "
                                 "--exits");
    INGOT_ASSIGN_OR_RETURN(windows_, runner_->windowsOf(request_.text,
                                                        request_.windowTokens,
                                                        request_.maxTokens));
    if (windows_.empty())
      return Status::invalid("the text has no window of " +
                             std::to_string(request_.windowTokens) + " tokens");
    result_.windows = std::ssize(windows_);
    for (const ExitCurve &exit : curves())
      result_.layers.push_back(exit.layers);
    for (double threshold : request_.thresholds) {
      result_.points.emplace_back().threshold = threshold;
      result_.points.back().left.assign(limits.exitsAfter.size() + 1, 0);
    }
    return Status::ok();
  }

  CpuExecutor &executor() { return runner_->executor(); }
  KvCache &cache() { return runner_->engine().cache(); }
  const std::vector<ExitCurve> &curves() {
    return runner_->engine().core().options().exits;
  }
  std::int32_t numExits() { return std::int32_t(curves().size()); }
  std::int32_t after(std::int32_t exit) {
    return executor().limits().exitsAfter[std::size_t(exit)];
  }

  StepPlan planOf(const std::vector<std::int32_t> &window, std::int32_t first,
                  std::int32_t count) {
    StepPlan plan;
    auto size = std::int32_t(window.size());
    plan.sequences = {
        {kSequence, 0, count, first,
         runner_->engine().core().options().rotary.lengthFor(size, size)}};
    plan.tokens.assign(window.begin() + first, window.begin() + first + count);
    return plan;
  }

  // The parts that follow are those of EngineCore::runStep for one row.
  Status runWhole(StepPlan plan) {
    plan.logitRows = {0};
    return executor().run(plan, cache());
  }
  Status runToExit(StepPlan plan, std::int32_t exit) {
    plan.firstSegment = exit == 0 ? 0 : after(exit - 1);
    plan.endSegment = after(exit);
    plan.exitHead = exit;
    plan.keepsHidden = true;
    plan.logitRows = {0};
    if (exit > 0)
      plan.hiddenRows = {0};
    return executor().run(plan, cache());
  }
  Status runFill(StepPlan plan, std::int32_t exit) {
    plan.firstSegment = plan.endSegment = after(exit);
    plan.exitFill = exit;
    plan.hiddenRows = {0};
    return executor().run(plan, cache());
  }
  Status runRest(StepPlan plan) {
    plan.firstSegment = after(numExits() - 1);
    plan.hiddenRows = {0};
    plan.logitRows = {0};
    return executor().run(plan, cache());
  }

  // What the launches of one part weigh for one row; a name that begins with
  // `split` counts apart.
  template <typename Run>
  Result<RowWork> weighed(Run &&run, std::int32_t exit = -1,
                          RowWork *head = nullptr) {
    RowWork work;
    std::string prefix =
        exit == -1
            ? std::string()
            : "exit" + std::to_string(result_.layers[std::size_t(exit)]) + ".";
    executor().observeInputs([&](const BoundLaunch &launch, std::int32_t rows) {
      bool isHead = head && launch.name.rfind(prefix, 0) == 0;
      (isHead ? *head : work) += workOf(launch, rows);
    });
    Status status = run();
    executor().observeInputs({});
    if (!status)
      return status;
    return work;
  }

  Status weigh() {
    INGOT_RETURN_IF_ERROR(runner_->begin(windows_.front()));
    StepPlan row = planOf(windows_.front(), 0, 1);
    INGOT_ASSIGN_OR_RETURN(result_.work.whole,
                           weighed([&] { return runWhole(row); }));
    for (std::int32_t exit = 0; exit < numExits(); ++exit) {
      RowWork head;
      INGOT_ASSIGN_OR_RETURN(
          RowWork layers,
          weighed([&] { return runToExit(row, exit); }, exit, &head));
      INGOT_ASSIGN_OR_RETURN(RowWork fill,
                             weighed([&] { return runFill(row, exit); }));
      result_.work.layers.push_back(layers);
      result_.work.heads.push_back(head);
      result_.work.fills.push_back(fill);
      if (head.operations == 0)
        return Status::internal("the head of exit " + std::to_string(exit) +
                                " was not seen");
    }
    INGOT_ASSIGN_OR_RETURN(result_.work.rest,
                           weighed([&] { return runRest(row); }));
    return Status::ok();
  }

  std::int32_t firstOf(std::span<const float> logits) {
    return std::int32_t(std::max_element(logits.begin(), logits.end()) -
                        logits.begin());
  }

  // The seconds of all rows behind the prompt.
  Result<double> runWindow(const std::vector<std::int32_t> &window,
                           double threshold, ThresholdPoint *point,
                           std::vector<std::int32_t> &chosen) {
    INGOT_RETURN_IF_ERROR(runner_->begin(window));
    std::int32_t prompt = request_.promptTokens;
    INGOT_RETURN_IF_ERROR(executor().run(planOf(window, 0, prompt), cache()));
    bool mayExit = threshold > 0 && threshold < 1;
    std::vector<std::int32_t> depths;
    auto start = std::chrono::steady_clock::now();
    for (std::int32_t at = prompt; at < std::int32_t(window.size()); ++at) {
      StepPlan row = planOf(window, at, 1);
      std::int32_t exit = mayExit ? 0 : numExits();
      for (; exit < numExits(); ++exit) {
        INGOT_RETURN_IF_ERROR(runToExit(row, exit));
        std::span<const float> logits = executor().logits(0);
        if (curves()[std::size_t(exit)].confidence(logits) < threshold)
          continue;
        chosen.push_back(firstOf(logits));
        INGOT_RETURN_IF_ERROR(runFill(row, exit));
        break;
      }
      depths.push_back(exit);
      if (exit < numExits())
        continue;
      INGOT_RETURN_IF_ERROR(mayExit ? runRest(row) : runWhole(row));
      chosen.push_back(firstOf(executor().logits(0)));
    }
    std::chrono::duration<double> taken =
        std::chrono::steady_clock::now() - start;
    for (std::size_t r = 0; r < depths.size(); ++r)
      count(depths[r], std::int64_t(prompt) + std::int64_t(r) + 1, mayExit,
            point);
    return taken.count();
  }

  // A row that sees so many positions.
  void count(std::int32_t depth, std::int64_t positions, bool mayExit,
             ThresholdPoint *point) {
    const ExitWork &work = result_.work;
    RowWork row;
    if (!mayExit) {
      row = work.whole;
    } else {
      for (std::int32_t e = 0; e <= std::min(depth, numExits() - 1); ++e) {
        row += work.layers[std::size_t(e)];
        row += work.heads[std::size_t(e)];
      }
      row += depth == numExits() ? work.rest : work.fills[std::size_t(depth)];
    }
    if (!point) {
      result_.bytes += row.bytesAt(positions);
      result_.operations += row.operationsAt(positions);
      positions_ += positions;
      return;
    }
    point->bytes += row.bytesAt(positions);
    point->operations += row.operationsAt(positions);
    ++point->left[std::size_t(depth)];
  }

  void finish(const std::vector<std::vector<double>> &seconds) {
    for (std::size_t i = 0; i < result_.points.size(); ++i) {
      ThresholdPoint &point = result_.points[i];
      point.bytes /= result_.bytes;
      point.operations /= result_.operations;
      point.disagreement /= double(result_.rows);
      std::vector<double> ratios;
      for (std::size_t w = 0; w < windows_.size(); ++w)
        ratios.push_back(seconds[0][w] / seconds[i + 1][w]);
      std::sort(ratios.begin(), ratios.end());
      point.slowest = ratios.front();
      point.fastest = ratios.back();
      point.speed =
          (ratios[(ratios.size() - 1) / 2] + ratios[ratios.size() / 2]) / 2;
    }
    result_.bytes /= double(result_.rows);
    result_.operations /= double(result_.rows);
    result_.meanPositions = positions_ / result_.rows;
  }

  const ExitTradeoffRequest &request_;
  std::optional<WindowRunner> runner_;
  std::vector<std::vector<std::int32_t>> windows_;
  std::int64_t positions_ = 0; // of all rows
  ExitTradeoffs result_;
};

} // namespace

RowWork &RowWork::operator+=(const RowWork &other) {
  bytes += other.bytes;
  bytesPerPosition += other.bytesPerPosition;
  operations += other.operations;
  operationsPerPosition += other.operationsPerPosition;
  return *this;
}

Result<ExitTradeoffs> measureExits(const ExitTradeoffRequest &request) {
  return Measuring(request).run();
}

} // namespace ingot
