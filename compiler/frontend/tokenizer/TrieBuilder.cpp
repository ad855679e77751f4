// The sorted keys are walked depth first; the children of a node are the
// distinct bytes at its depth. A node's base is the first that puts them all on
// free slots, looked for in the last few blocks of 256.
#include "compiler/frontend/tokenizer/TrieBuilder.h"

#include <algorithm>
#include <limits>
#include <string>

namespace ingot {
namespace {

constexpr size_t BlockSize = 256;
constexpr size_t MaxOpenBlocks = 16;
// A block whose search failed as often is full for all that is to be had.
constexpr int MaxFailures = 64;

class Layout {
public:
  // Slots for children with these labels; the base that leads there.
  int32_t place(const std::vector<uint8_t> &labels) {
    for (size_t i = 0; i < open_.size(); ++i) {
      int32_t base = fit(open_[i].block, labels);
      if (base >= 0)
        return base;
      if (++open_[i].failures > MaxFailures && open_.size() > 1)
        open_.erase(open_.begin() + static_cast<ptrdiff_t>(i--));
    }
    if (open_.size() == MaxOpenBlocks)
      open_.erase(open_.begin());
    open_.push_back({addBlock(), 0});
    return fit(open_.back().block, labels);
  }

  size_t addBlock() {
    used_.resize(used_.size() + BlockSize);
    nodes.resize(nodes.size() + BlockSize);
    return nodes.size() / BlockSize - 1;
  }
  void openFirst() { open_.push_back({addBlock(), 0}); }
  void use(size_t slot) { used_[slot] = true; }

  std::vector<TrieNode> nodes;

private:
  struct Open {
    size_t block;
    int failures;
  };

  int32_t fit(size_t block, const std::vector<uint8_t> &labels) {
    const size_t start = block * BlockSize;
    for (size_t slot = 0; slot < BlockSize; ++slot) {
      if (used_[start + slot])
        continue;
      size_t base = start + (slot ^ labels[0]);
      if (std::all_of(labels.begin(), labels.end(),
                      [&](uint8_t label) { return !used_[base ^ label]; })) {
        for (uint8_t label : labels)
          used_[base ^ label] = true;
        return static_cast<int32_t>(base);
      }
    }
    return -1;
  }

  std::vector<Open> open_;
  std::vector<bool> used_;
};

} // namespace

Result<std::vector<TrieNode>> buildTrie(std::vector<TrieEntry> entries) {
  std::sort(entries.begin(), entries.end());
  size_t numBytes = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].first.empty() || entries[i].second < 0)
      return Status::invalid("trie: an empty key or a negative value");
    if (i && entries[i - 1].first == entries[i].first)
      return Status::invalid("trie: the key \"" +
                             std::string(entries[i].first) +
                             "\" is given twice");
    numBytes += entries[i].first.size();
  }
  // Far below: a block holds at least one node.
  if (numBytes > size_t(std::numeric_limits<int32_t>::max()) / BlockSize)
    return Status::unsupported("trie: keys of " + std::to_string(numBytes) +
                               " bytes");
  Layout layout;
  layout.openFirst();
  layout.use(0);

  // Entries [begin, end) share `depth` bytes, which lead to `node`.
  struct Pending {
    size_t begin, end, depth;
    int32_t node;
  };
  std::vector<Pending> stack{{0, entries.size(), 0, Trie::Root}};
  std::vector<uint8_t> labels;
  while (!stack.empty()) {
    Pending at = stack.back();
    stack.pop_back();
    if (at.begin < at.end && entries[at.begin].first.size() == at.depth) {
      layout.nodes[static_cast<size_t>(at.node)].value =
          entries[at.begin].second;
      ++at.begin;
    }
    if (at.begin == at.end)
      continue;
    labels.clear();
    std::vector<size_t> starts;
    for (size_t i = at.begin; i < at.end; ++i) {
      auto label = static_cast<uint8_t>(entries[i].first[at.depth]);
      if (labels.empty() || labels.back() != label) {
        labels.push_back(label);
        starts.push_back(i);
      }
    }
    starts.push_back(at.end);
    int32_t base = layout.place(labels);
    layout.nodes[static_cast<size_t>(at.node)].base = base;
    for (size_t k = labels.size(); k-- > 0;) {
      int32_t child = base ^ labels[k];
      layout.nodes[static_cast<size_t>(child)].check = at.node;
      stack.push_back({starts[k], starts[k + 1], at.depth + 1, child});
    }
  }
  return std::move(layout.nodes);
}

} // namespace ingot
