// The blob: a little-endian u32, the size of the trie in bytes; the trie's units
// of four bytes; then the texts, each ended by a zero byte. The values of the
// trie are offsets of texts.
//   unit:  bits 0-7 and 31  the label; bit 8  a value hangs on the node
//          bit 9, 10-30     the offset to the children, in units or in 256 units
//   a value's own unit:      the value in bits 0-30
#include "compiler/frontend/tokenizer/PrecompiledCharsmap.h"

#include "compiler/frontend/tokenizer/TrieBuilder.h"
#include "runtime/text/Utf8.h"

#include <cstring>
#include <map>
#include <set>

namespace ingot {
namespace {

constexpr size_t MaxBlobSize = 64 << 20;
// Rules are a few characters long. A trie that leads on further, or to more
// nodes than it has units, runs in a circle.
constexpr size_t LongestKey = 256;

class DartsReader {
public:
  explicit DartsReader(std::string_view units) : units_(units) {}

  Status read(std::map<std::string, uint32_t> &keys) {
    if (units_.size() < 4)
      return Status::invalid("precompiled_charsmap: the trie is empty");
    std::string key;
    return visit(offset(unit(0)), key, keys);
  }

private:
  uint32_t unit(size_t i) const {
    uint32_t value;
    std::memcpy(&value, units_.data() + i * 4, 4);
    return value;
  }
  static uint32_t offset(uint32_t unit) {
    return (unit >> 10) << ((unit & (1u << 9)) >> 6);
  }

  // `base`: where the children of the node that `key` leads to lie.
  Status visit(size_t base, std::string &key,
               std::map<std::string, uint32_t> &keys) {
    if (key.size() > LongestKey || ++visited_ > units_.size() / 4)
      return Status::invalid("precompiled_charsmap: the trie runs in a circle");
    for (uint32_t label = 1; label < 256; ++label) {
      size_t child = base ^ label;
      if (child >= units_.size() / 4)
        continue;
      uint32_t value = unit(child);
      if ((value & ((1u << 31) | 0xFF)) != label)
        continue;
      key.push_back(static_cast<char>(label));
      size_t next = child ^ offset(value);
      if (value & (1u << 8)) {
        if (next >= units_.size() / 4)
          return Status::invalid(
              "precompiled_charsmap: a value lies outside the trie");
        keys.emplace(key, unit(next) & 0x7FFFFFFF);
      }
      INGOT_RETURN_IF_ERROR(visit(next, key, keys));
      key.pop_back();
    }
    return Status::ok();
  }

  std::string_view units_;
  size_t visited_ = 0;
};

struct StepData {
  std::vector<TrieNode> trie;
};

} // namespace

Result<NormalizerStep>
readPrecompiledCharsmap(std::string_view blob,
                        const std::vector<std::string> &kept) {
  auto bad = [](const std::string &what) {
    return Status::invalid("precompiled_charsmap: " + what);
  };
  std::map<std::string, uint32_t> keys;
  std::string_view texts;
  if (!blob.empty()) {
    if (blob.size() < 4 || blob.size() > MaxBlobSize)
      return bad(std::to_string(blob.size()) + " bytes, expected 4 to " +
                 std::to_string(MaxBlobSize));
    uint32_t trieSize;
    std::memcpy(&trieSize, blob.data(), 4);
    if (trieSize % 4 != 0 || trieSize > blob.size() - 4)
      return bad("a trie of " + std::to_string(trieSize) + " bytes in " +
                 std::to_string(blob.size()));
    texts = blob.substr(4 + trieSize);
    INGOT_RETURN_IF_ERROR(DartsReader(blob.substr(4, trieSize)).read(keys));
  }

  NormalizerStep step{NormalizerKind::Precompiled};
  std::map<std::string, int32_t> values;
  std::vector<TrieEntry> entries;
  auto add = [&](const std::string &key, std::string text) {
    auto [it, isNew] = values.emplace(std::move(text),
                                      static_cast<int32_t>(step.texts.size()));
    if (isNew)
      step.texts.push_back(it->first);
    entries.emplace_back(key, it->second);
  };
  const std::set<std::string> isKept(kept.begin(), kept.end());
  for (const std::string &text : isKept)
    keys[text] = 0;
  for (const auto &[key, offset] : keys) {
    if (isKept.contains(key)) {
      add(key, key);
      continue;
    }
    if (offset >= texts.size())
      return bad("a text at " + std::to_string(offset) + " of " +
                 std::to_string(texts.size()) + " bytes");
    std::string_view text = texts.substr(offset);
    text = text.substr(0, text.find('\0'));
    if (findInvalidUtf8(key) != std::string_view::npos ||
        findInvalidUtf8(text) != std::string_view::npos)
      return bad("a rule is not valid UTF-8");
    add(key, std::string(text));
  }
  auto data = std::make_shared<StepData>();
  INGOT_ASSIGN_OR_RETURN(data->trie, buildTrie(std::move(entries)));
  step.trie = data->trie;
  step.owner = data;
  return step;
}

Result<std::string> decodeBase64(std::string_view text) {
  auto valueOf = [](char c) {
    if (c >= 'A' && c <= 'Z')
      return c - 'A';
    if (c >= 'a' && c <= 'z')
      return c - 'a' + 26;
    if (c >= '0' && c <= '9')
      return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
  };
  while (text.ends_with('='))
    text.remove_suffix(1);
  std::string out;
  uint32_t bits = 0;
  int numBits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    int value = valueOf(text[i]);
    if (value < 0)
      return Status::invalid("base64: byte " + std::to_string(i) +
                             " is not of its alphabet");
    bits = bits << 6 | static_cast<uint32_t>(value);
    numBits += 6;
    if (numBits >= 8) {
      numBits -= 8;
      out.push_back(static_cast<char>(bits >> numBits & 0xFF));
    }
  }
  return out;
}

} // namespace ingot
