// What calibration has made of weights: a safetensors file beside the model's
// own. For each weight NAME of the module it holds either codes,
//
//   NAME.codes   I32 [rows, words]   32 / bits codes a word from the lowest bit
//   NAME.scales  F16 [rows, groups]
//
// or numbers that changed with them (a norm whose columns were scaled),
//
//   NAME.values  F32 of the weight's shape
//
// and the metadata says what each is: NAME -> "int4-g32-gptq" or "f32", and
// "format" -> kCalibratedFormat. The module gets the file as a source and, for
// each, @NAME.calibrated (passes/quantize/Calibrated.h).
#pragma once

#include "runtime/support/Status.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace ingot {

inline constexpr const char *kCalibratedFormat = "ingot calibrated weights 1";
// The name of such a file begins so, in modules and artifacts too.
inline constexpr const char *kCalibratedFilePrefix = "calibrated-";

// Refuses a file that holds anything else, or a weight that the module lacks.
// With a prefix, takes only the weights whose names begin with it.
Status addCalibratedWeights(const std::string &path, mlir::ModuleOp module,
                            const std::string &prefix = {});

// A file of the same form, of float values that may have other shapes than the
// weights and be F16 or BF16 (metadata "f16", "bf16"): each becomes @NAME.pruned
// (passes/prune/LayerEdits.h). Its metadata names the pass that takes them
// ("pass"), which is not read here.
Status addPrunedWeights(const std::string &path, mlir::ModuleOp module);

// Does a module hold calibrated weights?
bool hasCalibratedWeights(mlir::ModuleOp module);

} // namespace ingot
