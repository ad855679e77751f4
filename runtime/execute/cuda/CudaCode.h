// The kernels of a cuda target, loaded: which level of the artifact's code serves a
// device, and a function of the driver for each kernel.
#pragma once

#include "runtime/execute/cuda/Device.h"
#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ingot::cuda {

// The oldest driver that any level of the target can be loaded by.
int leastDriverVersion(const fbs::Target &target);

// The level of `target` for the device: `wanted` by name where not empty, else the
// first that runs on it (levels are listed best first). One sentence says what the
// artifact holds and what was found.
Result<std::uint32_t> chooseLevel(const fbs::Target &target,
                                  const std::string &wanted,
                                  const DeviceProperties &device,
                                  int driverVersion);

// Whether an image may be handed to the driver, which trusts it: text of PTX ends with
// its zero, and the headers of a cubin stay within it.
Status checkImage(std::span<const std::uint8_t> image, bool isText);

// The same of every kernel's image at a level, and that each names the text that the
// plan says it was compiled of. `code` is the artifact's code segment.
Status checkImages(const fbs::Target &target, std::uint32_t level,
                   std::span<const std::uint8_t> code);

class CudaCode {
public:
  // `code` is the artifact's code segment.
  static Result<CudaCode> load(const Device &device, const fbs::Target &target,
                               std::uint32_t level,
                               std::span<const std::uint8_t> code);
  CudaCode(CudaCode &&other) noexcept;
  CudaCode &operator=(CudaCode &&) = delete;
  ~CudaCode();

  // One function for each kernel of the target, by index.
  const std::vector<FunctionHandle> &functions() const { return functions_; }

private:
  explicit CudaCode(const Device &device) : device_(&device) {}

  const Device *device_;
  std::vector<ModuleHandle> modules_;
  std::vector<FunctionHandle> functions_;
};

} // namespace ingot::cuda
