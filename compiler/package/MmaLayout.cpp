#include "compiler/package/MmaLayout.h"

namespace ingot::package {

Result<abi::CudaCode> cudaCode(const WeightEncoding &encoding) {
  switch (encoding.code) {
  case WeightCode::F16:
    return abi::CudaCode::F16;
  case WeightCode::BF16:
    return abi::CudaCode::BF16;
  case WeightCode::I8:
    return abi::CudaCode::I8;
  case WeightCode::I4:
    return abi::CudaCode::I4;
  case WeightCode::F32:
    break;
  }
  return Status::unsupported("float32 has no tiles for tensor cores");
}

Result<PackedLayout> mmaLayout(const WeightEncoding &encoding,
                               std::uint64_t rows, std::uint64_t columns) {
  INGOT_ASSIGN_OR_RETURN(abi::CudaCode code, cudaCode(encoding));
  INGOT_ASSIGN_OR_RETURN(PackedLayout layout,
                         packedLayout(encoding, rows, columns));
  auto roundUp = [](std::uint64_t value) { return (value + 63) / 64 * 64; };
  const bool hasScales = layout.scalesOffset != 0;
  const bool hasMins = layout.minsOffset != 0;
  layout.paddedColumns = static_cast<std::uint64_t>(
      abi::cudaPaddedK(static_cast<std::int64_t>(columns)));
  layout.codesBytesPerTile = static_cast<std::uint64_t>(
      abi::cudaTileBytes(code, static_cast<std::int64_t>(columns)));
  std::uint64_t end = roundUp(layout.rowTiles * layout.codesBytesPerTile);
  const std::uint64_t plane =
      roundUp(layout.rowTiles * layout.scalesBytesPerTile);
  layout.scalesOffset = hasScales ? end : 0;
  end += hasScales ? plane : 0;
  layout.minsOffset = hasMins ? end : 0;
  end += hasMins ? plane : 0;
  layout.size = end;
  return layout;
}

} // namespace ingot::package
