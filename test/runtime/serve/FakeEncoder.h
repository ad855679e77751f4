// An encoder without weights: a byte tokenizer, and vectors of a text's length,
// its sum and 0.1. Tests hold its steps, make them fail, and count them.
#pragma once

#include "runtime/serve/ServedEncoder.h"
#include "test/runtime/text/TextTables.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace ingot::test {

// Shared by a test and the encoder that the server owns.
struct FakeEncoderState {
  std::atomic<bool> isHeld{false}; // the next step waits
  std::atomic<bool> failsNext{false};
  std::atomic<int> entered{0}, steps{0}, texts{0};
};

class FakeEncoder : public serve::ServedEncoder {
public:
  FakeEncoder(std::string id, std::shared_ptr<FakeEncoderState> state)
      : state_(std::move(state)), tables_(textTables()),
        tokenizer_(std::move(Tokenizer::open(tables_).value())) {
    card_.id = std::move(id);
    card_.created = 1700000000;
    card_.context = 16;
    card_.vocab = tokenizer_.vocabSize();
    card_.sequences = 4;
    card_.origin = "fake-encoder.ingot";
  }

  static Embedding embeddingOf(const std::vector<std::int32_t> &text) {
    return {float(text.size()),
            float(std::accumulate(text.begin(), text.end(), 0)), 0.1f};
  }

  const serve::ModelCard &card() const override { return card_; }
  const Tokenizer &tokenizer() const override { return tokenizer_; }
  std::int32_t dimensions() const override { return 3; }

  Result<std::size_t>
  step(std::span<const std::vector<std::int32_t>> texts,
       std::vector<Result<Embedding>> &embeddings) override {
    ++state_->entered;
    while (state_->isHeld)
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    ++state_->steps;
    if (state_->failsNext.exchange(false))
      return Status::internal("the fake encoder was told to fail");
    // Never all that it could: the rest must come back.
    std::size_t taken = std::min<std::size_t>(texts.size(), 3);
    for (std::size_t i = 0; i < taken; ++i)
      // An id of its own for what has no vector.
      embeddings.push_back(texts[i].front() == 251
                               ? Result<Embedding>(Status::internal(
                                     "the fake encoder has no vector"))
                               : embeddingOf(texts[i]));
    state_->texts += int(taken);
    return taken;
  }

private:
  std::shared_ptr<FakeEncoderState> state_;
  std::vector<std::uint8_t> tables_;
  Tokenizer tokenizer_;
  serve::ModelCard card_;
};

} // namespace ingot::test
