// Reads what an importer says a model is: the first and last row of every
// parameter, by way of the code that packs them.
#pragma once

#include "compiler/frontend/ModelSpec.h"
#include "compiler/package/PackWeights.h"
#include "runtime/support/MappedFile.h"

#include <vector>

namespace ingot::fuzz {

inline void readWeights(const ModelSpec &spec) {
  std::vector<MappedFile> files;
  for (const SourceFile &file : spec.sources) {
    auto mapped = MappedFile::open(file.path);
    if (!mapped)
      return;
    files.push_back(std::move(*mapped));
  }
  auto bytes = [&](std::uint32_t file, std::uint64_t offset,
                   std::uint64_t size) {
    // An importer answers for this.
    if (offset > files[file].bytes().size() ||
        size > files[file].bytes().size() - offset)
      __builtin_trap();
    return files[file].bytes().subspan(offset, size);
  };
  for (const auto &[role, source] : spec.parameters) {
    StoredTensor tensor;
    tensor.name = source.name;
    tensor.form = source.dtype;
    tensor.bytes = bytes(source.fileIndex, source.byteOffset, source.sizeBytes);
    tensor.rows = static_cast<std::uint64_t>(source.shape[0]);
    tensor.columns = source.shape.size() == 2
                         ? static_cast<std::uint64_t>(source.shape[1])
                         : 1;
    tensor.permuteHeads = static_cast<std::uint32_t>(source.permutationHeads);
    tensor.storedRows = static_cast<std::uint64_t>(source.storedRows);
    tensor.first = static_cast<std::uint64_t>(source.first);
    tensor.run = static_cast<std::uint64_t>(source.run);
    tensor.stride = static_cast<std::uint64_t>(source.stride);
    tensor.transposed = source.transposed;
    tensor.details = source.details;
    tensor.details.forEachPlane([&](StoredPlane &plane) {
      plane.bytes = bytes(plane.fileIndex, plane.byteOffset, plane.sizeBytes);
    });
    if (tensor.columns > 1u << 16)
      continue;
    auto rows = StoredRows::create(tensor);
    if (!rows)
      continue;
    std::vector<float> values(tensor.columns);
    for (std::uint64_t row : {std::uint64_t{0}, tensor.rows - 1})
      rows->widen(row, values);
    if (tensor.columns == 1)
      continue;
    auto packer = package::WeightPacker::create(
        nativeEncoding(tensor.form, tensor.details), {tensor});
    if (!packer)
      continue;
    const package::PackedLayout &layout = packer->layout();
    std::vector<std::uint8_t> codes(layout.codesBytesPerTile);
    std::vector<std::uint8_t> scales(layout.scalesBytesPerTile);
    std::vector<std::uint8_t> mins(layout.minsOffset ? layout.scalesBytesPerTile
                                                     : 0);
    package::PackStatistics statistics;
    // Weights that are not finite are refused by name.
    if (!packer->packTile(layout.rowTiles - 1, codes, scales, mins, statistics))
      continue;
  }
}

} // namespace ingot::fuzz
