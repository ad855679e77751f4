// The part of CUDA's driver interface that the runtime uses: types, numbers and
// signatures, declared here from NVIDIA's documentation of the driver API, whose
// binary interface is stable. No CUDA header is needed to build Ingot, and none is
// included. The suffix of a name (_v2) is the version of the function that the
// signature belongs to; cuda.h puts it on silently, we write it out.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot::cuda {

using ResultCode = int; // CUresult
using DeviceNumber = int;
using DevicePointer = unsigned long long; // CUdeviceptr
using ContextHandle = struct CUctx_st *;
using ModuleHandle = struct CUmod_st *;
using FunctionHandle = struct CUfunc_st *;
using StreamHandle = struct CUstream_st *;
using EventHandle = struct CUevent_st *;
using GraphHandle = struct CUgraph_st *;
using GraphExecHandle = struct CUgraphExec_st *;

// CUresult; the driver itself gives the names.
inline constexpr ResultCode kSuccess = 0;
inline constexpr ResultCode kInvalidValue = 1;
inline constexpr ResultCode kOutOfMemory = 2;
inline constexpr ResultCode kNotInitialized = 3;
inline constexpr ResultCode kStubLibrary = 34;
inline constexpr ResultCode kNoDevice = 100;
inline constexpr ResultCode kInvalidDevice = 101;
inline constexpr ResultCode kInvalidImage = 200;
inline constexpr ResultCode kInvalidContext = 201;
inline constexpr ResultCode kNoBinaryForDevice = 209;
inline constexpr ResultCode kInvalidHandle = 400;
inline constexpr ResultCode kNotFound = 500;
inline constexpr ResultCode kLaunchFailed = 719;

// CUdevice_attribute
inline constexpr int kMultiprocessorCount = 16;
inline constexpr int kComputeCapabilityMajor = 75;
inline constexpr int kComputeCapabilityMinor = 76;
inline constexpr int kMaxSharedBytesOptIn = 97;

// CUfunction_attribute
inline constexpr int kFunctionStaticShared = 1;
inline constexpr int kFunctionLocalBytes = 3;
inline constexpr int kFunctionRegisters = 4;
inline constexpr int kFunctionMaxDynamicShared = 8;

// CUjit_option
inline constexpr int kJitErrorLog = 5;
inline constexpr int kJitErrorLogBytes = 6;

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDefault = 0;
inline constexpr unsigned kHostAllocPortable = 1;
// CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: other threads may use the driver meanwhile.
inline constexpr int kCaptureThreadLocal = 1;

// name in this code, symbol of the library, types of the arguments
#define INGOT_CUDA_CALLS(X)                                                    \
  X(init, "cuInit", (unsigned))                                                \
  X(deviceGetCount, "cuDeviceGetCount", (int *))                               \
  X(deviceGet, "cuDeviceGet", (DeviceNumber *, int))                           \
  X(deviceGetName, "cuDeviceGetName", (char *, int, DeviceNumber))             \
  X(deviceGetAttribute, "cuDeviceGetAttribute", (int *, int, DeviceNumber))    \
  X(primaryCtxRetain, "cuDevicePrimaryCtxRetain",                              \
    (ContextHandle *, DeviceNumber))                                           \
  X(primaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (DeviceNumber))         \
  X(ctxSetCurrent, "cuCtxSetCurrent", (ContextHandle))                         \
  X(memGetInfo, "cuMemGetInfo_v2", (std::size_t *, std::size_t *))             \
  X(memAlloc, "cuMemAlloc_v2", (DevicePointer *, std::size_t))                 \
  X(memFree, "cuMemFree_v2", (DevicePointer))                                  \
  X(memHostAlloc, "cuMemHostAlloc", (void **, std::size_t, unsigned))          \
  X(memFreeHost, "cuMemFreeHost", (void *))                                    \
  X(copyToDevice, "cuMemcpyHtoDAsync_v2",                                      \
    (DevicePointer, const void *, std::size_t, StreamHandle))                  \
  X(copyToHost, "cuMemcpyDtoHAsync_v2",                                        \
    (void *, DevicePointer, std::size_t, StreamHandle))                        \
  X(copyOnDevice, "cuMemcpyDtoDAsync_v2",                                      \
    (DevicePointer, DevicePointer, std::size_t, StreamHandle))                 \
  X(fillWords16, "cuMemsetD16Async",                                           \
    (DevicePointer, unsigned short, std::size_t, StreamHandle))                \
  X(moduleLoad, "cuModuleLoadDataEx",                                          \
    (ModuleHandle *, const void *, unsigned, int *, void **))                  \
  X(moduleUnload, "cuModuleUnload", (ModuleHandle))                            \
  X(moduleGetFunction, "cuModuleGetFunction",                                  \
    (FunctionHandle *, ModuleHandle, const char *))                            \
  X(functionSetAttribute, "cuFuncSetAttribute", (FunctionHandle, int, int))    \
  X(functionGetAttribute, "cuFuncGetAttribute", (int *, int, FunctionHandle))  \
  X(launchKernel, "cuLaunchKernel",                                            \
    (FunctionHandle, unsigned, unsigned, unsigned, unsigned, unsigned,         \
     unsigned, unsigned, StreamHandle, void **, void **))                      \
  X(streamCreate, "cuStreamCreate", (StreamHandle *, unsigned))                \
  X(streamDestroy, "cuStreamDestroy_v2", (StreamHandle))                       \
  X(streamSynchronize, "cuStreamSynchronize", (StreamHandle))                  \
  X(streamBeginCapture, "cuStreamBeginCapture_v2", (StreamHandle, int))        \
  X(streamEndCapture, "cuStreamEndCapture", (StreamHandle, GraphHandle *))     \
  X(graphInstantiate, "cuGraphInstantiateWithFlags",                           \
    (GraphExecHandle *, GraphHandle, unsigned long long))                      \
  X(graphLaunch, "cuGraphLaunch", (GraphExecHandle, StreamHandle))             \
  X(graphExecDestroy, "cuGraphExecDestroy", (GraphExecHandle))                 \
  X(graphDestroy, "cuGraphDestroy", (GraphHandle))                             \
  X(eventCreate, "cuEventCreate", (EventHandle *, unsigned))                   \
  X(eventDestroy, "cuEventDestroy_v2", (EventHandle))                          \
  X(eventSynchronize, "cuEventSynchronize", (EventHandle))                     \
  X(eventRecord, "cuEventRecord", (EventHandle, StreamHandle))                 \
  X(eventElapsedTime, "cuEventElapsedTime", (float *, EventHandle, EventHandle))

} // namespace ingot::cuda
