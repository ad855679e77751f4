#include "compiler/calibrate/FitExits.h"

#include "compiler/calibrate/ConfidenceCurve.h"
#include "compiler/calibrate/RidgeMap.h"
#include "compiler/calibrate/WindowRunner.h"
#include "compiler/driver/CompileModel.h"
#include "compiler/frontend/huggingface/SafetensorsFile.h"
#include "compiler/package/HalfFloat.h"
#include "compiler/package/ScratchFolder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace ingot {
namespace {

constexpr std::size_t kHeldOutEvery = 8;
constexpr std::int32_t kConfidenceBins = 32;
constexpr double kThresholds[] = {0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99};
constexpr double kStrengths[] = {1e-5, 1e-4, 1e-3, 1e-2, 1e-1};

class Fitting {
public:
  explicit Fitting(const FitExitsRequest &request)
      : request_(request), scratch_(request.outputPath) {}

  Result<FittedExits> run() {
    if (!request_.options.exits || request_.options.exits->empty())
      return Status::invalid("there are no exits to fit maps for");
    if (request_.options.exitMaps)
      return Status::invalid("the exits have maps already: \"" +
                             *request_.options.exitMaps + "\"");
    INGOT_ASSIGN_OR_RETURN(PhaseOptions phases, phaseOptions(request_.options));
    if (needsCalibration(phases))
      return Status::unsupported(
          "quantization \"" + request_.options.quantize.value_or("none") +
          "\" chooses codes by a text; maps are fitted for models whose codes "
          "need none, as those of rtn do");
    exits_ = *request_.options.exits;
    std::sort(exits_.begin(), exits_.end());
    result_.exits.resize(exits_.size());
    INGOT_RETURN_IF_ERROR(collect());
    INGOT_RETURN_IF_ERROR(solve());
    INGOT_RETURN_IF_ERROR(write({}, request_.outputPath));
    INGOT_RETURN_IF_ERROR(measure());
    INGOT_RETURN_IF_ERROR(write(curves_, request_.outputPath));
    return std::move(result_);
  }

private:
  void tell(const std::string &step, std::int64_t done = 0,
            std::int64_t total = 0) {
    if (request_.progress)
      request_.progress(step, done, total);
  }

  Result<WindowRunner> compile(const CompileOptions &options,
                               const char *name) {
    CompileRequest compile;
    compile.modelPath = request_.modelPath;
    compile.outputPath = scratch_.file(name);
    compile.options = options;
    compile.threads = request_.threads;
    compile.diagnostic = request_.diagnostic;
    compile.progress = [&](const std::string &step, std::uint64_t,
                           std::uint64_t) { tell(step); };
    mlir::MLIRContext context;
    prepareContext(context);
    if (auto compiled = compileModel(context, compile); !compiled)
      return compiled.status();
    return WindowRunner::open(compile.outputPath, request_.windowTokens,
                              request_.threads);
  }

  // Calls `visit` with each whole window of the text.
  template <typename Visit> Status eachWindow(const char *step, Visit &&visit) {
    for (std::size_t w = 0; w < windows_.size(); ++w) {
      tell(step, std::int64_t(w), std::ssize(windows_));
      INGOT_RETURN_IF_ERROR(visit(std::span<const std::int32_t>(windows_[w]),
                                  w % kHeldOutEvery == kHeldOutEvery - 1));
    }
    return Status::ok();
  }

