// May an artifact be written to this path? Asked before any work is done, and
// again by who writes, so that no other file is lost to a slip of the hand.
#pragma once

#include "runtime/support/Status.h"

#include <string>

namespace ingot::package {

// The path may be new, an empty file or an artifact, which a new one replaces.
// Any other file that exists there is an error (InvalidInput), what is no
// file, and a folder that is missing or takes no file, are others (IoError).
// Symbolic links are followed for the look; what is replaced is the link.
Status checkArtifactPath(const std::string &path);

} // namespace ingot::package
