#include "runtime/serve/GenerationAnswer.h"

#include "runtime/serve/ApiError.h"

namespace ingot::serve {

GenerationAnswer::GenerationAnswer(AnswerPlan plan, std::size_t prompts,
                                   const Tokenizer &tokenizer,
                                   std::shared_ptr<HttpExchange> exchange,
                                   std::function<void()> onDone)
    : plan_(std::move(plan)), tokenizer_(tokenizer),
      exchange_(std::move(exchange)), onDone_(std::move(onDone)),
      made_(std::chrono::steady_clock::now()), promptTokens_(prompts),
      choices_(prompts * std::size_t(plan_.n)), numOpen_(choices_.size()) {}

std::size_t GenerationAnswer::echoCharacters(std::size_t choice) const {
  return plan_.echoText.empty()
             ? 0
             : countCharacters(plan_.echoText[promptOf(choice)]);
}

Json GenerationAnswer::logprobsOf(std::size_t choice,
                                  std::span<const ScoredToken> tokens,
                                  std::size_t offset) const {
  if (plan_.logprobs < 0)
    return nullptr;
  return plan_.isChat
             ? chatLogprobs(tokenizer_, tokens)
             : completionLogprobs(tokenizer_, tokens, plan_.logprobs, offset);
}

Json GenerationAnswer::textChoice(std::size_t choice, const std::string &text,
                                  Json logprobs, Json reason) const {
  return {{"index", choice},
          {"text", text},
          {"logprobs", std::move(logprobs)},
          {"finish_reason", std::move(reason)}};
}

Json GenerationAnswer::deltaChoice(std::size_t choice, Json delta,
                                   Json logprobs, Json reason) const {
  return {{"index", choice},
          {"delta", std::move(delta)},
          {"logprobs", std::move(logprobs)},
          {"finish_reason", std::move(reason)}};
}

void GenerationAnswer::sendEvent(Json chunk) {
  exchange_->write("data: " + dumpJson(chunk) + "\n\n");
}

void GenerationAnswer::onAdmitted() {
  if (isOver_ || !plan_.stream || !exchange_->isOpen())
    return;
  HttpResponse head;
  head.contentType = "text/event-stream; charset=utf-8";
  head.headers = plan_.headers;
  head.headers.emplace_back("Cache-Control", "no-cache");
  head.headers.emplace_back("X-Accel-Buffering", "no");
  isStreaming_ = true;
  exchange_->beginStream(std::move(head));
  if (plan_.isChat)
    for (std::size_t choice = 0; choice < choices_.size(); ++choice)
      begin(choice);
}

// Of a chat the role, of an echo the prompt: the first chunk of a choice.
void GenerationAnswer::begin(std::size_t choice) {
  ChoiceState &state = choices_[choice];
  if (state.isBegun)
    return;
  state.isBegun = true;
  Json first;
  if (plan_.isChat) {
    first = deltaChoice(choice, {{"role", "assistant"}, {"content", ""}},
                        nullptr, nullptr);
  } else if (!plan_.echoText.empty()) {
    auto &tokens = promptTokens_[promptOf(choice)];
    fillPromptOffsets(tokenizer_, tokens);
    first = textChoice(choice, plan_.echoText[promptOf(choice)],
                       plan_.echoesLogprobs ? logprobsOf(choice, tokens, 0)
                                            : Json(nullptr),
                       nullptr);
  } else {
    return;
  }
  Json chunk = answerJson(plan_.head, Json::array({std::move(first)}));
  if (plan_.includeUsage)
    chunk["usage"] = nullptr;
  sendEvent(std::move(chunk));
}

void GenerationAnswer::onPromptTokens(std::size_t prompt,
                                      std::vector<ScoredToken> tokens) {
  auto &all = promptTokens_[prompt];
  all.insert(all.end(), std::make_move_iterator(tokens.begin()),
             std::make_move_iterator(tokens.end()));
}

void GenerationAnswer::sendPiece(std::size_t choice, const OutputPiece &piece) {
  begin(choice);
  Json logprobs = nullptr;
  if (!piece.tokens.empty())
    logprobs = logprobsOf(choice, piece.tokens, echoCharacters(choice));
  Json made = plan_.isChat ? deltaChoice(choice, {{"content", piece.text}},
                                         std::move(logprobs), nullptr)
                           : textChoice(choice, piece.text, std::move(logprobs),
                                        nullptr);
  Json chunk = answerJson(plan_.head, Json::array({std::move(made)}));
  if (plan_.includeUsage)
    chunk["usage"] = nullptr;
  sendEvent(std::move(chunk));
}

void GenerationAnswer::onPiece(std::size_t choice, OutputPiece piece) {
  if (isOver_ || !exchange_->isOpen())
    return;
  if (summary_.firstTokenSeconds < 0)
    summary_.firstTokenSeconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - made_)
            .count();
  if (plan_.stream)
    return sendPiece(choice, piece);
  ChoiceState &state = choices_[choice];
  state.text += piece.text;
  for (ScoredToken &token : piece.tokens)
    state.tokens.push_back(std::move(token));
}

