// Which characters the parts of a Hugging Face tokenizer hold for spaces, marks,
// punctuation and so on. Each part brings its own Unicode version: the tables are
// asked of the library (GenerateCharacterClasses.py), and whatever a tokenizer
// needs of them is compiled into its own tables.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

struct CharacterRange {
  uint32_t first;
  uint32_t last;
  bool operator==(const CharacterRange &) const = default;
};

// A set of characters: ranges, ascending, apart.
class CharacterSet {
public:
  CharacterSet() = default;
  explicit CharacterSet(std::vector<CharacterRange> ranges); // in any order

  const std::vector<CharacterRange> &ranges() const { return ranges_; }
  bool contains(uint32_t character) const;
  bool empty() const { return ranges_.empty(); }

  CharacterSet unite(const CharacterSet &other) const;
  CharacterSet intersect(const CharacterSet &other) const;
  CharacterSet complement() const;

  // First and last of each range.
  std::vector<uint32_t> bounds() const;

private:
  std::vector<CharacterRange> ranges_;
};

enum class CharacterClass {
  BertRemoved,
  BertSpaces,
  BertChinese,
  BertMarks,
  Accents,
  NmtRemoved,
  NmtSpaces,
  Punctuation,
  Numeric,
  WordCharacters,
  Spaces,
  RegexWordCharacters,
  NormalizationApart,
};
const CharacterSet &charactersOf(CharacterClass what);

// char::to_lowercase, where it changes something.
const std::map<uint32_t, std::string> &lowercaseMap();

// The scripts of the pre-tokenizer UnicodeScripts, numbered from 1.
struct ScriptRange {
  uint32_t first;
  uint32_t last;
  uint16_t script;
};
const std::vector<ScriptRange> &unicodeScripts();

// The characters of a general category ("Lu") or a group of them ("L") as the
// regex engine of the library knows them; nothing for another name.
std::optional<CharacterSet> categoryCharacters(std::string_view name);

// Whether the category has lost characters since PCRE2's version of Unicode.
bool hasLostCharacters(std::string_view category);

// Those of a category, group or script that PCRE2 does not know yet; nothing if
// the name is neither.
std::optional<CharacterSet> newerCharacters(std::string_view name);

} // namespace ingot
