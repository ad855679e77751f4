// The code of one level of a CUDA target, as it goes into an artifact: the images of
// its kernels one after another, and what is known of each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ingot::package {

// Images start at multiples of this within their level.
inline constexpr std::uint64_t kImageAlignment = 64;

struct CudaKernelImage {
  std::string name;
  std::uint64_t offset = 0; // within the level's bytes
  std::uint64_t size = 0;
  std::uint32_t registers = 0;
  std::uint32_t spillBytes = 0;
  std::uint32_t staticSharedBytes = 0;
  std::string sourceHash; // 16 hexadecimal digits
};

struct CudaLevelCode {
  std::string name;                // "sm_90", "compute_80"
  std::uint32_t driverVersion = 0; // the oldest that loads it, as Driver counts
  std::vector<std::uint8_t> bytes;
  std::vector<CudaKernelImage> kernels; // in the order of the plan

  // Adds an image behind those that there are; `image` has no offset or size yet.
  void add(CudaKernelImage image, const std::vector<std::uint8_t> &imageBytes) {
    bytes.resize((bytes.size() + kImageAlignment - 1) / kImageAlignment *
                 kImageAlignment);
    image.offset = bytes.size();
    image.size = imageBytes.size();
    bytes.insert(bytes.end(), imageBytes.begin(), imageBytes.end());
    kernels.push_back(std::move(image));
  }
};

} // namespace ingot::package
