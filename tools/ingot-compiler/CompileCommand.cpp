// `compile`: flags and recipe to a request, progress and summary for people.
#include "compiler/calibrate/BuildModel.h"
#include "compiler/package/OutputFile.h"
#include "compiler/package/OutputPath.h"
#include "dialects/plan/Plan.h"
#include "runtime/support/Printable.h"
#include "tools/ingot-compiler/Commands.h"
#include "tools/text/InputText.h"

#include <chrono>
#include <cstdio>
#include <memory>

#include <unistd.h>

namespace ingot {
namespace {

struct CompileFlags {
  BuildRequest build;
  std::string recipe, saveRecipe, from, dumpAfter;
  bool printPipeline = false;
  bool noHeal = false;
  bool json = false;
  bool explainFusion = false;
};

// One line on a terminal that says where the compiler is; nothing elsewhere.
class ProgressLine {
public:
  explicit ProgressLine(bool enabled) : enabled_(enabled) {}
  ~ProgressLine() { clear(); }

  void show(const std::string &name, std::uint64_t done, std::uint64_t total) {
    if (!enabled_)
      return;
    std::string step = printable(name);
    std::string bar;
    if (total != 0 && !isPacking(step)) {
      showCounted(step, done, total);
      return;
    }
    if (total != 0) {
      int percent = static_cast<int>(done * 100 / total);
      // Whole percents only: the terminal is slower than the packer.
      std::string layer = layerOf(step);
      if (percent == percent_ && layer == layer_)
        return;
      percent_ = percent;
      layer_ = layer;
      bar = "[" + std::string(percent / 4, '#') +
            std::string(25 - percent / 4, ' ') + "] " +
            std::to_string(percent) + " % ";
      std::fprintf(stderr, "\r\033[K\033[36mpacking\033[0m %s%s", bar.c_str(),
                   layer.c_str());
    } else {
      std::fprintf(stderr, "\r\033[K\033[36m%s\033[0m", step.c_str());
    }
    std::fflush(stderr);
    isShown_ = true;
  }

  void clear() {
    if (isShown_)
      std::fprintf(stderr, "\r\033[K");
    isShown_ = false;
  }

private:
  // Steps that learn from a text name themselves; others are weights.
  static bool isPacking(const std::string &step) {
    return step.rfind("calibration", 0) != 0 && step.rfind("ledger", 0) != 0;
  }

  // How far a counted step is, and how long it will go on.
  void showCounted(const std::string &step, std::uint64_t done,
                   std::uint64_t total) {
    auto now = std::chrono::steady_clock::now();
    if (step != step_) {
      step_ = step;
      begin_ = now;
    }
    std::chrono::duration<double> taken = now - begin_;
    std::fprintf(stderr, "\r\033[K\033[36m%s\033[0m %llu of %llu", step.c_str(),
                 static_cast<unsigned long long>(done),
                 static_cast<unsigned long long>(total));
    if (done > 0)
      std::fprintf(stderr, ", %.0f s left",
                   taken.count() * double(total - done) / double(done));
    std::fflush(stderr);
    isShown_ = true;
  }

  // "layer 3" of the weight "layer.3.qkv".
  static std::string layerOf(const std::string &weight) {
    if (std::optional<int32_t> layer = plan::locationLayer(weight))
      return "layer " + std::to_string(*layer);
    return weight;
  }

