// The components around the model in tokenizer.json (normalizer, pre_tokenizer,
// decoder, post_processor), each read into a TokenizerSpec. A new component is
// added here, as a case of its kind.
#pragma once

#include "compiler/frontend/tokenizer/ComponentReader.h"
#include "compiler/frontend/tokenizer/TokenizerSpec.h"

namespace ingot {

Status readNormalizer(const ComponentReader &component, TokenizerSpec &spec);

// Sets spec.byteLevel when a ByteLevel step ends the chain.
Status readPreTokenizer(const ComponentReader &component, TokenizerSpec &spec);

Status readDecoder(const ComponentReader &component, TokenizerSpec &spec);

// Needs the vocabulary: the template's ids are checked against it.
Status readPostProcessor(const ComponentReader &component, TokenizerSpec &spec);

} // namespace ingot
