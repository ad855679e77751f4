// ingot-gpu-rates: one line of JSON about a CUDA device: what it is, how fast it copies
// its memory, how fast linear_f16_p64 and, where there is one, cuBLASLt multiply on its
// tensor cores (whose results are checked), and what a launch that does next to nothing
// takes.
// Exit codes: 0 told; 1 a wrong result or a failure; 2 wrong use; 6 no device.
#include "compiler/codegen/cuda/CompileCuda.h"
#include "runtime/execute/cuda/Device.h"
#include "tools/gpu/LibraryRate.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>

using namespace ingot;
using namespace ingot::cuda;

namespace {

constexpr int kFailed = 1;
constexpr int kExitNoDevice = 6;
constexpr const char *kPromptKernel = "linear_f16_p64";
constexpr const char *kDecodeKernel = "linear_f16_t8";
constexpr std::uint16_t kOne = 0x3c00;                  // float16
constexpr const char *kStandInName = "CUDA on the CPU"; // of test/simt's driver

// y = W x of ones, so that every result is K.
class Linear {
public:
  static Result<Linear> create(const Device &device, const char *name,
                               std::int32_t n, std::int32_t k,
                               std::int32_t tokens) {
    Linear made(device);
    INGOT_ASSIGN_OR_RETURN(made.kernel_, codegen::cudaKernel(name));
    codegen::CompileCudaOptions options;
    options.cacheFolder = codegen::defaultCudaCacheFolder();
    options.withPtx = false;
    const std::string sms[] = {device.properties().sm()}, names[] = {name};
    INGOT_ASSIGN_OR_RETURN(codegen::CompiledCuda code,
                           codegen::compileCuda(sms, names, options));
    const Driver &driver = device.driver();
    INGOT_RETURN_IF_ERROR(
        driver.moduleLoad(&made.module_, code.levels[0].images[0].bytes.data(),
                          0, nullptr, nullptr));
    INGOT_RETURN_IF_ERROR(driver.moduleGetFunction(
        &made.function_, made.module_, made.kernel_.entry.c_str()));
    INGOT_RETURN_IF_ERROR(
        driver.functionSetAttribute(made.function_, kFunctionMaxDynamicShared,
                                    made.kernel_.geometry.sharedBytes));

    const std::int64_t tiles = (n + abi::kMmaRows - 1) / abi::kMmaRows;
    const std::int64_t codes =
        tiles * abi::cudaTileBytes(abi::CudaCode::F16, k);
    const std::int64_t rowBytes = abi::halfRowBytes(k);
    auto take = [&](DeviceMemory &memory, std::int64_t bytes,
                    const char *what) -> Status {
      INGOT_ASSIGN_OR_RETURN(
          memory, DeviceMemory::allocate(device, std::uint64_t(bytes), what));
      return Status::ok();
    };
    INGOT_RETURN_IF_ERROR(take(made.weights_, codes, "weights"));
    INGOT_RETURN_IF_ERROR(take(made.rows_, rowBytes * tokens, "activations"));
    INGOT_RETURN_IF_ERROR(
        take(made.output_, std::int64_t(4) * n * tokens, "results"));
    INGOT_RETURN_IF_ERROR(driver.fillWords16(made.weights_.address(), kOne,
                                             std::size_t(codes / 2),
                                             device.stream()));
    std::vector<std::uint8_t> rows(std::size_t(rowBytes * tokens));
    for (std::int32_t token = 0; token < tokens; ++token) {
      std::uint8_t *row = rows.data() + token * rowBytes;
      for (std::int32_t i = 0; i < k; ++i)
        std::memcpy(row + 2 * i, &kOne, 2);
      const float scale = 1;
      std::memcpy(row + abi::halfRowScaleOffset(k), &scale, 4);
    }
    INGOT_ASSIGN_OR_RETURN(Uploader uploader, Uploader::create(device));
    INGOT_RETURN_IF_ERROR(uploader.add(made.rows_.address(), rows));
    INGOT_RETURN_IF_ERROR(uploader.finish());
    made.params_.quantized = {
        reinterpret_cast<std::uint8_t *>(made.rows_.address()), rowBytes,
        std::int32_t(abi::halfRowScaleOffset(k)), 0};
    made.params_.weights.codes =
        reinterpret_cast<const void *>(made.weights_.address());
    made.params_.output = reinterpret_cast<float *>(made.output_.address());
    made.params_.outputStride = n;
    made.params_.numTokens = tokens;
    made.params_.k = k;
    made.params_.n = n;
    return made;
  }

