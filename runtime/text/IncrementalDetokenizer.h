// Text from tokens as they come: push returns what can be shown now. Only an
// incomplete character at the end is held back; the pieces put together are
// exactly Tokenizer::decode of all the ids, however they were pushed.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <string>

namespace ingot {

class Tokenizer;

class IncrementalDetokenizer {
public:
  // The tokenizer must outlive this object.
  explicit IncrementalDetokenizer(const Tokenizer &tokenizer,
                                  bool skipSpecial = true);

  // The text that `id` completes; an error if the vocabulary has no such id.
  Result<std::string> push(int32_t id);

  // What was held back: empty, or one U+FFFD for the character that was cut.
  // After it the object is as new.
  std::string flush();

private:
  const Tokenizer *tokenizer_;
  bool skipSpecial_;
  bool first_ = true;
  uint32_t stripLeft_;  // copies of the strip text that may still go
  std::string pending_; // bytes not yet given out
};

} // namespace ingot
