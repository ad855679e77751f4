// 1. Normalise the added tokens that ask for it, and sort them.
// 2. Settle each token's bytes in the model's terms and in decoded text.
// 3. Fill the hash tables (vocabulary, merges) and the trie.
// 4. Find out whether words can be encoded apart.
// 5. Write the FlatBuffer, and open it as the runtime will.
#include "compiler/frontend/tokenizer/CharacterClasses.h"
#include "compiler/frontend/tokenizer/DecodedTexts.h"
#include "compiler/frontend/tokenizer/TokenizerSpec.h"
#include "compiler/frontend/tokenizer/TrieBuilder.h"

#include "runtime/text/ByteAlphabet.h"
#include "runtime/text/TokenHash.h"
#include "runtime/text/Tokenizer.h"
#include "runtime/text/tokenizer_generated.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <map>

namespace ingot {
namespace {

namespace fb = flatbuffers;

std::string describe(const TokenizerSpec &spec, int32_t id) {
  return "token " + std::to_string(id) + " \"" +
         spec.tokens[static_cast<size_t>(id)].spelling + "\"";
}

// Strings end to end, with the offset of each.
struct Packed {
  std::vector<uint32_t> offsets{0};
  std::vector<uint8_t> bytes;
  bool operator==(const Packed &) const = default;

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
    INGOT_RETURN_IF_ERROR(fillTrie());
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
      std::string model = token.spelling;
      if (spec_.byteLevel) {
        if (auto bytes = alphabetToBytes(token.spelling))
          model = *bytes;
        else
          flags_[id] |= TokenLiteral;
        if (token.isModelToken && !(flags_[id] & TokenLiteral) &&
            model.size() == 1)
          byteIds_[static_cast<uint8_t>(model[0])] = static_cast<int32_t>(id);
      } else if (spec_.byteFallback && token.isModelToken) {
        std::optional<uint8_t> byte = byteOfToken(token.spelling);
        if (byte && token.spelling == byteTokenSpelling(*byte)) {
          byteIds_[*byte] = static_cast<int32_t>(id);
          flags_[id] |= TokenByte;
        }
      }
      model_.add(model);
    }
    return decodeTokens();
  }

  Status decodeTokens() {
    INGOT_ASSIGN_OR_RETURN(DecodedTexts texts,
                           DecodedTexts::create(spec_.decoder));
    for (size_t id = 0; id < spec_.tokens.size(); ++id) {
      auto normalized = normalizedContent_.find(static_cast<int32_t>(id));
      const std::string &spelling = normalized != normalizedContent_.end()
                                        ? normalized->second
                                        : spec_.tokens[id].spelling;
      if (!spec_.tokens[id].present) {
        decoded_.add("");
        first_.add("");
        last_.add("");
        continue;
      }
      INGOT_ASSIGN_OR_RETURN(DecodedTexts::Text text,
                             texts.read(spelling, false, false));
      if (text.isByte)
        flags_[id] |= TokenByte;
      decoded_.add(text.bytes);
      if (texts.differsAtStart()) {
        INGOT_ASSIGN_OR_RETURN(text, texts.read(spelling, true, false));
        first_.add(text.bytes);
      }
      if (texts.differsAtEnd()) {
        INGOT_ASSIGN_OR_RETURN(text, texts.read(spelling, false, true));
        last_.add(text.bytes);
      }
      if (std::max({decoded_.bytes.size(), first_.bytes.size(),
                    last_.bytes.size()}) > (1u << 30))
        return Status::unsupported(
            "decoder: the tokens become more than 1 GiB of text");
    }
    return Status::ok();
  }

