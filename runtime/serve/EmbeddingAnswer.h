// The answer of /v1/embeddings, as a pure function.
#pragma once

#include "runtime/engine/EncoderCore.h"
#include "runtime/serve/JsonFields.h"

#include <cstdint>
#include <span>
#include <string>

namespace ingot::serve {

// What of a request its answer depends on.
struct EmbeddingPlan {
  std::string model;
  bool isBase64 = false;
  std::int64_t promptTokens = 0;
};

// {"object": "list", "data": [{"object": "embedding", "index", "embedding"}],
//  "model", "usage": {"prompt_tokens", "total_tokens"}}; an embedding is a list
// of numbers, or the base64 of its float32 in little-endian order.
std::string embeddingsBody(const EmbeddingPlan &plan,
                           std::span<const Embedding> embeddings);

std::string base64(std::span<const std::uint8_t> bytes);

} // namespace ingot::serve
