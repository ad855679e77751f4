// What the fuzz targets do with a tokenizer that was not refused.
#pragma once

#include "runtime/text/IncrementalDetokenizer.h"
#include "runtime/text/Tokenizer.h"
#include "runtime/text/Utf8.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ingot::test {

inline void exercise(Result<std::vector<uint8_t>> tables) {
  if (!tables)
    return;
  auto tokenizer = Tokenizer::open(*tables);
  if (!tokenizer)
    return;
  const std::string text =
      "Hello  world, don't <s>\xC3\xA9\xCC\x81\r\n\t12 ab##<0x0A>"
      "\xE2\x96\x81 \xF0\x9F\x99\x82\xE4\xB8\x80 aaaaaaaaaaaaaaaaaaaaaaaaaaaa";
  const TextRange user{5, 20};
  EncodeOptions options;
  options.plainRanges = {&user, 1};
  auto ids = tokenizer->encode(text, options);
  if (!ids)
    return;
  IncrementalDetokenizer detokenizer(*tokenizer, false);
  std::string streamed;
  for (int32_t id : *ids) {
    if (id < 0 || id >= tokenizer->vocabSize())
      __builtin_trap();
    auto delta = detokenizer.push(id);
    if (!delta)
      __builtin_trap();
    streamed += *delta;
  }
  streamed += detokenizer.flush();
  auto decoded = tokenizer->decode(*ids, false);
  if (!decoded || *decoded != streamed ||
      findInvalidUtf8(streamed) != std::string_view::npos)
    __builtin_trap();
}

} // namespace ingot::test
