// The Unigram model over the mapped tables: of all ways to cut a text into
// tokens, the one with the greatest sum of scores; of equals, the one whose last
// token begins first. A character that no token covers costs the unknown score.
#pragma once

#include "runtime/text/ModelTables.h"

#include <vector>

namespace ingot {

class UnigramScratch {
  friend class UnigramEncoder;

  // The best way to end at a place of the text.
  struct Best {
    double score;
    int32_t begin; // of its last token; -1: no way ends here
    int32_t id;
  };
  std::vector<Best> best_;
};

class UnigramEncoder {
public:
  explicit UnigramEncoder(const ModelTables &tables) : tables_(tables) {}

  // Sets `ids` to those of `text`, which is valid UTF-8, not empty and under
  // 2 GiB; false if a character is unknown and there is no token for that.
  bool encode(std::string_view text, UnigramScratch &scratch,
              std::vector<int32_t> &ids) const;

private:
  template <typename Sum>
  bool findBest(std::string_view text, UnigramScratch &scratch) const;

  const ModelTables &tables_;
};

} // namespace ingot
