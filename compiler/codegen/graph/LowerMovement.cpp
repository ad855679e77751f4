// Operators that move elements by positions known beforehand, or make them.
#include "compiler/codegen/graph/Lowering.h"

#include "dialects/onnx/OnnxOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace ingot::graph {
namespace {

LogicalResult transpose(Lowering &l) {
  Tensor x = l.in(0);
  const std::int64_t rank = x.rank();
  Dims perm = l.node.integers("perm").value_or(Dims());
  if (!l.node.integers("perm"))
    for (std::int64_t i = rank; i-- > 0;)
      perm.push_back(i);
  l.fill(l.out(0), [&](Indices at) {
    Index from(rank);
    for (auto [to, source] : llvm::enumerate(perm))
      from[source < 0 ? source + rank : source] = at[to];
    return l.load(x, from);
  });
  return success();
}

LogicalResult concat(Lowering &l) {
  Tensor y = l.out(0);
  const std::int64_t axis = l.axis(y.rank(), 0);
  std::int64_t begin = 0;
  for (unsigned i = 0; i < l.op->getNumOperands(); ++i) {
    Tensor x = l.in(i);
    l.forEach(x.dims(), [&](Indices at) {
      Index to(at);
      to[axis] = l.addIndex(to[axis], begin);
      l.store(y, to, l.load(x, at));
    });
    begin += x.dim(axis);
  }
  return success();
}

LogicalResult split(Lowering &l) {
  Tensor x = l.in(0);
  const std::int64_t axis = l.axis(x.rank(), 0);
  std::int64_t begin = 0;
  for (unsigned i = 0; i < l.op->getNumResults(); ++i) {
    auto type = cast<RankedTensorType>(l.op->getResult(i).getType());
    l.fill(l.out(i), [&](Indices at) {
      Index from(at);
      from[axis] = l.addIndex(from[axis], begin);
      return l.load(x, from);
    });
    begin += type.getDimSize(axis);
  }
  return success();
}

LogicalResult slice(Lowering &l) {
  Tensor x = l.in(0), y = l.out(0);
  auto starts = onnx::knownInts(l.op->getOperand(1));
  std::optional<Dims> axes, steps;
  if (l.has(3))
    axes = onnx::knownInts(l.op->getOperand(3));
  if (l.has(4))
    steps = onnx::knownInts(l.op->getOperand(4));
  if (!starts || (l.has(3) && !axes) || (l.has(4) && !steps))
    return l.refuse("starts, axes and steps must be known");
  Dims first(x.rank(), 0), step(x.rank(), 1);
  for (auto [i, start] : llvm::enumerate(*starts)) {
    std::int64_t axis = axes ? (*axes)[i] : std::int64_t(i);
    axis = axis < 0 ? axis + x.rank() : axis;
    const std::int64_t size = x.dim(axis);
    step[axis] = steps ? (*steps)[i] : 1;
    const std::int64_t from = start < 0 ? start + size : start;
    first[axis] = step[axis] > 0
                      ? std::clamp<std::int64_t>(from, 0, size)
                      : std::clamp<std::int64_t>(
                            from, 0, std::max<std::int64_t>(size - 1, 0));
    // One element or none is reached: any step will do.
    if (y.dim(axis) <= 1)
      step[axis] = 1;
  }
  l.fill(y, [&](Indices at) {
    Index from;
    for (auto [i, place] : llvm::enumerate(at))
      from.push_back(l.addIndex(l.mulIndex(place, step[i]), first[i]));
    return l.load(x, from);
  });
  return success();
}

LogicalResult expand(Lowering &l) {
  Tensor x = l.in(0);
  l.fill(l.out(0), [&](Indices at) { return l.loadBroadcast(x, at); });
  return success();
}

LogicalResult tile(Lowering &l) {
  Tensor x = l.in(0);
  l.fill(l.out(0), [&](Indices at) {
    Index from;
    for (auto [i, place] : llvm::enumerate(at))
      from.push_back(l.remIndex(place, std::max<std::int64_t>(x.dim(i), 1)));
    return l.load(x, from);
  });
  return success();
}

LogicalResult pad(Lowering &l) {
  Tensor x = l.in(0), y = l.out(0);
  const std::int64_t rank = x.rank();
  auto pads = onnx::knownInts(l.op->getOperand(1));
  std::optional<Dims> axes;
  if (l.has(3))
    axes = onnx::knownInts(l.op->getOperand(3));
  if (!pads || (l.has(3) && !axes))
    return l.refuse("pads and axes must be known");
  Dims before(rank, 0), after(rank, 0);
  const std::size_t count = pads->size() / 2;
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t axis = axes ? (*axes)[i] : std::int64_t(i);
    axis = axis < 0 ? axis + rank : axis;
    before[axis] = (*pads)[i];
    after[axis] = (*pads)[count + i];
  }
  StringRef mode = l.node.text("mode");
  if (mode == "constant") {
    Tensor value = l.has(2) ? l.in(2) : Tensor();
    l.fill(y, [&](Indices at) {
      Value is = l.b.create<arith::ConstantOp>(l.loc, l.b.getBoolAttr(true));
      Index from;
      for (auto [i, place] : llvm::enumerate(at)) {
        from.push_back(l.addIndex(place, -before[i]));
        is = l.bitAnd(is, l.within(from.back(), x.dim(i)));
      }
      Scalar fill = l.has(2) ? l.loadScalar(value) : l.zero(x.element());
      return l.ifElse(is, [&] { return l.load(x, from); }, fill);
    });
    return success();
  }
  // Negative pads take elements away, and what is left is repeated.
  Dims first(rank), kept(rank);
  for (std::int64_t i = 0; i < rank; ++i) {
    first[i] = std::max<std::int64_t>(-before[i], 0);
    kept[i] = x.dim(i) - first[i] - std::max<std::int64_t>(-after[i], 0);
    before[i] = std::max<std::int64_t>(before[i], 0);
    if (kept[i] < 1 && y.type.getNumElements() > 0)
      return l.refuse("nothing to repeat");
  }
  l.fill(y, [&](Indices at) {
    Index from;
    for (auto [i, place] : llvm::enumerate(at)) {
      const std::int64_t size = kept[i];
      Value p = l.addIndex(place, -before[i]);
      if (mode == "edge") {
        p = l.b.create<arith::MaxSIOp>(l.loc, p, l.index(0));
        p = l.b.create<arith::MinSIOp>(l.loc, p, l.index(size - 1));
      } else {
        // One period up, so that the remainder is of a positive number.
        const std::int64_t period =
            mode == "wrap" ? size : std::max<std::int64_t>(2 * size - 2, 1);
        const std::int64_t up = (before[i] / period + 1) * period;
        p = l.remIndex(l.addIndex(p, up), period);
        if (mode == "reflect") {
          Value mirrored = l.b.create<arith::SubIOp>(l.loc, l.index(period), p);
          p = l.b.create<arith::SelectOp>(l.loc, l.within(p, size), p,
                                          mirrored);
        }
      }
      from.push_back(l.addIndex(p, first[i]));
    }
    return l.load(x, from);
  });
  return success();
}

