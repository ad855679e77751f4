// The CUDA driver, found at run time: the library is opened with dlopen and never
// linked, so the program starts on machines that have neither driver nor GPU. Every
// call gives a Status that names it and the driver's own name of the error.
//
// INGOT_CUDA_DRIVER names another library in its place, by an absolute path:
// test/simt builds one that runs kernels on the CPU.
#pragma once

#include "runtime/execute/cuda/DriverTypes.h"
#include "runtime/support/Status.h"

#include <memory>
#include <string>

namespace ingot::cuda {

// The oldest driver that has all the functions of DriverTypes.h and that Ingot is
// meant for, as the driver counts: 1000 * major + 10 * minor of its CUDA version.
inline constexpr int kLeastDriverVersion = 12000;

// "12.4" of 12040.
std::string cudaVersionText(int version);

class Driver;

// One function of the driver. Called like it; a failure becomes a Status.
template <typename Arguments> class DriverCall;
template <typename... Types> class DriverCall<void(Types...)> {
public:
  DriverCall(const Driver &driver, const char *name)
      : driver_(driver), name_(name) {}
  // Unsupported where the library lacks it.
  Status resolve();
  Status operator()(Types... arguments) const;
  // The code alone, for a call whose failure means something of its own.
  ResultCode code(Types... arguments) const { return function_(arguments...); }
  const char *name() const { return name_; }

private:
  const Driver &driver_;
  const char *name_;
  ResultCode (*function_)(Types...) = nullptr;
};

class Driver {
public:
  // Opens and initialises the driver. Fails with one sentence that says what was
  // needed and what was found: no library, one that is too old for `leastVersion`
  // (of whoever is to run; kLeastDriverVersion at least), no device.
  static Result<std::shared_ptr<const Driver>>
  open(int leastVersion = kLeastDriverVersion);

  Driver(const Driver &) = delete;
  Driver &operator=(const Driver &) = delete;
  ~Driver();

  int version() const { return version_; }
  int numDevices() const { return numDevices_; }
  const std::string &path() const { return path_; }

  // "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory". OutOfMemory where
  // the driver says so, else IoError.
  Status failure(const char *call, ResultCode code) const;
  void *find(const char *name) const;

#define INGOT_CUDA_CALL(NAME, SYMBOL, TYPES)                                   \
  DriverCall<void TYPES> NAME{*this, SYMBOL};
  INGOT_CUDA_CALLS(INGOT_CUDA_CALL)
#undef INGOT_CUDA_CALL

private:
  Driver() = default;
  Status start(int leastVersion);

  std::string path_;
  void *library_ = nullptr;
  int version_ = 0;
  int numDevices_ = 0;
  ResultCode (*errorName_)(ResultCode, const char **) = nullptr;
  ResultCode (*errorText_)(ResultCode, const char **) = nullptr;
};

template <typename... Types> Status DriverCall<void(Types...)>::resolve() {
  function_ = reinterpret_cast<decltype(function_)>(driver_.find(name_));
  if (function_)
    return Status::ok();
  return Status::unsupported("the CUDA driver " + driver_.path() + " (CUDA " +
                             cudaVersionText(driver_.version()) + ") has no " +
                             name_);
}

template <typename... Types>
Status DriverCall<void(Types...)>::operator()(Types... arguments) const {
  ResultCode code = function_(arguments...);
  return code == kSuccess ? Status::ok() : driver_.failure(name_, code);
}

} // namespace ingot::cuda
