// Checkpoints that other tools quantised: GPTQ, AWQ, compressed-tensors and FP8.
// The tensors that stand for one weight (codes, scales, zero points, groups of
// columns) become one tensor of the weight's own name and shape, so that what
// comes after knows nothing of who made them.
#pragma once

#include "compiler/frontend/SpecBuilder.h"
#include "compiler/frontend/SpecFields.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace ingot {

// `config` is the object "quantization_config" of the model's config. What is
// unknown or contradicts itself goes to `problems`, what is left out by a rule
// to `notes`. The tensors' bytes must be mapped. False where the names of the
// tensors would mean nothing to a model without quantisation.
bool resolveQuantized(const nlohmann::json &config,
                      std::vector<FileTensor> &tensors,
                      ImportProblems &problems,
                      std::vector<std::string> &notes);

} // namespace ingot
