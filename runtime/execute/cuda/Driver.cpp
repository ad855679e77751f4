// 1. Which library: the environment's, else the system's. 2. Its version, before
//    anything of it is used. 3. Its functions. 4. Its devices.
#include "runtime/execute/cuda/Driver.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>

namespace ingot::cuda {
namespace {

constexpr const char *kLibrary = "libcuda.so.1";
constexpr const char *kVariable = "INGOT_CUDA_DRIVER";

std::string needed(int leastVersion) {
  return "needs a CUDA driver for CUDA " + cudaVersionText(leastVersion) +
         " or newer";
}

} // namespace

std::string cudaVersionText(int version) {
  return std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

Result<std::shared_ptr<const Driver>> Driver::open(int leastVersion) {
  std::shared_ptr<Driver> driver(new Driver());
  INGOT_RETURN_IF_ERROR(
      driver->start(std::max(leastVersion, kLeastDriverVersion)));
  return std::shared_ptr<const Driver>(std::move(driver));
}

Driver::~Driver() {
  if (library_)
    ::dlclose(library_);
}

void *Driver::find(const char *name) const { return ::dlsym(library_, name); }

Status Driver::start(int leastVersion) {
  path_ = kLibrary;
  if (const char *given = std::getenv(kVariable)) {
    path_ = given;
    if (path_.empty() || path_[0] != '/')
      return Status::invalid(std::string(kVariable) + " is \"" + path_ +
                             "\", expected an absolute path of a library");
  }
  // The system's driver stays once it is there: it has threads and handlers for the
  // process's end, which would outlive its text. A library in its place goes.
  library_ =
      ::dlopen(path_.c_str(),
               RTLD_NOW | RTLD_LOCAL | (path_ == kLibrary ? RTLD_NODELETE : 0));
  if (!library_) {
    const char *why = ::dlerror();
    return Status::unsupported(needed(leastVersion) + ", found none (" +
                               (why ? why : path_) + ")");
  }
  auto getVersion =
      reinterpret_cast<ResultCode (*)(int *)>(find("cuDriverGetVersion"));
  if (!getVersion)
    return Status::unsupported(needed(leastVersion) + ", and " + path_ +
                               " is none: it has no cuDriverGetVersion");
  errorName_ = reinterpret_cast<decltype(errorName_)>(find("cuGetErrorName"));
  errorText_ = reinterpret_cast<decltype(errorText_)>(find("cuGetErrorString"));
  if (ResultCode code = getVersion(&version_); code != kSuccess)
    return failure("cuDriverGetVersion", code);
  if (version_ < leastVersion)
    return Status::unsupported(needed(leastVersion) + ", found one for CUDA " +
                               cudaVersionText(version_) + " (" + path_ + ")");
#define INGOT_CUDA_CALL(NAME, SYMBOL, TYPES)                                   \
  INGOT_RETURN_IF_ERROR(NAME.resolve());
  INGOT_CUDA_CALLS(INGOT_CUDA_CALL)
#undef INGOT_CUDA_CALL

  ResultCode code = init.code(0);
  if (code == kSuccess)
    INGOT_RETURN_IF_ERROR(deviceGetCount(&numDevices_));
  if (code == kNoDevice || (code == kSuccess && numDevices_ == 0))
    return Status::unsupported("needs a CUDA device, and the driver for CUDA " +
                               cudaVersionText(version_) + " (" + path_ +
                               ") finds none");
  if (code != kSuccess) {
    Status status = failure(init.name(), code);
    return Status::unsupported("needs a CUDA device, and the driver for CUDA " +
                               cudaVersionText(version_) + " (" + path_ +
                               ") does not start: " + status.message());
  }
  return Status::ok();
}

Status Driver::failure(const char *call, ResultCode code) const {
  auto ask = [&](ResultCode (*function)(ResultCode, const char **)) {
    const char *text = nullptr;
    return function && function(code, &text) == kSuccess && text
               ? std::string(text)
               : std::string();
  };
  std::string name = ask(errorName_), text = ask(errorText_);
  if (name.empty())
    name = "error";
  std::string message = std::string(call) + ": " + name + " (" +
                        std::to_string(code) + ")" +
                        (text.empty() ? "" : ": " + text);
  return Status(code == kOutOfMemory ? StatusCode::OutOfMemory
                                     : StatusCode::IoError,
                std::move(message));
}

} // namespace ingot::cuda
