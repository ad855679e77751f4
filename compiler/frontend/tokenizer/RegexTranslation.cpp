// A walk over the pattern. Outside of brackets, escapes and groups are rewritten
// one by one. A bracketed class is read into parts that can be written as they
// are ("a-z", "\p{L}") and, where Oniguruma computes with sets (nested brackets,
// &&, negated escapes), into a set of characters that is written out in ranges.
#include "compiler/frontend/tokenizer/RegexTranslation.h"

#include "runtime/text/Utf8.h"

#include <cctype>
#include <cstdio>
#include <optional>

namespace ingot {
namespace {

constexpr int MaxClassDepth = 16;

const CharacterSet &spaces() { return charactersOf(CharacterClass::Spaces); }

CharacterSet single(uint32_t c) { return CharacterSet({{c, c}}); }

std::string digitsText() {
  return "0-9\\p{Nd}" + regexRanges(*newerCharacters("Nd"));
}

// \w, with all that PCRE2 can say by properties said so.
const std::string &wordCharactersText() {
  static const std::string text = [] {
    const CharacterSet &word =
        charactersOf(CharacterClass::RegexWordCharacters);
    std::string out = "A-Za-z0-9_";
    CharacterSet said;
    for (const char *name : {"L", "M", "N", "Pc"}) {
      CharacterSet known = categoryCharacters(name)->intersect(
          newerCharacters(name)->complement());
      if (!known.intersect(word.complement()).empty())
        continue;
      out += "\\p{" + std::string(name) + "}";
      said = said.unite(known);
    }
    return out + regexRanges(word.intersect(said.complement()));
  }();
  return text;
}

// In brackets Oniguruma leaves out the superscript digits and fractions of
// Latin-1, which \w alone matches.
CharacterSet wordCharactersInBrackets() {
  return charactersOf(CharacterClass::RegexWordCharacters)
      .intersect(CharacterSet({{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}})
                     .complement());
}

// What stands in a class: text to be put in brackets, and the same as a set,
// which is not there for scripts.
struct ClassPart {
  std::string text;
  std::optional<CharacterSet> set;
};

class Translator {
public:
  Translator(std::string_view pattern, RegexDialect dialect)
      : in_(pattern), dialect_(dialect) {}

  Result<std::string> run() {
    while (at_ < in_.size()) {
      char c = in_[at_];
      if (c == '\\') {
        INGOT_RETURN_IF_ERROR(escapeOutside());
      } else if (c == '[') {
        INGOT_ASSIGN_OR_RETURN(ClassPart part, bracketed(0));
        out_ += part.text;
      } else if (c == '(') {
        INGOT_RETURN_IF_ERROR(group());
      } else if (c == '{') {
        INGOT_RETURN_IF_ERROR(interval());
      } else {
        usesLines_ |= c == '^' || c == '$';
        out_.push_back(c);
        ++at_;
      }
    }
    bool lines = dialect_ == RegexDialect::Oniguruma && usesLines_;
    return (lines ? "(?m)" : "") + out_;
  }

private:
  Status invalid(const std::string &what) const {
    return Status::invalid("regex \"" + std::string(in_) + "\": " + what +
                           " at byte " + std::to_string(at_));
  }
  Status unsupported(const std::string &what) const {
    return Status::unsupported("regex \"" + std::string(in_) + "\": " + what +
                               " at byte " + std::to_string(at_));
  }
  bool isOniguruma() const { return dialect_ == RegexDialect::Oniguruma; }

  // --- groups and intervals

  Status group() {
    size_t start = at_;
    out_.push_back(in_[at_++]);
    if (at_ >= in_.size() || in_[at_] != '?')
      return Status::ok();
    std::string_view rest = in_.substr(at_ + 1);
    for (std::string_view known : {":", "=", "!", ">", "<=", "<!"})
      if (rest.starts_with(known)) {
        out_ += "?" + std::string(known);
        at_ += 1 + known.size();
        return Status::ok();
      }
    // Options: Ruby's m is a dot that matches a line's end, PCRE2's s.
    size_t end = rest.find_first_not_of("imx-");
    if (end == 0 || end == std::string_view::npos ||
        (rest[end] != ':' && rest[end] != ')')) {
      at_ = start;
      return unsupported("group " + std::string(in_.substr(start, 3)));
    }
    out_.push_back('?');
    for (char c : rest.substr(0, end))
      out_.push_back(c == 'm' && isOniguruma() ? 's' : c);
    out_.push_back(rest[end]);
    at_ += 2 + end;
    return Status::ok();
  }

