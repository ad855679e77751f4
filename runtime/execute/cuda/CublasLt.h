// cuBLASLt, found at run time as the driver is (Driver.h): opened with dlopen by
// whoever runs an artifact that leaves products to it, never linked.
//
// INGOT_CUBLASLT names another library in its place, by an absolute path: test/simt
// builds one that computes on the CPU.
#pragma once

#include "runtime/execute/cuda/CublasLtTypes.h"
#include "runtime/support/Status.h"

#include <memory>
#include <string>

namespace ingot::cuda {

// The oldest cuBLASLt that the calls are meant for, as it counts: 10000 * major + 100 *
// minor + patch.
inline constexpr std::size_t kLeastCublasLtVersion = 120000;

class CublasLt;

// One function of the library. Called like it; a failure becomes a Status.
template <typename Arguments> class CublasLtCall;
template <typename... Types> class CublasLtCall<void(Types...)> {
public:
  CublasLtCall(const CublasLt &library, const char *name)
      : library_(library), name_(name) {}
  // Unsupported where the library lacks it.
  Status resolve();
  Status operator()(Types... arguments) const;

private:
  const CublasLt &library_;
  const char *name_;
  LtStatus (*function_)(Types...) = nullptr;
};

class CublasLt {
public:
  // Fails with one sentence that says what was needed and what was found: no library,
  // one that is too old, one that lacks a function.
  static Result<std::shared_ptr<const CublasLt>> open();

  CublasLt(const CublasLt &) = delete;
  CublasLt &operator=(const CublasLt &) = delete;
  ~CublasLt();

  std::size_t version() const { return version_; }
  std::string versionText() const; // "13.1"
  const std::string &path() const { return path_; }

  // "cublasLtMatmul: CUBLAS_STATUS_NOT_SUPPORTED (15)"
  Status failure(const char *call, LtStatus code) const;
  void *find(const char *name) const;

#define INGOT_CUBLASLT_CALL(NAME, SYMBOL, TYPES)                               \
  CublasLtCall<void TYPES> NAME{*this, SYMBOL};
  INGOT_CUBLASLT_CALLS(INGOT_CUBLASLT_CALL)
#undef INGOT_CUBLASLT_CALL

private:
  CublasLt() = default;
  Status start();

  std::string path_;
  void *library_ = nullptr;
  std::size_t version_ = 0;
  const char *(*statusName_)(LtStatus) = nullptr;
};

template <typename... Types> Status CublasLtCall<void(Types...)>::resolve() {
  function_ = reinterpret_cast<decltype(function_)>(library_.find(name_));
  if (function_)
    return Status::ok();
  return Status::unsupported("cuBLASLt " + library_.versionText() + " (" +
                             library_.path() + ") has no " + name_);
}

template <typename... Types>
Status CublasLtCall<void(Types...)>::operator()(Types... arguments) const {
  LtStatus code = function_(arguments...);
  return code == kLtSuccess ? Status::ok() : library_.failure(name_, code);
}

} // namespace ingot::cuda
