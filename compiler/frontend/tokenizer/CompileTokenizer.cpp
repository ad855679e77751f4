// 1. Normalise the added tokens that ask for it, and sort them.
// 2. Settle each token's bytes in the model's terms and in decoded text.
// 3. Fill the hash tables (vocabulary, merges).
// 4. Find out whether words can be encoded apart.
// 5. Write the FlatBuffer, and open it as the runtime will.
#include "compiler/frontend/tokenizer/TokenizerSpec.h"

#include "runtime/text/ByteAlphabet.h"
#include "runtime/text/TokenHash.h"
#include "runtime/text/Tokenizer.h"
#include "runtime/text/tokenizer_generated.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdio>
#include <map>

namespace ingot {
namespace {

namespace fb = flatbuffers;

std::string describe(const TokenizerSpec &spec, int32_t id) {
  return "token " + std::to_string(id) + " \"" +
         spec.tokens[static_cast<size_t>(id)].spelling + "\"";
}

std::string replaceAll(std::string text, const std::string &from,
                       const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
       at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::optional<uint8_t> byteOfToken(std::string_view spelling) {
  if (spelling.size() != 6 || !spelling.starts_with("<0x"))
    return std::nullopt;
  unsigned byte = 0;
  auto parsed = std::from_chars(&spelling[3], &spelling[3] + 2, byte, 16);
  if (parsed.ec != std::errc() ||
      spelling != byteTokenSpelling(static_cast<uint8_t>(byte)))
    return std::nullopt;
  return static_cast<uint8_t>(byte);
}

// Strings end to end, with the offset of each.
struct Packed {
  std::vector<uint32_t> offsets{0};
  std::vector<uint8_t> bytes;

  void add(std::string_view text) {
    bytes.insert(bytes.end(), text.begin(), text.end());
    offsets.push_back(static_cast<uint32_t>(bytes.size()));
  }
  std::string_view at(size_t i) const {
    return {reinterpret_cast<const char *>(bytes.data()) + offsets[i],
            offsets[i + 1] - offsets[i]};
  }
};

class TokenizerCompiler {
public:
  explicit TokenizerCompiler(TokenizerSpec spec) : spec_(std::move(spec)) {}

  Result<std::vector<uint8_t>> run() {
    INGOT_RETURN_IF_ERROR(settleAdded());
    INGOT_RETURN_IF_ERROR(settleTokens());
    INGOT_RETURN_IF_ERROR(fillVocabulary());
    INGOT_RETURN_IF_ERROR(fillMerges());
    findWordStart();
    std::vector<uint8_t> bytes = write();
    // What the runtime would refuse is refused here, by the same code.
    if (auto opened = Tokenizer::open(bytes); !opened)
      return opened.status();
    return bytes;
  }

private:
  Status settleTokens() {
    size_t n = spec_.tokens.size();
    if (n == 0 || n > MaxVocabSize)
      return Status::unsupported("vocabulary of " + std::to_string(n) +
                                 " tokens, expected 1 to " +
                                 std::to_string(MaxVocabSize));
    uint64_t total = 0;
    for (const TokenSpec &token : spec_.tokens)
      total += token.spelling.size();
    if (total > (1u << 30))
      return Status::unsupported("vocabulary of " + std::to_string(total) +
                                 " bytes, expected at most 1 GiB");
    flags_.assign(n, 0);
    for (const AddedTokenSpec &token : spec_.added)
      flags_[static_cast<size_t>(token.id)] |=
          TokenAdded | (token.special ? TokenSpecial : 0);
    if (spec_.byteLevel || spec_.byteFallback)
      byteIds_.assign(256, -1);
    for (size_t id = 0; id < n; ++id) {
      const TokenSpec &token = spec_.tokens[id];
      if (!token.present)
        flags_[id] |= TokenMissing;
      std::string model = token.spelling, decoded = token.spelling;
      if (auto it = normalizedContent_.find(static_cast<int32_t>(id));
          it != normalizedContent_.end())
        decoded = it->second;
      if (spec_.byteLevel) {
        if (auto bytes = alphabetToBytes(token.spelling))
          model = *bytes;
        else
          flags_[id] |= TokenLiteral;
        decoded = alphabetToBytes(decoded).value_or(decoded);
        if (token.isModelToken && !(flags_[id] & TokenLiteral) &&
            model.size() == 1)
          byteIds_[static_cast<uint8_t>(model[0])] = static_cast<int32_t>(id);
      } else {
        for (const auto &[from, to] : spec_.decoder.replacements)
          decoded = replaceAll(std::move(decoded), from, to);
        std::optional<uint8_t> byte = byteOfToken(token.spelling);
        if (byte && spec_.byteFallback && token.isModelToken) {
          byteIds_[*byte] = static_cast<int32_t>(id);
          flags_[id] |= TokenByte;
        }
        if (byte && spec_.decoder.byteFallback) {
          flags_[id] |= TokenByte;
          decoded.assign(1, static_cast<char>(*byte));
        }
      }
      model_.add(model);
      decoded_.add(decoded);
    }
    return Status::ok();
  }

  // Tokens that text may turn into by the model: special ones are left to the
  // added-token search, so that a plain range keeps them out.
  bool reachable(size_t id) const {
    return spec_.tokens[id].isModelToken &&
           !(flags_[id] & (TokenMissing | TokenLiteral | TokenSpecial));
  }

  Status fillVocabulary() {
    size_t n = spec_.tokens.size();
    vocabSlots_.assign(std::bit_ceil(n * 2 + 2), -1);
    size_t mask = vocabSlots_.size() - 1;
    for (size_t id = 0; id < n; ++id) {
      if (!reachable(id))
        continue;
      size_t slot = hashBytes(model_.at(id)) & mask;
      for (; vocabSlots_[slot] >= 0; slot = (slot + 1) & mask)
        if (model_.at(static_cast<size_t>(vocabSlots_[slot])) == model_.at(id))
          return Status::invalid(describe(spec_, static_cast<int32_t>(id)) +
                                 ": same text as " +
                                 describe(spec_, vocabSlots_[slot]));
      vocabSlots_[slot] = static_cast<int32_t>(id);
    }
    return Status::ok();
  }

  Status fillMerges() {
    mergeSlots_.assign(std::bit_ceil(spec_.merges.size() * 3 / 2 + 2),
                       tables::MergeSlot(-1, -1, 0, -1));
    size_t mask = mergeSlots_.size() - 1;
    for (const MergeSpec &merge : spec_.merges) {
      size_t slot = hashMerge(merge.left, merge.right) & mask;
      for (; mergeSlots_[slot].left() >= 0; slot = (slot + 1) & mask)
        if (mergeSlots_[slot].left() == merge.left &&
            mergeSlots_[slot].right() == merge.right)
          return Status::invalid("merge of " + describe(spec_, merge.left) +
                                 " and " + describe(spec_, merge.right) +
                                 " is given twice");
      mergeSlots_[slot] =
          tables::MergeSlot(merge.left, merge.right, merge.rank, merge.result);
    }
    return Status::ok();
  }

  Status settleAdded() {
    INGOT_ASSIGN_OR_RETURN(Normalizer normalizer,
                           Normalizer::create(spec_.normalizer));
    RegexScratch scratch;
    for (AddedTokenSpec token : spec_.added) {
      bool normalized = token.normalized && !normalizer.isIdentity();
      if (normalized)
        INGOT_RETURN_IF_ERROR(normalizer.apply(token.content, scratch));
      // What a match took from the text is what decoding gives back.
      if (normalized)
        normalizedContent_[token.id] = token.content;
      // Normalised away, it can never be found.
      if (!token.content.empty())
        (token.normalized ? addedNormalized_ : addedRaw_).push_back(token);
    }
    for (auto *list : {&addedRaw_, &addedNormalized_}) {
      std::sort(list->begin(), list->end(),
                [](const AddedTokenSpec &a, const AddedTokenSpec &b) {
                  return a.content < b.content;
                });
      for (size_t i = 1; i < list->size(); ++i)
        if ((*list)[i - 1].content == (*list)[i].content)
          return Status::invalid(
              "added tokens " + std::to_string((*list)[i - 1].id) + " and " +
              std::to_string((*list)[i].id) + " match the same text \"" +
              (*list)[i].content + "\"");
    }
    return Status::ok();
  }

  // SentencePiece vocabularies know no word with a space mark inside: then no
  // merge reaches over the point before a mark, and words can be encoded (and
  // remembered) one by one with the same result.
  void findWordStart() {
    if (spec_.byteLevel || spec_.ignoreMerges)
      return;
    std::string_view mark = SpaceMark;
    bool markIsToken = false;
    for (size_t id = 0; id < spec_.tokens.size(); ++id)
      markIsToken |= reachable(id) && model_.at(id) == mark;
    if (!markIsToken)
      return;
    for (const MergeSpec &merge : spec_.merges) {
      std::string_view text = model_.at(static_cast<size_t>(merge.result));
      size_t at = 0;
      while (text.substr(at).starts_with(mark))
        at += mark.size();
      if (text.find(mark, at) != std::string_view::npos)
        return;
    }
    wordStart_ = mark;
  }

  std::vector<fb::Offset<tables::AddedToken>>
  writeAdded(fb::FlatBufferBuilder &fbb,
             const std::vector<AddedTokenSpec> &list) {
    std::vector<fb::Offset<tables::AddedToken>> out;
    for (const AddedTokenSpec &token : list)
      out.push_back(tables::CreateAddedToken(
          fbb, fbb.CreateString(token.content), token.id, token.special,
          token.lstrip, token.rstrip, token.singleWord));
    return out;
  }

  std::vector<uint8_t> write() {
    fb::FlatBufferBuilder fbb(1 << 20);
    std::vector<fb::Offset<tables::NormalizerStep>> normalizer;
    for (const NormalizerStep &step : spec_.normalizer)
      normalizer.push_back(tables::CreateNormalizerStep(
          fbb, static_cast<tables::NormalizerKind>(step.kind),
          fbb.CreateString(step.pattern), fbb.CreateString(step.content)));
    std::vector<fb::Offset<tables::PreTokenizerStep>> preTokenizer;
    for (const PreTokenizerStep &step : spec_.preTokenizer)
      preTokenizer.push_back(tables::CreatePreTokenizerStep(
          fbb, static_cast<tables::PreTokenizerKind>(step.kind),
          fbb.CreateString(step.pattern),
          static_cast<tables::SplitBehavior>(step.behavior), step.invert,
          fbb.CreateString(step.replacement),
          static_cast<tables::PrependScheme>(step.prependScheme)));
    auto raw = fbb.CreateVector(writeAdded(fbb, addedRaw_));
    auto normalized = fbb.CreateVector(writeAdded(fbb, addedNormalized_));
    auto normalizerSteps = fbb.CreateVector(normalizer);
    auto preTokenizerSteps = fbb.CreateVector(preTokenizer);
    auto tokenOffsets = fbb.CreateVector(model_.offsets);
    auto tokenBytes = fbb.CreateVector(model_.bytes);
    auto tokenFlags = fbb.CreateVector(flags_);
    fb::Offset<fb::Vector<uint32_t>> decodeOffsets;
    fb::Offset<fb::Vector<uint8_t>> decodeBytes;
    bool differs =
        model_.bytes != decoded_.bytes || model_.offsets != decoded_.offsets;
    if (differs) {
      decodeOffsets = fbb.CreateVector(decoded_.offsets);
      decodeBytes = fbb.CreateVector(decoded_.bytes);
    }
    auto stripText = fbb.CreateString(spec_.decoder.stripText);
    auto eraseInFirst = fbb.CreateString(spec_.decoder.eraseInFirst);
    auto byteIds = fbb.CreateVector(byteIds_);
    auto vocabSlots = fbb.CreateVector(vocabSlots_);
    auto mergeSlots = fbb.CreateVectorOfStructs(mergeSlots_);
    auto wordStart = fbb.CreateString(wordStart_);
    auto prefixIds = fbb.CreateVector(spec_.prefixIds);
    auto suffixIds = fbb.CreateVector(spec_.suffixIds);
    auto endIds = fbb.CreateVector(spec_.endIds);

    tables::TokenizerBuilder root(fbb);
    root.add_version(TokenizerVersion);
    root.add_vocabSize(static_cast<uint32_t>(spec_.tokens.size()));
    root.add_tokenOffsets(tokenOffsets);
    root.add_tokenBytes(tokenBytes);
    root.add_tokenFlags(tokenFlags);
    if (differs) {
      root.add_decodeOffsets(decodeOffsets);
      root.add_decodeBytes(decodeBytes);
    }
    root.add_stripText(stripText);
    root.add_stripCount(spec_.decoder.stripCount);
    root.add_eraseInFirst(eraseInFirst);
    root.add_byteLevel(spec_.byteLevel);
    root.add_ignoreMerges(spec_.ignoreMerges);
    root.add_fuseUnknown(spec_.fuseUnknown);
    root.add_unknownId(spec_.unknownId.value_or(-1));
    root.add_byteIds(byteIds);
    root.add_vocabSlots(vocabSlots);
    root.add_mergeSlots(mergeSlots);
    root.add_wordStart(wordStart);
    root.add_normalizer(normalizerSteps);
    root.add_preTokenizer(preTokenizerSteps);
    root.add_addedRaw(raw);
    root.add_addedNormalized(normalized);
    root.add_prefixIds(prefixIds);
    root.add_suffixIds(suffixIds);
    root.add_bosId(spec_.bosId.value_or(-1));
    root.add_eosId(spec_.eosId.value_or(-1));
    root.add_padId(spec_.padId.value_or(-1));
    root.add_endIds(endIds);
    tables::FinishTokenizerBuffer(fbb, root.Finish());
    return {fbb.GetBufferPointer(), fbb.GetBufferPointer() + fbb.GetSize()};
  }

  TokenizerSpec spec_;
  std::map<int32_t, std::string> normalizedContent_;
  std::vector<uint8_t> flags_;
  std::vector<int32_t> byteIds_;
  Packed model_, decoded_;
  std::vector<int32_t> vocabSlots_;
  std::vector<tables::MergeSlot> mergeSlots_;
  std::vector<AddedTokenSpec> addedRaw_, addedNormalized_;
  std::string wordStart_;
};

} // namespace

std::string byteTokenSpelling(uint8_t byte) {
  char text[8];
  std::snprintf(text, sizeof text, "<0x%02X>", byte);
  return text;
}

Result<std::vector<uint8_t>> compileTokenizer(TokenizerSpec spec) {
  return TokenizerCompiler(std::move(spec)).run();
}

} // namespace ingot
