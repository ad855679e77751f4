#include "compiler/package/OutputPath.h"

#include "compiler/package/OutputFile.h"
#include "runtime/plan/Container.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include <sys/stat.h>

namespace ingot::package {

Status checkArtifactPath(const std::string &path) {
  struct stat existing;
  if (::stat(path.c_str(), &existing) == 0 && S_ISREG(existing.st_mode) &&
      existing.st_size != 0) {
    char magic[sizeof(container::kMagic)] = {};
    std::ifstream file(path, std::ios::binary);
    if (!file.read(magic, sizeof(magic)) ||
        std::memcmp(magic, container::kMagic, sizeof(magic)) != 0)
      return Status::invalid(path + ": exists and is no artifact; expected a "
                                    "new path or an artifact to replace");
  }
  return OutputFile::create(path, 0).status();
}

Status checkTensorsPath(const std::string &path, const std::string &modelPath) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::exists(path, error))
    return OutputFile::create(path, 0).status();
  if (fs::is_directory(path, error))
    return Status::io(path + ": exists and is a folder");
  if (!fs::is_regular_file(path, error))
    return Status::ok();
  fs::path folder = fs::canonical(path, error).parent_path();
  if (fs::equivalent(path, modelPath, error) ||
      (fs::is_directory(modelPath, error) &&
       fs::equivalent(folder, modelPath, error)))
    return Status::invalid(path + ": belongs to the model; expected another "
                                  "path for what is written");
  const std::uintmax_t size = fs::file_size(path, error);
  if (size == 0)
    return Status::ok();
  unsigned char head[9] = {};
  std::ifstream file(path, std::ios::binary);
  bool isWhole = bool(file.read(reinterpret_cast<char *>(head), sizeof(head)));
  uint64_t header = 0;
  for (int i = 7; i >= 0; --i)
    header = header << 8 | head[i];
  if (!isWhole || head[8] != '{' || header > size - 8)
    return Status::invalid(path + ": exists and holds no tensors; expected a "
                                  "new path or a safetensors file to replace");
  return Status::ok();
}

} // namespace ingot::package
