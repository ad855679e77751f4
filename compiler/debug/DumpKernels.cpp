#include "compiler/debug/DumpKernels.h"

#include "compiler/codegen/cuda/CudaCatalog.h"
#include "compiler/package/OutputFile.h"
#include "runtime/plan/Artifact.h"
#include "runtime/plan/VerifyPlan.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <span>

namespace ingot::debug {
namespace {

struct File {
  std::string name;
  std::string bytes;
};

std::string textOfBytes(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

// The text of a kernel, if it is the artifact's.
Result<std::string> textOf(const fbs::Kernel &kernel) {
  // The catalogue's names have no characters that mean something in a path.
  INGOT_ASSIGN_OR_RETURN(codegen::CudaKernel known,
                         codegen::cudaKernel(kernel.name()->string_view()));
  INGOT_ASSIGN_OR_RETURN(std::string text, codegen::cudaKernelText(known));
  char own[17];
  std::snprintf(own, sizeof own, "%016" PRIx64, codegen::cudaTextHash(text));
  const std::string theirs =
      kernel.source_hash() ? kernel.source_hash()->str() : "none";
  if (theirs != own)
    return Status::unsupported("was compiled of the text " + theirs +
                               ", this compiler has " + own);
  return text;
}

} // namespace

Result<std::vector<std::string>>
dumpKernels(const std::string &artifactPath, const std::string &folder,
            const std::vector<std::string> &kernels) {
  INGOT_ASSIGN_OR_RETURN(Artifact artifact, Artifact::open(artifactPath, {}));
  const fbs::Target *target = artifact.target(kCudaTarget);
  if (!target)
    return Status::notFound(artifactPath + ": has no code for CUDA");
  auto code = artifact.segment(container::SegmentKind::Code);
  std::vector<File> files;
  std::vector<std::string> missing = kernels;
  for (const fbs::Kernel *kernel : *target->kernels()) {
    const std::string name = kernel->name()->str();
    if (!kernels.empty() &&
        std::find(kernels.begin(), kernels.end(), name) == kernels.end())
      continue;
    std::erase(missing, name);
    auto text = textOf(*kernel);
    if (!text)
      return text.status().withContext(artifactPath + ": kernel " + name);
    files.push_back({name + ".cu", *text});
    for (const fbs::KernelSymbol *symbol : *kernel->symbols()) {
      const fbs::Level &level = *target->levels()->Get(symbol->level());
      auto parsed = CudaLevel::parse(level.name()->string_view());
      const bool isText = parsed && parsed->isText;
      std::string bytes =
          textOfBytes(code.subspan(level.code_offset(), level.code_size())
                          .subspan(symbol->offset(), symbol->size()));
      if (isText) // without the zero that the driver wants
        bytes.resize(std::strlen(bytes.c_str()));
      files.push_back(
          {name + "." + level.name()->str() + (isText ? ".ptx" : ".cubin"),
           std::move(bytes)});
    }
  }
  if (!missing.empty())
    return Status::notFound(artifactPath + ": has no kernel " + missing[0]);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return Status::io(folder + ": " + error.message());
  std::vector<std::string> names;
  for (const File &file : files) {
    INGOT_RETURN_IF_ERROR(
        package::writeOutputFile(folder + "/" + file.name, file.bytes));
    names.push_back(file.name);
  }
  return names;
}

} // namespace ingot::debug
