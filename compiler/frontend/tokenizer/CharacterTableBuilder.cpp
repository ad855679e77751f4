#include "compiler/frontend/tokenizer/CharacterTableBuilder.h"

#include "runtime/text/Utf8.h"

#include <algorithm>

namespace ingot {
namespace {

struct TableData {
  std::vector<uint16_t> blocks, entries;
};

} // namespace

void CharacterTableBuilder::set(const CharacterSet &characters,
                                uint16_t entry) {
  for (const CharacterRange &range : characters.ranges())
    std::fill(entries_.begin() + range.first, entries_.begin() + range.last + 1,
              entry);
}

CharacterTable
CharacterTableBuilder::finish(std::shared_ptr<const void> &owner) const {
  auto data = std::make_shared<TableData>();
  std::map<std::vector<uint16_t>, uint16_t>
      blocks; // equal ones are stored once
  for (size_t at = 0; at < entries_.size(); at += 256) {
    std::vector<uint16_t> block(entries_.begin() + at,
                                entries_.begin() + at + 256);
    auto [it, isNew] =
        blocks.emplace(std::move(block), static_cast<uint16_t>(blocks.size()));
    if (isNew)
      data->entries.insert(data->entries.end(), it->first.begin(),
                           it->first.end());
    data->blocks.push_back(it->second);
  }
  owner = data;
  return {data->blocks, data->entries};
}

void CharacterMap::compose(const std::map<uint32_t, std::string> &next) {
  for (auto &[character, text] : map_) {
    std::string out;
    for (size_t i = 0; i < text.size();) {
      size_t length = utf8Length(text[i]);
      auto it = next.find(decodeUtf8(std::string_view(text).substr(i)));
      out += it != next.end() ? it->second : text.substr(i, length);
      i += length;
    }
    text = std::move(out);
  }
  map_.insert(next.begin(), next.end());
}

CharacterMap &CharacterMap::replace(const CharacterSet &characters,
                                    const std::string &text) {
  std::map<uint32_t, std::string> next;
  for (const CharacterRange &range : characters.ranges())
    for (uint32_t c = range.first; c <= range.last; ++c)
      next.emplace_hint(next.end(), c, text);
  compose(next);
  return *this;
}

CharacterMap &CharacterMap::surroundWithSpaces(const CharacterSet &characters) {
  std::map<uint32_t, std::string> next;
  for (const CharacterRange &range : characters.ranges())
    for (uint32_t c = range.first; c <= range.last; ++c) {
      std::string &text = next[c];
      text = " ";
      appendUtf8(text, c);
      text += ' ';
    }
  compose(next);
  return *this;
}

CharacterMap &CharacterMap::lowercase() {
  compose(lowercaseMap());
  return *this;
}

NormalizerStep CharacterMap::finish() const {
  NormalizerStep step{NormalizerKind::MapCharacters};
  CharacterTableBuilder table;
  std::map<std::string, uint16_t> texts;
  for (const auto &[character, text] : map_) {
    std::string same;
    appendUtf8(same, character);
    if (text == same)
      continue;
    // Entry 0 is "as it is"; 65535 texts are more than there are to come.
    auto [it, isNew] =
        texts.emplace(text, static_cast<uint16_t>(step.texts.size() + 1));
    if (isNew)
      step.texts.push_back(text);
    table.set(character, it->second);
  }
  step.characters = table.finish(step.owner);
  return step;
}

PreTokenizerStep
classStep(const std::vector<std::pair<CharacterSet, ClassKind>> &sets,
          ClassKind kindOfOthers) {
  PreTokenizerStep step{PreTokenizerKind::Classes};
  CharacterTableBuilder table;
  step.classes.push_back(kindOfOthers);
  for (const auto &[set, kind] : sets)
    step.classes.push_back(kind);
  for (size_t i = sets.size(); i-- > 0;)
    table.set(sets[i].first, static_cast<uint16_t>(i + 1));
  step.characters = table.finish(step.owner);
  return step;
}

} // namespace ingot