  Status interval() {
    size_t end = in_.find('}', at_);
    std::string_view inside =
        end == std::string_view::npos ? "" : in_.substr(at_ + 1, end - at_ - 1);
    bool isInterval =
        !inside.empty() &&
        inside.find_first_not_of("0123456789,") == std::string_view::npos &&
        inside != ",";
    if (!isInterval) {
      out_ += "\\{";
      ++at_;
      return Status::ok();
    }
    at_ = end + 1;
    out_ += inside[0] == ',' ? "{0" + std::string(inside) + "}"
                             : "{" + std::string(inside) + "}";
    // There {1,3}+ is a repetition of a repetition, here it is possessive.
    if (isOniguruma() && at_ < in_.size() && in_[at_] == '+')
      return unsupported("a + after {" + std::string(inside) + "}");
    return Status::ok();
  }

  // --- escapes

  Result<uint32_t> hexCharacter(size_t minDigits, size_t maxDigits) {
    uint32_t value = 0;
    size_t n = 0;
    while (n < maxDigits && at_ < in_.size() &&
           std::isxdigit(static_cast<unsigned char>(in_[at_]))) {
      char c = in_[at_++];
      value = value * 16 +
              static_cast<uint32_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
      ++n;
    }
    if (n < minDigits || value > 0x10FFFF ||
        (value >= 0xD800 && value <= 0xDFFF))
      return invalid("expected a character in hexadecimal digits");
    return value;
  }

  // A single character, if the escape after the backslash at at_ is one.
  Result<std::optional<uint32_t>> characterEscape() {
    char e = in_[at_ + 1];
    constexpr std::pair<char, uint32_t> simple[] = {
        {'n', '\n'}, {'r', '\r'}, {'t', '\t'}, {'f', '\f'},
        {'v', '\v'}, {'a', '\a'}, {'e', 0x1B}};
    for (auto [name, c] : simple)
      if (e == name) {
        at_ += 2;
        return std::optional<uint32_t>(c);
      }
    if (e == 'u') {
      at_ += 2;
      INGOT_ASSIGN_OR_RETURN(uint32_t c, hexCharacter(4, 4));
      return std::optional<uint32_t>(c);
    }
    if (e == 'x') {
      at_ += 2;
      bool braces = at_ < in_.size() && in_[at_] == '{';
      at_ += braces;
      INGOT_ASSIGN_OR_RETURN(uint32_t c,
                             braces ? hexCharacter(1, 8) : hexCharacter(1, 2));
      if (braces && (at_ >= in_.size() || in_[at_++] != '}'))
        return invalid("\\x{ without }");
      if (!braces && c >= 0x80)
        return unsupported("a byte of a character");
      return std::optional<uint32_t>(c);
    }
    if (!std::isalnum(static_cast<unsigned char>(e))) {
      uint32_t c = decodeUtf8(in_.substr(at_ + 1));
      at_ += 1 + utf8Length(e);
      return std::optional<uint32_t>(c);
    }
    return std::optional<uint32_t>();
  }

