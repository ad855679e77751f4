// The `ingot` program: parses the command line, calls a command, prints the
// status. Nothing is decided here.
#include "tools/ExitCodes.h"
#include "tools/ingot/ChatLoop.h"
#include "tools/ingot/Commands.h"
#include "tools/ingot/Report.h"
#include "tools/text/InputText.h"

#include "runtime/support/MappedFiles.h"
#include "runtime/support/Printable.h"
#include "runtime/support/StandardStreams.h"

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

namespace ingot::cli {

namespace {

// A whole number from `least` that fits the flag's type. CLI11's own reading
// wraps negative numbers and clips large ones.
template <typename Integer> CLI::Validator wholeFrom(Integer least) {
  return CLI::Validator(
      [least](std::string &text) -> std::string {
        Integer value;
        const char *end = text.data() + text.size();
        auto [stop, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc() && stop == end && value >= least)
          return {};
        return "\"" + text + "\": expected a whole number from " +
               std::to_string(least) + " to " +
               std::to_string(std::numeric_limits<Integer>::max());
      },
      "");
}

constexpr const char *kDeviceHelp =
    "cpu, cuda or cuda:N [the first CUDA device that the model has code for, "
    "else the cpu]";

void addModel(CLI::App *app, ModelFlags &flags) {
  app->add_option("model", flags.path, "The artifact, model.ingot")->required();
  app->add_option("--threads", flags.threads,
                  "Worker threads [from affinity and control group]")
      ->check(CLI::Range(1, 1024));
  app->add_option("--level", flags.level,
                  "Level of native code [the best that this machine runs]");
  app->add_flag("--verify", flags.verify,
                "Compare the weights' checksum before anything else");
}

// Of models that generate: encoders run on the cpu.
void addDevice(CLI::App *app, ModelFlags &flags) {
  app->add_option("--device", flags.device, kDeviceHelp);
}

void addContext(CLI::App *app, ModelFlags &flags) {
  app->add_option("--context", flags.context,
                  "Tokens of prompt and output together [the model's, at most "
                  "4096]")
      ->check(wholeFrom<std::int32_t>(1));
}

void addSpeculation(CLI::App *app, SpeculationFlags &flags) {
  const char *group = "Speculation (the same text in fewer steps)";
  CLI::Option *draft =
      app->add_option("--draft", flags.draft,
                      "Another artifact with the same tokenizer that guesses "
                      "ahead")
          ->group(group);
  app->add_option("--speculate", flags.speculate,
                  "ngram: guess that the text repeats itself; exit:N: guess "
                  "by the model's own first N layers")
      ->check([](const std::string &text) {
        EngineOptions ignored;
        return readSpeculation(text, ignored).message();
      })
      ->excludes(draft)
      ->group(group);
  app->add_option("--draft-tokens", flags.draftTokens,
                  "The most guesses in a step [8]")
      ->check(CLI::Range(1, 64))
      ->group(group);
}

void addSampling(CLI::App *app, SamplingFlags &flags) {
  const char *group = "Sampling (the model's own defaults where not given)";
  app->add_option("--temperature", flags.temperature,
                  "0: always the most likely token")
      ->group(group);
  app->add_option("--top-k", flags.topK, "Only the k most likely; 0: all")
      ->check(wholeFrom(std::numeric_limits<std::int64_t>::min()))
      ->group(group);
  app->add_option("--top-p", flags.topP,
                  "Only the most likely that together reach p")
      ->group(group);
  app->add_option("--min-p", flags.minP,
                  "Only those at least this share as likely as the top")
      ->group(group);
  app->add_option("--repetition-penalty", flags.repetitionPenalty,
                  "Above 1: less of what prompt and output hold")
      ->group(group);
  app->add_option("--presence-penalty", flags.presencePenalty,
                  "Taken off tokens that the output holds")
      ->group(group);
  app->add_option("--frequency-penalty", flags.frequencyPenalty,
                  "Taken off tokens for each time in the output")
      ->group(group);
  app->add_option("--min-tokens", flags.minTokens,
                  "No end-of-text token before so many")
      ->check(wholeFrom<std::int64_t>(0))
      ->group(group);
  app->add_option("--seed", flags.seed,
                  "The same seed gives the same text [fresh]")
      ->check(wholeFrom<std::uint64_t>(0))
      ->group(group);
}

CLI::App &addServe(CLI::App &app, ServeFlags &flags) {
  CLI::App *serve =
      app.add_subcommand("serve", "Answer OpenAI's API over HTTP");
  serve
      ->add_option("models", flags.models,
                   "Artifacts, each PATH or NAME=PATH; a request's \"model\" "
                   "chooses by the name [the model's own]")
      ->required();
  serve->add_option("--host", flags.host, "Address to listen on")
      ->capture_default_str();
  serve->add_option("--port", flags.port, "0: any that is free")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  serve->add_option("--api-key-file", flags.apiKeyFile,
                    "Only with a key of this file: a line each, KEY or NAME "
                    "KEY");
  serve
      ->add_option("--rate-limit", flags.rateLimit,
                   "Most requests a minute of one client; 0: no limit")
      ->check(wholeFrom(0))
      ->capture_default_str();
  serve
      ->add_option("--max-queue", flags.maxQueue,
                   "Most choices that wait, for each model")
      ->check(wholeFrom(0))
      ->capture_default_str();
  serve->add_option("--max-connections", flags.maxConnections, "At once")
      ->check(wholeFrom(1))
      ->capture_default_str();
  serve->add_option("--max-body", flags.maxBodyKibibytes, "Of a request, KiB")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  serve
      ->add_option("--sequences", flags.sequences,
                   "Choices in the batch at once, for each model")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  serve
      ->add_option("--context", flags.context,
                   "Tokens of prompt and output together [the model's, at "
                   "most 4096]")
      ->check(wholeFrom<std::int32_t>(1));
  serve
      ->add_option("--kv-memory", flags.kvMebibytes,
                   "Most for the cache of each model, MiB [what the batch "
                   "needs, at most "
                   "its share of half the free memory]")
      ->check(CLI::Range(std::int64_t(1), std::int64_t(1) << 30));
  serve
      ->add_option("--step-tokens", flags.stepTokens,
                   "Most tokens of one step [512]")
      ->check(CLI::Range(1, 65536));
  serve
      ->add_option("--chunk-tokens", flags.chunkTokens,
                   "Most prompt tokens of one sequence in a step [64]: less "
                   "disturbs the others less")
      ->check(CLI::Range(1, 65536));
  serve
      ->add_option("--stall-factor", flags.stallFactor,
                   "Beside prompts that are being read a token of the others "
                   "takes at most this many times as long; 0: no limit")
      ->check(CLI::IsMember({0.0}) | CLI::Range(1.0, 1000.0))
      ->capture_default_str();
  serve->add_option("--device", flags.device, kDeviceHelp);
  serve
      ->add_option("--threads", flags.threads,
                   "Worker threads of each model [from affinity and control "
                   "group]")
      ->check(CLI::Range(1, 1024));
  addSpeculation(serve, flags.speculation);
  serve->add_option("--level", flags.level,
                    "Level of native code [the best that this machine runs]");
  serve->add_flag("--verify", flags.verify,
                  "Compare the weights' checksums before anything else");
  serve->add_flag("--allow-control-tokens", flags.allowControlTokens,
                  "Let the text of messages form control tokens, as Hugging "
                  "Face does: whoever writes them then speaks for every role");
  serve
      ->add_option("--drain-timeout", flags.drainSeconds,
                   "Seconds that requests have after SIGTERM")
      ->check(CLI::Range(0, 86400))
      ->capture_default_str();
  serve
      ->add_option("--stall-timeout", flags.stallSeconds,
                   "Seconds without a step after which /health fails")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  serve->add_flag("--log-json", flags.logJson, "Log lines as JSON");
  serve->footer("SIGTERM or Ctrl-C: no new requests, those under way are "
                "finished; a second one ends at once.");
  return *serve;
}

void addCost(CLI::App *inspect, InspectFlags &flags) {
  const char *group = "Predicted cost (nothing runs, no GPU is needed)";
  CLI::Option *cost =
      inspect
          ->add_option("--cost", flags.cost,
                       "What a step costs on a chip that the artifact has "
                       "cubins for, as sm_90a (an H200): bytes, sectors, bank "
                       "conflicts, occupancy, and the least time")
          ->type_name("SM")
          ->group(group);
  inspect
      ->add_option("--rows", flags.rows,
                   "Decoding steps of so many sequences, as 1,16,64")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096))
      ->needs(cost)
      ->capture_default_str()
      ->group(group);
  inspect
      ->add_option("--context", flags.context,
                   "Tokens of each of these sequences [1024, or the model's]")
      ->check(wholeFrom<std::int32_t>(1))
      ->needs(cost)
      ->group(group);
  inspect
      ->add_option("--prompt", flags.prompt,
                   "Tokens of the prompt that is read in one step [512, or the "
                   "context]")
      ->check(CLI::Range(1, 65536))
      ->needs(cost)
      ->group(group);
  inspect->footer(
      "The cost of a launch is the larger of its bytes over the memory's speed "
      "and\nits multiplications over the tensor cores' rate: no device is "
      "faster. docs/cuda.md\nhas the rates and how the counts are proved.\n\n"
      "  ingot inspect model.ingot --cost sm_90a --rows 1,8 --context 4096");
}

