// The kernel sources as LLVM bitcode, one module a source and feature level,
// compiled with the compiler and kept inside it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ingot::codegen {

struct BitcodeModule {
  std::string source; // of compiler/kernels/cpu, without ".cpp"
  std::span<const std::uint8_t> bytes;
};

// A feature level: what its code may use, and the bitcode made for it.
struct CpuLevel {
  std::string name;
  std::string cpu;                   // LLVM's name of the baseline
  std::string extraFeatures;         // beyond it, as "+avx512vnni"
  std::vector<std::string> features; // that a machine must have
  std::vector<BitcodeModule> modules;
};

// The levels of the product, slowest first.
const std::vector<CpuLevel> &cpuLevels();

} // namespace ingot::codegen
