#include "runtime/text/TokenizerTables.h"

#include "runtime/text/TokenHash.h"
#include "runtime/text/Utf8.h"
#include "runtime/text/tokenizer_generated.h"

#include <bit>
#include <string>

namespace ingot {
namespace {

static_assert(sizeof(MergeSlot) == sizeof(tables::MergeSlot) &&
              sizeof(MergeSlot) == 16);

template <typename Mine, typename Stored>
constexpr bool same(Mine mine, Stored stored) {
  return static_cast<int>(mine) == static_cast<int>(stored);
}
static_assert(sizeof(TrieNode) == sizeof(tables::TrieNode) &&
              sizeof(TrieNode) == 12);
static_assert(same(ModelKind::BytePair, tables::ModelKind::BytePair) &&
              same(ModelKind::WordLevel, tables::ModelKind::MAX));
static_assert(same(ClassKind::Join, tables::ClassKind::Join) &&
              same(ClassKind::Drop, tables::ClassKind::Drop) &&
              same(ClassKind::Neutral, tables::ClassKind::MAX));
static_assert(same(NormalizerKind::Nfc, tables::NormalizerKind::Nfc) &&
              same(NormalizerKind::Nfkd, tables::NormalizerKind::Nfkd) &&
              same(NormalizerKind::ReplaceRegex,
                   tables::NormalizerKind::ReplaceRegex) &&
              same(NormalizerKind::MarkSpaces, tables::NormalizerKind::MAX));
static_assert(same(PreTokenizerKind::Split, tables::PreTokenizerKind::Split) &&
              same(PreTokenizerKind::Metaspace,
                   tables::PreTokenizerKind::Metaspace) &&
              same(PreTokenizerKind::SpellBytes,
                   tables::PreTokenizerKind::MAX));
static_assert(same(SplitBehavior::Removed, tables::SplitBehavior::Removed) &&
              same(SplitBehavior::MergedWithNext,
                   tables::SplitBehavior::MergedWithNext) &&
              same(SplitBehavior::Contiguous, tables::SplitBehavior::MAX));
static_assert(same(PrependScheme::Never, tables::PrependScheme::Never) &&
              same(PrependScheme::Always, tables::PrependScheme::MAX));

template <typename T>
std::span<const T> spanOf(const flatbuffers::Vector<T> *vector) {
  if (!vector)
    return {};
  return {reinterpret_cast<const T *>(vector->Data()), vector->size()};
}

std::string_view viewOf(const flatbuffers::String *string) {
  return string ? std::string_view(string->c_str(), string->size())
                : std::string_view();
}

std::string_view viewOf(const flatbuffers::Vector<uint8_t> *bytes) {
  return bytes ? std::string_view(reinterpret_cast<const char *>(bytes->Data()),
                                  bytes->size())
               : std::string_view();
}

std::span<const TrieNode>
nodesOf(const flatbuffers::Vector<const tables::TrieNode *> *stored) {
  if (!stored)
    return {};
  return {reinterpret_cast<const TrieNode *>(stored->Data()), stored->size()};
}

CharacterTable tableOf(const tables::CharacterTable *stored) {
  if (!stored)
    return {};
  return {spanOf(stored->blocks()), spanOf(stored->entries())};
}

Status bad(const std::string &what) {
  return Status::invalid("tokenizer tables: " + what);
}

class Checker {
public:
  explicit Checker(const tables::Tokenizer &root) : root_(root) {}

  Result<TokenizerTables> run() {
    INGOT_RETURN_IF_ERROR(vocabulary());
    INGOT_RETURN_IF_ERROR(model());
    INGOT_RETURN_IF_ERROR(steps());
    INGOT_RETURN_IF_ERROR(added(root_.addedRaw(), "addedRaw", out_.addedRaw));
    INGOT_RETURN_IF_ERROR(added(root_.addedNormalized(), "addedNormalized",
                                out_.addedNormalized));
    INGOT_RETURN_IF_ERROR(special());
    return std::move(out_);
  }

private:
  Status id(int64_t value, const char *what, bool mayBeAbsent = false) const {
    if (value >= (mayBeAbsent ? -1 : 0) && value < int64_t(out_.vocabSize))
      return Status::ok();
    return bad(std::string(what) + ": id " + std::to_string(value) +
               " out of range (" + std::to_string(out_.vocabSize) + " tokens)");
  }

