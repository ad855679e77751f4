// The normalizer of a tokenizer: a chain of steps that rewrite text before it
// is split. Used at run time on prompts and at compile time on added tokens.
#pragma once

#include "runtime/support/Status.h"
#include "runtime/text/SplitRegex.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

// Same order as tables::NormalizerKind (asserted in TokenizerTables.cpp).
enum class NormalizerKind {
  Nfc,
  Nfd,
  Nfkc,
  Nfkd,
  Lowercase,
  Prepend,
  ReplaceString,
  ReplaceRegex,
};

struct NormalizerStep {
  NormalizerKind kind;
  std::string pattern; // Replace*
  std::string content; // Prepend, Replace*
};

class Normalizer {
public:
  static Result<Normalizer> create(std::vector<NormalizerStep> steps);

  bool isIdentity() const { return steps_.empty(); }

  // Rewrites `text`, which is valid UTF-8. `continued` says that the text goes
  // on from text already normalised, so that nothing is prepended.
  Status apply(std::string &text, RegexScratch &scratch,
               bool continued = false) const;

private:
  struct Step {
    NormalizerStep what;
    std::optional<SplitRegex> regex;
  };
  std::vector<Step> steps_;
};

} // namespace ingot
