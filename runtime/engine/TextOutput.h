// The text of one request as its tokens come: whole characters only, nothing
// of a stop string, the same text whether streamed or not.
#pragma once

#include "runtime/support/Status.h"
#include "runtime/text/IncrementalDetokenizer.h"
#include "runtime/text/StopMatcher.h"

#include <string>
#include <vector>

namespace ingot {

class TextOutput {
public:
  static Result<TextOutput> create(IncrementalDetokenizer detokenizer,
                                   std::vector<std::string> stops);

  // What may be shown after this token.
  Result<std::string> push(std::int32_t token);
  // What was held back, when the generation ends otherwise.
  std::string flush();

  bool stopped() const { return matcher_.stopped(); }
  const std::string &text() const { return text_; }

private:
  TextOutput(IncrementalDetokenizer detokenizer, StopMatcher matcher)
      : detokenizer_(std::move(detokenizer)), matcher_(std::move(matcher)) {}

  IncrementalDetokenizer detokenizer_;
  StopMatcher matcher_;
  std::string text_; // all that was given out
};

} // namespace ingot