  // The model without maps, with one cut more, behind its last layer.
  Status collect() {
    CompileOptions options = request_.options;
    INGOT_ASSIGN_OR_RETURN(PhaseOptions phases, phaseOptions(options));
    phases.cutFinal = true;
    options.pipelines["compress"] = phasePipeline(Phase::Compress, phases);
    INGOT_ASSIGN_OR_RETURN(WindowRunner runner, compile(options, "cut.ingot"));
    INGOT_ASSIGN_OR_RETURN(
        windows_,
        runner.windowsOf(request_.text, request_.windowTokens,
                         request_.maxTokens > 0
                             ? request_.maxTokens
                             : std::numeric_limits<std::int64_t>::max()));
    if (windows_.size() < kHeldOutEvery)
      return Status::invalid("the text has " + std::to_string(windows_.size()) +
                             " windows, expected at least " +
                             std::to_string(kHeldOutEvery) + " windows of " +
                             std::to_string(request_.windowTokens) + " tokens");
    std::int64_t width = runner.engine().model().hidden();
    for (std::size_t e = 0; e < exits_.size(); ++e) {
      fitted_.emplace_back(width);
      heldOut_.emplace_back(width);
    }
    std::vector<ConfidenceCounts> counts(exits_.size(),
                                         ConfidenceCounts(kConfidenceBins));
    const StepLimits &limits = runner.executor().limits();
    auto visit = [&](std::span<const std::int32_t> window,
                     bool isHeldOut) -> Status {
      INGOT_RETURN_IF_ERROR(runner.begin(window));
      std::vector<std::vector<float>> states;
      std::vector<std::vector<FirstChoice>> choices;
      for (std::size_t e = 0; e < exits_.size(); ++e) {
        INGOT_RETURN_IF_ERROR(runner.runTo(limits.exitsAfter[e],
                                           isHeldOut ? std::int32_t(e) : -1));
        states.push_back(runner.states());
        if (isHeldOut)
          choices.push_back(runner.choices());
      }
      INGOT_RETURN_IF_ERROR(runner.runTo(limits.numSegments - 1));
      std::vector<float> last = runner.states();
      for (std::size_t e = 0; e < exits_.size(); ++e) {
        std::vector<float> missing(last.size());
        for (std::size_t i = 0; i < last.size(); ++i)
          missing[i] = last[i] - states[e][i];
        (isHeldOut ? heldOut_ : fitted_)[e].add(states[e], missing);
      }
      (isHeldOut ? result_.heldOutTokens : result_.fittedTokens) +=
          std::ssize(window);
      if (!isHeldOut)
        return Status::ok();
      INGOT_RETURN_IF_ERROR(runner.runTo(-1));
      compare(choices, runner.choices(), counts);
      return Status::ok();
    };
    INGOT_RETURN_IF_ERROR(eachWindow("states", visit));
    for (std::size_t e = 0; e < exits_.size(); ++e)
      result_.exits[e].agreementWithout =
          double(counts[e].numAgreed()) / double(counts[e].numSeen());
    return Status::ok();
  }

  static void compare(const std::vector<std::vector<FirstChoice>> &early,
                      const std::vector<FirstChoice> &whole,
                      std::vector<ConfidenceCounts> &counts) {
    for (std::size_t e = 0; e < early.size(); ++e)
      for (std::size_t r = 0; r < whole.size(); ++r)
        counts[e].add(early[e][r].probability,
                      early[e][r].token == whole[r].token);
  }

  // The penalty is the one that does best on the held-out windows.
  Status solve() {
    for (std::size_t e = 0; e < exits_.size(); ++e) {
      tell("map", std::int64_t(e), std::ssize(exits_));
      std::optional<AffineMap> best;
      FittedExit &exit = result_.exits[e];
      exit.layers = exits_[e];
      Status latest;
      for (double strength : kStrengths) {
        auto map = fitted_[e].solve(strength);
        if (!map) {
          latest = map.status();
          continue;
        }
        double explained = 1 - heldOut_[e].unexplained(*map);
        if (best && explained <= exit.explained)
          continue;
        exit.explained = explained;
        exit.strength = strength;
        best = std::move(*map);
      }
      if (!best)
        return latest.withContext("exit after " + std::to_string(exits_[e]) +
                                  " layers");
      maps_.push_back(std::move(*best));
    }
    return Status::ok();
  }

  Status write(const std::vector<std::vector<float>> &curves,
               const std::string &path) {
    SafetensorsWriter writer;
    auto bytesOf = [](const auto &values) {
      return std::span(reinterpret_cast<const std::uint8_t *>(values.data()),
                       values.size() * sizeof(values[0]));
    };
    for (std::size_t e = 0; e < exits_.size(); ++e) {
      std::string prefix = "exit." + std::to_string(exits_[e]) + ".";
      auto width = std::uint64_t(maps_[e].width);
      std::vector<std::uint16_t> half;
      for (float value : maps_[e].matrix)
        half.push_back(package::floatToHalf(value));
      INGOT_RETURN_IF_ERROR(writer.add(prefix + "map", SafetensorsDtype::F16,
                                       {width, width}, bytesOf(half)));
      INGOT_RETURN_IF_ERROR(writer.add(prefix + "bias", SafetensorsDtype::F32,
                                       {width}, bytesOf(maps_[e].bias)));
      if (e < curves.size())
        INGOT_RETURN_IF_ERROR(
            writer.add(prefix + "confidence", SafetensorsDtype::F32,
                       {curves[e].size()}, bytesOf(curves[e])));
    }
    return writer.write(path);
  }

