#include "compiler/frontend/tokenizer/RegexTranslation.h"

#include <cctype>

namespace ingot {
namespace {

// White_Space, which PCRE2's \s exceeds by U+180E.
constexpr const char *Spaces =
    "\\x09-\\x0D\\x20\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}"
    "\\x{2029}\\x{202F}\\x{205F}\\x{3000}";

} // namespace

Result<std::string> translateRegex(std::string_view pattern,
                                   RegexDialect dialect) {
  std::string out;
  size_t classDepth = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    char c = pattern[i];
    if (c != '\\') {
      if (classDepth && pattern.substr(i, 2) == "[:") {
        size_t end = pattern.find(":]", i);
        if (end == std::string_view::npos)
          return Status::invalid("regex \"" + std::string(pattern) +
                                 "\": [: without :] at byte " +
                                 std::to_string(i));
        out += pattern.substr(i, end + 2 - i);
        i = end + 1;
        continue;
      }
      // Set operations and nested sets are Oniguruma's own.
      if (classDepth && (c == '[' || pattern.substr(i, 2) == "&&") &&
          dialect == RegexDialect::Oniguruma)
        return Status::unsupported("regex \"" + std::string(pattern) +
                                   "\": set operation at byte " +
                                   std::to_string(i));
      if (c == '[' && !classDepth) {
        classDepth = 1;
        out.push_back(c);
        // A bracket right after the opening is a character.
        if (i + 1 < pattern.size() && pattern[i + 1] == '^')
          out.push_back(pattern[++i]);
        if (i + 1 < pattern.size() && pattern[i + 1] == ']')
          out += "\\]", ++i;
        continue;
      }
      if (c == ']' && classDepth)
        classDepth = 0;
      out.push_back(c);
      continue;
    }
    if (i + 1 == pattern.size())
      return Status::invalid("regex \"" + std::string(pattern) +
                             "\": ends in a backslash");
    char e = pattern[++i];
    if (e == 's') {
      out += classDepth ? std::string(Spaces) : "[" + std::string(Spaces) + "]";
    } else if (e == 'S' && !classDepth) {
      out += "[^" + std::string(Spaces) + "]";
    } else if (std::isalnum(static_cast<unsigned char>(e)) &&
               std::string_view("pPdDwWbBntrfvaexuAz").find(e) ==
                   std::string_view::npos) {
      return Status::unsupported("regex \"" + std::string(pattern) +
                                 "\": escape \\" + std::string(1, e) +
                                 " at byte " + std::to_string(i - 1));
    } else if (e == 'v') {
      out += "\\x0B"; // PCRE2's \v is any vertical space
    } else if (e == 'u') {
      // \uHHHH
      std::string_view hex = pattern.substr(i + 1, 4);
      for (char digit : hex)
        if (!std::isxdigit(static_cast<unsigned char>(digit)))
          hex = {};
      if (hex.size() != 4)
        return Status::invalid("regex \"" + std::string(pattern) +
                               "\": \\u needs four digits at byte " +
                               std::to_string(i - 1));
      out += "\\x{" + std::string(hex) + "}";
      i += 4;
    } else {
      out += '\\';
      out += e;
    }
  }
  bool lines = dialect == RegexDialect::Oniguruma &&
               out.find_first_of("^$") != std::string::npos;
  return (lines ? "(?m)" : "") + out;
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

} // namespace ingot
