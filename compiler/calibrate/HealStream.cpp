// 1. Compile both models with a cut behind each layer, and run them to the first
//    layer that is fitted, where their streams are the same.
// 2. For each layer: run the whole model's; its stream behind attention and behind
//    the layer are the targets.
// 3. For the output projection, then the down projection: run the pruned model's
//    layer, sum up what the projection reads and what its stream lacks, and solve.
//    Every fourth window is held out and chooses the penalty.
// 4. Run the layer once more with what was fitted; the next begins there.
//
// A fitted projection needs no new plan: the difference to its weights, times what
// it reads, is added to the stream that its launch adds to.
#include "compiler/calibrate/HealStream.h"

#include "compiler/calibrate/AddProduct.h"
#include "compiler/calibrate/FloatPlan.h"
#include "compiler/calibrate/LeastSquares.h"
#include "compiler/calibrate/SecondMoments.h"
#include "compiler/reference/LmWeights.h"

#include <algorithm>
#include <optional>

using namespace mlir;

namespace ingot {
namespace {

using States =
    std::vector<std::vector<float>>; // of each window, [tokens, width]

std::string nameOf(std::int64_t layer, const char *what) {
  return "layer." + std::to_string(layer) + "." + what;
}

// The projection's parameters where the launch adds to the residual stream.
const abi::LinearParams *addingLinear(const BoundLaunch &launch) {
  if (launch.op != fbs::Params::Linear)
    return nullptr;
  const abi::LinearParams &linear = launch.params.linear;
  bool adds = linear.input && linear.residual &&
              linear.residualStride == std::int64_t(linear.n);
  return adds ? &linear : nullptr;
}

// What is added to a projection's weights, transposed: [columns, rows].
struct Correction {
  std::vector<float> values;
  std::int64_t rows = 0, columns = 0;
};

constexpr std::size_t kHeldOutEvery = 4;
constexpr double kStrengths[] = {1e-3, 1e-2, 1e-1, 1, 10};

// Of what a projection reads, and of what the stream behind it lacks.
struct Sums {
  SecondMoments moments;
  std::vector<float> cross; // [rows, columns]

  Sums(std::int64_t rows, std::int64_t columns)
      : moments(columns), cross(std::size_t(rows * columns), 0.0f) {}
  std::vector<float> meanCross() const {
    std::vector<float> mean = cross;
    for (float &sum : mean)
      sum /= float(std::max<std::int64_t>(moments.numRows(), 1));
    return mean;
  }
};

class Healing {
public:
  Healing(const HealStreamRequest &request, const CalibrationOptions &options)
      : request_(request), options_(options) {}

  Result<std::vector<HealedWeight>> run() {
    INGOT_RETURN_IF_ERROR(open());
    for (layer_ = request_.firstLayer; layer_ < numLayers(); ++layer_) {
      corrections_.clear();
      INGOT_RETURN_IF_ERROR(runWhole());
      if (layer_ > request_.firstLayer || request_.beginsWithOutput)
        INGOT_RETURN_IF_ERROR(fit("o", behindAttention_));
      INGOT_RETURN_IF_ERROR(fit("down", wholeStates_));
      if (layer_ + 1 < numLayers())
        INGOT_RETURN_IF_ERROR(advance());
    }
    return std::move(healed_);
  }

private:
  std::int64_t numLayers() const { return std::ssize(request_.kept); }
  std::size_t numWindows() const { return whole_->windows().size(); }

  Status open() {
    CompileRequest compile = request_.compile;
    auto facts =
        request_.imported->getAttrOfType<DictionaryAttr>(lm::kModelAttr);
    wholeLayers_ = std::int64_t(facts.getAs<ArrayAttr>("layers").size());
    INGOT_ASSIGN_OR_RETURN(
        whole_, FloatPlan::create(compile, request_.imported,
                                  request_.folder + "/whole.ingot",
                                  options_.text, options_.windowTokens,
                                  options_.maxTokens, wholeLayers_));
    compile.prunings.push_back(request_.pruning);
    INGOT_ASSIGN_OR_RETURN(
        pruned_, FloatPlan::create(compile, request_.imported,
                                   request_.folder + "/pruned.ingot",
                                   options_.text, options_.windowTokens,
                                   options_.maxTokens, numLayers()));
    // The weights as the pruned plan has them.
    compile.outputPath.clear();
    compile.stagesFolder.clear();
    compile.until = Phase::Import;
    compile.progress = nullptr;
    prepareContext(context_);
    INGOT_ASSIGN_OR_RETURN(CompiledModel model,
                           compileModel(context_, compile));
    module_ = std::move(model.module);
    INGOT_ASSIGN_OR_RETURN(LmSourceFiles sources,
                           LmSourceFiles::open(*module_, compile.sourceFolder));
    sources_.emplace(std::move(sources));
    total_ = std::int64_t(numWindows()) *
             (1 + 4 * (numLayers() - request_.firstLayer));
    wholeStates_.resize(numWindows());
    behindAttention_.resize(numWindows());
    auto end = std::int32_t(request_.firstLayer);
    if (end > 0)
      for (std::size_t w = 0; w < numWindows(); ++w) {
        tell();
        INGOT_RETURN_IF_ERROR(whole_->runner().begin(whole_->windows()[w]));
        INGOT_RETURN_IF_ERROR(whole_->runner().runTo(end, -1, false));
        wholeStates_[w] = whole_->runner().states();
      }
    prunedStates_ = wholeStates_;
    return Status::ok();
  }

