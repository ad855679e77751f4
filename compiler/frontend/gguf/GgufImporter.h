// Reads a GGUF file into a ModelSpec, steered by a family descriptor.
#pragma once

#include "compiler/frontend/ImportOptions.h"
#include "compiler/frontend/ModelSpec.h"

namespace ingot {

Result<ModelSpec> importGguf(const std::string &path,
                             const ImportOptions &options = {});

} // namespace ingot
