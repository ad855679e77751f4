// Finds the codes of matrices by the rows that they read on a text (GPTQ, AWQ):
// the model is compiled as an ordinary plan of float weights, run window by
// window, and what its linear operators read is summed up (SecondMoments.h),
// as many layers at a time as the budget of memory holds. The result is a file
// of codes that compile takes up (compiler/driver/CalibratedWeights.h), kept in
// a folder under a name that says what went into it.
#pragma once

#include "compiler/driver/CompileModel.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ingot {

struct CalibrationOptions {
  std::string text;                // whose inputs the codes are to suit
  std::int32_t windowTokens = 512; // run together, at most the model's context
  std::int64_t maxTokens = 32768;  // of the text
  std::uint64_t memoryBytes = std::uint64_t(2) << 30; // for the sums
  std::string cacheFolder; // of finished files; it is created
};

// How far a matrix's outputs are from those of its stored weights, on the text:
// mean over tokens of |difference|^2, by the mean of |output|^2.
struct MatrixError {
  std::string weight;
  std::string method;
  double rounded = 0; // by round-to-nearest
  double chosen = 0;  // by the method
};

struct CalibratedModel {
  std::string path; // of the file of codes
  bool wasCached = false;
  std::int64_t tokens = 0;         // 0 where it was cached
  std::vector<MatrixError> errors; // in the order of the program, as `tokens`
};

// For the model, options, descriptors and source folder of `request`; reports
// to its `diagnostic` and `progress` (done and total in windows and matrices).
// Refuses options that ask for no calibrated method, a text that is too short,
// and a pipeline of the compress phase, whose passes are not known here.
Result<CalibratedModel> calibrateWeights(const CompileRequest &request,
                                         const CalibrationOptions &options);

// Where files of codes are kept: $INGOT_CACHE, $XDG_CACHE_HOME/ingot or
// ~/.cache/ingot; empty where no variable says.
std::string defaultCacheFolder();

} // namespace ingot
