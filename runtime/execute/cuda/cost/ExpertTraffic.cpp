#include "runtime/execute/cuda/cost/ExpertTraffic.h"

#include "runtime/execute/cuda/cost/Requests.h"
#include "runtime/plan/CudaExpertsAbi.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace ingot::cuda {
namespace {

constexpr std::int64_t kLanes = 32;
constexpr double kRowWarps = abi::kRowThreads / 32;

// One request of `count` lanes for floats side by side from byte `at` on.
void along(Requests &requests, std::int64_t at, std::int64_t count) {
  if (count <= 0)
    return;
  requests.sectors +=
      double((at + 4 * count - 1) / kSectorBytes - at / kSectorBytes + 1);
  requests.ideal += double(sectorsOf(4 * count));
}

std::int64_t warps(std::int64_t count) { return (count + kLanes - 1) / kLanes; }

} // namespace

std::vector<std::int32_t> ExpertChoice::rowsOfExperts() const {
  std::vector<std::int32_t> rows(std::size_t(experts), 0);
  for (std::int32_t expert : chosen)
    ++rows[std::size_t(expert)];
  return rows;
}

ExpertChoice choiceOf(std::int32_t experts, std::int32_t topK,
                      std::int32_t used, std::int32_t rows,
                      std::int32_t padding) {
  ExpertChoice choice{experts, topK, {}};
  for (std::int32_t row = 0; row < rows; ++row)
    for (std::int32_t j = 0; j < topK; ++j) {
      const std::int64_t turn =
          row < rows - padding ? std::int64_t(row) * topK + j : j;
      choice.chosen.push_back(std::int32_t(turn % used));
    }
  return choice;
}

std::int32_t expertsOfEvenChoice(std::int32_t experts, std::int32_t topK,
                                 std::int32_t tokens) {
  const double missed =
      std::pow(1.0 - double(topK) / double(experts), double(tokens));
  return std::max(topK, std::int32_t(std::lround(experts * (1.0 - missed))));
}

LaunchTraffic routeTraffic(const ExpertChoice &choice, bool normalized) {
  LaunchTraffic made;
  const std::int64_t rows = choice.tokens(), experts = choice.experts;
  const std::int64_t topK = choice.topK;
  made.blocks = double(rows);
  broadcast(made.arrays, double(rows), 4.0 * double(rows));
  // The first logit for all lanes, the largest, the sum, and the largest that is left
  // for each choice.
  const Requests floats = rowRequests(rows, experts, 4, 4 * experts);
  readRows(made.activations, floats, int(1 + topK));
  made.activations.sectorsRead += double(rows);
  made.activations.idealRead += 4.0 * double(rows);
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t first = 0; first < experts; first += 16) {
      const std::int64_t count = std::min<std::int64_t>(experts - first, 16);
      const std::int64_t at = 4 * (row * experts + first);
      made.activations.sectorsRead +=
          double((at + 4 * count - 1) / kSectorBytes - at / kSectorBytes + 1);
      // Both halves of the warp ask.
      made.activations.idealRead += double(sectorsOf(2 * 4 * count));
    }
  // One lane writes, and divides.
  const double slots = double(rows * topK);
  made.activations.bytesWritten +=
      double(sectorsOf(8 * rows * topK) * kSectorBytes);
  made.activations.sectorsWritten += (normalized ? 3 : 2) * slots;
  made.activations.idealWritten += (normalized ? 3 : 2) * slots;
  if (normalized) {
    Requests own;
    std::int64_t latest = -1;
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t begin = 4 * (2 * row + 1) * topK;
      const std::int64_t last = (begin + 4 * topK - 1) / kSectorBytes;
      own.bytes +=
          double((last - std::max(begin / kSectorBytes, latest + 1) + 1) *
                 kSectorBytes);
      latest = last;
    }
    own.sectors = own.ideal = slots;
    readBack(made.activations, own, 1);
  }
  made.neededBytes = 4.0 * double(rows * experts) + 8.0 * slots;
  return made;
}

