// When each buffer of a target holds something that is still wanted. Launches
// are numbered in the order in which they run.
#pragma once

#include "dialects/plan/Plan.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace ingot::plan {

struct BufferLife {
  int64_t first = -1; // launch that writes it first, or the start of a segment
  int64_t last = -1;  // launch that uses it last, or the end of a segment
  llvm::SmallVector<int64_t, 2> writes;
  llvm::SmallVector<int64_t, 4> reads;
  bool isCut = false; // hidden state at a cut, or the logits
  bool isUsed() const { return first >= 0; }
  // Lives that share a launch meet: what it reads and writes must be apart.
  bool meets(const BufferLife &other) const {
    return isUsed() && other.isUsed() && first <= other.last &&
           other.first <= last;
  }
};

// In the order of the target's buffers. Fails with an error on a launch that
// reads what nothing has written.
mlir::FailureOr<llvm::MapVector<mlir::StringAttr, BufferLife>>
computeBufferLives(TargetOp target);

} // namespace ingot::plan
