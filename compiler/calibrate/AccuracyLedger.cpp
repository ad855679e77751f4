// 1. The steps: the options of the compilation, added one after another.
// 2. The imported model is compiled and is what all others are compared with.
// 3. Each step is compiled and measured; a limit that it exceeds ends the build,
//    after the layers of the step have been measured each alone.
#include "compiler/calibrate/AccuracyLedger.h"

#include "compiler/package/OutputFile.h"
#include "compiler/package/ScratchFolder.h"
#include "dialects/lm/LmOps.h"
#include "passes/quantize/Calibrated.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <optional>

using namespace mlir;

namespace ingot {
namespace {

constexpr std::int64_t kLayerWindows = 8; // for the share of one layer

std::string hashOf(const std::string &text) {
  return package::xxh3Text(
      {reinterpret_cast<const std::uint8_t *>(text.data()), text.size()});
}

template <typename... Args>
std::string format(const char *pattern, Args... args) {
  char text[512];
  std::snprintf(text, sizeof(text), pattern, args...);
  return text;
}

struct Step {
  std::string name;
  std::string settings;
  CompileOptions options;
  std::size_t numPrunings = 0; // of the compilation's, the first ones
};

class Measuring {
public:
  Measuring(const LedgerRequest &request, MLIRContext &context,
            CompiledModel &final)
      : request_(request), context_(context), final_(final),
        scratch_(request.compile.outputPath) {}

  Result<AccuracyLedger> run() {
    INGOT_RETURN_IF_ERROR(checkTexts());
    INGOT_RETURN_IF_ERROR(listSteps());
    std::string imported = scratch_.file("import.ingot");
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      bool isLast = s + 1 == steps_.size();
      std::string path = s == 0   ? imported
                         : isLast ? request_.compile.outputPath
                                  : scratch_.file("step.ingot");
      LedgerEntry entry;
      entry.step = steps_[s].name;
      entry.settings = steps_[s].settings;
      INGOT_RETURN_IF_ERROR(compile(steps_[s], path, isLast, entry));
      if (!measurer_) {
        INGOT_ASSIGN_OR_RETURN(
            TextMeasurer measurer,
            TextMeasurer::create(imported, request_.text, request_.windowTokens,
                                 request_.maxTokens, request_.compile.threads));
        measurer_.emplace(std::move(measurer));
        ledger_.windowTokens = measurer_->windowTokens();
      }
      auto measure = measurer_->measure(path, progressOf(steps_[s].name));
      if (!measure)
        return measure.status().withContext("measuring " + steps_[s].name);
      entry.measure = std::move(*measure);
      ledger_.entries.push_back(std::move(entry));
      if (s > 0)
        INGOT_RETURN_IF_ERROR(checkLimits(steps_[s]));
      // Nothing is lost: the imported model is the artifact.
      if (s == 0 && steps_.size() == 1) {
        LedgerEntry same;
        INGOT_RETURN_IF_ERROR(
            compile(steps_[0], request_.compile.outputPath, true, same));
      }
    }
    ledger_.tokens = ledger_.entries.front().measure.tokens;
    return std::move(ledger_);
  }

private:
  Status checkTexts() {
    const std::string &text = request_.text, &other = request_.calibrationText;
    ledger_.textHash = hashOf(text);
    if (other.empty())
      return Status::ok();
    ledger_.calibrationHash = hashOf(other);
    if (text.find(other) != std::string::npos ||
        other.find(text) != std::string::npos)
      return Status::invalid(
          "the evaluation text and the calibration text are the same, or one "
          "holds the other; what codes were chosen by cannot say how good they "
          "are");
    return Status::ok();
  }

