// Lays out the double array that runtime/text/Trie.h walks.
#pragma once

#include "runtime/support/Status.h"
#include "runtime/text/Trie.h"

#include <string_view>
#include <utility>
#include <vector>

namespace ingot {

// A key and its value, which is not negative. Keys must be neither empty nor
// equal; they come in any order, and the same set gives the same array.
using TrieEntry = std::pair<std::string_view, int32_t>;

Result<std::vector<TrieNode>> buildTrie(std::vector<TrieEntry> entries);

} // namespace ingot
