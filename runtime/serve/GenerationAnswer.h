// The answer to one generation request: gathers what the engine says of its
// choices and puts it into the exchange, at once or as server-sent events.
// Both say the same: the pieces of a stream add up to the whole answer.
#pragma once

#include "runtime/serve/ApiResponse.h"
#include "runtime/serve/EngineLoop.h"
#include "runtime/serve/Http.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ingot::serve {

struct AnswerPlan {
  bool isChat = false;
  bool stream = false;
  bool includeUsage = false;
  std::int32_t n = 1;
  std::int32_t logprobs = -1;        // -1: none
  std::vector<std::string> echoText; // by prompt; empty: no echo
  bool echoesLogprobs = false;
  AnswerHead head;
  Headers headers; // of the response
};

// For the log.
struct AnswerSummary {
  int status = 200;
  Usage usage;
  std::string finish; // reasons, each once
  std::string error;
  double firstTokenSeconds = -1; // since the answer was made
};

class GenerationAnswer : public GenerationSink {
public:
  // Lives on the I/O thread. The tokenizer outlives it. `onDone` is called once
  // when the last byte has been handed over.
  GenerationAnswer(AnswerPlan plan, std::size_t prompts,
                   const Tokenizer &tokenizer,
                   std::shared_ptr<HttpExchange> exchange,
                   std::function<void()> onDone);

  void onAdmitted() override;
  void onPromptTokens(std::size_t prompt,
                      std::vector<ScoredToken> tokens) override;
  void onPiece(std::size_t choice, OutputPiece piece) override;
  void onChoiceEnd(std::size_t choice, const ChoiceEnd &end) override;
  void onFailure(const Status &status) override;

  const AnswerSummary &summary() const { return summary_; }

private:
  struct ChoiceState {
    bool isBegun = false; // its echo or role has been said
    std::string text;
    std::vector<ScoredToken> tokens;
    std::string reason;
  };
  void begin(std::size_t choice);
  void sendPiece(std::size_t choice, const OutputPiece &piece);
  void sendEvent(Json chunk);
  Json textChoice(std::size_t choice, const std::string &text, Json logprobs,
                  Json reason) const;
  Json deltaChoice(std::size_t choice, Json delta, Json logprobs,
                   Json reason) const;
  Json logprobsOf(std::size_t choice, std::span<const ScoredToken> tokens,
                  std::size_t offset) const;
  Json wholeAnswer();
  void finish();
  std::size_t promptOf(std::size_t choice) const {
    return choice / std::size_t(plan_.n);
  }
  std::size_t echoCharacters(std::size_t choice) const;

  AnswerPlan plan_;
  const Tokenizer &tokenizer_;
  std::shared_ptr<HttpExchange> exchange_;
  std::function<void()> onDone_;
  std::chrono::steady_clock::time_point made_;
  std::vector<std::vector<ScoredToken>> promptTokens_;
  std::vector<ChoiceState> choices_;
  std::size_t numOpen_;
  bool isStreaming_ = false; // its head has been sent
  bool isOver_ = false;
  AnswerSummary summary_;
};

} // namespace ingot::serve
