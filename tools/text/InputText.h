// Reading a whole file or standard input as text, and saying whether all of the
// answer was written.
#pragma once

#include "runtime/support/Status.h"

#include <cstddef>
#include <string>

namespace ingot {

// "-" is standard input. At most kMaxTextBytes.
inline constexpr std::size_t kMaxTextBytes = std::size_t(1) << 30;
Result<std::string> readText(const std::string &path);

// The same, and an error where there is nothing in it: `what` is expected.
Result<std::string> readSomeText(const std::string &path, const char *what);

// Text of a model as it goes to standard output: into a pipe or file byte by
// byte, to a terminal with everything spelled out that it would obey.
std::string forStandardOutput(std::string text);

// Flushes what went to standard output through either library.
Status standardOutputStatus();

} // namespace ingot
