// A SentencePiece model (the protocol buffer sentencepiece.ModelProto):
//   field 1  pieces: text, score and type
//   field 2  how it was trained: of which only the kind of model matters here
//   field 3  how text is normalised
// User-defined pieces are cut out of the normalised text before the model runs,
// control pieces are the special tokens of templates.
#include "compiler/frontend/tokenizer/ComponentReader.h"
#include "compiler/frontend/tokenizer/PrecompiledCharsmap.h"
#include "compiler/frontend/tokenizer/ScoreMerges.h"
#include "compiler/frontend/tokenizer/SpecialTokens.h"
#include "compiler/frontend/tokenizer/TokenizerBuilder.h"
#include "compiler/frontend/tokenizer/WireReader.h"
#include "runtime/text/TokenHash.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ingot {
namespace {

enum PieceType : int32_t {
  Normal = 1,
  Unknown = 2,
  Control = 3,
  UserDefined = 4,
  Unused = 5,
  Byte = 6,
};

constexpr float UnknownPenalty = 10;

struct Piece {
  std::string text;
  float score = 0;
  int32_t type = Normal;
};

// The defaults are those of the format.
struct ModelFile {
  std::vector<Piece> pieces;
  int32_t kind = 1; // 1 Unigram, 2 BPE, 3 words, 4 characters
  bool byteFallback = false;
  bool spaceAsSuffix = false;
  std::string charsmap;
  bool dummyPrefix = true;
  bool removeExtraSpaces = true;
  bool escapeSpaces = true;
};

class ModelFileReader {
public:
  static Result<ModelFile> read(std::string_view bytes) {
    ModelFile out;
    WireReader reader(bytes, "SentencePiece model");
    while (!reader.atEnd()) {
      INGOT_ASSIGN_OR_RETURN(WireReader::Field field, reader.next());
      if (field.number < 1 || field.number > 3)
        continue; // test samples, the normalizer of output, extensions
      INGOT_ASSIGN_OR_RETURN(std::string_view message, reader.text(field));
      if (field.number == 1)
        INGOT_RETURN_IF_ERROR(readPiece(message, out));
      else if (field.number == 2)
        INGOT_RETURN_IF_ERROR(readTrainer(message, out));
      else
        INGOT_RETURN_IF_ERROR(readNormalizer(message, out));
    }
    if (out.pieces.empty())
      return Status::invalid("SentencePiece model: no pieces");
    return out;
  }

private:
  static Status readPiece(std::string_view message, ModelFile &out) {
    Piece piece;
    std::string name =
        "SentencePiece model: piece " + std::to_string(out.pieces.size());
    if (out.pieces.size() == MaxVocabSize)
      return Status::unsupported(name + ": expected at most " +
                                 std::to_string(MaxVocabSize));
    WireReader reader(message, name);
    while (!reader.atEnd()) {
      INGOT_ASSIGN_OR_RETURN(WireReader::Field field, reader.next());
      if (field.number == 1) {
        INGOT_ASSIGN_OR_RETURN(std::string_view text, reader.text(field));
        piece.text = text;
      } else if (field.number == 2) {
        INGOT_ASSIGN_OR_RETURN(piece.score, reader.number(field));
      } else if (field.number == 3) {
        INGOT_ASSIGN_OR_RETURN(piece.type, reader.integer(field));
      }
    }
    if (piece.text.empty() ||
        findInvalidUtf8(piece.text) != std::string_view::npos)
      return reader.invalid("expected a text in valid UTF-8");
    if (piece.type < Normal || piece.type > Byte)
      return Status::unsupported(name + ": type " + std::to_string(piece.type));
    if (!std::isfinite(piece.score))
      return reader.invalid("expected a finite score");
    out.pieces.push_back(std::move(piece));
    return Status::ok();
  }

  static Status readTrainer(std::string_view message, ModelFile &out) {
    WireReader reader(message, "SentencePiece model: trainer_spec");
    while (!reader.atEnd()) {
      INGOT_ASSIGN_OR_RETURN(WireReader::Field field, reader.next());
      if (field.number == 3) {
        INGOT_ASSIGN_OR_RETURN(out.kind, reader.integer(field));
      } else if (field.number == 24) {
        INGOT_ASSIGN_OR_RETURN(out.spaceAsSuffix, reader.boolean(field));
      } else if (field.number == 35) {
        INGOT_ASSIGN_OR_RETURN(out.byteFallback, reader.boolean(field));
      }
    }
    return Status::ok();
  }