  void tell() {
    if (request_.progress)
      request_.progress(std::min(done_, total_), total_);
    ++done_;
  }

  // Runs layers [first, end) of a model on all windows, from `states`; `each` is
  // called before and behind each window.
  template <typename Behind>
  Status runLayers(FloatPlan &plan, std::int64_t first, std::int64_t end,
                   const States &states,
                   const CpuExecutor::InputObserver &observe, Behind &&behind) {
    WindowRunner &runner = plan.runner();
    runner.executor().observeInputs(observe);
    Status status;
    for (window_ = 0; window_ < numWindows() && status.isOk(); ++window_) {
      tell();
      const auto &tokens = plan.windows()[window_];
      status = first == 0 ? runner.begin(tokens)
                          : runner.beginBehind(tokens, std::int32_t(first),
                                               states[window_]);
      if (status.isOk())
        status = runner.runTo(std::int32_t(end), -1, /*wantsLogits=*/false);
      if (status.isOk())
        behind(runner);
    }
    runner.executor().observeInputs({});
    return status;
  }

  // The whole model's layer, with those that went behind it.
  Status runWhole() {
    std::int64_t first = request_.kept[std::size_t(layer_)];
    std::int64_t end = layer_ + 1 < numLayers()
                           ? request_.kept[std::size_t(layer_ + 1)]
                           : wholeLayers_;
    std::string down = nameOf(first, "down");
    for (std::vector<float> &rows : behindAttention_)
      rows.clear();
    return runLayers(
        *whole_, first, end, wholeStates_,
        [&](const BoundLaunch &launch, std::int32_t rows) {
          if (launch.name != down)
            return;
          if (const abi::LinearParams *linear = addingLinear(launch))
            behindAttention_[window_].assign(
                linear->residual, linear->residual + linear->n * rows);
        },
        [&](WindowRunner &runner) { wholeStates_[window_] = runner.states(); });
  }

  // Adds what was fitted so far to the stream that a launch adds to.
  void correct(const BoundLaunch &launch, std::int32_t rows) {
    for (const auto &[name, correction] : corrections_) {
      if (launch.name != name)
        continue;
      const abi::LinearParams &linear = launch.params.linear;
      // The stream is the executor's own memory, and this launch its reader.
      addProduct(const_cast<float *>(linear.residual),
                 {linear.input, 1, correction.columns, correction.values.data(),
                  rows, correction.rows, correction.columns},
                 request_.compile.threads);
    }
  }

  // The weights fitted with the penalty that does best on the held-out windows;
  // empty where none does better there than the weights as they are.
  static Result<std::vector<float>> solve(const Sums &fitted,
                                          const Sums &heldOut,
                                          const std::vector<float> &weights) {
    std::int64_t columns = fitted.moments.width();
    std::int64_t rows = std::ssize(weights) / columns;
    std::vector<float> moments = fitted.moments.mean(),
                       cross = fitted.meanCross();
    std::vector<float> unseen = heldOut.moments.mean(),
                       unseenCross = heldOut.meanCross();
    double least = excess(weights, unseen, unseenCross, columns), best = 0;
    for (double strength : kStrengths) {
      INGOT_ASSIGN_OR_RETURN(
          std::vector<float> tried,
          fitWeights(moments, cross, weights, rows, columns, strength));
      double error = excess(tried, unseen, unseenCross, columns);
      if (error >= least && best > 0)
        break; // they fall, then rise
      if (error < least) {
        least = error;
        best = strength;
      }
    }
    if (best == 0)
      return std::vector<float>();
    // Once more with all windows.
    auto part =
        float(double(heldOut.moments.numRows()) /
              double(heldOut.moments.numRows() + fitted.moments.numRows()));
    for (std::size_t i = 0; i < moments.size(); ++i)
      moments[i] += part * (unseen[i] - moments[i]);
    for (std::size_t i = 0; i < cross.size(); ++i)
      cross[i] += part * (unseenCross[i] - cross[i]);
    return fitWeights(moments, cross, weights, rows, columns, best);
  }

