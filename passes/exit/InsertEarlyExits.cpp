// --insert-early-exits
//
// 1. Read the options; layers that the model does not have fail.
// 2. Find where each of those layers ends: the residual stream behind it, which
//    must be all that later layers read of it.
// 3. Find the tail: what the program does with the selected rows of the stream.
// 4. Cut the stream behind each layer, and give the cut an exit whose head is the
//    tail again, on the stream there, after the exit's map where the module has
//    one.
#include "passes/Passes.h"

#include "dialects/lm/LmOps.h"
#include "dialects/lm/Provenance.h"

#include "mlir/IR/IRMapping.h"

namespace ingot {
#define GEN_PASS_DEF_INSERTEARLYEXITSPASS
#include "passes/Passes.h.inc"
} // namespace ingot

using namespace mlir;
using namespace ingot;

namespace {

// The program from the selection of rows to its logits.
struct Tail {
  lm::SelectRowsOp select;
  llvm::SmallVector<Operation *> rest;
  Value logits;
};

class Insertion {
public:
  explicit Insertion(lm::ProgramOp program)
      : program(program), module(program->getParentOfType<ModuleOp>()) {}

  LogicalResult findTail() {
    auto end = cast<lm::ReturnOp>(program.getEntryBlock().getTerminator());
    tail.logits = end.getLogits();
    for (Operation &op : program.getEntryBlock().without_terminator()) {
      if (auto select = dyn_cast<lm::SelectRowsOp>(op)) {
        if (tail.select)
          return select.emitOpError("is the second selection of rows; exits "
                                    "need a program with one");
        tail.select = select;
      } else if (tail.select) {
        tail.rest.push_back(&op);
      }
    }
    if (!tail.select)
      return program.emitOpError("selects no rows, so an exit has no head");
    for (Operation *op : tail.rest)
      for (Value operand : op->getOperands())
        if (Operation *maker = operand.getDefiningOp();
            !maker || maker->isBeforeInBlock(tail.select))
          return op->emitOpError("follows the selection of rows and reads what "
                                 "was made before it");
    return success();
  }

  // The residual stream behind the first `layers` layers.
  FailureOr<Value> streamAfter(std::int64_t layers) {
    std::string prefix = ("layer." + llvm::Twine(layers - 1) + ".").str();
    Operation *last = nullptr;
    for (Operation &op : program.getEntryBlock())
      if (lm::locationName(op.getLoc()).starts_with(prefix))
        last = &op;
    if (!last || last->getNumResults() != 1 ||
        !lm::isActivation(last->getResult(0).getType()) ||
        last->getResult(0).getType() != tail.select.getType())
      return program.emitOpError("has no residual stream behind layer ")
             << layers - 1;
    Block &block = program.getEntryBlock();
    for (Operation &op : llvm::make_range(block.begin(), last->getIterator()))
      for (Operation *user : op.getUsers())
        if (!isa<lm::RopeTableOp>(op) &&
            last->isBeforeInBlock(block.findAncestorOpInBlock(*user)))
          return user->emitOpError("reads a value from before the exit behind "
                                   "layer ")
                 << layers - 1 << " that is not the residual stream";
    return last->getResult(0);
  }

  LogicalResult insert(std::int64_t layers) {
    FailureOr<Value> stream = streamAfter(layers);
    if (failed(stream))
      return failure();
    std::string name = "exit" + std::to_string(layers);
    OpBuilder builder(module.getContext());
    builder.setInsertionPointAfterValue(*stream);
    auto cut = builder.create<lm::CutOp>(location(name), stream->getType(),
                                         builder.getStringAttr(name), *stream);
    stream->replaceAllUsesExcept(cut.getResult(), cut);
    auto exit = builder.create<lm::ExitOp>(
        location(name), name, cut.getResult(), layers, confidence(layers));
    builder.createBlock(&exit.getHead());
    addHead(builder, cut.getResult(), name, layers);
    return success();
  }