  bool enabled_;
  bool isShown_ = false;
  int percent_ = -1;
  std::string layer_;
  std::string step_;
  std::chrono::steady_clock::time_point begin_;
};

Result<Phase> parsePhase(const std::string &name) {
  if (std::optional<Phase> phase = phaseByName(name))
    return *phase;
  return Status::invalid("no phase is named \"" + name +
                         "\" (import, simplify, compress, fuse, lower)");
}

// What was asked for does not fit together.
int usage(const char *message) {
  std::fprintf(stderr, "error: %s\n", message);
  return kWrongUse;
}

int runCompile(CompileFlags &flags) {
  CompileRequest &request = flags.build.compile;
  if (flags.noHeal)
    request.options.heal = false;
  if (!flags.recipe.empty()) {
    Result<std::string> text = readText(flags.recipe);
    if (!text)
      return finish(text.status());
    if (Status status = applyRecipe(*text, flags.recipe, request.options);
        !status)
      return finish(status);
  }
  Result<PhaseOptions> phases = phaseOptions(request.options);
  if (!phases)
    return finish(phases.status());
  if (!flags.saveRecipe.empty())
    if (Status status = package::writeOutputFile(flags.saveRecipe,
                                                 recipeText(request.options));
        !status)
      return finish(status);
  if (flags.printPipeline && prunes(request.options))
    return usage("--print-pipeline: what is pruned is chosen by a text; ingot "
                 "inspect shows the pipeline of the artifact");
  if (flags.printPipeline) {
    std::printf("%s\n", wholePipelineText(*phases, request.options).c_str());
    return finish(standardOutputStatus());
  }
  if (request.modelPath.empty())
    return usage(
        "MODEL is missing: a Hugging Face folder, a GGUF or ONNX file, or an "
        ".mlir stage");
  if (!flags.from.empty()) {
    Result<Phase> from = parsePhase(flags.from);
    if (!from)
      return finish(from.status());
    request.from = *from;
  }
  if (!flags.dumpAfter.empty()) {
    if (!request.outputPath.empty())
      return usage("--dump-ir-after stops after its phase: leave out --output");
    Result<Phase> until = parsePhase(flags.dumpAfter);
    if (!until)
      return finish(until.status());
    request.until = *until;
  } else if (request.outputPath.empty() && request.stagesFolder.empty()) {
    return usage("--output is missing (or --save-stages, or --dump-ir-after)");
  }

  if (flags.json && (request.outputPath.empty() || !flags.dumpAfter.empty()))
    return usage("--json is the summary of an artifact: it needs --output");
  // What cannot be written is known before hours of calibration.
  if (!request.outputPath.empty())
    if (Status status = package::checkArtifactPath(request.outputPath); !status)
      return finish(status);

  ProgressLine progress(::isatty(STDERR_FILENO) &&
                        std::getenv("NO_COLOR") == nullptr);
  bool isColoured =
      ::isatty(STDERR_FILENO) && std::getenv("NO_COLOR") == nullptr;
  request.progress = [&](const std::string &step, std::uint64_t done,
                         std::uint64_t total) {
    progress.show(step, done, total);
  };
  request.diagnostic = [&](const std::string &text) {
    progress.clear();
    bool isError = text.rfind("error:", 0) == 0;
    std::fprintf(stderr, isColoured && isError ? "\033[31m%s\033[0m\n" : "%s\n",
                 printableLines(text).c_str());
  };
  if (flags.explainFusion)
    request.explainFusion = [&](const std::string &text) {
      progress.clear();
      std::fprintf(stderr, "%s\n", printable(text).c_str());
    };
  mlir::MLIRContext context;
  prepareContext(context);
  Result<BuiltModel> built = buildModel(context, flags.build);
  progress.clear();
  if (!built)
    return finish(built.status());
  CompiledModel *compiled = &built->compiled;
  if (built->calibrated && built->calibrated->wasCached)
    std::fprintf(stderr, "note: codes are those of %s\n",
                 printable(built->calibrated->path).c_str());
  for (const std::string &note : compiled->notes)
    std::fprintf(stderr, "note: %s\n", printableLines(note).c_str());
  for (const std::string &warning : compiled->artifact.warnings)
    std::fprintf(stderr, "warning: %s\n", printableLines(warning).c_str());
  std::string text;
  if (!flags.dumpAfter.empty())
    text = stageText(*compiled->module);
  else if (!request.outputPath.empty())
    text = flags.json ? builtJson(*built, request.outputPath)
                      : builtTable(*built, request.outputPath);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return finish(standardOutputStatus());
}

} // namespace

void addModelOptions(CLI::App &command, CompileOptions &options) {
  command.add_option(
      "--quantize", options.quantize,
      "Encoding of the weights: none (as stored), f32, f16, bf16, int8 or "
      "int4, with the columns that share a scale: int8-g32, int8-g64, "
      "int8-g128, int4-g32, int4-g64, int4-g128 (int8 and int4 alone: g64), "
      "and how codes are found: int4-g32-rtn (nearest, the default), "
      "int4-g32-gptq, int4-g32-awq. Behind commas, for the weights that a "
      "pattern names: int4-g32-gptq,layer.0.*=int8");
  command.add_option(
      "--table", options.table,
      "Encoding of embedding and head: auto (default: int8 where weights are "
      "integers), none, f32, f16, bf16, int8, int4");
  command
      .add_option("--skip", options.skip,
                  "Weights whose encoding stays as it is; may be repeated")
      ->allow_extra_args(false);
  command
      .add_option("--exits", options.exits,
                  "Early exits, by commas: the layers that run before each")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--exit-maps", options.exitMaps,
                     "Maps and confidences of the exits, as fit-exits has "
                     "written them");
  command.add_option(
      "--kv", options.kv,
      "Elements of the KV cache: f16 (default), f32, int8 (as f16 with "
      "--quantize-kv int8)");
  command.add_option(
      "--quantize-kv", options.quantizeKv,
      "Keys and values as codes: none (default) or int8 (half the bytes of "
      "f16; lossy, measured by --evaluate)");
  command.add_option("--context", options.context,
                     "Longest sequence (default: the model's own)");
  command.add_option("--name", options.name,
                     "Name of the model (default: that of its folder or file)");
  command.add_option(
      "--target", options.target,
      "Devices to make code for: cpu (default), cuda, or cuda with the chips, "
      "by commas: cuda:sm_80,sm_90a,cpu");
  command.add_flag_callback(
      "--allow-library-gemm", [&options] { options.allowLibraryGemm = true; },
      "Leave products of 65 rows and more with f16 or bf16 weights to "
      "cuBLASLt, "
      "which a run on a CUDA device then needs; lossy: bits depend on company");
  command.add_option(
      "--pooling", options.pooling,
      "Of an encoder: how a text's rows become its vector: mean, cls or last; "
      "with :raw its length is not made 1 (default: as the model's "
      "sentence-transformers files say, else mean)");
  command
      .add_option(
          "--levels", options.levels,
          "Feature levels to make code for, best first, by commas (default: "
          "all): x86-64-v3, avx512-vnni")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option(
          "--lora", options.lora,
          "PEFT adapter to add, FOLDER or FOLDER:scale; may be repeated")
      ->allow_extra_args(false);
}

