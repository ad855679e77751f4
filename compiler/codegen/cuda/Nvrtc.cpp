#include "compiler/codegen/cuda/Nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <type_traits>

namespace ingot::codegen {
namespace {

// Declared as nvrtc.h declares them.
struct ProgramHandle;
using Program = ProgramHandle *;
enum NvrtcResult : int { kSuccess = 0 };

// The library stays open for the life of the process: it has threads of its own.
void *openLibrary(const std::string &name, std::string &tried) {
  void *library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    tried += (tried.empty() ? "" : ", ") + name;
  return library;
}

std::uint32_t numberBefore(std::string_view text, std::string_view words) {
  const std::size_t end = text.find(words);
  if (end == text.npos)
    return 0;
  std::size_t begin = end;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9')
    --begin;
  std::uint32_t value = 0;
  std::from_chars(text.data() + begin, text.data() + end, value);
  return value;
}

// The lines of a log that say what is wrong, at most four.
std::string errorLines(const std::string &log) {
  std::string out;
  int lines = 0;
  for (std::size_t begin = 0; begin < log.size() && lines < 4;) {
    const std::size_t end = std::min(log.find('\n', begin), log.size());
    const std::string line = log.substr(begin, end - begin);
    begin = end + 1;
    if (line.find("error") == line.npos && line.find("fatal") == line.npos)
      continue;
    out += (lines++ ? "\n" : "") + line;
  }
  return out.empty() ? log.substr(0, 400) : out;
}

} // namespace

struct Nvrtc::Api {
  int (*version)(int *, int *);
  const char *(*errorText)(int);
  int (*numTargets)(int *);
  int (*targets)(int *);
  int (*create)(Program *, const char *, const char *, int, const char *const *,
                const char *const *);
  int (*destroy)(Program *);
  int (*compile)(Program, int, const char *const *);
  int (*cubinSize)(Program, std::size_t *);
  int (*cubin)(Program, char *);
  int (*ptxSize)(Program, std::size_t *);
  int (*ptx)(Program, char *);
  int (*logSize)(Program, std::size_t *);
  int (*log)(Program, char *);
};

KernelResources readResources(const std::string &log,
                              const std::string &entry) {
  KernelResources resources;
  const std::size_t begin = log.find("'" + entry + "'");
  if (begin == log.npos)
    return resources;
  const std::size_t next = log.find("Compiling entry function", begin);
  const std::string_view own =
      std::string_view(log).substr(begin, next - begin);
  resources.registers = numberBefore(own, " registers");
  resources.spillBytes = numberBefore(own, " bytes spill stores") +
                         numberBefore(own, " bytes spill loads");
  resources.stackBytes = numberBefore(own, " bytes stack frame");
  resources.staticSharedBytes = numberBefore(own, " bytes smem");
  return resources;
}

Result<Nvrtc> Nvrtc::open(const std::string &path) {
  std::vector<std::string> names;
  const char *given = std::getenv("INGOT_NVRTC");
  if (!path.empty())
    names = {path};
  else if (given && *given)
    names = {given};
  else
    names = {"libnvrtc.so.13", "libnvrtc.so.12",
             "/usr/local/cuda/lib64/libnvrtc.so.13",
             "/usr/local/cuda/lib64/libnvrtc.so.12",
             "/usr/local/cuda/lib64/libnvrtc.so"};
  std::string tried;
  void *library = nullptr;
  Nvrtc nvrtc;
  for (const std::string &name : names)
    if ((library = openLibrary(name, tried))) {
      nvrtc.path_ = name;
      break;
    }
  if (!library)
    return Status::notFound(
        "the CUDA compiler NVRTC cannot be opened (tried " + tried +
        "); INGOT_NVRTC may name it, and the PyPI package nvidia-cuda-nvrtc "
        "brings it");
  auto api = std::make_shared<Api>();
  std::string missing;
  const auto load = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        dlsym(library, name));
    if (!function && missing.empty())
      missing = name;
  };
  load(api->version, "nvrtcVersion");
  load(api->errorText, "nvrtcGetErrorString");
  load(api->numTargets, "nvrtcGetNumSupportedArchs");
  load(api->targets, "nvrtcGetSupportedArchs");
  load(api->create, "nvrtcCreateProgram");
  load(api->destroy, "nvrtcDestroyProgram");
  load(api->compile, "nvrtcCompileProgram");
  load(api->cubinSize, "nvrtcGetCUBINSize");
  load(api->cubin, "nvrtcGetCUBIN");
  load(api->ptxSize, "nvrtcGetPTXSize");
  load(api->ptx, "nvrtcGetPTX");
  load(api->logSize, "nvrtcGetProgramLogSize");
  load(api->log, "nvrtcGetProgramLog");
  if (!missing.empty())
    return Status::unsupported(nvrtc.path_ + ": has no function " + missing +
                               "; NVRTC 12 or newer is needed");
  int major = 0, minor = 0;
  if (api->version(&major, &minor) != kSuccess)
    return Status::internal(nvrtc.path_ + ": nvrtcVersion fails");
  nvrtc.version_ = major * 1000 + minor * 10;
  nvrtc.api_ = std::move(api);
  return nvrtc;
}

