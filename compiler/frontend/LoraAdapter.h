// Low-rank adapters as the PEFT library saves them, added to the weights of a
// model at import: each weight keeps its own tensor and gains a product of two
// small ones, which the packer adds in float32 before it encodes.
#pragma once

#include "compiler/architectures/Descriptor.h"
#include "compiler/frontend/ImportOptions.h"
#include "compiler/frontend/ModelSpec.h"

namespace ingot {

// Adds the adapter of a folder to `spec`. Tensors of the adapter are known by
// the names of the Hugging Face model; where `spec` came from a GGUF file, the
// descriptor of its family tells them. Every tensor is used or an error.
Status addLoraAdapter(const LoraRequest &request,
                      const DescriptorList &descriptors, bool fromHuggingFace,
                      ModelSpec &spec);

} // namespace ingot
