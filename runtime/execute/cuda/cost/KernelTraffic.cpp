// linear, embed, and the kernels with a block for each row; the attention kernels are
// in AttentionTraffic.cpp.
#include "runtime/execute/cuda/cost/KernelTraffic.h"

#include "runtime/execute/cuda/cost/Requests.h"

#include <algorithm>
#include <set>

namespace ingot::cuda {
namespace {

constexpr double kRowWarps = abi::kRowThreads / 32;

} // namespace

Stream &Stream::operator+=(const Stream &other) {
  bytesRead += other.bytesRead;
  bytesWritten += other.bytesWritten;
  bytesReadBack += other.bytesReadBack;
  sectorsRead += other.sectorsRead;
  sectorsWritten += other.sectorsWritten;
  idealRead += other.idealRead;
  idealWritten += other.idealWritten;
  return *this;
}

LaunchTraffic &LaunchTraffic::operator+=(const LaunchTraffic &other) {
  weights += other.weights;
  cache += other.cache;
  activations += other.activations;
  arrays += other.arrays;
  flops += other.flops;
  neededBytes += other.neededBytes;
  neededFlops += other.neededFlops;
  blocks += other.blocks;
  conflict = std::max(conflict, other.conflict);
  return *this;
}

//===----------------------------------------------------------------------===//
// Requests of a warp
//===----------------------------------------------------------------------===//

Requests rowRequests(std::int64_t rows, std::int64_t width,
                     std::int64_t elementBytes, std::int64_t strideBytes,
                     std::int64_t startBytes) {
  constexpr std::int64_t kLanes = 32;
  // Rows that begin at the same place of a sector are alike.
  Requests known[kSectorBytes];
  bool isKnown[kSectorBytes] = {};
  Requests all;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto start =
        std::size_t((startBytes + row * strideBytes) % kSectorBytes);
    Requests &one = known[start];
    if (!isKnown[start]) {
      isKnown[start] = true;
      for (std::int64_t first = 0; first < width; first += kLanes) {
        const std::int64_t bytes =
            std::min(width - first, kLanes) * elementBytes;
        const std::int64_t at = std::int64_t(start) + first * elementBytes;
        one.sectors +=
            double((at + bytes - 1) / kSectorBytes - at / kSectorBytes + 1);
        one.ideal += double(sectorsOf(bytes));
      }
      one.bytes = double((std::int64_t(start) + width * elementBytes - 1) /
                             kSectorBytes * kSectorBytes +
                         kSectorBytes);
    }
    all.sectors += one.sectors;
    all.ideal += one.ideal;
    all.bytes += one.bytes;
  }
  if (strideBytes == width * elementBytes) // one piece: rows share sectors
    all.bytes = double(sectorsOf(rows * strideBytes) * kSectorBytes);
  return all;
}

void readRows(Stream &stream, const Requests &requests, int passes) {
  stream.bytesRead += requests.bytes;
  stream.sectorsRead += passes * requests.sectors;
  stream.idealRead += passes * requests.ideal;
}
void readBack(Stream &stream, const Requests &requests, int passes) {
  stream.bytesReadBack += requests.bytes;
  stream.sectorsRead += passes * requests.sectors;
  stream.idealRead += passes * requests.ideal;
}
void broadcast(Stream &stream, double warps, double bytes) {
  stream.bytesRead += bytes;
  stream.sectorsRead += warps;
  stream.idealRead += 4 * warps;
}
void writeRows(Stream &stream, const Requests &requests, int passes) {
  stream.bytesWritten += requests.bytes;
  stream.sectorsWritten += passes * requests.sectors;
  stream.idealWritten += passes * requests.ideal;
}

void writeHalfRows(Stream &stream, std::int64_t rows, std::int64_t width,
                   std::int32_t parts) {
  const double halves =
      double(rows * parts * sectorsOf(2 * abi::cudaPaddedK(width)));
  stream.bytesWritten += (halves + double(rows)) * kSectorBytes;
  stream.sectorsWritten += halves + double(rows); // and a scale
  stream.idealWritten += halves + double(rows);
}

double halfRowNeeds(std::int64_t rows, std::int64_t width, std::int32_t parts) {
  return double(rows) * (2.0 * double(parts) * double(width) + 4.0);
}

