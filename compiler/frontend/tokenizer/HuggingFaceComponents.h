// The parts of tokenizer.json (normalizer, pre_tokenizer, model, decoder,
// post_processor), each read into a TokenizerSpec. A new one is added as a case
// of its kind.
#pragma once

#include "compiler/frontend/tokenizer/ComponentReader.h"
#include "compiler/frontend/tokenizer/TokenizerSpec.h"

namespace ingot {

// The step of a Unicode normal form, which stays that of the library.
NormalizerStep unicodeFormStep(NormalizerKind form);

Status readNormalizer(const ComponentReader &component, TokenizerSpec &spec);

// A ByteLevel step spells bytes; whoever reads the model may do without.
Status readPreTokenizer(const ComponentReader &component, TokenizerSpec &spec);

Status readDecoder(const ComponentReader &component, TokenizerSpec &spec);

// Needs the vocabulary: the template's ids are checked against it.
Status readPostProcessor(const ComponentReader &component, TokenizerSpec &spec);

} // namespace ingot
