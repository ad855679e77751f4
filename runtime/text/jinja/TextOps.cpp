// Operations on Texts that filters and methods share; each keeps origins.
#include "runtime/text/jinja/Runtime.h"

#include <charconv>
#include <cmath>
#include <cstring>

namespace ingot::jinja {

Text strip(const Text &text, const Text *chars, bool left, bool right) {
  std::u32string set;
  if (chars)
    for (size_t i = 0; i < chars->size();)
      set += nextCodePoint(chars->view(), i);
  auto drop = [&](char32_t c) {
    return chars ? set.find(c) != std::u32string::npos : isSpace(c);
  };
  const std::string &s = text.str();
  size_t begin = 0, end = s.size();
  while (left && begin < end) {
    size_t next = begin;
    if (!drop(nextCodePoint(s, next)))
      break;
    begin = next;
  }
  while (right && end > begin) {
    size_t start = end - 1;
    while (start > begin &&
           (static_cast<unsigned char>(s[start]) & 0xC0) == 0x80)
      --start;
    size_t next = start;
    if (!drop(nextCodePoint(s, next)))
      break;
    end = start;
  }
  return text.slice(begin, end);
}

namespace {

// Capital sigma at the end of a word becomes the final form.
bool isFinalSigma(const std::string &s, size_t begin, size_t end) {
  bool before = false;
  for (size_t i = begin; i > 0;) {
    size_t start = i - 1;
    while (start > 0 && (static_cast<unsigned char>(s[start]) & 0xC0) == 0x80)
      --start;
    size_t next = start;
    char32_t c = nextCodePoint(s, next);
    i = start;
    if (isCaseIgnorable(c))
      continue;
    before = isCased(c);
    break;
  }
  if (!before)
    return false;
  for (size_t i = end; i < s.size();) {
    char32_t c = nextCodePoint(s, i);
    if (!isCaseIgnorable(c))
      return !isCased(c);
  }
  return true;
}

void appendCase(Text &out, const Text &text, size_t begin, size_t end,
                char32_t c, CaseMap map) {
  std::string mapped;
  if (c == 0x3A3 && map == CaseMap::Lower)
    appendUtf8(mapped, isFinalSigma(text.str(), begin, end) ? 0x3C2 : 0x3C3);
  else
    appendMapped(mapped, c, map);
  out.append(mapped, text.originAt(begin));
}

} // namespace

Text mapCase(const Text &text, CaseMap map) {
  Text out;
  for (size_t i = 0; i < text.size();) {
    size_t begin = i;
    char32_t c = nextCodePoint(text.view(), i);
    appendCase(out, text, begin, i, c, map);
  }
  return out;
}

Text titleCase(const Text &text) {
  Text out;
  bool inWord = false;
  for (size_t i = 0; i < text.size();) {
    size_t begin = i;
    char32_t c = nextCodePoint(text.view(), i);
    appendCase(out, text, begin, i, c,
               inWord ? CaseMap::Lower : CaseMap::Title);
    inWord = isCased(c);
  }
  return out;
}

Text capitalize(const Text &text) {
  Text out;
  for (size_t i = 0; i < text.size();) {
    size_t begin = i;
    char32_t c = nextCodePoint(text.view(), i);
    appendCase(out, text, begin, i, c,
               begin == 0 ? CaseMap::Title : CaseMap::Lower);
  }
  return out;
}

static bool isCaseOnly(const Text &text, bool lower) {
  bool any = false;
  for (size_t i = 0; i < text.size();) {
    char32_t c = nextCodePoint(text.view(), i);
    if (isTitle(c) || (lower ? isUpper(c) : isLower(c)))
      return false;
    any |= lower ? isLower(c) : isUpper(c);
  }
  return any;
}
bool isLowerText(const Text &text) { return isCaseOnly(text, true); }
bool isUpperText(const Text &text) { return isCaseOnly(text, false); }

Text replace(Runtime &rt, const Text &text, const Text &from, const Text &to,
             Int count) {
  const std::string &s = text.str();
  rt.touch(s.size());
  Text out;
  auto grow = [&] {
    rt.touch(to.size());
    if (out.size() > rt.limits().outputBytes)
      fail("a replaced string exceeds the output limit");
  };
  size_t pos = 0;
  if (from.empty()) {
    // Between all code points, and at both ends.
    for (; count != 0; --count) {
      out.append(to);
      grow();
      if (pos == s.size())
        return out;
      size_t next = pos;
      nextCodePoint(s, next);
      out.append(text, pos, next);
      pos = next;
    }
  } else {
    for (; count != 0; --count) {
      auto *found = static_cast<const char *>(memmem(
          s.data() + pos, s.size() - pos, from.str().data(), from.size()));
      if (!found)
        break;
      size_t at = found - s.data();
      out.append(text, pos, at);
      out.append(to);
      grow();
      pos = at + from.size();
    }
  }
  out.append(text, pos, s.size());
  return out;
}

std::vector<Text> splitLines(const Text &text, bool keepEnds) {
  std::vector<Text> out;
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    size_t at = i;
    char32_t c = nextCodePoint(text.view(), i);
    if (!isLineBreak(c))
      continue;
    if (c == '\r' && i < text.size() && text.str()[i] == '\n')
      ++i;
    out.push_back(text.slice(begin, keepEnds ? i : at));
    begin = i;
  }
  if (begin < text.size())
    out.push_back(text.slice(begin, text.size()));
  return out;
}