// Does the argument name an artifact, by its first bytes? Anything else that
// tokenize and render are given is the compiler's to read.
bool isArtifact(const char *path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return false;
  char magic[sizeof container::kMagic] = {};
  std::ifstream file(path, std::ios::binary);
  return file.read(magic, sizeof magic) &&
         std::memcmp(magic, container::kMagic, sizeof magic) == 0;
}

bool isForCompiler(int argc, char **argv) {
  if (argc < 2)
    return false;
  std::string command = argv[1];
  for (const char *other :
       {"compile", "check", "debug", "fit-exits", "measure-exits"})
    if (command == other)
      return true;
  if (command != "tokenize" && command != "render")
    return false;
  // The model is the first argument that is neither a flag nor a flag's value.
  int model = 2;
  for (; model < argc && argv[model][0] == '-'; ++model)
    for (const char *flag :
         {"--tools", "--documents", "--kwargs", "--template"})
      if (std::strcmp(argv[model], flag) == 0)
        ++model;
  std::error_code error;
  return model < argc && std::filesystem::exists(argv[model], error) &&
         !isArtifact(argv[model]);
}

int report(const Status &status) {
  if (!status.isOk()) {
    const Colour &c = errorColour();
    std::fprintf(stderr, "%singot: %s%s\n", c.red,
                 printableLines(status.message()).c_str(), c.off);
  }
  return exitCode(status);
}

