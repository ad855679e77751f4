// Places buffers in the arenas of their domains:
//   1. a linear or add whose residual dies there updates it in place;
//   2. buffers that nothing uses are erased;
//   3. the largest buffer first, each takes the lowest offset that is free of
//      all placed buffers whose lives meet its own;
//   4. offsets and the arenas' sizes are written down.
#include "passes/lower/BufferLives.h"
#include "passes/lower/Passes.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ingot {
#define GEN_PASS_DEF_ASSIGNBUFFERSPASS
#include "passes/lower/Passes.h.inc"
} // namespace ingot

namespace ingot::plan {

namespace {

struct Placed {
  BufferOp buffer;
  const BufferLife *life;
  uint64_t
      size;     // a row, rounded up so that every buffer starts on a cache line
  size_t order; // in the target
  uint64_t offset = 0;
};

class Assignment {
public:
  explicit Assignment(TargetOp target) : target(target) {}

  LogicalResult run() {
    if (failed(updateInPlace()))
      return failure();
    auto lives = computeBufferLives(target);
    if (failed(lives))
      return failure();
    Builder builder(target.getContext());
    uint64_t tokenBytes = place(Domain::Token, *lives);
    uint64_t logitRowBytes = place(Domain::LogitRow, *lives);
    target.setTokenArenaBytesAttr(builder.getI64IntegerAttr(tokenBytes));
    target.setLogitRowArenaBytesAttr(builder.getI64IntegerAttr(logitRowBytes));
    numBytes = tokenBytes + logitRowBytes;
    return success();
  }

  int64_t numInPlace = 0;
  int64_t numBytesWithout = 0;
  int64_t numBytes = 0;

private:
  // Step 1. Lives change with each update, and are kept up to date: a residual
  // stream may be updated many times in one buffer.
  LogicalResult updateInPlace() {
    auto lives = computeBufferLives(target);
    if (failed(lives))
      return failure();
    int64_t position = -1;
    for (auto segment : target.getBody().getOps<SegmentOp>()) {
      bool isEmpty = true;
      for (Operation &op : segment.getBody().front()) {
        isEmpty = false;
        ++position;
        std::optional<Update> update = updateOf(op);
        if (!update || update->residual == update->output)
          continue;
        StringAttr from = update->output.getAttr();
        StringAttr to = update->residual.getAttr();
        const BufferLife &output = (*lives)[from];
        BufferLife &residual = (*lives)[to];
        if (!mayReplace(*update, output, residual, position))
          continue;
        replaceBuffer(from, to);
        // The residual's buffer now also lives the output's life.
        residual.last = output.last;
        residual.writes.append(output.writes.begin(), output.writes.end());
        residual.reads.append(output.reads.begin(), output.reads.end());
        lives->erase(from);
        ++numInPlace;
      }
      position += isEmpty;
    }
    return success();
  }

  // A launch that adds to a residual stream.
  struct Update {
    FlatSymbolRefAttr input, residual, output;
    int64_t columns; // that it writes
  };
  static std::optional<Update> updateOf(Operation &op) {
    if (auto linear = dyn_cast<LinearOp>(op);
        linear && linear.getResidualAttr())
      return Update{linear.getInputAttr(), linear.getResidualAttr(),
                    linear.getOutputAttr(), int64_t(linear.getN())};
    if (auto add = dyn_cast<AddOp>(op))
      return Update{add.getUpdateAttr(), add.getResidualAttr(),
                    add.getOutputAttr(), int64_t(add.getWidth())};
    return std::nullopt;
  }

  bool mayReplace(const Update &update, const BufferLife &output,
                  const BufferLife &residual, int64_t position) {
    auto find = [&](FlatSymbolRefAttr name) {
      return cast<BufferOp>(mlir::SymbolTable::lookupSymbolIn(target, name));
    };
    BufferOp outputBuffer = find(update.output);
    BufferOp residualBuffer = find(update.residual);
    return !output.isCut && !residual.isCut && residual.last == position &&
           output.writes.size() == 1 && update.input != update.residual &&
           outputBuffer.getType() == residualBuffer.getType() &&
           update.columns == outputBuffer.getColumns();
  }

  void replaceBuffer(StringAttr from, StringAttr to) {
    auto newName = FlatSymbolRefAttr::get(to);
    target.walk([&](LaunchOpInterface launch) {
      for (auto names : {launch.getReadNames(), launch.getWriteNames()})
        for (StringAttr name : names)
          if (launch->getAttrOfType<FlatSymbolRefAttr>(name).getAttr() == from)
            launch->setAttr(name, newName);
    });
    mlir::SymbolTable::lookupSymbolIn(target, from)->erase();
  }

  // Steps 2 and 3. Gives the bytes of the domain's arena.
  uint64_t place(Domain domain,
                 const llvm::MapVector<StringAttr, BufferLife> &lives) {
    SmallVector<Placed> buffers;
    for (auto buffer :
         llvm::make_early_inc_range(target.getBody().getOps<BufferOp>())) {
      // Slots lie in the arena of tokens, several rows for each.
      bool isSlot = buffer.getDomain() == Domain::Slot;
      if ((isSlot ? Domain::Token : buffer.getDomain()) != domain)
        continue;
      uint64_t rows = isSlot ? uint64_t(target.getSlots()) : 1;
      const BufferLife &life = lives.find(buffer.getSymNameAttr())->second;
      if (life.isUsed())
        buffers.push_back({buffer, &life,
                           llvm::alignTo(rows * buffer.getRowBytes(), 64),
                           buffers.size()});
      else
        buffer.erase();
    }
    for (const Placed &buffer : buffers)
      numBytesWithout += buffer.size;
    llvm::sort(buffers, [](const Placed &a, const Placed &b) {
      return a.size != b.size ? a.size > b.size : a.order < b.order;
    });
    uint64_t arena = 0;
    for (size_t i = 0; i < buffers.size(); ++i) {
      buffers[i].offset = lowestFree(buffers, i);
      arena = std::max(arena, buffers[i].offset + buffers[i].size);
      buffers[i].buffer.setOffset(buffers[i].offset);
    }
    return arena;
  }

  // Offsets taken by buffers [0, index) whose lives meet that of `index`.
  uint64_t lowestFree(ArrayRef<Placed> buffers, size_t index) {
    SmallVector<std::pair<uint64_t, uint64_t>> taken;
    for (const Placed &other : buffers.take_front(index))
      if (other.life->meets(*buffers[index].life))
        taken.emplace_back(other.offset, other.offset + other.size);
    llvm::sort(taken);
    uint64_t offset = 0;
    for (auto [begin, end] : taken) {
      if (offset + buffers[index].size <= begin)
        break;
      offset = std::max(offset, end);
    }
    return offset;
  }

  TargetOp target;
};

class AssignBuffers : public ingot::impl::AssignBuffersPassBase<AssignBuffers> {
  void runOnOperation() override {
    for (auto target : getOperation().getOps<TargetOp>()) {
      Assignment assignment(target);
      if (failed(assignment.run()))
        return signalPassFailure();
      numInPlace += assignment.numInPlace;
      numBytesWithout += assignment.numBytesWithout;
      numBytes += assignment.numBytes;
    }
  }
};

} // namespace
} // namespace ingot::plan
