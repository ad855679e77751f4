// What the models of traffic share: requests of a warp, whose 32 lanes go along a row.
#pragma once

#include "runtime/execute/cuda/cost/KernelTraffic.h"

namespace ingot::cuda {

inline constexpr std::int64_t kSectorBytes = 32;
inline constexpr std::int64_t sectorsOf(std::int64_t bytes) {
  return (bytes + kSectorBytes - 1) / kSectorBytes;
}

struct Requests {
  double sectors = 0;
  double ideal = 0;
  double bytes = 0; // of different sectors
};

// One pass over `rows` rows of `width` elements, each warp taking 32 of them at a time.
// Row r begins at startBytes + r * strideBytes of an array.
Requests rowRequests(std::int64_t rows, std::int64_t width,
                     std::int64_t elementBytes, std::int64_t strideBytes,
                     std::int64_t startBytes = 0);
void readRows(Stream &stream, const Requests &requests, int passes);
// Of what the launch has written itself.
void readBack(Stream &stream, const Requests &requests, int passes);
// A load of one element by all lanes of `warps` warps; the array has `bytes`.
void broadcast(Stream &stream, double warps, double bytes);
void writeRows(Stream &stream, const Requests &requests, int passes);

// Half rows (runtime/plan/CudaAbi.h), written once.
void writeHalfRows(Stream &stream, std::int64_t rows, std::int64_t width,
                   std::int32_t parts);
// The bytes that they cannot do without.
double halfRowNeeds(std::int64_t rows, std::int64_t width, std::int32_t parts);

// Passes over the fewest of a load of matrices whose rows lie `strideBytes` apart.
double matrixPasses(std::int64_t strideBytes);

} // namespace ingot::cuda
