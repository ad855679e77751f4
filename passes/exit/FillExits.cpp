// --fill-exits
//
// 1. For each exit, visit the cache writes of the layers behind it.
// 2. Walk from what a write stores back to the one value that comes from an
//    earlier layer: the residual stream that the layer began with.
// 3. Clone that slice and the write into the exit's fill, with the state at the
//    cut in the place of the stream.
#include "passes/Passes.h"

#include "dialects/lm/LmOps.h"
#include "dialects/lm/Provenance.h"

#include "mlir/IR/IRMapping.h"

namespace ingot {
#define GEN_PASS_DEF_FILLEXITSPASS
#include "passes/Passes.h.inc"
} // namespace ingot

using namespace mlir;
using namespace ingot;

namespace {

// "layer.3" of "layer.3.qkv".
llvm::StringRef layerOf(Operation *op) {
  llvm::StringRef name = lm::locationName(op->getLoc());
  return name.starts_with("layer.")
             ? name.take_front(name.find('.', llvm::StringRef("layer.").size()))
             : llvm::StringRef();
}

// What a layer does from the stream to a cache write, without the write.
struct Slice {
  llvm::SetVector<Operation *> ops;
  llvm::SetVector<Value> streams; // one, in a layer that can be filled
};

Slice sliceOf(lm::RopeCacheWriteOp write) {
  Slice slice;
  llvm::SmallVector<Value> open{write.getQkv()};
  llvm::StringRef layer = layerOf(write);
  while (!open.empty()) {
    Value value = open.pop_back_val();
    Operation *maker = value.getDefiningOp();
    // Quantised rows are named after what they were made of.
    if (!maker || (layerOf(maker) != layer && !isa<lm::QuantizeOp>(maker))) {
      slice.streams.insert(value);
      continue;
    }
    if (slice.ops.insert(maker))
      llvm::append_range(open, maker->getOperands());
  }
  return slice;
}

class Filling {
public:
  explicit Filling(lm::ExitOp exit) : exit(exit), builder(exit) {
    builder.createBlock(&exit.getFill());
  }

  LogicalResult add(lm::RopeCacheWriteOp write) {
    Slice slice = sliceOf(write);
    if (slice.streams.size() != 1 ||
        slice.streams.front().getType() != exit.getInput().getType() ||
        !llvm::all_of(slice.ops, [](Operation *op) { return isPure(op); }))
      return write.emitOpError("stores what is not made from the residual "
                               "stream alone, so exit \"")
             << exit.getName() << "\" cannot fill it";
    IRMapping mapping;
    mapping.map(slice.streams.front(), exit.getInput());
    llvm::SmallVector<Operation *> ordered(slice.ops.begin(), slice.ops.end());
    llvm::sort(ordered, [](Operation *a, Operation *b) {
      return a->isBeforeInBlock(b);
    });
    ordered.push_back(write);
    for (Operation *op : ordered) {
      Operation *copy = builder.clone(*op, mapping);
      copy->setLoc(lm::derivedLocation(
          copy->getContext(),
          (exit.getName() + "." + lm::locationName(op->getLoc())).str(),
          op->getLoc()));
    }
    return success();
  }

  void finish() { builder.create<lm::YieldOp>(exit.getLoc(), ValueRange()); }

private:
  lm::ExitOp exit;
  OpBuilder builder;
};

struct FillExits : ingot::impl::FillExitsPassBase<FillExits> {
  void runOnOperation() override {
    llvm::SmallVector<lm::ExitOp> exits;
    getOperation().walk([&](lm::ExitOp exit) {
      if (exit.getFill().empty())
        exits.push_back(exit);
    });
    for (lm::ExitOp exit : exits) {
      Filling filling(exit);
      for (Operation *op = exit->getNextNode(); op; op = op->getNextNode())
        if (auto write = dyn_cast<lm::RopeCacheWriteOp>(op)) {
          if (failed(filling.add(write)))
            return signalPassFailure();
          ++numFilled;
        }
      filling.finish();
    }
  }
};

} // namespace
