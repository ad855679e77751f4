// What DriverTypes.h declares by hand against NVIDIA's own cuda.h, on machines that have
// one: numbers, and the arguments of each function in the version that its symbol names;
// and that a driver's library of that toolkit has every symbol.
#include "runtime/execute/cuda/DriverTypes.h"

// Declares each version of a function by its own name.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <type_traits>

namespace ingot::cuda {
namespace {

static_assert(kSuccess == CUDA_SUCCESS);
static_assert(kInvalidValue == CUDA_ERROR_INVALID_VALUE);
static_assert(kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(kNotInitialized == CUDA_ERROR_NOT_INITIALIZED);
static_assert(kStubLibrary == CUDA_ERROR_STUB_LIBRARY);
static_assert(kNoDevice == CUDA_ERROR_NO_DEVICE);
static_assert(kInvalidDevice == CUDA_ERROR_INVALID_DEVICE);
static_assert(kInvalidImage == CUDA_ERROR_INVALID_IMAGE);
static_assert(kInvalidContext == CUDA_ERROR_INVALID_CONTEXT);
static_assert(kNoBinaryForDevice == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(kInvalidHandle == CUDA_ERROR_INVALID_HANDLE);
static_assert(kNotFound == CUDA_ERROR_NOT_FOUND);
static_assert(kLaunchFailed == CUDA_ERROR_LAUNCH_FAILED);
static_assert(kMultiprocessorCount == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(kComputeCapabilityMajor ==
              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(kComputeCapabilityMinor ==
              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(kMaxSharedBytesOptIn ==
              CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
static_assert(kFunctionStaticShared == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
static_assert(kFunctionLocalBytes == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
static_assert(kFunctionRegisters == CU_FUNC_ATTRIBUTE_NUM_REGS);
static_assert(kFunctionMaxDynamicShared ==
              CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(kJitErrorLog == CU_JIT_ERROR_LOG_BUFFER);
static_assert(kJitErrorLogBytes == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
static_assert(kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(kEventDefault == CU_EVENT_DEFAULT);
static_assert(kHostAllocPortable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(kCaptureThreadLocal == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);

// The same kind of argument in a call: numbers by size, pointers by the size of what
// they point to, where that is no secret.
template <typename Ours, typename Theirs> constexpr bool isSame() {
  constexpr bool ours = std::is_pointer_v<Ours>,
                 theirs = std::is_pointer_v<Theirs>;
  if constexpr (ours && theirs) {
    using Our = std::remove_cv_t<std::remove_pointer_t<Ours>>;
    using Their = std::remove_cv_t<std::remove_pointer_t<Theirs>>;
    if constexpr (std::is_scalar_v<Our> && std::is_scalar_v<Their>)
      return sizeof(Our) == sizeof(Their) &&
             std::is_floating_point_v<Our> == std::is_floating_point_v<Their>;
    else
      return std::is_void_v<Our> == std::is_void_v<Their>;
  } else {
    constexpr bool areNumbers =
        (std::is_integral_v<Ours> || std::is_enum_v<Ours>) &&
        (std::is_integral_v<Theirs> || std::is_enum_v<Theirs>);
    return ours == theirs && areNumbers && sizeof(Ours) == sizeof(Theirs);
  }
}
template <typename Ours, typename Theirs> struct Signature;
template <typename... Ours, typename Result, typename... Theirs>
struct Signature<void(Ours...), Result(Theirs...)> {
  static constexpr bool check() {
    if constexpr (sizeof...(Ours) != sizeof...(Theirs))
      return false;
    else
      return std::is_same_v<Result, CUresult> &&
             (isSame<Ours, Theirs>() && ...);
  }
};

#define INGOT_CHECK(NAME, SYMBOL, TYPES)                                       \
  static_assert(Signature<void TYPES, decltype(INGOT_THEIRS_##NAME)>::check());
#define INGOT_THEIRS_init cuInit
#define INGOT_THEIRS_deviceGetCount cuDeviceGetCount
#define INGOT_THEIRS_deviceGet cuDeviceGet
#define INGOT_THEIRS_deviceGetName cuDeviceGetName
#define INGOT_THEIRS_deviceGetAttribute cuDeviceGetAttribute
#define INGOT_THEIRS_primaryCtxRetain cuDevicePrimaryCtxRetain
#define INGOT_THEIRS_primaryCtxRelease cuDevicePrimaryCtxRelease_v2
#define INGOT_THEIRS_ctxSetCurrent cuCtxSetCurrent
#define INGOT_THEIRS_memGetInfo cuMemGetInfo_v2
#define INGOT_THEIRS_memAlloc cuMemAlloc_v2
#define INGOT_THEIRS_memFree cuMemFree_v2
#define INGOT_THEIRS_memHostAlloc cuMemHostAlloc
#define INGOT_THEIRS_memFreeHost cuMemFreeHost
#define INGOT_THEIRS_copyToDevice cuMemcpyHtoDAsync_v2
#define INGOT_THEIRS_copyToHost cuMemcpyDtoHAsync_v2
#define INGOT_THEIRS_copyOnDevice cuMemcpyDtoDAsync_v2
#define INGOT_THEIRS_fillWords16 cuMemsetD16Async
#define INGOT_THEIRS_moduleLoad cuModuleLoadDataEx
#define INGOT_THEIRS_moduleUnload cuModuleUnload
#define INGOT_THEIRS_moduleGetFunction cuModuleGetFunction
#define INGOT_THEIRS_functionSetAttribute cuFuncSetAttribute
#define INGOT_THEIRS_functionGetAttribute cuFuncGetAttribute
#define INGOT_THEIRS_launchKernel cuLaunchKernel
#define INGOT_THEIRS_streamCreate cuStreamCreate
#define INGOT_THEIRS_streamDestroy cuStreamDestroy_v2
#define INGOT_THEIRS_streamSynchronize cuStreamSynchronize
#define INGOT_THEIRS_streamBeginCapture cuStreamBeginCapture_v2
#define INGOT_THEIRS_streamEndCapture cuStreamEndCapture
#define INGOT_THEIRS_graphInstantiate cuGraphInstantiateWithFlags
#define INGOT_THEIRS_graphLaunch cuGraphLaunch
#define INGOT_THEIRS_graphExecDestroy cuGraphExecDestroy
#define INGOT_THEIRS_graphDestroy cuGraphDestroy
#define INGOT_THEIRS_eventCreate cuEventCreate
#define INGOT_THEIRS_eventDestroy cuEventDestroy_v2
#define INGOT_THEIRS_eventSynchronize cuEventSynchronize
#define INGOT_THEIRS_eventRecord cuEventRecord
#define INGOT_THEIRS_eventElapsedTime cuEventElapsedTime
INGOT_CUDA_CALLS(INGOT_CHECK)

// And that what was compared above is what is asked for by name.
#define INGOT_TEXT(TEXT) #TEXT
#define INGOT_NAME(TEXT) INGOT_TEXT(TEXT)
TEST(CudaDriverTypesTest, SymbolsAreWhatWasCompared){
#define INGOT_SYMBOL(NAME, SYMBOL, TYPES)                                      \
  EXPECT_STREQ(SYMBOL, INGOT_NAME(INGOT_THEIRS_##NAME));
    INGOT_CUDA_CALLS(INGOT_SYMBOL)}

TEST(CudaDriverTypesTest, TheToolkitsDriverHasEverySymbol) {
  void *library = ::dlopen(INGOT_STUB_DRIVER, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    GTEST_SKIP() << ::dlerror();
#define INGOT_FIND(NAME, SYMBOL, TYPES)                                        \
  EXPECT_NE(::dlsym(library, SYMBOL), nullptr) << SYMBOL;
  INGOT_CUDA_CALLS(INGOT_FIND)
  for (const char *name :
       {"cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString"})
    EXPECT_NE(::dlsym(library, name), nullptr) << name;
}

} // namespace
} // namespace ingot::cuda