  // The mean of |y - W x|^2 less that of |y|^2.
  static double excess(const std::vector<float> &weights,
                       const std::vector<float> &moments,
                       const std::vector<float> &cross, std::int64_t columns) {
    std::vector<float> image = multiply(weights, moments, columns);
    double sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i)
      sum += double(weights[i]) * (double(image[i]) - 2 * double(cross[i]));
    return sum;
  }

  Status fit(const char *what, const States &targets) {
    std::string name = nameOf(layer_, what);
    lm::WeightOp weight = module_->lookupSymbol<lm::WeightOp>(name);
    if (!weight)
      return Status::ok();
    std::int64_t rows = weight.getRows(), columns = weight.getColumns();
    // Of the windows that are fitted to, and of those that choose the penalty.
    Sums sums[2] = {Sums(rows, columns), Sums(rows, columns)};
    std::vector<float> lacks;
    auto see = [&](const BoundLaunch &launch, std::int32_t count) {
      correct(launch, count);
      const std::vector<float> &target = targets[window_];
      const abi::LinearParams *linear = addingLinear(launch);
      if (launch.name != name || !linear || linear->k != columns ||
          std::ssize(target) != count * rows)
        return;
      lacks.resize(target.size());
      for (std::size_t i = 0; i < target.size(); ++i) {
        float bias = linear->bias ? linear->bias[i % std::size_t(rows)] : 0.0f;
        lacks[i] = target[i] - linear->residual[i] - bias;
      }
      Sums &part = sums[window_ % kHeldOutEvery == kHeldOutEvery - 1];
      part.moments.add({linear->input, std::size_t(count * columns)},
                       request_.compile.threads);
      addProduct(part.cross.data(),
                 {lacks.data(), rows, 1, linear->input, rows, columns, count},
                 request_.compile.threads);
    };
    INGOT_RETURN_IF_ERROR(runLayers(*pruned_, layer_, layer_ + 1, prunedStates_,
                                    see, [](WindowRunner &) {}));
    std::int64_t seen = sums[0].moments.numRows() + sums[1].moments.numRows();
    if (seen == 0)
      return Status::ok();
    if (seen != pruned_->numRows())
      return Status::internal("launch " + name + " was not seen on every row");
    INGOT_ASSIGN_OR_RETURN(LoadedWeight loaded, sources_->load(weight));
    auto fitted = solve(sums[0], sums[1], loaded.values);
    if (!fitted)
      return fitted.status().withContext("weight @" + name);
    if (fitted->empty())
      return Status::ok();
    Correction correction{std::vector<float>(fitted->size()), rows, columns};
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t k = 0; k < columns; ++k) {
        auto at = std::size_t(r * columns + k);
        correction.values[std::size_t(k * rows + r)] =
            (*fitted)[at] - loaded.values[at];
      }
    corrections_.emplace_back(name, std::move(correction));
    healed_.push_back({layer_, what, rows, columns, std::move(*fitted)});
    return Status::ok();
  }

  Status advance() {
    return runLayers(
        *pruned_, layer_, layer_ + 1, prunedStates_,
        [&](const BoundLaunch &launch, std::int32_t rows) {
          correct(launch, rows);
        },
        [&](WindowRunner &runner) {
          prunedStates_[window_] = runner.states();
        });
  }

  const HealStreamRequest &request_;
  const CalibrationOptions &options_;
  MLIRContext context_;
  OwningOpRef<ModuleOp> module_; // of the pruned model
  std::optional<LmSourceFiles> sources_;
  std::optional<FloatPlan> whole_, pruned_;
  std::int64_t wholeLayers_ = 0;
  std::int64_t layer_ = 0; // of those that are left
  std::size_t window_ = 0; // that is running
  // Behind the layer before, or the one that is being fitted.
  States wholeStates_, prunedStates_;
  States behindAttention_; // the whole model's, in the layer that is fitted
  std::vector<std::pair<std::string, Correction>> corrections_; // of the layer
  std::vector<HealedWeight> healed_;
  std::int64_t done_ = 0, total_ = 0;
};

} // namespace

Result<std::vector<HealedWeight>>
healStream(const HealStreamRequest &request,
           const CalibrationOptions &options) {
  return Healing(request, options).run();
}

} // namespace ingot
