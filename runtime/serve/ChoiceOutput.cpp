#include "runtime/serve/ChoiceOutput.h"

namespace ingot::serve {

std::size_t countCharacters(std::string_view utf8) {
  std::size_t count = 0;
  for (char c : utf8)
    count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

Result<ChoiceOutput> ChoiceOutput::create(IncrementalDetokenizer detokenizer,
                                          std::vector<std::string> stops,
                                          bool wantsTokens) {
  INGOT_ASSIGN_OR_RETURN(StopMatcher matcher,
                         StopMatcher::create(std::move(stops)));
  return ChoiceOutput(std::move(detokenizer), std::move(matcher), wantsTokens);
}

void ChoiceOutput::emit(const std::string &text, OutputPiece &piece) {
  piece.text += text;
  emittedBytes_ += text.size();
  while (!held_.empty() && held_.front().start < emittedBytes_) {
    piece.tokens.push_back(std::move(held_.front().scored));
    held_.pop_front();
  }
}

Status ChoiceOutput::push(const Choice &choice, OutputPiece &piece) {
  if (wantsTokens_)
    held_.push_back({{choice.token, choice.logprob, choice.top, producedChars_},
                     producedBytes_});
  INGOT_ASSIGN_OR_RETURN(std::string text, detokenizer_.push(choice.token));
  producedBytes_ += text.size();
  producedChars_ += countCharacters(text);
  emit(matcher_.push(text).text, piece);
  return Status::ok();
}

void ChoiceOutput::finish(OutputPiece &piece) {
  if (stopped()) {
    // What is left begins in the stop string, or after it.
    held_.clear();
    return;
  }
  std::string rest = matcher_.push(detokenizer_.flush()).text;
  bool isStopped = stopped();
  if (!isStopped)
    rest += matcher_.flush();
  emit(rest, piece);
  if (!isStopped)
    for (Held &held : held_)
      piece.tokens.push_back(std::move(held.scored));
  held_.clear();
}

void ChoiceOutput::appendEnding(const Choice &choice,
                                OutputPiece &piece) const {
  if (wantsTokens_ && !stopped())
    piece.tokens.push_back(
        {choice.token, choice.logprob, choice.top, producedChars_});
}

} // namespace ingot::serve
