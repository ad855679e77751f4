// 1. Cut the piece into words where no merge can cross (wordStart).
// 2. Answer a word from the cache, or whole from the vocabulary (ignoreMerges).
// 3. Spell it in starting ids: bytes, or characters with byte fallback.
// 4. Merge: short words by scanning for the best pair, long ones by a heap over
//    a linked list, so that a hostile megabyte stays O(n log n).
#include "runtime/text/BytePairEncoder.h"

#include "runtime/text/Utf8.h"

#include <algorithm>
#include <limits>

namespace ingot {
namespace {

constexpr size_t ShortWord = 32;
constexpr uint32_t NoMerge = std::numeric_limits<uint32_t>::max();

} // namespace

int32_t BytePairEncoder::find(std::string_view bytes) const {
  size_t mask = tables_.vocabSlots.size() - 1;
  for (size_t slot = hashBytes(bytes) & mask;; slot = (slot + 1) & mask) {
    int32_t id = tables_.vocabSlots[slot];
    if (id < 0 || tables_.bytesOf(id) == bytes)
      return id;
  }
}

const MergeSlot *BytePairEncoder::findMerge(int32_t left, int32_t right) const {
  size_t mask = tables_.mergeSlots.size() - 1;
  for (size_t slot = hashMerge(left, right) & mask;; slot = (slot + 1) & mask) {
    const MergeSlot &merge = tables_.mergeSlots[slot];
    if (merge.left == left && merge.right == right)
      return &merge;
    if (merge.left < 0)
      return nullptr;
  }
}

void BytePairEncoder::encode(std::string_view piece, BytePairScratch &scratch,
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
    encodeWord(piece.substr(begin, end - begin), scratch, out);
    begin = end;
  }
}

void BytePairEncoder::encodeWord(std::string_view word,
                                 BytePairScratch &scratch,
                                 std::vector<int32_t> &out) const {
  using CachedWord = BytePairScratch::CachedWord;
  if (word.empty())
    return;
  CachedWord *entry = nullptr;
  uint64_t hash = 0;
  if (word.size() <= sizeof CachedWord::bytes) {
    hash = hashBytes(word);
    entry = &scratch.cache_[(hash >> 32) & (BytePairScratch::CacheSize - 1)];
    if (entry->hash == hash && entry->numBytes == word.size() &&
        std::memcmp(entry->bytes, word.data(), word.size()) == 0) {
      out.insert(out.end(), entry->ids, entry->ids + entry->numIds);
      return;
    }
  }
  std::vector<int32_t> &ids = scratch.ids_;
  ids.clear();
  int32_t whole = tables_.ignoreMerges ? find(word) : -1;
  if (whole >= 0) {
    ids.push_back(whole);
  } else {
    startingIds(word, ids);
    if (ids.size() <= ShortWord)
      mergeShort(ids);
    else
      mergeLong(scratch);
  }
  out.insert(out.end(), ids.begin(), ids.end());
  if (entry && ids.size() <= std::size(entry->ids)) {
    entry->hash = hash;
    entry->numBytes = static_cast<uint8_t>(word.size());
    entry->numIds = static_cast<uint8_t>(ids.size());
    std::memcpy(entry->bytes, word.data(), word.size());
    std::copy(ids.begin(), ids.end(), entry->ids);
  }
}

void BytePairEncoder::startingIds(std::string_view word,
                                  std::vector<int32_t> &ids) const {
  bool unknownOpen = false;
  auto unknown = [&] {
    if (tables_.unknownId >= 0 && !(unknownOpen && tables_.fuseUnknown))
      ids.push_back(tables_.unknownId);
    unknownOpen = true;
  };
  auto known = [&](int32_t id) {
    ids.push_back(id);
    unknownOpen = false;
  };
  for (size_t i = 0; i < word.size();) {
    if (tables_.byteLevel) {
      int32_t id = tables_.byteIds[static_cast<uint8_t>(word[i++])];
      id >= 0 ? known(id) : unknown();
      continue;
    }
    std::string_view character = word.substr(i, utf8Length(word[i]));
    i += character.size();
    if (int32_t id = find(character); id >= 0) {
      known(id);
      continue;
    }
    bool spelled = !tables_.byteIds.empty() &&
                   std::all_of(character.begin(), character.end(), [&](char b) {
                     return tables_.byteIds[static_cast<uint8_t>(b)] >= 0;
                   });
    if (spelled)
      for (char b : character)
        known(tables_.byteIds[static_cast<uint8_t>(b)]);
    else
      unknown();
  }
}

void BytePairEncoder::mergeShort(std::vector<int32_t> &ids) const {
  const MergeSlot *merges[ShortWord];
  size_t n = ids.size();
  if (n < 2)
    return;
  for (size_t i = 0; i + 1 < n; ++i)
    merges[i] = findMerge(ids[i], ids[i + 1]);
  while (n > 1) {
    uint32_t bestRank = NoMerge;
    size_t best = 0;
    for (size_t i = 0; i + 1 < n; ++i)
      if (merges[i] && merges[i]->rank < bestRank) {
        bestRank = merges[i]->rank;
        best = i;
      }
    if (bestRank == NoMerge)
      break;
    ids[best] = merges[best]->result;
    std::copy(ids.begin() + best + 2, ids.begin() + n, ids.begin() + best + 1);
    std::copy(merges + best + 1, merges + n - 1, merges + best);
    --n;
    if (best > 0)
      merges[best - 1] = findMerge(ids[best - 1], ids[best]);
    if (best + 1 < n)
      merges[best] = findMerge(ids[best], ids[best + 1]);
  }
  ids.resize(n);
}

void BytePairEncoder::mergeLong(BytePairScratch &scratch) const {
  using Candidate = BytePairScratch::Candidate;
  std::vector<int32_t> &ids = scratch.ids_;
  auto &symbols = scratch.symbols_;
  auto &heap = scratch.heap_;
  int32_t n = static_cast<int32_t>(ids.size());
  symbols.clear();
  heap.clear();
  for (int32_t i = 0; i < n; ++i)
    symbols.push_back({ids[i], i - 1, i + 1 < n ? i + 1 : -1, true});
  auto later = [](const Candidate &a, const Candidate &b) {
    return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
  };
  auto candidate = [&](int32_t left) -> bool {
    int32_t right = symbols[left].next;
    if (right < 0)
      return false;
    const MergeSlot *merge = findMerge(symbols[left].id, symbols[right].id);
    if (!merge || merge->rank == NoMerge)
      return false;
    heap.push_back({merge->rank, left, merge->result});
    return true;
  };
  for (int32_t i = 0; i + 1 < n; ++i)
    candidate(i);
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    Candidate top = heap.back();
    heap.pop_back();
    auto &left = symbols[top.position];
    if (!left.live || left.next < 0)
      continue;
    // Either side may have changed since: the pair must still give the result.
    const MergeSlot *merge = findMerge(left.id, symbols[left.next].id);
    if (!merge || merge->result != top.result)
      continue;
    auto &right = symbols[left.next];
    left.id = top.result;
    left.next = right.next;
    right.live = false;
    if (right.next >= 0)
      symbols[right.next].previous = top.position;
    if (left.previous >= 0 && candidate(left.previous))
      std::push_heap(heap.begin(), heap.end(), later);
    if (candidate(top.position))
      std::push_heap(heap.begin(), heap.end(), later);
  }
  ids.clear();
  for (int32_t i = n ? 0 : -1; i >= 0; i = symbols[i].next)
    ids.push_back(symbols[i].id);
}

} // namespace ingot
