// The sorted list is its own trie: the tokens that share a prefix are
// neighbours, so a match narrows an interval byte by byte.
#include "runtime/text/AddedTokens.h"

#include "runtime/text/Utf8.h"

#include <algorithm>
#include <string>

namespace ingot {
namespace {

// Start of the character that ends at `end`.
size_t previousCharacter(std::string_view text, size_t end) {
  do
    --end;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80);
  return end;
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

Result<AddedTokens> AddedTokens::create(std::vector<AddedToken> tokens,
                                        std::span<const uint32_t> wordRanges) {
  AddedTokens added;
  if (wordRanges.size() % 2 != 0 ||
      !std::is_sorted(wordRanges.begin(), wordRanges.end()))
    return Status::invalid("ranges of word characters: not ascending pairs");
  added.wordRanges_ = wordRanges;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].content.empty())
      return Status::invalid("added token " + std::to_string(tokens[i].id) +
                             ": its content is empty");
    if (findInvalidUtf8(tokens[i].content) != std::string_view::npos)
      return Status::invalid("added token " + std::to_string(tokens[i].id) +
                             ": its content is not valid UTF-8");
    if (tokens[i].singleWord && wordRanges.empty())
      return Status::invalid("added token " + std::to_string(tokens[i].id) +
                             ": single_word without word characters");
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

bool AddedTokens::isWord(std::string_view text, size_t at) const {
  uint32_t c = decodeUtf8(text.substr(at));
  auto it = std::upper_bound(wordRanges_.begin(), wordRanges_.end(), c);
  size_t n = static_cast<size_t>(it - wordRanges_.begin());
  return n % 2 == 1 || (n > 0 && wordRanges_[n - 1] == c);
}

bool AddedTokens::standsInWord(std::string_view text, size_t begin,
                               size_t end) const {
  return (begin > 0 && isWord(text, previousCharacter(text, begin))) ||
         (end < text.size() && isWord(text, end));
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
    if (token->singleWord && standsInWord(text, begin, end))
      continue;
    if (token->lstrip)
      while (begin > open) {
        size_t previous = previousCharacter(text, begin);
        if (!isWhiteSpace(decodeUtf8(text.substr(previous))))
          break;
        begin = previous;
      }
    if (token->rstrip)
      while (end < text.size() && isWhiteSpace(decodeUtf8(text.substr(end))))
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
