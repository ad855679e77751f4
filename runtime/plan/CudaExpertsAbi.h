// What the kernels of mixtures of experts take on CUDA devices, and their grids. As
// CudaAbi.h, included by the kernels' text and by the executor. order_slots, combine
// and expert_linear take the structs of KernelAbi.h.
//
// How many rows an expert has is known to the device alone. Grids are as large as any
// choice could need them, a block finds its expert and tokens in `order`, and one
// that finds none ends: nobody waits for the host, and a graph stays valid.
#pragma once

#include "runtime/plan/CudaAbi.h"

namespace ingot::abi {

// route: as RouteParams. A padding row takes the experts of row 0, so that it asks for
// no weights of its own. A warp for each token: rowGrid(tokens).
struct CudaRouteParams {
  const float *logits;          // [numTokens, experts]
  float *routes;                // [numTokens, 2 * topK]
  const int32_t *tokenSequence; // [numTokens], -1: padding
  int32_t numTokens;
  int32_t experts;
  int32_t topK;
  int32_t normalized;
};
static_assert(sizeof(CudaRouteParams) == 40);
inline constexpr KernelGeometry routeGeometry() { return {32, 0, 1, 1}; }

// order_slots: a block for each expert.
inline constexpr KernelGeometry orderGeometry() {
  return {kRowThreads, 3 * (kRowThreads / 32) * 4, 1, 1};
}
inline constexpr KernelGrid orderGrid(int32_t experts) {
  return {static_cast<uint32_t>(experts), 1, 1};
}

// dispatch: row r of the result is row order[r] / topK of the input: float32 rows where
// `output` is not null, half rows where `to` is not. `to` has as many parts as `from`,
// or one. Grid: rowGrid(slots).
struct CudaDispatchParams {
  const int32_t *order; // of order_slots
  const float *input;   // [tokens, width]
  float *output;        // [numSlots, width]
  QuantizedRows from;   // [tokens, width]
  QuantizedRows to;     // [numSlots, width]
  int32_t numSlots;
  int32_t width;
  int32_t topK;
  int32_t reserved;
};
static_assert(sizeof(CudaDispatchParams) == 88);

// expert_linear: the tiles of `linear`, each of one expert's rows. Of `slots` rows over
// `experts` experts at most so many tiles of `tokens` are not empty: every expert that
// has rows has one that is not full.
inline constexpr int32_t expertTokenTiles(int32_t slots, int32_t experts,
                                          int32_t tokens) {
  const int32_t used = slots < experts ? slots : experts;
  return used + (slots - used) / tokens;
}
inline constexpr KernelGrid expertGrid(const KernelGeometry &geometry,
                                       int32_t n, int32_t slots,
                                       int32_t experts) {
  return {
      static_cast<uint32_t>((n + geometry.rows - 1) / geometry.rows),
      static_cast<uint32_t>(expertTokenTiles(slots, experts, geometry.tokens)),
      1};
}

// The most slots that a tile of so many tokens serves: as long as no expert can have
// more rows than the tile (a token chooses an expert once), or an even choice fills
// half of it. 0: any.
inline constexpr int32_t expertTileSlots(LinearTile tile, int32_t experts,
                                         int32_t topK) {
  if (tile == LinearTile::P64)
    return 0;
  const int32_t tokens = linearTokens(tile);
  const int32_t even = tokens * experts / 2;
  return even > tokens * topK ? even : tokens * topK;
}

} // namespace ingot::abi
