// From a body to what the engine is given: runs on the preparing thread and
// touches nothing but the body and the models' constant parts.
#pragma once

#include "runtime/serve/ApiError.h"
#include "runtime/serve/EngineLoop.h"
#include "runtime/serve/GenerationAnswer.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace ingot::serve {

// Finds a model by a request's "model"; throws ApiFailure.
using FindModel = std::function<EngineLoop &(const std::string *name)>;

struct Preparation {
  std::optional<ApiError> error;
  // Either the whole answer,
  std::optional<std::string> body;
  // or a generation.
  EngineLoop *loop = nullptr;
  GenerationJob job;
  AnswerPlan plan;
  std::string user;
  std::string note; // for the log
};

enum class Endpoint { Completions, Chat, Tokenize, Detokenize };

Preparation prepare(Endpoint endpoint, std::string_view body,
                    const FindModel &findModel);

} // namespace ingot::serve
