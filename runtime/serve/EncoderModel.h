// An encoder on an artifact, as a model to serve.
#pragma once

#include "runtime/engine/Encoder.h"
#include "runtime/serve/ServedEncoder.h"

#include <memory>
#include <string>

namespace ingot::serve {

class EncoderModel : public ServedEncoder {
public:
  // `id`: what requests call it; empty: the model's own name. Refuses an
  // artifact without a tokenizer.
  static Result<std::unique_ptr<ServedEncoder>>
  create(std::unique_ptr<Encoder> encoder, std::string id);

  const ModelCard &card() const override { return card_; }
  Status checkFile() const override;
  const Tokenizer &tokenizer() const override { return *encoder_->tokenizer(); }
  std::int32_t dimensions() const override {
    return std::int32_t(encoder_->model().hidden());
  }
  Result<std::size_t>
  step(std::span<const std::vector<std::int32_t>> texts,
       std::vector<Result<Embedding>> &embeddings) override {
    return encoder_->core().step(texts, embeddings);
  }

private:
  explicit EncoderModel(std::unique_ptr<Encoder> encoder)
      : encoder_(std::move(encoder)) {}

  std::unique_ptr<Encoder> encoder_;
  ModelCard card_;
};

} // namespace ingot::serve
