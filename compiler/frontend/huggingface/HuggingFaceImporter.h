// Reads a Hugging Face folder (config.json, safetensors, tokenizer files) into
// a ModelSpec, steered by a family descriptor.
#pragma once

#include "compiler/frontend/ImportOptions.h"
#include "compiler/frontend/ModelSpec.h"

namespace ingot {

Result<ModelSpec> importHuggingFace(const std::string &folder,
                                    const ImportOptions &options = {});

} // namespace ingot
