// Puts the bitcode of one level into the data of the program. The list of
// sources is that of compiler/kernels/CMakeLists.txt.
#pragma once

#include "compiler/codegen/cpu/KernelBitcode.h"

#define INGOT_EMBED_MODULE(LEVEL, SOURCE, FOLDER)                              \
  asm(".section .rodata.ingot_bitcode,\"a\",@progbits\n"                       \
      ".balign 16\n"                                                           \
      ".global ingot_bitcode_" #LEVEL "_" #SOURCE "\n"                         \
      ".hidden ingot_bitcode_" #LEVEL "_" #SOURCE "\n"                         \
      "ingot_bitcode_" #LEVEL "_" #SOURCE ":\n"                                \
      ".incbin \"" FOLDER "/" #SOURCE ".bc\"\n"                                \
      ".global ingot_bitcode_" #LEVEL "_" #SOURCE "_end\n"                     \
      ".hidden ingot_bitcode_" #LEVEL "_" #SOURCE "_end\n"                     \
      "ingot_bitcode_" #LEVEL "_" #SOURCE "_end:\n"                            \
      ".byte 0\n"                                                              \
      ".previous\n");                                                          \
  extern "C" const std::uint8_t ingot_bitcode_##LEVEL##_##SOURCE[];            \
  extern "C" const std::uint8_t ingot_bitcode_##LEVEL##_##SOURCE##_end[];

#define INGOT_EMBED_LEVEL(LEVEL, FOLDER)                                       \
  INGOT_EMBED_MODULE(LEVEL, Attention, FOLDER)                                 \
  INGOT_EMBED_MODULE(LEVEL, Elementwise, FOLDER)                               \
  INGOT_EMBED_MODULE(LEVEL, Experts, FOLDER)                                   \
  INGOT_EMBED_MODULE(LEVEL, LinearFloat, FOLDER)                               \
  INGOT_EMBED_MODULE(LEVEL, LinearInteger, FOLDER)                             \
  INGOT_EMBED_MODULE(LEVEL, Rope, FOLDER)

#define INGOT_LEVEL_MODULE(LEVEL, SOURCE)                                      \
  ::ingot::codegen::BitcodeModule {                                            \
    #SOURCE,                                                                   \
        std::span<const std::uint8_t>(ingot_bitcode_##LEVEL##_##SOURCE,        \
                                      ingot_bitcode_##LEVEL##_##SOURCE##_end)  \
  }
#define INGOT_LEVEL_MODULES(LEVEL)                                             \
  {INGOT_LEVEL_MODULE(LEVEL, Attention),                                       \
   INGOT_LEVEL_MODULE(LEVEL, Elementwise),                                     \
   INGOT_LEVEL_MODULE(LEVEL, Experts),                                         \
   INGOT_LEVEL_MODULE(LEVEL, LinearFloat),                                     \
   INGOT_LEVEL_MODULE(LEVEL, LinearInteger),                                   \
   INGOT_LEVEL_MODULE(LEVEL, Rope)}
