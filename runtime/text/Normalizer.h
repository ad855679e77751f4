// The normalizer of a tokenizer: a chain of steps that rewrite text before it
// is split. Used at run time on prompts and at compile time on added tokens.
#pragma once

#include "runtime/support/Status.h"
#include "runtime/text/CharacterTable.h"
#include "runtime/text/SplitRegex.h"
#include "runtime/text/Trie.h"

#include <memory>
#include <optional>
#include <span>
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
  Prepend,
  ReplaceString,
  ReplaceRegex,
  MapCharacters,
  Strip,
  Precompiled,
  SpellBytes,
  MarkSpaces,
};

enum NormalizerOption : uint32_t {
  StripLeft = 1,
  StripRight = 2,
  // Precompiled: a whole grapheme at once, by the shortest key that begins it,
  // as Hugging Face's library does; else the longest key at each place.
  WholeGraphemes = 1,
  // MarkSpaces
  DummyPrefix = 1,       // a mark before the text
  RemoveExtraSpaces = 2, // at the ends, and all but one of a run
  PrefixAtEnd = 4,       // the mark of DummyPrefix goes behind the text
  // Prepend, MarkSpaces: only where the whole input begins
  PrefixOnce = 8,
};

struct NormalizerStep {
  NormalizerKind kind;
  std::string pattern = {}; // Replace*
  std::string content = {}; // Prepend, Replace*
  uint32_t options = 0;
  CharacterTable characters = {};         // MapCharacters
  std::span<const TrieNode> trie = {};    // Precompiled
  std::vector<std::string> texts = {};    // MapCharacters, Precompiled
  std::span<const uint32_t> apart = {};   // Unicode forms
  std::shared_ptr<const void> owner = {}; // of what the views look into, if any
};

// How long rewriting may make a text of this size. Few bytes of a hostile
// tokenizer can ask for any length; the longest normal form of a character has
// eleven times its bytes.
inline size_t longestRewritten(size_t size) {
  return (size_t(1) << 20) + 64 * size;
}

class Normalizer {
public:
  static Result<Normalizer> create(std::vector<NormalizerStep> steps);

  bool isIdentity() const { return steps_.empty(); }

  // Where the text lies in the input.
  enum class Place {
    Start,     // at its start
    Later,     // behind an added token
    Continued, // it goes on from text already normalised: nothing is prepended
  };

  // Rewrites `text`, which is valid UTF-8.
  Status apply(std::string &text, RegexScratch &scratch,
               Place place = Place::Start) const;

private:
  struct Step {
    NormalizerStep what;
    std::optional<SplitRegex> regex;
  };
  static Status check(const NormalizerStep &step);

  std::vector<Step> steps_;
};

} // namespace ingot