  Status launch() {
    const abi::KernelGrid grid =
        abi::linearGrid(kernel_.geometry, params_.n, params_.numTokens);
    void *arguments[] = {&params_};
    return device_->driver().launchKernel(
        function_, grid.x, grid.y, grid.z,
        unsigned(kernel_.geometry.blockThreads), 1, 1,
        unsigned(kernel_.geometry.sharedBytes), device_->stream(), arguments,
        nullptr);
  }
  // Seconds of one launch among `count` on end; the best of a few.
  Result<double> secondsOf(int count) {
    INGOT_ASSIGN_OR_RETURN(Event begin, Event::create(*device_));
    INGOT_ASSIGN_OR_RETURN(Event end, Event::create(*device_));
    double best = 0;
    for (int round = 0; round < 4; ++round) {
      INGOT_RETURN_IF_ERROR(begin.record());
      for (int i = 0; i < count; ++i)
        INGOT_RETURN_IF_ERROR(launch());
      INGOT_RETURN_IF_ERROR(end.record());
      INGOT_RETURN_IF_ERROR(end.wait());
      float milliseconds = 0;
      INGOT_RETURN_IF_ERROR(device_->driver().eventElapsedTime(
          &milliseconds, begin.handle(), end.handle()));
      const double seconds = double(milliseconds) / 1e3 / count;
      best = best > 0 ? std::min(best, seconds) : seconds;
    }
    return best;
  }
  // Whether every result is K.
  Status check() {
    std::vector<float> results(std::size_t(params_.n) *
                               std::size_t(params_.numTokens));
    INGOT_ASSIGN_OR_RETURN(
        PinnedMemory host,
        PinnedMemory::allocate(*device_, results.size() * 4, "results"));
    INGOT_RETURN_IF_ERROR(device_->driver().copyToHost(
        host.data(), output_.address(), results.size() * 4, device_->stream()));
    INGOT_RETURN_IF_ERROR(device_->synchronize());
    std::memcpy(results.data(), host.data(), results.size() * 4);
    for (std::size_t i = 0; i < results.size(); ++i)
      if (!(results[i] == float(params_.k)))
        return Status::internal("kernel " + kernel_.name + ": result " +
                                std::to_string(i) + " is " +
                                std::to_string(results[i]) + ", expected " +
                                std::to_string(params_.k));
    return Status::ok();
  }
  double flops() const {
    return 2.0 * params_.n * double(params_.k) * params_.numTokens;
  }

private:
  explicit Linear(const Device &device) : device_(&device) {}

  const Device *device_;
  codegen::CudaKernel kernel_;
  ModuleHandle module_ = nullptr; // goes with the context
  FunctionHandle function_ = nullptr;
  DeviceMemory weights_, rows_, output_;
  abi::LinearParams params_ = {};
};

// The same product by cuBLASLt; where it is not there or cannot run, why. Only wrong
// results are a failure: whoever has none of it has not asked for it.
Status measureLibrary(const Device &device, int size, double flops,
                      nlohmann::ordered_json &report) {
  nlohmann::ordered_json &told = report["library_multiplication"];
  auto library = CublasLt::open();
  if (!library) {
    told = {{"missing", library.status().message()}};
    return Status::ok();
  }
  const std::string name = "cuBLASLt " + (*library)->versionText();
  auto seconds = measureLibraryProduct(device, **library, size);
  if (!seconds) {
    told = {{"missing", name + " (" + (*library)->path() +
                            "): " + seconds.status().message()}};
    return seconds.status().code() == StatusCode::Internal ? seconds.status()
                                                           : Status::ok();
  }
  told = {{"library", name},
          {"path", (*library)->path()},
          {"rows", size},
          {"columns", size},
          {"tokens", size},
          {"seconds", *seconds},
          {"flops_per_second", flops / *seconds}};
  return Status::ok();
}

Status measure(const Device &device, int size, nlohmann::ordered_json &report) {
  INGOT_ASSIGN_OR_RETURN(const double copy, measureCopyBandwidth(device));
  report["copy_bytes_per_second"] = copy;
  INGOT_ASSIGN_OR_RETURN(
      Linear large, Linear::create(device, kPromptKernel, size, size, size));
  INGOT_RETURN_IF_ERROR(large.launch()); // clocks come up
  INGOT_ASSIGN_OR_RETURN(const double seconds, large.secondsOf(4));
  INGOT_RETURN_IF_ERROR(large.check());
  report["multiplication"] = {
      {"kernel", kPromptKernel}, {"rows", size},
      {"columns", size},         {"tokens", size},
      {"seconds", seconds},      {"flops_per_second", large.flops() / seconds}};
  INGOT_RETURN_IF_ERROR(measureLibrary(device, size, large.flops(), report));
  INGOT_ASSIGN_OR_RETURN(Linear small,
                         Linear::create(device, kDecodeKernel, 32, 64, 1));
  INGOT_RETURN_IF_ERROR(small.launch());
  INGOT_ASSIGN_OR_RETURN(const double launch, small.secondsOf(64));
  INGOT_RETURN_IF_ERROR(small.check());
  report["launch_seconds"] = launch;
  return Status::ok();
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Tells what a CUDA device is and how fast, as JSON");
  int number = 0, size = 4096;
  bool isProbe = false;
  app.add_option("--device", number, "Its number")->check(CLI::Range(0, 1024));
  app.add_option("--size", size,
                 "Rows, columns and tokens of the multiplication")
      ->check(CLI::Range(64, 16384))
      ->capture_default_str();
  app.add_flag("--probe", isProbe, "Tell what it is, measure nothing");
  app.footer("Exit codes: 0 told; 1 a failure; 2 wrong use; 6 no CUDA device.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  auto driver = Driver::open();
  auto device = driver ? Device::open(*driver, number)
                       : Result<std::shared_ptr<Device>>(driver.status());
  if (!device) {
    std::fprintf(stderr, "%s\n", device.status().message().c_str());
    return kExitNoDevice;
  }
  const DeviceProperties &has = (*device)->properties();
  auto memory = (*device)->memoryInfo();
  nlohmann::ordered_json report = {
      {"device", has.name},
      {"stand_in", has.name == kStandInName},
      {"sm", has.sm()},
      {"multiprocessors", has.multiprocessors},
      {"memory_bytes", memory ? memory->totalBytes : 0},
      {"driver", (*driver)->path()},
      {"driver_version", cudaVersionText((*driver)->version())}};
  if (!isProbe)
    if (Status status = measure(**device, size, report); !status) {
      std::fprintf(stderr, "ingot-gpu-rates: %s\n", status.message().c_str());
      return kFailed;
    }
  std::printf("%s\n", report.dump().c_str());
  return 0;
}
