// Native code for the CPU, ahead of time: the kernels of compiler/kernels/cpu,
// kept as LLVM bitcode inside the compiler, are specialised by constants and
// linked into one ELF shared object a feature level. The object has no imports,
// relocations, constructors or writable data, so that a runtime maps its single
// load segment from the artifact and calls into it.
#pragma once

#include "compiler/codegen/cpu/KernelCatalog.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ingot::codegen {

struct KernelRequest {
  std::string name; // symbol: [a-z0-9_]+
  std::string op;
  KernelConfig constants; // as KernelVariant::constants
};

struct CompiledKernel {
  std::string name;
  std::uint64_t offset = 0; // from the start of the ELF; also from the mapping
  std::uint64_t size = 0;
};

struct CompiledLevel {
  std::string name;
  std::vector<std::string> features; // CPU features it needs, LLVM's names
  std::vector<std::uint8_t> elf;
  // The one load segment (read and execute) within `elf`. mapOffset and
  // mapVaddr are multiples of a page and equal, so that offsets in the file are
  // offsets in the mapping.
  std::uint64_t mapOffset = 0;
  std::uint64_t mapSize = 0;
  std::uint64_t mapVaddr = 0;
  std::uint64_t ehFrameOffset = 0; // unwind tables, from the start of the ELF
  std::uint64_t ehFrameSize = 0;
  std::vector<CompiledKernel> kernels; // in the order of the requests
};

// The feature levels that compileLevel knows, slowest first:
// "x86-64-v3" and "avx512-vnni".
std::vector<std::string> cpuLevelNames();

// Compiles the kernels for a level. The same requests give the same bytes.
// Names must be distinct. `threads` bounds the workers of code generation.
Result<CompiledLevel> compileLevel(const std::string &levelName,
                                   const std::vector<KernelRequest> &kernels,
                                   unsigned threads = 2);

} // namespace ingot::codegen
