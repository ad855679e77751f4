#include "runtime/text/IncrementalDetokenizer.h"

#include "runtime/text/Tokenizer.h"
#include "runtime/text/Utf8.h"

#include <algorithm>

namespace ingot {

IncrementalDetokenizer::IncrementalDetokenizer(const Tokenizer &tokenizer,
                                               bool skipSpecial)
    : tokenizer_(&tokenizer), rules_(tokenizer.decodeRules()),
      skipSpecial_(skipSpecial), stripLeft_(rules_.stripCount) {}

void IncrementalDetokenizer::follow(std::span<const int32_t> prompt) {
  for (int32_t id : prompt)
    (void)push(id).isOk();
}

Result<std::string> IncrementalDetokenizer::push(int32_t id) {
  INGOT_ASSIGN_OR_RETURN(std::string_view bytes, tokenizer_->tokenBytes(id));
  if (skipSpecial_ && tokenizer_->isSpecial(id))
    return std::string();
  if (rules_.dropRepeats && id == previous_)
    return std::string();
  previous_ = id;
  if (first_ && !rules_.first.empty())
    bytes = rules_.first[id];
  first_ = false;

  pending_ += restBetween_;
  if (rules_.last.empty()) {
    pending_ += bytes;
  } else {
    // Only what the token is either way can be shown.
    std::string_view last = rules_.last[id];
    size_t common = static_cast<size_t>(
        std::mismatch(bytes.begin(), bytes.end(), last.begin(), last.end())
            .first -
        bytes.begin());
    pending_ += bytes.substr(0, common);
    restBetween_ = bytes.substr(common);
    restAtEnd_ = last.substr(common);
  }
  return emit(/*atEnd=*/false);
}

// A strip text of several bytes may itself be split over tokens: then it is not
// yet decided, and pending_ is left as it is.
void IncrementalDetokenizer::strip() {
  while (stripLeft_ > 0 && pending_.starts_with(rules_.stripText)) {
    pending_.erase(0, rules_.stripText.size());
    --stripLeft_;
  }
  if (!pending_.empty() && !rules_.stripText.starts_with(pending_))
    stripLeft_ = 0;
}

std::string IncrementalDetokenizer::emit(bool atEnd) {
  if (stripLeft_ > 0) {
    strip();
    if (stripLeft_ > 0 && !atEnd)
      return std::string();
  }
  std::string text = std::move(tail_);
  tail_.clear();
  size_t held = appendValidUtf8(text, pending_);
  pending_.erase(0, pending_.size() - held);
  if (atEnd && held > 0) {
    text += ReplacementCharacter;
    pending_.clear();
  }
  size_t end = text.size();
  for (uint32_t n = rules_.stripEndCount;
       n > 0 &&
       std::string_view(text).substr(0, end).ends_with(rules_.stripText);
       --n)
    end -= rules_.stripText.size();
  if (!atEnd)
    tail_ = text.substr(end);
  text.resize(end);
  return text;
}

std::string IncrementalDetokenizer::flush() {
  pending_ += restAtEnd_;
  std::string text = emit(/*atEnd=*/true);
  first_ = true;
  previous_ = -1;
  restBetween_ = restAtEnd_ = {};
  stripLeft_ = rules_.stripCount;
  tail_.clear();
  return text;
}

} // namespace ingot