  // The heads as they will be deployed, on the held-out windows.
  Status measure() {
    CompileOptions options = request_.options;
    options.exitMaps = request_.outputPath;
    INGOT_ASSIGN_OR_RETURN(WindowRunner runner, compile(options, "map.ingot"));
    std::vector<ConfidenceCounts> counts(exits_.size(),
                                         ConfidenceCounts(kConfidenceBins));
    const StepLimits &limits = runner.executor().limits();
    auto visit = [&](std::span<const std::int32_t> window,
                     bool isHeldOut) -> Status {
      if (!isHeldOut)
        return Status::ok();
      INGOT_RETURN_IF_ERROR(runner.begin(window));
      std::vector<std::vector<FirstChoice>> choices;
      for (std::size_t e = 0; e < exits_.size(); ++e) {
        INGOT_RETURN_IF_ERROR(
            runner.runTo(limits.exitsAfter[e], std::int32_t(e)));
        choices.push_back(runner.choices());
      }
      INGOT_RETURN_IF_ERROR(runner.runTo(-1));
      auto whole = runner.choices();
      compare(choices, whole, counts);
      for (std::size_t r = 0; r < whole.size(); ++r) {
        std::vector<Observed> row;
        for (const auto &early : choices)
          row.push_back(
              {early[r].probability, early[r].token == whole[r].token});
        rows_.push_back(std::move(row));
      }
      return Status::ok();
    };
    INGOT_RETURN_IF_ERROR(eachWindow("agreement", visit));
    for (std::size_t e = 0; e < exits_.size(); ++e) {
      FittedExit &exit = result_.exits[e];
      exit.agreementWith =
          double(counts[e].numAgreed()) / double(counts[e].numSeen());
      exit.workShare = runner.executor().weightBytesToExit(std::int32_t(e)) /
                       std::max(runner.executor().weightBytesPerStep(), 1.0);
      curves_.push_back(counts[e].curve());
    }
    for (double threshold : kThresholds)
      result_.tradeoffs.push_back(tradeoffAt(threshold, runner.executor()));
    return Status::ok();
  }

  ExitTradeoff tradeoffAt(double threshold, const CpuExecutor &executor) const {
    ExitTradeoff point;
    point.threshold = threshold;
    double whole = std::max(executor.weightBytesPerStep(), 1.0), bytes = 0;
    for (const auto &row : rows_) {
      double heads = 0;
      std::size_t e = 0;
      for (; e < row.size(); ++e) {
        heads += executor.weightBytesOfHead(std::int32_t(e));
        if (curveAt(curves_[e], row[e].probability) >= threshold)
          break;
      }
      bytes += heads;
      if (e == row.size()) {
        bytes += whole;
        continue;
      }
      auto exit = std::int32_t(e);
      bytes += executor.weightBytesToExit(exit) -
               executor.weightBytesOfHead(exit) +
               executor.weightBytesOfFill(exit);
      point.left += 1;
      point.disagreement += !row[e].agrees;
    }
    auto count = double(std::max<std::size_t>(rows_.size(), 1));
    point.left /= count;
    point.disagreement /= count;
    point.work = bytes / count / whole;
    return point;
  }

  const FitExitsRequest &request_;
  package::ScratchFolder scratch_;
  std::vector<std::int64_t> exits_;
  std::vector<std::vector<std::int32_t>> windows_;
  std::vector<RidgeSums> fitted_, heldOut_;
  std::vector<AffineMap> maps_;
  std::vector<std::vector<float>> curves_;
  struct Observed {
    double probability; // of an exit's first choice
    bool agrees;
  };
  std::vector<std::vector<Observed>> rows_; // held out; one entry an exit
  FittedExits result_;
};

} // namespace

Result<FittedExits> fitExits(const FitExitsRequest &request) {
  if (request.windowTokens < 8 || request.windowTokens > 4096)
    return Status::invalid("windows of " +
                           std::to_string(request.windowTokens) +
                           " tokens, expected 8 to 4096");
  return Fitting(request).run();
}

} // namespace ingot
