#include "runtime/plan/CodeMapping.h"

#include "runtime/plan/CpuFeatures.h"
#include "runtime/plan/VerifyPlan.h"
#include "runtime/support/MappedFiles.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

// The unwinder's own registration (libgcc).
extern "C" void __register_frame(const void *);
extern "C" void __deregister_frame(const void *);

namespace ingot {
namespace {

std::string join(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

std::string needs(const fbs::Level &level,
                  const std::set<std::string> &present) {
  auto needed = listOf(level.features());
  return "\"" + level.name()->str() + "\" needs " + join(needed) +
         " (missing here: " + join(missingFeatures(needed, present)) + ")";
}

// The unwinder walks records until one of length zero: register only a table
// that has it, with every record inside.
bool isTerminatedFrameTable(const std::uint8_t *begin, std::uint64_t size,
                            std::uint64_t available) {
  std::uint64_t at = 0;
  while (at + 4 <= size) {
    std::uint32_t length;
    std::memcpy(&length, begin + at, 4);
    if (length == 0)
      return true;
    if (length == 0xffffffffu || length > size - at - 4)
      return false;
    at += 4 + std::uint64_t(length);
  }
  // Linkers may leave the terminator to the next four bytes of zero padding.
  std::uint32_t after = 1;
  if (at == size && at + 4 <= available)
    std::memcpy(&after, begin + at, 4);
  return after == 0;
}

void writePerfMap(const fbs::Target &target, std::uint32_t level,
                  const std::uint8_t *code) {
  std::string path = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  int fd = ::open(path.c_str(),
                  O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0)
    return;
  for (const fbs::Kernel *kernel : *target.kernels())
    for (const fbs::KernelSymbol *symbol : *kernel->symbols())
      if (symbol->level() == level)
        ::dprintf(fd, "%" PRIxPTR " %" PRIx64 " %s\n",
                  reinterpret_cast<std::uintptr_t>(code + symbol->offset()),
                  symbol->size(), kernel->name()->c_str());
  ::close(fd);
}

} // namespace

Result<std::uint32_t> chooseLevel(const fbs::Target &target,
                                  const std::string &wanted,
                                  const std::set<std::string> &present) {
  std::string all;
  for (std::uint32_t i = 0; i < target.levels()->size(); ++i) {
    const fbs::Level &level = *target.levels()->Get(i);
    bool fits = missingFeatures(listOf(level.features()), present).empty();
    if (wanted.empty() ? fits : level.name()->string_view() == wanted) {
      if (!fits)
        return Status::unsupported("this processor cannot run the level: " +
                                   needs(level, present));
      return i;
    }
    all += (all.empty() ? "" : "; ") + needs(level, present);
  }
  if (!wanted.empty()) {
    std::vector<std::string> names;
    for (const fbs::Level *level : *target.levels())
      names.push_back(level->name()->str());
    return Status::notFound("level \"" + wanted +
                            "\" is not in the artifact; it has " + join(names));
  }
  return Status::unsupported(
      "this processor runs no level of the artifact: " + all +
      "; rebuild it with a level that this processor has (`ingot compile "
      "--level`)");
}

Result<CodeMapping> CodeMapping::map(const Artifact &artifact,
                                     const fbs::Target &target,
                                     std::uint32_t levelIndex) {
  const fbs::Level &level = *target.levels()->Get(levelIndex);
  const container::SegmentEntry &segment =
      *artifact.entry(container::SegmentKind::Code);
  int fd = ::open(artifact.path().c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return Status::io(artifact.path() +
                      ": cannot open: " + std::strerror(errno));
  std::uint64_t offset =
      segment.offset + level.code_offset() + level.map_offset();
  CodeMapping mapping;
  mapping.sizeBytes_ = level.map_size();
  mapping.base_ = ::mmap(nullptr, mapping.sizeBytes_, PROT_READ | PROT_EXEC,
                         MAP_PRIVATE, fd, static_cast<off_t>(offset));
  int error = errno;
  struct stat info;
  if (mapping.base_ != MAP_FAILED && ::fstat(fd, &info) == 0)
    noteMapping(mapping.base_, mapping.sizeBytes_, artifact.path(), info);
  ::close(fd);
  if (mapping.base_ == MAP_FAILED) {
    mapping.base_ = nullptr;
    return Status::io(artifact.path() + ": cannot map the code of level \"" +
                      level.name()->str() +
                      "\" executable: " + std::strerror(error) +
                      (error == EPERM || error == EACCES
                           ? "; is the file on a file system mounted noexec?"
                           : ""));
  }
  auto *mapped = static_cast<const std::uint8_t *>(mapping.base_);
  // Symbol offsets count from the start of the level's ELF.
  const std::uint8_t *code = mapped - level.map_offset();
  mapping.levelName_ = level.name()->str();
  mapping.functions_.resize(target.kernels()->size());
  for (std::uint32_t i = 0; i < target.kernels()->size(); ++i)
    for (const fbs::KernelSymbol *symbol : *target.kernels()->Get(i)->symbols())
      if (symbol->level() == levelIndex)
        mapping.functions_[i] = reinterpret_cast<abi::KernelFn>(
            reinterpret_cast<std::uintptr_t>(code + symbol->offset()));
  if (level.eh_frame_size() != 0) {
    const std::uint8_t *frames = code + level.eh_frame_offset();
    std::uint64_t available =
        level.map_size() - (level.eh_frame_offset() - level.map_offset());
    if (isTerminatedFrameTable(frames, level.eh_frame_size(), available)) {
      __register_frame(frames);
      mapping.ehFrame_ = frames;
    }
  }
  if (std::getenv("INGOT_PERF_MAP"))
    writePerfMap(target, levelIndex, code);
  return mapping;
}

CodeMapping::CodeMapping(CodeMapping &&other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      sizeBytes_(std::exchange(other.sizeBytes_, 0)),
      ehFrame_(std::exchange(other.ehFrame_, nullptr)),
      functions_(std::move(other.functions_)),
      levelName_(std::move(other.levelName_)) {}

CodeMapping &CodeMapping::operator=(CodeMapping &&other) noexcept {
  std::swap(base_, other.base_);
  std::swap(sizeBytes_, other.sizeBytes_);
  std::swap(ehFrame_, other.ehFrame_);
  std::swap(functions_, other.functions_);
  std::swap(levelName_, other.levelName_);
  return *this;
}

CodeMapping::~CodeMapping() {
  if (ehFrame_)
    __deregister_frame(ehFrame_);
  if (!base_)
    return;
  forgetMapping(base_);
  ::munmap(base_, sizeBytes_);
}

} // namespace ingot