  // Tokens that text may turn into by the model: special ones are left to the
  // added-token search, so that a plain range keeps them out.
  bool reachable(size_t id) const {
    return spec_.tokens[id].isModelToken && !spec_.tokens[id].onlyForByte &&
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
        if (model_.at(static_cast<size_t>(vocabSlots_[slot])) ==
            model_.at(id)) {
          // Of a Unigram vocabulary, a list, the last one counts.
          if (spec_.model == ModelKind::Unigram)
            break;
          return Status::invalid(describe(spec_, static_cast<int32_t>(id)) +
                                 ": same text as " +
                                 describe(spec_, vocabSlots_[slot]));
        }
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

  Status fillTrie() {
    if (spec_.model != ModelKind::Unigram &&
        spec_.model != ModelKind::WordPiece)
      return Status::ok();
    std::vector<TrieEntry> entries;
    for (int32_t id : vocabSlots_)
      if (id >= 0 && !model_.at(static_cast<size_t>(id)).empty())
        entries.emplace_back(model_.at(static_cast<size_t>(id)), id);
    INGOT_ASSIGN_OR_RETURN(trie_, buildTrie(std::move(entries)));
    return Status::ok();
  }

  Status settleAdded() {
    INGOT_ASSIGN_OR_RETURN(Normalizer normalizer,
                           Normalizer::create(spec_.normalizer));
    RegexScratch scratch;
    for (AddedTokenSpec token : spec_.added) {
      if (token.asNormalized) {
        token.content = *token.asNormalized;
      } else if (token.normalized) {
        INGOT_RETURN_IF_ERROR(normalizer.apply(token.content, scratch));
        // The library reads it so, too, when it decodes.
        normalizedContent_[token.id] = token.content;
      }
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

  // As the model spells it: in bytes, if it does.
  std::string modelText(const std::string &text) const {
    return spec_.byteLevel ? alphabetToBytes(text).value_or(text) : text;
  }

  // SentencePiece vocabularies know no word with a space mark inside: then no
  // merge reaches over the point before a mark, and words can be encoded (and
  // remembered) one by one with the same result.
  void findWordStart() {
    if (spec_.model != ModelKind::BytePair || spec_.byteLevel ||
        spec_.ignoreMerges || !spec_.continuingPrefix.empty() ||
        !spec_.wordSuffix.empty())
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

  static fb::Offset<tables::CharacterTable>
  writeTable(fb::FlatBufferBuilder &fbb, const CharacterTable &table) {
    if (table.blocks.empty())
      return 0;
    auto blocks = fbb.CreateVector(table.blocks.data(), table.blocks.size());
    auto entries = fbb.CreateVector(table.entries.data(), table.entries.size());
    return tables::CreateCharacterTable(fbb, blocks, entries);
  }

  static fb::Offset<fb::Vector<const tables::TrieNode *>>
  writeTrie(fb::FlatBufferBuilder &fbb, std::span<const TrieNode> nodes) {
    if (nodes.empty())
      return 0;
    return fbb.CreateVectorOfStructs(
        reinterpret_cast<const tables::TrieNode *>(nodes.data()), nodes.size());
  }

  // Steps of the kinds that there were first are written as they always were.
  static fb::Offset<tables::NormalizerStep>
  writeStep(fb::FlatBufferBuilder &fbb, const NormalizerStep &step) {
    auto pattern = fbb.CreateString(step.pattern);
    auto content = fbb.CreateString(step.content);
    auto characters = writeTable(fbb, step.characters);
    auto trie = writeTrie(fbb, step.trie);
    fb::Offset<fb::Vector<fb::Offset<fb::String>>> texts;
    if (!step.texts.empty())
      texts = fbb.CreateVectorOfStrings(step.texts);
    fb::Offset<fb::Vector<uint32_t>> apart;
    if (!step.apart.empty())
      apart = fbb.CreateVector(step.apart.data(), step.apart.size());
    return tables::CreateNormalizerStep(
        fbb, static_cast<tables::NormalizerKind>(step.kind), pattern, content,
        step.options, characters, trie, texts, apart);
  }

  static fb::Offset<tables::PreTokenizerStep>
  writeStep(fb::FlatBufferBuilder &fbb, const PreTokenizerStep &step) {
    auto pattern = fbb.CreateString(step.pattern);
    auto replacement = fbb.CreateString(step.replacement);
    auto characters = writeTable(fbb, step.characters);
    fb::Offset<fb::Vector<uint8_t>> classes;
    if (!step.classes.empty())
      classes = fbb.CreateVector(
          reinterpret_cast<const uint8_t *>(step.classes.data()),
          step.classes.size());
    return tables::CreatePreTokenizerStep(
        fbb, static_cast<tables::PreTokenizerKind>(step.kind), pattern,
        static_cast<tables::SplitBehavior>(step.behavior), step.invert,
        replacement, static_cast<tables::PrependScheme>(step.prependScheme),
        characters, classes);
  }

  static void writeTexts(fb::FlatBufferBuilder &fbb, const Packed &texts,
                         fb::Offset<fb::Vector<uint32_t>> &offsets,
                         fb::Offset<fb::Vector<uint8_t>> &bytes) {
    offsets = fbb.CreateVector(texts.offsets);
    bytes = fbb.CreateVector(texts.bytes);
  }

  std::vector<uint8_t> write() {
    fb::FlatBufferBuilder fbb(1 << 20);
    std::vector<fb::Offset<tables::NormalizerStep>> normalizer;
    for (const NormalizerStep &step : spec_.normalizer)
      normalizer.push_back(writeStep(fbb, step));
    std::vector<fb::Offset<tables::PreTokenizerStep>> preTokenizer;
    for (const PreTokenizerStep &step : spec_.preTokenizer)
      preTokenizer.push_back(writeStep(fbb, step));
    auto raw = fbb.CreateVector(writeAdded(fbb, addedRaw_));
    auto normalized = fbb.CreateVector(writeAdded(fbb, addedNormalized_));
    auto normalizerSteps = fbb.CreateVector(normalizer);
    auto preTokenizerSteps = fbb.CreateVector(preTokenizer);
    auto tokenOffsets = fbb.CreateVector(model_.offsets);
    auto tokenBytes = fbb.CreateVector(model_.bytes);
    auto tokenFlags = fbb.CreateVector(flags_);
    fb::Offset<fb::Vector<uint32_t>> decodeOffsets, firstOffsets, lastOffsets;
    fb::Offset<fb::Vector<uint8_t>> decodeBytes, firstBytes, lastBytes;
    if (!(model_ == decoded_))
      writeTexts(fbb, decoded_, decodeOffsets, decodeBytes);
    const size_t numOffsets = spec_.tokens.size() + 1;
    if (first_.offsets.size() == numOffsets && !(first_ == decoded_))
      writeTexts(fbb, first_, firstOffsets, firstBytes);
    if (last_.offsets.size() == numOffsets && !(last_ == decoded_))
      writeTexts(fbb, last_, lastOffsets, lastBytes);
    auto stripText = fbb.CreateString(spec_.decoder.stripText);
    auto continuingPrefix = fbb.CreateString(modelText(spec_.continuingPrefix));
    auto wordSuffix = fbb.CreateString(modelText(spec_.wordSuffix));
    auto trie = writeTrie(fbb, trie_);
    fb::Offset<fb::Vector<double>> scores;
    if (spec_.model == ModelKind::Unigram) {
      std::vector<double> values;
      for (const TokenSpec &token : spec_.tokens)
        values.push_back(token.score);
      scores = fbb.CreateVector(values);
    }
    fb::Offset<fb::Vector<uint32_t>> wordRanges;
    if (std::any_of(spec_.added.begin(), spec_.added.end(),
                    [](const AddedTokenSpec &t) { return t.singleWord; }))
      wordRanges = fbb.CreateVector(
          charactersOf(CharacterClass::WordCharacters).bounds());
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
    root.add_decodeOffsets(decodeOffsets);
    root.add_decodeBytes(decodeBytes);
    root.add_stripText(stripText);
    root.add_stripCount(spec_.decoder.stripCount);
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
    root.add_model(static_cast<tables::ModelKind>(spec_.model));
    root.add_continuingPrefix(continuingPrefix);
    root.add_wordSuffix(wordSuffix);
    root.add_trie(trie);
    root.add_scores(scores);
    root.add_unknownScore(spec_.unknownScore);
    root.add_singlePrecision(spec_.singlePrecision);
    root.add_longestWord(spec_.longestWord);
    root.add_firstOffsets(firstOffsets);
    root.add_firstBytes(firstBytes);
    root.add_lastOffsets(lastOffsets);
    root.add_lastBytes(lastBytes);
    root.add_dropRepeats(spec_.decoder.dropRepeats);
    root.add_stripEndCount(spec_.decoder.stripEndCount);
    root.add_wordRanges(wordRanges);
    tables::FinishTokenizerBuffer(fbb, root.Finish());
    return {fbb.GetBufferPointer(), fbb.GetBufferPointer() + fbb.GetSize()};
  }

  TokenizerSpec spec_;
  std::map<int32_t, std::string> normalizedContent_;
  std::vector<uint8_t> flags_;
  std::vector<int32_t> byteIds_;
  Packed model_, decoded_, first_, last_;
  std::vector<TrieNode> trie_;
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
