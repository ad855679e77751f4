// The alphabet in which byte-level vocabularies are written: each of the 256
// bytes has a printable character of its own (GPT-2's table). Tokens are kept as
// true bytes in the compiled tables; this maps their spelling there and back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ingot {

// The character that stands for a byte.
uint32_t byteToAlphabet(uint8_t byte);

// The bytes that a spelling stands for; nothing if any character (or the UTF-8)
// is outside the alphabet.
std::optional<std::string> alphabetToBytes(std::string_view spelling);

// The spelling of bytes.
std::string bytesToAlphabet(std::string_view bytes);

} // namespace ingot