double bankPasses(std::span<const std::int64_t> addresses, std::int32_t bytes) {
  constexpr std::int64_t kBanks = 32;
  const std::size_t phase = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
  double passes = 0, fewest = 0;
  for (std::size_t first = 0; first < addresses.size(); first += phase) {
    std::set<std::int64_t> words;
    int perBank[kBanks] = {};
    int most = 0;
    for (std::size_t lane = first;
         lane < std::min(first + phase, addresses.size()); ++lane)
      for (std::int64_t word = addresses[lane] / 4;
           word < (addresses[lane] + bytes + 3) / 4; ++word)
        if (words.insert(word).second)
          most = std::max(most, ++perBank[word % kBanks]);
    passes += most;
    fewest += 1;
  }
  return fewest > 0 ? passes / fewest : 1;
}

double matrixPasses(std::int64_t strideBytes) {
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < 8; ++row)
    rows.push_back(row * strideBytes);
  return bankPasses(rows, 16);
}

//===----------------------------------------------------------------------===//
// linear
//===----------------------------------------------------------------------===//

abi::LinearTile linearTileOf(const abi::KernelGeometry &geometry) {
  if (geometry.tokens == 64)
    return geometry.rows == 32 ? abi::LinearTile::T64 : abi::LinearTile::P64;
  return abi::linearTileFor(geometry.tokens);
}

LaunchTraffic linearTraffic(const LinearWork &work) {
  LaunchTraffic made;
  const std::int64_t n = work.n, tokens = work.tokens;
  const std::int64_t tiles = (n + abi::kMmaRows - 1) / abi::kMmaRows;
  const std::int64_t units = abi::cudaPaddedK(work.k) / abi::kCudaUnit;
  const bool isInteger =
      work.code == abi::CudaCode::I8 || work.code == abi::CudaCode::I4;
  const abi::LinearTile tile = linearTileOf(work.geometry);
  const abi::KernelGrid grid =
      abi::linearGrid(work.geometry, work.n, work.tokens);
  made.blocks = double(grid.x) * double(grid.y);
  const double tokenBlocks = double(grid.y);

  // Codes and factors: whole sectors, once for each block of tokens.
  auto readWeights = [&](double bytes) {
    made.weights.bytesRead += bytes;
    made.weights.sectorsRead += tokenBlocks * bytes / kSectorBytes;
    made.weights.idealRead += tokenBlocks * bytes / kSectorBytes;
  };
  readWeights(double(tiles * units * abi::cudaUnitBytes(work.code)));
  const double factors = work.minimum ? 2 : 1;
  const std::int64_t groups = abi::cudaGroups(work.k, work.group);
  if (isInteger && work.group > 0)
    readWeights(factors * double(tiles * groups * abi::kMmaRows * 2));

  // Activations: whole rows, once for each block of rows.
  const double rowSectors =
      double(tokens * work.parts * sectorsOf(2 * abi::cudaPaddedK(work.k)));
  made.activations.bytesRead += (rowSectors + double(tokens)) * kSectorBytes;
  made.activations.sectorsRead += double(grid.x) * rowSectors;
  made.activations.idealRead += double(grid.x) * rowSectors;

  // The ends of sums: a request has 8 rows and the even, or odd, ones of 8 tokens.
  const std::int64_t rowGroups = (n + 7) / 8;
  double requests = 0; // for a group of rows
  auto idealOf = [&](std::int64_t bytes) {
    double ideal = 0;
    for (std::int64_t first = 0; first < tokens; first += 8) {
      const std::int64_t count = std::min<std::int64_t>(tokens - first, 8);
      for (std::int64_t lanes : {(count + 1) / 2, count / 2})
        ideal += double(n / 8 * sectorsOf(8 * lanes * bytes) +
                        sectorsOf(n % 8 * lanes * bytes));
    }
    return ideal;
  };
  for (std::int64_t first = 0; first < tokens; first += 8)
    requests += double(std::min<std::int64_t>(tokens - first, 2));
  const double floatsIdeal = idealOf(4);
  made.activations.sectorsRead += double(rowGroups * tokens); // tokens' scales
  made.activations.idealRead += floatsIdeal;
  auto oncePerRow = [&](std::int64_t bytes) {
    made.weights.bytesRead += double(sectorsOf(n * bytes) * kSectorBytes);
    made.weights.sectorsRead += double(rowGroups) * requests;
    made.weights.idealRead += idealOf(bytes);
  };
  if (isInteger && work.group == 0)
    oncePerRow(2);
  if (work.hasBias)
    oncePerRow(4);
  auto floats = [&](std::int64_t stride) {
    Requests made;
    std::int64_t latest = -1; // sector that the token before ended in
    for (std::int64_t token = 0; token < tokens; ++token) {
      const std::int64_t begin = token * stride + work.outputColumn;
      const std::int64_t at = begin % 8, rest = n % 8;
      made.sectors += double(n / 8 * (at == 0 ? 1 : 2)) +
                      (rest ? double((at + rest - 1) / 8 + 1) : 0);
      const std::int64_t last = (begin + n - 1) / 8;
      made.bytes +=
          double((last - std::max(begin / 8, latest + 1) + 1) * kSectorBytes);
      latest = last;
    }
    made.ideal = floatsIdeal;
    return made;
  };
  writeRows(made.activations, floats(work.outputStride), 1);
  if (work.hasResidual)
    readRows(made.activations, floats(work.residualStride), 1);

  // Tiles multiply what does not exist, too: the other rows, tokens and units.
  const bool isSplit = abi::isSplitTile(tile, work.parts);
  std::int64_t depth = units;
  std::int64_t warpTiles = isSplit ? 2 : 1;
  if (isSplit) {
    const std::int64_t groupUnits =
        work.group > abi::kCudaUnit ? work.group / abi::kCudaUnit : 1;
    const std::int64_t round = groupUnits * abi::kLinearWarps;
    depth = (units + round - 1) / round * round;
  } else if (tile == abi::LinearTile::P64) {
    warpTiles = work.geometry.rows / abi::kMmaRows / abi::kLinearWarps;
  }
  made.flops = 2.0 * made.blocks * work.geometry.rows * work.geometry.tokens *
               double(depth * abi::kCudaUnit) * work.parts;
  if (work.minimum)
    made.flops *= double(warpTiles + 1) / double(warpTiles);
  made.neededFlops = 2.0 * double(n) * work.k * double(tokens);
  const double bits = double(abi::cudaUnitBytes(work.code)) / 128;
  made.neededBytes = double(n) * work.k * bits / 8 +
                     (isInteger ? factors * 2.0 * double(n * groups) : 0) +
                     (work.hasBias ? 4.0 * double(n) : 0) +
                     halfRowNeeds(tokens, work.k, work.parts) +
                     4.0 * double(n * tokens) * (work.hasResidual ? 2 : 1);
  made.conflict = matrixPasses(abi::kStageRowHalves * 2);
  return made;
}

