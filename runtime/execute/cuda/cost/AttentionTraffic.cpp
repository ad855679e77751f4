// The attention kernels and the write of the cache. Tiles are walked as the blocks
// walk them: what a step of 64 (32) tokens asks of the cache is counted request by
// request, once for every step that is alike.
#include "runtime/execute/cuda/cost/Requests.h"

#include <algorithm>
#include <map>
#include <utility>

namespace ingot::cuda {
namespace {

constexpr std::int32_t kLanes = 32;
constexpr double kRowWarps = abi::kRowThreads / 32;

std::int64_t elementBytes(KvKind kv) { return kv == KvKind::I8 ? 1 : 2; }
// Keys, or values, of so many tokens of one head.
double kvBytes(KvKind kv, std::int64_t headDim, std::int64_t tokens) {
  return double(tokens * headDim * elementBytes(kv) +
                (kv == KvKind::I8 ? 4 * tokens : 0));
}

// Sectors that lanes touch in ascending order.
class Ascending {
public:
  void touch(std::int64_t address, std::int64_t bytes) {
    for (std::int64_t at = address / kSectorBytes;
         at <= (address + bytes - 1) / kSectorBytes; ++at)
      if (at > last_) {
        last_ = at;
        ++count_;
      }
    bytes_ += bytes;
  }
  void addTo(Requests &requests) const {
    requests.sectors += double(count_);
    requests.ideal += double(sectorsOf(bytes_));
  }

private:
  std::int64_t last_ = -1, count_ = 0, bytes_ = 0;
};

// Codes of an int8 cache are copied 16 at a time, each with the scales of four tokens,
// where heads are multiples of 16 (KvTile.h); all else 8 at a time.
bool copiesCodes(KvKind kv, std::int32_t headDim) {
  return kv == KvKind::I8 && headDim % 16 == 0;
}
std::int32_t cellElements(KvKind kv, std::int32_t headDim) {
  return copiesCodes(kv, headDim) ? 16 : 8;
}

// What loadKeyValues (KvTile.h) asks for in a step of whose tokens [first, last] are
// visible: keys alone; values ask for the same.
struct StepRequests {
  Requests elements;
  Requests table; // of blocks
};
StepRequests stepRequests(const AttentionWork &work, std::int32_t first,
                          std::int32_t last) {
  const std::int32_t cell = cellElements(work.kv, work.headDim);
  const std::int32_t pieces = abi::attentionPaddedDim(work.headDim) / cell;
  const std::int64_t bytes = cell * elementBytes(work.kv);
  // Blocks of the cache lie anywhere; far apart is enough.
  constexpr std::int64_t kBlock = std::int64_t(1) << 32;
  StepRequests made;
  for (std::int32_t begin = first * pieces / kLanes * kLanes;
       begin < (last + 1) * pieces; begin += kLanes) {
    Ascending elements, scales, table;
    for (std::int32_t i = begin; i < begin + kLanes; ++i) {
      const std::int32_t token = i / pieces, d = i % pieces * cell;
      if (token < first || token > last || d >= work.headDim)
        continue;
      const std::int64_t block = token / abi::kBlockTokens;
      const std::int64_t inBlock = token % abi::kBlockTokens;
      elements.touch(block * kBlock +
                         (inBlock * work.headDim + d) * elementBytes(work.kv),
                     bytes);
      if (copiesCodes(work.kv, work.headDim))
        scales.touch(block * kBlock + inBlock / 4 * 16, 16);
      else
        scales.touch(block * kBlock + inBlock * 4, 4);
      table.touch(block * 4, 4);
    }
    elements.addTo(made.elements);
    if (work.kv == KvKind::I8)
      scales.addTo(made.elements);
    table.addTo(made.table);
  }
  return made;
}

// Where the copies of keys and values fall in shared memory: a token's pieces where
// their float16 will be, tokens (paddedDim + 8) halves apart.
double copyPasses(KvKind kv, std::int32_t headDim) {
  const std::int32_t cell = cellElements(kv, headDim);
  const std::int32_t pieces = abi::attentionPaddedDim(headDim) / cell;
  const std::int64_t stride = (abi::attentionPaddedDim(headDim) + 8) * 2;
  std::vector<std::int64_t> addresses;
  for (std::int32_t i = 0; i < abi::attentionStep(headDim) * pieces; ++i)
    addresses.push_back(i / pieces * stride + i % pieces * cell * 2);
  return bankPasses(addresses, 16);
}

// Rows of a tile, 8 at a time, whose lanes each hold two neighbours of every 8 floats
// and store one at a time: a sector is asked for twice.
void storeFragments(Stream &stream, std::int64_t rows, std::int64_t headDim) {
  const double requests = double(headDim / 8 * 2);
  for (std::int64_t first = 0; first < rows; first += 8) {
    const std::int64_t count = std::min<std::int64_t>(rows - first, 8);
    stream.sectorsWritten += requests * double(count);
    stream.idealWritten += requests * double(sectorsOf(count * 16));
  }
  stream.bytesWritten += double(rows * headDim * 4);
}

// The maximum and the sum of each row of a block, one after the other, eight rows at
// a time: of `heads` heads from `firstHead` on.
void storeStatistics(Stream &stream, const AttentionWork &work,
                     const abi::AttentionTile &tile, std::int32_t split,
                     std::int32_t firstHead, std::int32_t heads) {
  const std::int32_t rows = tile.numQueries * heads;
  for (std::int32_t first = 0; first < rows; first += 8) {
    const std::int32_t last = std::min(first + 8, rows);
    Ascending touched;
    for (std::int32_t row = first; row < last; ++row) {
      const std::int64_t slot =
          tile.firstSlot + row / heads * tile.numSplits + split;
      touched.touch((slot * work.heads + firstHead + row % heads) * 8, 4);
    }
    Requests one;
    touched.addTo(one);
    stream.sectorsWritten += 2 * one.sectors;
    stream.idealWritten += 2 * one.ideal;
  }
  stream.bytesWritten += 8.0 * rows;
}

} // namespace

LaunchTraffic attentionTraffic(const AttentionWork &work, bool split) {
  LaunchTraffic made;
  const std::int32_t parts = abi::attentionParts(work.heads, work.kvHeads);
  const std::int32_t group = work.heads / work.kvHeads;
  const std::int32_t headsPerRow =
      abi::attentionHeads(work.heads, work.kvHeads);
  const std::int32_t step = abi::attentionStep(work.headDim);
  const std::int64_t dimSteps = abi::attentionPaddedDim(work.headDim) / 16;
  const std::int32_t dimWarps = split ? 1
                                      : abi::kAttentionThreads / 32 * 16 /
                                            abi::attentionRows(work.headDim);
  constexpr double kMma = 2.0 * 16 * 8 * 16;
  constexpr double kWarps = abi::kAttentionThreads / 32;
  // One step of a block.
  const double ofSums = kWarps * step / 16;
  const double stepMmas =
      split ? double(step / 8 * dimSteps) + ofSums +
                  double(step / 16 * dimSteps * 2)
            : kWarps * double(step / 8 * dimSteps) + ofSums +
                  kWarps / dimWarps * double(step / 16 * dimSteps * 2);
  made.blocks = double(work.tiles.size()) * work.kvHeads * parts *
                (split ? double(work.gridSplits) : 1.0);
  // A tile is one sector, which all lanes of a block load whole.
  made.arrays.sectorsRead += made.blocks * kWarps;
  made.arrays.idealRead += made.blocks * kWarps * kLanes;
  made.arrays.bytesRead +=
      double(work.tiles.size() * sizeof(abi::AttentionTile));

  std::map<std::pair<std::int32_t, std::int32_t>, StepRequests> known;
  std::map<std::int32_t, std::pair<std::int32_t, std::int32_t>> visible;
  for (const abi::AttentionTile &tile : work.tiles) {
    if (tile.numQueries == 0)
      continue;
    const std::int32_t firstVisible =
        work.window > 0 ? std::max(tile.firstPosition - work.window + 1, 0) : 0;
    const std::int32_t lastVisible = tile.firstPosition + tile.numQueries - 1;
    auto [seen, isNew] =
        visible.try_emplace(tile.blockTableOffset, firstVisible, lastVisible);
    seen->second.first = std::min(seen->second.first, firstVisible);
    seen->second.second = std::max(seen->second.second, lastVisible);
    double pairs = 0; // of a query and what it sees
    for (std::int32_t q = 0; q < tile.numQueries; ++q) {
      const std::int32_t last = tile.firstPosition + q;
      pairs += work.window > 0 ? std::min(last + 1, work.window) : last + 1;
    }
    made.neededFlops += 4.0 * pairs * work.heads * work.headDim;

    const std::int32_t segments = split ? tile.numSplits : 1;
    for (std::int32_t s = 0; s < segments; ++s) {
      std::int32_t first = firstVisible, last = lastVisible;
      if (split) {
        const std::int32_t segment = tile.firstSplit + s;
        first = std::max(first, segment * abi::kSegmentTokens);
        last = std::min(last, (segment + 1) * abi::kSegmentTokens - 1);
      }
      StepRequests asked;
      double steps = 0;
      for (std::int32_t at = first / step * step; at <= last; at += step) {
        ++steps;
        // Positions within the step decide, and that blocks are whole parts of it.
        auto key = std::pair(std::max(first, at) - at,
                             std::min(last, at + step - 1) - at);
        auto found = known.find(key);
        if (found == known.end())
          found = known.emplace(key, stepRequests(work, key.first, key.second))
                      .first;
        asked.elements.sectors += found->second.elements.sectors;
        asked.elements.ideal += found->second.elements.ideal;
        asked.table.sectors += found->second.table.sectors;
        asked.table.ideal += found->second.table.ideal;
      }
      const double blocks = double(work.kvHeads) * parts;
      made.cache.sectorsRead += 2 * blocks * asked.elements.sectors;
      made.cache.idealRead += 2 * blocks * asked.elements.ideal;
      made.arrays.sectorsRead += blocks * asked.table.sectors;
      made.arrays.idealRead += blocks * asked.table.ideal;
      made.flops += blocks * steps * stepMmas * kMma;
      for (std::int32_t part = 0; part < parts; ++part) {
        const std::int64_t rows =
            std::int64_t(tile.numQueries) *
            std::min(headsPerRow, group - part * headsPerRow);
        const double queries =
            double(work.kvHeads) * double(rows) * double(work.headDim) / 8;
        made.activations.sectorsRead += queries;
        made.activations.idealRead += queries;
        Stream stores;
        storeFragments(stores, rows, work.headDim);
        for (std::int32_t h = 0; h < work.kvHeads; ++h) {
          made.activations += stores;
          if (split)
            storeStatistics(made.activations, work, tile, s,
                            h * group + part * headsPerRow,
                            std::int32_t(rows / tile.numQueries));
        }
      }
    }
    const double width = 4.0 * work.heads * work.headDim * tile.numQueries;
    made.activations.bytesRead += width;
    made.neededBytes += split ? width : 2 * width;
  }
  for (const auto &[table, range] : visible) {
    const double bytes =
        2.0 * work.kvHeads *
        kvBytes(work.kv, work.headDim, range.second - range.first + 1);
    made.cache.bytesRead += bytes;
    made.neededBytes += bytes;
  }
  const std::int64_t stride = (abi::attentionPaddedDim(work.headDim) + 8) * 2;
  made.conflict =
      std::max(matrixPasses(stride), copyPasses(work.kv, work.headDim));
  if (split)
    made.conflict = std::max(made.conflict, matrixPasses((step + 8) * 2));
  return made;
}

LaunchTraffic mergeTraffic(const MergeWork &work) {
  LaunchTraffic made;
  const std::int64_t rows = std::int64_t(work.rows.size());
  const std::int64_t width = std::int64_t(work.heads) * work.headDim;
  made.blocks = double(rows);
  broadcast(made.arrays, 2 * kRowWarps * double(rows), 8 * double(rows));
  const Requests values = rowRequests(1, width, 4, 4 * width);
  // Of a slot: every second float of the statistics, by a lane for each head; then, for
  // each request of elements, those of its heads.
  struct OfSlot {
    double stats = 0, statsIdeal = 0, factors = 0, factorsIdeal = 0;
  };
  auto ofSlot = [&](std::int64_t slot) {
    OfSlot made;
    auto touch = [&](std::int64_t first, std::int64_t last, double &sectors) {
      Ascending touched;
      for (std::int64_t h = first; h <= last; ++h)
        touched.touch((slot * work.heads + h) * 8, 4);
      Requests one;
      touched.addTo(one);
      sectors += one.sectors;
    };
    for (std::int64_t first = 0; first < work.heads; first += kLanes) {
      const std::int64_t last =
          std::min<std::int64_t>(first + kLanes, work.heads) - 1;
      touch(first, last, made.stats);
      made.statsIdeal += double(sectorsOf(4 * (last - first + 1)));
    }
    for (std::int64_t first = 0; first < width; first += kLanes) {
      const std::int64_t last = std::min(first + kLanes, width) - 1;
      touch(first / work.headDim, last / work.headDim, made.factors);
      made.factorsIdeal += double(sectorsOf(4 * (last - first + 1)));
    }
    return made;
  };
  // Four slots on, everything lies in its sectors as before.
  const OfSlot known[4] = {ofSlot(0), ofSlot(1), ofSlot(2), ofSlot(3)};
  Stream &to = made.activations;
  for (const abi::TokenSlots &row : work.rows) {
    const double slots = std::max(row.numSplits, 0);
    to.bytesRead += slots * (4.0 * double(width) + 8.0 * work.heads);
    to.bytesWritten += slots * 8.0 * work.heads;
    for (std::int32_t j = 0; j < row.numSplits; ++j) {
      const OfSlot &slot = known[(row.firstSlot + j) % 4];
      to.sectorsRead += values.sectors + 2 * slot.stats + 2 * slot.factors;
      to.idealRead +=
          values.ideal + 2 * slot.statsIdeal + 2 * slot.factorsIdeal;
      to.sectorsWritten += 2 * slot.stats;
      to.idealWritten += 2 * slot.statsIdeal;
    }
    // The row, written and read again for its half row; written once more.
    const double writes = row.numSplits != 0 ? 2 : 1;
    const double reads = work.hasHalves ? 2 : 1;
    to.bytesWritten += values.bytes;
    to.sectorsWritten += writes * values.sectors;
    to.idealWritten += writes * values.ideal;
    to.sectorsRead += reads * values.sectors;
    to.idealRead += reads * values.ideal;
    // What attention wrote, or this launch.
    (row.numSplits == 0 ? to.bytesRead : to.bytesReadBack) += values.bytes;
  }
  made.neededBytes = 4.0 * double(rows * width);
  if (work.hasHalves) {
    writeHalfRows(to, rows, width, work.parts);
    made.neededBytes += halfRowNeeds(rows, width, work.parts);
  }
  return made;
}

LaunchTraffic ropeWriteTraffic(const RopeWriteWork &work) {
  LaunchTraffic made;
  const double rows = work.rows;
  const std::int64_t dim = work.headDim;
  const double rotated = work.heads + work.kvHeads, kvHeads = work.kvHeads;
  made.blocks = rows;
  const Requests head = rowRequests(1, dim, 4, 4 * dim);
  Stream &activations = made.activations;
  auto readHeads = [&](double heads, double times) {
    activations.sectorsRead += rows * heads * times * head.sectors;
    activations.idealRead += rows * heads * times * head.ideal;
  };
  activations.bytesRead += rows * (rotated + kvHeads) * double(4 * dim);
  readHeads(rotated, 1);
  // An int8 cache needs the largest element of a value first.
  readHeads(kvHeads, work.kv == KvKind::I8 ? 2 : 1);
  if (work.hasNorm) {
    readHeads(rotated, work.isNormOfRow ? 1 : work.isLayerNorm ? 2 : 1);
    made.weights.bytesRead +=
        double(4 * dim) * (work.hasOwnNorms ? rotated : 2.0);
    made.weights.sectorsRead += rows * rotated * head.sectors;
    made.weights.idealRead += rows * rotated * head.ideal;
    made.neededBytes += double(4 * dim) * (work.hasOwnNorms ? rotated : 2.0);
  }
  // Cosines and sines of the row, by every head that is rotated.
  const std::int64_t half = work.rotaryDim / 2;
  if (half > 0) {
    const Requests table = rowRequests(1, half, 4, 4 * half);
    constexpr double kLoads = 4;
    activations.bytesRead += rows * double(8 * half);
    activations.sectorsRead += rows * rotated * kLoads * table.sectors;
    activations.idealRead += rows * rotated * kLoads * table.ideal;
  }
  // Its sequence, three numbers of that, and a block of the cache.
  broadcast(made.arrays, 5.0 * kRowWarps * rows, 8 * rows);
  activations.bytesWritten += rows * double(work.heads * 4 * dim);
  activations.sectorsWritten += rows * work.heads * head.sectors;
  activations.idealWritten += rows * work.heads * head.ideal;
  const Requests stored =
      rowRequests(1, dim, elementBytes(work.kv), elementBytes(work.kv) * dim);
  const double scale = work.kv == KvKind::I8 ? 1 : 0;
  const double stores = 2 * kvHeads * (rows - work.padding);
  made.cache.bytesWritten += stores * kvBytes(work.kv, dim, 1);
  made.cache.sectorsWritten += stores * (stored.sectors + scale);
  made.cache.idealWritten += stores * (stored.ideal + scale);
  made.neededBytes += rows * ((rotated + kvHeads) * double(4 * dim) +
                              double(work.heads * 4 * dim) + double(8 * half)) +
                      stores * kvBytes(work.kv, dim, 1);
  // Elements that rotate together lie side by side: every second word.
  std::vector<std::int64_t> pairs;
  for (std::int64_t i = 0; i < half && work.interleaved; ++i)
    pairs.push_back(8 * i);
  made.conflict = std::max(bankPasses(pairs, 4), 1.0);
  return made;
}

} // namespace ingot::cuda
