// Tokenizer files write regexes for Oniguruma (Ruby syntax); the runtime runs
// PCRE2. Where the two read an escape differently, the pattern is rewritten or
// refused.
#pragma once

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

} // namespace ingot
