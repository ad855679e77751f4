#include "compiler/package/OutputPath.h"

#include "compiler/package/OutputFile.h"
#include "runtime/plan/Container.h"

#include <cstring>
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

} // namespace ingot::package
