// What the server needs of an encoder: facts and a tokenizer that any thread may
// use, and steps that one thread drives. An interface, so that the protocol is
// tested without weights.
#pragma once

#include "runtime/engine/EncoderCore.h"
#include "runtime/serve/ServedModel.h"

#include <cstddef>
#include <span>
#include <vector>

namespace ingot::serve {

class ServedEncoder {
public:
  virtual ~ServedEncoder() = default;

  // From any thread. The card's `context` is the longest text.
  virtual const ModelCard &card() const = 0;
  virtual Status checkFile() const { return Status::ok(); } // as a model's
  virtual const Tokenizer &tokenizer() const = 0;
  virtual std::int32_t dimensions() const = 0;

  // From the encoder's thread; as EncoderCore::step().
  virtual Result<std::size_t>
  step(std::span<const std::vector<std::int32_t>> texts,
       std::vector<Result<Embedding>> &embeddings) = 0;
};

} // namespace ingot::serve
