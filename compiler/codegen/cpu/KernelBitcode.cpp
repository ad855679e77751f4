// Bitcode of the levels of the product: the build passes the folder of each
// level's modules, and the assembler includes the files.
#include "compiler/codegen/cpu/KernelBitcode.h"

#include "compiler/codegen/cpu/EmbedBitcode.h"

INGOT_EMBED_LEVEL(x86_64_v3, INGOT_BITCODE_DIR "/x86-64-v3")
INGOT_EMBED_LEVEL(avx512_vnni, INGOT_BITCODE_DIR "/avx512-vnni")

namespace ingot::codegen {

const std::vector<CpuLevel> &cpuLevels() {
  static const std::vector<CpuLevel> levels = [] {
    const std::vector<std::string> v3 = {"avx",   "avx2",  "bmi",
                                         "bmi2",  "f16c",  "fma",
                                         "lzcnt", "movbe", "popcnt"};
    std::vector<std::string> v4 = v3;
    v4.insert(v4.end(), {"avx512f", "avx512bw", "avx512cd", "avx512dq",
                         "avx512vl", "avx512vnni"});
    return std::vector<CpuLevel>{
        {"x86-64-v3", "x86-64-v3", "", v3, INGOT_LEVEL_MODULES(x86_64_v3)},
        {"avx512-vnni", "x86-64-v4", "+avx512vnni", v4,
         INGOT_LEVEL_MODULES(avx512_vnni)}};
  }();
  return levels;
}

} // namespace ingot::codegen
