// Turns a template's tokens into a Program, by Jinja's grammar and precedence.
#pragma once

#include "runtime/support/Status.h"
#include "runtime/text/jinja/Ast.h"

namespace ingot::jinja {

// `source` is normalised (see normalizeSource) and valid UTF-8.
Result<std::shared_ptr<const Program>> parseProgram(std::string source);

} // namespace ingot::jinja
