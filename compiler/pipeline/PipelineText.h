// What can be said of a pipeline's text before MLIR parses it. The parser of
// pass options never returns from a bracket or quote that is not closed, so no
// such text may get that far: not from a flag, a recipe or a command line.
#pragma once

#include "runtime/support/Status.h"

#include <string>

namespace ingot {

// Does each bracket and quote of `text` have its other half? `what` names the
// text in the message.
Status checkClosed(const std::string &what, const std::string &text);

// The same for the arguments of an mlir-opt program: options, and the values
// that stand behind them.
Status checkPipelineArguments(int argc, const char *const *argv);

} // namespace ingot
