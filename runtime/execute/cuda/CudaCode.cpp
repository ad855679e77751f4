#include "runtime/execute/cuda/CudaCode.h"

#include "runtime/plan/VerifyPlan.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <map>

namespace ingot::cuda {
namespace {

// Entry symbols begin with this, so that a kernel named like a function of CUDA is
// none (compiler/codegen/cuda).
constexpr const char *kEntryPrefix = "ingot_";
// A symbol of every image: this and the hash of the text that it was compiled of.
constexpr const char *kSourcePrefix = "ingot_source_";

std::string levelNames(const fbs::Target &target) {
  std::string names;
  for (const fbs::Level *level : *target.levels())
    names += (names.empty() ? "" : ", ") + level->name()->str();
  return names;
}

Status checkSections(std::span<const std::uint8_t> image,
                     const Elf64_Ehdr &header) {
  auto isInside = [&](std::uint64_t offset, std::uint64_t size) {
    return offset <= image.size() && size <= image.size() - offset;
  };
  if (header.e_shentsize != sizeof(Elf64_Shdr) ||
      !isInside(header.e_shoff,
                std::uint64_t(header.e_shnum) * sizeof(Elf64_Shdr)) ||
      (header.e_phnum != 0 &&
       (header.e_phentsize != sizeof(Elf64_Phdr) ||
        !isInside(header.e_phoff,
                  std::uint64_t(header.e_phnum) * sizeof(Elf64_Phdr)))))
    return Status::invalid("the tables of a cubin leave its " +
                           std::to_string(image.size()) + " bytes");
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, image.data() + header.e_shoff + i * sizeof section,
                sizeof section);
    if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL &&
        !isInside(section.sh_offset, section.sh_size))
      return Status::invalid("section " + std::to_string(i) +
                             " of a cubin leaves its " +
                             std::to_string(image.size()) + " bytes");
  }
  return Status::ok();
}

Result<ModuleHandle> loadModule(const Device &device,
                                std::span<const std::uint8_t> image) {
  char log[2048] = {};
  int options[] = {kJitErrorLog, kJitErrorLogBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log - 1)};
  ModuleHandle module = nullptr;
  Status status =
      device.driver().moduleLoad(&module, image.data(), 2, options, values);
  if (status.isOk())
    return module;
  // The first line of what the driver's compiler says, where it says something.
  std::string why(log, strnlen(log, sizeof log));
  why = why.substr(0, why.find('\n'));
  return Status(status.code(),
                status.message() + (why.empty() ? "" : " (" + why + ")"));
}

} // namespace

int leastDriverVersion(const fbs::Target &target) {
  std::uint32_t least = UINT32_MAX;
  for (const fbs::Level *level : *target.levels())
    least = std::min(least, level->driver_version());
  // A number that is none of the driver's makes every driver too old.
  return int(std::min<std::uint32_t>(least, INT32_MAX));
}

Result<std::uint32_t> chooseLevel(const fbs::Target &target,
                                  const std::string &wanted,
                                  const DeviceProperties &device,
                                  int driverVersion) {
  std::string found = device.name + " of " + device.sm();
  std::uint32_t tooNew = 0; // what driver the levels that would run need
  for (std::uint32_t i = 0; i < target.levels()->size(); ++i) {
    const fbs::Level &level = *target.levels()->Get(i);
    if (!wanted.empty() && level.name()->str() != wanted)
      continue;
    auto parsed = CudaLevel::parse(level.name()->string_view());
    if (!parsed || !parsed->runsOn(device.major, device.minor)) {
      if (!wanted.empty())
        return Status::unsupported("level \"" + wanted +
                                   "\" does not run on the device, " + found);
      continue;
    }
    if (level.driver_version() <= std::uint32_t(driverVersion))
      return i;
    tooNew = tooNew == 0 ? level.driver_version()
                         : std::min(tooNew, level.driver_version());
  }
  if (tooNew != 0)
    return Status::unsupported(
        "its code for " + found + " needs a CUDA driver for CUDA " +
        cudaVersionText(int(std::min<std::uint32_t>(tooNew, INT32_MAX))) +
        " or newer, found one for CUDA " + cudaVersionText(driverVersion));
  if (!wanted.empty())
    return Status::notFound("level \"" + wanted + "\": the artifact has " +
                            levelNames(target));
  return Status::unsupported("has code for " + levelNames(target) + ", found " +
                             found + "; compile it with " + device.sm() +
                             " among its targets");
}

