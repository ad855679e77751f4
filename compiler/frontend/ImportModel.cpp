#include "compiler/frontend/ImportModel.h"

#include "compiler/frontend/LoraAdapter.h"
#include "compiler/frontend/gguf/GgufFile.h"
#include "compiler/frontend/gguf/GgufImporter.h"
#include "compiler/frontend/huggingface/HuggingFaceImporter.h"
#include "runtime/support/MappedFile.h"

#include <cstring>
#include <filesystem>

namespace ingot {

namespace {

Result<ModelSpec> importBase(const std::string &path, bool isFolder,
                             const ImportOptions &options) {
  if (isFolder)
    return importHuggingFace(path, options);
  INGOT_ASSIGN_OR_RETURN(auto file, MappedFile::open(path));
  std::span<const std::uint8_t> bytes = file.bytes();
  if (bytes.size() >= 4 && std::memcmp(bytes.data(), GgufFile::magic, 4) == 0)
    return importGguf(path, options);
  return Status::unsupported(
      path + ": expected a Hugging Face folder or a GGUF file (which begins "
             "with \"GGUF\")");
}

} // namespace

Result<ModelSpec> importModel(const std::string &path,
                              const ImportOptions &options) {
  std::error_code error;
  const bool isFolder = std::filesystem::is_directory(path, error);
  INGOT_ASSIGN_OR_RETURN(ModelSpec spec, importBase(path, isFolder, options));
  if (options.loras.empty())
    return spec;
  INGOT_ASSIGN_OR_RETURN(auto descriptors,
                         loadDescriptors(options.descriptorPaths));
  for (const LoraRequest &lora : options.loras)
    INGOT_RETURN_IF_ERROR(addLoraAdapter(lora, descriptors, isFolder, spec));
  return spec;
}

} // namespace ingot
