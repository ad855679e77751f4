#include "compiler/frontend/ImportModel.h"

#include "compiler/frontend/gguf/GgufFile.h"
#include "compiler/frontend/gguf/GgufImporter.h"
#include "compiler/frontend/huggingface/HuggingFaceImporter.h"
#include "runtime/support/MappedFile.h"

#include <cstring>
#include <filesystem>

namespace ingot {

Result<ModelSpec> importModel(const std::string &path,
                              const ImportOptions &options) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return importHuggingFace(path, options);
  INGOT_ASSIGN_OR_RETURN(auto file, MappedFile::open(path));
  std::span<const std::uint8_t> bytes = file.bytes();
  if (bytes.size() >= 4 && std::memcmp(bytes.data(), GgufFile::magic, 4) == 0)
    return importGguf(path, options);
  return Status::unsupported(
      path + ": expected a Hugging Face folder or a GGUF file (which begins "
             "with \"GGUF\")");
}

} // namespace ingot
