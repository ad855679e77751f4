// May one model guess for another? Where every id means the same token to
// both. Vocabularies are compared id by id, by what the tokens are, not by
// their number: rows that only pad a matrix to a round size may differ.
#pragma once

#include "runtime/support/Status.h"
#include "runtime/text/Tokenizer.h"

#include <cstdint>

namespace ingot {

// How many ids, from 0, are the same in both. Refused, with the first id that
// is not and what it is to each, where either has a token that the other has
// not at that id.
Result<std::int32_t> commonVocabulary(const Tokenizer &target,
                                      const Tokenizer &draft);

} // namespace ingot
