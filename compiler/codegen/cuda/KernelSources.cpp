// The assembler includes the files; the build passes the root of the tree and
// rebuilds this file when one of them changes.
#include "compiler/codegen/cuda/KernelSources.h"

#include <algorithm>
#include <set>

#define INGOT_EMBED_TEXT(NAME, PATH)                                           \
  asm(".section .rodata.ingot_cuda,\"a\",@progbits\n"                          \
      ".global ingot_cuda_text_" #NAME "\n"                                    \
      ".hidden ingot_cuda_text_" #NAME "\n"                                    \
      "ingot_cuda_text_" #NAME ":\n"                                           \
      ".incbin \"" INGOT_SOURCE_ROOT "/" PATH "\"\n"                           \
      ".global ingot_cuda_text_" #NAME "_end\n"                                \
      ".hidden ingot_cuda_text_" #NAME "_end\n"                                \
      "ingot_cuda_text_" #NAME "_end:\n"                                       \
      ".byte 0\n"                                                              \
      ".previous\n");                                                          \
  extern "C" const char ingot_cuda_text_##NAME[];                              \
  extern "C" const char ingot_cuda_text_##NAME##_end[];

#define INGOT_CUDA_FILES(FILE)                                                 \
  FILE(Exp, "compiler/kernels/Exp.h")                                          \
  FILE(Power, "compiler/kernels/Power.h")                                      \
  FILE(SinCos, "compiler/kernels/SinCos.h")                                    \
  FILE(KernelAbi, "runtime/plan/KernelAbi.h")                                  \
  FILE(CudaAbi, "runtime/plan/CudaAbi.h")                                      \
  FILE(CudaExpertsAbi, "runtime/plan/CudaExpertsAbi.h")                        \
  FILE(CudaLibraryAbi, "runtime/plan/CudaLibraryAbi.h")                        \
  FILE(Activate, "compiler/kernels/cuda/Activate.cu")                          \
  FILE(Activation, "compiler/kernels/cuda/Activation.h")                       \
  FILE(Add, "compiler/kernels/cuda/Add.cu")                                    \
  FILE(Attention, "compiler/kernels/cuda/Attention.cu")                        \
  FILE(AttentionMerge, "compiler/kernels/cuda/AttentionMerge.cu")              \
  FILE(AttentionSplit, "compiler/kernels/cuda/AttentionSplit.cu")              \
  FILE(Cap, "compiler/kernels/cuda/Cap.cu")                                    \
  FILE(Combine, "compiler/kernels/cuda/Combine.cu")                            \
  FILE(Device, "compiler/kernels/cuda/Device.h")                               \
  FILE(Dispatch, "compiler/kernels/cuda/Dispatch.cu")                          \
  FILE(Embed, "compiler/kernels/cuda/Embed.cu")                                \
  FILE(ExpertLinearSplit, "compiler/kernels/cuda/ExpertLinearSplit.cu")        \
  FILE(ExpertLinearWide, "compiler/kernels/cuda/ExpertLinearWide.cu")          \
  FILE(ExpertRows, "compiler/kernels/cuda/ExpertRows.h")                       \
  FILE(Gated, "compiler/kernels/cuda/Gated.cu")                                \
  FILE(GatherRows, "compiler/kernels/cuda/GatherRows.cu")                      \
  FILE(KvTile, "compiler/kernels/cuda/KvTile.h")                               \
  FILE(LayerNorm, "compiler/kernels/cuda/LayerNorm.cu")                        \
  FILE(LibraryFinish, "compiler/kernels/cuda/LibraryFinish.cu")                \
  FILE(LibraryLinear, "compiler/kernels/cuda/LibraryLinear.cu")                \
  FILE(Linear, "compiler/kernels/cuda/Linear.h")                               \
  FILE(LinearSplit, "compiler/kernels/cuda/LinearSplit.cu")                    \
  FILE(LinearWide, "compiler/kernels/cuda/LinearWide.cu")                      \
  FILE(MergeSegment, "compiler/kernels/cuda/MergeSegment.h")                   \
  FILE(OrderSlots, "compiler/kernels/cuda/OrderSlots.cu")                      \
  FILE(Quantize, "compiler/kernels/cuda/Quantize.cu")                          \
  FILE(RmsNorm, "compiler/kernels/cuda/RmsNorm.cu")                            \
  FILE(RopeCacheWrite, "compiler/kernels/cuda/RopeCacheWrite.cu")              \
  FILE(RopeTable, "compiler/kernels/cuda/RopeTable.cu")                        \
  FILE(Route, "compiler/kernels/cuda/Route.cu")                                \
  FILE(RowBlock, "compiler/kernels/cuda/RowBlock.h")                           \
  FILE(Sample, "compiler/kernels/cuda/Sample.cu")                              \
  FILE(Weights, "compiler/kernels/cuda/Weights.h")

INGOT_CUDA_FILES(INGOT_EMBED_TEXT)

namespace ingot::codegen {
namespace {

struct SourceFile {
  std::string_view path, text;
};

const std::vector<SourceFile> &files() {
#define INGOT_LIST_TEXT(NAME, PATH)                                            \
  {PATH, std::string_view(ingot_cuda_text_##NAME,                              \
                          std::size_t(ingot_cuda_text_##NAME##_end -           \
                                      ingot_cuda_text_##NAME))},
  static const std::vector<SourceFile> list = {
      INGOT_CUDA_FILES(INGOT_LIST_TEXT)};
  return list;
}

Status flattenInto(std::string_view path, std::set<std::string_view> &seen,
                   std::string &out) {
  INGOT_ASSIGN_OR_RETURN(std::string_view text, cudaSourceText(path));
  const auto mark = [&](unsigned line) {
    out += "#line " + std::to_string(line) + " \"" + std::string(path) + "\"\n";
  };
  mark(1);
  unsigned number = 1;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    constexpr std::string_view kInclude = "#include \"";
    if (line.starts_with(kInclude)) {
      const std::string_view name = line.substr(
          kInclude.size(), line.find('"', kInclude.size()) - kInclude.size());
      const auto &all = files();
      const auto found =
          std::find_if(all.begin(), all.end(), [&](const SourceFile &file) {
            return file.path == name;
          });
      if (found == all.end())
        return Status::internal(std::string(path) + ": includes \"" +
                                std::string(name) +
                                "\", which is not embedded");
      if (seen.insert(found->path).second)
        INGOT_RETURN_IF_ERROR(flattenInto(found->path, seen, out));
      mark(number + 1);
    } else if (line == "#pragma once" || line.starts_with("#include <")) {
      out += "\n";
    } else {
      out += std::string(line) + "\n";
    }
  }
  return Status::ok();
}

} // namespace

std::vector<std::string_view> cudaSourcePaths() {
  std::vector<std::string_view> paths;
  for (const SourceFile &file : files())
    paths.push_back(file.path);
  return paths;
}

Result<std::string_view> cudaSourceText(std::string_view path) {
  for (const SourceFile &file : files())
    if (file.path == path)
      return file.text;
  return Status::notFound("no embedded CUDA source \"" + std::string(path) +
                          "\"");
}

Result<std::string> flattenCudaSource(std::string_view path) {
  std::string out;
  std::set<std::string_view> seen = {path};
  INGOT_RETURN_IF_ERROR(flattenInto(path, seen, out));
  return out;
}

} // namespace ingot::codegen