  // \p{L}, \P{L}, \p{^L}, \pL; at_ is on the backslash.
  Result<ClassPart> property() {
    bool negated = in_[at_ + 1] == 'P';
    std::string_view name = in_.substr(at_ + 2);
    if (name.starts_with('{')) {
      size_t end = name.find('}');
      if (end == std::string_view::npos)
        return invalid("\\p{ without }");
      name = name.substr(1, end - 1);
      if (name.starts_with('^')) {
        negated = !negated;
        name.remove_prefix(1);
      }
    } else {
      name = name.substr(0, 1);
    }
    std::optional<CharacterSet> newer = newerCharacters(name);
    if (!newer)
      return unsupported("the property \"" + std::string(name) + "\"");
    at_ = in_.find(name, at_ + 2) + name.size();
    if (at_ < in_.size() && in_[at_] == '}')
      ++at_;
    std::optional<CharacterSet> all = categoryCharacters(name);
    // Of the letters and digits, most that come are ASCII: a bit map is quicker
    // than a look into the tables.
    std::string text = name == "L" ? "A-Za-z" : name == "N" ? "0-9" : "";
    // Of a script alone PCRE2 would take the extensions too.
    std::string property = (all ? "" : "sc:") + std::string(name);
    if (all && isOniguruma() && hasLostCharacters(name))
      return negated
                 ? ClassPart{regexRanges(all->complement()), all->complement()}
                 : ClassPart{regexRanges(*all), all};
    text += "\\p{" + property + "}";
    if (isOniguruma())
      text += regexRanges(*newer);
    if (!negated)
      return ClassPart{text, all};
    if (!isOniguruma())
      return ClassPart{"\\P{" + property + "}", std::nullopt};
    if (!all) {
      if (!newer->empty())
        return unsupported("the negated property \"" + std::string(name) +
                           "\"");
      return ClassPart{"\\P{" + property + "}", std::nullopt};
    }
    CharacterSet set = all->complement();
    return ClassPart{regexRanges(set), set};
  }

  // An escape that stands for a set; at_ is on the backslash.
  Result<std::optional<ClassPart>> setEscape(bool inBrackets) {
    char e = in_[at_ + 1];
    if (e == 'p' || e == 'P') {
      if (at_ + 2 >= in_.size())
        return invalid("\\p without a name");
      INGOT_ASSIGN_OR_RETURN(ClassPart part, property());
      return std::optional<ClassPart>(std::move(part));
    }
    std::optional<CharacterSet> set;
    switch (std::tolower(e)) {
    case 's':
      set = spaces();
      break;
    case 'd':
      set = isOniguruma() ? *categoryCharacters("Nd")
                          : CharacterSet({{'0', '9'}});
      break;
    case 'w':
      if (isOniguruma())
        set = inBrackets ? wordCharactersInBrackets()
                         : charactersOf(CharacterClass::RegexWordCharacters);
      break;
    case 'h':
      if (isOniguruma())
        set = CharacterSet({{'0', '9'}, {'A', 'F'}, {'a', 'f'}});
      break;
    default:
      break;
    }
    if (!set)
      return std::optional<ClassPart>();
    at_ += 2;
    if (std::isupper(static_cast<unsigned char>(e))) {
      set = set->complement();
      return std::optional<ClassPart>(ClassPart{regexRanges(*set), set});
    }
    std::string text = e == 'w' && !inBrackets     ? wordCharactersText()
                       : e == 'd' && isOniguruma() ? digitsText()
                                                   : regexRanges(*set);
    return std::optional<ClassPart>(ClassPart{text, set});
  }

