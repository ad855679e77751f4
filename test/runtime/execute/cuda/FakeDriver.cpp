// A library in the place of the CUDA driver that has a device of plain memory and
// runs nothing. What it says of itself is in the variable INGOT_FAKE_DRIVER, a list
// of name=number: version, devices, init (the code that cuInit gives), major, minor,
// free and total (bytes of the device), fail (the number of the call to memAlloc that
// fails, from 1), images (1: refuses every module), lazy (1: copies to the device wait
// until somebody waits for them). Memory begins as no zeros.
#include "runtime/execute/cuda/DriverTypes.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

using namespace ingot::cuda;

namespace {

long setting(const char *name, long otherwise) {
  const char *all = std::getenv("INGOT_FAKE_DRIVER");
  std::string text = all ? std::string(",") + all : "";
  std::size_t at = text.find("," + std::string(name) + "=");
  return at == std::string::npos
             ? otherwise
             : std::atol(text.c_str() + at + std::strlen(name) + 2);
}

int numAllocations = 0;

struct Copy {
  DevicePointer to;
  const void *from;
  std::size_t bytes;
};
std::vector<Copy> waiting;

ResultCode finishCopies() {
  for (const Copy &copy : waiting)
    std::memcpy(reinterpret_cast<void *>(copy.to), copy.from, copy.bytes);
  waiting.clear();
  return kSuccess;
}

} // namespace

#define FAKE extern "C" __attribute__((visibility("default"))) ResultCode

