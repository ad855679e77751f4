#include "runtime/serve/EmbeddingAnswer.h"

#include "runtime/support/FloatText.h"

#include <bit>
#include <cstring>

namespace ingot::serve {

static_assert(std::endian::native == std::endian::little,
              "base64 holds little-endian numbers");

std::string base64(std::span<const std::uint8_t> bytes) {
  constexpr char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                             "abcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 3; ++j)
      bits = bits << 8 | (j < count ? bytes[i + j] : 0u);
    for (std::size_t j = 0; j < 4; ++j)
      text += j <= count ? letters[bits >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

std::string embeddingsBody(const EmbeddingPlan &plan,
                           std::span<const Embedding> embeddings) {
  Json data = Json::array();
  for (std::size_t i = 0; i < embeddings.size(); ++i) {
    const Embedding &embedding = embeddings[i];
    Json vector;
    if (plan.isBase64) {
      vector = base64({reinterpret_cast<const std::uint8_t *>(embedding.data()),
                       embedding.size() * sizeof(float)});
    } else {
      vector = Json::array();
      for (float x : embedding)
        vector.push_back(shortDouble(x));
    }
    data.push_back({{"object", "embedding"},
                    {"index", i},
                    {"embedding", std::move(vector)}});
  }
  return dumpJson({{"object", "list"},
                   {"data", std::move(data)},
                   {"model", plan.model},
                   {"usage",
                    {{"prompt_tokens", plan.promptTokens},
                     {"total_tokens", plan.promptTokens}}}});
}

} // namespace ingot::serve
