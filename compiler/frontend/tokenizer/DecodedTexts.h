// How each token reads in decoded text: the decoder of a tokenizer, run over
// single tokens when the tokenizer is compiled.
#pragma once

#include "compiler/frontend/tokenizer/TokenizerSpec.h"

#include <optional>
#include <string>

namespace ingot {

class DecodedTexts {
public:
  static Result<DecodedTexts> create(const DecoderSpec &decoder);

  // Tokens that read otherwise at the start (end) of a text.
  bool differsAtStart() const { return differsAtStart_; }
  bool differsAtEnd() const { return differsAtEnd_; }

  struct Text {
    std::string bytes;
    bool isByte = false; // of byte fallback
  };
  Result<Text> read(const std::string &spelling, bool first, bool last);

private:
  struct Step {
    DecoderStep what;
    std::optional<SplitRegex> regex;
  };
  std::vector<Step> steps_;
  std::unique_ptr<RegexScratch> scratch_;
  bool joinWithSpaces_ = false;
  bool differsAtStart_ = false, differsAtEnd_ = false;
};

// The byte of <0x0A>; nothing if the spelling is another.
std::optional<uint8_t> byteOfToken(std::string_view spelling);

} // namespace ingot