  // The options of the compilation, from those of the imported model on.
  Status listSteps() {
    const CompileOptions &whole = request_.compile.options;
    for (const char *phase : {"compress", "simplify"})
      if (whole.pipelines.count(phase))
        return Status::invalid(
            std::string("the ledger follows the options; the ") + phase +
            " phase has a pipeline of its own, whose steps are not known here");
    CompileOptions options = whole;
    options.quantize.reset();
    options.table.reset();
    options.skip.reset();
    options.exits.reset();
    options.exitMaps.reset();
    // Prunings have been chosen: they are files and passes by now.
    options.pruneLayers.reset();
    options.pruneHeads.reset();
    options.pruneFfn.reset();
    options.heal.reset();
    options.quantizeKv.reset();
    if (options.kv == "int8")
      options.kv.reset();
    steps_.push_back({"import", "as stored", options});
    const std::vector<Pruning> &prunings = request_.compile.prunings;
    for (const Pruning &pruning : prunings) {
      std::string name = pruning.pass.substr(0, pruning.pass.find('{'));
      bool heals = whole.heal.value_or(true);
      steps_.push_back({name, pruning.pass + (heals ? ", healed" : ""), options,
                        steps_.back().numPrunings + 1});
    }
    if (whole.quantize.value_or("none") != "none" || whole.table) {
      options.quantize = whole.quantize;
      options.table = whole.table;
      options.skip = whole.skip;
      INGOT_ASSIGN_OR_RETURN(PhaseOptions phases, phaseOptions(options));
      steps_.push_back({"quantize-weights", quantizeWeightsText(phases),
                        options, prunings.size()});
    }
    if (quantizesKv(whole)) {
      options.quantizeKv = "int8";
      steps_.push_back({"quantize-kv", "int8", options, prunings.size()});
    }
    // Exits are lossless until a request asks; the last plan has them.
    steps_.back().options.exits = whole.exits;
    steps_.back().options.exitMaps = whole.exitMaps;
    return Status::ok();
  }

  std::function<void(std::int64_t, std::int64_t)>
  progressOf(const std::string &step) {
    return [this, step](std::int64_t done, std::int64_t total) {
      if (request_.compile.progress)
        request_.compile.progress("ledger: " + step, std::uint64_t(done),
                                  std::uint64_t(total));
    };
  }

  Status compile(const Step &step, const std::string &path, bool isLast,
                 LedgerEntry &entry) {
    CompileRequest compile = request_.compile;
    compile.outputPath = path;
    compile.options = step.options;
    compile.prunings.resize(step.numPrunings);
    // Codes are for what is quantised, which has all prunings behind it.
    if (step.name != "quantize-weights" && step.name != "quantize-kv")
      compile.calibratedWeights.clear();
    if (!isLast)
      compile.stagesFolder.clear();
    auto start = std::chrono::steady_clock::now();
    INGOT_ASSIGN_OR_RETURN(CompiledModel compiled,
                           compileModel(context_, compile));
    std::chrono::duration<double> taken =
        std::chrono::steady_clock::now() - start;
    entry.compileSeconds = taken.count();
    if (isLast)
      final_ = std::move(compiled);
    return Status::ok();
  }

  Status checkLimits(const Step &step) {
    const CompileOptions &options = request_.compile.options;
    const TextMeasure &now = ledger_.entries.back().measure;
    double increase =
        now.perplexity / ledger_.entries.front().measure.perplexity - 1;
    std::string found;
    if (options.maxKl && now.meanKl > *options.maxKl)
      found = format("mean KL is %.6f behind %s, allowed %.6f", now.meanKl,
                     step.name.c_str(), *options.maxKl);
    else if (options.maxPplIncrease && increase > *options.maxPplIncrease)
      found = format("perplexity has grown by %.4f %% behind %s, allowed "
                     "%.4f %%",
                     100 * increase, step.name.c_str(),
                     100 * *options.maxPplIncrease);
    if (found.empty())
      return Status::ok();
    if (step.name != "quantize-weights")
      return Status::unsupported(found);
    INGOT_ASSIGN_OR_RETURN(std::string share, largestShare(step));
    return Status::unsupported(found + "; " + share);
  }

  // Each layer is quantised alone, the rest being as imported.
  Result<std::string> largestShare(const Step &step) {
    INGOT_ASSIGN_OR_RETURN(auto byLayer, matricesByLayer());
    INGOT_ASSIGN_OR_RETURN(
        TextMeasurer measurer,
        TextMeasurer::create(
            scratch_.file("import.ingot"), request_.text, request_.windowTokens,
            kLayerWindows * request_.windowTokens, request_.compile.threads));
    std::string worst;
    double most = -1, sum = 0;
    for (const auto &[layer, names] : byLayer) {
      CompileRequest alone = request_.compile;
      alone.outputPath = scratch_.file("layer.ingot");
      alone.stagesFolder.clear();
      alone.options = step.options;
      alone.options.exits.reset();
      alone.options.exitMaps.reset();
      std::vector<std::string> skip;
      for (const auto &[other, otherNames] : byLayer)
        if (other != layer)
          skip.insert(skip.end(), otherNames.begin(), otherNames.end());
      for (const std::string &name :
           step.options.skip.value_or(std::vector<std::string>()))
        skip.push_back(name);
      alone.options.skip = skip;
      alone.calibratedPrefix = layer + ".";
      alone.progress = nullptr;
      if (auto compiled = compileModel(context_, alone); !compiled)
        return compiled.status().withContext(layer + " alone");
      INGOT_ASSIGN_OR_RETURN(
          TextMeasure measure,
          measurer.measure(alone.outputPath, progressOf(layer + " alone")));
      sum += measure.meanKl;
      if (measure.meanKl > most) {
        most = measure.meanKl;
        worst = layer;
      }
    }
    return format("%s has the largest share: mean KL %.6f alone, of %.6f for "
                  "all one by one",
                  worst.c_str(), most, sum);
  }