LogicalResult constantOfShape(Lowering &l) {
  auto value = cast<onnx::ConstantOfShapeOp>(l.op).getValue();
  Tensor y = l.out(0);
  l.fill(y, [&](Indices) -> Scalar {
    if (isFloat(y.element()))
      return l.number((*value.getValues<APFloat>().begin()).convertToDouble(),
                      y.element());
    return l.integer((*value.getValues<APInt>().begin()).getSExtValue(),
                     y.element());
  });
  return success();
}

LogicalResult range(Lowering &l) {
  Tensor start = l.in(0), delta = l.in(2), y = l.out(0);
  l.fill(y, [&](Indices at) {
    Scalar step = l.cast(l.fromIndex(at[0]), y.element());
    return l.add(l.loadScalar(start), l.mul(step, l.loadScalar(delta)));
  });
  return success();
}

LogicalResult trilu(Lowering &l) {
  Tensor x = l.in(0), y = l.out(0);
  const bool upper = l.node.integer("upper", 1) != 0;
  const bool has = l.has(1);
  Tensor k = has ? l.in(1) : Tensor();
  l.fill(y, [&](Indices at) {
    Scalar row = l.fromIndex(at[at.size() - 2]),
           column = l.fromIndex(at.back());
    if (has)
      row = l.add(row, l.cast(l.loadScalar(k), row.type));
    Value keep = upper ? l.compare(Compare::LessOrEqual, row, column)
                       : l.compare(Compare::LessOrEqual, column, row);
    return l.select(keep, l.load(x, at), l.zero(x.element()));
  });
  return success();
}

