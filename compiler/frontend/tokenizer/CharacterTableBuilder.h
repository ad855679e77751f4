// Lays out character tables for the runtime: a table of small numbers, and maps
// from characters to text, which compose: what one map gives, the next one reads.
#pragma once

#include "compiler/frontend/tokenizer/CharacterClasses.h"
#include "runtime/text/Normalizer.h"
#include "runtime/text/PreTokenizer.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ingot {

class CharacterTableBuilder {
public:
  CharacterTableBuilder() : entries_(CharacterTable::NumBlocks * 256) {}

  void set(uint32_t character, uint16_t entry) { entries_[character] = entry; }
  void set(const CharacterSet &characters, uint16_t entry);

  // The table looks into `owner`.
  CharacterTable finish(std::shared_ptr<const void> &owner) const;

private:
  std::vector<uint16_t> entries_;
};

class CharacterMap {
public:
  CharacterMap &replace(const CharacterSet &characters,
                        const std::string &text);
  CharacterMap &surroundWithSpaces(const CharacterSet &characters);
  CharacterMap &lowercase();

  NormalizerStep finish() const;

private:
  void compose(const std::map<uint32_t, std::string> &next);

  std::map<uint32_t, std::string> map_;
};

// A pre-tokenizer step that cuts by classes: `sets[i]` behaves as `kinds[i]`, the
// first set that has a character decides, all others are of `kindOfOthers`.
PreTokenizerStep
classStep(const std::vector<std::pair<CharacterSet, ClassKind>> &sets,
          ClassKind kindOfOthers = ClassKind::Join);

} // namespace ingot
