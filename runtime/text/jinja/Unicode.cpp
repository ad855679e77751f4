// See Unicode.h. The tables are made by GenerateUnicodeTables.py.
#include "runtime/text/jinja/Unicode.h"

#include <algorithm>
#include <iterator>

namespace ingot::jinja {
namespace {

struct CodeRange {
  char32_t first, last;
};
struct CaseRun {
  char32_t first, last;
  uint32_t step;
  int32_t delta;
};
struct SpecialCase {
  char32_t code;
  char32_t mapped[3];
};

#include "runtime/text/jinja/UnicodeTables.inc"

template <size_t N> bool inRanges(const CodeRange (&ranges)[N], char32_t code) {
  auto it = std::upper_bound(
      std::begin(ranges), std::end(ranges), code,
      [](char32_t c, const CodeRange &range) { return c < range.first; });
  return it != std::begin(ranges) && code <= std::prev(it)->last;
}

template <size_t R, size_t S>
void appendFrom(const CaseRun (&runs)[R], const SpecialCase (&specials)[S],
                std::string &out, char32_t code) {
  auto special = std::lower_bound(
      std::begin(specials), std::end(specials), code,
      [](const SpecialCase &s, char32_t c) { return s.code < c; });
  if (special != std::end(specials) && special->code == code) {
    for (char32_t c : special->mapped)
      if (c)
        appendUtf8(out, c);
    return;
  }
  auto run = std::upper_bound(
      std::begin(runs), std::end(runs), code,
      [](char32_t c, const CaseRun &r) { return c < r.first; });
  // Runs of step 2 may enclose the start of another: look at two.
  for (int back = 0; back < 2 && run != std::begin(runs); ++back) {
    --run;
    if (code <= run->last && (code - run->first) % run->step == 0) {
      appendUtf8(
          out, static_cast<char32_t>(static_cast<int64_t>(code) + run->delta));
      return;
    }
  }
  appendUtf8(out, code);
}

} // namespace

std::optional<size_t> findInvalidUtf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    unsigned char c = text[i];
    if (c < 0x80) {
      ++i;
      continue;
    }
    size_t length = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
    if (c < 0xC2 || c > 0xF4 || i + length > text.size())
      return i;
    for (size_t k = 1; k < length; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80)
        return i;
    unsigned char d = text[i + 1];
    if ((c == 0xE0 && d < 0xA0) || (c == 0xED && d > 0x9F) ||
        (c == 0xF0 && d < 0x90) || (c == 0xF4 && d > 0x8F))
      return i;
    i += length;
  }
  return std::nullopt;
}

char32_t nextCodePoint(std::string_view text, size_t &pos) {
  unsigned char c = text[pos++];
  if (c < 0x80)
    return c;
  int more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
  char32_t code = c & (0x3F >> more);
  while (more-- > 0 && pos < text.size())
    code = (code << 6) | (static_cast<unsigned char>(text[pos++]) & 0x3F);
  return code;
}

void appendUtf8(std::string &out, char32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

size_t countCodePoints(std::string_view text) {
  size_t count = 0;
  for (unsigned char c : text)
    count += (c & 0xC0) != 0x80;
  return count;
}

size_t byteOffset(std::string_view text, size_t index) {
  size_t i = 0;
  for (; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80 && index-- == 0)
      break;
  return i;
}

bool isSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 ||
         c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool isLineBreak(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 ||
         c == 0x2028 || c == 0x2029;
}

bool isPrintable(char32_t c) { return inRanges(printableRanges, c); }
bool isAlpha(char32_t c) { return inRanges(alphaRanges, c); }
bool isDecimal(char32_t c) { return inRanges(decimalRanges, c); }
bool isDigit(char32_t c) { return inRanges(digitRanges, c); }
bool isNumeric(char32_t c) { return inRanges(numericRanges, c); }
bool isLower(char32_t c) { return inRanges(lowerRanges, c); }
bool isUpper(char32_t c) { return inRanges(upperRanges, c); }
bool isTitle(char32_t c) { return inRanges(titleRanges, c); }
bool isCased(char32_t c) { return inRanges(casedRanges, c); }
bool isCaseIgnorable(char32_t c) { return inRanges(caseIgnorableRanges, c); }

void appendMapped(std::string &out, char32_t code, CaseMap map) {
  switch (map) {
  case CaseMap::Lower:
    return appendFrom(lowerRuns, lowerSpecials, out, code);
  case CaseMap::Upper:
    return appendFrom(upperRuns, upperSpecials, out, code);
  case CaseMap::Title:
    return appendFrom(titleRuns, titleSpecials, out, code);
  case CaseMap::Fold:
    return appendFrom(foldRuns, foldSpecials, out, code);
  }
}

} // namespace ingot::jinja
