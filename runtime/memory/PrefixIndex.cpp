#include "runtime/memory/PrefixIndex.h"

#include <algorithm>
#include <cassert>
#include <xxhash.h>

namespace ingot {

PrefixIndex::PrefixIndex(std::vector<std::int32_t> numBlocks,
                         std::uint64_t hashMask)
    : hashMask_(hashMask) {
  for (std::int32_t count : numBlocks)
    owners_.emplace_back(count, nullptr);
}

std::uint64_t PrefixIndex::hashRoot(const PrefixScope &scope) const {
  std::uint64_t salt = XXH3_64bits(scope.salt.data(), scope.salt.size());
  return hashMask_ &
         XXH3_64bits_withSeed(scope.variant.data(), scope.variant.size(), salt);
}

std::uint64_t
PrefixIndex::hashChild(const Node &parent,
                       std::span<const std::int32_t> tokens) const {
  return hashMask_ &
         XXH3_64bits_withSeed(tokens.data(), tokens.size_bytes(), parent.hash);
}

PrefixIndex::Node *
PrefixIndex::lookUp(std::uint64_t hash, const Node *parent,
                    const PrefixScope &scope,
                    std::span<const std::int32_t> tokens) const {
  auto [first, last] = nodes_.equal_range(hash);
  for (; first != last; ++first) {
    Node &node = *first->second;
    if (node.parent == parent && node.scope == scope &&
        std::equal(node.tokens.begin(), node.tokens.end(), tokens.begin(),
                   tokens.end()))
      return &node;
  }
  return nullptr;
}

const PrefixIndex::Node *PrefixIndex::findRoot(const PrefixScope &scope) const {
  return lookUp(hashRoot(scope), nullptr, scope, {});
}

const PrefixIndex::Node *
PrefixIndex::findChild(const Node &parent,
                       std::span<const std::int32_t> tokens) const {
  return lookUp(hashChild(parent, tokens), &parent, {}, tokens);
}

PrefixIndex::Node *PrefixIndex::make(std::uint64_t hash, Node *parent) {
  auto node = std::make_unique<Node>();
  node->parent = parent;
  node->hash = hash;
  node->blocks.assign(owners_.size(), -1);
  if (parent)
    ++parent->children;
  return nodes_.emplace(hash, std::move(node))->second.get();
}

PrefixIndex::Node *PrefixIndex::pinRoot(const PrefixScope &scope) {
  std::uint64_t hash = hashRoot(scope);
  Node *node = lookUp(hash, nullptr, scope, {});
  if (!node) {
    node = make(hash, nullptr);
    node->scope = scope;
  }
  ++node->pins;
  return node;
}

PrefixIndex::Node *PrefixIndex::pinChild(Node &parent,
                                         std::span<const std::int32_t> tokens) {
  std::uint64_t hash = hashChild(parent, tokens);
  Node *node = lookUp(hash, &parent, {}, tokens);
  if (!node) {
    node = make(hash, &parent);
    node->tokens.assign(tokens.begin(), tokens.end());
  }
  ++node->pins;
  return node;
}

void PrefixIndex::unpin(Node &node) {
  assert(node.pins > 0 && "unpin without a pin");
  --node.pins;
  prune(&node);
}

void PrefixIndex::publish(Node &node, std::size_t group, BlockId block) {
  if (node.blocks[group] >= 0 || owners_[group][block])
    return;
  node.blocks[group] = block;
  owners_[group][block] = &node;
}

void PrefixIndex::forget(std::size_t group, BlockId block) {
  Node *node = owners_[group][block];
  if (!node)
    return;
  owners_[group][block] = nullptr;
  node->blocks[group] = -1;
  prune(node);
}

// Removes the node and those above it that nothing needs any more.
void PrefixIndex::prune(Node *node) {
  while (node && node->pins == 0 && node->children == 0 &&
         std::all_of(node->blocks.begin(), node->blocks.end(),
                     [](BlockId block) { return block < 0; })) {
    Node *parent = node->parent;
    if (parent)
      --parent->children;
    auto [first, last] = nodes_.equal_range(node->hash);
    while (first != last && first->second.get() != node)
      ++first;
    nodes_.erase(first);
    node = parent;
  }
}

} // namespace ingot
