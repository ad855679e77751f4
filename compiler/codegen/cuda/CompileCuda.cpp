// 1. Names to texts. 2. The jobs, kernels by targets, to threads: from the cache or
//    from NVRTC. 3. The results in the order that was asked for, or the first error in
//    that order.
#include "compiler/codegen/cuda/CompileCuda.h"

#include "compiler/package/OutputFile.h"
#include "runtime/support/RunOnThreads.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ingot::codegen {
namespace {

namespace fs = std::filesystem;

constexpr const char *kPtxTarget = "compute_80";
// No contraction and no fast division: the device keeps the law that the emulator
// proves.
const std::vector<std::string> kOptions = {
    "--std=c++17", "--fmad=false", "--device-as-default-execution-space",
    "--ptxas-options=-v"};

std::string hexadecimal(std::uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(value));
  return text;
}

// An entry of the cache: this, then the image.
struct EntryHeader {
  std::uint64_t magic = 0x3143554e544f4749; // "IGOTNUC1"
  KernelResources resources;
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0; // XXH3-64 of the image
};

std::optional<NvrtcOutput> readEntry(const fs::path &path) {
  std::ifstream in(path, std::ios::binary);
  EntryHeader header;
  if (!in.read(reinterpret_cast<char *>(&header), sizeof header) ||
      header.magic != EntryHeader().magic || header.bytes > (64u << 20))
    return std::nullopt;
  NvrtcOutput output;
  output.resources = header.resources;
  output.image.resize(header.bytes);
  if (!in.read(reinterpret_cast<char *>(output.image.data()),
               static_cast<std::streamsize>(header.bytes)) ||
      in.peek() != std::ifstream::traits_type::eof() ||
      XXH3_64bits(output.image.data(), output.image.size()) != header.checksum)
    return std::nullopt;
  return output;
}

// Whole or not at all: other processes may read and write the same entry.
void writeEntry(const fs::path &path, const NvrtcOutput &output) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  EntryHeader header;
  header.resources = output.resources;
  header.bytes = output.image.size();
  header.checksum = XXH3_64bits(output.image.data(), output.image.size());
  std::string bytes(reinterpret_cast<const char *>(&header), sizeof header);
  bytes.append(reinterpret_cast<const char *>(output.image.data()),
               output.image.size());
  // Without an entry the next compilation is only slower.
  (void)package::writeOutputFile(path.string(), bytes);
}

struct KernelText {
  std::string name, text;
  std::uint64_t hash = 0;
};

} // namespace

std::string defaultCudaCacheFolder() {
  const char *cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache)
    return std::string(cache) + "/ingot/cuda";
  const char *home = std::getenv("HOME");
  return home && *home ? std::string(home) + "/.cache/ingot/cuda" : "";
}

Result<CompiledCuda> compileCuda(std::span<const std::string> sms,
                                 std::span<const std::string> kernels,
                                 const CompileCudaOptions &options) {
  INGOT_ASSIGN_OR_RETURN(Nvrtc nvrtc, Nvrtc::open(options.nvrtcPath));
  CompiledCuda compiled;
  compiled.nvrtcVersion = nvrtc.version();
  const int major = nvrtc.version() / 1000 * 1000;
  for (const std::string &sm : sms) {
    if (!sm.starts_with("sm_"))
      return Status::invalid("CUDA target \"" + sm +
                             "\": expected an SM such as sm_90a");
    INGOT_RETURN_IF_ERROR(nvrtc.checkTarget(sm));
    for (const CudaLevel &level : compiled.levels)
      if (level.name == sm)
        return Status::invalid("CUDA target " + sm + " is given twice");
    // A driver of the same major version loads cubins of every minor one, PTX only
    // of its own or an older one.
    compiled.levels.push_back({sm, major, {}});
  }
  if (options.withPtx)
    compiled.levels.push_back({kPtxTarget, nvrtc.version(), {}});

  std::vector<KernelText> texts;
  for (const std::string &name : kernels) {
    INGOT_ASSIGN_OR_RETURN(CudaKernel kernel, cudaKernel(name));
    INGOT_ASSIGN_OR_RETURN(std::string text, cudaKernelText(kernel));
    const std::uint64_t hash = cudaTextHash(text);
    text +=
        "extern \"C\" __device__ int ingot_source_" + hexadecimal(hash) + ";\n";
    texts.push_back({name, std::move(text), hash});
  }
  std::vector<std::string> flags = kOptions;
  if (options.lineInfo)
    flags.push_back("--generate-line-info");

  const std::size_t numJobs = compiled.levels.size() * texts.size();
  for (CudaLevel &level : compiled.levels)
    level.images.resize(texts.size());
  std::vector<Status> failures(numJobs);
  std::atomic<std::size_t> next{0}, hits{0}, made{0};
  runOnThreads(options.threads, [&] {
    for (std::size_t job; (job = next++) < numJobs;) {
      // Kernels vary slowest: the expensive ones of all targets begin together.
      const KernelText &text = texts[job / compiled.levels.size()];
      CudaLevel &level = compiled.levels[job % compiled.levels.size()];
      fs::path entry;
      std::optional<NvrtcOutput> output;
      if (!options.cacheFolder.empty()) {
        std::string key = text.text + '\0' + level.name + '\0' +
                          std::to_string(nvrtc.version());
        for (const std::string &flag : flags)
          key += '\0' + flag;
        const XXH128_hash_t hash = XXH3_128bits(key.data(), key.size());
        const std::string name =
            hexadecimal(hash.high64) + hexadecimal(hash.low64);
        entry = fs::path(options.cacheFolder) / name.substr(0, 2) / name;
        output = readEntry(entry);
      }
      if (output) {
        ++hits;
      } else {
        auto fresh = nvrtc.compile(text.name, text.text, level.name, flags);
        if (!fresh) {
          failures[job] = fresh.status();
          continue;
        }
        output = std::move(*fresh);
        ++made;
        if (!entry.empty())
          writeEntry(entry, *output);
      }
      level.images[job / compiled.levels.size()] = {
          text.name, text.hash, std::move(output->image), output->resources};
    }
  });
  for (Status &failure : failures)
    INGOT_RETURN_IF_ERROR(failure);
  compiled.cacheHits = hits;
  compiled.compiled = made;
  return compiled;
}

} // namespace ingot::codegen