void addLearnedOptions(CLI::App &command, CompileOptions &options,
                       std::string &cacheFolder) {
  command.add_option("--calibrate", options.calibrate,
                     "Text to choose codes by, for methods that need one "
                     "(gptq, awq), and what to prune: like what the model "
                     "will read");
  command.add_option("--calibration-tokens", options.calibrationTokens,
                     "Tokens of that text to use at most [32768]");
  command.add_option("--prune-layers", options.pruneLayers,
                     "Layers to leave out, those that change least");
  command.add_option("--prune-heads", options.pruneHeads,
                     "Key heads to leave out of the whole model, with the "
                     "query heads that read them");
  command.add_option("--prune-ffn", options.pruneFfn,
                     "Share of the feed-forward's columns to leave out of "
                     "each layer (0.25: a quarter)");
  command.add_option("--calibration-cache", cacheFolder,
                     "Folder where calibrated codes are kept [$INGOT_CACHE, "
                     "$XDG_CACHE_HOME/ingot or ~/.cache/ingot]");
}

Command addCompileCommand(CLI::App &app) {
  auto flags = std::make_shared<CompileFlags>();
  CompileRequest &request = flags->build.compile;
  CompileOptions &options = request.options;
  CLI::App *command =
      app.add_subcommand("compile", "Makes an artifact of a model");
  command->add_option("MODEL", request.modelPath,
                      "Hugging Face folder, GGUF or ONNX file, or .mlir stage");
  command->add_option("-o,--output", request.outputPath, "Artifact to write");
  addModelOptions(*command, options);
  command->add_option(
      "--recipe", flags->recipe,
      "JSON file of these options and, by phase, of pipelines; flags "
      "win over it");
  command->add_option("--save-recipe", flags->saveRecipe,
                      "Write the options as a recipe");
  command->add_flag("--print-pipeline", flags->printPipeline,
                    "Print the pass pipeline, as ingot-opt takes it, and stop");
  command->add_option("--save-stages", request.stagesFolder,
                      "Write the module after each phase into this folder");
  command->add_option("--dump-ir-after", flags->dumpAfter,
                      "Print the module after this phase and stop");
  command->add_option("--from", flags->from,
                      "First phase still to run on an .mlir stage in lm");
  command->add_option("--source-folder", request.sourceFolder,
                      "Where the files of a stage without paths are");
  command->add_option("--descriptor", request.descriptorPaths,
                      "JSON file that describes a family of models; tried "
                      "before the built-in ones");
  addLearnedOptions(*command, options, flags->build.cacheFolder);
  command->add_flag("--no-heal", flags->noHeal,
                    "Do not fit what is left to what the whole model does");
  command->add_option(
      "--evaluate", options.evaluate,
      "Text to measure each lossy step on, for the accuracy ledger; other than "
      "that of --calibrate");
  command->add_option("--evaluation-tokens", options.evaluationTokens,
                      "Tokens of that text to use at most [65536]");
  command->add_option("--max-kl", options.maxKl,
                      "Fail where the mean KL divergence from the imported "
                      "model is larger (nats)");
  command->add_option("--max-ppl-increase", options.maxPplIncrease,
                      "Fail where perplexity grows by a larger share (0.01: "
                      "one per cent)");
  command
      ->add_option("--threads", request.threads, "Threads for code and weights")
      ->check(CLI::Range(1u, 256u));
  command->add_flag("--explain-fusion", flags->explainFusion,
                    "Say which parts of an ONNX graph were recognised, which "
                    "were left alone, and why");
  command->add_flag("--json", flags->json, "Print the summary as JSON");
  command->footer(
      "Phases: import, simplify, compress, fuse, lower. A saved stage goes "
      "on\nwith ingot-opt or with compile; the artifact is the same byte by "
      "byte.");
  return [flags] { return runCompile(*flags); };
}

} // namespace ingot
