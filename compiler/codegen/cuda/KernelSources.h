// The files of compiler/kernels/cuda (and the headers that they share with others),
// as the compiler was built with them, and one text out of many: NVRTC and the
// emulator get a kernel without a single #include.
#pragma once

#include "runtime/support/Status.h"

#include <string>
#include <string_view>
#include <vector>

namespace ingot::codegen {

// Paths, from the root of the tree, of all embedded files.
std::vector<std::string_view> cudaSourcePaths();
// The text of one; an error where there is none of the path.
Result<std::string_view> cudaSourceText(std::string_view path);

// `path` with every #include "..." replaced by that file, the first time that it is
// named; #include <stdint.h> goes, its types are Device.h's. #line marks keep
// messages of compilers at the lines of the files.
Result<std::string> flattenCudaSource(std::string_view path);

} // namespace ingot::codegen
