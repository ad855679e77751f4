#include "runtime/text/IncrementalDetokenizer.h"

#include "runtime/text/Tokenizer.h"
#include "runtime/text/Utf8.h"

namespace ingot {

IncrementalDetokenizer::IncrementalDetokenizer(const Tokenizer &tokenizer,
                                               bool skipSpecial)
    : tokenizer_(&tokenizer), skipSpecial_(skipSpecial),
      stripLeft_(tokenizer.stripRule().count) {}

Result<std::string> IncrementalDetokenizer::push(int32_t id) {
  INGOT_ASSIGN_OR_RETURN(std::string_view bytes, tokenizer_->tokenBytes(id));
  if (skipSpecial_ && tokenizer_->isSpecial(id))
    return std::string();
  if (first_)
    pending_ += tokenizer_->firstTokenBytes(id);
  else
    pending_ += bytes;
  first_ = false;

  // Strip at the start of the whole text. A strip text of several bytes may
  // itself be split over tokens: wait until it is decided.
  std::string_view strip = tokenizer_->stripRule().text;
  while (stripLeft_ > 0) {
    if (pending_.starts_with(strip)) {
      pending_.erase(0, strip.size());
      --stripLeft_;
    } else if (pending_.size() < strip.size() && strip.starts_with(pending_)) {
      return std::string();
    } else {
      stripLeft_ = 0;
    }
  }
  std::string text;
  size_t held = appendValidUtf8(text, pending_);
  pending_.erase(0, pending_.size() - held);
  return text;
}

std::string IncrementalDetokenizer::flush() {
  // Held bytes are a cut character, or whole characters that a strip text of
  // several could have begun with.
  std::string text;
  if (appendValidUtf8(text, pending_) > 0)
    text += ReplacementCharacter;
  pending_.clear();
  first_ = true;
  stripLeft_ = tokenizer_->stripRule().count;
  return text;
}

} // namespace ingot
