// One compiled regular expression (PCRE2, just-in-time compiled where the
// machine allows it) and the per-thread memory that matching needs. Patterns
// come from an artifact: matching runs under PCRE2's limits and reports them.
#pragma once

#include "runtime/support/Status.h"

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace ingot {

// Bytes [begin, end) of a text.
struct TextRange {
  size_t begin = 0;
  size_t end = 0;
  bool operator==(const TextRange &) const = default;
};

// Not thread safe: one for each thread that matches.
class RegexScratch {
public:
  RegexScratch();
  ~RegexScratch();
  RegexScratch(const RegexScratch &) = delete;
  RegexScratch &operator=(const RegexScratch &) = delete;

private:
  friend class SplitRegex;
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

class SplitRegex {
public:
  static Result<SplitRegex> compile(std::string_view pattern);
  SplitRegex(SplitRegex &&) noexcept;
  SplitRegex &operator=(SplitRegex &&) noexcept;
  ~SplitRegex();

  // All matches from left to right, not overlapping; an empty match counts
  // unless it touches the end of the match before. `text` is valid UTF-8.
  Status findAll(std::string_view text, RegexScratch &scratch,
                 std::vector<TextRange> &matches) const;

private:
  struct Code;
  explicit SplitRegex(std::unique_ptr<Code> code);
  std::unique_ptr<Code> code_;
};

} // namespace ingot
