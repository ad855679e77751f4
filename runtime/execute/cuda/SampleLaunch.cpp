#include "runtime/execute/cuda/SampleLaunch.h"

namespace ingot::cuda {

Result<SampleLaunch> SampleLaunch::create(const Device &device,
                                          BoundKernel kernel,
                                          DevicePointer logits,
                                          std::int32_t maxRows,
                                          std::int32_t vocab) {
  SampleLaunch made;
  made.device_ = &device;
  made.kernel_ = kernel;
  auto count = std::uint64_t(maxRows);
  std::uint64_t rowsBytes = count * sizeof(abi::SampleRow);
  std::uint64_t tokensBytes = count * sizeof(std::int32_t);
  INGOT_ASSIGN_OR_RETURN(made.hostRows_,
                         PinnedMemory::allocate(device, rowsBytes, "choices"));
  INGOT_ASSIGN_OR_RETURN(
      made.hostTokens_,
      PinnedMemory::allocate(device, tokensBytes, "chosen tokens"));
  INGOT_ASSIGN_OR_RETURN(made.rows_,
                         DeviceMemory::allocate(device, rowsBytes, "choices"));
  INGOT_ASSIGN_OR_RETURN(
      made.tokens_,
      DeviceMemory::allocate(device, tokensBytes, "chosen tokens"));
  made.params_ = {
      reinterpret_cast<const float *>(logits),
      reinterpret_cast<const abi::SampleRow *>(made.rows_.address()),
      reinterpret_cast<std::int32_t *>(made.tokens_.address()), 0, vocab};
  return made;
}

Status SampleLaunch::enqueue(std::span<const RowChoice> choices) {
  numTokens_ = choices.size();
  if (choices.size() * sizeof(abi::SampleRow) > hostRows_.sizeBytes())
    return Status::internal(std::to_string(choices.size()) +
                            " tokens are to be chosen, more than there are "
                            "rows of logits");
  auto *rows = reinterpret_cast<abi::SampleRow *>(hostRows_.data());
  for (std::size_t i = 0; i < choices.size(); ++i)
    rows[i] = {choices[i].seed, choices[i].position,
               choices[i].inverseTemperature};
  const Driver &driver = device_->driver();
  INGOT_RETURN_IF_ERROR(driver.copyToDevice(
      rows_.address(), rows, choices.size() * sizeof(abi::SampleRow),
      device_->stream()));
  params_.numRows = std::int32_t(choices.size());
  abi::KernelGrid grid = abi::rowGrid(params_.numRows);
  void *arguments[] = {&params_};
  if (Status status =
          driver.launchKernel(kernel_.function, grid.x, grid.y, grid.z,
                              unsigned(kernel_.geometry.blockThreads), 1, 1,
                              unsigned(kernel_.geometry.sharedBytes),
                              device_->stream(), arguments, nullptr);
      !status)
    return status.withContext("launch \"sample\"");
  return driver.copyToHost(hostTokens_.data(), tokens_.address(),
                           choices.size() * sizeof(std::int32_t),
                           device_->stream());
}

std::span<const std::int32_t> SampleLaunch::tokens() const {
  return {reinterpret_cast<const std::int32_t *>(hostTokens_.data()),
          numTokens_};
}

} // namespace ingot::cuda