FAKE cuDriverGetVersion(int *version) {
  *version = int(setting("version", 13000));
  return kSuccess;
}
FAKE cuInit(unsigned) {
  numAllocations = 0;
  return ResultCode(setting("init", 0));
}
FAKE cuGetErrorName(ResultCode code, const char **name) {
  if (code != kOutOfMemory && code != kInvalidImage && code != 803)
    return kInvalidValue;
  *name = code == kOutOfMemory    ? "CUDA_ERROR_OUT_OF_MEMORY"
          : code == kInvalidImage ? "CUDA_ERROR_INVALID_IMAGE"
                                  : "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH";
  return kSuccess;
}
FAKE cuGetErrorString(ResultCode code, const char **text) {
  if (code != kOutOfMemory)
    return kInvalidValue;
  *text = "out of memory";
  return kSuccess;
}
FAKE cuDeviceGetCount(int *count) {
  *count = int(setting("devices", 1));
  return kSuccess;
}
FAKE cuDeviceGet(DeviceNumber *device, int number) {
  *device = number;
  return kSuccess;
}
FAKE cuDeviceGetName(char *name, int size, DeviceNumber) {
  std::strncpy(name, "Fake device", std::size_t(size));
  return kSuccess;
}
FAKE cuDeviceGetAttribute(int *value, int attribute, DeviceNumber) {
  *value = attribute == kComputeCapabilityMajor   ? int(setting("major", 9))
           : attribute == kComputeCapabilityMinor ? int(setting("minor", 0))
                                                  : 1;
  return kSuccess;
}
FAKE cuDevicePrimaryCtxRetain(ContextHandle *context, DeviceNumber) {
  *context = reinterpret_cast<ContextHandle>(1);
  return kSuccess;
}
FAKE cuDevicePrimaryCtxRelease_v2(DeviceNumber) { return kSuccess; }
FAKE cuCtxSetCurrent(ContextHandle) { return kSuccess; }
FAKE cuMemGetInfo_v2(std::size_t *free, std::size_t *total) {
  *total = std::size_t(setting("total", 1l << 30));
  *free = std::size_t(setting("free", long(*total)));
  return kSuccess;
}
FAKE cuMemAlloc_v2(DevicePointer *memory, std::size_t bytes) {
  if (++numAllocations == setting("fail", 0))
    return kOutOfMemory;
  *memory = reinterpret_cast<DevicePointer>(std::malloc(bytes));
  std::memset(reinterpret_cast<void *>(*memory), 0xa5, bytes);
  return kSuccess;
}
FAKE cuMemFree_v2(DevicePointer memory) {
  finishCopies();
  std::free(reinterpret_cast<void *>(memory));
  return kSuccess;
}
FAKE cuMemHostAlloc(void **memory, std::size_t bytes, unsigned) {
  *memory = std::malloc(bytes);
  return kSuccess;
}
FAKE cuMemFreeHost(void *memory) {
  finishCopies();
  std::free(memory);
  return kSuccess;
}
FAKE cuMemcpyHtoDAsync_v2(DevicePointer to, const void *from, std::size_t bytes,
                          StreamHandle) {
  waiting.push_back({to, from, bytes});
  return setting("lazy", 0) ? kSuccess : finishCopies();
}
FAKE cuMemcpyDtoHAsync_v2(void *to, DevicePointer from, std::size_t bytes,
                          StreamHandle) {
  std::memcpy(to, reinterpret_cast<void *>(from), bytes);
  return kSuccess;
}
FAKE cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from,
                          std::size_t bytes, StreamHandle) {
  std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from),
              bytes);
  return kSuccess;
}
FAKE cuMemsetD16Async(DevicePointer to, unsigned short word, std::size_t count,
                      StreamHandle) {
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(reinterpret_cast<char *>(to) + 2 * i, &word, 2);
  return kSuccess;
}
FAKE cuModuleLoadDataEx(ModuleHandle *module, const void *, unsigned, int *,
                        void **) {
  if (setting("images", 0))
    return kInvalidImage;
  *module = reinterpret_cast<ModuleHandle>(1);
  return kSuccess;
}
FAKE cuModuleUnload(ModuleHandle) { return kSuccess; }
FAKE cuModuleGetFunction(FunctionHandle *function, ModuleHandle, const char *) {
  *function = reinterpret_cast<FunctionHandle>(1);
  return kSuccess;
}
FAKE cuFuncSetAttribute(FunctionHandle, int, int) { return kSuccess; }
FAKE cuFuncGetAttribute(int *value, int, FunctionHandle) {
  *value = 0;
  return kSuccess;
}
FAKE cuLaunchKernel(FunctionHandle, unsigned, unsigned, unsigned, unsigned,
                    unsigned, unsigned, unsigned, StreamHandle, void **,
                    void **) {
  return kLaunchFailed;
}
FAKE cuStreamCreate(StreamHandle *stream, unsigned) {
  *stream = reinterpret_cast<StreamHandle>(1);
  return kSuccess;
}
FAKE cuStreamDestroy_v2(StreamHandle) { return kSuccess; }
FAKE cuStreamSynchronize(StreamHandle) { return finishCopies(); }
FAKE cuStreamBeginCapture_v2(StreamHandle, int) { return kSuccess; }
FAKE cuStreamEndCapture(StreamHandle, GraphHandle *) { return kSuccess; }
FAKE cuGraphInstantiateWithFlags(GraphExecHandle *, GraphHandle,
                                 unsigned long long) {
  return kSuccess;
}
FAKE cuGraphLaunch(GraphExecHandle, StreamHandle) { return kSuccess; }
FAKE cuGraphExecDestroy(GraphExecHandle) { return kSuccess; }
FAKE cuGraphDestroy(GraphHandle) { return kSuccess; }
FAKE cuEventCreate(EventHandle *event, unsigned) {
  *event = reinterpret_cast<EventHandle>(1);
  return kSuccess;
}
FAKE cuEventDestroy_v2(EventHandle) { return kSuccess; }
FAKE cuEventSynchronize(EventHandle) { return finishCopies(); }
FAKE cuEventRecord(EventHandle, StreamHandle) { return kSuccess; }
#ifndef INGOT_FAKE_DRIVER_INCOMPLETE
FAKE cuEventElapsedTime(float *milliseconds, EventHandle, EventHandle) {
  *milliseconds = 1;
  return kSuccess;
}
#endif
