#include "compiler/frontend/huggingface/ModelFolder.h"

#include "compiler/frontend/StrictJson.h"
#include "runtime/support/MappedFile.h"

#include <algorithm>
#include <filesystem>

namespace fs = std::filesystem;

namespace ingot {

Result<ModelFolder> ModelFolder::open(const std::string &path) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    return Status::notFound(path + ": expected a folder");
  ModelFolder folder;
  folder.path_ = path;
  folder.canonical_ = fs::canonical(path, error).string();
  if (error)
    return Status::io(path + ": " + error.message());
  return folder;
}

bool ModelFolder::has(const std::string &name) const {
  std::error_code error;
  return fs::exists(fs::path(path_) / name, error);
}

Result<std::vector<std::string>> ModelFolder::list() const {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator it(path_, error), end;
  for (; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (!it->is_directory(ignored))
      names.push_back(it->path().filename().string());
  }
  if (error)
    return Status::io(path_ + ": cannot list: " + error.message());
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

bool isPlainName(const std::string &name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find('/') == std::string::npos &&
         name.find('\\') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

} // namespace

Result<std::string> ModelFolder::resolve(const std::string &name) const {
  if (!isPlainName(name))
    return Status::invalid(path_ + ": " + quoteName(name) +
                           " is not a plain file name");
  fs::path file = fs::path(path_) / name;
  std::error_code error;
  fs::path target = fs::canonical(file, error);
  if (error)
    return Status::notFound(path_ + ": file " + quoteName(name) + ": " +
                            error.message());
  fs::path folder(canonical_);
  if (target.parent_path() == folder)
    return file.string();
  // .../models--x/snapshots/<revision>/<name> -> .../models--x/blobs/<hash>
  if (folder.parent_path().filename() == "snapshots" &&
      target.parent_path() == folder.parent_path().parent_path() / "blobs")
    return file.string();
  return Status::invalid(path_ + ": file " + quoteName(name) +
                         " is a link that leaves the folder, to " +
                         target.string());
}

Result<std::string> ModelFolder::readText(const std::string &name,
                                          std::uint64_t maxBytes) const {
  INGOT_ASSIGN_OR_RETURN(auto path, resolve(name));
  return readFile(path, maxBytes);
}

Result<std::string> ModelFolder::readFile(const std::string &path,
                                          std::uint64_t maxBytes) const {
  INGOT_ASSIGN_OR_RETURN(auto file, MappedFile::open(path));
  if (file.bytes().size() > maxBytes)
    return Status::invalid(path + ": " + std::to_string(file.bytes().size()) +
                           " bytes, expected at most " +
                           std::to_string(maxBytes));
  return std::string(reinterpret_cast<const char *>(file.bytes().data()),
                     file.bytes().size());
}

bool ModelFolder::has(const std::string &folder,
                      const std::string &name) const {
  std::error_code error;
  return isPlainName(folder) &&
         fs::exists(fs::path(path_) / folder / name, error);
}

Result<std::string> ModelFolder::readText(const std::string &folder,
                                          const std::string &name,
                                          std::uint64_t maxBytes) const {
  if (!isPlainName(folder) || !isPlainName(name))
    return Status::invalid(path_ + ": " + quoteName(folder + "/" + name) +
                           " is not a plain file in a plain folder");
  fs::path file = fs::path(path_) / folder / name;
  std::error_code error;
  fs::path target = fs::canonical(file, error);
  if (error)
    return Status::notFound(path_ + ": file " + quoteName(folder + "/" + name) +
                            ": " + error.message());
  fs::path root(canonical_);
  // As in resolve(): within the folder, or a blob of the same model.
  bool isInside = target.parent_path() == root / folder;
  bool isBlob =
      root.parent_path().filename() == "snapshots" &&
      target.parent_path() == root.parent_path().parent_path() / "blobs";
  if (!isInside && !isBlob)
    return Status::invalid(path_ + ": file " + quoteName(folder + "/" + name) +
                           " is a link that leaves the folder, to " +
                           target.string());
  return readFile(file.string(), maxBytes);
}

} // namespace ingot
