#include "compiler/frontend/tokenizer/ScoreMerges.h"

#include "runtime/text/Utf8.h"

#include <algorithm>
#include <cmath>

namespace ingot {

Result<std::vector<MergeSpec>>
mergesOfScores(const std::vector<TokenSpec> &tokens,
               const std::unordered_map<std::string, int32_t> &idOf,
               const std::function<bool(size_t)> &mayResult) {
  std::vector<double> distinct;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (!std::isfinite(tokens[id].score))
      return Status::invalid("the score of token " + std::to_string(id) +
                             ": expected a finite number");
    distinct.push_back(tokens[id].score);
  }
  std::sort(distinct.begin(), distinct.end(), std::greater<>());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::vector<MergeSpec> merges;
  for (size_t id = 0; id < tokens.size(); ++id) {
    const std::string &text = tokens[id].spelling;
    if (!mayResult(id) || text.empty())
      continue;
    if (text.size() > LongestMergedToken)
      return Status::unsupported(
          "token " + std::to_string(id) + ": " + std::to_string(text.size()) +
          " bytes, expected at most " + std::to_string(LongestMergedToken));
    auto rank = static_cast<uint32_t>(
        std::lower_bound(distinct.begin(), distinct.end(), tokens[id].score,
                         std::greater<>()) -
        distinct.begin());
    for (size_t cut = utf8Length(text[0]); cut < text.size();
         cut += utf8Length(text[cut])) {
      auto left = idOf.find(text.substr(0, cut));
      auto right = idOf.find(text.substr(cut));
      if (left != idOf.end() && right != idOf.end())
        merges.push_back(
            {left->second, right->second, static_cast<int32_t>(id), rank});
    }
  }
  return merges;
}

} // namespace ingot