LaunchTraffic orderTraffic(const ExpertChoice &choice) {
  LaunchTraffic made;
  const std::int64_t slots = choice.slots(), topK = choice.topK;
  made.blocks = choice.experts;
  // Every expert's block looks at all choices twice. A warp has 32 slots, whose
  // numbers lie together by token.
  auto placeOf = [&](std::int64_t slot) {
    return 4 * (slot / topK * 2 * topK + slot % topK);
  };
  Requests all;
  std::set<std::int64_t> different;
  for (std::int64_t first = 0; first < slots; first += kLanes) {
    std::set<std::int64_t> sectors;
    const std::int64_t count = std::min(slots - first, kLanes);
    for (std::int64_t slot = first; slot < first + count; ++slot)
      sectors.insert(placeOf(slot) / kSectorBytes);
    all.sectors += double(sectors.size());
    all.ideal += double(sectorsOf(4 * count));
    different.merge(sectors);
  }
  all.bytes = double(different.size()) * kSectorBytes;
  readRows(made.activations, all, 1);
  all.bytes = 0;
  readRows(made.activations, all, 2 * choice.experts - 1);

  // A warp's own slots get rows side by side, and write them to where their slots are.
  std::vector<std::int64_t> next(std::size_t(choice.experts), 0);
  std::int64_t begin = 0;
  const std::vector<std::int32_t> rows = choice.rowsOfExperts();
  for (std::size_t e = 0; e < rows.size(); ++e) {
    next[e] = begin;
    begin += rows[e];
  }
  Requests written;
  for (std::int64_t first = 0; first < slots; first += kLanes) {
    const std::int64_t count = std::min(slots - first, kLanes);
    for (std::int32_t e = 0; e < choice.experts; ++e) {
      std::set<std::int64_t> places;
      std::int64_t own = 0;
      for (std::int64_t slot = first; slot < first + count; ++slot)
        if (choice.chosen[std::size_t(slot)] == e) {
          places.insert(4 * (slots + slot) / kSectorBytes);
          ++own;
        }
      along(written, 4 * next[std::size_t(e)], own);
      written.sectors += double(places.size());
      written.ideal += double(sectorsOf(4 * own));
      next[std::size_t(e)] += own;
    }
  }
  written.sectors += choice.experts + 1; // where the rows of each begin
  written.ideal += choice.experts + 1;
  const std::int64_t bytes = 4 * (2 * slots + choice.experts + 1);
  written.bytes = double(sectorsOf(bytes) * kSectorBytes);
  writeRows(made.activations, written, 1);
  made.neededBytes = 4.0 * double(slots) + double(bytes);
  return made;
}

LaunchTraffic dispatchTraffic(const ExpertChoice &choice,
                              const DispatchWork &work) {
  LaunchTraffic made;
  const std::int64_t slots = choice.slots(), tokens = choice.tokens();
  made.blocks = double(slots);
  broadcast(made.activations, kRowWarps * double(slots), 4.0 * double(slots));
  if (work.toParts == 0) {
    // Rows are read once for each choice, and are different once.
    Requests read =
        rowRequests(tokens, work.width, 4, 4 * std::int64_t(work.width));
    readRows(made.activations, read, choice.topK);
    writeRows(made.activations,
              rowRequests(slots, work.width, 4, 4 * std::int64_t(work.width)),
              1);
    made.neededBytes = 4.0 * double((tokens + slots) * work.width);
    return made;
  }
  const double halves =
      double(work.toParts * sectorsOf(2 * abi::cudaPaddedK(work.width)));
  made.activations.bytesRead += double(tokens) * (halves + 1) * kSectorBytes;
  made.activations.sectorsRead += double(slots) * (halves + 1); // and a scale
  made.activations.idealRead += double(slots) * (halves + 1);
  writeHalfRows(made.activations, slots, work.width, work.toParts);
  made.neededBytes = halfRowNeeds(tokens + slots, work.width, work.toParts);
  return made;
}