  Status offsets(std::span<const uint32_t> offsets, size_t numBytes,
                 const char *what) const {
    if (offsets.size() != size_t(out_.vocabSize) + 1)
      return bad(std::string(what) + ": " + std::to_string(offsets.size()) +
                 " offsets for " + std::to_string(out_.vocabSize) + " tokens");
    if (offsets.front() != 0 || offsets.back() != numBytes)
      return bad(std::string(what) + ": offsets do not span the " +
                 std::to_string(numBytes) + " bytes");
    for (size_t i = 1; i < offsets.size(); ++i)
      if (offsets[i] < offsets[i - 1])
        return bad(std::string(what) + ": offset " + std::to_string(i) +
                   " goes backwards");
    return Status::ok();
  }

  Status vocabulary() {
    if (root_.version() != TokenizerVersion)
      return Status::unsupported(
          "tokenizer tables: version " + std::to_string(root_.version()) +
          ", expected " + std::to_string(TokenizerVersion));
    out_.vocabSize = root_.vocabSize();
    if (out_.vocabSize == 0 || out_.vocabSize > MaxVocabSize)
      return bad("vocabSize " + std::to_string(out_.vocabSize) +
                 ", expected 1 to " + std::to_string(MaxVocabSize));
    ModelTables &model = out_.model;
    model.tokenOffsets = spanOf(root_.tokenOffsets());
    model.tokenBytes = viewOf(root_.tokenBytes());
    INGOT_RETURN_IF_ERROR(
        offsets(model.tokenOffsets, model.tokenBytes.size(), "tokenBytes"));
    out_.decoded = {model.tokenOffsets, model.tokenBytes};
    auto texts = [&](const auto *stored, const auto *bytes, const char *what,
                     TokenTexts &out) -> Status {
      if (!stored)
        return Status::ok();
      out = {spanOf(stored), viewOf(bytes)};
      return offsets(out.offsets, out.bytes.size(), what);
    };
    INGOT_RETURN_IF_ERROR(texts(root_.decodeOffsets(), root_.decodeBytes(),
                                "decodeBytes", out_.decoded));
    INGOT_RETURN_IF_ERROR(texts(root_.firstOffsets(), root_.firstBytes(),
                                "firstBytes", out_.decodedFirst));
    INGOT_RETURN_IF_ERROR(texts(root_.lastOffsets(), root_.lastBytes(),
                                "lastBytes", out_.decodedLast));
    if (!out_.decodedFirst.empty() && !out_.decodedLast.empty())
      return bad("both firstBytes and lastBytes");
    out_.dropRepeats = root_.dropRepeats();
    out_.tokenFlags = spanOf(root_.tokenFlags());
    if (out_.tokenFlags.size() != out_.vocabSize)
      return bad("tokenFlags: " + std::to_string(out_.tokenFlags.size()) +
                 " flags for " + std::to_string(out_.vocabSize) + " tokens");
    out_.stripText = viewOf(root_.stripText());
    out_.stripCount = root_.stripCount();
    out_.stripEndCount = root_.stripEndCount();
    if ((out_.stripCount > 0 || out_.stripEndCount > 0) &&
        out_.stripText.empty())
      return bad("stripText is empty");
    if (out_.stripEndCount > 0 &&
        (findInvalidUtf8(out_.stripText) != std::string_view::npos ||
         utf8Length(out_.stripText[0]) != out_.stripText.size()))
      return bad("stripText: expected one character to strip at the end");
    return Status::ok();
  }

