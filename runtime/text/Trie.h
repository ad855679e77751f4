// Strings to numbers, walked byte by byte: a double array as the compiler lays
// it out (compiler/frontend/tokenizer/TrieBuilder) and the runtime maps it. Each
// step checks its own bounds, so that verify has little left to say.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace ingot {

// Mirrors tables::TrieNode (asserted in TokenizerTables.cpp).
struct TrieNode {
  int32_t base = 0;   // children are at base ^ byte
  int32_t check = -1; // the parent; -1 where the slot is free
  int32_t value = -1; // of the key that ends here
};

class Trie {
public:
  static constexpr int32_t Root = 0;
  static constexpr int32_t None = -1;

  Trie() = default;
  explicit Trie(std::span<const TrieNode> nodes) : nodes_(nodes) {}

  bool empty() const { return nodes_.empty(); }

  // The node that `node` leads to by a byte, or None.
  int32_t step(int32_t node, char byte) const {
    uint32_t next =
        static_cast<uint32_t>(nodes_[node].base) ^ static_cast<uint8_t>(byte);
    return next < nodes_.size() && nodes_[next].check == node
               ? static_cast<int32_t>(next)
               : None;
  }
  int32_t value(int32_t node) const { return nodes_[node].value; }

  // The node that a whole string leads to from the root, or None.
  int32_t walk(std::string_view text) const {
    int32_t node = empty() ? None : Root;
    for (size_t i = 0; i < text.size() && node != None; ++i)
      node = step(node, text[i]);
    return node;
  }

  // Every value must be below `limit`.
  Status verify(int64_t limit) const;

private:
  std::span<const TrieNode> nodes_;
};

} // namespace ingot
