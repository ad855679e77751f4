// UTF-8 and the character properties behind Python's str methods. Template
// strings index by code point, as in Python, while storage is UTF-8; every
// string inside the engine is valid UTF-8 (inputs are checked at the door).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ingot::jinja {

// The byte offset of the first byte that is not valid UTF-8, or nothing.
std::optional<size_t> findInvalidUtf8(std::string_view text);

// Reads the code point at `pos` and moves past it. The text must be valid.
char32_t nextCodePoint(std::string_view text, size_t &pos);
void appendUtf8(std::string &out, char32_t code);
size_t countCodePoints(std::string_view text);
// The byte offset of code point `index`; text.size() when past the end.
size_t byteOffset(std::string_view text, size_t index);

bool isSpace(char32_t code);     // str.isspace, and what strip() removes
bool isLineBreak(char32_t code); // what splitlines() splits at
bool isPrintable(char32_t code);
bool isAlpha(char32_t code);
bool isDecimal(char32_t code);
bool isDigit(char32_t code);
bool isNumeric(char32_t code);
bool isLower(char32_t code);
bool isUpper(char32_t code);
bool isTitle(char32_t code); // the title-case letters such as U+01C5
bool isCased(char32_t code);
bool isCaseIgnorable(char32_t code);

enum class CaseMap { Lower, Upper, Title, Fold };
// Appends the full mapping of one character (up to three code points).
void appendMapped(std::string &out, char32_t code, CaseMap map);

} // namespace ingot::jinja