  Status model() {
    ModelTables &pairs = out_.model;
    pairs.byteLevel = root_.byteLevel();
    pairs.ignoreMerges = root_.ignoreMerges();
    pairs.fuseUnknown = root_.fuseUnknown();
    pairs.unknownId = root_.unknownId();
    INGOT_RETURN_IF_ERROR(id(pairs.unknownId, "unknownId", true));
    pairs.byteIds = spanOf(root_.byteIds());
    if (pairs.byteIds.size() != 256 &&
        (pairs.byteLevel || !pairs.byteIds.empty()))
      return bad("byteIds: " + std::to_string(pairs.byteIds.size()) +
                 " ids, expected 256");
    for (int32_t byteId : pairs.byteIds)
      INGOT_RETURN_IF_ERROR(id(byteId, "byteIds", true));
    pairs.wordStart = viewOf(root_.wordStart());

    pairs.vocabSlots = spanOf(root_.vocabSlots());
    bool someEmpty = false;
    if (!std::has_single_bit(pairs.vocabSlots.size()))
      return bad("vocabSlots: size is not a power of two");
    for (int32_t slot : pairs.vocabSlots) {
      INGOT_RETURN_IF_ERROR(id(slot, "vocabSlots", true));
      someEmpty |= slot < 0;
    }
    if (!someEmpty)
      return bad("vocabSlots: no slot is empty");

    const auto *stored = root_.mergeSlots();
    if (!stored || !std::has_single_bit(stored->size()))
      return bad("mergeSlots: size is not a power of two");
    pairs.mergeSlots = {reinterpret_cast<const MergeSlot *>(stored->Data()),
                        stored->size()};
    someEmpty = false;
    for (const MergeSlot &merge : pairs.mergeSlots) {
      if (merge.left == -1) {
        someEmpty = true;
        continue;
      }
      INGOT_RETURN_IF_ERROR(id(merge.left, "mergeSlots"));
      INGOT_RETURN_IF_ERROR(id(merge.right, "mergeSlots"));
      INGOT_RETURN_IF_ERROR(id(merge.result, "mergeSlots"));
    }
    if (!someEmpty)
      return bad("mergeSlots: no slot is empty");
    return otherModels();
  }

  Status otherModels() {
    ModelTables &model = out_.model;
    if (root_.model() > tables::ModelKind::MAX)
      return bad("unknown model kind " + std::to_string(int(root_.model())));
    model.kind = static_cast<ModelKind>(root_.model());
    model.continuingPrefix = viewOf(root_.continuingPrefix());
    model.wordSuffix = viewOf(root_.wordSuffix());
    model.longestWord = root_.longestWord();
    model.trie = Trie(nodesOf(root_.trie()));
    model.scores = spanOf(root_.scores());
    model.unknownScore = root_.unknownScore();
    model.singlePrecision = root_.singlePrecision();
    bool usesTrie =
        model.kind == ModelKind::Unigram || model.kind == ModelKind::WordPiece;
    if (usesTrie && model.trie.empty())
      return bad("trie is empty");
    INGOT_RETURN_IF_ERROR(model.trie.verify(out_.vocabSize));
    if (model.kind == ModelKind::Unigram &&
        model.scores.size() != out_.vocabSize)
      return bad("scores: " + std::to_string(model.scores.size()) +
                 " scores for " + std::to_string(out_.vocabSize) + " tokens");
    return Status::ok();
  }