  // A cut without an exit.
  void cutFinal() {
    OpBuilder builder(tail.select);
    auto cut = builder.create<lm::CutOp>(
        location("final"), tail.select.getType(),
        builder.getStringAttr("final"), tail.select.getInput());
    tail.select.getInputMutable().assign(cut.getResult());
  }

private:
  Location location(const std::string &name) {
    return lm::nameLocation(module.getContext(), name);
  }

  FlatSymbolRefAttr weight(std::int64_t layers, llvm::StringRef what) {
    std::string name = ("exit." + llvm::Twine(layers) + "." + what).str();
    return module.lookupSymbol<lm::WeightOp>(name)
               ? FlatSymbolRefAttr::get(module.getContext(), name)
               : FlatSymbolRefAttr();
  }

  // What the vector @exit.{layers}.confidence holds; null where there is none.
  DenseF32ArrayAttr confidence(std::int64_t layers) {
    FlatSymbolRefAttr symbol = weight(layers, "confidence");
    if (!symbol)
      return {};
    auto value = dyn_cast_or_null<DenseFPElementsAttr>(
        lm::lookupWeight(program, symbol).getValueAttr());
    if (!value || !value.getElementType().isF32())
      return {};
    return DenseF32ArrayAttr::get(module.getContext(),
                                  llvm::to_vector(value.getValues<float>()));
  }

  void addHead(OpBuilder &builder, Value hidden, const std::string &name,
               std::int64_t layers) {
    Value rows = builder.create<lm::SelectRowsOp>(
        location(name + ".select_rows"), hidden.getType(), hidden);
    // The map is the fitted difference to the state itself.
    if (FlatSymbolRefAttr map = weight(layers, "map"))
      rows =
          builder.create<lm::LinearOp>(location(name + ".map"), rows.getType(),
                                       rows, map, weight(layers, "bias"), rows);
    IRMapping mapping;
    mapping.map(tail.select.getResult(), rows);
    for (Operation *op : tail.rest) {
      Operation *copy = builder.clone(*op, mapping);
      copy->setLoc(lm::derivedLocation(
          module.getContext(),
          name + "." + lm::locationName(op->getLoc()).str(), op->getLoc()));
    }
    builder.create<lm::YieldOp>(location(name),
                                ValueRange{mapping.lookup(tail.logits)});
  }

  lm::ProgramOp program;
  ModuleOp module;
  Tail tail;
};

struct InsertEarlyExits
    : ingot::impl::InsertEarlyExitsPassBase<InsertEarlyExits> {
  using InsertEarlyExitsPassBase::InsertEarlyExitsPassBase;

  // The layers of the option, ascending.
  FailureOr<std::vector<std::int64_t>> readLayers(ModuleOp module) {
    auto model = module->getAttrOfType<DictionaryAttr>(lm::kModelAttr);
    auto all = model ? model.getAs<ArrayAttr>("layers") : ArrayAttr();
    if (!all)
      return module.emitError("insert-early-exits: the module lacks lm.model");
    std::vector<std::int64_t> chosen(layers.begin(), layers.end());
    llvm::sort(chosen);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (chosen[i] < 1 || chosen[i] >= std::int64_t(all.size()))
        return module.emitError("insert-early-exits: an exit after ")
               << chosen[i] << " layers, expected 1 to "
               << std::int64_t(all.size()) - 1;
      if (i > 0 && chosen[i] == chosen[i - 1])
        return module.emitError("insert-early-exits: two exits after ")
               << chosen[i] << " layers";
    }
    return chosen;
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<std::vector<std::int64_t>> chosen = readLayers(module);
    if (failed(chosen))
      return signalPassFailure();
    for (lm::ProgramOp program : module.getOps<lm::ProgramOp>()) {
      Insertion insertion(program);
      if (failed(insertion.findTail()))
        return signalPassFailure();
      for (std::int64_t layer : *chosen) {
        if (failed(insertion.insert(layer)))
          return signalPassFailure();
        ++numExits;
      }
      if (cutFinal)
        insertion.cutFinal();
    }
  }
};

} // namespace
