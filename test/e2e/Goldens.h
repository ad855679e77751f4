// What test/e2e/goldens holds: the results of Hugging Face transformers, bound
// by SHA-256 to the weights they were made with. goldens/README.md defines the
// format and what the numbers mean.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ingot::test {

// The logits behind the last token of a prompt, in truth (float64).
struct GoldenLogits {
  std::int32_t prompt = 0;
  std::vector<std::int32_t> ids; // of the largest logits, descending
  std::vector<double> logits;
  double logSumExp = 0;
  std::vector<double> projections;
  double maxError = 0; // of transformers' own float32 run
};

struct GoldenGreedy {
  std::int32_t prompt = 0;
  std::vector<std::int32_t> tokens;
  std::vector<double> gaps; // lead of each token over the second best
};

struct ModelGoldens {
  std::string weightsSha256;
  std::int32_t vocabulary = 0;
  std::vector<std::vector<std::int32_t>> prompts;
  std::vector<GoldenLogits> logits;
  std::vector<GoldenGreedy> greedy;
};

struct PerplexityGolden {
  std::string weightsSha256;
  std::int32_t window = 0;
  std::int32_t windows = 0;
  std::int64_t scored = 0;
  double perplexity = 0;
  std::vector<double> windowNll;
};

// NotFound where no goldens of the model have been made.
Result<ModelGoldens> readGoldens(const std::string &model);
Result<PerplexityGolden> readPerplexity(const std::string &model);

// Of all weights of a folder's *.safetensors in the order of their names, or of
// one file, in hexadecimal.
Result<std::string> weightsSha256(const std::string &path);

// +1 or -1: the sign of logit `id` in projection `projection`.
int projectionSign(std::uint64_t projection, std::uint64_t id);

} // namespace ingot::test