Status Nvrtc::checkTarget(const std::string &target) const {
  int count = 0;
  if (api_->numTargets(&count) != kSuccess || count <= 0)
    return Status::internal(path_ + ": nvrtcGetNumSupportedArchs fails");
  std::vector<int> known(static_cast<std::size_t>(count));
  if (api_->targets(known.data()) != kSuccess)
    return Status::internal(path_ + ": nvrtcGetSupportedArchs fails");
  const bool isReal = target.starts_with("sm_");
  std::string_view rest(target);
  if (isReal || target.starts_with("compute_"))
    rest.remove_prefix(isReal ? 3 : 8);
  else
    rest = {};
  int number = 0;
  auto [end, error] =
      std::from_chars(rest.data(), rest.data() + rest.size(), number);
  const std::string_view suffix =
      error == std::errc() ? rest.substr(std::size_t(end - rest.data()))
                           : std::string_view("?");
  // Below 80 there is no cp.async and no mma of this shape; variants "a" and "f"
  // begin with 90 and 100.
  const bool isWell = suffix.empty() || (suffix == "a" && number >= 90) ||
                      (suffix == "f" && number >= 100);
  if (isWell && number >= 80 &&
      std::find(known.begin(), known.end(), number) != known.end())
    return Status::ok();
  std::string list;
  for (int one : known)
    if (one >= 80)
      list += (list.empty() ? "sm_" : ", sm_") + std::to_string(one);
  return Status::unsupported("no CUDA target \"" + target + "\": NVRTC " +
                             std::to_string(version_ / 1000) + "." +
                             std::to_string(version_ % 1000 / 10) + " has " +
                             list +
                             "; and sm_80 is the least that Ingot needs");
}

Result<NvrtcOutput>
Nvrtc::compile(const std::string &kernel, const std::string &text,
               const std::string &target,
               const std::vector<std::string> &options) const {
  const std::string what = "CUDA kernel \"" + kernel + "\" for " + target;
  Program program = nullptr;
  int result = api_->create(&program, text.c_str(), (kernel + ".cu").c_str(), 0,
                            nullptr, nullptr);
  if (result != kSuccess)
    return Status::internal(what +
                            ": nvrtcCreateProgram: " + api_->errorText(result));
  struct Destroy {
    const Api &api;
    Program &program;
    ~Destroy() { api.destroy(&program); }
  } destroy{*api_, program};

  std::vector<std::string> all = options;
  all.push_back("--gpu-architecture=" + target);
  std::vector<const char *> arguments;
  for (const std::string &option : all)
    arguments.push_back(option.c_str());
  result = api_->compile(program, static_cast<int>(arguments.size()),
                         arguments.data());
  std::size_t size = 0;
  std::string log;
  if (api_->logSize(program, &size) == kSuccess && size > 1) {
    log.resize(size);
    if (api_->log(program, log.data()) != kSuccess)
      log.clear();
    while (!log.empty() && (log.back() == '\0' || log.back() == '\n'))
      log.pop_back();
  }
  if (result != kSuccess)
    return Status::internal(what + ": " + api_->errorText(result) + ": " +
                            errorLines(log));

  NvrtcOutput output;
  const bool isReal = target.starts_with("sm_");
  result =
      isReal ? api_->cubinSize(program, &size) : api_->ptxSize(program, &size);
  if (result == kSuccess) {
    output.image.resize(size);
    auto *to = reinterpret_cast<char *>(output.image.data());
    result = isReal ? api_->cubin(program, to) : api_->ptx(program, to);
  }
  if (result != kSuccess || size == 0)
    return Status::internal(
        what + ": NVRTC gives no image: " + api_->errorText(result));
  if (isReal) {
    output.resources = readResources(log, "ingot_" + kernel);
    if (output.resources.registers == 0)
      return Status::internal(
          what + ": ptxas does not say its registers: " + log.substr(0, 200));
  }
  return output;
}

} // namespace ingot::codegen
