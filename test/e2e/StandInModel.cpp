#include "test/e2e/StandInModel.h"

#include "compiler/codegen/cuda/Nvrtc.h"
#include "compiler/driver/CompileModel.h"
#include "compiler/reference/LmExecutor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

namespace ingot::test {

std::string whyNoNvrtc() {
  auto nvrtc = codegen::Nvrtc::open();
  return nvrtc ? std::string() : nvrtc.status().message();
}

StandInScope::StandInScope(const std::string &settings) {
  if (const char *driver = std::getenv("INGOT_TEST_DRIVER")) {
    if (std::string(driver) == "system")
      ::unsetenv("INGOT_CUDA_DRIVER");
    else
      ::setenv("INGOT_CUDA_DRIVER", driver, 1);
    return;
  }
  ::setenv("INGOT_CUDA_DRIVER", INGOT_STAND_IN_DRIVER, 1);
  ::setenv("INGOT_STANDIN", settings.c_str(), 1);
}
StandInScope::~StandInScope() {
  if (std::getenv("INGOT_TEST_DRIVER"))
    return;
  ::unsetenv("INGOT_CUDA_DRIVER");
  ::unsetenv("INGOT_STANDIN");
}

EngineOptions deviceOptions(std::int32_t context, std::int32_t sequences) {
  EngineOptions options;
  // Of another driver's devices INGOT_GPU_DEVICE is the number.
  const char *number = std::getenv("INGOT_GPU_DEVICE");
  options.device = std::getenv("INGOT_TEST_DRIVER") && number
                       ? std::string("cuda:") + number
                       : "cuda";
  options.context = context;
  options.sequences = sequences;
  options.stepTokens = options.logitRows = std::min(context, 128);
  return options;
}

std::unique_ptr<Engine> openEngine(const std::string &artifact,
                                   const EngineOptions &options) {
  auto engine = Engine::open(artifact, options);
  EXPECT_TRUE(engine.isOk()) << engine.status().message();
  return engine ? std::move(engine).value() : nullptr;
}

std::vector<Logits> scoreTokens(Engine &engine,
                                const std::vector<Tokens> &inputs) {
  std::vector<Logits> results(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    ScoreRequest request;
    request.tokens = inputs[i];
    request.onLogits = [&results, i](std::int32_t,
                                     std::span<const float> logits) {
      results[i].emplace_back(logits.begin(), logits.end());
    };
    auto id = engine.core().submit(std::move(request), {});
    EXPECT_TRUE(id.isOk()) << id.status().message();
  }
  Status status = engine.runUntilIdle();
  EXPECT_TRUE(status.isOk()) << status.message();
  return results;
}

Tokens generateGreedily(Engine &engine, Tokens prompt, std::int64_t count) {
  GenerateRequest request;
  request.promptIds = std::move(prompt);
  request.sampling.temperature = 0;
  request.maxTokens = count;
  request.ignoreEos = true;
  auto result = engine.generate(std::move(request));
  EXPECT_TRUE(result.isOk()) << result.status().message();
  return result ? result->outcome.tokens : Tokens();
}

std::string modelFolder(const std::string &model) {
  return std::string(INGOT_SOURCE_DIR "/test/models/") + model;
}

Tokens randomTokens(std::size_t count, unsigned seed, std::int32_t vocab) {
  std::mt19937 random(seed);
  Tokens tokens;
  for (std::size_t i = 0; i < count; ++i)
    tokens.push_back(std::int32_t(random() % std::uint32_t(vocab)));
  return tokens;
}

Logits referenceLogits(const std::string &path, const std::string &quantize,
                       const std::string &table, const Tokens &tokens,
                       const std::string &kv, const ExpertChoices &choices) {
  mlir::MLIRContext context;
  prepareContext(context);
  CompileRequest request;
  request.modelPath = path;
  request.until = Phase::Compress;
  request.options.quantize = quantize;
  request.options.table = table;
  request.options.kv = kv;
  auto phases = phaseOptions(request.options);
  EXPECT_TRUE(phases.isOk()) << phases.status().message();
  if (!phases)
    return {};
  // The phase as it is, but for the quantisation of activations.
  std::string text = phasePipeline(Phase::Compress, *phases);
  std::size_t at = text.find(",insert-quantize");
  EXPECT_NE(at, std::string::npos) << text;
  if (at == std::string::npos)
    return {};
  text.erase(at);
  request.options.pipelines["compress"] = text;
  auto compiled = compileModel(context, request);
  EXPECT_TRUE(compiled.isOk()) << compiled.status().message();
  if (!compiled)
    return {};
  auto executor = LmExecutor::create(*compiled->module);
  EXPECT_TRUE(executor.isOk()) << executor.status().message();
  if (!executor)
    return {};
  if (!choices.layers.empty()) {
    ChoiceErrors errors;
    auto forced =
        logitsOfChoices(*executor, choices, tokens, *compiled->module, errors);
    EXPECT_TRUE(forced.isOk()) << forced.status().message();
    // Another choice only where the two experts are nearly equal.
    EXPECT_LT(errors.lead, 2 * errors.logits);
    std::printf("%s %s: logits of routers differ by %.3g; %d other choices of "
                "experts, by %.3g at most\n",
                path.c_str(), quantize.c_str(), errors.logits, errors.others,
                errors.lead);
    return forced ? *forced : Logits();
  }
  std::vector<std::int64_t> rows(tokens.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i] = std::int64_t(i);
  auto flat = executor->run(tokens, rows);
  EXPECT_TRUE(flat.isOk()) << flat.status().message();
  if (!flat)
    return {};
  Logits logits;
  std::size_t vocab = flat->size() / tokens.size();
  for (std::size_t i = 0; i < tokens.size(); ++i)
    logits.emplace_back(flat->begin() + std::ptrdiff_t(i * vocab),
                        flat->begin() + std::ptrdiff_t((i + 1) * vocab));
  return logits;
}

namespace {

// log of the sum of exp.
double logSum(std::span<const float> logits) {
  double most = *std::max_element(logits.begin(), logits.end()), sum = 0;
  for (float logit : logits)
    sum += std::exp(double(logit) - most);
  return most + std::log(sum);
}

} // namespace

double divergence(std::span<const float> truth, std::span<const float> found) {
  double p = logSum(truth), q = logSum(found), sum = 0;
  for (std::size_t i = 0; i < truth.size(); ++i)
    sum += std::exp(double(truth[i]) - p) *
           ((double(truth[i]) - p) - (double(found[i]) - q));
  return sum;
}

std::size_t firstOf(std::span<const float> logits) {
  return std::size_t(std::max_element(logits.begin(), logits.end()) -
                     logits.begin());
}

LogitsError compareLogits(const Logits &truth, const Logits &found) {
  LogitsError error;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    double kl = divergence(truth[i], found[i]);
    error.meanKl += kl / double(truth.size());
    // Kept where it is NaN.
    error.worstKl = kl <= error.worstKl ? error.worstKl : kl;
    for (std::size_t t = 0; t < truth[i].size(); ++t)
      error.largest = std::max(
          error.largest, std::fabs(double(truth[i][t]) - double(found[i][t])));
  }
  for (std::size_t i = 0; i < truth.size(); ++i) {
    std::size_t mine = firstOf(found[i]), theirs = firstOf(truth[i]);
    error.otherFirsts += mine != theirs;
    error.wrongFirsts += double(truth[i][theirs]) - double(truth[i][mine]) >=
                             2 * error.largest &&
                         mine != theirs;
  }
  return error;
}

std::string bitDifference(const Logits &a, const Logits &b) {
  if (a.size() != b.size())
    return "lengths " + std::to_string(a.size()) + " and " +
           std::to_string(b.size());
  for (std::size_t p = 0; p < a.size(); ++p)
    for (std::size_t t = 0; t < a[p].size(); ++t)
      if (std::memcmp(&a[p][t], &b[p][t], 4) != 0)
        return "position " + std::to_string(p) + ", token " +
               std::to_string(t) + ": " + std::to_string(a[p][t]) + " and " +
               std::to_string(b[p][t]);
  return {};
}

} // namespace ingot::test
