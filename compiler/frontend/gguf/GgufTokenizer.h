// The tokenizer.* metadata of a GGUF file as the tokenizer builder takes it.
// Every key is read, known to say nothing about encoding, or an error.
#pragma once

#include "compiler/frontend/gguf/GgufFile.h"
#include "compiler/frontend/tokenizer/TokenizerBuilder.h"

namespace ingot {

Result<GgufVocabulary> readGgufVocabulary(const GgufFile &file);

} // namespace ingot
