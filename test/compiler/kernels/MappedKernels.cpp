#include "test/compiler/kernels/MappedKernels.h"

#include "compiler/codegen/cpu/EmbedBitcode.h"
#include "compiler/codegen/cpu/Specialize.h"

#include <sys/mman.h>
#include <unistd.h>

INGOT_EMBED_LEVEL(emulated, INGOT_BITCODE_DIR "/emulated-avx512")

namespace ingot::test {

const codegen::CpuLevel &emulatedLevel() {
  static const codegen::CpuLevel level = {"emulated-avx512", "x86-64-v3", "",
                                          codegen::cpuLevels().front().features,
                                          INGOT_LEVEL_MODULES(emulated)};
  return level;
}

const codegen::CpuLevel *levelNamed(const std::string &name) {
  for (const codegen::CpuLevel &level : codegen::cpuLevels())
    if (level.name == name)
      return &level;
  return name == emulatedLevel().name ? &emulatedLevel() : nullptr;
}

bool machineRuns(const codegen::CpuLevel &level) {
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") &&
                  __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi2");
  if (level.name != "avx512-vnni")
    return v3;
  return v3 && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512vnni");
}

Result<MappedKernels>
MappedKernels::compile(const codegen::CpuLevel &level,
                       const std::vector<codegen::KernelRequest> &requests) {
  MappedKernels kernels;
  INGOT_ASSIGN_OR_RETURN(kernels.level_,
                         codegen::compileForLevel(level, requests, 2));
  const std::vector<std::uint8_t> &elf = kernels.level_.elf;
  const int file = memfd_create("kernels", MFD_CLOEXEC);
  if (file < 0 ||
      write(file, elf.data(), elf.size()) != static_cast<ssize_t>(elf.size()))
    return Status::io("cannot write the code to memory");
  void *base =
      mmap(nullptr, kernels.level_.mapSize, PROT_READ | PROT_EXEC, MAP_PRIVATE,
           file, static_cast<off_t>(kernels.level_.mapOffset));
  close(file);
  if (base == MAP_FAILED)
    return Status::io("cannot map the code");
  kernels.base_ = base;
  return kernels;
}

MappedKernels::MappedKernels(MappedKernels &&other) noexcept
    : level_(std::move(other.level_)),
      base_(std::exchange(other.base_, nullptr)) {}

MappedKernels::~MappedKernels() {
  if (base_)
    munmap(base_, level_.mapSize);
}

abi::KernelFn MappedKernels::at(std::size_t index) const {
  return reinterpret_cast<abi::KernelFn>(static_cast<std::uint8_t *>(base_) +
                                         level_.kernels[index].offset);
}

} // namespace ingot::test
