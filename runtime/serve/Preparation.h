// From a body to what the engine is given: runs on the preparing thread and
// touches nothing but the body and the models' constant parts.
#pragma once

#include "runtime/serve/ApiError.h"
#include "runtime/serve/EmbeddingAnswer.h"
#include "runtime/serve/EmbeddingLoop.h"
#include "runtime/serve/EngineLoop.h"
#include "runtime/serve/GenerationAnswer.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace ingot::serve {

// A model that requests can name: one of the two, which outlives them.
struct NamedModel {
  EngineLoop *loop = nullptr;       // generates
  EmbeddingLoop *encoder = nullptr; // gives vectors
  const ModelCard &card() const;
  const Tokenizer &tokenizer() const;
};

// Finds a model by a request's "model"; throws ApiFailure.
using FindModel = std::function<NamedModel(const std::string *name)>;

struct Preparation {
  std::optional<ApiError> error;
  // Either the whole answer,
  std::optional<std::string> body;
  // a generation,
  GenerationJob job;
  AnswerPlan plan;
  // or vectors of texts.
  EmbeddingJob embedding;
  EmbeddingPlan embeddingPlan;
  NamedModel model; // that was named
  std::string user;
  std::string note; // for the log
};

enum class Endpoint { Completions, Chat, Embeddings, Tokenize, Detokenize };

Preparation prepare(Endpoint endpoint, std::string_view body,
                    const FindModel &findModel);

} // namespace ingot::serve
