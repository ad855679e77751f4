// SentencePiece's byte pairs: two neighbours merge if their text is a token, the
// highest score first, equal scores from the left. That is a merge table,
// written out here: every way to cut a token in two.
#pragma once

#include "compiler/frontend/tokenizer/TokenizerSpec.h"

#include <functional>
#include <unordered_map>

namespace ingot {

// `idOf` are the tokens that text may be cut into; `mayResult` says which a merge
// may make.
Result<std::vector<MergeSpec>>
mergesOfScores(const std::vector<TokenSpec> &tokens,
               const std::unordered_map<std::string, int32_t> &idOf,
               const std::function<bool(size_t)> &mayResult);

} // namespace ingot
