// What the tokenizer files of a model folder say about the model itself: the
// id of its end token and its chat templates. The tokens are another part's.
#pragma once

#include "compiler/frontend/ModelSpec.h"
#include "compiler/frontend/huggingface/ModelFolder.h"

#include <optional>

namespace ingot {

struct TokenizerFacts {
  TokenizerLocation location;
  std::optional<std::int64_t> eosId;
  std::vector<TemplateSource> chatTemplates;
};

Result<TokenizerFacts> readTokenizerFiles(const ModelFolder &folder);

} // namespace ingot
