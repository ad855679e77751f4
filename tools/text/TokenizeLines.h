// `tokenize`: a text a line of standard input, a JSON list of ids a line of
// standard output; or the way back.
#pragma once

#include "runtime/support/Status.h"
#include "runtime/text/Tokenizer.h"

#include <CLI/CLI.hpp>

#include <string>

namespace ingot {

struct TokenizeFlags {
  std::string path; // of the model
  bool noSpecial = false;
  bool decode = false;
  bool keepSpecial = false;
  bool jsonText = false;
};

// Adds the subcommand and its flags, which are filled when it is parsed.
CLI::App *addTokenizeFlags(CLI::App &app, TokenizeFlags &flags);

Status tokenizeLines(const Tokenizer &tokenizer, const TokenizeFlags &flags);

} // namespace ingot