//===----------------------------------------------------------------------===//
// Kernels with a block for each row
//===----------------------------------------------------------------------===//

LaunchTraffic rowTraffic(const RowWork &work) {
  LaunchTraffic made;
  made.blocks = work.rows;
  const std::int64_t rows = work.rows, width = work.width;
  const Requests floats = rowRequests(rows, width, 4, 4 * width);
  // Half rows are made in a second pass over a row, of what was written, or anew.
  const bool isReread = work.hasHalves && !work.hasOutput;
  const int passes = isReread ? 2 : 1;
  const double rowBytes = 4.0 * double(rows * width);
  Requests vector = rowRequests(1, width, 4, 4 * width);
  auto readVector = [&](int times) {
    made.weights.bytesRead += vector.bytes;
    made.weights.sectorsRead += double(times) * double(rows) * vector.sectors;
    made.weights.idealRead += double(times) * double(rows) * vector.ideal;
    made.neededBytes += 4.0 * double(width);
  };
  auto readInput = [&](int times) {
    readRows(made.activations, floats, times);
    made.neededBytes += rowBytes;
  };
  switch (work.operation) {
  case RowOperation::RmsNorm:
    readInput(1 + passes);
    readVector(passes);
    break;
  case RowOperation::LayerNorm:
    readInput(2 + passes);
    readVector(passes);
    if (work.hasBias)
      readVector(passes);
    break;
  case RowOperation::Quantize:
  case RowOperation::Activate:
  case RowOperation::Cap:
    readInput(passes);
    break;
  case RowOperation::Gated: {
    // The gate, then what it opens, in one row.
    readRows(made.activations, rowRequests(rows, width, 4, 8 * width), passes);
    readRows(made.activations,
             rowRequests(rows, width, 4, 8 * width, 4 * width), passes);
    made.neededBytes += 2 * rowBytes;
    break;
  }
  case RowOperation::Add:
    readInput(1);
    readInput(1);
    break;
  case RowOperation::GatherRows:
    readInput(1);
    broadcast(made.arrays, kRowWarps * double(rows), 4.0 * double(rows));
    break;
  case RowOperation::RopeTable: {
    const std::int64_t half = width / 2;
    Requests frequencies = rowRequests(1, half, 4, 4 * half);
    made.weights.bytesRead += frequencies.bytes;
    made.weights.sectorsRead += double(rows) * frequencies.sectors;
    made.weights.idealRead += double(rows) * frequencies.ideal;
    Requests halves = rowRequests(rows, half, 4, 4 * width);
    halves.bytes = floats.bytes / 2;
    writeRows(made.activations, halves, 1);
    writeRows(made.activations, halves, 1);
    broadcast(made.arrays, kRowWarps * double(rows), 4.0 * double(rows));
    made.neededBytes += 4.0 * double(half) + rowBytes;
    return made;
  }
  }
  if (work.hasOutput) {
    writeRows(made.activations, floats, 1);
    made.neededBytes += rowBytes;
    if (work.hasHalves)
      readBack(made.activations, floats, 1);
  }
  if (work.hasHalves) {
    writeHalfRows(made.activations, rows, width, work.parts);
    made.neededBytes += halfRowNeeds(rows, width, work.parts);
  }
  return made;
}

