// Finds added tokens in text before the model runs: from left to right, at each
// place the longest. User text inside a rendered prompt lies in plain ranges,
// where no control token may be formed.
#pragma once

#include "runtime/support/Status.h"
#include "runtime/text/SplitRegex.h"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ingot {

struct AddedToken {
  std::string_view content; // as matched
  int32_t id = 0;
  bool special = false;
  bool lstrip = false;
  bool rstrip = false;
  bool singleWord = false;
};

// A stretch of text that is one added token, or none (id -1).
struct AddedTokenSegment {
  TextRange range;
  int32_t id;
};

// Where added tokens are barred: sorted ranges of the text that is searched.
struct PlainRanges {
  std::span<const TextRange> ranges;
  bool barAll = false; // not only the special ones, but all but blank ones
};

class AddedTokens {
public:
  // `tokens` must be sorted by content, without doubles; `wordRanges` holds the
  // first and the last of each range of word characters, for singleWord. The
  // contents and the ranges must outlive this object.
  static Result<AddedTokens> create(std::vector<AddedToken> tokens,
                                    std::span<const uint32_t> wordRanges = {});

  bool empty() const { return tokens_.empty(); }

  // Cuts `text` into segments; those without a token are never empty.
  void find(std::string_view text, const PlainRanges &plain,
            std::vector<AddedTokenSegment> &segments) const;

  const AddedToken *lookUp(std::string_view content) const;

private:
  static bool isBarred(const AddedToken &token, bool barAll);
  const AddedToken *longestAt(std::string_view text, size_t at,
                              const PlainRanges &plain) const;
  bool isWord(std::string_view text, size_t at) const;
  bool standsInWord(std::string_view text, size_t begin, size_t end) const;

  std::vector<AddedToken> tokens_;
  std::span<const uint32_t> wordRanges_;
  // Tokens that begin with byte b: [first_[b], first_[b + 1]).
  std::array<uint32_t, 257> first_{};
};

} // namespace ingot