  Status escapeOutside() {
    if (at_ + 1 == in_.size())
      return invalid("ends in a backslash");
    char e = in_[at_ + 1];
    if (e == 'P' && at_ + 2 < in_.size()) { // without writing the rest out
      size_t start = at_;
      INGOT_ASSIGN_OR_RETURN(ClassPart part, property());
      std::string_view written = in_.substr(start, at_ - start);
      std::string positive = "\\p" + std::string(written.substr(2));
      if (written.find('^') != std::string_view::npos) {
        out_ += "[" + part.text + "]";
        return Status::ok();
      }
      Translator inner(positive, dialect_);
      INGOT_ASSIGN_OR_RETURN(ClassPart same, inner.property());
      out_ += "[^" + same.text + "]";
      return Status::ok();
    }
    if (e == 'S') {
      out_ += "[^" + regexRanges(spaces()) + "]";
      at_ += 2;
      return Status::ok();
    }
    INGOT_ASSIGN_OR_RETURN(std::optional<ClassPart> set, setEscape(false));
    if (set) {
      out_ += "[" + set->text + "]";
      return Status::ok();
    }
    if ((e == 'b' || e == 'B') && isOniguruma()) {
      std::string word = "[" + wordCharactersText() + "]";
      out_ += e == 'b' ? "(?:(?<=" + word + ")(?!" + word + ")|(?<!" + word +
                             ")(?=" + word + "))"
                       : "(?:(?<=" + word + ")(?=" + word + ")|(?<!" + word +
                             ")(?!" + word + "))";
      at_ += 2;
      return Status::ok();
    }
    if (std::string_view("AzZ").find(e) != std::string_view::npos) {
      out_ += in_.substr(at_, 2);
      at_ += 2;
      return Status::ok();
    }
    INGOT_ASSIGN_OR_RETURN(std::optional<uint32_t> c, characterEscape());
    if (!c)
      return unsupported("escape \\" + std::string(1, e));
    out_ += literal(*c);
    return Status::ok();
  }

  static std::string literal(uint32_t c) {
    char text[16];
    std::snprintf(text, sizeof text, "\\x{%X}", static_cast<unsigned>(c));
    return text;
  }

  // --- bracketed classes

  // The name of [:alpha:]; at_ is on the bracket.
  Result<ClassPart> posix() {
    size_t end = in_.find(":]", at_);
    if (end == std::string_view::npos)
      return invalid("[: without :]");
    std::string_view name = in_.substr(at_ + 2, end - at_ - 2);
    bool negated = name.starts_with('^');
    name.remove_prefix(negated);
    std::optional<CharacterSet> set;
    auto category = [](const char *one) { return *categoryCharacters(one); };
    if (name == "digit")
      set = category("Nd");
    else if (name == "space")
      set = spaces();
    else if (name == "punct") // and symbols
      set = category("P").unite(category("S"));
    else if (name == "word")
      set = wordCharactersInBrackets();
    else if (name == "xdigit")
      set = CharacterSet({{'0', '9'}, {'A', 'F'}, {'a', 'f'}});
    else if (name == "blank")
      set = category("Zs").unite(single('\t'));
    else if (name == "cntrl")
      set = category("Cc");
    if (!set)
      return unsupported("the class [:" + std::string(name) + ":]");
    at_ = end + 2;
    if (negated)
      set = set->complement();
    return ClassPart{regexRanges(*set), set};
  }

  // One character of a range, or nothing if a set stands there.
  Result<std::optional<uint32_t>> classCharacter() {
    if (in_[at_] == '\\') {
      if (at_ + 1 == in_.size())
        return invalid("ends in a backslash");
      if (in_[at_ + 1] == 'b') { // a backspace, inside of brackets
        at_ += 2;
        return std::optional<uint32_t>(8);
      }
      return characterEscape();
    }
    uint32_t c = decodeUtf8(in_.substr(at_));
    at_ += utf8Length(in_[at_]);
    return std::optional<uint32_t>(c);
  }

