// What leaving early saves and what it costs, by threshold, on a text that the
// model is led along (its tokens are the text's): an artifact with exits is run row
// by row as its engine runs a request with `exit_threshold`, and as one without.
// Work is that of the launches that run for a row, so heads that were tried, maps
// and fills count.
#pragma once

#include "runtime/engine/Engine.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ingot {

// Work of launches for one row, as a function of the positions that its attention
// sees, the row's own among them.
struct RowWork {
  // Read and written by the shapes: weights, state, activations.
  double bytes = 0, bytesPerPosition = 0;
  // Two for each multiplication of matrices and attention.
  double operations = 0, operationsPerPosition = 0;

  RowWork &operator+=(const RowWork &other);
  double bytesAt(std::int64_t positions) const {
    return bytes + bytesPerPosition * double(positions);
  }
  double operationsAt(std::int64_t positions) const {
    return operations + operationsPerPosition * double(positions);
  }
};

// Of the parts that a row runs.
struct ExitWork {
  RowWork whole; // all layers, with no exit
  // By exit: the layers from the exit before up to it, its head with its map, and
  // its fill.
  std::vector<RowWork> layers, heads, fills;
  RowWork rest; // what follows the last exit
};

struct ThresholdPoint {
  double threshold = 0;
  std::vector<std::int64_t> left; // rows by exit; the last: all layers
  double disagreement = 0;        // rows whose first choice is not the model's
  // Of what all rows take without exits.
  double bytes = 0, operations = 0;
  // Tokens a second by those without exits, window by window.
  double speed = 0, slowest = 0, fastest = 0; // median and ends
};

struct ExitTradeoffs {
  std::vector<std::int64_t> layers; // that run before each exit
  std::int64_t windows = 0, rows = 0;
  double bytes = 0, operations = 0; // of a row without exits, the mean
  ExitWork work;
  std::int64_t meanPositions = 0; // that a row sees
  std::vector<ThresholdPoint> points;
};

struct ExitTradeoffRequest {
  std::string artifact;
  std::string text;
  std::vector<double> thresholds;  // from 0 to 1
  std::int32_t windowTokens = 256; // each from an empty cache
  std::int32_t promptTokens = 32;  // of them, run through all layers
  std::int64_t maxTokens = 4096;   // of the text
  unsigned threads = 2;
  std::function<void(std::int64_t done, std::int64_t total)>
      progress; // windows
};

// Refuses an artifact without exits, thresholds outside 0 to 1, and a text that is
// shorter than a window.
Result<ExitTradeoffs> measureExits(const ExitTradeoffRequest &request);

} // namespace ingot
