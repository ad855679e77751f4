// `measure-exits`: what leaving early saves and costs, by threshold.
#include "compiler/calibrate/ExitTradeoff.h"
#include "runtime/support/Printable.h"
#include "tools/ingot-compiler/Commands.h"
#include "tools/text/InputText.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include <unistd.h>

namespace ingot {
namespace {

struct MeasureExitsFlags {
  ExitTradeoffRequest request;
  std::string textFile;
  bool json = false;
};

double shareOf(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

void printJson(const ExitTradeoffs &measured) {
  nlohmann::ordered_json report = {{"windows", measured.windows},
                                   {"rows", measured.rows},
                                   {"bytes_per_row", measured.bytes},
                                   {"operations_per_row", measured.operations},
                                   {"mean_positions", measured.meanPositions}};
  auto at = [&](const RowWork &work) {
    return nlohmann::ordered_json{
        {"bytes", work.bytesAt(measured.meanPositions)},
        {"operations", work.operationsAt(measured.meanPositions)}};
  };
  report["exits"] = nlohmann::ordered_json::array();
  for (std::size_t e = 0; e < measured.layers.size(); ++e)
    report["exits"].push_back({{"layers", measured.layers[e]},
                               {"layers_work", at(measured.work.layers[e])},
                               {"head_work", at(measured.work.heads[e])},
                               {"fill_work", at(measured.work.fills[e])}});
  report["thresholds"] = nlohmann::ordered_json::array();
  for (const ThresholdPoint &point : measured.points)
    report["thresholds"].push_back({{"threshold", point.threshold},
                                    {"left", point.left},
                                    {"bytes", point.bytes},
                                    {"operations", point.operations},
                                    {"speed", point.speed},
                                    {"speed_lowest", point.slowest},
                                    {"speed_highest", point.fastest},
                                    {"disagreement", point.disagreement}});
  std::printf("%s\n", report.dump(2).c_str());
}

void printTable(const ExitTradeoffs &measured) {
  std::printf("%lld rows in %lld windows; without exits %.3f MB and %.3f "
              "million operations a row\n",
              static_cast<long long>(measured.rows),
              static_cast<long long>(measured.windows), measured.bytes / 1e6,
              measured.operations / 1e6);
  RowWork before;
  for (std::size_t e = 0; e < measured.layers.size(); ++e) {
    before += measured.work.layers[e];
    auto share = [&](const RowWork &work) {
      return 100 *
             shareOf(work.bytesAt(measured.meanPositions), measured.bytes);
    };
    std::printf("  exit after %lld layers: they take %.1f %% of the bytes, its "
                "head %.1f %%, its fill %.1f %%\n",
                static_cast<long long>(measured.layers[e]), share(before),
                share(measured.work.heads[e]), share(measured.work.fills[e]));
  }
  std::printf("  %-10s", "threshold");
  for (std::int64_t layers : measured.layers)
    std::printf("  left at %-3lld", static_cast<long long>(layers));
  std::printf("    bytes  operations  tokens/s [lowest, highest]  other first "
              "choice\n");
  for (const ThresholdPoint &point : measured.points) {
    std::printf("  %-10g", point.threshold);
    for (std::size_t e = 0; e < measured.layers.size(); ++e)
      std::printf("  %8.1f %%",
                  100 * shareOf(double(point.left[e]), double(measured.rows)));
    std::printf("  %5.1f %%     %5.1f %%        %5.2f [%.2f, %.2f]          "
                "%6.2f %%\n",
                100 * point.bytes, 100 * point.operations, point.speed,
                point.slowest, point.fastest, 100 * point.disagreement);
  }
}

int runMeasureExits(MeasureExitsFlags &flags) {
  Result<std::string> text = readSomeText(flags.textFile, "text to measure on");
  if (!text)
    return finish(text.status());
  flags.request.text = std::move(*text);
  bool isTerminal =
      ::isatty(STDERR_FILENO) && std::getenv("NO_COLOR") == nullptr;
  if (isTerminal)
    flags.request.progress = [](std::int64_t done, std::int64_t total) {
      std::fprintf(stderr, "\r\033[Kwindow %lld of %lld",
                   static_cast<long long>(done), static_cast<long long>(total));
      std::fflush(stderr);
    };
  Result<ExitTradeoffs> measured = measureExits(flags.request);
  if (isTerminal)
    std::fprintf(stderr, "\r\033[K");
  if (!measured)
    return finish(measured.status());
  if (flags.json)
    printJson(*measured);
  else
    printTable(*measured);
  return finish(standardOutputStatus());
}

} // namespace

Command addMeasureExitsCommand(CLI::App &app) {
  auto flags = std::make_shared<MeasureExitsFlags>();
  ExitTradeoffRequest &request = flags->request;
  request.thresholds = {0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1};
  CLI::App *command = app.add_subcommand(
      "measure-exits", "Measures what leaving an artifact early saves and "
                       "costs, by threshold, on a text");
  command->add_option("ARTIFACT", request.artifact, "Compiled with --exits")
      ->required();
  command
      ->add_option("--text", flags->textFile,
                   "Text that neither maps nor model were fitted on; - is "
                   "standard input")
      ->required();
  command
      ->add_option("--thresholds", request.thresholds,
                   "By commas, from 0 to 1 [0.1 to 1]")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(0.0, 1.0));
  command
      ->add_option("--window", request.windowTokens,
                   "Tokens that are run from an empty cache [256]")
      ->check(CLI::Range(2, 65536));
  command
      ->add_option("--prompt", request.promptTokens,
                   "Of a window, tokens that run all layers first [32]")
      ->check(CLI::Range(1, 65535));
  command
      ->add_option("--max-tokens", request.maxTokens,
                   "Tokens of the text to use [4096]")
      ->check(CLI::Range(std::int64_t(2), std::int64_t(1) << 40));
  command->add_option("--threads", request.threads, "Threads")
      ->check(CLI::Range(1u, 256u));
  command->add_flag("--json", flags->json, "Print the figures as JSON");
  return [flags] { return runMeasureExits(*flags); };
}

} // namespace ingot
