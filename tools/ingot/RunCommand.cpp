// `ingot run`: only generated text goes to standard output; everything about
// it goes to standard error.
#include "tools/ingot/ChatLoop.h"
#include "tools/ingot/Commands.h"
#include "tools/ingot/Report.h"
#include "tools/text/InputText.h"

#include "runtime/plan/LibraryUse.h"
#include "runtime/plan/VerifyPlan.h"
#include "runtime/support/Printable.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <numeric>
#include <string_view>
#include <unistd.h>

namespace ingot::cli {

Status readSpeculation(const std::string &text, EngineOptions &options) {
  if (text == "ngram") {
    options.speculation = Speculation::Ngram;
    return Status::ok();
  }
  constexpr std::string_view prefix = "exit:";
  const char *end = text.data() + text.size();
  if (text.rfind(prefix, 0) == 0) {
    auto [stop, error] =
        std::from_chars(text.data() + prefix.size(), end, options.exitLayers);
    if (error == std::errc() && stop == end && options.exitLayers >= 1) {
      options.speculation = Speculation::Exit;
      return Status::ok();
    }
  }
  return Status::invalid("\"" + text +
                         "\": expected ngram, or exit:N with a number of "
                         "layers");
}

Status SpeculationFlags::apply(EngineOptions &options) const {
  if (draftTokens && draft.empty() && speculate.empty())
    return Status::invalid("--draft-tokens needs --draft or --speculate");
  if (!draft.empty())
    options.speculation = Speculation::Draft;
  else if (!speculate.empty())
    INGOT_RETURN_IF_ERROR(readSpeculation(speculate, options));
  options.draft = draft;
  options.draftTokens = draftTokens.value_or(options.draftTokens);
  return Status::ok();
}

EngineOptions ModelFlags::engineOptions() const {
  EngineOptions options;
  options.device = device;
  options.level = level;
  options.threads = threads;
  options.context = context;
  options.verifyChecksums = verify;
  return options;
}

SamplingParams SamplingFlags::over(SamplingParams params) const {
  params.temperature = temperature.value_or(params.temperature);
  params.topP = topP.value_or(params.topP);
  params.minP = minP.value_or(params.minP);
  params.topK = topK.value_or(params.topK);
  params.repetitionPenalty =
      repetitionPenalty.value_or(params.repetitionPenalty);
  params.presencePenalty = presencePenalty.value_or(params.presencePenalty);
  params.frequencyPenalty = frequencyPenalty.value_or(params.frequencyPenalty);
  params.minTokens = minTokens.value_or(params.minTokens);
  if (seed)
    params.seed = seed;
  return params;
}

namespace {

void printStats(Engine &engine, const GenerateResult &result) {
  const RequestOutcome &outcome = result.outcome;
  const OpenTimes &times = engine.openTimes();
  double decode = outcome.totalSeconds - outcome.firstTokenSeconds;
  std::size_t later = outcome.tokens.empty() ? 0 : outcome.tokens.size() - 1;
  const Colour &c = errorColour();
  std::fprintf(stderr,
               "%s%s; open %.1f ms, memory %.1f ms\n"
               "prompt %d tokens, first token after %.1f ms (%.1f tokens/s)\n"
               "output %zu tokens, %.1f tokens/s; finish: %s; seed %llu%s\n",
               c.dim, printable(engine.placement()).c_str(),
               times.openSeconds * 1e3, times.memorySeconds * 1e3,
               outcome.promptTokens, outcome.firstTokenSeconds * 1e3,
               outcome.firstTokenSeconds > 0
                   ? outcome.promptTokens / outcome.firstTokenSeconds
                   : 0.0,
               outcome.tokens.size(), decode > 0 ? double(later) / decode : 0.0,
               finishReasonName(outcome.reason),
               static_cast<unsigned long long>(outcome.seed), c.off);
  EngineMetrics metrics = engine.metrics();
  if (const Speculator *speculator = engine.core().speculator()) {
    std::fprintf(stderr,
                 "%sspeculation by %s: %llu steps of the model, %llu tokens "
                 "drafted, %llu accepted",
                 c.dim, speculator->drafter().name(),
                 static_cast<unsigned long long>(metrics.steps),
                 static_cast<unsigned long long>(metrics.draftedTokens),
                 static_cast<unsigned long long>(metrics.acceptedTokens));
    if (speculator->numFailures() > 0)
      std::fprintf(stderr, ", %llu times no draft: %s",
                   static_cast<unsigned long long>(speculator->numFailures()),
                   speculator->latestFailure().message().c_str());
    std::fprintf(stderr, "%s\n", c.off);
  }
  std::uint64_t rows = std::accumulate(
      metrics.exitDepths.begin(), metrics.exitDepths.end(), std::uint64_t(0));
  for (std::size_t e = 0; rows > 0 && e + 1 < metrics.exitDepths.size(); ++e)
    std::fprintf(stderr, "%s%.1f %% of %llu rows left after %d layers%s\n",
                 c.dim, 100.0 * double(metrics.exitDepths[e]) / double(rows),
                 static_cast<unsigned long long>(rows),
                 engine.core().options().exits[e].layers, c.off);
  std::fprintf(stderr, "%s", engine.contract().describe().c_str());
  if (Engine *draft = engine.draft())
    std::fprintf(stderr, "the draft model:\n%s",
                 draft->contract().describe().c_str());
}

} // namespace

Status run(const RunFlags &flags) {
  EngineOptions options = flags.model.engineOptions();
  INGOT_RETURN_IF_ERROR(flags.speculation.apply(options));
  RunFlags input = flags;
  bool isInteractive = flags.chat && !flags.prompt;
  if (!flags.chat && !flags.prompt) {
    if (::isatty(STDIN_FILENO))
      return Status::invalid(
          "no prompt: give -p TEXT, --chat, or a prompt on standard input");
    INGOT_ASSIGN_OR_RETURN(input.prompt, readText("-"));
  }
  INGOT_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                         Engine::open(flags.model.path, options));
  if (!engine->whyNotDevice().empty())
    std::fprintf(stderr, "ingot: note: %s, for the CUDA device: %s\n",
                 printable(engine->placement()).c_str(),
                 printable(engine->whyNotDevice()).c_str());
  if (engine->cudaExecutor() &&
      libraryUseOf(*engine->artifact().target(kCudaTarget)).isUsed())
    std::fprintf(stderr, "ingot: note: %s\n",
                 printable(engine->placement()).c_str());
  double bandwidth = 0;
  if (flags.profile) {
    INGOT_ASSIGN_OR_RETURN(bandwidth, engine->measureBandwidth());
    engine->executor().setProfiling(true);
  }
  GenerateRequest request;
  request.sampling = flags.sampling.over(defaultSampling(engine->model()));
  if (request.sampling.temperature == 0 && flags.sampling.choosesAmongTokens())
    std::fprintf(stderr,
                 "ingot: note: temperature is 0%s, so the most likely "
                 "token is taken: seed, top-k, top-p and min-p change "
                 "nothing\n",
                 flags.sampling.temperature ? "" : ", the model's default");
  request.maxTokens = flags.maxTokens;
  request.stop = flags.stop;
  request.ignoreEos = flags.ignoreEos;
  request.exitThreshold = flags.exitThreshold;
  request.onText = [](std::int32_t, std::string_view piece) {
    std::string text = forStandardOutput(std::string(piece));
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    return !isInterrupted() && !std::ferror(stdout);
  };
  auto onResult = [&](const GenerateResult &result) {
    if (flags.stats)
      printStats(*engine, result);
  };
  InterruptScope interrupts;
  Status status;
  if (flags.chat) {
    ChatOptions options;
    options.system = flags.system;
    options.firstMessage = input.prompt;
    options.isInteractive = isInteractive;
    status = chatLoop(*engine, request, options, onResult);
  } else {
    request.prompt = input.prompt;
    if (!engine->tokenizer())
      return Status::unsupported(
          flags.model.path +
          ": has no tokenizer, so it takes no text; token ids go "
          "through the C API (prompt_ids of ingot.h)");
    INGOT_ASSIGN_OR_RETURN(auto ids, engine->promptIds(request));
    if (engine->tokenizer()->repeatsPrefix(ids))
      std::fprintf(stderr,
                   "ingot: note: the prompt begins with the token that the "
                   "model puts before every prompt, so it is there twice\n");
    auto result = engine->generate(std::move(request));
    if (!result)
      return result.status();
    // A terminal wants its prompt on a new line; a pipe wants the text alone.
    if (::isatty(STDOUT_FILENO))
      std::fputc('\n', stdout);
    onResult(*result);
  }
  if (flags.profile)
    std::fprintf(stderr, "memory reads at %.1f GB/s here\n%s", bandwidth / 1e9,
                 profileTable(engine->executor().profile(), bandwidth).c_str());
  return status;
}

} // namespace ingot::cli
