#include "passes/lower/BufferLives.h"

using namespace mlir;

namespace ingot::plan {

FailureOr<llvm::MapVector<StringAttr, BufferLife>>
computeBufferLives(TargetOp target) {
  llvm::MapVector<StringAttr, BufferLife> lives;
  for (auto buffer : target.getBody().getOps<BufferOp>())
    lives[buffer.getSymNameAttr()];
  auto extend = [&](FlatSymbolRefAttr name, int64_t position) -> BufferLife & {
    BufferLife &life = lives[name.getAttr()];
    life.first = life.first < 0 ? position : std::min(life.first, position);
    life.last = std::max(life.last, position);
    return life;
  };

  int64_t position = 0;
  for (auto segment : target.getBody().getOps<SegmentOp>()) {
    int64_t start = position;
    if (FlatSymbolRefAttr input = segment.getInputAttr())
      extend(input, start).isCut = true;
    for (Operation &op : segment.getBody().front()) {
      auto launch = cast<LaunchOpInterface>(op);
      for (FlatSymbolRefAttr name : launch.getReads()) {
        if (!lives[name.getAttr()].isUsed())
          return op.emitOpError()
                 << "reads buffer " << name << ", which nothing has written";
        extend(name, position).reads.push_back(position);
      }
      for (FlatSymbolRefAttr name : launch.getWrites())
        extend(name, position).writes.push_back(position);
      ++position;
    }
    // An empty segment still has a moment at which its states are alive.
    if (position == start)
      ++position;
    if (FlatSymbolRefAttr output = segment.getOutputAttr()) {
      if (!lives[output.getAttr()].isUsed())
        return segment.emitOpError()
               << "gives buffer " << output << ", which nothing has written";
      BufferLife &life = extend(output, position - 1);
      life.isCut = true;
    }
  }
  BufferLife &logits = lives[target.getLogitsAttr().getAttr()];
  if (!logits.isUsed())
    return target.emitOpError() << "gives logits " << target.getLogitsAttr()
                                << ", which nothing has written";
  logits.last = position - 1;
  logits.isCut = true;
  return lives;
}

} // namespace ingot::plan
