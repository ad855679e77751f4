// 1. Answer a word whole from the vocabulary (ignoreMerges).
// 2. Spell it in starting ids: bytes, or characters with byte fallback.
// 3. Merge: short words by scanning for the best pair, long ones by a heap over
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

void BytePairEncoder::encode(std::string_view word, BytePairScratch &scratch,
                             std::vector<int32_t> &ids) const {
  ids.clear();
  int32_t whole = tables_.ignoreMerges ? tables_.find(word) : -1;
  if (whole >= 0) {
    ids.push_back(whole);
    return;
  }
  startingIds(word, scratch, ids);
  if (ids.size() <= ShortWord)
    mergeShort(ids);
  else
    mergeLong(scratch, ids);
}

void BytePairEncoder::startingIds(std::string_view word,
                                  BytePairScratch &scratch,
                                  std::vector<int32_t> &ids) const {
  bool plain = tables_.continuingPrefix.empty() && tables_.wordSuffix.empty();
  bool unknownOpen = false; // an unknown token that is not in ids yet
  for (size_t i = 0; i < word.size();) {
    size_t length = tables_.byteLevel ? 1 : utf8Length(word[i]);
    std::string_view character = word.substr(i, length);
    int32_t id;
    if (!plain) {
      std::string &spelling = scratch.spelling_;
      spelling.clear();
      if (i > 0)
        spelling += tables_.continuingPrefix;
      spelling += character;
      if (i + length == word.size())
        spelling += tables_.wordSuffix;
      character = spelling;
    }
    id = plain && tables_.byteLevel
             ? tables_.byteIds[static_cast<uint8_t>(character[0])]
             : tables_.find(character);
    i += length;
    if (id >= 0) {
      if (unknownOpen)
        ids.push_back(tables_.unknownId);
      unknownOpen = false;
      ids.push_back(id);
      continue;
    }
    // As Hugging Face's: bytes go before an unknown token that is still open.
    if (!tables_.byteLevel && tables_.spellInBytes(character, ids))
      continue;
    if (tables_.unknownId < 0)
      continue;
    if (unknownOpen && !tables_.fuseUnknown)
      ids.push_back(tables_.unknownId);
    unknownOpen = true;
  }
  if (unknownOpen)
    ids.push_back(tables_.unknownId);
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

void BytePairEncoder::mergeLong(BytePairScratch &scratch,
                                std::vector<int32_t> &ids) const {
  using Candidate = BytePairScratch::Candidate;
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
