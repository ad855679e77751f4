// The sorted list is its own trie: the tokens that share a prefix are
// neighbours, so a match narrows an interval byte by byte.
#include "runtime/text/AddedTokens.h"

#include "runtime/text/Utf8.h"

#include <utf8proc.h>

#include <algorithm>
#include <string>

namespace ingot {
namespace {

bool isSpace(uint32_t c) {
  return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

// \w of Unicode: letters, marks, decimal digits, letter numbers, connectors.
bool isWord(uint32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
  case UTF8PROC_CATEGORY_LU:
  case UTF8PROC_CATEGORY_LL:
  case UTF8PROC_CATEGORY_LT:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_LO:
  case UTF8PROC_CATEGORY_MN:
  case UTF8PROC_CATEGORY_MC:
  case UTF8PROC_CATEGORY_ME:
  case UTF8PROC_CATEGORY_ND:
  case UTF8PROC_CATEGORY_NL:
  case UTF8PROC_CATEGORY_PC:
    return true;
  default:
    return c == 0x200C || c == 0x200D; // joiners
  }
}

// Start of the character that ends at `end`.
size_t previousCharacter(std::string_view text, size_t end) {
  do
    --end;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80);
  return end;
}

bool endsWithWord(std::string_view text) {
  return !text.empty() &&
         isWord(decodeUtf8(text.substr(previousCharacter(text, text.size()))));
}

bool startsWithWord(std::string_view text) {
  return !text.empty() && isWord(decodeUtf8(text));
}

bool overlaps(const PlainRanges &plain, size_t begin, size_t end) {
  auto it = std::partition_point(
      plain.ranges.begin(), plain.ranges.end(),
      [&](const TextRange &range) { return range.end <= begin; });
  // Empty ranges hold no text.
  while (it != plain.ranges.end() && it->begin == it->end)
    ++it;
  return it != plain.ranges.end() && it->begin < end;
}

} // namespace

Result<AddedTokens> AddedTokens::create(std::vector<AddedToken> tokens) {
  AddedTokens added;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].content.empty())
      return Status::invalid("added token " + std::to_string(tokens[i].id) +
                             ": its content is empty");
    if (findInvalidUtf8(tokens[i].content) != std::string_view::npos)
      return Status::invalid("added token " + std::to_string(tokens[i].id) +
                             ": its content is not valid UTF-8");
    if (i && tokens[i - 1].content >= tokens[i].content)
      return Status::invalid(
          "added tokens " + std::to_string(tokens[i - 1].id) + " and " +
          std::to_string(tokens[i].id) + ": not sorted by content, or equal");
    ++added.first_[static_cast<uint8_t>(tokens[i].content[0]) + 1];
  }
  for (size_t b = 0; b < 256; ++b)
    added.first_[b + 1] += added.first_[b];
  added.tokens_ = std::move(tokens);
  return added;
}

// Runs of blanks are words that some vocabularies keep apart: no control token
// is spelled so, and a model has only ever seen them as that token.
bool AddedTokens::isBarred(const AddedToken &token, bool barAll) {
  if (token.special || !barAll)
    return token.special;
  constexpr std::string_view mark = "\u2581"; // a space, normalised
  std::string_view rest = token.content;
  while (!rest.empty())
    if (rest.starts_with(mark))
      rest.remove_prefix(mark.size());
    else if (std::string_view(" \t\r\n").find(rest.front()) !=
             std::string_view::npos)
      rest.remove_prefix(1);
    else
      return true;
  return false;
}

const AddedToken *AddedTokens::longestAt(std::string_view text, size_t at,
                                         const PlainRanges &plain) const {
  uint8_t lead = static_cast<uint8_t>(text[at]);
  const AddedToken *low = tokens_.data() + first_[lead];
  const AddedToken *high = tokens_.data() + first_[lead + 1];
  const AddedToken *best = nullptr;
  // [low, high) share text[at, at + length); a token of just that length is
  // the first of them.
  for (size_t length = 1; low < high; ++length) {
    if (low->content.size() == length) {
      if (!(isBarred(*low, plain.barAll) && overlaps(plain, at, at + length)))
        best = low;
      ++low;
    }
    if (at + length == text.size())
      break;
    auto next = static_cast<uint8_t>(text[at + length]);
    low = std::lower_bound(
        low, high, next, [&](const AddedToken &token, uint8_t byte) {
          return static_cast<uint8_t>(token.content[length]) < byte;
        });
    high = std::upper_bound(
        low, high, next, [&](uint8_t byte, const AddedToken &token) {
          return byte < static_cast<uint8_t>(token.content[length]);
        });
  }
  return best;
}

void AddedTokens::find(std::string_view text, const PlainRanges &plain,
                       std::vector<AddedTokenSegment> &segments) const {
  segments.clear();
  size_t open = 0; // start of the text not yet in a segment
  for (size_t at = 0; at < text.size();) {
    uint8_t lead = static_cast<uint8_t>(text[at]);
    if (first_[lead] == first_[lead + 1]) {
      ++at;
      continue;
    }
    const AddedToken *token = longestAt(text, at, plain);
    if (!token) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + token->content.size();
    at = end;
    if (token->singleWord && (endsWithWord(text.substr(0, begin)) ||
                              startsWithWord(text.substr(end))))
      continue;
    if (token->lstrip)
      while (begin > open) {
        size_t previous = previousCharacter(text, begin);
        if (!isSpace(decodeUtf8(text.substr(previous))))
          break;
        begin = previous;
      }
    if (token->rstrip)
      while (end < text.size() && isSpace(decodeUtf8(text.substr(end))))
        end += utf8Length(text[end]);
    if (open < begin)
      segments.push_back({{open, begin}, -1});
    segments.push_back({{begin, end}, token->id});
    open = at = end;
  }
  if (open < text.size())
    segments.push_back({{open, text.size()}, -1});
}

const AddedToken *AddedTokens::lookUp(std::string_view content) const {
  auto it = std::lower_bound(tokens_.begin(), tokens_.end(), content,
                             [](const AddedToken &token, std::string_view s) {
                               return token.content < s;
                             });
  return it != tokens_.end() && it->content == content ? &*it : nullptr;
}

} // namespace ingot
