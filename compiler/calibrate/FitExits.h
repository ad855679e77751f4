// Fits the maps of early exits on a text, through ordinary plans: the model is
// compiled as it will be deployed, cut where the exits will be, and run window by
// window; the states at the cuts and the final one go into sums (RidgeMap.h).
// Then it is compiled again with the maps, and what its heads say on text that
// was held out gives agreement and confidence. Memory: the engine's, and for
// each exit four matrices of the hidden size in float64.
#pragma once

#include "compiler/driver/CompileOptions.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ingot {

struct FitExitsRequest {
  std::string modelPath;
  std::string text;       // to fit on; every eighth window is held out
  std::string outputPath; // of the maps
  CompileOptions options; // with `exits`
  std::int32_t windowTokens = 256;
  std::int64_t maxTokens = 0; // of the text; 0: all
  unsigned threads = 2;
  std::function<void(const std::string &)> diagnostic;
  // A step begins, or goes on; 0 windows where they are not counted.
  std::function<void(const std::string &step, std::int64_t done,
                     std::int64_t total)>
      progress;
};

struct FittedExit {
  std::int64_t layers = 0;
  double strength = 0; // of the penalty, chosen on the held-out windows
  // Of the difference between the state there and the final one, the part that
  // the map explains on the held-out windows.
  double explained = 0;
  // How often the first choice is the model's, on the held-out windows.
  double agreementWithout = 0, agreementWith = 0;
  double workShare =
      0; // weight bytes of a row that leaves there, of a whole one
};

// What a threshold would give on the held-out windows, each row after exact
// ones.
struct ExitTradeoff {
  double threshold = 0;
  double left = 0;         // rows that leave somewhere, of all
  double disagreement = 0; // rows whose first choice is not the model's
  // Weight bytes read for a row, with all heads that it tried and its fill, of
  // those without exits.
  double work = 0;
};

struct FittedExits {
  std::int64_t fittedTokens = 0, heldOutTokens = 0;
  std::vector<FittedExit> exits;
  std::vector<ExitTradeoff> tradeoffs;
};

// Writes the maps; see ExitMaps.h for the form of the file.
Result<FittedExits> fitExits(const FitExitsRequest &request);

} // namespace ingot
