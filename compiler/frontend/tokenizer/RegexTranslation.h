// Tokenizer files write regexes for Oniguruma (Ruby syntax); the runtime runs
// PCRE2. Where the two read something differently, the pattern is rewritten or
// refused; characters that only the newer Unicode of Oniguruma knows are written
// out.
#pragma once

#include "compiler/frontend/tokenizer/CharacterClasses.h"
#include "runtime/support/Status.h"

#include <string>
#include <string_view>

namespace ingot {

enum class RegexDialect {
  Oniguruma, // Hugging Face: ^ and $ match at every line
  Ecma,      // llama.cpp: they match at the ends of the text
};

Result<std::string> translateRegex(std::string_view pattern,
                                   RegexDialect dialect);

// A pattern that matches just this text.
std::string quoteRegex(std::string_view text);

// A set as the inside of a bracketed class.
std::string regexRanges(const CharacterSet &set);

} // namespace ingot
