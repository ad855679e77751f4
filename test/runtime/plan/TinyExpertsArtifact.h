// The tiny model with a mixture of experts between its rows and its logits.
#pragma once

#include "test/runtime/plan/TinyArtifact.h"

namespace ingot::test {

TinyArtifact withExperts();     // for the cpu
TinyArtifact withCudaExperts(); // for CUDA devices: rows are half rows

} // namespace ingot::test
