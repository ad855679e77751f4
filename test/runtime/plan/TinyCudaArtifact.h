// The tiny model for CUDA devices: halves of the weights in the same bytes, half rows
// for whatever a linear reads, and two levels of code whose images are well formed and
// hold no kernel: sm_90 and compute_80.
#pragma once

#include "test/runtime/plan/TinyArtifact.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ingot::test {

TinyArtifact tinyCudaArtifact();

// An ELF file of CUDA's machine with nothing but the name of its text's hash (16
// hexadecimal digits), and a text of PTX with its closing zero.
std::vector<std::uint8_t> tinyCubin(const std::string &sourceHash);
std::vector<std::uint8_t> tinyPtx(const std::string &sourceHash);

} // namespace ingot::test
