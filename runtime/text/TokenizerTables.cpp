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
static_assert(same(NormalizerKind::Nfc, tables::NormalizerKind::Nfc) &&
              same(NormalizerKind::Lowercase,
                   tables::NormalizerKind::Lowercase) &&
              same(NormalizerKind::ReplaceRegex, tables::NormalizerKind::MAX));
static_assert(same(PreTokenizerKind::Split, tables::PreTokenizerKind::Split) &&
              same(PreTokenizerKind::Metaspace, tables::PreTokenizerKind::MAX));
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
    out_.pairs.tokenOffsets = spanOf(root_.tokenOffsets());
    out_.pairs.tokenBytes = viewOf(root_.tokenBytes());
    INGOT_RETURN_IF_ERROR(offsets(out_.pairs.tokenOffsets,
                                  out_.pairs.tokenBytes.size(), "tokenBytes"));
    out_.decodeOffsets = out_.pairs.tokenOffsets;
    out_.decodeBytes = out_.pairs.tokenBytes;
    if (root_.decodeOffsets()) {
      out_.decodeOffsets = spanOf(root_.decodeOffsets());
      out_.decodeBytes = viewOf(root_.decodeBytes());
      INGOT_RETURN_IF_ERROR(
          offsets(out_.decodeOffsets, out_.decodeBytes.size(), "decodeBytes"));
    }
    out_.tokenFlags = spanOf(root_.tokenFlags());
    if (out_.tokenFlags.size() != out_.vocabSize)
      return bad("tokenFlags: " + std::to_string(out_.tokenFlags.size()) +
                 " flags for " + std::to_string(out_.vocabSize) + " tokens");
    out_.stripText = viewOf(root_.stripText());
    out_.stripCount = root_.stripCount();
    if (out_.stripCount > 0 && out_.stripText.empty())
      return bad("stripText is empty");
    out_.eraseInFirst = viewOf(root_.eraseInFirst());
    return Status::ok();
  }

  Status model() {
    BytePairTables &pairs = out_.pairs;
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
    return Status::ok();
  }

  Status steps() {
    if (const auto *stored = root_.normalizer())
      for (const tables::NormalizerStep *step : *stored) {
        if (step->kind() > tables::NormalizerKind::MAX)
          return bad("normalizer: unknown step kind " +
                     std::to_string(int(step->kind())));
        out_.normalizer.push_back({static_cast<NormalizerKind>(step->kind()),
                                   std::string(viewOf(step->pattern())),
                                   std::string(viewOf(step->content()))});
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
        out_.preTokenizer.push_back(
            {static_cast<PreTokenizerKind>(step->kind()),
             std::string(viewOf(step->pattern())),
             static_cast<SplitBehavior>(step->behavior()), step->invert(),
             std::string(viewOf(step->replacement())),
             static_cast<PrependScheme>(step->prependScheme())});
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
