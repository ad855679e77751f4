// `ingot bench`: speeds as ratios. What a decode step must read is known from
// the plan, what the machine can read is measured in the same run.
#include "tools/ingot/Commands.h"
#include "tools/ingot/Report.h"

#include "runtime/support/Printable.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>

namespace ingot::cli {
namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<std::int32_t> randomTokens(Engine &engine, int count, int salt) {
  std::mt19937 random(static_cast<unsigned>(salt));
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  for (std::int32_t &token : tokens)
    token = std::int32_t(random() % engine.model().vocab());
  return tokens;
}

TokenRequest requestOf(std::vector<std::int32_t> prompt, int generate) {
  TokenRequest request;
  request.prompt = std::move(prompt);
  request.sampling.temperature = 0;
  request.maxTokens = generate;
  request.ignoreEos = true;
  request.reusePrefix = false; // every round computes its prompt
  return request;
}

// Seconds of one prompt until its first token; the best of a few.
Result<double> prefillSeconds(Engine &engine, int length) {
  double best = 0;
  for (int round = 0; round < 3; ++round) {
    auto id = engine.core().submit(
        requestOf(randomTokens(engine, length, round), 1), {});
    if (!id)
      return id.status();
    auto start = Clock::now();
    INGOT_RETURN_IF_ERROR(engine.runUntilIdle());
    double taken = secondsSince(start);
    best = round == 0 ? taken : std::min(best, taken);
  }
  return best;
}

struct DecodeSpeed {
  double tokensPerSecond = 0;
  double stepsPerSecond = 0;
};

Result<DecodeSpeed> decodeSpeed(Engine &engine, int batch, int promptLength,
                                int generate) {
  for (int i = 0; i < batch; ++i) {
    auto id = engine.core().submit(
        requestOf(randomTokens(engine, promptLength, i), generate), {});
    if (!id)
      return id.status();
  }
  auto before = engine.core().counters();
  std::uint64_t promptRows = std::uint64_t(batch) * std::uint64_t(promptLength);
  while (engine.core().counters().promptRows - before.promptRows < promptRows)
    INGOT_RETURN_IF_ERROR(engine.step());
  auto middle = engine.core().counters();
  auto start = Clock::now();
  INGOT_RETURN_IF_ERROR(engine.runUntilIdle());
  double taken = secondsSince(start);
  auto after = engine.core().counters();
  DecodeSpeed speed;
  speed.tokensPerSecond = double(after.decodeRows - middle.decodeRows) / taken;
  speed.stepsPerSecond = double(after.steps - middle.steps) / taken;
  return speed;
}

} // namespace

Status bench(const BenchFlags &flags) {
  if (flags.prompts.empty() || flags.batches.empty())
    return Status::invalid("--prompt and --batch need at least one number");
  EngineOptions options = flags.model.engineOptions();
  int longest = *std::max_element(flags.prompts.begin(), flags.prompts.end());
  int shortest = *std::min_element(flags.prompts.begin(), flags.prompts.end());
  int widest = *std::max_element(flags.batches.begin(), flags.batches.end());
  std::int64_t context = std::max(std::int64_t(longest) + 1,
                                  std::int64_t(shortest) + flags.generate);
  if (context > INT32_MAX)
    return Status::invalid("--prompt and --generate need a context of " +
                           std::to_string(context) + " tokens");
  options.context = std::int32_t(context);
  options.sequences = widest;
  options.stallFactor = 0; // prompts first, whole

  // From nothing to the first token of a one-token prompt.
  auto start = Clock::now();
  INGOT_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                         Engine::open(flags.model.path, options));
  if (auto id =
          engine->core().submit(requestOf(randomTokens(*engine, 1, 0), 1), {});
      !id)
    return id.status();
  INGOT_RETURN_IF_ERROR(engine->runUntilIdle());
  double firstToken = secondsSince(start);

  INGOT_ASSIGN_OR_RETURN(double bandwidth, engine->measureBandwidth());
  double stepBytes = engine->executor().weightBytesPerStep();
  double passBytes = double(engine->artifact().plan().weights_bytes());
  nlohmann::ordered_json report = {
      {"model", flags.model.path},
      {"level", engine->level()},
      {"threads", engine->numThreads()},
      {"start_to_first_token_seconds", firstToken},
      {"open_seconds", engine->openTimes().openSeconds},
      {"memory_seconds", engine->openTimes().memorySeconds},
      {"bandwidth_bytes_per_second", bandwidth},
      {"weight_bytes_per_step", stepBytes},
      {"weight_bytes_total", passBytes},
      {"step_bytes_of_one_pass", stepBytes / passBytes}};
  std::string text = format(
      "%s; start to first token %.1f ms\n"
      "memory reads at %.1f GB/s; a step reads %s of weights, %.3f of one "
      "pass\n",
      printable(engine->placement()).c_str(), firstToken * 1e3, bandwidth / 1e9,
      bytesText(stepBytes).c_str(), stepBytes / passBytes);

  auto prefill = nlohmann::ordered_json::array();
  for (int length : flags.prompts) {
    INGOT_ASSIGN_OR_RETURN(double taken, prefillSeconds(*engine, length));
    prefill.push_back({{"tokens", length},
                       {"seconds", taken},
                       {"tokens_per_second", length / taken}});
    text +=
        format("prefill %5d tokens  %9.1f tokens/s\n", length, length / taken);
  }
  report["prefill"] = prefill;
  auto decode = nlohmann::ordered_json::array();
  for (int batch : flags.batches) {
    INGOT_ASSIGN_OR_RETURN(
        DecodeSpeed speed,
        decodeSpeed(*engine, batch, shortest, flags.generate));
    double share = speed.stepsPerSecond * stepBytes / bandwidth;
    decode.push_back({{"batch", batch},
                      {"prompt", shortest},
                      {"generate", flags.generate},
                      {"tokens_per_second", speed.tokensPerSecond},
                      {"steps_per_second", speed.stepsPerSecond},
                      {"share_of_bandwidth", share}});
    text +=
        format("decode  batch %3d     %9.1f tokens/s  weights at %.0f %% of "
               "the memory's speed\n",
               batch, speed.tokensPerSecond, share * 100);
  }
  report["decode"] = decode;
  if (flags.json)
    std::printf("%s\n", jsonText(report).c_str());
  else
    std::printf("%s", text.c_str());
  return Status::ok();
}

} // namespace ingot::cli