static std::string_view stripSpace(std::string_view s) {
  auto space = [](char c) {
    return isSpace(static_cast<unsigned char>(c)) &&
           static_cast<unsigned char>(c) < 0x80;
  };
  while (!s.empty() && space(s.front()))
    s.remove_prefix(1);
  while (!s.empty() && space(s.back()))
    s.remove_suffix(1);
  return s;
}

// int(text, base); base 0 reads the prefix, as in source code.
std::optional<Int> parseInt(std::string_view text, int base) {
  text = stripSpace(text);
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  bool prefixed = false;
  if (text.size() > 1 && text[0] == '0') {
    char kind = text[1] | 0x20;
    int named = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
    if (named && (base == 0 || base == named)) {
      base = named;
      prefixed = true;
      text.remove_prefix(2);
    }
  }
  if (base == 0)
    base = 10;
  if (base < 2 || base > 36 || text.empty())
    return std::nullopt;
  Int out = 0;
  bool digitBefore = prefixed; // an underscore may follow a prefix
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '_') {
      if (!digitBefore || i + 1 == text.size())
        return std::nullopt;
      digitBefore = false;
      continue;
    }
    int digit = c >= '0' && c <= '9'                     ? c - '0'
                : (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? (c | 0x20) - 'a' + 10
                                                         : 99;
    if (digit >= base)
      return std::nullopt;
    out = out * base + digit;
    digitBefore = true;
    if (out > (Int(1) << 110))
      fail("the integer " + std::string(text.substr(0, 60)) +
           " is out of range");
  }
  return negative ? -out : out;
}

std::optional<double> parseFloat(std::string_view text) {
  text = stripSpace(text);
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_') {
      auto digit = [&](size_t k) {
        return k < text.size() && text[k] >= '0' && text[k] <= '9';
      };
      if (i == 0 || !digit(i - 1) || !digit(i + 1))
        return std::nullopt;
      continue;
    }
    plain += text[i];
  }
  std::string_view body = plain;
  bool negative = false;
  if (!body.empty() && (body[0] == '+' || body[0] == '-')) {
    negative = body[0] == '-';
    body.remove_prefix(1);
  }
  std::string lower;
  for (char c : body)
    lower += c >= 'A' && c <= 'Z' ? char(c | 0x20) : c;
  if (lower == "inf" || lower == "infinity")
    return negative ? -HUGE_VAL : HUGE_VAL;
  if (lower == "nan")
    return std::nan("");
  if (lower.empty() ||
      lower.find_first_not_of("0123456789.e+-") != std::string::npos)
    return std::nullopt;
  double out = 0;
  auto [end, error] =
      std::from_chars(lower.data(), lower.data() + lower.size(), out);
  if (end != lower.data() + lower.size())
    return std::nullopt;
  if (error == std::errc::result_out_of_range)
    out = std::strtod(lower.c_str(), nullptr); // infinity or zero, as Python
  else if (error != std::errc())
    return std::nullopt;
  return negative ? -out : out;
}

Text escapeHtml(const Text &text) {
  Text out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char *entity = nullptr;
    switch (text.str()[i]) {
    case '&':
      entity = "&amp;";
      break;
    case '<':
      entity = "&lt;";
      break;
    case '>':
      entity = "&gt;";
      break;
    case '"':
      entity = "&#34;";
      break;
    case '\'':
      entity = "&#39;";
      break;
    default:
      break;
    }
    if (entity)
      out.append(entity, text.originAt(i));
    else
      out.append(text, i, i + 1);
  }
  return out;
}

} // namespace ingot::jinja
