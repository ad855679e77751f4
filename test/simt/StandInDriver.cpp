// A library in the place of the CUDA driver whose device is the emulator: the subset
// of the driver API that the runtime uses (runtime/execute/cuda/DriverTypes.h), so
// that the unchanged back end runs whole models on machines without a GPU.
//
// - A stream does nothing until someone waits for it: what the host reads or changes
//   too early is read or changed too early here, too.
// - Kernels are host builds of the texts that NVRTC compiled. A module's image names
//   the hash of its text, and only a host build of the very same text runs for it.
// - Calls that CUDA refuses are refused: without a current context, into a capture
//   what a capture cannot hold, with addresses outside every allocation, with more
//   shared memory than was asked for. A fault that the emulator finds in a kernel is
//   a failed launch, told to standard error, and every later call fails.
//
// INGOT_STANDIN is a list of name=number: sm (90), memory (MiB of the device, 768),
// driver (its version, 13000), check (1: races, bounds and uninitialised reads, at a
// price), seed (above 0: a random order of threads), counts (1: how often each kernel
// ran is told at the end), cut (1: sums of tensor cores are cut off, TensorCore.h),
// skip (the name of a kernel that is never run, so that its
// results are wrong: whoever compares must say so).
#include "runtime/execute/cuda/DriverTypes.h"
#include "test/simt/KernelTable.h"
#include "test/simt/Simt.h"
#include "test/simt/TensorCore.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

using namespace ingot::cuda;
namespace simt = ingot::simt;

namespace {

constexpr ResultCode kCaptureUnsupported = 900;
constexpr ResultCode kCaptureInvalidated = 901;

struct Function {
  const simt::KernelEntry *entry = nullptr;
  int maxDynamicShared = 48 * 1024;
};
struct Module {
  std::uint64_t textHash = 0;
  std::map<std::string, std::unique_ptr<Function>> functions;
};
using Operation = std::function<ResultCode()>;
struct Event {
  bool isRecorded = false;
  std::chrono::steady_clock::time_point time;
};
struct Graph {
  std::vector<Operation> operations;
};
struct Stream {
  std::vector<Operation> pending;
  std::unique_ptr<Graph> capture; // null: none is under way
  bool isInvalidated = false;
};

struct StandIn {
  std::recursive_mutex mutex;
  bool isStarted = false;
  ResultCode sticky = kSuccess; // of a failed launch: everything fails then
  std::string stickyText;
  int sm = 90;
  int version = 13000;
  std::uint64_t totalBytes = 0;
  std::uint64_t usedBytes = 0;
  bool isChecked = false;
  bool cutsSums = false;
  std::string skipped; // a kernel's entry
  simt::LaunchOptions launchOptions;
  std::map<std::uintptr_t, std::size_t> allocations;
  std::set<void *> hostAllocations;
  std::set<Module *> modules;
  std::set<Function *> functions;
  std::set<Stream *> streams;
  std::set<Event *> events;
  std::set<Graph *> graphs, executables;
  std::map<std::string, std::uint64_t> counts;

  StandIn() { readSettings(); }

  void readSettings() {
    sm = int(setting("sm", 90));
    version = int(setting("driver", 13000));
    totalBytes = std::uint64_t(setting("memory", 768)) << 20;
    isChecked = setting("check", 0) != 0;
    cutsSums = setting("cut", 0) != 0;
    skipped = textSetting("skip");
    launchOptions = {};
    launchOptions.check = isChecked;
    sticky = kSuccess;
    stickyText.clear();
    if (long seed = setting("seed", 0)) {
      launchOptions.schedule = simt::Schedule::Random;
      launchOptions.async = simt::AsyncMode::Random;
      launchOptions.seed = std::uint64_t(seed);
    }
  }
  ~StandIn() {
    if (setting("counts", 0))
      for (const auto &[name, count] : counts)
        std::fprintf(stderr, "stand-in: %s %llu\n", name.c_str(),
                     static_cast<unsigned long long>(count));
  }