LaunchTraffic expertTraffic(const ExpertChoice &choice,
                            const LinearWork &expert) {
  LaunchTraffic made;
  const std::int64_t experts = choice.experts, slots = choice.slots();
  const std::int64_t rowBlocks =
      (expert.n + expert.geometry.rows - 1) / expert.geometry.rows;
  // Every warp reads where the rows of 32 experts begin, and end, until it has found
  // its own; those that find none have read all.
  std::vector<Requests> upTo; // with so many groups of 32
  Requests sum;
  for (std::int64_t first = 0; first < experts; first += kLanes) {
    const std::int64_t count = std::min(experts - first, kLanes);
    along(sum, 4 * (2 * slots + first), count);
    along(sum, 4 * (2 * slots + first + 1), count);
    upTo.push_back(sum);
  }
  std::int64_t lastGroup = 0, tiles = 0;
  auto search = [&](std::size_t groups, std::int64_t blocks) {
    const double asking = double(blocks * abi::kLinearWarps);
    made.activations.sectorsRead += asking * upTo[groups].sectors;
    made.activations.idealRead += asking * upTo[groups].ideal;
  };
  const std::vector<std::int32_t> rows = choice.rowsOfExperts();
  for (std::size_t e = 0; e < rows.size(); ++e) {
    if (rows[e] == 0)
      continue;
    LinearWork work = expert;
    work.tokens = rows[e];
    made += linearTraffic(work);
    const std::int64_t own =
        (rows[e] + work.geometry.tokens - 1) / work.geometry.tokens;
    lastGroup = std::int64_t(e) / kLanes;
    search(std::size_t(lastGroup), own * rowBlocks);
    tiles += own;
  }
  const std::int64_t empty =
      abi::expertTokenTiles(std::int32_t(slots), std::int32_t(experts),
                            expert.geometry.tokens) -
      tiles;
  if (empty > 0) {
    lastGroup = std::int64_t(upTo.size()) - 1;
    search(upTo.size() - 1, empty * rowBlocks);
  }
  const std::int64_t last = 2 * slots + std::min(experts, 32 * (lastGroup + 1));
  made.activations.bytesRead += double(
      (4 * last / kSectorBytes - 8 * slots / kSectorBytes + 1) * kSectorBytes);
  return made;
}

LaunchTraffic combineTraffic(const ExpertChoice &choice, std::int32_t width) {
  LaunchTraffic made;
  const std::int64_t tokens = choice.tokens(), slots = choice.slots();
  made.blocks = double(tokens);
  const std::int64_t rowBytes = 4 * std::int64_t(width);
  readRows(made.activations, rowRequests(slots, width, 4, rowBytes), 1);
  writeRows(made.activations, rowRequests(tokens, width, 4, rowBytes), 1);
  // Each warp asks for a slot's row and probability, the same for all lanes.
  double ideal = 0;
  for (std::int64_t first = 0; first < width; first += kLanes)
    ideal += double(sectorsOf(4 * std::min(width - first, kLanes)));
  made.activations.sectorsRead += 2.0 * double(slots * warps(width));
  made.activations.idealRead += 2.0 * double(slots) * ideal;
  std::set<std::int64_t> probabilities;
  for (std::int64_t slot = 0; slot < slots; ++slot)
    probabilities.insert(4 *
                         (slot / choice.topK * 2 * choice.topK + choice.topK +
                          slot % choice.topK) /
                         kSectorBytes);
  const std::int64_t begin = 4 * slots;
  made.activations.bytesRead += double(std::int64_t(probabilities.size()) +
                                       (begin + 4 * slots - 1) / kSectorBytes -
                                       begin / kSectorBytes + 1) *
                                kSectorBytes;
  made.neededBytes =
      double(tokens + slots) * double(rowBytes) + 8.0 * double(slots);
  return made;
}

} // namespace ingot::cuda
