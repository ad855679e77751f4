// `debug kernels`: the CUDA kernels of an artifact as files: the text that NVRTC was
// given, the PTX, and a cubin for each chip.
#pragma once

#include "runtime/support/Status.h"

#include <string>
#include <vector>

namespace ingot::debug {

// Writes NAME.cu, NAME.LEVEL.ptx and NAME.LEVEL.cubin of every kernel (of `kernels`
// alone, where it is not empty) into `folder`, which is made. A kernel that was compiled
// of another text than this compiler has is an error that has both hashes, before
// anything is written. The names of the files, in order of kernels.
Result<std::vector<std::string>>
dumpKernels(const std::string &artifactPath, const std::string &folder,
            const std::vector<std::string> &kernels);

} // namespace ingot::debug
