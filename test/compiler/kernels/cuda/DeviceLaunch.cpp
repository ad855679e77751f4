// The cases of CUDA kernels on the device of a driver instead of the emulator: what
// test/simt declares, as far as the cases use it, on page-locked memory, which the
// device reads and writes at the host's own addresses. What only an emulator sees
// (races, bounds, what nobody wrote) is not looked for; order is the device's own.
//
// The program is GoogleTest's, with a code of its own, 6, where there is no device.
// INGOT_GPU_DEVICE is the device's number; with INGOT_WARM_KERNELS=1 the cache of
// compiled kernels is filled first, on all cores.
#include "compiler/codegen/cuda/CompileCuda.h"
#include "runtime/execute/cuda/Device.h"
#include "test/compiler/kernels/cuda/CudaFixtures.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>

namespace ingot {
namespace {

using namespace cuda;

constexpr int kExitNoDevice = 6;

class Machine {
public:
  static Machine &get() {
    static Machine machine;
    return machine;
  }

  Status open() {
    INGOT_ASSIGN_OR_RETURN(std::shared_ptr<const Driver> driver,
                           Driver::open());
    const char *number = std::getenv("INGOT_GPU_DEVICE");
    INGOT_ASSIGN_OR_RETURN(
        device_, Device::open(driver, number ? std::atoi(number) : 0));
    return Status::ok();
  }
  const Device &device() const { return *device_; }

  // Kernels for the cases to find, compiled together.
  Status warm() const {
    const char *wanted = std::getenv("INGOT_WARM_KERNELS");
    if (!wanted || std::string(wanted) != "1")
      return Status::ok();
    codegen::CompileCudaOptions options;
    options.cacheFolder = codegen::defaultCudaCacheFolder();
    options.withPtx = false;
    options.threads = std::max(std::thread::hardware_concurrency(), 1u);
    const std::string sms[] = {device_->properties().sm()};
    return codegen::compileCuda(sms, codegen::commonCudaKernels(), options)
        .status();
  }

  Result<FunctionHandle> function(const codegen::CudaKernel &kernel,
                                  std::int32_t sharedBytes) {
    auto known = functions_.find(kernel.name);
    if (known == functions_.end()) {
      INGOT_ASSIGN_OR_RETURN(FunctionHandle made, load(kernel));
      known = functions_.emplace(kernel.name, made).first;
    }
    INGOT_RETURN_IF_ERROR(device_->driver().functionSetAttribute(
        known->second, kFunctionMaxDynamicShared, sharedBytes));
    return known->second;
  }

private:
  Result<FunctionHandle> load(const codegen::CudaKernel &kernel) {
    const DeviceProperties &has = device_->properties();
    codegen::CompileCudaOptions options;
    options.cacheFolder = codegen::defaultCudaCacheFolder();
    options.withPtx = false;
    const std::string sms[] = {has.sm()}, names[] = {kernel.name};
    INGOT_ASSIGN_OR_RETURN(codegen::CompiledCuda made,
                           codegen::compileCuda(sms, names, options));
    ModuleHandle module = nullptr;
    INGOT_RETURN_IF_ERROR(device_->driver().moduleLoad(
        &module, made.levels[0].images[0].bytes.data(), 0, nullptr, nullptr));
    FunctionHandle function = nullptr;
    INGOT_RETURN_IF_ERROR(device_->driver().moduleGetFunction(
        &function, module, kernel.entry.c_str()));
    return function;
  }

  std::shared_ptr<Device> device_;
  std::map<std::string, FunctionHandle> functions_;
};

[[noreturn]] void fail(const Status &status) {
  std::fprintf(stderr, "ingot-cuda-kernel-cases: %s\n",
               status.message().c_str());
  std::fflush(nullptr);
  std::_Exit(1); // no case after it can be right
}

Status launchOnDevice(const codegen::CudaKernel &kernel,
                      const abi::KernelGeometry &geometry, abi::KernelGrid grid,
                      const void *params) {
  Machine &machine = Machine::get();
  INGOT_ASSIGN_OR_RETURN(FunctionHandle function,
                         machine.function(kernel, geometry.sharedBytes));
  void *arguments[] = {const_cast<void *>(params)};
  INGOT_RETURN_IF_ERROR(machine.device().driver().launchKernel(
      function, grid.x, grid.y, grid.z, unsigned(geometry.blockThreads), 1, 1,
      unsigned(geometry.sharedBytes), machine.device().stream(), arguments,
      nullptr));
  return machine.device().synchronize();
}

} // namespace

// ---- what the cases use of test/simt/Simt.h ----
namespace simt {

void *allocate(std::size_t bytes, Access) {
  void *memory = nullptr;
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  if (Status status = Machine::get().device().driver().memHostAlloc(
          &memory, size, kHostAllocPortable);
      !status)
    fail(status);
  std::memset(memory, 0xff, size);
  return memory;
}
void release(void *memory) {
  if (Status status = Machine::get().device().driver().memFreeHost(memory);
      !status)
    fail(status);
}
void markInitialised(const void *, std::size_t) {}
std::string LaunchReport::text() const { return {}; }

} // namespace simt

namespace test {

simt::LaunchReport launchNamed(const std::string &name, abi::KernelGrid grid,
                               const void *params, std::size_t,
                               const simt::LaunchOptions &,
                               const abi::KernelGeometry *geometry) {
  auto kernel = codegen::cudaKernel(name);
  if (!kernel) {
    ADD_FAILURE() << kernel.status().message();
    return {};
  }
  Status status = launchOnDevice(
      *kernel, geometry ? *geometry : kernel->geometry, grid, params);
  // A failed launch takes the context with it.
  if (!status)
    fail(status.withContext("kernel " + name));
  return {};
}

} // namespace test
} // namespace ingot

int main(int argc, char **argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (!::testing::GTEST_FLAG(list_tests))
    if (ingot::Status status = ingot::Machine::get().open(); !status) {
      std::fprintf(stderr, "ingot-cuda-kernel-cases: %s\n",
                   status.message().c_str());
      return ingot::kExitNoDevice;
    }
  if (!::testing::GTEST_FLAG(list_tests))
    if (ingot::Status status = ingot::Machine::get().warm(); !status)
      ingot::fail(status);
  const int result = RUN_ALL_TESTS();
  std::fflush(nullptr);
  std::_Exit(result); // modules go with the context
}
