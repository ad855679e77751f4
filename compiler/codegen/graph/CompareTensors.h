// Whether a tensor is what it was expected to be.
#pragma once

#include "compiler/frontend/onnx/OnnxTensor.h"

#include <string>

namespace ingot::graph {

struct Tolerance {
  double relative = 1e-3, absolute = 1e-7; // the ONNX back-end suite's
};

// Empty where `found` has the type and dims of `expected` and every element is
// equal (integers, booleans) or |found - expected| <= absolute + relative *
// |expected| (floats; NaN equals NaN, an infinity itself). Elements of 16 bits
// may also differ by one unit in their last place. Else what is different.
std::string compareTensors(const OnnxTensor &found, const OnnxTensor &expected,
                           const Tolerance &tolerance = {});

} // namespace ingot::graph