LaunchTraffic embedTraffic(const EmbedWork &work) {
  LaunchTraffic made;
  made.blocks = work.rows;
  const std::int64_t width = work.width;
  const bool isInteger =
      work.code == abi::CudaCode::I8 || work.code == abi::CudaCode::I4;
  // Of row 0 of a tile; every other row has the same pattern.
  auto place = [&](std::int64_t k) {
    const std::int64_t unit =
        k / abi::kCudaUnit * abi::cudaUnitBytes(work.code);
    const std::int64_t step = k % abi::kCudaUnit / 16, in = k % 16;
    const std::int64_t lane = in % 8 / 2, element = in / 8 * 4 + in % 2;
    switch (work.code) {
    case abi::CudaCode::I8:
      return unit + ((step / 2 * 32 + lane) * 2 + step % 2) * 8 + element;
    case abi::CudaCode::I4:
      return unit + (lane * 4 + step) * 4;
    default:
      return unit + ((step * 32 + lane) * 8 + element) * 2;
    }
  };
  const std::int64_t bytes = work.code == abi::CudaCode::I4   ? 4
                             : work.code == abi::CudaCode::I8 ? 1
                                                              : 2;
  double sectors = 0, ideal = 0, factorSectors = 0, factorIdeal = 0;
  std::set<std::int64_t> all, factors;
  for (std::int64_t first = 0; first < width; first += 32) {
    std::set<std::int64_t> own, ownFactors;
    const std::int64_t count = std::min<std::int64_t>(width - first, 32);
    for (std::int64_t k = first; k < first + count; ++k) {
      own.insert(place(k) / kSectorBytes);
      ownFactors.insert(work.group > 0 ? k / work.group : 0);
    }
    sectors += double(own.size());
    ideal += double(sectorsOf(count * bytes));
    factorSectors += double(ownFactors.size());
    factorIdeal += double(sectorsOf(count * 2));
    all.merge(own);
    factors.merge(ownFactors);
  }
  const double rows = work.rows, planes = !isInteger ? 0 : work.minimum ? 2 : 1;
  // Tokens that name the same row share its bytes; here each has its own.
  made.weights.bytesRead =
      rows * kSectorBytes *
      (double(all.size()) + planes * double(factors.size()));
  made.weights.sectorsRead = rows * (sectors + planes * factorSectors);
  made.weights.idealRead = rows * (ideal + planes * factorIdeal);
  writeRows(made.activations, rowRequests(work.rows, width, 4, 4 * width), 1);
  broadcast(made.arrays, kRowWarps * rows, 4 * rows);
  const double bits = double(abi::cudaUnitBytes(work.code)) / 128;
  made.neededBytes =
      rows * (double(width) * (bits / 8 + 4) +
              planes * 2 * double(abi::cudaGroups(width, work.group)));
  return made;
}

LaunchTraffic sampleTraffic(const SampleWork &work) {
  LaunchTraffic made;
  made.blocks = work.rows;
  const std::int64_t rows = work.rows, vocab = work.vocab;
  readRows(made.activations, rowRequests(rows, vocab, 4, 4 * vocab),
           work.hasNoise ? 2 : 1);
  writeRows(made.arrays, rowRequests(rows, 1, 4, 4), 1);
  // Seed, position and temperature, by every warp.
  constexpr std::int64_t kRowBytes = sizeof(abi::SampleRow);
  broadcast(made.arrays, 3 * kRowWarps * double(rows),
            double(sectorsOf(rows * kRowBytes) * kSectorBytes));
  made.arrays.idealRead += 3 * 4 * kRowWarps * double(rows); // of 8 bytes each
  made.neededBytes = double(rows) * (4.0 * double(vocab) + kRowBytes + 4);
  return made;
}

} // namespace ingot::cuda
