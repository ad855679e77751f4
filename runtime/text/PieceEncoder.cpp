#include "runtime/text/PieceEncoder.h"

#include <algorithm>

namespace ingot {

PieceEncoder::PieceEncoder(const ModelTables &tables)
    : tables_(tables), bytePairs_(tables), unigram_(tables), wordPiece_(tables),
      wordLevel_(tables) {}

bool PieceEncoder::encode(std::string_view piece, PieceScratch &scratch,
                          std::vector<int32_t> &out) const {
  std::string_view mark = tables_.wordStart;
  if (mark.empty() || tables_.ignoreMerges)
    return encodeWord(piece, scratch, out);
  // A word is a run of marks and what follows up to the next mark.
  size_t begin = 0;
  while (begin < piece.size()) {
    size_t at = begin;
    while (piece.substr(at).starts_with(mark))
      at += mark.size();
    size_t end = std::min(piece.find(mark, at), piece.size());
    if (!encodeWord(piece.substr(begin, end - begin), scratch, out))
      return false;
    begin = end;
  }
  return true;
}

bool PieceEncoder::encodeWord(std::string_view word, PieceScratch &scratch,
                              std::vector<int32_t> &out) const {
  using CachedWord = PieceScratch::CachedWord;
  if (word.empty())
    return true;
  CachedWord *entry = nullptr;
  uint64_t hash = 0;
  if (word.size() <= sizeof CachedWord::bytes) {
    hash = hashBytes(word);
    entry = &scratch.cache_[(hash >> 32) & (PieceScratch::CacheSize - 1)];
    if (entry->hash == hash && entry->numBytes == word.size() &&
        std::memcmp(entry->bytes, word.data(), word.size()) == 0) {
      out.insert(out.end(), entry->ids, entry->ids + entry->numIds);
      return true;
    }
  }
  if (!encodeNewWord(word, scratch))
    return false;
  const std::vector<int32_t> &ids = scratch.ids_;
  out.insert(out.end(), ids.begin(), ids.end());
  if (entry && ids.size() <= std::size(entry->ids)) {
    entry->hash = hash;
    entry->numBytes = static_cast<uint8_t>(word.size());
    entry->numIds = static_cast<uint8_t>(ids.size());
    std::memcpy(entry->bytes, word.data(), word.size());
    std::copy(ids.begin(), ids.end(), entry->ids);
  }
  return true;
}

bool PieceEncoder::encodeNewWord(std::string_view word,
                                 PieceScratch &scratch) const {
  switch (tables_.kind) {
  case ModelKind::BytePair:
    bytePairs_.encode(word, scratch.pairs_, scratch.ids_);
    return true;
  case ModelKind::Unigram:
    return unigram_.encode(word, scratch.unigram_, scratch.ids_);
  case ModelKind::WordPiece:
    return wordPiece_.encode(word, scratch.ids_);
  case ModelKind::WordLevel:
    return wordLevel_.encode(word, scratch.ids_);
  }
  return false;
}

} // namespace ingot
