// Where two runs on the same tokens part: the first operator whose result is
// further from the other's than what it was given explains.
//
// Local (one side is an lm module): the module runs operator by operator on what
// the other side's operators were given, so that each error is the operator's
// own. What an encoding costs is not an error: the module's weights and rows are
// rounded as the other side keeps them before they are compared.
//
// Global (neither is a module): tensors are compared in order, and one diverges
// that is further off than `growth` times what it was made from, beyond the
// tolerance and what differing encodings are known to cost.
#pragma once

#include "compiler/debug/RecordModule.h"
#include "compiler/debug/Recording.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace ingot::debug {

struct CompareOptions {
  double tolerance = 1e-4; // relative, of an operator's own error
  double growth = 4;       // global: of the error of what it was made from
};

// Of a tensor that both sides have.
struct Difference {
  std::string name;                   // "layer.3.q"
  std::string op;                     // "linear"
  std::vector<std::string> operators; // of the imported model, behind which the
                                      // sides still agreed
  std::int32_t layer = -1;
  // Root of the mean square of the difference, relative to the size of what the
  // operator adds: of all rows, of the worst row.
  double error = 0;
  double worst = 0;
  double allowed = 0;   // of the worst row
  double explained = 0; // global: the largest error of what it was made from
  bool diverges = false;
  std::int64_t firstPosition = -1; // beyond what is allowed
  std::int64_t numPositions = 0;   // so many are
  std::int64_t worstPosition = -1;
  std::int64_t worstColumn = -1;
  std::string launch, kernel, settings; // of the side that was observed
  std::string referenceSettings;        // of the other
  std::string note;                     // how encodings were taken into account
};

struct Comparison {
  std::string observed, reference; // which side is which, for people
  bool isLocal = true;
  std::size_t numPositions = 0;
  std::vector<Difference> differences; // in the order of the run
  std::vector<std::string> onlyObserved, onlyReference;
  std::vector<ChangedSlot> changedSlots;

  const Difference *first() const; // that diverges; null: none does
};

// `recording` against the module of `executor` on the same tokens. The names
// and origins of the two need not have gone through the same passes.
Result<Comparison> compareWithModule(const Recording &recording,
                                     const LmExecutor &executor,
                                     std::span<const std::int32_t> tokens,
                                     const CompareOptions &options = {});
// Two recordings of the same tokens.
Result<Comparison> compareRecordings(const Recording &observed,
                                     const Recording &reference,
                                     const CompareOptions &options = {});

// For people and for programs; each ends with a line break.
std::string comparisonText(const Comparison &comparison);
std::string comparisonJson(const Comparison &comparison);

//===----------------------------------------------------------------------===//
// Measuring, for the two ways of comparing
//===----------------------------------------------------------------------===//

struct Measured {
  double error = 0, worst = 0, allowedOfWorst = 0;
  std::int64_t firstBeyond = -1, numBeyond = 0;
  std::int64_t worstRow = -1, worstColumn = -1;
  bool isWithin() const { return numBeyond == 0; }
};
// Each row of `actual` may be `allowed` times the size of `expected - base` from
// `expected`, and, for the rounding of the sum, a millionth of the size of
// `expected`. `base` may be null. `rowsAllowed` replaces `allowed` by row where
// it is not empty. Numbers that are not finite are beyond everything unless
// both sides have the same.
Measured measure(const LmRows &actual, const LmRows &expected,
                 const LmRows *base, double allowed,
                 const std::vector<double> &rowsAllowed = {});
// What rounding to a storage may turn, beside the rounding itself: a number that
// differs in its last bit may fall on another code.
double slackOf(const RecordedTensor &tensor);
void fill(Difference &difference, const Measured &measured);

} // namespace ingot::debug