  // From the opening bracket to behind the closing one.
  Result<ClassPart> bracketed(int depth) {
    if (depth > MaxClassDepth)
      return unsupported("brackets nested too deeply");
    ++at_;
    bool negated = at_ < in_.size() && in_[at_] == '^';
    at_ += negated;
    ClassPart whole{"", CharacterSet()};
    bool computed = false; // whole.text alone does not say it
    std::optional<CharacterSet> intersection;
    bool first = true;
    for (;; first = false) {
      if (at_ >= in_.size())
        return invalid("[ without ]");
      if (in_[at_] == ']' && !first) {
        ++at_;
        break;
      }
      ClassPart part;
      if (in_.substr(at_, 2) == "[:") {
        INGOT_ASSIGN_OR_RETURN(part, posix());
      } else if (in_[at_] == '[' && isOniguruma()) {
        INGOT_ASSIGN_OR_RETURN(part, bracketed(depth + 1));
        computed = true;
      } else if (in_.substr(at_, 2) == "&&" && isOniguruma()) {
        at_ += 2;
        if (!whole.set)
          return unsupported("a script with &&");
        intersection =
            intersection ? intersection->intersect(*whole.set) : *whole.set;
        whole = {"", CharacterSet()};
        computed = true;
        continue;
      } else {
        INGOT_ASSIGN_OR_RETURN(part, classItem());
      }
      whole.text += part.text;
      if (whole.set && part.set)
        whole.set = whole.set->unite(*part.set);
      else
        whole.set.reset();
    }
    if (!computed) {
      // In a class of its own; a nested one is used by its set.
      std::string text = (negated ? "[^" : "[") + whole.text + std::string("]");
      if (whole.set && negated)
        whole.set = whole.set->complement();
      return ClassPart{text, whole.set};
    }
    if (!whole.set)
      return unsupported("a script in a class that is computed");
    if (intersection)
      whole.set = whole.set->intersect(*intersection);
    // The short form of a complement is the complement.
    std::string text = (negated ? "[^" : "[") + regexRanges(*whole.set) + "]";
    if (whole.set->empty())
      text = negated ? "(?s:.)" : "(?!)";
    if (negated)
      whole.set = whole.set->complement();
    return ClassPart{text, whole.set};
  }

  // A character, a range or an escaped set.
  Result<ClassPart> classItem() {
    if (in_[at_] == '\\' && at_ + 1 < in_.size()) {
      INGOT_ASSIGN_OR_RETURN(std::optional<ClassPart> set, setEscape(true));
      if (set)
        return std::move(*set);
    }
    INGOT_ASSIGN_OR_RETURN(std::optional<uint32_t> from, classCharacter());
    if (!from)
      return unsupported("escape \\" + std::string(1, in_[at_ + 1]));
    uint32_t to = *from;
    // A minus before the end, or before a set, is a character.
    if (at_ + 1 < in_.size() && in_[at_] == '-' && in_[at_ + 1] != ']' &&
        in_[at_ + 1] != '[') {
      size_t minus = at_++;
      INGOT_ASSIGN_OR_RETURN(std::optional<uint32_t> end, classCharacter());
      if (!end) {
        at_ = minus;
        return unsupported("a range that ends in a set");
      }
      to = *end;
    }
    if (to < *from)
      return invalid("a range that runs backwards");
    CharacterSet set({{*from, to}});
    return ClassPart{regexRanges(set), set};
  }

  std::string_view in_;
  RegexDialect dialect_;
  size_t at_ = 0;
  bool usesLines_ = false;
  std::string out_;
};

} // namespace

Result<std::string> translateRegex(std::string_view pattern,
                                   RegexDialect dialect) {
  if (findInvalidUtf8(pattern) != std::string_view::npos)
    return Status::invalid("regex: not valid UTF-8");
  return Translator(pattern, dialect).run();
}

std::string quoteRegex(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (static_cast<unsigned char>(c) < 0x80 &&
        !std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '\0')
      out.push_back('\\');
    if (c == '\0')
      out += "\\x{0}";
    else
      out.push_back(c);
  }
  return out;
}

std::string regexRanges(const CharacterSet &set) {
  std::string out;
  auto add = [&](uint32_t c) {
    char text[16];
    if (c < 0x80 && std::isalnum(static_cast<int>(c)))
      std::snprintf(text, sizeof text, "%c", static_cast<char>(c));
    else
      std::snprintf(text, sizeof text, "\\x{%X}", static_cast<unsigned>(c));
    out += text;
  };
  // PCRE2 has no surrogates in its classes.
  auto range = [&](uint32_t first, uint32_t last) {
    if (first > last)
      return;
    add(first);
    if (last > first) {
      out += '-';
      add(last);
    }
  };
  for (const CharacterRange &one : set.ranges()) {
    if (one.first > 0xDFFF || one.last < 0xD800) {
      range(one.first, one.last);
      continue;
    }
    range(one.first, 0xD7FF);
    range(0xE000, one.last);
  }
  return out;
}

} // namespace ingot
