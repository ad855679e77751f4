// UTF-8 as the tokenizer needs it: strict validation of what comes in, and the
// standard replacement of what a model may put out (one U+FFFD for each maximal
// part of a broken sequence, as Rust's from_utf8_lossy and Python's "replace").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ingot {

// Offset of the first byte that is not valid UTF-8, or npos.
size_t findInvalidUtf8(std::string_view text);

// Length of the character that begins with this lead byte of valid UTF-8.
inline size_t utf8Length(char lead) {
  uint8_t b = static_cast<uint8_t>(lead);
  return b < 0x80 ? 1 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : 4;
}

// The character at text[0]; text must be valid and not empty.
uint32_t decodeUtf8(std::string_view text);

void appendUtf8(std::string &out, uint32_t codePoint);

// Unicode's White_Space.
inline bool isWhiteSpace(uint32_t c) {
  return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

// Appends bytes to out with broken sequences replaced. An incomplete but so far
// valid sequence at the end is not appended: its length is returned.
size_t appendValidUtf8(std::string &out, std::string_view bytes);

// The replacement character, U+FFFD.
inline constexpr std::string_view ReplacementCharacter = "\xEF\xBF\xBD";

} // namespace ingot
