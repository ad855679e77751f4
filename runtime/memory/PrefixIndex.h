// What the blocks of past and present sequences hold, so that a later sequence
// that begins alike can use them: a tree with one node for each whole block of
// tokens. A node is found by a hash chained from its parent's and is taken
// only after parent and tokens have been compared, so a collision shares
// nothing. Knows neither bytes nor references; KvCache owns those.
//
//   scope "tenant" ── tokens 0..31 ── 32..63 ── 64..95
//                         │              └───── 64..95' (another continuation)
//                         └ blocks {group 0: 17, group 1: none, it slid out}
//
// A node stays while it has a block in some group, a child, or a sequence that
// stands on it: the way to a block is always complete, even where a window has
// let go of the blocks along it.
#pragma once

#include "runtime/memory/BlockAllocator.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace ingot {

// Cached state is shared only inside one scope.
struct PrefixScope {
  std::string salt; // of a tenant
  // Whatever else than tokens the state depends on, such as rotary bases that
  // change with the length of the sequence.
  std::string variant;
  bool operator==(const PrefixScope &) const = default;
};

class PrefixIndex {
public:
  class Node {
    friend class PrefixIndex;
    Node *parent = nullptr;
    std::uint64_t hash = 0;
    PrefixScope scope;                // of a root
    std::vector<std::int32_t> tokens; // of any other
    std::vector<BlockId> blocks;      // one a group; -1: none
    std::int32_t children = 0;
    std::int32_t pins = 0;

  public:
    BlockId block(std::size_t group) const { return blocks[group]; }
  };

  // `hashMask` weakens the hash in tests: 0 makes everything collide.
  PrefixIndex(std::vector<std::int32_t> numBlocks, std::uint64_t hashMask);

  const Node *findRoot(const PrefixScope &scope) const;
  const Node *findChild(const Node &parent,
                        std::span<const std::int32_t> tokens) const;

  // Found or made, and pinned: a pin holds a node until unpin().
  Node *pinRoot(const PrefixScope &scope);
  Node *pinChild(Node &parent, std::span<const std::int32_t> tokens);
  void pin(Node &node) { ++node.pins; }
  void unpin(Node &node);

  // The block holds the node's tokens from now on, unless another does.
  void publish(Node &node, std::size_t group, BlockId block);
  bool isPublished(std::size_t group, BlockId block) const {
    return owners_[group][block] != nullptr;
  }
  // The block's contents are about to go.
  void forget(std::size_t group, BlockId block);

  std::size_t numNodes() const { return nodes_.size(); }

private:
  Node *lookUp(std::uint64_t hash, const Node *parent, const PrefixScope &scope,
               std::span<const std::int32_t> tokens) const;
  Node *make(std::uint64_t hash, Node *parent);
  void prune(Node *node);
  std::uint64_t hashRoot(const PrefixScope &scope) const;
  std::uint64_t hashChild(const Node &parent,
                          std::span<const std::int32_t> tokens) const;

  std::unordered_multimap<std::uint64_t, std::unique_ptr<Node>> nodes_;
  std::vector<std::vector<Node *>> owners_; // [group][block]
  std::uint64_t hashMask_;
};

} // namespace ingot
