// `debug`: what happened inside a run, and where two runs part. Parses, calls
// compiler/debug, prints; nothing is decided here.
#include "compiler/calibrate/BuildModel.h"
#include "compiler/debug/CompareModels.h"
#include "compiler/debug/DumpKernels.h"
#include "compiler/debug/PassTable.h"
#include "compiler/debug/TraceModel.h"
#include "compiler/driver/TextModel.h"
#include "compiler/package/OutputPath.h"
#include "runtime/support/Printable.h"
#include "tools/ingot-compiler/Commands.h"
#include "tools/text/InputText.h"

#include <cstdio>
#include <memory>

namespace ingot {
namespace {

void printDiagnostic(const std::string &line) {
  std::fprintf(stderr, "%s\n", printableLines(line).c_str());
}

// What a run is given: ids, or text that a model's tokenizer encodes.
struct TokenFlags {
  std::vector<std::int32_t> ids;
  std::string prompt, textFile, tokenizer;
  std::int64_t maxTokens = 64;

  bool isGiven() const {
    return !ids.empty() || !prompt.empty() || !textFile.empty();
  }
};

void addTokens(CLI::App &command, TokenFlags &flags) {
  const char *group = "Tokens (one of the three)";
  CLI::Option *ids =
      command.add_option("--tokens", flags.ids, "Ids of tokens, by commas")
          ->delimiter(',')
          ->allow_extra_args(false)
          ->group(group);
  CLI::Option *prompt =
      command
          .add_option("-p,--prompt", flags.prompt,
                      "A text, with the tokens that the model puts before one")
          ->excludes(ids)
          ->group(group);
  command
      .add_option("--text", flags.textFile,
                  "The same from a file; - is standard input")
      ->excludes(ids)
      ->excludes(prompt)
      ->group(group);
  command
      .add_option("--max-tokens", flags.maxTokens,
                  "Only so many tokens of a text")
      ->check(CLI::Range(std::int64_t(1), std::int64_t(1) << 20))
      ->capture_default_str()
      ->excludes(ids)
      ->group(group);
  command
      .add_option("--tokenizer", flags.tokenizer,
                  "A model or artifact whose tokenizer encodes the text [the "
                  "one that is run]")
      ->excludes(ids)
      ->group(group);
}

Result<std::vector<std::int32_t>> readTokens(const TokenFlags &flags,
                                             const std::string &model) {
  if (!flags.ids.empty())
    return flags.ids;
  std::string text = flags.prompt;
  if (!flags.textFile.empty()) {
    INGOT_ASSIGN_OR_RETURN(text, readSomeText(flags.textFile, "text to run"));
  }
  const std::string &path = flags.tokenizer.empty() ? model : flags.tokenizer;
  if (llvm::StringRef(path).ends_with(".mlir"))
    return Status::invalid(path + ": a stage has no tokenizer; name a model "
                                  "with --tokenizer, or give --tokens");
  INGOT_ASSIGN_OR_RETURN(TextModel tokenizer, TextModel::open(path));
  INGOT_ASSIGN_OR_RETURN(auto ids, tokenizer.tokenizer().encode(text));
  if (std::ssize(ids) > flags.maxTokens)
    ids.resize(std::size_t(flags.maxTokens));
  if (ids.empty())
    return Status::invalid("the text has no tokens");
  return ids;
}

int usage(const char *message) {
  std::fprintf(stderr, "error: %s\n", message);
  return kWrongUse;
}

int print(const std::string &text, int code) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  Status status = standardOutputStatus();
  return status ? code : finish(status);
}

//===----------------------------------------------------------------------===//
// trace
//===----------------------------------------------------------------------===//

struct TraceFlags {
  debug::TraceRequest request;
  TokenFlags tokens;
  std::string layers;
  bool json = false;
};

int runTrace(TraceFlags &flags) {
  debug::TraceRequest &request = flags.request;
  if (!flags.tokens.isGiven())
    return usage("expected --tokens, --prompt or --text");
  if (request.outputPath.empty() && !request.watchNonFinite)
    return usage("expected -o FILE, --nan-watch or both");
  if (request.outputPath.empty() &&
      (!request.ops.empty() || !flags.layers.empty()))
    return usage("--ops and --layers choose what -o writes; the watch sees "
                 "everything");
  if (!flags.layers.empty()) {
    auto layers = debug::readLayers(flags.layers);
    if (!layers)
      return usage(layers.status().message().c_str());
    request.layers = *layers;
  }
  if (!request.outputPath.empty())
    if (Status status =
            package::checkTensorsPath(request.outputPath, request.path);
        !status)
      return finish(status);
  auto tokens = readTokens(flags.tokens, request.path);
  if (!tokens)
    return finish(tokens.status());
  request.tokens = std::move(*tokens);
  request.diagnostic = printDiagnostic;
  Result<debug::Trace> trace = debug::traceModel(request);
  if (!trace)
    return finish(trace.status());
  return print(flags.json ? debug::traceJson(*trace, request)
                          : debug::traceText(*trace, request),
               trace->nonFinite ? kFound : 0);
}

void addRun(CLI::App &command, debug::ArtifactRunOptions &run,
            std::string &sourceFolder) {
  command
      .add_option("--chunk-tokens", run.chunkTokens,
                  "Run an artifact in steps of so many tokens [all in one]")
      ->check(CLI::Range(1, 1 << 20));
  command
      .add_option("--threads", run.threads,
                  "Worker threads of an artifact [from affinity and control "
                  "group]")
      ->check(CLI::Range(1, 1024));
  command.add_option("--level", run.level,
                     "Level of an artifact's code [the best that this machine "
                     "runs]");
  command.add_option("--source-folder", sourceFolder,
                     "Where the files of a stage without paths are");
}

CLI::App *addTrace(CLI::App &debug, TraceFlags &flags) {
  CLI::App *command = debug.add_subcommand(
      "trace", "Write the intermediates of a run; watch for NaN");
  debug::TraceRequest &request = flags.request;
  command
      ->add_option("MODEL", request.path,
                   "An artifact runs on its own kernels; an .mlir stage in lm, "
                   "a Hugging Face folder or a GGUF file in plain float32")
      ->required();
  addTokens(*command, flags.tokens);
  command->add_option("-o,--output", request.outputPath,
                      "The safetensors file to write");
  command->add_option("--ops", request.ops,
                      "Only tensors whose names match this regular expression");
  command->add_option("--layers", flags.layers,
                      "Only these layers: 3, 3-5 or 3-");
  command->add_flag("--nan-watch", request.watchNonFinite,
                    "Name the first launch, layer and position with a number "
                    "that is not finite");
  addRun(*command, request.run, request.sourceFolder);
  command->add_flag("--json", flags.json, "For programs");
  command->footer(
      "Names are those of the imported model's operators: layer.3.q,\n"
      "layer.3.activation, final_norm. A merged launch is written part by "
      "part, a\n"
      "fused one as the result of its last operator; layer.3.query, .keys and\n"
      ".values are what attention reads. Rows are positions.\n"
      "\n"
      "  ingot debug trace model.ingot -p \"Once upon\" -o out.safetensors\n"
      "  ingot debug trace model.ingot --tokens 1,5,9 --layers 3 --ops "
      "'attention|ffn' -o out.safetensors\n"
      "  ingot debug trace model.ingot --text page.txt --nan-watch\n"
      "\n"
      "0: all finite; 6: a number is not finite.");
  return command;
}

//===----------------------------------------------------------------------===//
// compare
//===----------------------------------------------------------------------===//

struct CompareFlags {
  debug::CompareRequest request;
  TokenFlags tokens;
  bool json = false;
};

int runCompare(CompareFlags &flags) {
  debug::CompareRequest &request = flags.request;
  if (flags.tokens.isGiven()) {
    // A side that has a tokenizer: the first that is no stage and no tensors.
    std::string model = request.a;
    auto kind = debug::kindOf(request.a);
    if (kind && (*kind == debug::SourceKind::Tensors ||
                 llvm::StringRef(request.a).ends_with(".mlir")))
      model = request.b;
    auto tokens = readTokens(flags.tokens, model);
    if (!tokens)
      return finish(tokens.status());
    request.tokens = std::move(*tokens);
  }
  request.diagnostic = printDiagnostic;
  Result<debug::Comparison> comparison = debug::compareModels(request);
  if (!comparison)
    return finish(comparison.status());
  return print(flags.json ? debug::comparisonJson(*comparison)
                          : debug::comparisonText(*comparison),
               comparison->first() ? kFound : 0);
}

CLI::App *addCompare(CLI::App &debug, CompareFlags &flags) {
  CLI::App *command = debug.add_subcommand(
      "compare", "Find the first operator at which two runs part");
  debug::CompareRequest &request = flags.request;
  command
      ->add_option("A", request.a,
                   "An artifact, an .mlir stage in lm, a model (Hugging Face "
                   "folder, GGUF file), or tensors (a .safetensors file, or a "
                   "folder of them without config.json)")
      ->required();
  command->add_option("B", request.b, "The same; the reference")->required();
  addTokens(*command, flags.tokens);
  command
      ->add_option("--tolerance", request.options.tolerance,
                   "Error of an operator that is no divergence, relative to "
                   "the size of what it adds")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command
      ->add_option("--growth", request.options.growth,
                   "Where neither side is a stage or model: how many times the "
                   "error of its inputs a tensor may have")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  addRun(*command, request.run, request.sourceFolder);
  command->add_flag("--json", flags.json, "For programs");
  command->footer(
      "A stage or model (B before A) runs operator by operator on what the\n"
      "other side's operators were given, with its weights rounded as the "
      "other\n"
      "side's are, so that an error is the operator's own. Two artifacts, or "
      "an\n"
      "artifact and tensors, run by themselves, and an error counts where it "
      "is\n"
      "more than what it was made from explains.\n"
      "\n"
      "  ingot debug compare model.ingot ./Model -p \"Once upon a time\"\n"
      "  ingot debug compare stages/3-fuse.mlir stages/0-import.mlir --tokens "
      "1,5,9\n"
      "  ingot debug compare model.ingot dump.safetensors\n"
      "  ingot debug compare ./Model dump.safetensors\n"
      "\n"
      "tools/debug/dump_transformers.py writes such a dump with its tokens.\n"
      "0: no operator diverges; 6: one does.");
  return command;
}

//===----------------------------------------------------------------------===//
// passes
//===----------------------------------------------------------------------===//

struct PassesFlags {
  debug::PassesRequest request;
  std::string recipe, until, cacheFolder;
  bool json = false;
};

int runPasses(PassesFlags &flags) {
  debug::PassesRequest &request = flags.request;
  if (request.compile.modelPath.empty() == request.fromStage.empty())
    return usage("expected either MODEL or --from STAGE");
  if (!flags.recipe.empty()) {
    Result<std::string> text = readText(flags.recipe);
    if (!text)
      return finish(text.status());
    if (Status status =
            applyRecipe(*text, flags.recipe, request.compile.options);
        !status)
      return finish(status);
  }
  if (!flags.until.empty()) {
    std::optional<Phase> phase = phaseByName(flags.until);
    if (!phase)
      return usage("--until: expected import, simplify, compress, fuse or "
                   "lower");
    request.compile.until = *phase;
  }
  // Hashes of the sources matter to what is made of the stages, and to codes.
  request.compile.hashSources = !request.compile.outputPath.empty() ||
                                !request.stagesFolder.empty() ||
                                request.compile.options.calibrate.has_value();
  request.compile.diagnostic = printDiagnostic;
  if (request.compile.options.evaluate)
    return usage("nothing is measured here: compile --evaluate makes an "
                 "artifact with a ledger, --ledger shows it");
  mlir::MLIRContext context;
  prepareContext(context);
  if (request.fromStage.empty())
    if (auto learned =
            learnFromText(context, request.compile, flags.cacheFolder);
        !learned)
      return finish(learned.status());
  Result<debug::PassReport> report = debug::tabulatePasses(context, request);
  if (!report)
    return finish(report.status());
  return print(flags.json ? debug::passesJson(*report, request)
                          : debug::passesText(*report, request),
               0);
}

CLI::App *addPasses(CLI::App &debug, PassesFlags &flags) {
  CLI::App *command = debug.add_subcommand(
      "passes", "What each pass of a compilation does to the module");
  debug::PassesRequest &request = flags.request;
  command->add_option("MODEL", request.compile.modelPath,
                      "Hugging Face folder, GGUF file, or .mlir stage in lm");
  addModelOptions(*command, request.compile.options);
  addLearnedOptions(*command, request.compile.options, flags.cacheFolder);
  command->add_option("--recipe", flags.recipe,
                      "JSON file of these options and, by phase, of "
                      "pipelines; flags win over it");
  std::vector<CLI::Option *> decided = command->get_options();
  command->add_option("--until", flags.until, "The last phase to run [lower]");
  command->add_option(
      "--diff", request.diffPass,
      "Show what this pass changed, layer by layer, layers that "
      "it changed alike once; merge-qkv#2 is its second run");
  command->add_option("--save-stages", request.stagesFolder,
                      "Write the module behind each pass into this folder");
  CLI::Option *from =
      command->add_option("--from", request.fromStage,
                          "Go on from a stage of such a folder, with the "
                          "passes that were left, options and all");
  // The list of passes beside the stage says what these would.
  for (CLI::Option *option : decided)
    if (!option->get_positional() && option != command->get_help_ptr())
      from->excludes(option);
  command->add_option("--ledger", request.ledger,
                      "An artifact with an accuracy ledger (or the JSON of "
                      "one), to show beside the passes that it measured");
  command->add_option("-o,--output", request.compile.outputPath,
                      "Write the artifact too");
  command->add_option("--source-folder", request.compile.sourceFolder,
                      "Where the files of a stage without paths are");
  command->add_flag("--json", flags.json, "For programs");
  command->footer(
      "Operators are those of lm programs, launches those of plans; weights "
      "are\n"
      "counted in their encodings, without padding.\n"
      "\n"
      "  ingot debug passes ./Model --quantize int8\n"
      "  ingot debug passes ./Model --diff fuse-rotary-cache-write\n"
      "  ingot debug passes ./Model --save-stages stages\n"
      "  ingot debug passes --from stages/04-quantize-weights.mlir -o m.ingot");
  return command;
}

//===----------------------------------------------------------------------===//
// kernels
//===----------------------------------------------------------------------===//

struct KernelsFlags {
  std::string artifact, folder;
  std::vector<std::string> kernels;
};

int runKernels(const KernelsFlags &flags) {
  auto files = debug::dumpKernels(flags.artifact, flags.folder, flags.kernels);
  if (!files)
    return finish(files.status());
  std::string text;
  for (const std::string &file : *files)
    text += flags.folder + "/" + file + "\n";
  return print(text, 0);
}

CLI::App *addKernels(CLI::App &debug, KernelsFlags &flags) {
  CLI::App *command = debug.add_subcommand(
      "kernels", "Write the CUDA kernels of an artifact as files");
  command->add_option("MODEL", flags.artifact, "The artifact, model.ingot")
      ->required();
  command->add_option("-o,--output", flags.folder, "Folder of the files")
      ->required();
  command
      ->add_option("--kernel", flags.kernels,
                   "Only this one; may be repeated [all]")
      ->allow_extra_args(false);
  command->footer(
      "Of each kernel the CUDA text without includes that was compiled (.cu), "
      "the PTX\n(.ptx) and a cubin for each chip. Registers, spills and "
      "occupancy are told by\n`ingot inspect`, what a step costs by `ingot "
      "inspect --cost`.\n\n"
      "  ingot debug kernels model.ingot -o kernels --kernel linear_f16_t8");
  return command;
}

} // namespace

Command addDebugCommand(CLI::App &app) {
  CLI::App *debug = app.add_subcommand(
      "debug", "What happened inside a run, and where two runs part");
  debug->require_subcommand(1);
  auto traceFlags = std::make_shared<TraceFlags>();
  CLI::App *trace = addTrace(*debug, *traceFlags);
  auto compareFlags = std::make_shared<CompareFlags>();
  CLI::App *compare = addCompare(*debug, *compareFlags);
  auto passesFlags = std::make_shared<PassesFlags>();
  CLI::App *passes = addPasses(*debug, *passesFlags);
  auto kernelsFlags = std::make_shared<KernelsFlags>();
  CLI::App *kernels = addKernels(*debug, *kernelsFlags);
  return [=] {
    if (kernels->parsed())
      return runKernels(*kernelsFlags);
    if (passes->parsed())
      return runPasses(*passesFlags);
    if (compare->parsed())
      return runCompare(*compareFlags);
    if (trace->parsed())
      return runTrace(*traceFlags);
    return int(kWrongUse);
  };
}

} // namespace ingot