  // The names of matrices behind simplify, by "layer.3" or, for tables, "embed".
  Result<std::map<std::string, std::vector<std::string>>> matricesByLayer() {
    CompileRequest look = request_.compile;
    look.outputPath.clear();
    look.stagesFolder.clear();
    look.calibratedWeights.clear();
    look.until = Phase::Simplify;
    look.progress = nullptr;
    INGOT_ASSIGN_OR_RETURN(CompiledModel model, compileModel(context_, look));
    std::map<std::string, std::vector<std::string>> names;
    model.module->walk([&](Operation *op) {
      lm::WeightOp weight;
      if (auto linear = dyn_cast<lm::LinearOp>(op))
        weight = lm::lookupWeight(op, linear.getWeightAttr());
      else if (auto experts = dyn_cast<lm::ExpertLinearOp>(op))
        weight = lm::lookupWeight(op, experts.getWeightAttr());
      else if (auto embed = dyn_cast<lm::EmbedOp>(op))
        weight = lm::lookupWeight(op, embed.getTableAttr());
      if (!weight)
        return;
      std::string name = weight.getSymName().str();
      std::string layer = name;
      if (name.rfind("layer.", 0) == 0)
        layer = name.substr(0, name.find('.', 6));
      std::vector<std::string> &list = names[layer];
      if (std::find(list.begin(), list.end(), name) == list.end())
        list.push_back(name);
    });
    return names;
  }

  const LedgerRequest &request_;
  MLIRContext &context_;
  CompiledModel &final_;
  package::ScratchFolder scratch_;
  std::vector<Step> steps_;
  std::optional<TextMeasurer> measurer_;
  AccuracyLedger ledger_;
};

} // namespace

Result<AccuracyLedger> measureLedger(const LedgerRequest &request,
                                     MLIRContext &context,
                                     CompiledModel &final) {
  return Measuring(request, context, final).run();
}

Result<std::string> ledgerJson(const AccuracyLedger &ledger,
                               std::string_view packed) {
  using Json = nlohmann::ordered_json;
  Json json = Json::parse(packed, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return Status::internal("the ledger of packing is no object");
  auto measurements = Json::array();
  for (const LedgerEntry &entry : ledger.entries) {
    const TextMeasure &measure = entry.measure;
    measurements.push_back({{"step", entry.step},
                            {"settings", entry.settings},
                            {"perplexity", measure.perplexity},
                            {"mean_kl", measure.meanKl},
                            {"p99_kl", measure.p99Kl},
                            {"top1_agreement", measure.agreement},
                            {"artifact_bytes", measure.fileBytes},
                            {"compile_seconds", entry.compileSeconds},
                            {"measure_seconds", measure.seconds},
                            {"level", measure.level},
                            {"plan", measure.planHash}});
  }
  json["measurements"] = measurements;
  json["evaluation"] = {{"text", ledger.textHash},
                        {"tokens", ledger.tokens},
                        {"window", ledger.windowTokens}};
  if (!ledger.calibrationHash.empty())
    json["calibration"] = {{"text", ledger.calibrationHash}};
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::string ledgerTable(const AccuracyLedger &ledger) {
  std::string text = "accuracy, against the imported model on " +
                     std::to_string(ledger.tokens) + " tokens in windows of " +
                     std::to_string(ledger.windowTokens) + "\n" +
                     format("  %-18s %11s %10s %10s %9s %10s %8s  %s\n",
                            "behind", "perplexity", "mean KL", "p99 KL",
                            "top-1", "artifact", "time", "plan");
  for (const LedgerEntry &entry : ledger.entries) {
    const TextMeasure &measure = entry.measure;
    text += format(
        "  %-18s %11.4f %10.6f %10.6f %7.2f %% %7.1f MB %6.1f s  %s\n",
        entry.step.c_str(), measure.perplexity, measure.meanKl, measure.p99Kl,
        100 * measure.agreement, double(measure.fileBytes) / 1e6,
        entry.compileSeconds + measure.seconds, measure.planHash.c_str());
  }
  return text;
}

} // namespace ingot
