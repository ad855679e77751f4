// Models on the stand-in driver of test/simt, for tests of the CUDA back end: engines
// on it, the logits that they give, and the lm module's plain float32 run on the
// weights that an encoding holds, which they are held against.
#pragma once

#include "runtime/engine/Engine.h"
#include "test/e2e/ExpertChoices.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ingot::test {

using Tokens = std::vector<std::int32_t>;
using Logits = std::vector<std::vector<float>>; // [position][token id]

// Without NVRTC there is no code for CUDA: where it was looked for; empty where it is.
std::string whyNoNvrtc();

// While it lives, CUDA's driver is the stand-in, with these settings (the text of
// INGOT_STANDIN), which it takes when it is loaded. INGOT_TEST_DRIVER names another
// driver, "system" the machine's own: tools/gpu-check runs the cases of models on a
// device so.
class StandInScope {
public:
  explicit StandInScope(const std::string &settings = "");
  ~StandInScope();
  StandInScope(const StandInScope &) = delete;
  StandInScope &operator=(const StandInScope &) = delete;
};

// Options of an engine on the device.
EngineOptions deviceOptions(std::int32_t context, std::int32_t sequences = 1);

// Null, with a test failure, where it does not open.
std::unique_ptr<Engine> openEngine(const std::string &artifact,
                                   const EngineOptions &options);

// The logits behind each token of each input, which share their steps.
std::vector<Logits> scoreTokens(Engine &engine,
                                const std::vector<Tokens> &inputs);

// The most likely tokens behind `prompt`, one after another.
Tokens generateGreedily(Engine &engine, Tokens prompt, std::int64_t count);

// The folder of a model of test/models.
std::string modelFolder(const std::string &model);

// `count` token ids below `vocab`, by the seed.
Tokens randomTokens(std::size_t count, unsigned seed,
                    std::int32_t vocab = 1000);

// The logits of the model at `path` in float32, of weights as `quantize` and `table`
// and of a cache as `kv` hold them, with activations as they are; empty, with a test
// failure, where the model does not compile. A mixture of experts goes the way of
// `choices`, each of which must be within the routers' own error.
Logits referenceLogits(const std::string &path, const std::string &quantize,
                       const std::string &table, const Tokens &tokens,
                       const std::string &kv = "f16",
                       const ExpertChoices &choices = {});

// Kullback-Leibler divergence of the distributions of two rows of logits.
double divergence(std::span<const float> truth, std::span<const float> found);

// Rows of logits against those that they stand for.
struct LogitsError {
  double meanKl = 0;
  double worstKl = 0;  // NaN where a logit is not finite
  double largest = 0;  // difference of two logits
  int otherFirsts = 0; // positions with another first choice
  // Of those, how many whose lead in the truth is at least twice `largest`.
  int wrongFirsts = 0;
};
LogitsError compareLogits(const Logits &truth, const Logits &found);

std::size_t firstOf(std::span<const float> logits);

// The first place where two have other bits; empty where they are equal.
std::string bitDifference(const Logits &a, const Logits &b);

} // namespace ingot::test
