// The commands of the compiler's program. Each adds its flags to the parser and
// is run when it was named.
#pragma once

#include "runtime/support/Status.h"
#include "tools/ExitCodes.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <string>

namespace ingot {

// Runs the command and answers with the exit code of the program.
using Command = std::function<int()>;

Command addCompileCommand(CLI::App &app);
Command addCheckCommand(CLI::App &app);
Command addDebugCommand(CLI::App &app);
Command addFitExitsCommand(CLI::App &app);
Command addMeasureExitsCommand(CLI::App &app);
Command addTokenizeCommand(CLI::App &app);
Command addRenderCommand(CLI::App &app);

// Prints a failure to stderr and answers with its exit code; 0 for none.
int finish(const Status &status);

struct CompileOptions;
// The options that compile and check share: encodings, target, adapters.
void addModelOptions(CLI::App &command, CompileOptions &options);
// What is learned from a text: codes and prunings; the text and the cache.
void addLearnedOptions(CLI::App &command, CompileOptions &options,
                       std::string &cacheFolder);

} // namespace ingot
