// May an artifact, or a file of tensors, be written to this path? Asked before any work is done, and
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

// The same for tensors that were made by running the model `modelPath`: what
// exists may be an empty file or a safetensors file, and may not be the model
// nor lie in its folder. A path that is no regular file (a pipe) is let through.
Status checkTensorsPath(const std::string &path, const std::string &modelPath);

} // namespace ingot::package
