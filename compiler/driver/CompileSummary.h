// What came of a compilation, for people and as JSON: sizes before and after,
// the memory contract, and the time of each step.
#pragma once

#include "compiler/driver/CompileModel.h"

#include <string>

namespace ingot {

// A line for each conversion, with its error where that was measured.
std::string conversionsText(const std::vector<package::Conversion> &conversions,
                            bool measured);

// What a cache keeps of a token, beside its size: the elements of keys and
// values, and what rounding them may cost.
std::string kvElementsOf(mlir::ModuleOp module);
std::string kvText(const std::string &elements);

// "vectors of 384 numbers, mean pooling, of length 1"; of a model that generates
// empty.
std::string embeddingText(mlir::ModuleOp module);

// Ends with a line break.
std::string summaryTable(CompiledModel &compiled,
                         const std::string &outputPath);
std::string summaryJson(CompiledModel &compiled, const std::string &outputPath);

} // namespace ingot
