// The pre-tokenizer: cuts a text into the pieces that the model encodes one by
// one. Most steps only cut; some rewrite (a space put before, spaces marked),
// and then the pieces lie in a buffer of their own.
#pragma once

#include "runtime/support/Status.h"
#include "runtime/text/CharacterTable.h"
#include "runtime/text/SplitRegex.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

// Same order as in tokenizer.fbs (asserted in TokenizerTables.cpp).
enum class SplitBehavior {
  Removed,
  Isolated,
  MergedWithPrevious,
  MergedWithNext,
  Contiguous,
};
enum class PreTokenizerKind {
  Split,
  PrefixSpace,
  Metaspace,
  Classes,
  SpellBytes,
};
enum class PrependScheme { Never, First, Always };
enum class ClassKind : uint8_t { Join, Single, Drop, Neutral };

struct PreTokenizerStep {
  PreTokenizerKind kind;
  std::string pattern = {};                           // Split
  SplitBehavior behavior = SplitBehavior::Isolated;   // Split
  bool invert = false;                                // Split
  std::string replacement = {};                       // Metaspace
  PrependScheme prependScheme = PrependScheme::Never; // Metaspace
  CharacterTable characters = {};                     // Classes
  std::vector<ClassKind> classes = {};                // Classes
  std::shared_ptr<const void> owner =
      {}; // of what characters looks into, if any
};

// The pieces of one text: ranges of `text`, none empty, left to right.
struct Pieces {
  std::string_view text;
  std::vector<TextRange> ranges;

  // Kept from call to call.
  std::string buffer, nextBuffer;
  std::vector<TextRange> nextRanges, matches;
};

class PreTokenizer {
public:
  static Result<PreTokenizer> create(std::vector<PreTokenizerStep> steps);

  // `atStart` says that `text` begins where the whole input begins.
  Status split(std::string_view text, bool atStart, RegexScratch &scratch,
               Pieces &pieces) const;

private:
  struct Step {
    PreTokenizerStep what;
    std::optional<SplitRegex> regex;
  };
  static void rewrite(const PreTokenizerStep &step, bool atStart,
                      size_t longest, Pieces &pieces);

  std::vector<Step> steps_;
};

} // namespace ingot
