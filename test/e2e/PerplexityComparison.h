// How well artifacts predict a text: against Hugging Face transformers where
// weights are float32, against the float32 artifact of the same model where
// they are rounded to integers.
#pragma once

#include "test/e2e/GoldenComparison.h"

#include <string>

namespace ingot::test {

// What rounding the weights, or keys and values, to integers may cost.
struct IntegerBound {
  std::string quantize;
  double perplexity; // change, as a share of the perplexity with float32
  double meanKl;     // mean divergence from float32, in nats
  std::string kv = "f16";
};

// Scores the windows of perplexity.json: each window's sum and the perplexity
// are within 1e-4 of those of transformers, relatively. Skips where there is no
// golden.
void comparePerplexity(const GoldenModel &model, const std::string &text);

// Scores up to `maxWindows` windows of 512 tokens with float32 and with
// integers, and prints the perplexities and the mean divergence.
void compareIntegers(const GoldenModel &model, const std::string &text,
                     std::size_t maxWindows, const IntegerBound &bound);

// The whole file; empty where it is not there.
std::string readText(const std::string &path);

} // namespace ingot::test
