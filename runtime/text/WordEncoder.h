// The two models that look words up. WordPiece: the longest token at each place,
// with a prefix inside a word; a word that does not come out is one unknown
// token. WordLevel: the whole word or unknown.
#pragma once

#include "runtime/text/ModelTables.h"

#include <vector>

namespace ingot {

class WordPieceEncoder {
public:
  explicit WordPieceEncoder(const ModelTables &tables);

  // Sets `ids` to those of `word`, valid UTF-8 and not empty; false if it is
  // unknown and there is no token for that.
  bool encode(std::string_view word, std::vector<int32_t> &ids) const;

private:
  bool cut(std::string_view word, std::vector<int32_t> &ids) const;

  const ModelTables &tables_;
  int32_t inside_; // the trie's node after the prefix, or Trie::None
};

class WordLevelEncoder {
public:
  explicit WordLevelEncoder(const ModelTables &tables) : tables_(tables) {}
  bool encode(std::string_view word, std::vector<int32_t> &ids) const;

private:
  const ModelTables &tables_;
};

} // namespace ingot
