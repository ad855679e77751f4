// 1. Inputs, constants and weights become arguments. 2. Operators in order, by
// their rules; reshapes are other views of the same bytes. A value's place is
// free again after its last use. 3. Outputs are copied to where they are wanted.
#include "compiler/codegen/graph/LowerGraph.h"

#include "compiler/codegen/graph/Lowering.h"
#include "dialects/onnx/OnnxOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace ingot::graph {
namespace {

constexpr std::uint64_t kMaxArenaBytes = 1ull << 40;

bool isView(Operation *op) {
  return isa<onnx::IdentityOp, onnx::ReshapeOp, onnx::SqueezeOp,
             onnx::UnsqueezeOp, onnx::FlattenOp>(op);
}

class GraphLowering {
public:
  explicit GraphLowering(func::FuncOp from)
      : from_(from), builder_(from.getContext()) {}

  Result<LoweredGraph> run();

private:
  Value addArgument(RankedTensorType type, ArgumentSource source);
  void findLastUses(Block &block);
  LogicalResult lowerBlock(Block &block);
  LogicalResult lower(Operation *op);
  LogicalResult lowerIf(onnx::IfOp op);
  void releaseAfter(Operation *op);
  // The value whose buffer this one is a view of.
  Value root(Value value) {
    while (Operation *op = value.getDefiningOp()) {
      if (!isView(op))
        break;
      value = op->getOperand(0);
    }
    return value;
  }
  Location loc() { return builder_.getUnknownLoc(); }

  func::FuncOp from_;
  OpBuilder builder_;
  LoweredGraph result_;
  func::FuncOp to_;
  Arena arena_;
  Value arenaBuffer_;
  llvm::DenseMap<Value, Tensor> tensors_;
  llvm::DenseMap<Value, Operation *> lastUse_; // of a root, in its own block
  llvm::DenseMap<Value, std::int64_t> places_; // of a root in the arena
};

Value GraphLowering::addArgument(RankedTensorType type, ArgumentSource source) {
  Block &entry = to_.front();
  result_.arguments.push_back(std::move(source));
  return entry.addArgument(bufferType(type), loc());
}

// An operator in a branch uses a value of outside when the If does.
void GraphLowering::findLastUses(Block &block) {
  for (Operation &op : block) {
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        Value value = root(operand);
        Block *home = value.getParentBlock();
        if (Operation *user = home->findAncestorOpInBlock(*inner))
          lastUse_[value] = user;
      }
    });
  }
}

void GraphLowering::releaseAfter(Operation *op) {
  SmallVector<Value> dead;
  for (Value operand : op->getOperands())
    dead.push_back(root(operand));
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      dead.push_back(root(operand));
  });
  for (Value value : dead)
    if (auto place = places_.find(value);
        place != places_.end() && lastUse_.lookup(value) == op) {
      arena_.free(place->second);
      places_.erase(place);
    }
}

LogicalResult GraphLowering::lower(Operation *op) {
  if (auto constant = dyn_cast<onnx::ConstantOp>(op)) {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    ArgumentSource source(ArgumentSource::Kind::Constant);
    source.value = constant.getValue();
    tensors_[op->getResult(0)] = {addArgument(type, source), type};
    return success();
  }
  if (auto weight = dyn_cast<onnx::WeightOp>(op)) {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    ArgumentSource source(ArgumentSource::Kind::Weight);
    source.source = weight.getSource();
    source.offset = weight.getOffset();
    source.sizeBytes = weight.getSize();
    tensors_[op->getResult(0)] = {addArgument(type, source), type};
    return success();
  }
  if (isa<onnx::NoneOp>(op))
    return success();
  if (auto branch = dyn_cast<onnx::IfOp>(op))
    return lowerIf(branch);
  auto lookup = [&](Value value) { return tensors_.lookup(value); };
  Lowering lowering(builder_, op, arena_, arenaBuffer_, lookup);
  if (isView(op)) {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    tensors_[op->getResult(0)] =
        lowering.reshaped(lowering.in(0), type.getShape());
    return success();
  }
  LoweringRule rule = findLowering(op->getName().stripDialect());
  if (!rule)
    return lowering.refuse("this operator has no lowering");
  if (failed(rule(lowering)))
    return failure();
  for (std::int64_t place : lowering.temporaries())
    arena_.free(place);
  for (auto [index, tensor] : lowering.made()) {
    tensors_[op->getResult(index)] = tensor;
    places_[op->getResult(index)] = lowering.placeOf(index);
  }
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    if (!op->getResult(i).use_empty() && !tensors_.count(op->getResult(i)))
      return lowering.refuse("output " + llvm::Twine(i) + " is not supported");
  return success();
}

