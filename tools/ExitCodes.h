// How Ingot's programs end: one table for all, which every --help shows.
#pragma once

#include "runtime/support/Status.h"

#include <CLI/CLI.hpp>

#include <string>

namespace ingot {

enum ExitCode {
  kDone = 0,
  kFailed = 1,        // of programs that test or measure: something failed
  kWrongUse = 2,      // of the command line, or an input is missing or broken
  kUnsupported = 3,   // well formed, but not something this build does
  kRefused = 4,       // by the system: files, memory
  kInternal = 5,      // a fault of Ingot itself
  kFound = 6,         // debug: something was found
  kCutShort = 7,      // serve: the drain's deadline ended requests
  kInterrupted = 130, // as a shell tells it
};

inline int exitCode(const Status &status) {
  switch (status.code()) {
  case StatusCode::Ok:
    return kDone;
  case StatusCode::InvalidInput:
  case StatusCode::NotFound:
    return kWrongUse;
  case StatusCode::Unsupported:
    return kUnsupported;
  case StatusCode::IoError:
  case StatusCode::OutOfMemory:
  case StatusCode::Busy:
    return kRefused;
  case StatusCode::Internal:
    break;
  }
  return kInternal;
}

// Puts the table under the help of the program and of all its commands; `more`
// begins with a semicolon and is for the codes of this program alone.
inline void addExitCodes(CLI::App &app, const std::string &more = {}) {
  std::string footer = app.get_footer();
  app.footer((footer.empty() ? "" : footer + "\n\n") +
             "Exit codes: 0 done; 2 wrong use, or an input is missing or "
             "broken; 3 not\nsupported; 4 the system refused (files, memory); "
             "5 a fault of Ingot itself" +
             more + ".");
  for (CLI::App *command : app.get_subcommands({}))
    addExitCodes(*command, more);
}

// What CLI11 threw is printed; help and version are no failure.
inline int exitOf(const CLI::App &app, const CLI::ParseError &error) {
  return app.exit(error) == 0 ? kDone : kWrongUse;
}

} // namespace ingot
