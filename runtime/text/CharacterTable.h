// A map from characters to small numbers in two stages: 256 characters share a
// block, equal blocks are stored once. Written by the compiler, which knows the
// Unicode version that each part of a tokenizer expects; mapped at run time.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <span>

namespace ingot {

struct CharacterTable {
  static constexpr size_t NumBlocks = 0x110000 >> 8;

  std::span<const uint16_t> blocks;  // NumBlocks
  std::span<const uint16_t> entries; // 256 a block

  uint16_t operator[](uint32_t character) const {
    return entries[size_t(blocks[character >> 8]) * 256 + (character & 255)];
  }

  // Every entry must be below `limit`.
  Status verify(size_t limit) const;
};

} // namespace ingot