  static std::string textSetting(const char *name) {
    const char *all = std::getenv("INGOT_STANDIN");
    std::string text = all ? std::string(",") + all : "";
    std::string key = "," + std::string(name) + "=";
    std::size_t at = text.find(key);
    if (at == std::string::npos)
      return {};
    at += key.size();
    return text.substr(at, text.find(',', at) - at);
  }
  static long setting(const char *name, long otherwise) {
    const std::string text = textSetting(name);
    return text.empty() ? otherwise : std::atol(text.c_str());
  }

  bool isDevice(std::uint64_t address, std::size_t bytes) const {
    auto after = allocations.upper_bound(address);
    if (after == allocations.begin())
      return false;
    auto [begin, size] = *std::prev(after);
    return address + bytes <= begin + size;
  }

  ResultCode fail(ResultCode code, const std::string &text) {
    if (sticky == kSuccess) {
      sticky = code;
      stickyText = text;
      std::fprintf(stderr, "stand-in driver: %s\n", text.c_str());
    }
    return sticky;
  }

  ResultCode runAll(Stream &stream) {
    std::vector<Operation> operations = std::move(stream.pending);
    stream.pending.clear();
    for (const Operation &operation : operations)
      if (ResultCode code = operation(); code != kSuccess)
        return code;
    return kSuccess;
  }
};

StandIn &standIn() {
  static StandIn instance;
  return instance;
}

// The context of the calling thread; there is one device with one context.
thread_local bool isCurrent = false;

// Runs a call under the lock. `needsContext`: as all but the calls about the driver
// and its devices.
template <typename Call> ResultCode call(bool needsContext, Call &&body) {
  StandIn &self = standIn();
  std::lock_guard<std::recursive_mutex> lock(self.mutex);
  if (!self.isStarted)
    return kNotInitialized;
  if (needsContext && !isCurrent)
    return kInvalidContext;
  if (needsContext && self.sticky != kSuccess)
    return self.sticky;
  return body(self);
}

Stream *streamOf(StandIn &self, StreamHandle handle) {
  auto *stream = reinterpret_cast<Stream *>(handle);
  return self.streams.count(stream) ? stream : nullptr;
}

// Puts an operation into a stream, or into the graph that it captures.
ResultCode enqueue(StandIn &self, StreamHandle handle, Operation operation) {
  Stream *stream = streamOf(self, handle);
  if (!stream)
    return kInvalidHandle;
  if (stream->isInvalidated)
    return kCaptureInvalidated;
  (stream->capture ? stream->capture->operations : stream->pending)
      .push_back(std::move(operation));
  return kSuccess;
}

// Calls that may not be made while a stream captures (mode thread local).
ResultCode refuseCapture(StandIn &self) {
  ResultCode code = kSuccess;
  for (Stream *stream : self.streams)
    if (stream->capture) {
      stream->isInvalidated = true;
      code = kCaptureUnsupported;
    }
  return code;
}

ResultCode runKernel(StandIn &self, const simt::KernelEntry &entry,
                     simt::Dim3 grid, simt::Dim3 block, unsigned sharedBytes,
                     const std::vector<std::uint8_t> &params) {
  if (entry.name == self.skipped)
    return kSuccess;
  simt::MmaSumsScope sums(self.cutsSums ? simt::MmaSums::CutOff
                                        : simt::MmaSums::Rounded);
  simt::LaunchReport report = simt::launch(
      grid, block, sharedBytes, [&] { entry.run(params.data()); },
      self.launchOptions);
  ++self.counts[entry.name];
  if (report.isClean())
    return kSuccess;
  return self.fail(kLaunchFailed,
                   std::string("kernel ") + entry.name + ": " + report.text());
}

// The 16 digits behind "ingot_source_" in an image, wherever its format keeps names.
bool findTextHash(const std::uint8_t *image, std::size_t bytes,
                  std::uint64_t &hash) {
  static const char mark[] = "ingot_source_";
  const std::uint8_t *end = image + bytes;
  const std::uint8_t *at =
      std::search(image, end, mark, mark + sizeof mark - 1);
  if (std::size_t(end - at) < sizeof mark - 1 + 16)
    return false;
  char digits[17] = {};
  std::memcpy(digits, at + sizeof mark - 1, 16);
  char *stop = nullptr;
  hash = std::strtoull(digits, &stop, 16);
  return stop == digits + 16;
}

// An image knows its own size: text ends with a zero, a cubin's tables say.
std::size_t imageBytes(const std::uint8_t *image) {
  if (std::memcmp(image,
                  "\x7f"
                  "ELF",
                  4) != 0)
    return std::strlen(reinterpret_cast<const char *>(image));
  std::uint64_t sections = 0;
  std::uint16_t size = 0, count = 0;
  std::memcpy(&sections, image + 0x28, 8);
  std::memcpy(&size, image + 0x3a, 2);
  std::memcpy(&count, image + 0x3c, 2);
  std::uint64_t end = sections + std::uint64_t(size) * count;
  for (unsigned i = 0; i < count; ++i) {
    std::uint64_t offset = 0, bytes = 0;
    std::uint32_t type = 0;
    const std::uint8_t *section = image + sections + std::uint64_t(i) * size;
    std::memcpy(&type, section + 4, 4);
    std::memcpy(&offset, section + 0x18, 8);
    std::memcpy(&bytes, section + 0x20, 8);
    if (type != 8) // NOBITS
      end = std::max(end, offset + bytes);
  }
  return end;
}

} // namespace

