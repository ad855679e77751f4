// Which file an external tensor's `location` may name.
#pragma once

#include "runtime/support/Status.h"

#include <string>

namespace ingot {

// The path of `location` below the folder of a model: relative, without "..",
// and a regular file that lies within the folder once links are resolved. The
// cache of the Hugging Face hub is the one exception: there a model's files are
// links from .../snapshots/<revision>/... to .../blobs/<hash>, so a file of such
// a folder may lie in the `blobs` beside its own `snapshots`.
Result<std::string> externalFile(const std::string &folder,
                                 const std::string &location,
                                 const std::string &what);

} // namespace ingot
