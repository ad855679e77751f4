// Cuts a template into tokens as Jinja's lexer does with trim_blocks and
// lstrip_blocks on: the whitespace rules live here and nowhere else.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::jinja {

enum class TokenKind {
  Data, // template text, whitespace control applied
  VariableBegin,
  VariableEnd,
  BlockBegin,
  BlockEnd,
  Name,
  String,
  Integer,
  Float,
  Operator,
  End,
};

struct Token {
  TokenKind kind = TokenKind::End;
  uint32_t offset = 0; // in the normalised source
  std::string text;    // strings are unescaped; numbers have no underscores
};

// Newlines become \n and one newline at the very end is dropped, as Jinja does
// before it looks at anything. Offsets of tokens and nodes refer to the result.
std::string normalizeSource(std::string_view source);

struct Position {
  uint32_t line = 1;
  uint32_t column = 1; // in code points
};
Position positionOf(std::string_view source, uint32_t offset);
// "chat template: line 3, column 7: message"
std::string located(std::string_view source, uint32_t offset,
                    const std::string &message);

Result<std::vector<Token>> tokenize(std::string_view source);

} // namespace ingot::jinja