#define EXPORT extern "C" __attribute__((visibility("default"))) ResultCode

//===----------------------------------------------------------------------===//
// Driver and device
//===----------------------------------------------------------------------===//

EXPORT cuDriverGetVersion(int *version) {
  StandIn &self = standIn();
  if (self.allocations.empty() && self.modules.empty())
    self.readSettings();
  *version = self.version;
  return kSuccess;
}
EXPORT cuInit(unsigned flags) {
  StandIn &self = standIn();
  std::lock_guard<std::recursive_mutex> lock(self.mutex);
  self.isStarted = flags == 0;
  // Whoever comes when nobody holds anything finds a new device.
  if (self.allocations.empty() && self.modules.empty())
    self.readSettings();
  return flags == 0 ? kSuccess : kInvalidValue;
}
EXPORT cuGetErrorName(ResultCode code, const char **name) {
  static const std::map<ResultCode, const char *> names = {
      {kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
      {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
      {kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED"},
      {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE"},
      {kInvalidImage, "CUDA_ERROR_INVALID_IMAGE"},
      {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT"},
      {kNoBinaryForDevice, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
      {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE"},
      {kNotFound, "CUDA_ERROR_NOT_FOUND"},
      {kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED"},
      {kCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
      {kCaptureInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"}};
  auto found = names.find(code);
  if (found == names.end())
    return kInvalidValue;
  *name = found->second;
  return kSuccess;
}
EXPORT cuGetErrorString(ResultCode code, const char **text) {
  StandIn &self = standIn();
  if (code != self.sticky || self.stickyText.empty())
    return kInvalidValue;
  *text = self.stickyText.c_str();
  return kSuccess;
}
EXPORT cuDeviceGetCount(int *count) {
  return call(false, [&](StandIn &) {
    *count = 1;
    return kSuccess;
  });
}
EXPORT cuDeviceGet(DeviceNumber *device, int number) {
  return call(false, [&](StandIn &) {
    *device = number;
    return number == 0 ? kSuccess : kInvalidDevice;
  });
}
EXPORT cuDeviceGetName(char *name, int size, DeviceNumber) {
  return call(false, [&](StandIn &) {
    std::snprintf(name, std::size_t(size), "CUDA on the CPU");
    return kSuccess;
  });
}
EXPORT cuDeviceGetAttribute(int *value, int attribute, DeviceNumber) {
  return call(false, [&](StandIn &self) {
    switch (attribute) {
    case kComputeCapabilityMajor:
      *value = self.sm / 10;
      return kSuccess;
    case kComputeCapabilityMinor:
      *value = self.sm % 10;
      return kSuccess;
    case kMultiprocessorCount:
      *value = 1;
      return kSuccess;
    case kMaxSharedBytesOptIn:
      *value = 99 * 1024; // the least of those chips, sm_86
      return kSuccess;
    }
    return kInvalidValue;
  });
}
EXPORT cuDevicePrimaryCtxRetain(ContextHandle *context, DeviceNumber) {
  return call(false, [&](StandIn &self) {
    *context = reinterpret_cast<ContextHandle>(&self);
    return kSuccess;
  });
}
EXPORT cuDevicePrimaryCtxRelease_v2(DeviceNumber) {
  return call(false, [&](StandIn &) { return kSuccess; });
}
EXPORT cuCtxSetCurrent(ContextHandle context) {
  return call(false, [&](StandIn &self) {
    isCurrent = context == reinterpret_cast<ContextHandle>(&self);
    return isCurrent || !context ? kSuccess : kInvalidContext;
  });
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

EXPORT cuMemGetInfo_v2(std::size_t *free, std::size_t *total) {
  return call(true, [&](StandIn &self) {
    *total = self.totalBytes;
    *free = self.totalBytes - self.usedBytes;
    return kSuccess;
  });
}
EXPORT cuMemAlloc_v2(DevicePointer *memory, std::size_t bytes) {
  return call(true, [&](StandIn &self) -> ResultCode {
    if (ResultCode code = refuseCapture(self))
      return code;
    if (bytes == 0)
      return kInvalidValue;
    if (bytes > self.totalBytes - self.usedBytes)
      return kOutOfMemory;
    void *made =
        simt::allocate(bytes, self.isChecked ? simt::Access::ReadWrite
                                             : simt::Access::Unchecked);
    self.usedBytes += bytes;
    auto address = reinterpret_cast<std::uintptr_t>(made);
    self.allocations[address] = bytes;
    *memory = address;
    return kSuccess;
  });
}
EXPORT cuMemFree_v2(DevicePointer memory) {
  return call(true, [&](StandIn &self) -> ResultCode {
    auto found = self.allocations.find(memory);
    if (found == self.allocations.end())
      return kInvalidValue;
    // As the driver: what is under way comes to its end first.
    for (Stream *stream : self.streams)
      if (ResultCode code = self.runAll(*stream))
        return code;
    self.usedBytes -= found->second;
    self.allocations.erase(found);
    simt::release(reinterpret_cast<void *>(memory));
    return kSuccess;
  });
}
EXPORT cuMemHostAlloc(void **memory, std::size_t bytes, unsigned) {
  return call(true, [&](StandIn &self) -> ResultCode {
    *memory = std::malloc(bytes);
    if (!*memory)
      return kOutOfMemory;
    self.hostAllocations.insert(*memory);
    return kSuccess;
  });
}
EXPORT cuMemFreeHost(void *memory) {
  return call(true, [&](StandIn &self) -> ResultCode {
    if (!self.hostAllocations.erase(memory))
      return kInvalidValue;
    for (Stream *stream : self.streams)
      if (ResultCode code = self.runAll(*stream))
        return code;
    std::free(memory);
    return kSuccess;
  });
}
EXPORT cuMemcpyHtoDAsync_v2(DevicePointer to, const void *from,
                            std::size_t bytes, StreamHandle stream) {
  return call(true, [&](StandIn &self) -> ResultCode {
    if (!self.isDevice(to, bytes))
      return kInvalidValue;
    return enqueue(self, stream, [=, &self]() -> ResultCode {
      std::memcpy(reinterpret_cast<void *>(to), from, bytes);
      if (self.isChecked)
        simt::markInitialised(reinterpret_cast<void *>(to), bytes);
      return kSuccess;
    });
  });
}
EXPORT cuMemcpyDtoHAsync_v2(void *to, DevicePointer from, std::size_t bytes,
                            StreamHandle stream) {
  return call(true, [&](StandIn &self) -> ResultCode {
    if (!self.isDevice(from, bytes))
      return kInvalidValue;
    return enqueue(self, stream, [=]() -> ResultCode {
      std::memcpy(to, reinterpret_cast<void *>(from), bytes);
      return kSuccess;
    });
  });
}
EXPORT cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from,
                            std::size_t bytes, StreamHandle stream) {
  return call(true, [&](StandIn &self) -> ResultCode {
    if (!self.isDevice(to, bytes) || !self.isDevice(from, bytes))
      return kInvalidValue;
    return enqueue(self, stream, [=, &self]() -> ResultCode {
      std::memmove(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from),
                   bytes);
      if (self.isChecked)
        simt::markInitialised(reinterpret_cast<void *>(to), bytes);
      return kSuccess;
    });
  });
}
EXPORT cuMemsetD16Async(DevicePointer to, unsigned short word,
                        std::size_t count, StreamHandle stream) {
  return call(true, [&](StandIn &self) -> ResultCode {
    if (!self.isDevice(to, 2 * count))
      return kInvalidValue;
    return enqueue(self, stream, [=, &self]() -> ResultCode {
      auto *words = reinterpret_cast<std::uint16_t *>(to);
      std::fill(words, words + count, word);
      if (self.isChecked)
        simt::markInitialised(words, 2 * count);
      return kSuccess;
    });
  });
}

EXPORT cuMemGetAddressRange_v2(DevicePointer *base, std::size_t *bytes,
                               DevicePointer address) {
  return call(true, [&](StandIn &self) -> ResultCode {
    if (!self.isDevice(address, 1))
      return kNotFound;
    auto found = std::prev(self.allocations.upper_bound(address));
    *base = found->first;
    *bytes = found->second;
    return kSuccess;
  });
}
// None of CUDA's: tells the emulator what a host function has written.
EXPORT ingotStandInWritten(DevicePointer to, std::size_t bytes) {
  return call(false, [&](StandIn &self) -> ResultCode {
    if (!self.isDevice(to, bytes))
      return kInvalidValue;
    if (self.isChecked)
      simt::markInitialised(reinterpret_cast<void *>(to), bytes);
    return kSuccess;
  });
}

//===----------------------------------------------------------------------===//
// Modules and launches
//===----------------------------------------------------------------------===//

EXPORT cuModuleLoadDataEx(ModuleHandle *handle, const void *image,
                          unsigned numOptions, int *options, void **values) {
  return call(true, [&](StandIn &self) -> ResultCode {
    const auto *bytes = static_cast<const std::uint8_t *>(image);
    auto made = std::make_unique<Module>();
    if (!findTextHash(bytes, imageBytes(bytes), made->textHash)) {
      char *log = nullptr;
      std::size_t size = 0;
      for (unsigned i = 0; i < numOptions; ++i) {
        if (options[i] == kJitErrorLog)
          log = static_cast<char *>(values[i]);
        if (options[i] == kJitErrorLogBytes)
          size = reinterpret_cast<std::size_t>(values[i]);
      }
      if (log && size)
        std::snprintf(log, size,
                      "the image names no text that it was compiled of");
      return kInvalidImage;
    }
    self.modules.insert(made.get());
    *handle = reinterpret_cast<ModuleHandle>(made.release());
    return kSuccess;
  });
}
EXPORT cuModuleUnload(ModuleHandle handle) {
  return call(true, [&](StandIn &self) -> ResultCode {
    auto *module = reinterpret_cast<Module *>(handle);
    if (!self.modules.erase(module))
      return kInvalidHandle;
    for (const auto &[name, function] : module->functions)
      self.functions.erase(function.get());
    delete module;
    return kSuccess;
  });
}
EXPORT cuModuleGetFunction(FunctionHandle *handle, ModuleHandle moduleHandle,
                           const char *name) {
  return call(true, [&](StandIn &self) -> ResultCode {
    auto *module = reinterpret_cast<Module *>(moduleHandle);
    if (!self.modules.count(module))
      return kInvalidHandle;
    const simt::KernelEntry *entry =
        simt::KernelTable::find(name, module->textHash);
    if (!entry) {
      const simt::KernelEntry *other = simt::KernelTable::find(name);
      std::fprintf(
          stderr,
          other
              ? "stand-in driver: kernel %s was compiled of the text %016llx, "
                "the host build is of %016llx\n"
              : "stand-in driver: kernel %s (text %016llx) has no host build\n",
          name, static_cast<unsigned long long>(module->textHash),
          static_cast<unsigned long long>(other ? other->textHash : 0));
      return kNotFound;
    }
    auto &function = module->functions[name];
    if (!function) {
      function = std::make_unique<Function>();
      function->entry = entry;
      self.functions.insert(function.get());
    }
    *handle = reinterpret_cast<FunctionHandle>(function.get());
    return kSuccess;
  });
}
EXPORT cuFuncSetAttribute(FunctionHandle handle, int attribute, int value) {
  return call(true, [&](StandIn &self) -> ResultCode {
    auto *function = reinterpret_cast<Function *>(handle);
    if (!self.functions.count(function))
      return kInvalidHandle;
    if (attribute != kFunctionMaxDynamicShared || value < 0 ||
        value > 99 * 1024)
      return kInvalidValue;
    function->maxDynamicShared = value;
    return kSuccess;
  });
}
EXPORT cuFuncGetAttribute(int *value, int attribute, FunctionHandle handle) {
  return call(true, [&](StandIn &self) -> ResultCode {
    auto *function = reinterpret_cast<Function *>(handle);
    if (!self.functions.count(function))
      return kInvalidHandle;
    *value =
        attribute == kFunctionMaxDynamicShared ? function->maxDynamicShared : 0;
    return kSuccess;
  });
}
EXPORT cuLaunchKernel(FunctionHandle handle, unsigned gridX, unsigned gridY,
                      unsigned gridZ, unsigned blockX, unsigned blockY,
                      unsigned blockZ, unsigned sharedBytes,
                      StreamHandle stream, void **params, void **extra) {
  return call(true, [&](StandIn &self) -> ResultCode {
    auto *function = reinterpret_cast<Function *>(handle);
    if (!self.functions.count(function))
      return kInvalidHandle;
    std::uint64_t threads = std::uint64_t(blockX) * blockY * blockZ;
    if (!gridX || !gridY || !gridZ || gridY > 65535 || gridZ > 65535 ||
        gridX > 0x7fffffffu || threads == 0 || threads > 1024 ||
        int(sharedBytes) > function->maxDynamicShared || !params || extra)
      return kInvalidValue;
    // The arguments are the call's own: they are copied now.
    auto *given = static_cast<const std::uint8_t *>(params[0]);
    std::vector<std::uint8_t> bytes(given,
                                    given + function->entry->paramsBytes);
    return enqueue(self, stream,
                   [&self, function, bytes = std::move(bytes),
                    grid = simt::Dim3{gridX, gridY, gridZ},
                    block = simt::Dim3{blockX, blockY, blockZ}, sharedBytes] {
                     return runKernel(self, *function->entry, grid, block,
                                      sharedBytes, bytes);
                   });
  });
}

// What libraries of the host put into a stream.
EXPORT cuLaunchHostFunc(StreamHandle stream, void (*function)(void *),
                        void *data) {
  return call(true, [&](StandIn &self) -> ResultCode {
    if (!function)
      return kInvalidValue;
    return enqueue(self, stream, [=]() -> ResultCode {
      function(data);
      return kSuccess;
    });
  });
}

//===----------------------------------------------------------------------===//
// Streams, graphs, events
//===----------------------------------------------------------------------===//

EXPORT cuStreamCreate(StreamHandle *handle, unsigned) {
  return call(true, [&](StandIn &self) {
    auto *stream = new Stream;
    self.streams.insert(stream);
    *handle = reinterpret_cast<StreamHandle>(stream);
    return kSuccess;
  });
}
EXPORT cuStreamDestroy_v2(StreamHandle handle) {
  return call(true, [&](StandIn &self) -> ResultCode {
    Stream *stream = streamOf(self, handle);
    if (!stream)
      return kInvalidHandle;
    ResultCode code = self.runAll(*stream);
    self.streams.erase(stream);
    delete stream;
    return code;
  });
}
EXPORT cuStreamSynchronize(StreamHandle handle) {
  return call(true, [&](StandIn &self) -> ResultCode {
    Stream *stream = streamOf(self, handle);
    if (!stream)
      return kInvalidHandle;
    if (stream->capture) {
      stream->isInvalidated = true;
      return kCaptureUnsupported;
    }
    return self.runAll(*stream);
  });
}
EXPORT cuStreamBeginCapture_v2(StreamHandle handle, int) {
  return call(true, [&](StandIn &self) -> ResultCode {
    Stream *stream = streamOf(self, handle);
    if (!stream || stream->capture)
      return stream ? kCaptureUnsupported : kInvalidHandle;
    stream->capture = std::make_unique<Graph>();
    stream->isInvalidated = false;
    return kSuccess;
  });
}
EXPORT cuStreamEndCapture(StreamHandle handle, GraphHandle *graph) {
  return call(true, [&](StandIn &self) -> ResultCode {
    Stream *stream = streamOf(self, handle);
    if (!stream || !stream->capture)
      return kInvalidHandle;
    std::unique_ptr<Graph> captured = std::move(stream->capture);
    *graph = nullptr;
    if (stream->isInvalidated) {
      stream->isInvalidated = false;
      return kCaptureInvalidated;
    }
    self.graphs.insert(captured.get());
    *graph = reinterpret_cast<GraphHandle>(captured.release());
    return kSuccess;
  });
}
EXPORT cuGraphInstantiateWithFlags(GraphExecHandle *executable,
                                   GraphHandle handle, unsigned long long) {
  return call(true, [&](StandIn &self) -> ResultCode {
    auto *graph = reinterpret_cast<Graph *>(handle);
    if (!self.graphs.count(graph))
      return kInvalidHandle;
    auto *made = new Graph(*graph);
    self.executables.insert(made);
    *executable = reinterpret_cast<GraphExecHandle>(made);
    return kSuccess;
  });
}
EXPORT cuGraphLaunch(GraphExecHandle handle, StreamHandle stream) {
  return call(true, [&](StandIn &self) -> ResultCode {
    auto *graph = reinterpret_cast<Graph *>(handle);
    if (!self.executables.count(graph))
      return kInvalidHandle;
    for (const Operation &operation : graph->operations)
      if (ResultCode code = enqueue(self, stream, operation))
        return code;
    return kSuccess;
  });
}
EXPORT cuGraphExecDestroy(GraphExecHandle handle) {
  return call(true, [&](StandIn &self) -> ResultCode {
    auto *graph = reinterpret_cast<Graph *>(handle);
    if (!self.executables.erase(graph))
      return kInvalidHandle;
    delete graph;
    return kSuccess;
  });
}
EXPORT cuGraphDestroy(GraphHandle handle) {
  return call(true, [&](StandIn &self) -> ResultCode {
    auto *graph = reinterpret_cast<Graph *>(handle);
    if (!self.graphs.erase(graph))
      return kInvalidHandle;
    delete graph;
    return kSuccess;
  });
}
EXPORT cuEventCreate(EventHandle *handle, unsigned) {
  return call(true, [&](StandIn &self) {
    auto *event = new Event;
    self.events.insert(event);
    *handle = reinterpret_cast<EventHandle>(event);
    return kSuccess;
  });
}
EXPORT cuEventDestroy_v2(EventHandle handle) {
  return call(true, [&](StandIn &self) -> ResultCode {
    auto *event = reinterpret_cast<Event *>(handle);
    if (!self.events.count(event))
      return kInvalidHandle;
    for (Stream *stream : self.streams)
      if (ResultCode code = self.runAll(*stream))
        return code;
    self.events.erase(event);
    delete event;
    return kSuccess;
  });
}
EXPORT cuEventRecord(EventHandle handle, StreamHandle stream) {
  return call(true, [&](StandIn &self) -> ResultCode {
    auto *event = reinterpret_cast<Event *>(handle);
    if (!self.events.count(event))
      return kInvalidHandle;
    event->isRecorded = false;
    return enqueue(self, stream, [event]() -> ResultCode {
      event->isRecorded = true;
      event->time = std::chrono::steady_clock::now();
      return kSuccess;
    });
  });
}
EXPORT cuEventSynchronize(EventHandle handle) {
  return call(true, [&](StandIn &self) -> ResultCode {
    auto *event = reinterpret_cast<Event *>(handle);
    if (!self.events.count(event))
      return kInvalidHandle;
    for (Stream *stream : self.streams)
      if (ResultCode code = self.runAll(*stream))
        return code;
    return kSuccess;
  });
}
EXPORT cuEventElapsedTime(float *milliseconds, EventHandle begin,
                          EventHandle end) {
  return call(true, [&](StandIn &self) -> ResultCode {
    auto *from = reinterpret_cast<Event *>(begin);
    auto *to = reinterpret_cast<Event *>(end);
    if (!self.events.count(from) || !self.events.count(to))
      return kInvalidHandle;
    if (!from->isRecorded || !to->isRecorded)
      return 600; // CUDA_ERROR_NOT_READY
    *milliseconds =
        std::chrono::duration<float, std::milli>(to->time - from->time).count();
    return kSuccess;
  });
}
