#include "runtime/execute/cuda/StepStaging.h"

#include <algorithm>
#include <cstring>

namespace ingot::cuda {
namespace {

constexpr std::uint64_t kAlignment = 256;

std::uint64_t blocksPerStep(const StepLimits &limits,
                            const MemoryContract &contract,
                            const KvCache &cache, std::size_t group) {
  std::uint64_t perSequence =
      std::uint64_t(contract.context) / cache.geometry(group).blockTokens + 1;
  return perSequence * std::uint64_t(limits.maxSequences);
}

} // namespace

// Gives each array its place, in one order for the sizes and for the pointers.
struct StepStaging::Places {
  std::uint64_t end = 0;
  std::uint8_t *host = nullptr; // null: only the sizes are wanted

  template <typename T> Array<T> take(std::uint64_t count) {
    Array<T> array;
    array.offset = end;
    if (host)
      array.host = {reinterpret_cast<T *>(host + end), std::size_t(count)};
    end += (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    return array;
  }
};

std::uint64_t StepStaging::bytesFor(const StepLimits &limits,
                                    const MemoryContract &contract,
                                    const KvCache &cache,
                                    std::size_t numShapes) {
  Places places;
  std::uint64_t tokens = std::uint64_t(limits.maxTokens);
  for (int i = 0; i < 4; ++i)
    (void)places.take<std::int32_t>(tokens);
  (void)places.take<std::int32_t>(std::uint64_t(limits.maxLogitRows));
  for (std::size_t g = 0; g < cache.numGroups(); ++g)
    (void)places.take<abi::SequenceSpan>(std::uint64_t(limits.maxSequences));
  for (std::size_t s = 0; s < numShapes; ++s) {
    (void)places.take<abi::AttentionTile>(tokens);
    (void)places.take<abi::AttentionTile>(tokens);
    (void)places.take<abi::TokenSlots>(tokens);
  }
  for (std::size_t g = 0; g < cache.numGroups(); ++g)
    (void)places.take<std::int32_t>(blocksPerStep(limits, contract, cache, g));
  return places.end;
}

Result<StepStaging> StepStaging::create(const Device &device,
                                        const StepLimits &limits,
                                        const MemoryContract &contract,
                                        const KvCache &cache,
                                        std::vector<AttentionShape> shapes) {
  StepStaging staging;
  std::uint64_t bytes = bytesFor(limits, contract, cache, shapes.size());
  INGOT_ASSIGN_OR_RETURN(staging.host_,
                         PinnedMemory::allocate(device, bytes, "step staging"));
  INGOT_ASSIGN_OR_RETURN(staging.device_,
                         DeviceMemory::allocate(device, bytes, "step arrays"));
  staging.shapes_ = std::move(shapes);
  staging.tiles_.resize(staging.shapes_.size());
  staging.maxSlots_ = contract.partialSlots;
  Places places;
  places.host = staging.host_.data();
  std::uint64_t tokens = std::uint64_t(limits.maxTokens);
  staging.tokens_ = places.take<std::int32_t>(tokens);
  staging.positionsOf_ = places.take<std::int32_t>(tokens);
  staging.rotaryLengths_ = places.take<std::int32_t>(tokens);
  staging.tokenSequence_ = places.take<std::int32_t>(tokens);
  staging.logitRows_ =
      places.take<std::int32_t>(std::uint64_t(limits.maxLogitRows));
  for (std::size_t g = 0; g < cache.numGroups(); ++g) {
    Group group;
    group.sequences =
        places.take<abi::SequenceSpan>(std::uint64_t(limits.maxSequences));
    group.offsets.resize(std::size_t(limits.maxSequences));
    staging.groups_.push_back(std::move(group));
  }
  for (std::size_t s = 0; s < staging.shapes_.size(); ++s) {
    Shape shape;
    shape.splitTiles = places.take<abi::AttentionTile>(tokens);
    shape.wideTiles = places.take<abi::AttentionTile>(tokens);
    shape.tokenSlots = places.take<abi::TokenSlots>(tokens);
    staging.shapeArrays_.push_back(shape);
  }
  staging.fixedBytes_ = places.end;
  for (std::size_t g = 0; g < cache.numGroups(); ++g)
    staging.groups_[g].blockTable =
        places.take<std::int32_t>(blocksPerStep(limits, contract, cache, g));

  auto at = [&](const auto &array) {
    return staging.device_.address() + array.offset;
  };
  DeviceArrays &arrays = staging.deviceArrays_;
  arrays.tokens = at(staging.tokens_);
  arrays.positions = at(staging.positionsOf_);
  arrays.rotaryLengths = at(staging.rotaryLengths_);
  arrays.tokenSequence = at(staging.tokenSequence_);
  arrays.logitRows = at(staging.logitRows_);
  for (const Group &group : staging.groups_)
    arrays.groups.push_back({at(group.blockTable), at(group.sequences)});
  for (const Shape &shape : staging.shapeArrays_)
    arrays.shapes.push_back(
        {at(shape.splitTiles), at(shape.wideTiles), at(shape.tokenSlots)});
  return staging;
}

Status StepStaging::fill(const StepPlan &plan, const KvCache &cache,
                         std::int32_t rows, std::int32_t logitRows) {
  auto pad = [](auto span, std::size_t from, std::size_t to, auto value) {
    std::fill(span.begin() + std::ptrdiff_t(from),
              span.begin() + std::ptrdiff_t(to), value);
  };
  std::copy(plan.tokens.begin(), plan.tokens.end(), tokens_.host.begin());
  std::copy(plan.logitRows.begin(), plan.logitRows.end(),
            logitRows_.host.begin());
  std::size_t own = plan.tokens.size(), all = std::size_t(rows);
  pad(tokens_.host, own, all, 0);
  pad(positionsOf_.host, own, all, 0);
  pad(rotaryLengths_.host, own, all, 0);
  pad(tokenSequence_.host, own, all, -1);
  pad(logitRows_.host, plan.logitRows.size(), std::size_t(logitRows), 0);
  positions_ = 0;
  for (std::size_t s = 0; s < plan.sequences.size(); ++s) {
    const StepSequence &sequence = plan.sequences[s];
    for (std::int32_t r = 0; r < sequence.numRows; ++r) {
      std::size_t row = std::size_t(sequence.firstRow + r);
      positionsOf_.host[row] = sequence.firstPosition + r;
      rotaryLengths_.host[row] = sequence.rotaryLength;
      tokenSequence_.host[row] = std::int32_t(s);
    }
    positions_ += sequence.firstPosition + sequence.numRows;
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    Group &group = groups_[g];
    std::size_t offset = 0;
    for (std::size_t s = 0; s < plan.sequences.size(); ++s) {
      const StepSequence &sequence = plan.sequences[s];
      auto table = cache.blockTable(sequence.id, g);
      std::int32_t blockTokens = cache.geometry(g).blockTokens;
      std::size_t needed = (std::size_t(sequence.firstPosition) +
                            sequence.numRows + blockTokens - 1) /
                           blockTokens;
      if (table.size() < needed ||
          offset + needed > group.blockTable.host.size())
        return Status::internal("sequence " + std::to_string(sequence.id) +
                                ": " + std::to_string(table.size()) +
                                " blocks reserved, the step needs " +
                                std::to_string(needed));
      group.offsets[s] = std::int32_t(offset);
      group.sequences.host[s] = {sequence.firstRow, sequence.numRows,
                                 sequence.firstPosition, std::int32_t(offset)};
      // Blocks behind the window are never read; block 0 stands for them.
      for (std::size_t b = 0; b < needed; ++b)
        group.blockTable.host[offset + b] = std::max(table[b], 0);
      offset += needed;
    }
    group.usedBlocks = offset;
  }
  for (std::size_t s = 0; s < shapes_.size(); ++s) {
    Shape &shape = shapeArrays_[s];
    tiles_[s] = cutAttention(shapes_[s], plan.sequences,
                             groups_[std::size_t(shapes_[s].group)].offsets,
                             maxSlots_, shape.splitTiles.host,
                             shape.wideTiles.host, shape.tokenSlots.host);
    // A graph reads a split tile for each of its rows, though one tile may serve
    // several of them: what an earlier step left there must not run again.
    pad(shape.splitTiles.host, std::size_t(tiles_[s].numSplitTiles), all,
        abi::AttentionTile{});
    pad(shape.tokenSlots.host, own, all, abi::TokenSlots{0, -1});
  }
  return Status::ok();
}

Status StepStaging::copy(const Device &device) {
  const Driver &driver = device.driver();
  INGOT_RETURN_IF_ERROR(driver.copyToDevice(device_.address(), host_.data(),
                                            fixedBytes_, device.stream()));
  for (const Group &group : groups_)
    if (group.usedBlocks > 0)
      INGOT_RETURN_IF_ERROR(driver.copyToDevice(
          device_.address() + group.blockTable.offset,
          group.blockTable.host.data(), group.usedBlocks * sizeof(std::int32_t),
          device.stream()));
  return Status::ok();
}

} // namespace ingot::cuda
