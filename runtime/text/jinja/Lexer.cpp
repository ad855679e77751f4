// See Lexer.h.
#include "runtime/text/jinja/Lexer.h"

#include "runtime/text/jinja/Unicode.h"
#include "runtime/text/jinja/Value.h"

#include <algorithm>

namespace ingot::jinja {

std::string normalizeSource(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n')
      ++i;
  }
  if (!out.empty() && out.back() == '\n')
    out.pop_back();
  return out;
}

Position positionOf(std::string_view source, uint32_t offset) {
  std::string_view before =
      source.substr(0, std::min<size_t>(offset, source.size()));
  Position position;
  position.line += std::count(before.begin(), before.end(), '\n');
  size_t start = before.rfind('\n');
  start = start == std::string_view::npos ? 0 : start + 1;
  position.column += countCodePoints(before.substr(start));
  return position;
}

std::string located(std::string_view source, uint32_t offset,
                    const std::string &message) {
  Position at = positionOf(source, offset);
  return "chat template: line " + std::to_string(at.line) + ", column " +
         std::to_string(at.column) + ": " + message;
}

namespace {

bool isDigitChar(char c) { return c >= '0' && c <= '9'; }

class Lexer {
public:
  explicit Lexer(std::string_view source) : source_(source) {}
  std::vector<Token> run();
  size_t pos() const { return pos_; }

private:
  std::string_view rest() const { return source_.substr(pos_); }
  bool at(std::string_view text) const {
    return source_.compare(pos_, text.size(), text) == 0;
  }
  size_t skipSpace(size_t pos) const;
  [[noreturn]] void failAt(size_t pos, std::string message) {
    pos_ = pos;
    fail(std::move(message));
  }
  void push(TokenKind kind, size_t offset, std::string text = "") {
    tokens_.push_back({kind, static_cast<uint32_t>(offset), std::move(text)});
  }
  // Ends a match at `end`: whether a line starts there decides about lstrip.
  void moveTo(size_t end) {
    lineStarting_ = end > pos_ && source_[end - 1] == '\n';
    pos_ = end;
  }
  void pushData(size_t begin, size_t end, char sign, bool variable);
  void root();
  void comment(size_t begin);
  void raw(size_t begin);
  bool matchRaw(size_t tag, size_t &end) const;
  bool matchEndRaw(size_t tag, char &sign, size_t &end) const;
  bool matchTagEnd(bool variable, size_t &end) const;
  void expression(bool variable);
  bool number();
  void name();
  void quotedString();
  void op();

