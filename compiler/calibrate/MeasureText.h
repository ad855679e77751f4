// How far a model stands from another of the same vocabulary on a text, and how
// well it predicts it: ordinary plans of both are run on the same windows, each
// from an empty cache, and every token that follows another in its window counts.
#pragma once

#include "compiler/calibrate/WindowRunner.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ingot {

struct TextMeasure {
  std::int64_t tokens = 0; // that were predicted
  double perplexity = 0;   // exp of the mean negative log-likelihood
  // Of the divergences of this model's next-token distributions from the other's,
  // sum of p (log p - log q) in nats.
  double meanKl = 0, p99Kl = 0;
  double agreement = 0; // tokens whose first choice is the other's, of all
  std::vector<double> windowKl; // the mean of each window
  std::string planHash;         // XXH3-64 of the plan segment that ran
  std::string level;            // of the code that ran
  std::uint64_t fileBytes = 0;
  double seconds = 0;
};

class TextMeasurer {
public:
  // `reference` is an artifact; windows have at most its context. Fails where
  // the text has not two of them.
  static Result<TextMeasurer> create(const std::string &reference,
                                     const std::string &text,
                                     std::int32_t windowTokens,
                                     std::int64_t maxTokens, unsigned threads);

  // `progress` is told the windows done and of all.
  Result<TextMeasure>
  measure(const std::string &path,
          const std::function<void(std::int64_t, std::int64_t)> &progress = {});

  std::int32_t windowTokens() const { return windowTokens_; }

private:
  std::optional<WindowRunner> reference_;
  // The reference's logits of each window, kept by the first measure where all of
  // them fit kKeptLogitsBytes; later ones need not run it again.
  static constexpr std::uint64_t kKeptLogitsBytes = std::uint64_t(96) << 20;
  std::vector<std::vector<float>> kept_; // [rows, vocab]; empty: not kept
  std::vector<std::vector<std::int32_t>> windows_;
  std::int32_t windowTokens_ = 0;
  unsigned threads_ = 1;
};

// XXH3-64 of an artifact's plan segment, as 16 hexadecimal digits.
std::string planHashOf(const Artifact &artifact);

} // namespace ingot
