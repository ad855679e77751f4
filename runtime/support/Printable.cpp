#include "runtime/support/Printable.h"

#include <cstdint>
#include <cstdio>

namespace ingot {
namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0; // 0: not valid UTF-8 here
};

// Strict UTF-8: no overlong form, no surrogate, nothing above U+10FFFF.
Character decode(std::string_view text) {
  auto byte = [&](std::size_t i) { return std::uint8_t(text[i]); };
  if (byte(0) < 0x80)
    return {byte(0), 1};
  std::size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < length)
    return {};
  std::uint32_t code = byte(0) & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80)
      return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < least[length] || code > 0x10ffff ||
      (code >= 0xd800 && code <= 0xdfff))
    return {};
  return {code, length};
}

// Control characters of ASCII and of Latin-1 (U+009B is an escape sequence in
// one character), line and paragraph separators, and what reorders text.
bool isObeyed(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) ||
         (code >= 0x200e && code <= 0x200f) ||
         (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

std::string escape(std::string_view text, bool keepLines) {
  std::string out;
  out.reserve(text.size());
  char spelled[16];
  while (!text.empty()) {
    Character next = decode(text);
    std::size_t bytes = next.bytes ? next.bytes : 1;
    bool isKept = keepLines && (text[0] == '\n' || text[0] == '\t');
    if (next.bytes && (isKept || !isObeyed(next.code))) {
      out += text.substr(0, bytes);
    } else {
      if (next.bytes && next.code > 0xff)
        std::snprintf(spelled, sizeof spelled, "\\u%04x", unsigned(next.code));
      else
        std::snprintf(spelled, sizeof spelled, "\\x%02x",
                      next.bytes ? unsigned(next.code)
                                 : unsigned(std::uint8_t(text[0])));
      out += spelled;
    }
    text.remove_prefix(bytes);
  }
  return out;
}

} // namespace

std::string printable(std::string_view text) { return escape(text, false); }

std::string printableLines(std::string_view text) { return escape(text, true); }

} // namespace ingot
