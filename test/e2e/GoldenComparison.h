// Whole artifacts against Hugging Face transformers. How close is close enough
// is derived here, once for the small models and for real ones.
//
// For each prompt let b = max(1e-4, 4 x the error of transformers' own float32
// run), its largest difference from the truth over all logits. Then
//   each stored logit                  differs by at most b
//   each logit that is not stored      is at most the smallest stored one + b
//   log of the sum of exp              differs by at most b (its slope in the
//                                      logits is a set of weights of sum 1)
//   a sum of all V logits with         differs by at most 6 sqrt(V) b: for signs
//   random signs                       that know nothing of the errors, more has
//                                      probability 2 exp(-18) by Hoeffding; the
//                                      sure bound V b would see far less
//   the largest logit                  is the same, unless the true lead is at
//                                      most twice the measured error
// and each token of a greedy continuation is the same, unless its stored lead is
// at most twice the sum of the measured error and that of transformers, which
// chose it in float32. After such a flip the reference's token is forced, so
// that every step is compared.
#pragma once

#include "runtime/engine/Engine.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ingot::test {

// A model that has goldens.
struct GoldenModel {
  std::string name; // of its goldens
  std::string path; // of its folder or file
  // What its goldens were made with, where that is not `path`.
  std::string source = {};
  std::size_t longest = SIZE_MAX; // tokens that are compared of a sequence
};

// In test/models.
GoldenModel smallModel(const std::string &name);

// families/NAME as a GGUF file, whose goldens are those of its folder.
GoldenModel familyGguf(const std::string &name);

// Fails with a sentence where the weights are not those of the goldens.
void expectWeights(const GoldenModel &model, const std::string &sha256);

// The logits behind each token. Empty, with a test failure, on an error.
std::vector<std::vector<float>>
scoreTokens(Engine &engine, const std::vector<std::int32_t> &tokens);

// Largest value first, then the sum: stable for any logits.
double logSumExp(const std::vector<float> &logits);

// Compiles to float32 weights and cache, runs all prompts and compares; skips
// where there are no goldens. Prints the errors and each flip.
void compareWithTransformers(const GoldenModel &model);

// The same with keys and values as int8 codes. What a cache of codes costs has no
// bound that could be derived, so the bound is one that was measured: no stored
// logit differs from the truth by more than `share` of the largest logit's size.
void compareInt8Cache(const GoldenModel &model, double share);

} // namespace ingot::test
