// Text from tokens as they come: push returns what can be shown now. Held back
// is only what a next token may change: an incomplete character at the end, and
// with some decoders an end that reads otherwise where the text goes on. The
// pieces put together are exactly Tokenizer::decode of all the ids.
#pragma once

#include "runtime/support/Status.h"
#include "runtime/text/TokenizerTables.h"

#include <cstdint>
#include <span>
#include <string>

namespace ingot {

class Tokenizer;

class IncrementalDetokenizer {
public:
  // The tokenizer must outlive this object.
  explicit IncrementalDetokenizer(const Tokenizer &tokenizer,
                                  bool skipSpecial = true);

  // Goes on from the text of these tokens: what is pushed next reads as it does
  // behind them, a leading space of the first word included. Of the prompt's text
  // only what was held back comes out. Ids outside the vocabulary read as nothing.
  void follow(std::span<const int32_t> prompt);

  // The text that `id` completes; an error if the vocabulary has no such id.
  Result<std::string> push(int32_t id);

  // What was held back; one U+FFFD for a character that was cut.
  // After it the object is as new.
  std::string flush();

private:
  void strip();
  std::string emit(bool atEnd);

  const Tokenizer *tokenizer_;
  DecodeRules rules_;
  bool skipSpecial_;
  bool first_ = true;
  int32_t previous_ = -1; // for dropRepeats
  uint32_t stripLeft_;    // copies of the strip text that may still go
  // How the last token goes on if it is not, or is, the last of the text.
  std::string_view restBetween_, restAtEnd_;
  std::string pending_; // bytes not yet given out
  std::string tail_;    // whole characters that may be stripped at the end
};

} // namespace ingot
