// NVIDIA's run-time compiler, opened when it is needed: no header and no library of
// CUDA is part of the build. One text becomes a cubin for one SM ("sm_90a"), or PTX
// for a virtual one ("compute_80").
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ingot::codegen {

// What ptxas says of a kernel; zeros for PTX, which it has not seen.
struct KernelResources {
  std::uint32_t registers = 0;  // of a thread
  std::uint32_t spillBytes = 0; // stores and loads together
  std::uint32_t stackBytes = 0;
  std::uint32_t staticSharedBytes = 0;
};

struct NvrtcOutput {
  std::vector<std::uint8_t> image; // a cubin, or PTX with its closing zero
  KernelResources resources;
};

class Nvrtc {
public:
  // Opens the library at `path`; where it is empty, at $INGOT_NVRTC, by the names
  // that the linker's paths know, or in /usr/local/cuda. An error names what was tried.
  static Result<Nvrtc> open(const std::string &path = "");

  // 13000 for 13.0.
  int version() const { return version_; }
  const std::string &path() const { return path_; }
  // Whether this NVRTC has the target; an error names those that it has.
  Status checkTarget(const std::string &target) const;

  // Compiles `text`. An error names the kernel, the target and the first lines at
  // fault. Calls from several threads are legal.
  Result<NvrtcOutput> compile(const std::string &kernel,
                              const std::string &text,
                              const std::string &target,
                              const std::vector<std::string> &options) const;

private:
  struct Api;
  std::shared_ptr<const Api> api_;
  int version_ = 0;
  std::string path_;
};

// Reads the resources of `entry` out of what ptxas prints with -v.
KernelResources readResources(const std::string &log, const std::string &entry);

} // namespace ingot::codegen
