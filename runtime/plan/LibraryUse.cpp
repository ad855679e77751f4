#include "runtime/plan/LibraryUse.h"

#include "runtime/plan/CudaLibraryAbi.h"

#include <algorithm>
#include <vector>

namespace ingot {

std::uint64_t LibraryUse::bytes(std::int32_t stepRows) const {
  return isUsed() ? unpackedBytes + sumsBytesPerRow * std::uint64_t(stepRows) +
                        kLibraryWorkspaceBytes
                  : 0;
}

LibraryUse libraryUseOf(const fbs::Target &target) {
  LibraryUse use;
  for (std::uint32_t i = 0; i < target.kernels()->size(); ++i)
    if (target.kernels()->Get(i)->op()->string_view() == kLibraryFinish)
      use.finishKernel = std::int32_t(i);
  std::vector<const fbs::ProgramSegment *> segments(target.segments()->begin(),
                                                    target.segments()->end());
  if (target.exits())
    for (const fbs::Exit *exit : *target.exits())
      for (const fbs::ProgramSegment *segment : {exit->head(), exit->fill()})
        if (segment)
          segments.push_back(segment);
  for (const fbs::ProgramSegment *segment : segments)
    for (const fbs::Launch *launch : *segment->launches()) {
      auto *linear = launch->params_as_Linear();
      if (!linear)
        continue;
      for (const fbs::Variant *variant : *launch->variants()) {
        const fbs::Kernel &kernel = *target.kernels()->Get(variant->kernel());
        if (kernel.op()->string_view() != kLibraryLinear)
          continue;
        use.firstRows = use.numLaunches == 0
                            ? variant->first()
                            : std::min(use.firstRows, variant->first());
        ++use.numLaunches;
        use.unpackedBytes = std::max(
            use.unpackedBytes,
            std::uint64_t(abi::unpackedBytes(linear->n(), linear->k())));
        use.sumsBytesPerRow =
            std::max(use.sumsBytesPerRow,
                     std::uint64_t(abi::librarySumsStride(linear->n())) * 4);
        break; // one launch, whatever its other variants
      }
    }
  return use;
}

} // namespace ingot
