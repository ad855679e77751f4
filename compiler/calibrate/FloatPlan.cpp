#include "compiler/calibrate/FloatPlan.h"

#include "dialects/lm/LmOps.h"
#include "runtime/plan/CpuFeatures.h"

#include <set>

using namespace mlir;

namespace ingot {

Result<FloatPlan> FloatPlan::create(const CompileRequest &asked,
                                    ModuleOp imported, const std::string &path,
                                    const std::string &text,
                                    std::int32_t windowTokens,
                                    std::int64_t maxTokens,
                                    std::int64_t cutLayers) {
  bool isFloat = true;
  for (auto weight : imported.getOps<lm::WeightOp>())
    isFloat = isFloat && !weight.getEncoding().isInteger();
  CompileRequest request = asked;
  request.outputPath = path;
  request.stagesFolder.clear();
  request.calibratedWeights.clear();
  CompileOptions &options = request.options;
  options.quantize = isFloat ? "none" : "f16";
  options.kv.reset();
  options.quantizeKv.reset();
  options.target.reset(); // this machine runs it, whatever the codes are for
  options.allowLibraryGemm.reset();
  options.table.reset();
  options.skip.reset();
  options.exits.reset();
  options.exitMaps.reset();
  // An exit behind each layer but the last, and a cut there.
  if (cutLayers > 0) {
    options.exits.emplace();
    for (std::int64_t layer = 1; layer < cutLayers; ++layer)
      options.exits->push_back(layer);
    INGOT_ASSIGN_OR_RETURN(PhaseOptions phases, phaseOptions(options));
    phases.cutFinal = true;
    options.pipelines["compress"] = phasePipeline(Phase::Compress, phases);
  }
  const std::set<std::string> &features = hostCpuFeatures();
  options.levels = {features.count("avx512vnni") && features.count("avx512bw")
                        ? "avx512-vnni"
                        : "x86-64-v3"};
  request.progress = [&](const std::string &step, std::uint64_t,
                         std::uint64_t) {
    if (asked.progress)
      asked.progress("calibration plan: " + step, 0, 0);
  };
  MLIRContext context;
  prepareContext(context);
  INGOT_ASSIGN_OR_RETURN(CompiledModel compiled,
                         compileModel(context, request));
  FloatPlan plan;
  plan.windowTokens_ = windowTokens;
  auto model = imported->getAttrOfType<DictionaryAttr>(lm::kModelAttr);
  if (auto own = model.getAs<IntegerAttr>("context"))
    plan.windowTokens_ =
        std::int32_t(std::min<std::int64_t>(windowTokens, own.getInt()));
  INGOT_ASSIGN_OR_RETURN(
      WindowRunner runner,
      WindowRunner::open(path, plan.windowTokens_, asked.threads));
  plan.runner_.emplace(std::move(runner));
  INGOT_ASSIGN_OR_RETURN(
      plan.windows_,
      plan.runner_->windowsOf(text, plan.windowTokens_, maxTokens));
  constexpr std::int64_t least = 4;
  if (std::ssize(plan.windows_) < least)
    return Status::invalid(
        "the calibration text has " + std::to_string(plan.windows_.size()) +
        " windows of " + std::to_string(plan.windowTokens_) +
        " tokens, expected at least " + std::to_string(least));
  if (cutLayers > 0 && plan.runner_->executor().limits().numSegments !=
                           std::int32_t(cutLayers) + 1)
    return Status::internal("the plan is not cut behind each layer");
  return plan;
}

Status FloatPlan::run(
    const std::function<Status(const BoundLaunch &, std::int32_t)> &observe,
    const std::function<void(std::int64_t, std::int64_t)> &progress) {
  Status problem;
  runner_->executor().observeInputs(
      [&](const BoundLaunch &launch, std::int32_t rows) {
        if (problem.isOk())
          problem = observe(launch, rows);
      });
  Status ran;
  for (std::size_t w = 0; w < windows_.size() && ran.isOk() && problem.isOk();
       ++w) {
    progress(std::int64_t(w), std::ssize(windows_));
    ran = runner_->begin(windows_[w]);
    if (ran.isOk())
      ran = runner_->runTo(-1, -1, /*wantsLogits=*/false);
  }
  runner_->executor().observeInputs({});
  return ran.isOk() ? problem : ran;
}

} // namespace ingot