LogicalResult depthToSpace(Lowering &l) {
  Tensor x = l.in(0), y = l.out(0);
  const std::int64_t block = l.node.integer("blocksize");
  const bool isDcr = l.node.text("mode") != "CRD";
  const std::int64_t channels = y.dim(1);
  l.fill(y, [&](Indices at) {
    Value h = l.remIndex(at[2], block), w = l.remIndex(at[3], block);
    Value place = l.addIndex(l.mulIndex(h, block), w);
    Value channel = isDcr ? l.addIndex(l.mulIndex(place, channels), at[1])
                          : l.addIndex(l.mulIndex(at[1], block * block), place);
    return l.load(x, Index{at[0], channel, l.divIndex(at[2], block),
                           l.divIndex(at[3], block)});
  });
  return success();
}

LogicalResult spaceToDepth(Lowering &l) {
  Tensor x = l.in(0), y = l.out(0);
  const std::int64_t block = l.node.integer("blocksize"), channels = x.dim(1);
  l.fill(y, [&](Indices at) {
    Value place = l.divIndex(at[1], channels);
    Value h = l.addIndex(l.mulIndex(at[2], block), l.divIndex(place, block));
    Value w = l.addIndex(l.mulIndex(at[3], block), l.remIndex(place, block));
    return l.load(x, Index{at[0], l.remIndex(at[1], channels), h, w});
  });
  return success();
}

LogicalResult eyeLike(Lowering &l) {
  Tensor y = l.out(0);
  const std::int64_t k = l.node.integer("k");
  l.fill(y, [&](Indices at) {
    Value is = l.b.create<arith::CmpIOp>(l.loc, arith::CmpIPredicate::eq,
                                         l.addIndex(at[0], k), at[1]);
    return l.select(is, l.number(1, y.element()), l.zero(y.element()));
  });
  return success();
}

LogicalResult shape(Lowering &l) {
  auto known = onnx::knownInts(l.op->getResult(0));
  if (!known)
    return l.refuse("a shape that is not known");
  Tensor y = l.out(0);
  if (y.rank() == 0) {
    l.store(y, {}, l.integer((*known)[0], y.element()));
    return success();
  }
  for (auto [i, dim] : llvm::enumerate(*known))
    l.store(y, Index{l.index(i)}, l.integer(dim, y.element()));
  return success();
}

} // namespace

LoweringRule lowerMovement(llvm::StringRef name) {
  return llvm::StringSwitch<LoweringRule>(name)
      .Case("Transpose", transpose)
      .Case("Concat", concat)
      .Case("Split", split)
      .Case("Slice", slice)
      .Case("Expand", expand)
      .Case("Tile", tile)
      .Case("Pad", pad)
      .Case("ConstantOfShape", constantOfShape)
      .Case("Range", range)
      .Case("Trilu", trilu)
      .Case("DepthToSpace", depthToSpace)
      .Case("SpaceToDepth", spaceToDepth)
      .Case("EyeLike", eyeLike)
      .Cases("Shape", "Size", shape)
      .Default(nullptr);
}

} // namespace ingot::graph
