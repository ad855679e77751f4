#include "compiler/frontend/ImportModel.h"

#include "compiler/frontend/LoraAdapter.h"
#include "compiler/frontend/gguf/GgufFile.h"
#include "compiler/frontend/gguf/GgufImporter.h"
#include "compiler/frontend/huggingface/HuggingFaceImporter.h"
#include "compiler/frontend/onnx/OnnxDecoder.h"
#include "runtime/support/MappedFile.h"

#include <cstring>
#include <filesystem>

namespace ingot {

namespace {

Result<ModelSpec> importBase(const std::string &path, bool isFolder,
                             const ImportOptions &options) {
  if (options.explainFusion && isFolder)
    return Status::invalid(path + ": nothing is fused at the import of a "
                                  "folder; --explain-fusion is for ONNX");
  if (isFolder)
    return importHuggingFace(path, options);
  INGOT_ASSIGN_OR_RETURN(auto file, MappedFile::open(path));
  std::span<const std::uint8_t> bytes = file.bytes();
  if (options.explainFusion && !looksLikeOnnx(bytes))
    return Status::invalid(path + ": is no ONNX model, and --explain-fusion is "
                                  "for those");
  if (bytes.size() >= 4 && std::memcmp(bytes.data(), GgufFile::magic, 4) == 0)
    return importGguf(path, options);
  if (looksLikeOnnx(bytes))
    return importOnnx(path, options);
  return Status::unsupported(
      path + ": expected a Hugging Face folder, a GGUF file (which begins with "
             "\"GGUF\") or an ONNX model");
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
