#include "runtime/engine/TextOutput.h"

#include <utility>

namespace ingot {

Result<TextOutput> TextOutput::create(IncrementalDetokenizer detokenizer,
                                      std::vector<std::string> stops) {
  INGOT_ASSIGN_OR_RETURN(StopMatcher matcher,
                         StopMatcher::create(std::move(stops)));
  return TextOutput(std::move(detokenizer), std::move(matcher));
}

Result<std::string> TextOutput::push(std::int32_t token) {
  INGOT_ASSIGN_OR_RETURN(std::string piece, detokenizer_.push(token));
  StopMatcher::Output output = matcher_.push(piece);
  text_ += output.text;
  return std::move(output.text);
}

std::string TextOutput::flush() {
  if (matcher_.stopped())
    return {};
  std::string rest = matcher_.push(detokenizer_.flush()).text;
  rest += matcher_.flush();
  text_ += rest;
  return rest;
}

} // namespace ingot
