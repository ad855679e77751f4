// A model without weights: a byte tokenizer, and an engine that writes the
// alphabet, a letter a step, for every request at once. Tests hold its steps,
// make them fail, and count what it holds.
#pragma once

#include "runtime/serve/ServedModel.h"
#include "test/runtime/text/TextTables.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace ingot::test {

// Shared by a test and the model that the server owns.
struct FakeEngineState {
  std::atomic<bool> isHeld{false}; // steps produce nothing
  std::atomic<bool> failsNext{false};
  std::atomic<int> stepMicros{0};
  std::atomic<int> tokensPerStep{1};
  std::atomic<int> active{0}, submitted{0}, cancelled{0}, finished{0};
  std::atomic<int> steps{0};
  std::atomic<bool> isFileChanged{false};
  std::atomic<bool> holdsChats{false}; // rendering one does not end
  std::atomic<int> chats{0};           // that are being rendered
};

class FakeModel : public serve::ServedModel {
public:
  FakeModel(std::string id, std::shared_ptr<FakeEngineState> state,
            std::int32_t context = 4096)
      : state_(std::move(state)), tables_(textTables()),
        tokenizer_(std::move(Tokenizer::open(tables_).value())) {
    card_.id = std::move(id);
    card_.created = 1700000000;
    card_.context = context;
    card_.vocab = tokenizer_.vocabSize();
    card_.sequences = 4;
    card_.hasExits = true;
    card_.fingerprint = "fake";
    card_.origin = "fake.ingot";
  }

  const serve::ModelCard &card() const override { return card_; }
  Status checkFile() const override {
    return state_->isFileChanged ? Status::io("fake.ingot: was written to")
                                 : Status::ok();
  }
  const Tokenizer &tokenizer() const override { return tokenizer_; }
  bool hasChatTemplate() const override { return true; }
  Result<std::vector<std::int32_t>>
  chatIds(const ChatRequest &request) const override {
    ++state_->chats;
    while (state_->holdsChats)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --state_->chats;
    return tokenizer_.encode(request.messagesJson);
  }

  Result<RequestId> submit(TokenRequest request,
                           EngineCore::OnFinish onFinish) override {
    // A letter of its own for what must fail at once.
    if (!request.prompt.empty() && request.prompt.back() == '!')
      return Status::invalid("prompt: the fake engine refuses it");
    RequestId id = nextId_;
    nextId_ += 256;
    ++state_->submitted;
    for (std::int32_t copy = 0; copy < request.copies; ++copy)
      active_.push_back({id, copy, request, onFinish, {}, false, {}});
    state_->active = int(active_.size());
    return id;
  }

  bool cancel(RequestId id) override {
    bool isFound = false;
    for (auto each = active_.begin(); each != active_.end();) {
      auto here = each++;
      if (here->id != id)
        continue;
      isFound = true;
      ++state_->cancelled;
      finish(here, FinishReason::Cancelled);
    }
    return isFound;
  }

  bool isIdle() const override { return active_.empty(); }

  Status step() override {
    if (int micros = state_->isHeld ? 500 : state_->stepMicros.load())
      std::this_thread::sleep_for(std::chrono::microseconds(micros));
    ++state_->steps;
    if (state_->failsNext.exchange(false))
      return Status::internal("the fake engine was told to fail");
    if (state_->isHeld)
      return Status::ok();
    for (int i = 0; i < state_->tokensPerStep; ++i)
      for (auto each = active_.begin(); each != active_.end();)
        produce(each++);
    return Status::ok();
  }

  EngineMetrics metrics() const override {
    EngineMetrics metrics;
    metrics.running = std::int64_t(active_.size());
    metrics.kvBlocks = 100;
    metrics.kvBlocksUsed = std::int64_t(active_.size());
    return metrics;
  }

private:
  struct Active {
    RequestId id = 0;
    std::int32_t copy = 0;
    TokenRequest request;
    EngineCore::OnFinish onFinish;
    std::vector<std::int32_t> tokens;
    bool isScored = false;
    std::optional<Choice> ending;
  };
  using Iterator = std::list<Active>::iterator;

  void finish(Iterator which, FinishReason reason) {
    Active done = std::move(*which);
    active_.erase(which);
    state_->active = int(active_.size());
    ++state_->finished;
    RequestOutcome outcome;
    outcome.id = done.id;
    outcome.copy = done.copy;
    outcome.reason = reason;
    outcome.promptTokens = std::int32_t(done.request.prompt.size());
    outcome.tokens = std::move(done.tokens);
    outcome.ending = std::move(done.ending);
    done.onFinish(outcome);
  }

  Choice choiceOf(std::int32_t token, std::int32_t logprobs) const {
    Choice choice;
    choice.token = token;
    choice.logprob = -0.5;
    for (std::int32_t i = 0; i < logprobs; ++i)
      choice.top.push_back({i == 0 ? token : 'A' + i, -0.5 - i});
    return choice;
  }

  void produce(Iterator each) {
    TokenRequest &request = each->request;
    if (!each->isScored && request.onPromptToken && each->copy == 0)
      for (std::size_t i = 1; i < request.prompt.size(); ++i)
        request.onPromptToken(
            std::int32_t(i),
            choiceOf(request.prompt[i], request.sampling.logprobs));
    each->isScored = true;
    std::int64_t most = card_.context - std::int64_t(request.prompt.size());
    if (request.maxTokens >= 0)
      most = std::min(most, request.maxTokens);
    if (std::int64_t(each->tokens.size()) >= most)
      return finish(each, FinishReason::Length);
    auto token = std::int32_t('a' + each->tokens.size() % 26);
    if (std::find(request.stopIds.begin(), request.stopIds.end(), token) !=
        request.stopIds.end()) {
      each->ending = choiceOf(token, request.sampling.logprobs);
      return finish(each, FinishReason::Stop);
    }
    each->tokens.push_back(token);
    if (!request.onToken(each->copy,
                         choiceOf(token, request.sampling.logprobs)))
      return finish(each, FinishReason::Stop);
    if (std::int64_t(each->tokens.size()) >= most)
      finish(each, FinishReason::Length);
  }

  std::shared_ptr<FakeEngineState> state_;
  std::vector<std::uint8_t> tables_;
  Tokenizer tokenizer_;
  serve::ModelCard card_;
  std::list<Active> active_;
  RequestId nextId_ = 1;
};

} // namespace ingot::test
