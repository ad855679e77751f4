// Kernels to images for a list of SMs, in parallel, through a cache on disk that is
// addressed by content: the text, the options and the version of NVRTC.
#pragma once

#include "compiler/codegen/cuda/CudaCatalog.h"
#include "compiler/codegen/cuda/Nvrtc.h"

#include <span>

namespace ingot::codegen {

struct CompileCudaOptions {
  unsigned threads = 1;
  std::string nvrtcPath;   // empty: Nvrtc::open() looks for it
  std::string cacheFolder; // empty: no cache
  bool lineInfo = false;   // lines of the sources for profilers
  bool withPtx = true;     // compute_80, for chips that no cubin serves
};

struct CudaImage {
  std::string kernel; // its name
  std::uint64_t textHash = 0;
  std::vector<std::uint8_t> bytes; // a cubin, or PTX with its closing zero
  KernelResources resources;
};

struct CudaLevel {
  std::string name; // "sm_90a"; "compute_80" is PTX
  int driverVersion =
      0; // the least that loads it, as cuDriverGetVersion counts
  std::vector<CudaImage> images; // in the order of the kernels
};

struct CompiledCuda {
  int nvrtcVersion = 0;
  std::vector<CudaLevel> levels; // as asked for, then "compute_80"
  std::size_t cacheHits = 0;
  std::size_t compiled = 0;
};

// Every kernel for every target of `sms`, and as PTX of compute_80 for chips that no
// cubin serves. An image holds a symbol `ingot_source_<16 hexadecimal digits>`, the
// hash of the kernel's text (cudaTextHash). An unknown target, a kernel without a
// text and a text that does not compile are errors; a damaged entry of the cache is
// made anew, and a cache that cannot be written is none.
Result<CompiledCuda> compileCuda(std::span<const std::string> sms,
                                 std::span<const std::string> kernels,
                                 const CompileCudaOptions &options = {});

// $XDG_CACHE_HOME/ingot/cuda or ~/.cache/ingot/cuda; empty where there is no home.
std::string defaultCudaCacheFolder();

} // namespace ingot::codegen