void GenerationAnswer::onChoiceEnd(std::size_t choice, const ChoiceEnd &end) {
  if (isOver_)
    return;
  ChoiceState &state = choices_[choice];
  state.reason = finishReasonName(end.reason);
  summary_.usage.outputTokens += end.outputTokens;
  if (choice % std::size_t(plan_.n) == 0) {
    summary_.usage.promptTokens += end.promptTokens;
    summary_.usage.cachedTokens += end.cachedTokens;
  }
  if (summary_.finish.find(state.reason) == std::string::npos)
    summary_.finish += (summary_.finish.empty() ? "" : ",") + state.reason;
  --numOpen_;
  if (plan_.stream && exchange_->isOpen()) {
    begin(choice);
    Json made = plan_.isChat
                    ? deltaChoice(choice, Json::object(), nullptr, state.reason)
                    : textChoice(choice, "", nullptr, state.reason);
    Json chunk = answerJson(plan_.head, Json::array({std::move(made)}));
    if (plan_.includeUsage)
      chunk["usage"] = nullptr;
    sendEvent(std::move(chunk));
  }
  if (numOpen_ == 0)
    finish();
}

Json GenerationAnswer::wholeAnswer() {
  Json list = Json::array();
  for (std::size_t choice = 0; choice < choices_.size(); ++choice) {
    ChoiceState &state = choices_[choice];
    if (plan_.isChat) {
      list.push_back({{"index", choice},
                      {"message",
                       {{"role", "assistant"},
                        {"content", state.text},
                        {"refusal", nullptr}}},
                      {"logprobs", logprobsOf(choice, state.tokens, 0)},
                      {"finish_reason", state.reason}});
      continue;
    }
    std::string text = state.text;
    std::vector<ScoredToken> tokens;
    if (!plan_.echoText.empty()) {
      text = plan_.echoText[promptOf(choice)] + text;
      if (plan_.echoesLogprobs) {
        tokens = promptTokens_[promptOf(choice)];
        fillPromptOffsets(tokenizer_, tokens);
      }
    }
    for (ScoredToken token : state.tokens) {
      token.offset += echoCharacters(choice);
      tokens.push_back(std::move(token));
    }
    list.push_back(
        textChoice(choice, text, logprobsOf(choice, tokens, 0), state.reason));
  }
  Json answer = answerJson(plan_.head, std::move(list));
  answer["usage"] = usageJson(summary_.usage);
  return answer;
}

void GenerationAnswer::finish() {
  isOver_ = true;
  if (plan_.stream) {
    if (plan_.includeUsage) {
      Json chunk = answerJson(plan_.head, Json::array());
      chunk["usage"] = usageJson(summary_.usage);
      sendEvent(std::move(chunk));
    }
    exchange_->write("data: [DONE]\n\n");
    exchange_->endStream();
  } else {
    HttpResponse response;
    response.headers = plan_.headers;
    response.body = dumpJson(wholeAnswer());
    exchange_->respond(std::move(response));
  }
  onDone_();
}

void GenerationAnswer::onFailure(const Status &status) {
  if (isOver_)
    return;
  isOver_ = true;
  ApiError error = ApiError::fromStatus(status);
  summary_.error = status.message();
  if (isStreaming_) {
    exchange_->write("data: " + error.json() + "\n\n");
    exchange_->write("data: [DONE]\n\n");
    exchange_->endStream();
  } else {
    summary_.status = error.status;
    HttpResponse response = error.response();
    for (const auto &header : plan_.headers)
      response.headers.push_back(header);
    exchange_->respond(std::move(response));
  }
  onDone_();
}

} // namespace ingot::serve