Status checkImage(std::span<const std::uint8_t> image, bool isText) {
  if (isText) {
    if (image.empty() || image.back() != 0)
      return Status::invalid("text of PTX does not end with a zero");
    return Status::ok();
  }
  Elf64_Ehdr header;
  if (image.size() < sizeof header)
    return Status::invalid("a cubin of " + std::to_string(image.size()) +
                           " bytes is shorter than its header");
  std::memcpy(&header, image.data(), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != EM_CUDA)
    return Status::invalid("the image is no cubin");
  return checkSections(image, header);
}

namespace {

// Where a kernel's image is at a level, within the level's code; null: nowhere.
const fbs::KernelSymbol *symbolAt(const fbs::Kernel &kernel,
                                  std::uint32_t level) {
  for (const fbs::KernelSymbol *each : *kernel.symbols())
    if (each->level() == level)
      return each;
  return nullptr;
}

Status checkSource(std::span<const std::uint8_t> image,
                   const fbs::Kernel &kernel) {
  std::string mark = kSourcePrefix + kernel.source_hash()->str();
  if (std::search(image.begin(), image.end(), mark.begin(), mark.end()) !=
      image.end())
    return Status::ok();
  return Status::invalid("the image was not compiled of the text " +
                         kernel.source_hash()->str() + " that the plan names");
}

} // namespace

Status checkImages(const fbs::Target &target, std::uint32_t level,
                   std::span<const std::uint8_t> code) {
  const fbs::Level &chosen = *target.levels()->Get(level);
  auto parsed = CudaLevel::parse(chosen.name()->string_view());
  auto bytes = code.subspan(chosen.code_offset(), chosen.code_size());
  for (const fbs::Kernel *kernel : *target.kernels()) {
    const fbs::KernelSymbol *symbol = symbolAt(*kernel, level);
    if (!symbol || !parsed)
      return Status::internal("has no code at this level")
          .withContext("kernel " + kernel->name()->str());
    auto image = bytes.subspan(symbol->offset(), symbol->size());
    Status status = checkImage(image, parsed->isText);
    if (status.isOk())
      status = checkSource(image, *kernel);
    if (!status)
      return status.withContext("kernel " + kernel->name()->str() + " for " +
                                chosen.name()->str());
  }
  return Status::ok();
}

Result<CudaCode> CudaCode::load(const Device &device, const fbs::Target &target,
                                std::uint32_t level,
                                std::span<const std::uint8_t> code) {
  INGOT_RETURN_IF_ERROR(checkImages(target, level, code));
  const fbs::Level &chosen = *target.levels()->Get(level);
  auto bytes = code.subspan(chosen.code_offset(), chosen.code_size());
  CudaCode loaded(device);
  // Kernels may share an image.
  std::map<std::uint64_t, ModuleHandle> modules;
  auto load = [&](const fbs::Kernel &kernel) -> Status {
    const fbs::KernelSymbol *symbol = symbolAt(kernel, level);
    auto image = bytes.subspan(symbol->offset(), symbol->size());
    auto known = modules.find(symbol->offset());
    if (known == modules.end()) {
      INGOT_ASSIGN_OR_RETURN(ModuleHandle module, loadModule(device, image));
      loaded.modules_.push_back(module);
      known = modules.emplace(symbol->offset(), module).first;
    }
    const Driver &driver = device.driver();
    FunctionHandle function = nullptr;
    INGOT_RETURN_IF_ERROR(driver.moduleGetFunction(
        &function, known->second,
        (kEntryPrefix + kernel.name()->str()).c_str()));
    // Beyond 48 KiB a kernel must be allowed to.
    if (kernel.shared_bytes() > 48 * 1024) {
      if (int(kernel.shared_bytes()) > device.properties().maxSharedBytes)
        return Status::unsupported(
            "needs " + std::to_string(kernel.shared_bytes()) +
            " bytes of shared memory, " + device.properties().name + " has " +
            std::to_string(device.properties().maxSharedBytes));
      INGOT_RETURN_IF_ERROR(driver.functionSetAttribute(
          function, kFunctionMaxDynamicShared, int(kernel.shared_bytes())));
    }
    loaded.functions_.push_back(function);
    return Status::ok();
  };
  for (const fbs::Kernel *kernel : *target.kernels())
    if (Status status = load(*kernel); !status)
      return status.withContext("kernel " + kernel->name()->str() + " for " +
                                chosen.name()->str());
  return loaded;
}

CudaCode::CudaCode(CudaCode &&other) noexcept
    : device_(other.device_), modules_(std::move(other.modules_)),
      functions_(std::move(other.functions_)) {
  other.modules_.clear();
}

CudaCode::~CudaCode() {
  if (modules_.empty() || !device_->makeCurrent())
    return;
  for (ModuleHandle module : modules_)
    (void)device_->driver().moduleUnload(module);
}

} // namespace ingot::cuda
