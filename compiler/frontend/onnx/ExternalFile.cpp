#include "compiler/frontend/onnx/ExternalFile.h"

#include "compiler/frontend/StrictJson.h"

#include <filesystem>

namespace ingot {
namespace {

namespace fs = std::filesystem;

bool isWithin(const fs::path &path, const fs::path &folder) {
  auto at = path.begin();
  for (const fs::path &part : folder) {
    if (part.empty())
      continue; // of a trailing slash
    if (at == path.end() || *at != part)
      return false;
    ++at;
  }
  return at != path.end();
}

// The real folder `blobs` beside the `snapshots` that `folder` lies in; empty
// where it is no hub cache.
fs::path hubBlobs(const fs::path &folder) {
  std::error_code error;
  fs::path absolute = fs::absolute(folder, error).lexically_normal();
  for (fs::path at = absolute; at.has_relative_path(); at = at.parent_path())
    if (at.filename() == "snapshots") {
      fs::path blobs = fs::canonical(at.parent_path() / "blobs", error);
      return error ? fs::path() : blobs;
    }
  return {};
}

} // namespace

Result<std::string> externalFile(const std::string &folder,
                                 const std::string &location,
                                 const std::string &what) {
  const std::string where = what + ": external data " + quoteName(location);
  if (folder.empty())
    return Status::invalid(where + ": this model has no folder to look in");
  if (location.empty() || location.find('\0') != std::string::npos)
    return Status::invalid(where + ": expected the name of a file");
  const fs::path relative(location);
  if (relative.is_absolute())
    return Status::invalid(
        where +
        ": expected a path relative to the model, found an absolute one");
  for (const fs::path &part : relative)
    if (part == "..")
      return Status::invalid(where + ": leaves the model's folder");
  const fs::path path = fs::path(folder) / relative;
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error)
    return Status::io(where + ": " + path.string() + ": " + error.message());
  const fs::path realFolder = fs::canonical(folder, error);
  if (error)
    return Status::io(where + ": " + folder + ": " + error.message());
  if (isWithin(real, realFolder))
    return path.string();
  if (fs::path blobs = hubBlobs(folder);
      !blobs.empty() && isWithin(real, blobs))
    return path.string();
  return Status::invalid(where + ": is a link to " + real.string() +
                         ", outside the model's folder");
}

} // namespace ingot
