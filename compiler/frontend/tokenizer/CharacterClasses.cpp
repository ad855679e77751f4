#include "compiler/frontend/tokenizer/CharacterClasses.h"

#include "runtime/text/Utf8.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <span>

namespace ingot {
namespace {

struct LowercaseRun {
  uint32_t first;
  uint32_t last;
  uint32_t step;
  int32_t delta;
};
struct NamedRange {
  uint32_t first;
  uint32_t last;
  const char *name;
};

#include "compiler/frontend/tokenizer/CharacterClasses.inc"

constexpr uint32_t LastCharacter = 0x10FFFF;

// By utf8proc's numbers.
constexpr const char *CategoryNames[] = {
    "Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd",
    "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm",
    "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};

bool isCategory(std::string_view name) {
  return std::any_of(std::begin(CategoryNames), std::end(CategoryNames),
                     [&](std::string_view one) {
                       return one == name ||
                              (name.size() == 1 && one[0] == name[0]);
                     });
}

// The characters that PCRE2 knows, by category.
const std::array<std::vector<CharacterRange>, std::size(CategoryNames)> &
knownCategories() {
  static const auto table = [] {
    std::array<std::vector<CharacterRange>, std::size(CategoryNames)> out;
    for (uint32_t c = 0; c <= LastCharacter; ++c) {
      if (c >= 0xD800 && c <= 0xDFFF)
        continue;
      auto category = static_cast<size_t>(
          utf8proc_category(static_cast<utf8proc_int32_t>(c)));
      auto &ranges = out[category];
      if (!ranges.empty() && ranges.back().last + 1 == c)
        ranges.back().last = c;
      else
        ranges.push_back({c, c});
    }
    return out;
  }();
  return table;
}

} // namespace

CharacterSet::CharacterSet(std::vector<CharacterRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const CharacterRange &a, const CharacterRange &b) {
              return a.first < b.first;
            });
  for (const CharacterRange &range : ranges)
    if (!ranges_.empty() && range.first <= ranges_.back().last + 1)
      ranges_.back().last = std::max(ranges_.back().last, range.last);
    else
      ranges_.push_back(range);
}

bool CharacterSet::contains(uint32_t character) const {
  auto it = std::upper_bound(
      ranges_.begin(), ranges_.end(), character,
      [](uint32_t c, const CharacterRange &range) { return c < range.first; });
  return it != ranges_.begin() && character <= std::prev(it)->last;
}

CharacterSet CharacterSet::unite(const CharacterSet &other) const {
  std::vector<CharacterRange> all = ranges_;
  all.insert(all.end(), other.ranges_.begin(), other.ranges_.end());
  return CharacterSet(std::move(all));
}

CharacterSet CharacterSet::complement() const {
  CharacterSet out;
  uint32_t next = 0;
  for (const CharacterRange &range : ranges_) {
    if (range.first > next)
      out.ranges_.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= LastCharacter)
    out.ranges_.push_back({next, LastCharacter});
  return out;
}

CharacterSet CharacterSet::intersect(const CharacterSet &other) const {
  return complement().unite(other.complement()).complement();
}

std::vector<uint32_t> CharacterSet::bounds() const {
  std::vector<uint32_t> out;
  for (const CharacterRange &range : ranges_) {
    out.push_back(range.first);
    out.push_back(range.last);
  }
  return out;
}

const CharacterSet &charactersOf(CharacterClass what) {
  static const auto sets = [] {
    auto set = [](std::span<const CharacterRange> ranges) {
      return CharacterSet({ranges.begin(), ranges.end()});
    };
    CharacterSet removed = set(BertRemoved).unite(CharacterSet({{0, 0}}));
    return std::vector<CharacterSet>{removed,
                                     set(BertSpaces),
                                     set(BertChinese),
                                     set(BertMarks),
                                     set(Accents),
                                     set(NmtRemoved),
                                     set(NmtSpaces),
                                     set(Punctuation),
                                     set(Numeric),
                                     set(WordCharacters),
                                     set(Spaces),
                                     set(RegexWordCharacters),
                                     set(NormalizationApart)};
  }();
  return sets[static_cast<size_t>(what)];
}

const std::map<uint32_t, std::string> &lowercaseMap() {
  static const auto map = [] {
    std::map<uint32_t, std::string> out;
    for (const LowercaseRun &run : LowercaseRuns)
      for (uint32_t c = run.first; c <= run.last; c += run.step)
        appendUtf8(out[c],
                   static_cast<uint32_t>(static_cast<int64_t>(c) + run.delta));
    out[0x130] = "i\xCC\x87";
    return out;
  }();
  return map;
}

const std::vector<ScriptRange> &unicodeScripts() {
  static const std::vector<ScriptRange> table(std::begin(UnicodeScripts),
                                              std::end(UnicodeScripts));
  return table;
}

std::optional<CharacterSet> categoryCharacters(std::string_view name) {
  if (!isCategory(name) || name == "C" || name == "Cn" || name == "Cs")
    return std::nullopt;
  std::vector<CharacterRange> all;
  // A character that utf8proc knows and PCRE2 does not is in both tables, under
  // the same category.
  for (size_t i = 0; i < std::size(CategoryNames); ++i)
    if (std::string_view(CategoryNames[i]).starts_with(name))
      all.insert(all.end(), knownCategories()[i].begin(),
                 knownCategories()[i].end());
  std::vector<CharacterRange> lost;
  for (const NamedRange &range : MovedCategories)
    if (!std::string_view(range.name).starts_with(name))
      lost.push_back({range.first, range.last});
  return CharacterSet(std::move(all))
      .intersect(CharacterSet(std::move(lost)).complement())
      .unite(*newerCharacters(name));
}

bool hasLostCharacters(std::string_view category) {
  for (const NamedRange &range : MovedCategories)
    if (!std::string_view(range.name).starts_with(category) &&
        category == CategoryNames[utf8proc_category(
                        static_cast<utf8proc_int32_t>(range.first))])
      return true;
  return false;
}

std::optional<CharacterSet> newerCharacters(std::string_view name) {
  std::vector<CharacterRange> out;
  bool known = isCategory(name) && name != "C" && name != "Cn" && name != "Cs";
  if (known) {
    for (std::span<const NamedRange> table :
         {std::span<const NamedRange>(NewCategories),
          std::span<const NamedRange>(MovedCategories)})
      for (const NamedRange &range : table)
        if (std::string_view(range.name).starts_with(name))
          out.push_back({range.first, range.last});
    return CharacterSet(std::move(out));
  }
  // Scripts are written in several ways: Old_Italic, OldItalic, old italic.
  auto plain = [](std::string_view text) {
    std::string kept;
    for (char c : text)
      if (c != '_' && c != ' ' && c != '-')
        kept.push_back(static_cast<char>(c | 0x20));
    return kept;
  };
  for (const char *script : ScriptNames)
    known |= plain(script) == plain(name);
  if (!known)
    return std::nullopt;
  for (const NamedRange &range : NewScripts)
    if (plain(range.name) == plain(name))
      out.push_back({range.first, range.last});
  return CharacterSet(std::move(out));
}

} // namespace ingot
