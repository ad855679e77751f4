// One text for each phase; the registered pipelines parse the same text, so the
// two cannot differ.
#include "compiler/pipeline/Phases.h"

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
  llvm::StringRef(text).split(words, '-');
  llvm::StringRef encoding = words.front();
  bool integer = encoding == "int8" || encoding == "int4";
  if (!integer && encoding != "f32" && encoding != "f16" &&
      encoding != "bf16" && encoding != "none")
    return refuse("expected int8, int4, f32, f16, bf16 or none");
  std::int64_t group = PhaseOptions().group;
  llvm::ArrayRef<llvm::StringRef> rest = llvm::ArrayRef(words).drop_front();
  if (integer && !rest.empty() && rest.front().starts_with("g")) {
    if (rest.front().drop_front().getAsInteger(10, group) ||
        (group != 32 && group != 64 && group != 128))
      return refuse("the group must be g32, g64 or g128");
    rest = rest.drop_front();
  }
  if (integer && !rest.empty() && rest.front() == "rtn")
    rest = rest.drop_front();
  if (!rest.empty())
    return refuse("unexpected \"" + rest.front().str() + "\"");
  options.encoding = encoding.str();
  options.group = group;
  return Status::ok();
}

static std::string quantizeWeights(const PhaseOptions &options) {
  std::string text = "quantize-weights{encoding=" + options.encoding +
                     " group=" + std::to_string(options.group) +
                     " table=" + options.table;
  if (!options.skip.empty())
    text += " skip=" + llvm::join(options.skip, ",");
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
  std::string text = "select-kernels";
  if (!options.levels.empty())
    text += "{levels=" + llvm::join(options.levels, ",") + "}";
  return text;
}

std::string phasePipeline(Phase phase, const PhaseOptions &options) {
  switch (phase) {
  case Phase::Import:
    return "verify-phase{after=import}";
  case Phase::Simplify:
    return "canonicalize,merge-qkv,merge-gate-up,verify-phase{after=simplify}";
  case Phase::Compress:
    // Weights that were stored in different forms may agree now.
    return insertExits(options) + quantizeWeights(options) +
           ",merge-qkv,merge-gate-up,insert-quantize,"
           "verify-phase{after=compress}";
  case Phase::Fuse:
    return "fuse-rotary-cache-write,fuse-quantize,fuse-epilogues,fill-exits,"
           "canonicalize,verify-phase{after=fuse}";
  case Phase::Lower:
    return selectKernels(options) + ",assign-buffers,assign-weights";
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
  ListOption<std::int64_t> exits{
      *this, "exits", llvm::cl::desc("Layers that run before each exit")};
};

struct LowerCliOptions : PassPipelineOptions<LowerCliOptions> {
  ListOption<std::string> levels{*this, "levels",
                                 llvm::cl::desc("Feature levels of the CPU")};
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
        options.levels.assign(cli.levels.begin(), cli.levels.end());
        build(manager, Phase::Lower, options);
      });
}

} // namespace ingot
