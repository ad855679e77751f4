// The one door into the compiler: a path to a model in any supported form.
// What it is is told from what it holds (a folder with config.json, the GGUF
// magic), never from its name.
#pragma once

#include "compiler/frontend/ImportOptions.h"
#include "compiler/frontend/ModelSpec.h"
#include "runtime/support/Status.h"

#include <string>

namespace ingot {

Result<ModelSpec> importModel(const std::string &path,
                              const ImportOptions &options = {});

} // namespace ingot