  static Status readNormalizer(std::string_view message, ModelFile &out) {
    WireReader reader(message, "SentencePiece model: normalizer_spec");
    while (!reader.atEnd()) {
      INGOT_ASSIGN_OR_RETURN(WireReader::Field field, reader.next());
      if (field.number == 2) {
        INGOT_ASSIGN_OR_RETURN(std::string_view map, reader.text(field));
        out.charsmap = map;
      } else if (field.number == 3) {
        INGOT_ASSIGN_OR_RETURN(out.dummyPrefix, reader.boolean(field));
      } else if (field.number == 4) {
        INGOT_ASSIGN_OR_RETURN(out.removeExtraSpaces, reader.boolean(field));
      } else if (field.number == 5) {
        INGOT_ASSIGN_OR_RETURN(out.escapeSpaces, reader.boolean(field));
      }
    }
    return Status::ok();
  }
};

class SentencePieceReader {
public:
  Result<TokenizerSpec> read(const SentencePieceTokenizer &description) {
    INGOT_ASSIGN_OR_RETURN(file_, ModelFileReader::read(description.model));
    bool unigram = file_.kind == 1;
    if (!unigram && file_.kind != 2)
      return Status::unsupported("SentencePiece model: model_type " +
                                 std::to_string(file_.kind) +
                                 (file_.kind == 3   ? " (words)"
                                  : file_.kind == 4 ? " (characters)"
                                                    : "") +
                                 " (supported: 1 Unigram, 2 byte pairs)");
    if (!file_.escapeSpaces)
      return Status::unsupported(
          "SentencePiece model: escape_whitespaces is off");
    spec_.fuseUnknown = true;
    spec_.byteFallback = file_.byteFallback;
    INGOT_RETURN_IF_ERROR(readPieces(unigram));
    INGOT_RETURN_IF_ERROR(unigram ? setScores() : setMerges());
    SpecialTokenReader special(spec_, idOf_);
    INGOT_RETURN_IF_ERROR(
        special.readAddedTokens(description.tokenizerConfigJson));
    INGOT_RETURN_IF_ERROR(special.read(description.specialTokensMapJson,
                                       description.tokenizerConfigJson));
    INGOT_ASSIGN_OR_RETURN(SpecialTokenReader::Around around,
                           special.readAround(description.tokenizerConfigJson));
    INGOT_RETURN_IF_ERROR(setNormalizer(around.prefixOnce));
    setDecoder();
    return std::move(spec_);
  }

private:
  Status readPieces(bool unigram) {
    spec_.tokens.resize(file_.pieces.size());
    for (size_t i = 0; i < file_.pieces.size(); ++i) {
      const Piece &piece = file_.pieces[i];
      auto id = static_cast<int32_t>(i);
      std::string name = "SentencePiece model: piece " + std::to_string(i) +
                         " " + quoteName(piece.text);
      TokenSpec &token = spec_.tokens[i];
      token.spelling = piece.text;
      token.present = true;
      token.score = static_cast<double>(piece.score);
      token.isModelToken = piece.type == Normal || piece.type == UserDefined ||
                           piece.type == Byte;
      token.onlyForByte = piece.type == Byte;
      if (!idOf_.emplace(piece.text, id).second)
        return Status::invalid(name + ": given twice");
      if (piece.type == Unused && !unigram)
        return Status::unsupported(name + ": an unused piece among byte pairs");
      if (piece.type == Unknown) {
        if (spec_.unknownId)
          return Status::invalid(name + ": a second unknown piece");
        spec_.unknownId = id;
      }
      if (piece.type == Unknown || piece.type == Control ||
          piece.type == UserDefined) {
        AddedTokenSpec added;
        added.content = piece.text;
        added.id = id;
        added.special = piece.type != UserDefined;
        if (piece.type == UserDefined) {
          added.normalized = true;
          added.asNormalized = piece.text;
          kept_.push_back(piece.text);
        }
        spec_.added.push_back(std::move(added));
      }
    }
    if (!spec_.unknownId)
      return Status::invalid("SentencePiece model: no unknown piece");
    if (file_.byteFallback)
      for (unsigned b = 0; b < 256; ++b) {
        auto it = idOf_.find(byteTokenSpelling(static_cast<uint8_t>(b)));
        if (it == idOf_.end() ||
            file_.pieces[static_cast<size_t>(it->second)].type != Byte)
          return Status::invalid("SentencePiece model: byte_fallback without "
                                 "the piece " +
                                 byteTokenSpelling(static_cast<uint8_t>(b)));
      }
    return Status::ok();
  }

