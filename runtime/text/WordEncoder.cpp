#include "runtime/text/WordEncoder.h"

#include <algorithm>

namespace ingot {
namespace {

size_t countCharacters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<uint8_t>(c) & 0xC0) != 0x80;
      }));
}

bool giveUnknown(const ModelTables &tables, std::vector<int32_t> &ids) {
  ids.assign(1, tables.unknownId);
  return tables.unknownId >= 0;
}

} // namespace

WordPieceEncoder::WordPieceEncoder(const ModelTables &tables)
    : tables_(tables), inside_(tables.trie.walk(tables.continuingPrefix)) {}

bool WordPieceEncoder::cut(std::string_view word,
                           std::vector<int32_t> &ids) const {
  for (size_t begin = 0; begin < word.size();) {
    int32_t node = begin ? inside_ : Trie::Root, best = -1;
    size_t bestEnd = begin;
    for (size_t end = begin; end < word.size() && node != Trie::None;) {
      node = tables_.trie.step(node, word[end++]);
      if (node != Trie::None && tables_.trie.value(node) >= 0) {
        best = tables_.trie.value(node);
        bestEnd = end;
      }
    }
    if (best < 0)
      return false;
    ids.push_back(best);
    begin = bestEnd;
  }
  return true;
}

bool WordPieceEncoder::encode(std::string_view word,
                              std::vector<int32_t> &ids) const {
  ids.clear();
  if (word.size() > tables_.longestWord &&
      countCharacters(word) > tables_.longestWord)
    return giveUnknown(tables_, ids);
  return cut(word, ids) || giveUnknown(tables_, ids);
}

bool WordLevelEncoder::encode(std::string_view word,
                              std::vector<int32_t> &ids) const {
  int32_t id = tables_.find(word);
  if (id < 0)
    return giveUnknown(tables_, ids);
  ids.assign(1, id);
  return true;
}

} // namespace ingot
