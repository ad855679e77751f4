#include "tools/text/InputText.h"

#include "runtime/support/Printable.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <unistd.h>

namespace ingot {

Result<std::string> readText(const std::string &path) {
  bool isInput = path == "-";
  std::string name = isInput ? "standard input" : path;
  std::FILE *file = isInput ? stdin : std::fopen(path.c_str(), "rb");
  if (!file)
    return Status(errno == ENOENT ? StatusCode::NotFound : StatusCode::IoError,
                  name + ": cannot open: " + std::strerror(errno));
  std::string text;
  char chunk[1 << 16];
  for (std::size_t got; (got = std::fread(chunk, 1, sizeof chunk, file)) > 0;)
    if (text.append(chunk, got).size() > kMaxTextBytes)
      break;
  bool failed = std::ferror(file) != 0;
  if (!isInput)
    std::fclose(file);
  if (failed)
    return Status::io(name + ": cannot read");
  if (text.size() > kMaxTextBytes)
    return Status::invalid(name + ": holds more than 1 GiB");
  return text;
}

Result<std::string> readSomeText(const std::string &path, const char *what) {
  INGOT_ASSIGN_OR_RETURN(std::string text, readText(path));
  if (text.empty())
    return Status::invalid((path == "-" ? "standard input" : path) +
                           ": is empty, expected " + what);
  return text;
}

std::string forStandardOutput(std::string text) {
  return ::isatty(STDOUT_FILENO) ? printableLines(text) : std::move(text);
}

Status standardOutputStatus() {
  std::cout.flush();
  if (!std::cout || std::fflush(stdout) != 0 || std::ferror(stdout))
    return Status::io("standard output: cannot write");
  return Status::ok();
}

} // namespace ingot
