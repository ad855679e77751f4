// Who runs the model: a CUDA device or the cpu, by what was asked for, what the
// artifact has code for and what the machine has.
#include "runtime/engine/Engine.h"

#include "runtime/execute/cpu/MachineBandwidth.h"
#include "runtime/plan/LibraryUse.h"
#include "runtime/plan/VerifyPlan.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace ingot {
namespace {

struct WantedDevice {
  bool isAny = false; // the first CUDA device, else the cpu
  int number = -1;    // of a CUDA device; -1: the cpu
};

Result<WantedDevice> readDevice(const std::string &text) {
  WantedDevice wanted;
  constexpr std::string_view prefix = "cuda:";
  if (text.empty()) {
    wanted.isAny = true;
    wanted.number = 0;
    return wanted;
  }
  if (text == "cpu")
    return wanted;
  if (text == "cuda") {
    wanted.number = 0;
    return wanted;
  }
  const char *end = text.data() + text.size();
  if (text.rfind(prefix, 0) == 0) {
    auto [stop, error] =
        std::from_chars(text.data() + prefix.size(), end, wanted.number);
    if (error == std::errc() && stop == end && wanted.number >= 0)
      return wanted;
  }
  return Status::invalid("device \"" + text +
                         "\": expected cpu, cuda or cuda:N");
}

bool hasLevel(const fbs::Target &target, const std::string &name) {
  return std::any_of(
      target.levels()->begin(), target.levels()->end(),
      [&](const fbs::Level *level) { return level->name()->str() == name; });
}

} // namespace

Status Engine::startDevice(const EngineOptions &options) {
  INGOT_ASSIGN_OR_RETURN(WantedDevice wanted, readDevice(options.device));
  target_ = artifact_.target(kCudaTarget);
  if (wanted.number == -1)
    return startCpu(options);
  if (!wanted.isAny) {
    if (!target_)
      return Status::unsupported("has no code for CUDA; rebuild it with cuda "
                                 "among its targets");
    INGOT_RETURN_IF_ERROR(openDevice(options.level, wanted.number));
    return startCuda(options);
  }
  // Nobody has said which: a level of the cpu, or threads, speak for it.
  bool isForCpu = options.threads > 0 || (!options.level.empty() && target_ &&
                                          !hasLevel(*target_, options.level));
  const fbs::Target *cpu = artifact_.target("cpu");
  if (!target_ || (isForCpu && cpu))
    return startCpu(options);
  Status opened = openDevice(options.level, wanted.number);
  if (opened.isOk())
    return startCuda(options);
  if (!cpu || !options.level.empty())
    return opened;
  whyNotDevice_ = opened.message();
  return startCpu(options);
}

Status Engine::openDevice(const std::string &level, int number) {
  INGOT_ASSIGN_OR_RETURN(
      std::shared_ptr<const cuda::Driver> driver,
      cuda::Driver::open(cuda::leastDriverVersion(*target_)));
  INGOT_ASSIGN_OR_RETURN(std::shared_ptr<cuda::Device> device,
                         cuda::Device::open(driver, number));
  INGOT_ASSIGN_OR_RETURN(deviceLevel_, cuda::chooseLevel(*target_, level,
                                                         device->properties(),
                                                         driver->version()));
  if (libraryUseOf(*target_).isUsed()) {
    auto library = cuda::CublasLt::open();
    if (!library)
      return library.status().withContext("was compiled with "
                                          "--allow-library-gemm");
    cublasLt_ = std::move(library).value();
  }
  device_ = std::move(device);
  return Status::ok();
}

Status Engine::startCuda(const EngineOptions &options) {
  if (options.threads > 0)
    return Status::invalid("threads are of the cpu, and " +
                           device_->properties().name + " runs the model");
  level_ = target_->levels()->Get(deviceLevel_)->name()->str();
  INGOT_RETURN_IF_ERROR(startText());
  INGOT_ASSIGN_OR_RETURN(cuda::Device::MemoryInfo memory,
                         device_->memoryInfo());
  std::uint64_t weights = artifact_.plan().weights_bytes();
  INGOT_RETURN_IF_ERROR(makeContract(
      options, 1, memory.freeBytes - std::min(memory.freeBytes, weights)));
  INGOT_RETURN_IF_ERROR(cuda::checkDeviceMemory(*device_, contract_));
  INGOT_ASSIGN_OR_RETURN(
      cuda::CudaCode code,
      cuda::CudaCode::load(*device_, *target_, deviceLevel_,
                           artifact_.segment(container::SegmentKind::Code)));
  INGOT_RETURN_IF_ERROR(makeCache(
      options, [this](std::uint64_t sizeBytes, const std::string &what) {
        return cuda::makeDeviceState(*device_, sizeBytes, what);
      }));
  cuda::CudaExecutorOptions cudaOptions = options.cuda;
  cudaOptions.library = cublasLt_;
  INGOT_ASSIGN_OR_RETURN(std::unique_ptr<cuda::CudaExecutor> executor,
                         cuda::CudaExecutor::create(
                             artifact_.plan(), *target_, *device_,
                             std::move(code),
                             artifact_.segment(container::SegmentKind::Weights),
                             contract_, *cache_, cudaOptions));
  cudaExecutor_ = executor.get();
  executor_ = std::move(executor);
  return Status::ok();
}

std::string Engine::placement() const {
  if (device_ && cudaExecutor_)
    return device_->properties().name + " (device " +
           std::to_string(device_->properties().number) + "), level " + level_ +
           (cublasLt_
                ? ", cuBLASLt " + cublasLt_->versionText() + " in steps of " +
                      std::to_string(libraryUseOf(*target_).firstRows) +
                      " rows and more (lossy: bits depend on company)"
                : "");
  return "level " + level_ + ", " + std::to_string(numThreads()) + " threads";
}

Result<double> Engine::measureBandwidth() {
  return cudaExecutor_ ? cuda::measureCopyBandwidth(*device_)
                       : measureReadBandwidth(*pool_);
}

} // namespace ingot
