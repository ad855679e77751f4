// One text for each phase; the registered pipelines parse the same text, so the
// two cannot differ.
#include "compiler/pipeline/Phases.h"

#include "passes/quantize/QuantizeSpec.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace ingot {

const char *phaseName(Phase phase) {
  switch (phase) {
  case Phase::Import:
    return "import";
  case Phase::Simplify:
    return "simplify";
  case Phase::Compress:
    return "compress";
  case Phase::Fuse:
    return "fuse";
  case Phase::Lower:
    return "lower";
  }
  llvm_unreachable("all phases are handled");
}

Status applyQuantizeShorthand(const std::string &text, PhaseOptions &options) {
  auto refuse = [&](const std::string &why) {
    return Status::invalid("quantization \"" + text + "\": " + why);
  };
  llvm::SmallVector<llvm::StringRef> words;
  llvm::StringRef(text).split(words, ',');
  auto main = parseQuantizeSpec(words.front().str());
  if (!main)
    return refuse(main.status().message());
  std::vector<std::string> overrides;
  for (llvm::StringRef word : llvm::ArrayRef(words).drop_front()) {
    auto [pattern, spec] = word.rsplit('=');
    if (pattern.empty() || spec.empty())
      return refuse("\"" + word.str() + "\": expected PATTERN=ENCODING");
    auto own = parseQuantizeSpec(spec.str());
    if (!own)
      return refuse("\"" + word.str() + "\": " + own.status().message());
    overrides.push_back(pattern.str() + "=" + own->text());
  }
  options.encoding = main->encoding;
  options.group = main->group;
  options.method = main->method;
  options.overrides = std::move(overrides);
  return Status::ok();
}

Result<std::string> roundedShorthand(const std::string &text) {
  PhaseOptions options;
  INGOT_RETURN_IF_ERROR(applyQuantizeShorthand(text, options));
  auto rounded = [](QuantizeSpec spec) {
    spec.method = "rtn";
    return spec.text();
  };
  QuantizeSpec main{options.encoding, options.group, options.method};
  std::string result = rounded(main);
  for (llvm::StringRef word : options.overrides) {
    auto [pattern, spec] = word.rsplit('=');
    INGOT_ASSIGN_OR_RETURN(QuantizeSpec own, parseQuantizeSpec(spec.str()));
    result += "," + pattern.str() + "=" + rounded(own);
  }
  return result;
}

bool needsCalibration(const PhaseOptions &options) {
  auto isCalibrated = [](llvm::StringRef text) {
    auto spec = parseQuantizeSpec(text.rsplit('=').second.str());
    return spec && spec->isCalibrated();
  };
  return options.method != "rtn" ||
         llvm::any_of(options.overrides, isCalibrated);
}

std::string quantizeWeightsText(const PhaseOptions &options, bool markOnly) {
  std::string text = "quantize-weights{encoding=" + options.encoding +
                     " group=" + std::to_string(options.group) +
                     " table=" + options.table;
  if (!options.skip.empty())
    text += " skip=" + llvm::join(options.skip, ",");
  if (options.method != "rtn")
    text += " method=" + options.method;
  if (!options.overrides.empty())
    text += " overrides=" + llvm::join(options.overrides, ",");
  if (markOnly)
    text += " mark-only=true";
  return text + "}";
}

// With the comma behind it; empty where there are no exits.
static std::string insertExits(const PhaseOptions &options) {
  if (options.exits.empty())
    return {};
  std::string text;
  for (std::int64_t layers : options.exits)
    text += (text.empty() ? "" : ",") + std::to_string(layers);
  return "insert-early-exits{layers=" + text +
         (options.cutFinal ? " cut-final=true" : "") + "},";
}

static std::string selectKernels(const PhaseOptions &options) {
  std::string inner;
  auto add = [&](const char *name, const std::vector<std::string> &values) {
    if (!values.empty())
      inner += (inner.empty() ? "" : " ") + std::string(name) + "=" +
               llvm::join(values, ",");
  };
  // The cpu alone is what no word means.
  if (options.targets != std::vector<std::string>{"cpu"})
    add("target", options.targets);
  add("levels", options.levels);
  add("sms", options.chips);
  return "select-kernels" + (inner.empty() ? "" : "{" + inner + "}");
}

Status applyTargetShorthand(const std::string &text, PhaseOptions &options) {
  auto refuse = [&](const std::string &why) {
    return Status::invalid("target \"" + text + "\": " + why);
  };
  llvm::SmallVector<llvm::StringRef> words;
  llvm::StringRef(text).split(words, ',');
  bool isInCuda = false; // chips may follow
  for (llvm::StringRef word : words) {
    if (isInCuda && word.starts_with("sm_")) {
      options.chips.push_back(word.str());
      continue;
    }
    auto [name, chip] = word.split(':');
    if (name != "cpu" && name != "cuda")
      return Status::unsupported(
          "target \"" + text + "\": \"" + word.str() +
          "\" is none; expected cpu, cuda or cuda:sm_80,sm_90a");
    if (llvm::is_contained(options.targets, name))
      return refuse(name.str() + " stands twice");
    options.targets.push_back(name.str());
    isInCuda = word.starts_with("cuda:");
    if (name == "cpu" && word != "cpu")
      return refuse("the cpu has levels of its own (--levels)");
    if (isInCuda && !chip.starts_with("sm_"))
      return refuse("expected a chip such as sm_90 behind \"cuda:\", found \"" +
                    chip.str() + "\"");
    if (isInCuda)
      options.chips.push_back(chip.str());
  }
  if (!options.levels.empty() && !llvm::is_contained(options.targets, "cpu"))
    return refuse("levels are of the cpu, which is not among the targets");
  return Status::ok();
}

