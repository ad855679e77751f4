// 1. Which library: the environment's, else the first of the system's. 2. Its version.
// 3. Its functions.
#include "runtime/execute/cuda/CublasLt.h"

#include <cstdlib>
#include <dlfcn.h>
#include <vector>

namespace ingot::cuda {
namespace {

constexpr const char *kVariable = "INGOT_CUBLASLT";
constexpr const char *kLibraries[] = {"libcublasLt.so.13", "libcublasLt.so.12",
                                      "/usr/local/cuda/lib64/libcublasLt.so"};
constexpr const char *kNeeded = "needs cuBLASLt of CUDA 12.0 or newer";

std::string textOf(std::size_t version) {
  return std::to_string(version / 10000) + "." +
         std::to_string(version % 10000 / 100);
}

} // namespace

std::string CublasLt::versionText() const { return textOf(version_); }

Result<std::shared_ptr<const CublasLt>> CublasLt::open() {
  std::shared_ptr<CublasLt> library(new CublasLt());
  INGOT_RETURN_IF_ERROR(library->start());
  return std::shared_ptr<const CublasLt>(std::move(library));
}

CublasLt::~CublasLt() {
  if (library_)
    ::dlclose(library_);
}

void *CublasLt::find(const char *name) const { return ::dlsym(library_, name); }

Status CublasLt::start() {
  std::vector<std::string> paths(std::begin(kLibraries), std::end(kLibraries));
  const char *given = std::getenv(kVariable);
  if (given) {
    if (given[0] != '/')
      return Status::invalid(std::string(kVariable) + " is \"" + given +
                             "\", expected an absolute path of a library");
    paths = {given};
  }
  std::string why;
  for (const std::string &path : paths) {
    // The system's stays once it is there: the CUDA runtime inside it has handlers
    // for the process's end.
    library_ = ::dlopen(path.c_str(),
                        RTLD_NOW | RTLD_LOCAL | (given ? 0 : RTLD_NODELETE));
    if (library_) {
      path_ = path;
      break;
    }
    const char *error = ::dlerror();
    why += (why.empty() ? "" : "; ") + std::string(error ? error : path);
  }
  if (!library_)
    return Status::unsupported(std::string(kNeeded) + ", found none (" + why +
                               ")");
  auto version =
      reinterpret_cast<std::size_t (*)()>(find("cublasLtGetVersion"));
  if (!version)
    return Status::unsupported(std::string(kNeeded) + ", and " + path_ +
                               " is none: it has no cublasLtGetVersion");
  version_ = version();
  if (version_ < kLeastCublasLtVersion)
    return Status::unsupported(std::string(kNeeded) + ", found " +
                               versionText() + " (" + path_ + ")");
  statusName_ =
      reinterpret_cast<decltype(statusName_)>(find("cublasLtGetStatusName"));
#define INGOT_CUBLASLT_CALL(NAME, SYMBOL, TYPES)                               \
  INGOT_RETURN_IF_ERROR(NAME.resolve());
  INGOT_CUBLASLT_CALLS(INGOT_CUBLASLT_CALL)
#undef INGOT_CUBLASLT_CALL
  return Status::ok();
}

Status CublasLt::failure(const char *call, LtStatus code) const {
  const char *name = statusName_ ? statusName_(code) : nullptr;
  return Status(StatusCode::IoError, std::string(call) + ": " +
                                         (name ? name : "error") + " (" +
                                         std::to_string(code) + ")");
}

} // namespace ingot::cuda