  std::string_view source_;
  size_t pos_ = 0;
  bool lineStarting_ = true;
  std::vector<Token> tokens_;
  std::vector<char> brackets_;
};

size_t Lexer::skipSpace(size_t pos) const {
  while (pos < source_.size()) {
    size_t next = pos;
    if (!isSpace(nextCodePoint(source_, next)))
      break;
    pos = next;
  }
  return pos;
}

bool allSpace(std::string_view text) {
  for (size_t i = 0; i < text.size();)
    if (!isSpace(nextCodePoint(text, i)))
      return false;
  return true;
}

std::string_view rstrip(std::string_view text) {
  while (!text.empty()) {
    size_t start = text.size() - 1;
    while (start > 0 &&
           (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80)
      --start;
    size_t pos = start;
    if (!isSpace(nextCodePoint(text, pos)))
      break;
    text = text.substr(0, start);
  }
  return text;
}

void Lexer::pushData(size_t begin, size_t end, char sign, bool variable) {
  std::string_view text = source_.substr(begin, end - begin);
  if (sign == '-') {
    text = rstrip(text);
  } else if (sign != '+' && !variable) {
    size_t line = text.rfind('\n');
    line = line == std::string_view::npos ? 0 : line + 1;
    if ((line > 0 || lineStarting_) && allSpace(text.substr(line)))
      text = text.substr(0, line);
  }
  if (!text.empty())
    push(TokenKind::Data, begin, std::string(text));
}

// {%- raw -%}, from the tag's first byte.
bool Lexer::matchRaw(size_t tag, size_t &end) const {
  size_t p = tag + 2;
  if (p < source_.size() && (source_[p] == '-' || source_[p] == '+'))
    ++p;
  p = skipSpace(p);
  if (source_.compare(p, 3, "raw") != 0)
    return false;
  p = skipSpace(p + 3);
  if (source_.compare(p, 3, "-%}") == 0)
    end = skipSpace(p + 3);
  else if (source_.compare(p, 2, "%}") == 0)
    end = p + 2;
  else
    return false;
  return true;
}

bool Lexer::matchEndRaw(size_t tag, char &sign, size_t &end) const {
  size_t p = tag + 2;
  sign = 0;
  if (p < source_.size() && (source_[p] == '-' || source_[p] == '+'))
    sign = source_[p++];
  p = skipSpace(p);
  if (source_.compare(p, 6, "endraw") != 0)
    return false;
  p = skipSpace(p + 6);
  if (source_.compare(p, 3, "+%}") == 0)
    end = p + 3;
  else if (source_.compare(p, 3, "-%}") == 0)
    end = skipSpace(p + 3);
  else if (source_.compare(p, 2, "%}") == 0)
    end = p + 2 + (source_.compare(p + 2, 1, "\n") == 0);
  else
    return false;
  return true;
}

void Lexer::raw(size_t begin) {
  size_t start = pos_;
  for (size_t tag = source_.find("{%", start); tag != std::string_view::npos;
       tag = source_.find("{%", tag + 1)) {
    char sign;
    size_t end;
    if (!matchEndRaw(tag, sign, end))
      continue;
    pushData(start, tag, sign, false);
    moveTo(end);
    return;
  }
  failAt(begin, "Missing end of raw directive");
}

void Lexer::comment(size_t begin) {
  for (size_t p = pos_; p + 1 < source_.size(); ++p) {
    if (source_.compare(p, 3, "+#}") == 0)
      return moveTo(p + 3);
    if (source_.compare(p, 3, "-#}") == 0)
      return moveTo(skipSpace(p + 3));
    if (source_.compare(p, 2, "#}") == 0)
      return moveTo(p + 2 + (source_.compare(p + 2, 1, "\n") == 0));
  }
  failAt(begin, "Missing end of comment tag");
}

void Lexer::root() {
  size_t begin = pos_;
  size_t tag = begin;
  for (;; ++tag) {
    tag = source_.find('{', tag);
    if (tag == std::string_view::npos || tag + 1 >= source_.size()) {
      push(TokenKind::Data, begin, std::string(source_.substr(begin)));
      pos_ = source_.size();
      return;
    }
    char c = source_[tag + 1];
    if (c == '%' || c == '{' || c == '#')
      break;
  }
  char kind = source_[tag + 1];
  size_t after = tag + 2;
  char sign = 0;
  if (after < source_.size() &&
      (source_[after] == '-' || source_[after] == '+'))
    sign = source_[after++];
  pushData(begin, tag, sign, kind == '{');
  size_t rawEnd;
  if (kind == '%' && matchRaw(tag, rawEnd)) {
    moveTo(rawEnd);
    raw(tag);
  } else if (kind == '#') {
    moveTo(after);
    comment(tag);
  } else {
    moveTo(after);
    push(kind == '{' ? TokenKind::VariableBegin : TokenKind::BlockBegin, tag);
    expression(kind == '{');
  }
}

bool Lexer::matchTagEnd(bool variable, size_t &end) const {
  if (variable) {
    if (at("-}}"))
      end = skipSpace(pos_ + 3);
    else if (at("}}"))
      end = pos_ + 2;
    else
      return false;
    return true;
  }
  if (at("+%}"))
    end = pos_ + 3;
  else if (at("-%}"))
    end = skipSpace(pos_ + 3);
  else if (at("%}"))
    end = pos_ + 2 + (source_.compare(pos_ + 2, 1, "\n") == 0);
  else
    return false;
  return true;
}

void Lexer::expression(bool variable) {
  brackets_.clear();
  while (pos_ < source_.size()) {
    size_t end;
    if (brackets_.empty() && matchTagEnd(variable, end)) {
      push(variable ? TokenKind::VariableEnd : TokenKind::BlockEnd, pos_);
      return moveTo(end);
    }
    if (end = skipSpace(pos_); end != pos_) {
      pos_ = end;
      continue;
    }
    if (number())
      continue;
    char c = source_[pos_];
    if (c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
        static_cast<unsigned char>(c) >= 0x80)
      name();
    else if (c == '\'' || c == '"')
      quotedString();
    else
      op();
  }
}

// Digits with single underscores between them; returns the end or `pos`.
size_t digits(std::string_view s, size_t pos) {
  if (pos >= s.size() || !isDigitChar(s[pos]))
    return pos;
  while (pos < s.size()) {
    if (isDigitChar(s[pos]))
      ++pos;
    else if (s[pos] == '_' && pos + 1 < s.size() && isDigitChar(s[pos + 1]))
      ++pos;
    else
      break;
  }
  return pos;
}

bool Lexer::number() {
  if (!isDigitChar(source_[pos_]))
    return false;
  auto emit = [&](TokenKind kind, size_t end) {
    std::string text(source_.substr(pos_, end - pos_));
    text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
    push(kind, pos_, std::move(text));
    pos_ = end;
    return true;
  };
  auto exponent = [&](size_t p) {
    if (p >= source_.size() || (source_[p] != 'e' && source_[p] != 'E'))
      return p;
    size_t q = p + 1;
    if (q < source_.size() && (source_[q] == '+' || source_[q] == '-'))
      ++q;
    size_t end = digits(source_, q);
    return end == q ? p : end;
  };
  size_t whole = digits(source_, pos_);
  bool afterDot = pos_ > 0 && source_[pos_ - 1] == '.';
  if (!afterDot) {
    size_t fraction = whole;
    if (source_.compare(whole, 1, ".") == 0) {
      fraction = digits(source_, whole + 1);
      if (fraction == whole + 1)
        fraction = whole;
    }
    size_t end = exponent(fraction);
    if (end != whole)
      return emit(TokenKind::Float, end);
  }
  if (source_[pos_] == '0') {
    char kind = pos_ + 1 < source_.size() ? source_[pos_ + 1] | 0x20 : 0;
    auto valid = [&](char c) {
      return kind == 'b' ? c == '0' || c == '1'
             : kind == 'o'
                 ? c >= '0' && c <= '7'
                 : isDigitChar(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
    };
    if (kind == 'b' || kind == 'o' || kind == 'x') {
      size_t p = pos_ + 2;
      size_t end = pos_;
      while (p < source_.size()) {
        if (source_[p] == '_' && p + 1 < source_.size() &&
            valid(source_[p + 1]))
          ++p;
        if (!valid(source_[p]))
          break;
        end = ++p;
      }
      if (end != pos_)
        return emit(TokenKind::Integer, end);
    }
    // 0(_?0)*
    size_t p = pos_ + 1;
    while (p < source_.size() &&
           (source_[p] == '0' ||
            (source_[p] == '_' && source_.compare(p + 1, 1, "0") == 0)))
      ++p;
    return emit(TokenKind::Integer, p);
  }
  return emit(TokenKind::Integer, whole);
}

void Lexer::name() {
  size_t p = pos_;
  while (p < source_.size()) {
    size_t next = p;
    char32_t c = nextCodePoint(source_, next);
    if (c != '_' && !isAlpha(c) && !isDecimal(c) && !isNumeric(c))
      break;
    p = next;
  }
  if (p == pos_)
    return op();
  push(TokenKind::Name, pos_, std::string(source_.substr(pos_, p - pos_)));
  pos_ = p;
}

void Lexer::quotedString() {
  size_t begin = pos_;
  char quote = source_[pos_];
  std::string out;
  size_t p = pos_ + 1;
  auto hex = [&](int count, char escape) {
    char32_t code = 0;
    for (int i = 0; i < count; ++i, ++p) {
      char c = p < source_.size() ? source_[p] : 0;
      int digit = isDigitChar(c) ? c - '0'
                  : (c | 0x20) >= 'a' && (c | 0x20) <= 'f'
                      ? (c | 0x20) - 'a' + 10
                      : -1;
      if (digit < 0)
        failAt(begin, std::string("truncated \\") + escape +
                          " escape in a string: expected " +
                          std::to_string(count) + " hexadecimal digits");
      code = code * 16 + digit;
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
      failAt(begin, std::string("the \\") + escape +
                        " escape in a string is not a character");
    appendUtf8(out, code);
  };
  for (;;) {
    if (p >= source_.size())
      failAt(begin, std::string("unexpected char ") +
                        quoted(std::string(1, quote)) +
                        ": the string has no end");
    char c = source_[p++];
    if (c == quote)
      break;
    if (c != '\\') {
      out += c;
      continue;
    }
    if (p >= source_.size())
      continue; // the next turn reports the missing end
    char e = source_[p++];
    switch (e) {
    case '\n':
      break;
    case '\\':
    case '\'':
    case '"':
      out += e;
      break;
    case 'a':
      out += '\a';
      break;
    case 'b':
      out += '\b';
      break;
    case 'f':
      out += '\f';
      break;
    case 'n':
      out += '\n';
      break;
    case 'r':
      out += '\r';
      break;
    case 't':
      out += '\t';
      break;
    case 'v':
      out += '\v';
      break;
    case 'x':
      hex(2, 'x');
      break;
    case 'u':
      hex(4, 'u');
      break;
    case 'U':
      hex(8, 'U');
      break;
    case 'N':
      failAt(begin, "\\N{...} escapes in strings are not supported");
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7': {
      char32_t code = e - '0';
      for (int i = 0; i < 2 && p < source_.size() && source_[p] >= '0' &&
                      source_[p] <= '7';
           ++i)
        code = code * 8 + (source_[p++] - '0');
      appendUtf8(out, code);
      break;
    }
    default: // Python keeps what it does not know
      out += '\\';
      out += e;
    }
  }
  push(TokenKind::String, begin, std::move(out));
  pos_ = p;
}

void Lexer::op() {
  static constexpr std::string_view two[] = {
      "//", "**", "==", "!=", ">=", "<="};
  static constexpr std::string_view one = "+-/*%~[](){}><=.:|,;";
  std::string_view found;
  for (std::string_view candidate : two)
    if (at(candidate))
      found = candidate;
  if (found.empty() && one.find(source_[pos_]) != std::string_view::npos)
    found = rest().substr(0, 1);
  if (found.empty()) {
    size_t end = pos_;
    nextCodePoint(source_, end);
    fail("unexpected char " + quoted(source_.substr(pos_, end - pos_)));
  }
  char c = found[0];
  if (found.size() == 1) {
    if (c == '(' || c == '[' || c == '{')
      brackets_.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    if (c == ')' || c == ']' || c == '}') {
      if (brackets_.empty())
        fail("unexpected " + quoted(found));
      if (brackets_.back() != c)
        fail("unexpected " + quoted(found) + ", expected " +
             quoted(std::string(1, brackets_.back())));
      brackets_.pop_back();
    }
  }
  push(TokenKind::Operator, pos_, std::string(found));
  pos_ += found.size();
}

std::vector<Token> Lexer::run() {
  while (pos_ < source_.size())
    root();
  push(TokenKind::End, source_.size());
  return std::move(tokens_);
}

} // namespace

Result<std::vector<Token>> tokenize(std::string_view source) {
  Lexer lexer(source);
  try {
    return lexer.run();
  } catch (const Failure &failure) {
    return Status(failure.code, located(source, lexer.pos(), failure.message));
  }
}

} // namespace ingot::jinja
