// The tokenizer of an artifact: encodes and decodes over compiled tables that
// stay where they are mapped. Encoding is const and may run on any number of
// threads at once; each call borrows its scratch memory and word cache.
//
// What text becomes:
//   1. added tokens that match text as it came are cut out
//   2. what lies between is normalised; added tokens that match normalised text
//      are cut out
//   3. the pre-tokenizer cuts the rest into pieces, the model encodes each
//   4. asked for special tokens, the template's ids go around the whole
#pragma once

#include "runtime/support/Status.h"
#include "runtime/text/SplitRegex.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

struct DecodeRules;

struct EncodeOptions {
  // Put the ids of the template (such as BOS) around the text. A rendered chat
  // prompt writes its own: encode it with false.
  bool addSpecialTokens = true;

  // Bytes of the text that came from a user: no special token may take any of
  // them. Sorted, not overlapping.
  std::span<const TextRange> plainRanges = {};

  // Bars added tokens that are not special in plain ranges too, all but runs of
  // blanks. They are not control tokens to the tokenizer, though some
  // (<tool_call>, <think>) act like them.
  bool plainRangesBarAllAdded = false;
};

class Tokenizer {
public:
  // Verifies the tables and refers to them from then on: they must outlive the
  // tokenizer and begin at a multiple of 8.
  static Result<Tokenizer> open(std::span<const uint8_t> tables);

  Tokenizer(Tokenizer &&) noexcept;
  Tokenizer &operator=(Tokenizer &&) noexcept;
  ~Tokenizer();

  // An error if `text` is not valid UTF-8.
  Result<std::vector<int32_t>> encode(std::string_view text,
                                      const EncodeOptions &options = {}) const;

  // Broken UTF-8 comes out as U+FFFD; an id outside the vocabulary is an error.
  Result<std::string> decode(std::span<const int32_t> ids,
                             bool skipSpecial = true) const;

  // Ids are 0 .. vocabSize()-1; some may have no token (isMissing).
  int32_t vocabSize() const;

  // The bytes that a token adds to decoded text. Need not be whole characters.
  Result<std::string_view> tokenBytes(int32_t id) const;

  // A token's spelling in the vocabulary ("Ġthe", "▁the", "<|im_end|>"), which
  // is what templates know it by; idOf is the way back.
  Result<std::string> spelling(int32_t id) const;
  std::optional<int32_t> idOf(std::string_view token) const;

  // Of an id outside the vocabulary: not special, missing.
  bool isSpecial(int32_t id) const;
  bool isMissing(int32_t id) const;

  std::optional<int32_t> bosId() const;
  std::optional<int32_t> eosId() const;
  std::optional<int32_t> padId() const;
  std::optional<int32_t> unknownId() const;
  // Every id that the tokenizer knows to end a generation.
  std::span<const int32_t> endIds() const;
  // What addSpecialTokens puts before and after a text.
  std::span<const int32_t> prefixIds() const;
  std::span<const int32_t> suffixIds() const;

  // Whether ids begin with those of prefixIds twice: a text that already began
  // with them was encoded as if it did not.
  bool repeatsPrefix(std::span<const int32_t> ids) const;

  // For IncrementalDetokenizer: what decoding does beyond joining tokenBytes.
  DecodeRules decodeRules() const;

private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace ingot
