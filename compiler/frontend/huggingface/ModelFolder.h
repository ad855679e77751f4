// A folder of a model as a set of plain file names. Nothing is read from
// outside it, with one exception: the Hugging Face cache, whose snapshot
// folders are links into the blobs folder of the same model.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ingot {

class ModelFolder {
public:
  static Result<ModelFolder> open(const std::string &path);

  const std::string &path() const { return path_; }
  bool has(const std::string &name) const;
  // Names of the regular files (and links), sorted.
  Result<std::vector<std::string>> list() const;
  // The path to open for a file of the folder. Refuses what is not a plain
  // file name, and a link that leaves the folder.
  Result<std::string> resolve(const std::string &name) const;
  // The whole file as text; refuses one longer than `maxBytes`.
  Result<std::string> readText(const std::string &name,
                               std::uint64_t maxBytes) const;

  // A file of a folder within this one, by the same rules.
  bool has(const std::string &folder, const std::string &name) const;
  Result<std::string> readText(const std::string &folder,
                               const std::string &name,
                               std::uint64_t maxBytes) const;

private:
  Result<std::string> readFile(const std::string &path,
                               std::uint64_t maxBytes) const;
  std::string path_;
  std::string canonical_;
};

} // namespace ingot
