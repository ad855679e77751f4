// The double array against a plain map: every key is found, nothing else is.
#include "compiler/frontend/tokenizer/TrieBuilder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

namespace ingot {
namespace {

Result<std::vector<TrieNode>>
build(const std::map<std::string, int32_t> &keys) {
  std::vector<TrieEntry> entries(keys.begin(), keys.end());
  return buildTrie(std::move(entries));
}

int32_t lookUp(const Trie &trie, std::string_view key) {
  int32_t node = trie.walk(key);
  return node == Trie::None ? -1 : trie.value(node);
}

TEST(TrieBuilder, FindsItsKeysAndNoOthers) {
  std::mt19937 random(3);
  auto word = [&](size_t alphabet) {
    std::string text;
    for (size_t n = 1 + random() % 6; n > 0; --n)
      text.push_back(static_cast<char>(random() % alphabet));
    return text;
  };
  for (size_t alphabet : {2u, 5u, 256u})
    for (size_t size : {0u, 1u, 10u, 3000u}) {
      std::map<std::string, int32_t> keys;
      for (size_t i = 0; i < size; ++i)
        keys[word(alphabet)] = static_cast<int32_t>(i);
      auto nodes = build(keys);
      ASSERT_TRUE(nodes.isOk()) << nodes.status().message();
      Trie trie(*nodes);
      EXPECT_TRUE(trie.verify(static_cast<int64_t>(size)).isOk());
      for (const auto &[key, value] : keys)
        EXPECT_EQ(lookUp(trie, key), value);
      for (int i = 0; i < 2000; ++i) {
        std::string key = word(alphabet);
        auto it = keys.find(key);
        EXPECT_EQ(lookUp(trie, key), it == keys.end() ? -1 : it->second);
      }
      auto again = build(keys);
      ASSERT_TRUE(again.isOk());
      EXPECT_TRUE(std::equal(again->begin(), again->end(), nodes->begin(),
                             nodes->end(), [](const auto &a, const auto &b) {
                               return a.base == b.base && a.check == b.check &&
                                      a.value == b.value;
                             }));
    }
}

TEST(TrieBuilder, RefusesWhatIsNoKey) {
  EXPECT_FALSE(buildTrie({{"a", 1}, {"a", 2}}).isOk());
  EXPECT_FALSE(buildTrie({{"", 1}}).isOk());
  EXPECT_FALSE(buildTrie({{"a", -1}}).isOk());
}

// Nodes that point anywhere end a walk, or lead it on inside the array.
TEST(TrieBuilder, DamagedNodes) {
  std::map<std::string, int32_t> keys{{"abc", 0}, {"abd", 1}, {"b", 2}};
  auto built = build(keys);
  ASSERT_TRUE(built.isOk());
  std::mt19937 random(4);
  for (int round = 0; round < 5000; ++round) {
    std::vector<TrieNode> nodes = *built;
    for (int n = 0; n < 3; ++n) {
      TrieNode &node = nodes[random() % 130];
      (random() % 2 ? node.base : node.check) = static_cast<int32_t>(random());
    }
    (void)lookUp(Trie(nodes), "abcabdb");
    nodes[5].value = 3;
    EXPECT_FALSE(Trie(nodes).verify(3).isOk());
  }
}

} // namespace
} // namespace ingot
