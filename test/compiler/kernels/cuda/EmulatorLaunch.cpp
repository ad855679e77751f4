// Launches by name on the emulator; DeviceLaunch.cpp has the same for a driver.
#include "test/compiler/kernels/cuda/CudaFixtures.h"
#include "test/simt/KernelTable.h"

namespace ingot::test {

simt::LaunchReport launchNamed(const std::string &name, abi::KernelGrid grid,
                               const void *params, std::size_t paramsBytes,
                               const simt::LaunchOptions &options,
                               const abi::KernelGeometry *geometry) {
  auto kernel = codegen::cudaKernel(name);
  if (!kernel) {
    ADD_FAILURE() << kernel.status().message();
    return {};
  }
  auto text = codegen::cudaKernelText(*kernel);
  const simt::KernelEntry *entry =
      text ? simt::KernelTable::find(kernel->entry.c_str(),
                                     codegen::cudaTextHash(*text))
           : nullptr;
  if (!entry || entry->paramsBytes != paramsBytes) {
    ADD_FAILURE() << name << ": no host build of its text in this program, or "
                  << "other parameters";
    return {};
  }
  const abi::KernelGeometry shape = geometry ? *geometry : kernel->geometry;
  return simt::launch(
      {grid.x, grid.y, grid.z}, {unsigned(shape.blockThreads)},
      std::size_t(shape.sharedBytes), [&] { entry->run(params); }, options);
}

} // namespace ingot::test