  Status steps() {
    if (const auto *stored = root_.normalizer())
      for (const tables::NormalizerStep *step : *stored) {
        if (step->kind() > tables::NormalizerKind::MAX)
          return bad("normalizer: unknown step kind " +
                     std::to_string(int(step->kind())));
        NormalizerStep out{static_cast<NormalizerKind>(step->kind()),
                           std::string(viewOf(step->pattern())),
                           std::string(viewOf(step->content())),
                           step->options()};
        out.characters = tableOf(step->characters());
        out.trie = nodesOf(step->trie());
        if (const auto *texts = step->texts())
          for (const flatbuffers::String *text : *texts)
            out.texts.emplace_back(viewOf(text));
        out.apart = spanOf(step->apart());
        out_.normalizer.push_back(std::move(out));
      }
    if (const auto *stored = root_.preTokenizer())
      for (const tables::PreTokenizerStep *step : *stored) {
        if (step->kind() > tables::PreTokenizerKind::MAX ||
            step->behavior() > tables::SplitBehavior::MAX ||
            step->prependScheme() > tables::PrependScheme::MAX)
          return bad("preTokenizer: unknown step kind " +
                     std::to_string(int(step->kind())) + "/" +
                     std::to_string(int(step->behavior())) + "/" +
                     std::to_string(int(step->prependScheme())));
        PreTokenizerStep out{static_cast<PreTokenizerKind>(step->kind()),
                             std::string(viewOf(step->pattern())),
                             static_cast<SplitBehavior>(step->behavior()),
                             step->invert(),
                             std::string(viewOf(step->replacement())),
                             static_cast<PrependScheme>(step->prependScheme())};
        out.characters = tableOf(step->characters());
        for (uint8_t kind : spanOf(step->classes())) {
          if (kind > int(tables::ClassKind::MAX))
            return bad("preTokenizer: unknown class kind " +
                       std::to_string(int(kind)));
          out.classes.push_back(static_cast<ClassKind>(kind));
        }
        out_.preTokenizer.push_back(std::move(out));
      }
    return Status::ok();
  }

  Status
  added(const flatbuffers::Vector<flatbuffers::Offset<tables::AddedToken>>
            *stored,
        const char *what, std::vector<AddedToken> &out) {
    if (!stored)
      return Status::ok();
    for (const tables::AddedToken *token : *stored) {
      INGOT_RETURN_IF_ERROR(id(token->id(), what));
      out.push_back({viewOf(token->content()), token->id(), token->special(),
                     token->lstrip(), token->rstrip(), token->singleWord()});
    }
    return Status::ok();
  }

  Status special() {
    auto ids = [&](const flatbuffers::Vector<int32_t> *stored, const char *what,
                   std::span<const int32_t> &out) -> Status {
      out = spanOf(stored);
      for (int32_t value : out)
        INGOT_RETURN_IF_ERROR(id(value, what));
      return Status::ok();
    };
    INGOT_RETURN_IF_ERROR(ids(root_.prefixIds(), "prefixIds", out_.prefixIds));
    INGOT_RETURN_IF_ERROR(ids(root_.suffixIds(), "suffixIds", out_.suffixIds));
    INGOT_RETURN_IF_ERROR(ids(root_.endIds(), "endIds", out_.endIds));
    out_.wordRanges = spanOf(root_.wordRanges());
    out_.bosId = root_.bosId();
    out_.eosId = root_.eosId();
    out_.padId = root_.padId();
    INGOT_RETURN_IF_ERROR(id(out_.bosId, "bosId", true));
    INGOT_RETURN_IF_ERROR(id(out_.eosId, "eosId", true));
    return id(out_.padId, "padId", true);
  }

  const tables::Tokenizer &root_;
  TokenizerTables out_;
};

} // namespace

Result<TokenizerTables> verifyTokenizerTables(std::span<const uint8_t> bytes) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % 8 != 0)
    return bad("expected to begin at a multiple of 8");
  if (bytes.size() < 16 || bytes.size() >= FLATBUFFERS_MAX_BUFFER_SIZE)
    return bad(std::to_string(bytes.size()) + " bytes, expected 16 to 2 GiB");
  // Tables: one for each step and added token, and the root.
  flatbuffers::Verifier verifier(bytes.data(), bytes.size(), /*max_depth=*/8,
                                 /*max_tables=*/MaxVocabSize);
  if (!tables::VerifyTokenizerBuffer(verifier))
    return bad("the bytes are not a valid FlatBuffer \"" +
               std::string(tables::TokenizerIdentifier()) + "\"");
  return Checker(*tables::GetTokenizer(bytes.data())).run();
}

} // namespace ingot