  Status setScores() {
    spec_.model = ModelKind::Unigram;
    spec_.singlePrecision = true;
    float least = std::numeric_limits<float>::max();
    for (const Piece &piece : file_.pieces)
      if (piece.type == Normal)
        least = std::min(least, piece.score);
    spec_.unknownScore = static_cast<double>(least - UnknownPenalty);
    return Status::ok();
  }

  Status setMerges() {
    auto isNormal = [&](size_t id) { return file_.pieces[id].type == Normal; };
    std::unordered_map<std::string, int32_t> normal;
    for (const auto &[text, id] : idOf_)
      if (isNormal(static_cast<size_t>(id)))
        normal.emplace(text, id);
    Result<std::vector<MergeSpec>> merges =
        mergesOfScores(spec_.tokens, normal, isNormal);
    if (!merges)
      return merges.status().withContext("SentencePiece model");
    spec_.merges = std::move(merges).value();
    return Status::ok();
  }

  Status setNormalizer(bool prefixOnce) {
    if (!file_.charsmap.empty() || !kept_.empty()) {
      // Spaces of user-defined pieces are marks already when they are searched.
      Result<NormalizerStep> step =
          readPrecompiledCharsmap(file_.charsmap, kept_);
      if (!step)
        return step.status().withContext("SentencePiece model");
      spec_.normalizer.push_back(std::move(step).value());
    }
    NormalizerStep spaces{NormalizerKind::MarkSpaces};
    if (file_.dummyPrefix)
      spaces.options |= DummyPrefix;
    if (file_.removeExtraSpaces)
      spaces.options |= RemoveExtraSpaces;
    if (file_.spaceAsSuffix)
      spaces.options |= PrefixAtEnd;
    if (prefixOnce)
      spaces.options |= PrefixOnce;
    spec_.normalizer.push_back(spaces);
    return Status::ok();
  }

  void setDecoder() {
    DecoderSpec &decoder = spec_.decoder;
    decoder.steps.push_back({DecoderStep::Kind::Replace, SpaceMark, " "});
    if (file_.byteFallback)
      decoder.steps.push_back({DecoderStep::Kind::ByteFallback});
    decoder.stripText = " ";
    decoder.stripCount = file_.removeExtraSpaces
                             ? std::numeric_limits<uint32_t>::max()
                         : file_.dummyPrefix ? 1
                                             : 0;
  }

  ModelFile file_;
  TokenizerSpec spec_;
  std::vector<std::string> kept_; // user-defined pieces
  std::unordered_map<std::string, int32_t> idOf_;
};

} // namespace

Result<std::optional<int64_t>> findSentencePiece(std::string_view model,
                                                 std::string_view piece) {
  INGOT_ASSIGN_OR_RETURN(ModelFile file, ModelFileReader::read(model));
  for (size_t id = 0; id < file.pieces.size(); ++id)
    if (file.pieces[id].text == piece)
      return std::optional<int64_t>(static_cast<int64_t>(id));
  return std::optional<int64_t>();
}

Result<std::vector<uint8_t>>
buildTokenizer(const SentencePieceTokenizer &description) {
  INGOT_ASSIGN_OR_RETURN(TokenizerSpec spec,
                         SentencePieceReader().read(description));
  std::vector<std::string> leftOut;
  if (description.rows)
    dropTokensBeyond(spec, *description.rows,
                     description.leftOut ? *description.leftOut : leftOut);
  auto tables = compileTokenizer(std::move(spec));
  if (!tables)
    return tables.status().withContext("SentencePiece model");
  return tables;
}

} // namespace ingot