LogicalResult GraphLowering::lowerIf(onnx::IfOp op) {
  auto lookup = [&](Value value) { return tensors_.lookup(value); };
  Lowering lowering(builder_, op, arena_, arenaBuffer_, lookup);
  for (Region *branch : {&op.getThenBranch(), &op.getElseBranch()})
    for (auto [result, yielded] : llvm::zip(
             op->getResults(), branch->front().getTerminator()->getOperands()))
      if (result.getType() != yielded.getType())
        return lowering.refuse("its branches have outputs of different shapes");
  for (unsigned i = 0; i < op->getNumResults(); ++i) {
    tensors_[op->getResult(i)] = lowering.out(i);
    places_[op->getResult(i)] = lowering.placeOf(i);
  }
  Scalar condition = lowering.loadScalar(lowering.in(0));
  auto branches =
      builder_.create<scf::IfOp>(loc(), condition.value, /*withElse=*/true);
  for (auto [region, block] :
       {std::pair(&op.getThenBranch(), branches.thenBlock()),
        std::pair(&op.getElseBranch(), branches.elseBlock())}) {
    OpBuilder::InsertionGuard guard(builder_);
    builder_.setInsertionPointToStart(block);
    if (failed(lowerBlock(region->front())))
      return failure();
    Operation *yield = region->front().getTerminator();
    for (auto [i, value] : llvm::enumerate(yield->getOperands())) {
      Tensor from = tensors_.lookup(value), to = tensors_[op->getResult(i)];
      lowering.fill(to, [&](Indices at) { return lowering.load(from, at); });
    }
    // What the branch made is dead; what is outside it is not.
    for (Operation &inner : region->front())
      for (Value made : inner.getResults())
        if (auto place = places_.find(made); place != places_.end()) {
          arena_.free(place->second);
          places_.erase(place);
        }
  }
  return success();
}

LogicalResult GraphLowering::lowerBlock(Block &block) {
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>())
      continue;
    if (failed(lower(&op)))
      return failure();
    releaseAfter(&op);
    if (arena_.sizeBytes() > std::int64_t(kMaxArenaBytes))
      return op.emitError() << "the graph's values take more than a terabyte";
  }
  return success();
}

Result<LoweredGraph> GraphLowering::run() {
  std::string message;
  ScopedDiagnosticHandler handler(from_.getContext(),
                                  [&](Diagnostic &diagnostic) {
                                    if (message.empty())
                                      message = diagnostic.str();
                                    return success();
                                  });
  result_.module = ModuleOp::create(loc());
  builder_.setInsertionPointToEnd(result_.module->getBody());
  to_ = builder_.create<func::FuncOp>(loc(), kGraphFunction,
                                      builder_.getFunctionType({}, {}));
  Block *entry = to_.addEntryBlock();
  builder_.setInsertionPointToEnd(entry);
  // The arena's size is known at the end.
  arenaBuffer_ =
      entry->addArgument(MemRefType::get({64}, builder_.getI8Type()), loc());
  result_.arguments.push_back(ArgumentSource(ArgumentSource::Kind::Arena));
  for (auto [i, argument] : llvm::enumerate(from_.front().getArguments())) {
    if (argument.use_empty())
      continue;
    auto type = cast<RankedTensorType>(argument.getType());
    ArgumentSource source(ArgumentSource::Kind::Input);
    source.index = i;
    tensors_[argument] = {addArgument(type, source), type};
  }
  findLastUses(from_.front());
  if (failed(lowerBlock(from_.front())))
    return Status::unsupported(message);
  Operation *end = from_.front().getTerminator();
  auto lookup = [&](Value value) { return tensors_.lookup(value); };
  Lowering copies(builder_, end, arena_, arenaBuffer_, lookup);
  for (auto [i, value] : llvm::enumerate(end->getOperands())) {
    auto type = cast<RankedTensorType>(value.getType());
    ArgumentSource source(ArgumentSource::Kind::Output);
    source.index = i;
    Tensor to{addArgument(type, source), type}, from = tensors_.lookup(value);
    copies.fill(to, [&](Indices at) { return copies.load(from, at); });
    result_.outputTypes.push_back(type);
  }
  result_.arenaBytes = std::max<std::int64_t>(arena_.sizeBytes(), 64);
  arenaBuffer_.setType(MemRefType::get({std::int64_t(result_.arenaBytes)},
                                       builder_.getI8Type()));
  builder_.create<func::ReturnOp>(loc());
  to_.setType(builder_.getFunctionType(entry->getArgumentTypes(), {}));
  return std::move(result_);
}

} // namespace

Result<LoweredGraph> lowerGraph(ModuleOp specialized) {
  MLIRContext *context = specialized.getContext();
  context->loadDialect<arith::ArithDialect, func::FuncDialect,
                       linalg::LinalgDialect, math::MathDialect,
                       memref::MemRefDialect, scf::SCFDialect>();
  return GraphLowering(*specialized.getOps<func::FuncOp>().begin()).run();
}

} // namespace ingot::graph
