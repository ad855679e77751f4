// `fit-exits`: maps and confidences of early exits, from a text.
#include "compiler/calibrate/FitExits.h"
#include "compiler/package/OutputPath.h"
#include "runtime/support/Printable.h"
#include "tools/ingot-compiler/Commands.h"
#include "tools/text/InputText.h"

#include <cstdio>
#include <cstdlib>
#include <memory>

#include <unistd.h>

namespace ingot {
namespace {

struct FitExitsFlags {
  FitExitsRequest request;
  std::string textFile;
  bool json = false;
};

void print(const FittedExits &fitted, const std::string &path, bool json) {
  if (json) {
    std::printf("{\"fitted_tokens\": %lld, \"held_out_tokens\": %lld, "
                "\"exits\": [",
                static_cast<long long>(fitted.fittedTokens),
                static_cast<long long>(fitted.heldOutTokens));
    const char *separator = "";
    for (const FittedExit &exit : fitted.exits) {
      std::printf("%s{\"layers\": %lld, \"penalty\": %g, \"explained\": %.6f, "
                  "\"agreement_without_map\": %.6f, \"agreement\": %.6f, "
                  "\"work_share\": %.6f}",
                  separator, static_cast<long long>(exit.layers), exit.strength,
                  exit.explained, exit.agreementWithout, exit.agreementWith,
                  exit.workShare);
      separator = ", ";
    }
    std::printf("], \"tradeoffs\": [");
    separator = "";
    for (const ExitTradeoff &point : fitted.tradeoffs) {
      std::printf("%s{\"threshold\": %g, \"left\": %.6f, \"disagreement\": "
                  "%.6f, \"work\": %.6f}",
                  separator, point.threshold, point.left, point.disagreement,
                  point.work);
      separator = ", ";
    }
    std::printf("]}\n");
    return;
  }
  std::printf("%s: fitted to %lld tokens, measured on %lld others\n",
              printable(path).c_str(),
              static_cast<long long>(fitted.fittedTokens),
              static_cast<long long>(fitted.heldOutTokens));
  std::printf("  %-7s %10s  %10s  %22s  %s\n", "layers", "penalty", "explained",
              "first choice the same", "weights read");
  for (const FittedExit &exit : fitted.exits)
    std::printf("  %-7lld %10g  %8.1f %%  %8.1f %% (no map %.1f %%)  %.1f %%\n",
                static_cast<long long>(exit.layers), exit.strength,
                exit.explained * 100, exit.agreementWith * 100,
                exit.agreementWithout * 100, exit.workShare * 100);
  std::printf(
      "  exit_threshold   rows that leave   other first choice   weights "
      "read\n");
  for (const ExitTradeoff &point : fitted.tradeoffs)
    std::printf("  %-14g  %13.1f %%  %17.2f %%  %11.1f %%\n", point.threshold,
                point.left * 100, point.disagreement * 100, point.work * 100);
}

int runFitExits(FitExitsFlags &flags) {
  if (Status status = package::checkTensorsPath(flags.request.outputPath,
                                                flags.request.modelPath);
      !status)
    return finish(status);
  Result<std::string> text = readSomeText(flags.textFile, "text to fit on");
  if (!text)
    return finish(text.status());
  flags.request.text = std::move(*text);
  bool isTerminal =
      ::isatty(STDERR_FILENO) && std::getenv("NO_COLOR") == nullptr;
  flags.request.diagnostic = [](const std::string &line) {
    std::fprintf(stderr, "%s\n", printableLines(line).c_str());
  };
  if (isTerminal)
    flags.request.progress = [](const std::string &step, std::int64_t done,
                                std::int64_t total) {
      std::fprintf(stderr, "\r\033[K%s", printable(step).c_str());
      if (total > 0)
        std::fprintf(stderr, " %lld of %lld", static_cast<long long>(done),
                     static_cast<long long>(total));
      std::fflush(stderr);
    };
  Result<FittedExits> fitted = fitExits(flags.request);
  if (isTerminal)
    std::fprintf(stderr, "\r\033[K");
  if (!fitted)
    return finish(fitted.status());
  print(*fitted, flags.request.outputPath, flags.json);
  return finish(standardOutputStatus());
}

} // namespace

Command addFitExitsCommand(CLI::App &app) {
  auto flags = std::make_shared<FitExitsFlags>();
  FitExitsRequest &request = flags->request;
  CLI::App *command = app.add_subcommand(
      "fit-exits", "Fits the maps of early exits on a text, for compile "
                   "--exit-maps");
  command
      ->add_option("MODEL", request.modelPath,
                   "Hugging Face folder or GGUF file")
      ->required();
  command
      ->add_option("-o,--output", request.outputPath,
                   "Maps to write (safetensors)")
      ->required();
  command
      ->add_option("--exits", request.options.exits,
                   "The exits, by commas: the layers that run before each")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->required();
  command
      ->add_option("--text", flags->textFile,
                   "Text to fit on; - is standard input")
      ->required();
  command->add_option("--quantize", request.options.quantize,
                      "As compile will be told: the maps belong to its states");
  command->add_option("--table", request.options.table, "As compile");
  command->add_option("--kv", request.options.kv, "As compile");
  command->add_option("--quantize-kv", request.options.quantizeKv,
                      "As compile");
  command->add_option("--window", request.windowTokens,
                      "Tokens that are run together [256]");
  command
      ->add_option("--max-tokens", request.maxTokens,
                   "Tokens of the text to use [all]")
      ->check(CLI::Range(std::int64_t(1), std::int64_t(1) << 40));
  command->add_option("--threads", request.threads, "Threads")
      ->check(CLI::Range(1u, 256u));
  command->add_flag("--json", flags->json, "Print the figures as JSON");
  return [flags] { return runFitExits(*flags); };
}

} // namespace ingot
