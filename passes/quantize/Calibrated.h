// What was calibrated for a weight stands beside it in the module, as
// @NAME.calibrated: codes that a method chose by the inputs of the operator, or
// numbers that changed with them. So a module that is saved holds them too.
// The passes that merge weights merge these; quantize-weights takes them.
#pragma once

#include "dialects/lm/LmOps.h"

namespace ingot {

inline constexpr llvm::StringLiteral kCalibratedSuffix = ".calibrated";
// Set by quantize-weights with mark-only: the method and the encoding of a
// matrix that is to be calibrated.
inline constexpr llvm::StringLiteral kCalibrateAttr = "calibrate";
inline constexpr llvm::StringLiteral kCalibrateEncodingAttr =
    "calibrate_encoding";

inline std::string calibratedName(llvm::StringRef name) {
  return (name + kCalibratedSuffix).str();
}
inline bool isCalibratedName(llvm::StringRef name) {
  return name.ends_with(kCalibratedSuffix);
}
inline llvm::StringRef calibratedBase(llvm::StringRef name) {
  name.consume_back(kCalibratedSuffix);
  return name;
}
// Null where there is none.
inline lm::WeightOp calibratedOf(lm::WeightOp weight) {
  return weight->getParentOfType<mlir::ModuleOp>().lookupSymbol<lm::WeightOp>(
      calibratedName(weight.getSymName()));
}
// `weight` becomes what `calibrated` holds, which goes.
inline void replaceByCalibrated(lm::WeightOp weight, lm::WeightOp calibrated) {
  weight.setEncodingAttr(calibrated.getEncodingAttr());
  weight.setPartsAttr(calibrated.getPartsAttr());
  weight.removeValueAttr();
  if (calibrated.getMethodAttr())
    weight.setMethodAttr(calibrated.getMethodAttr());
  else
    weight.removeMethodAttr();
  calibrated->erase();
}

} // namespace ingot