std::string phasePipeline(Phase phase, const PhaseOptions &options) {
  switch (phase) {
  case Phase::Import:
    return "verify-phase{after=import}";
  case Phase::Simplify:
    return "canonicalize,merge-qkv,merge-gate-up,verify-phase{after=simplify}";
  case Phase::Compress:
    // Weights that were stored in different forms may agree now.
    return insertExits(options) + quantizeWeightsText(options) +
           (options.quantizesKv ? ",quantize-kv" : "") +
           ",merge-qkv,merge-gate-up,insert-quantize,"
           "verify-phase{after=compress}";
  case Phase::Fuse:
    return "fuse-rotary-cache-write,fuse-quantize,fuse-epilogues,fill-exits,"
           "canonicalize,verify-phase{after=fuse}";
  case Phase::Lower:
    return selectKernels(options) +
           (options.allowLibraryGemm ? ",allow-library-gemm" : "") +
           ",assign-buffers,assign-weights";
  }
  llvm_unreachable("all phases are handled");
}

std::string pipelineText(const PhaseOptions &options, Phase first, Phase last) {
  std::string text;
  for (Phase phase : kPhases)
    if (phase >= first && phase <= last)
      text += (text.empty() ? "" : ",") + phasePipeline(phase, options);
  return "builtin.module(" + text + ")";
}

namespace {

// Options of the registered pipelines, spelled as those of the passes.
struct CliOptions : PassPipelineOptions<CliOptions> {
  Option<std::string> encoding{*this, "encoding",
                               llvm::cl::desc("Encoding of the weights"),
                               llvm::cl::init(PhaseOptions().encoding)};
  Option<std::int64_t> group{*this, "group",
                             llvm::cl::desc("Columns that share a scale"),
                             llvm::cl::init(PhaseOptions().group)};
  Option<std::string> table{*this, "table",
                            llvm::cl::desc("Encoding of embedding and head"),
                            llvm::cl::init(PhaseOptions().table)};
  ListOption<std::string> skip{*this, "skip",
                               llvm::cl::desc("Weights to leave as they are")};
  Option<std::string> method{*this, "method",
                             llvm::cl::desc("How codes are found"),
                             llvm::cl::init(PhaseOptions().method)};
  ListOption<std::string> overrides{
      *this, "overrides",
      llvm::cl::desc("PATTERN=ENCODING for matrices that differ")};
  Option<bool> quantizesKv{*this, "kv-int8",
                           llvm::cl::desc("Keys and values as codes"),
                           llvm::cl::init(false)};
  ListOption<std::int64_t> exits{
      *this, "exits", llvm::cl::desc("Layers that run before each exit")};
};

struct LowerCliOptions : PassPipelineOptions<LowerCliOptions> {
  ListOption<std::string> targets{*this, "target",
                                  llvm::cl::desc("Devices: cpu, cuda")};
  ListOption<std::string> levels{*this, "levels",
                                 llvm::cl::desc("Feature levels of the CPU")};
  ListOption<std::string> chips{*this, "sms",
                                llvm::cl::desc("CUDA chips, sm_N")};
};

void build(OpPassManager &manager, Phase phase, const PhaseOptions &options) {
  if (failed(parsePassPipeline(phasePipeline(phase, options), manager)))
    llvm::report_fatal_error(llvm::Twine("phase ") + phaseName(phase) +
                             " names a pass that is not registered");
}

} // namespace

void registerPhasePipelines() {
  PassPipelineRegistration<> import(
      "ingot-import", "Check an imported module",
      [](OpPassManager &manager) { build(manager, Phase::Import, {}); });
  PassPipelineRegistration<> simplify(
      "ingot-simplify", "Algebraic rewrites that keep every bit",
      [](OpPassManager &manager) { build(manager, Phase::Simplify, {}); });
  PassPipelineRegistration<CliOptions> compress(
      "ingot-compress", "Choose the encodings of weights and activations",
      [](OpPassManager &manager, const CliOptions &cli) {
        PhaseOptions options;
        options.encoding = cli.encoding;
        options.group = cli.group;
        options.table = cli.table;
        options.skip.assign(cli.skip.begin(), cli.skip.end());
        options.method = cli.method;
        options.overrides.assign(cli.overrides.begin(), cli.overrides.end());
        options.quantizesKv = cli.quantizesKv;
        options.exits.assign(cli.exits.begin(), cli.exits.end());
        build(manager, Phase::Compress, options);
      });
  PassPipelineRegistration<> fuse(
      "ingot-fuse", "Fewer launches and fewer bytes, with the same bits",
      [](OpPassManager &manager) { build(manager, Phase::Fuse, {}); });
  PassPipelineRegistration<LowerCliOptions> lower(
      "ingot-lower", "From lm to plan",
      [](OpPassManager &manager, const LowerCliOptions &cli) {
        PhaseOptions options;
        options.targets.assign(cli.targets.begin(), cli.targets.end());
        options.levels.assign(cli.levels.begin(), cli.levels.end());
        options.chips.assign(cli.chips.begin(), cli.chips.end());
        build(manager, Phase::Lower, options);
      });
}

} // namespace ingot