int main(int argc, char **argv) {
  holdStandardStreams();
  exitOnBusErrors("ingot", kRefused);
  if (isForCompiler(argc, argv))
    return report(runCompiler(argc, argv));

  CLI::App app("Ingot compiles a language model into one file and runs it.\n"
               "\n"
               "  ingot compile ./Model -o model.ingot --quantize int8\n"
               "  ingot run model.ingot -p \"Once upon a time\"\n"
               "  ingot run model.ingot --chat\n"
               "  ingot serve model.ingot --port 8080\n"
               "  ingot inspect model.ingot\n"
               "  ingot bench model.ingot\n"
               "  ingot eval model.ingot --text held-out.txt\n"
               "  ingot embed encoder.ingot \"a text\" \"another\"\n"
               "\n"
               "`ingot COMMAND --help` tells the rest.",
               "ingot");
  app.set_version_flag("--version", "ingot " INGOT_VERSION);
  app.require_subcommand(1);
  Status status;

  RunFlags runFlags;
  CLI::App *run = app.add_subcommand("run", "Generate text");
  addModel(run, runFlags.model);
  addDevice(run, runFlags.model);
  addContext(run, runFlags.model);
  run->add_option("-p,--prompt", runFlags.prompt,
                  "The text to go on from; with --chat, one message. Without "
                  "-p and --chat the prompt is read from standard input");
  run->add_flag("--chat", runFlags.chat,
                "Converse, through the model's own template");
  run->add_option("--system", runFlags.system, "A system message, for --chat")
      ->needs("--chat");
  run->add_option("--max-tokens", runFlags.maxTokens,
                  "Most tokens of output [to the end of the context]")
      ->check(wholeFrom<std::int64_t>(0));
  run->add_option("--stop", runFlags.stop,
                  "End where the output holds this text; may be repeated")
      ->allow_extra_args(false);
  run->add_flag("--ignore-eos", runFlags.ignoreEos,
                "Do not end at the model's end-of-text tokens");
  run->add_option("--exit-threshold", runFlags.exitThreshold,
                  "Lossy: leave the model at the first early exit that is this "
                  "sure of its token [0: all layers]")
      ->check(CLI::Range(0.0, 1.0));
  run->add_flag("--stats", runFlags.stats,
                "Tell times, speed and memory on standard error");
  run->add_flag("--profile", runFlags.profile,
                "Tell the time, GB/s and share of the memory's speed of each "
                "kernel on standard error");
  addSampling(run, runFlags.sampling);
  addSpeculation(run, runFlags.speculation);
  run->footer("Only the generated text goes to standard output.");
  run->callback([&] { status = cli::run(runFlags); });

  InspectFlags inspectFlags;
  CLI::App *inspect = app.add_subcommand("inspect", "Tell what an artifact is");
  inspect->add_option("model", inspectFlags.path, "The artifact")->required();
  inspect->add_flag("--json", inspectFlags.json, "For programs");
  inspect->add_flag("--verify", inspectFlags.verify,
                    "Compare the weights' checksum too");
  inspect->add_flag("--ledger", inspectFlags.ledger,
                    "The accuracy ledger alone");
  addCost(inspect, inspectFlags);
  inspect->callback([&] { status = cli::inspect(inspectFlags); });

  BenchFlags benchFlags;
  CLI::App *bench =
      app.add_subcommand("bench", "Measure speed against this machine's limit");
  addModel(bench, benchFlags.model);
  addDevice(bench, benchFlags.model);
  bench->add_option("--prompt", benchFlags.prompts, "Prompt lengths")
      ->delimiter(',')
      ->check(wholeFrom(1))
      ->capture_default_str();
  bench->add_option("--generate", benchFlags.generate, "Tokens of output")
      ->check(wholeFrom(2))
      ->capture_default_str();
  bench->add_option("--batch", benchFlags.batches, "Sequences at once")
      ->delimiter(',')
      ->check(wholeFrom(1))
      ->capture_default_str();
  bench->add_flag("--json", benchFlags.json, "For programs");
  bench->callback([&] { status = cli::bench(benchFlags); });

  ServeFlags serveFlags;
  addServe(app, serveFlags).callback([&] { status = cli::serve(serveFlags); });

  EvalFlags evalFlags;
  CLI::App *eval = app.add_subcommand(
      "eval", "Measure perplexity, and the distance from another artifact");
  addModel(eval, evalFlags.model);
  addDevice(eval, evalFlags.model);
  eval->add_option("--text", evalFlags.textFile, "The text, UTF-8")->required();
  eval->add_option("--against", evalFlags.against,
                   "The artifact to compare with, of the same vocabulary: KL "
                   "divergence and top-1 agreement from it to the model");
  eval->add_option("--window", evalFlags.window, "Tokens of one window")
      ->check(wholeFrom(2))
      ->capture_default_str();
  eval->add_option("--max-tokens", evalFlags.maxTokens,
                   "Only so many tokens of the text [all]")
      ->check(wholeFrom<std::int64_t>(2));
  eval->add_flag("--json", evalFlags.json, "For programs");
  eval->callback([&] { status = cli::eval(evalFlags); });

  EmbedFlags embedFlags;
  CLI::App *embed =
      app.add_subcommand("embed", "Turn texts into vectors, with an encoder");
  addModel(embed, embedFlags.model);
  embed
      ->add_option("--context", embedFlags.model.context,
                   "Tokens of the longest text [the model's, at most 4096]")
      ->check(wholeFrom<std::int32_t>(1));
  embed->add_option("texts", embedFlags.texts, "The texts");
  embed->add_option("--file", embedFlags.file,
                    "Read the texts from this file, one on each line; - for "
                    "standard input");
  embed->add_flag("--json", embedFlags.json, "For programs");
  embed->footer("A line of numbers for each text. A text that is longer than "
                "the model takes is\nrefused: nothing is cut off.");
  embed->callback([&] { status = cli::embed(embedFlags); });

  // Only for the list of commands: their arguments are the compiler's.
  app.add_subcommand("check",
                     "Whether a model will compile, for which targets, "
                     "and what it will need");
  app.add_subcommand("compile", "Compile a model (a Hugging Face folder, a "
                                "GGUF or an ONNX file) into an artifact");
  app.add_subcommand("fit-exits", "Fit the maps of early exits on a text, for "
                                  "compile --exit-maps");

  app.add_subcommand("debug", "What happened inside a run, and where two runs "
                              "part: trace, compare, passes");

  app.add_subcommand("measure-exits",
                     "Measure what early exits save and cost, by threshold");

  TokenizeFlags tokenizeFlags;
  addTokenizeFlags(app, tokenizeFlags)->callback([&] {
    status = tokenize(tokenizeFlags);
  });

  RenderFlags renderFlags;
  addRenderFlags(app, renderFlags)->callback([&] {
    status = render(renderFlags);
  });

  addExitCodes(app, ";\n7 (serve) the drain's deadline ended requests; 130 "
                    "interrupted");
  auto isNamed = [&](CLI::App *one) { return one->get_name() == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(isNamed).empty()) {
    std::fprintf(stderr,
                 "ingot: no command is named \"%s\"\n"
                 "Run with --help for more information.\n",
                 printable(argv[1]).c_str());
    return kWrongUse;
  }
  // The parser would only say that a command is missing.
  if (argc > 1 && argv[1][0] == '-' && argv[1] != std::string("-h") &&
      argv[1] != std::string("--help") && argv[1] != std::string("--version")) {
    std::fprintf(stderr,
                 "ingot: expected a command, found \"%s\"\n"
                 "Run with --help for more information.\n",
                 printable(argv[1]).c_str());
    return kWrongUse;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    int code = exitOf(app, error);
    return code == kDone ? report(standardOutputStatus()) : code;
  } catch (const std::bad_alloc &) {
    return report(Status::outOfMemory("memory ran out"));
  }
  int code = report(status.isOk() ? standardOutputStatus() : status);
  return code == kDone && isInterrupted() ? kInterrupted : code;
}

} // namespace
} // namespace ingot::cli

int main(int argc, char **argv) { return ingot::cli::main(argc, argv); }
