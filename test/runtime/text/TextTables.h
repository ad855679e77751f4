// A small byte-level tokenizer as the runtime maps it, laid out by hand so that
// the runtime's tests need no compiler. Id b is byte b; then a few merges; the
// last ids are control tokens.
#pragma once

#include "runtime/text/TokenHash.h"
#include "runtime/text/tokenizer_generated.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ingot::test {

struct TextTablesOptions {
  std::string pattern = "\\w+|\\W"; // of the one Split
  std::string stripText;
  uint32_t stripCount = 0, stripEndCount = 0;
  bool dropRepeats = false;
  std::vector<std::string> merged = {"he", "ll", "hell"}; // ids 256 to 258
  std::string extraSpecial; // a control token at the end
  uint32_t padding = 0;     // ids without a token, after all others
};

// 256 "he", 257 "ll", 258 "hell", 259 <eos>, 260 <eos2>, 261 <pad >
inline std::vector<uint8_t> textTables(const TextTablesOptions &options = {}) {
  namespace fb = flatbuffers;
  std::vector<std::string> tokens;
  for (int b = 0; b < 256; ++b)
    tokens.emplace_back(1, static_cast<char>(b));
  tokens.insert(tokens.end(), options.merged.begin(), options.merged.end());
  for (const char *text : {"<eos>", "<eos2>", "<pad >"})
    tokens.emplace_back(text);
  if (!options.extraSpecial.empty())
    tokens.push_back(options.extraSpecial);
  size_t numTokens = tokens.size();
  tokens.resize(numTokens + options.padding);
  std::vector<uint32_t> offsets{0};
  std::vector<uint8_t> bytes, flags(tokens.size(), 0);
  std::vector<int32_t> byteIds, slots(1024, -1);
  for (size_t id = 0; id < tokens.size(); ++id) {
    bytes.insert(bytes.end(), tokens[id].begin(), tokens[id].end());
    offsets.push_back(static_cast<uint32_t>(bytes.size()));
    if (id < 256)
      byteIds.push_back(static_cast<int32_t>(id));
    if (id >= numTokens) {
      flags[id] = TokenMissing;
      continue;
    }
    if (id >= 259) {
      flags[id] = TokenAdded | TokenSpecial;
      continue;
    }
    size_t slot = hashBytes(tokens[id]) & 1023;
    while (slots[slot] >= 0)
      slot = (slot + 1) & 1023;
    slots[slot] = static_cast<int32_t>(id);
  }
  std::vector<tables::MergeSlot> merges(8, tables::MergeSlot(-1, -1, 0, -1));
  auto merge = [&](int32_t left, int32_t right, uint32_t rank, int32_t result) {
    size_t slot = hashMerge(left, right) & 7;
    while (merges[slot].left() >= 0)
      slot = (slot + 1) & 7;
    merges[slot] = tables::MergeSlot(left, right, rank, result);
  };
  merge('h', 'e', 0, 256);
  merge('l', 'l', 1, 257);
  merge(256, 257, 2, 258);

  fb::FlatBufferBuilder fbb;
  std::vector<fb::Offset<tables::AddedToken>> added;
  for (auto [content, id] : {std::pair{"<eos2>", 260}, std::pair{"<eos>", 259},
                             std::pair{"<pad >", 261}})
    added.push_back(
        tables::CreateAddedToken(fbb, fbb.CreateString(content), id, true));
  if (!options.extraSpecial.empty())
    added.push_back(tables::CreateAddedToken(
        fbb, fbb.CreateString(options.extraSpecial), 262, true));
  std::vector<fb::Offset<tables::PreTokenizerStep>> steps{
      tables::CreatePreTokenizerStep(fbb, tables::PreTokenizerKind::Split,
                                     fbb.CreateString(options.pattern),
                                     tables::SplitBehavior::Isolated)};
  auto addedVector = fbb.CreateVector(added);
  auto stepVector = fbb.CreateVector(steps);
  auto offsetVector = fbb.CreateVector(offsets);
  auto byteVector = fbb.CreateVector(bytes);
  auto flagVector = fbb.CreateVector(flags);
  auto idVector = fbb.CreateVector(byteIds);
  auto slotVector = fbb.CreateVector(slots);
  auto mergeVector = fbb.CreateVectorOfStructs(merges);
  auto strip = fbb.CreateString(options.stripText);
  auto prefix = fbb.CreateVector(std::vector<int32_t>{259});
  tables::TokenizerBuilder root(fbb);
  root.add_version(TokenizerVersion);
  root.add_vocabSize(static_cast<uint32_t>(tokens.size()));
  root.add_tokenOffsets(offsetVector);
  root.add_tokenBytes(byteVector);
  root.add_tokenFlags(flagVector);
  root.add_stripText(strip);
  root.add_stripCount(options.stripCount);
  root.add_stripEndCount(options.stripEndCount);
  root.add_dropRepeats(options.dropRepeats);
  root.add_byteLevel(true);
  root.add_byteIds(idVector);
  root.add_vocabSlots(slotVector);
  root.add_mergeSlots(mergeVector);
  root.add_preTokenizer(stepVector);
  root.add_addedRaw(addedVector);
  root.add_prefixIds(prefix);
  root.add_bosId(259);
  root.add_eosId(259);
  tables::FinishTokenizerBuffer(fbb, root.Finish());
  return {fbb.GetBufferPointer(), fbb.GetBufferPointer() + fbb.GetSize()};
}

} // namespace ingot::test
