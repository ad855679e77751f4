// The output of one choice as its tokens come: whole characters, nothing of a
// stop string, and each token's log-probabilities together with its text, so
// that what is sent piece by piece adds up to what is sent at once.
#pragma once

#include "runtime/sample/Sampler.h"
#include "runtime/support/Status.h"
#include "runtime/text/IncrementalDetokenizer.h"
#include "runtime/text/StopMatcher.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace ingot::serve {

// A token with its log-probabilities. A prompt's first token has none.
struct ScoredToken {
  std::int32_t token = 0;
  std::optional<double> logprob;
  std::vector<TokenLogprob> top;
  std::size_t offset = 0; // characters of text before it
};

struct OutputPiece {
  std::string text;
  std::vector<ScoredToken> tokens; // where log-probabilities are wanted
  bool isEmpty() const { return text.empty() && tokens.empty(); }
};

class ChoiceOutput {
public:
  // The detokenizer stands where the text begins: at the start of a text, or
  // behind the prompt that it goes on from.
  static Result<ChoiceOutput> create(IncrementalDetokenizer detokenizer,
                                     std::vector<std::string> stops,
                                     bool wantsTokens);

  // Appends what may be shown after this token.
  Status push(const Choice &choice, OutputPiece &piece);
  // Appends what was held back, when the generation ended otherwise.
  void finish(OutputPiece &piece);
  // After it: the token that ended the output, which has no text.
  void appendEnding(const Choice &choice, OutputPiece &piece) const;

  bool stopped() const { return matcher_.stopped(); }

private:
  struct Held {
    ScoredToken scored;
    std::size_t start = 0; // bytes of text before it
  };
  ChoiceOutput(IncrementalDetokenizer detokenizer, StopMatcher matcher,
               bool wantsTokens)
      : detokenizer_(std::move(detokenizer)), matcher_(std::move(matcher)),
        wantsTokens_(wantsTokens) {}
  void emit(const std::string &text, OutputPiece &piece);

  IncrementalDetokenizer detokenizer_;
  StopMatcher matcher_;
  bool wantsTokens_;
  std::size_t producedBytes_ = 0, producedChars_ = 0; // by the detokenizer
  std::size_t emittedBytes_ = 0;
  std::deque<Held> held_; // tokens whose text is not out yet
};

std::size_t countCharacters(std::string_view utf8);

} // namespace ingot::serve
