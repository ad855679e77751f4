#include "runtime/text/Tokenizer.h"

#include "runtime/text/ByteAlphabet.h"
#include "runtime/text/IncrementalDetokenizer.h"
#include "runtime/text/PieceEncoder.h"
#include "runtime/text/TokenizerTables.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <limits>
#include <mutex>

namespace ingot {

// What one encode call needs; lent from a pool so that caches stay warm.
struct EncodeScratch {
  RegexScratch regex;
  PieceScratch model;
  Pieces pieces;
  std::string normalized;
  std::vector<AddedTokenSegment> rawSegments, segments;
  std::vector<TextRange> plain;
};

struct Tokenizer::Impl {
  explicit Impl(TokenizerTables verified)
      : tables(std::move(verified)), encoder(tables.model) {}

  TokenizerTables tables;
  PieceEncoder encoder; // refers to tables
  Normalizer normalizer;
  PreTokenizer preTokenizer;
  AddedTokens addedRaw, addedNormalized;

  std::mutex poolMutex;
  std::vector<std::unique_ptr<EncodeScratch>> pool;

  bool valid(int32_t id) const {
    return id >= 0 && static_cast<uint32_t>(id) < tables.vocabSize;
  }

  Status encodeText(std::string_view text, const EncodeOptions &options,
                    EncodeScratch &scratch, std::vector<int32_t> &out) const;
  Status encodeBetween(std::string_view text, TextRange range,
                       const EncodeOptions &options, EncodeScratch &scratch,
                       std::vector<int32_t> &out) const;
  Status mapPlainRanges(std::string_view text, TextRange range,
                        const EncodeOptions &options, size_t normalizedSize,
                        EncodeScratch &scratch) const;
};

namespace {

constexpr size_t LargestKeptText = 1 << 20;

std::optional<int32_t> optionalId(int32_t id) {
  return id < 0 ? std::nullopt : std::optional<int32_t>(id);
}

Status checkText(std::string_view text, const EncodeOptions &options) {
  if (text.size() >
      static_cast<size_t>(std::numeric_limits<int32_t>::max()) / 4)
    return Status::invalid("text to encode: " + std::to_string(text.size()) +
                           " bytes, expected less than 512 MiB");
  if (size_t at = findInvalidUtf8(text); at != std::string_view::npos)
    return Status::invalid("text to encode: byte " + std::to_string(at) +
                           " is not valid UTF-8");
  size_t end = 0;
  for (TextRange range : options.plainRanges) {
    if (range.begin < end || range.end < range.begin || range.end > text.size())
      return Status::invalid("plain range [" + std::to_string(range.begin) +
                             ", " + std::to_string(range.end) +
                             "): expected sorted ranges inside the " +
                             std::to_string(text.size()) + " bytes of text");
    end = range.end;
  }
  return Status::ok();
}

} // namespace

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer &&) noexcept = default;
Tokenizer &Tokenizer::operator=(Tokenizer &&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::open(std::span<const uint8_t> bytes) {
  INGOT_ASSIGN_OR_RETURN(TokenizerTables verified,
                         verifyTokenizerTables(bytes));
  auto impl = std::make_unique<Impl>(std::move(verified));
  TokenizerTables &tables = impl->tables;
  const std::string context = "tokenizer tables";
  auto normalizer = Normalizer::create(std::move(tables.normalizer));
  if (!normalizer)
    return normalizer.status().withContext(context);
  impl->normalizer = std::move(normalizer).value();
  auto preTokenizer = PreTokenizer::create(std::move(tables.preTokenizer));
  if (!preTokenizer)
    return preTokenizer.status().withContext(context);
  impl->preTokenizer = std::move(preTokenizer).value();
  auto raw = AddedTokens::create(std::move(tables.addedRaw), tables.wordRanges);
  if (!raw)
    return raw.status().withContext(context);
  impl->addedRaw = std::move(raw).value();
  auto normalized =
      AddedTokens::create(std::move(tables.addedNormalized), tables.wordRanges);
  if (!normalized)
    return normalized.status().withContext(context);
  impl->addedNormalized = std::move(normalized).value();
  return Tokenizer(std::move(impl));
}

Result<std::vector<int32_t>>
Tokenizer::encode(std::string_view text, const EncodeOptions &options) const {
  INGOT_RETURN_IF_ERROR(checkText(text, options));
  std::unique_ptr<EncodeScratch> scratch;
  {
    std::lock_guard lock(impl_->poolMutex);
    if (!impl_->pool.empty()) {
      scratch = std::move(impl_->pool.back());
      impl_->pool.pop_back();
    }
  }
  if (!scratch)
    scratch = std::make_unique<EncodeScratch>();

  std::vector<int32_t> ids;
  if (options.addSpecialTokens)
    ids.assign(prefixIds().begin(), prefixIds().end());
  Status status = impl_->encodeText(text, options, *scratch, ids);
  if (options.addSpecialTokens)
    ids.insert(ids.end(), suffixIds().begin(), suffixIds().end());
  // The buffers have grown with the text: a huge one's are not kept.
  if (text.size() <= LargestKeptText) {
    std::lock_guard lock(impl_->poolMutex);
    impl_->pool.push_back(std::move(scratch));
  }
  if (!status)
    return status;
  return ids;
}

Status Tokenizer::Impl::encodeText(std::string_view text,
                                   const EncodeOptions &options,
                                   EncodeScratch &scratch,
                                   std::vector<int32_t> &out) const {
  PlainRanges plain{options.plainRanges, options.plainRangesBarAllAdded};
  addedRaw.find(text, plain, scratch.rawSegments);
  for (const AddedTokenSegment &segment : scratch.rawSegments) {
    if (segment.id >= 0)
      out.push_back(segment.id);
    else
      INGOT_RETURN_IF_ERROR(
          encodeBetween(text, segment.range, options, scratch, out));
  }
  return Status::ok();
}

Status Tokenizer::Impl::encodeBetween(std::string_view text, TextRange range,
                                      const EncodeOptions &options,
                                      EncodeScratch &scratch,
                                      std::vector<int32_t> &out) const {
  std::string_view view = text.substr(range.begin, range.end - range.begin);
  if (!normalizer.isIdentity()) {
    scratch.normalized.assign(view);
    INGOT_RETURN_IF_ERROR(normalizer.apply(scratch.normalized, scratch.regex,
                                           range.begin == 0
                                               ? Normalizer::Place::Start
                                               : Normalizer::Place::Later));
    view = scratch.normalized;
  }
  auto encodePlain = [&](TextRange part) -> Status {
    bool atStart = range.begin == 0 && part.begin == 0;
    INGOT_RETURN_IF_ERROR(
        preTokenizer.split(view.substr(part.begin, part.end - part.begin),
                           atStart, scratch.regex, scratch.pieces));
    for (TextRange piece : scratch.pieces.ranges) {
      std::string_view word =
          scratch.pieces.text.substr(piece.begin, piece.end - piece.begin);
      if (!encoder.encode(word, scratch.model, out))
        return Status::invalid(
            "text to encode: \"" + std::string(word.substr(0, 64)) +
            "\" is not in the vocabulary, which has no unknown token");
    }
    return Status::ok();
  };
  if (addedNormalized.empty())
    return encodePlain({0, view.size()});

  INGOT_RETURN_IF_ERROR(
      mapPlainRanges(text, range, options, view.size(), scratch));
  addedNormalized.find(view, {scratch.plain, options.plainRangesBarAllAdded},
                       scratch.segments);
  for (const AddedTokenSegment &segment : scratch.segments) {
    if (segment.id >= 0)
      out.push_back(segment.id);
    else
      INGOT_RETURN_IF_ERROR(encodePlain(segment.range));
  }
  return Status::ok();
}

// The plain ranges of text[range] as ranges of the normalised text. Where they
// lie is measured by normalising the stretches between their ends one by one;
// should a rewrite reach over such an end, measuring from the left and from the
// right differ, and the wider range is taken: user text is never let through.
Status Tokenizer::Impl::mapPlainRanges(std::string_view text, TextRange range,
                                       const EncodeOptions &options,
                                       size_t normalizedSize,
                                       EncodeScratch &scratch) const {
  scratch.plain.clear();
  auto it = std::partition_point(
      options.plainRanges.begin(), options.plainRanges.end(),
      [&](const TextRange &plain) { return plain.end <= range.begin; });
  std::string part;
  size_t at = range.begin; // measured so far, in text ...
  size_t mapped = 0;       // ... and in normalised text
  auto measureTo = [&](size_t end) -> Status {
    part.assign(text.substr(at, end - at));
    INGOT_RETURN_IF_ERROR(
        normalizer.apply(part, scratch.regex,
                         at != range.begin  ? Normalizer::Place::Continued
                         : range.begin == 0 ? Normalizer::Place::Start
                                            : Normalizer::Place::Later));
    at = end;
    mapped += part.size();
    return Status::ok();
  };
  for (; it != options.plainRanges.end() && it->begin < range.end; ++it) {
    if (it->begin == it->end)
      continue;
    TextRange plain;
    INGOT_RETURN_IF_ERROR(measureTo(std::max(it->begin, range.begin)));
    plain.begin = mapped;
    INGOT_RETURN_IF_ERROR(measureTo(std::min(it->end, range.end)));
    plain.end = mapped;
    scratch.plain.push_back(plain);
  }
  if (scratch.plain.empty())
    return Status::ok();
  INGOT_RETURN_IF_ERROR(measureTo(range.end));
  size_t limit = 0;
  for (TextRange &plain : scratch.plain) {
    // From the right: the same distance to the end.
    size_t longer = normalizedSize > mapped ? normalizedSize - mapped : 0;
    size_t shorter = mapped > normalizedSize ? mapped - normalizedSize : 0;
    plain.begin = std::max(limit, plain.begin - std::min(plain.begin, shorter));
    plain.end = std::min(normalizedSize, plain.end + longer);
    limit = plain.end = std::max(plain.begin, plain.end);
  }
  return Status::ok();
}

Result<std::string> Tokenizer::decode(std::span<const int32_t> ids,
                                      bool skipSpecial) const {
  IncrementalDetokenizer detokenizer(*this, skipSpecial);
  std::string text;
  for (int32_t id : ids) {
    INGOT_ASSIGN_OR_RETURN(std::string delta, detokenizer.push(id));
    text += delta;
  }
  text += detokenizer.flush();
  return text;
}

int32_t Tokenizer::vocabSize() const {
  return static_cast<int32_t>(impl_->tables.vocabSize);
}

Result<std::string_view> Tokenizer::tokenBytes(int32_t id) const {
  if (!impl_->valid(id))
    return Status::invalid("token id " + std::to_string(id) +
                           ": expected 0 to " +
                           std::to_string(vocabSize() - 1));
  return impl_->tables.decoded[id];
}

Result<std::string> Tokenizer::spelling(int32_t id) const {
  if (isMissing(id))
    return Status::invalid("token id " + std::to_string(id) +
                           ": the vocabulary has no such token");
  std::string_view bytes = impl_->tables.model.bytesOf(id);
  bool isInAlphabet =
      impl_->tables.model.byteLevel &&
      !(impl_->tables.tokenFlags[static_cast<size_t>(id)] & TokenLiteral);
  return isInAlphabet ? bytesToAlphabet(bytes) : std::string(bytes);
}

std::optional<int32_t> Tokenizer::idOf(std::string_view token) const {
  const TokenizerTables &tables = impl_->tables;
  if (const AddedToken *added = impl_->addedRaw.lookUp(token))
    return added->id;
  std::optional<std::string> bytes;
  if (!tables.model.byteLevel)
    bytes = std::string(token);
  else
    bytes = alphabetToBytes(token);
  if (bytes)
    if (int32_t id = tables.model.find(*bytes); id >= 0)
      return id;
  // The few that the model cannot reach are not in its hash table.
  constexpr uint8_t apart = TokenSpecial | TokenAdded | TokenLiteral;
  for (uint32_t id = 0; id < tables.vocabSize; ++id)
    if ((tables.tokenFlags[id] & apart) &&
        tables.model.bytesOf(static_cast<int32_t>(id)) == token)
      return static_cast<int32_t>(id);
  return std::nullopt;
}

bool Tokenizer::isSpecial(int32_t id) const {
  return impl_->valid(id) &&
         (impl_->tables.tokenFlags[static_cast<size_t>(id)] & TokenSpecial);
}

bool Tokenizer::isMissing(int32_t id) const {
  return !impl_->valid(id) ||
         (impl_->tables.tokenFlags[static_cast<size_t>(id)] & TokenMissing);
}

std::optional<int32_t> Tokenizer::bosId() const {
  return optionalId(impl_->tables.bosId);
}
std::optional<int32_t> Tokenizer::eosId() const {
  return optionalId(impl_->tables.eosId);
}
std::optional<int32_t> Tokenizer::padId() const {
  return optionalId(impl_->tables.padId);
}
std::optional<int32_t> Tokenizer::unknownId() const {
  return optionalId(impl_->tables.model.unknownId);
}
std::span<const int32_t> Tokenizer::endIds() const {
  return impl_->tables.endIds;
}
std::span<const int32_t> Tokenizer::prefixIds() const {
  return impl_->tables.prefixIds;
}
std::span<const int32_t> Tokenizer::suffixIds() const {
  return impl_->tables.suffixIds;
}
bool Tokenizer::repeatsPrefix(std::span<const int32_t> ids) const {
  std::span<const int32_t> prefix = prefixIds();
  return !prefix.empty() && ids.size() >= 2 * prefix.size() &&
         std::ranges::equal(prefix, ids.first(prefix.size())) &&
         std::ranges::equal(prefix, ids.subspan(prefix.size(), prefix.size()));
}
DecodeRules Tokenizer::decodeRules() const {
  const TokenizerTables &tables = impl_->tables;
  return {tables.decodedFirst, tables.decodedLast, tables.dropRepeats,
          tables.stripText,    tables.stripCount,  tables.stripEndCount};
}

} // namespace ingot
