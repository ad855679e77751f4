// 1. Forwards: at each character, try every token that begins there.
// 2. Backwards: collect the tokens of the best way; unknown characters that
//    touch are one, spelled in byte tokens where the vocabulary has them.
#include "runtime/text/UnigramEncoder.h"

#include "runtime/text/Utf8.h"

#include <algorithm>

namespace ingot {

template <typename Sum>
bool UnigramEncoder::findBest(std::string_view text,
                              UnigramScratch &scratch) const {
  auto &best = scratch.best_;
  best.assign(text.size() + 1, {0, -1, -1});
  const Trie &trie = tables_.trie;
  const Sum unknownScore = static_cast<Sum>(tables_.unknownScore);
  for (size_t begin = 0; begin < text.size();) {
    const Sum before = static_cast<Sum>(best[begin].score);
    const size_t length = utf8Length(text[begin]);
    bool covered = false;
    auto offer = [&](size_t end, Sum score, int32_t id) {
      auto &way = best[end];
      Sum sum = score + before;
      if (way.begin < 0 || sum > static_cast<Sum>(way.score))
        way = {static_cast<double>(sum), static_cast<int32_t>(begin), id};
    };
    int32_t node = Trie::Root;
    for (size_t end = begin; end < text.size();) {
      node = trie.step(node, text[end++]);
      if (node == Trie::None)
        break;
      int32_t id = trie.value(node);
      if (id < 0)
        continue;
      offer(end, static_cast<Sum>(tables_.scores[static_cast<size_t>(id)]), id);
      covered |= end == begin + length;
    }
    if (!covered) {
      if (tables_.unknownId < 0)
        return false;
      offer(begin + length, unknownScore, tables_.unknownId);
    }
    begin += length;
  }
  return true;
}

bool UnigramEncoder::encode(std::string_view text, UnigramScratch &scratch,
                            std::vector<int32_t> &ids) const {
  bool found = tables_.singlePrecision ? findBest<float>(text, scratch)
                                       : findBest<double>(text, scratch);
  if (!found)
    return false;
  // Backwards, and turned round at the end; the bytes of an unknown stretch are
  // turned round twice.
  ids.clear();
  const auto &best = scratch.best_;
  for (size_t end = text.size(); end > 0;) {
    const auto &way = best[end];
    size_t begin = static_cast<size_t>(way.begin);
    if (way.id != tables_.unknownId) {
      ids.push_back(way.id);
      end = begin;
      continue;
    }
    while (begin > 0 && best[begin].id == tables_.unknownId)
      begin = static_cast<size_t>(best[begin].begin);
    std::string_view unknown = text.substr(begin, end - begin);
    size_t first = ids.size();
    if (int32_t id = tables_.find(unknown); id >= 0)
      ids.push_back(id);
    else if (tables_.spellInBytes(unknown, ids))
      std::reverse(ids.begin() + static_cast<ptrdiff_t>(first), ids.end());
    else
      ids.push_back(tables_.unknownId);
    end = begin;
  }
  std::reverse(ids.begin(), ids.end());
  return true;
}

} // namespace ingot
