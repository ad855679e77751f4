#include "compiler/frontend/onnx/OnnxMovement.h"

#include "dialects/onnx/OnnxOps.h"
#include "dialects/onnx/ShapeValues.h"

#include <functional>
#include <numeric>

using namespace mlir;

namespace ingot {
namespace {

using Dims = SmallVector<std::int64_t>;

Dims dimsOf(Value value) {
  return Dims(cast<RankedTensorType>(value.getType()).getShape());
}

// For each element of a tensor of `dims`, the element of one of `sourceDims` whose
// place is `place` of its own.
std::vector<std::int64_t>
elementsBy(const Dims &dims, const Dims &sourceDims,
           llvm::function_ref<Dims(const Dims &)> place) {
  std::vector<std::int64_t> from;
  Dims at(dims.size(), 0);
  std::int64_t count = 1;
  for (std::int64_t dim : dims)
    count *= dim;
  for (std::int64_t i = 0; i < count; ++i) {
    const Dims source = place(at);
    std::int64_t element = 0;
    for (auto [dim, index] : llvm::zip(sourceDims, source))
      element = element * dim + index;
    from.push_back(element);
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      if (++at[axis] < dims[axis])
        break;
      at[axis] = 0;
    }
  }
  return from;
}

std::int64_t axisOf(Operation *op, std::size_t rank) {
  const std::int64_t axis = op->getAttrOfType<IntegerAttr>("axis").getInt();
  return axis < 0 ? axis + std::int64_t(rank) : axis;
}

// The elements of operand 0 that a slice takes; none where its numbers are not
// known.
std::optional<std::vector<std::int64_t>> sliced(onnx::SliceOp op) {
  const Dims dims = dimsOf(op.getResult()), source = dimsOf(op.getData());
  auto starts = onnx::knownInts(op.getStarts());
  if (!starts)
    return std::nullopt;
  Dims axes(starts->size()), steps(starts->size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  for (auto [given, to] :
       {std::pair(op.getAxes(), &axes), std::pair(op.getSteps(), &steps)})
    if (!onnx::isAbsent(given)) {
      auto known = onnx::knownInts(given);
      if (!known || known->size() != starts->size())
        return std::nullopt;
      to->assign(known->begin(), known->end());
    }
  Dims first(source.size(), 0), step(source.size(), 1);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis =
        axes[i] < 0 ? axes[i] + std::int64_t(source.size()) : axes[i];
    const std::int64_t size = source[axis];
    std::int64_t start = (*starts)[i] < 0 ? (*starts)[i] + size : (*starts)[i];
    first[axis] =
        std::clamp<std::int64_t>(start, 0, steps[i] < 0 ? size - 1 : size);
    step[axis] = steps[i];
  }
  return elementsBy(dims, source, [&](const Dims &at) {
    Dims place(at);
    for (std::size_t axis = 0; axis < place.size(); ++axis)
      place[axis] = first[axis] + at[axis] * step[axis];
    return place;
  });
}

// The elements of operand 0 that `op` moves to its result; empty for the same order;
// none where it does more.
std::optional<std::vector<std::int64_t>> moved(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa<onnx::IdentityOp, onnx::ReshapeOp, onnx::SqueezeOp, onnx::UnsqueezeOp,
          onnx::FlattenOp>(op) ||
      (isa<onnx::DropoutOp>(op) && value == op->getResult(0)) ||
      (isa<onnx::ConcatOp>(op) && op->getNumOperands() == 1) ||
      (isa<onnx::CastOp>(op) && onnx::isFloatTensor(value.getType()) &&
       onnx::isFloatTensor(op->getOperand(0).getType())))
    return std::vector<std::int64_t>();
  if (auto slice = dyn_cast<onnx::SliceOp>(op))
    return sliced(slice);
  if (!isa<onnx::TransposeOp, onnx::SplitOp, onnx::GatherOp, onnx::ExpandOp>(
          op))
    return std::nullopt;
  const Dims dims = dimsOf(value), source = dimsOf(op->getOperand(0));
  if (isa<onnx::ExpandOp>(op))
    return elementsBy(dims, source, [&](const Dims &at) {
      Dims place(at.end() - source.size(), at.end());
      for (std::size_t i = 0; i < place.size(); ++i)
        place[i] = source[i] == 1 ? 0 : place[i];
      return place;
    });
  if (auto transpose = dyn_cast<onnx::TransposeOp>(op)) {
    Dims perm(dims.size());
    std::iota(perm.rbegin(), perm.rend(), 0);
    if (auto given = transpose.getPerm())
      perm.assign(given->begin(), given->end());
    return elementsBy(dims, source, [&](const Dims &at) {
      Dims place(at);
      for (std::size_t i = 0; i < perm.size(); ++i)
        place[perm[i]] = at[i];
      return place;
    });
  }
  const std::int64_t axis = axisOf(op, source.size());
  if (isa<onnx::SplitOp>(op)) {
    std::int64_t before = 0;
    for (OpResult result : op->getResults()) {
      if (result == value)
        break;
      before += dimsOf(result)[axis];
    }
    return elementsBy(dims, source, [&](const Dims &at) {
      Dims place(at);
      place[axis] += before;
      return place;
    });
  }
  auto indices = onnx::knownInts(op->getOperand(1));
  if (!indices)
    return std::nullopt;
  const std::size_t rank = dimsOf(op->getOperand(1)).size();
  const Dims chosen = dimsOf(op->getOperand(1));
  for (std::int64_t &index : *indices) {
    index += index < 0 ? source[axis] : 0;
    if (index < 0 || index >= source[axis])
      return std::nullopt;
  }
  return elementsBy(dims, source, [&](const Dims &at) {
    std::int64_t which = 0;
    for (std::size_t i = 0; i < rank; ++i)
      which = which * chosen[i] + at[axis + i];
    Dims place(at.begin(), at.begin() + axis);
    place.push_back((*indices)[which]);
    place.append(at.begin() + axis + rank, at.end());
    return place;
  });
}

} // namespace

Movement traceMovement(Value value) {
  Movement movement{value, {}};
  movement.from.resize(
      cast<RankedTensorType>(value.getType()).getNumElements());
  std::iota(movement.from.begin(), movement.from.end(), 0);
  while (movement.source.getDefiningOp()) {
    auto step = moved(movement.source);
    if (!step)
      break;
    if (!step->empty())
      for (std::int64_t &element : movement.from)
        element = (*step)[element];
    movement.source = movement.source.getDefiningOp()->getOperand(0);
  }
  return movement;
}

} // namespace ingot
