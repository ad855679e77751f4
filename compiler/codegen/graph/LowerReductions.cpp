// Reductions, running sums, and the greatest elements. Sums of halves and
// bfloat16 are float32 until they are stored.
#include "compiler/codegen/graph/Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace ingot::graph {
namespace {

Scalar element(Lowering &l, StringRef name, Scalar x) {
  if (name == "ReduceL1")
    return l.abs(x);
  if (name == "ReduceL2" || name == "ReduceSumSquare")
    return l.mul(x, x);
  return x;
}

Scalar step(Lowering &l, StringRef name, Scalar total, Scalar x) {
  if (name == "ReduceMax")
    return isBool(x.type) ? l.bitOr(total, x) : l.max(total, x);
  if (name == "ReduceMin")
    return isBool(x.type) ? l.bitAnd(total, x) : l.min(total, x);
  return name == "ReduceProd" ? l.mul(total, x) : l.add(total, x);
}

Scalar start(Lowering &l, StringRef name, Type type) {
  if (name == "ReduceMax")
    return isBool(type) ? l.integer(0, type) : l.lowest(type);
  if (name == "ReduceMin")
    return isBool(type) ? l.integer(1, type) : l.highest(type);
  return l.number(name == "ReduceProd" ? 1 : 0, type);
}

Scalar finish(Lowering &l, StringRef name, Scalar total, std::int64_t count) {
  const bool isWhole = !isFloat(total.type);
  Type f64 = l.b.getF64Type();
  Type type = total.type;
  if (name == "ReduceMean")
    return l.div(total, l.integer(count, type));
  if (name == "ReduceL2" || name == "ReduceLogSum") {
    Scalar wide = isWhole ? l.cast(total, f64) : total;
    return l.cast(l.unary(name == "ReduceL2" ? "sqrt" : "log", wide), type);
  }
  return total;
}

LogicalResult reduce(Lowering &l) {
  StringRef name = l.op->getName().stripDialect();
  Tensor x = l.in(0), y = l.out(0);
  Dims axes;
  if (l.has(1)) {
    auto given = onnx::knownInts(l.op->getOperand(1));
    if (!given)
      return l.refuse("axes must be known");
    axes = *given;
  }
  for (std::int64_t &axis : axes)
    axis = axis < 0 ? axis + x.rank() : axis;
  const bool isNoop =
      axes.empty() && l.node.integer("noop_with_empty_axes") != 0;
  if (axes.empty() && !isNoop)
    for (std::int64_t i = 0; i < x.rank(); ++i)
      axes.push_back(i);
  Dims extents;
  llvm::sort(axes);
  std::int64_t count = 1;
  for (std::int64_t axis : axes) {
    extents.push_back(x.dim(axis));
    count *= x.dim(axis);
  }
  const bool keep = isNoop || l.node.integer("keepdims", 1) != 0;
  Type type = sumType(x.element());
  l.fill(y, [&](Indices at) {
    auto from = [&](Indices inner) {
      Index place;
      std::size_t outer = 0, reduced = 0;
      for (std::int64_t i = 0; i < x.rank(); ++i) {
        if (llvm::is_contained(axes, i)) {
          place.push_back(inner[reduced++]);
          outer += keep;
        } else {
          place.push_back(at[outer++]);
        }
      }
      return l.cast(l.load(x, place), type);
    };
    if (name == "ReduceLogSumExp") {
      const bool isWhole = !isFloat(type);
      Type wide = isWhole ? Type(l.b.getF64Type()) : type;
      Scalar most =
          l.reduce(extents, l.lowest(wide), [&](Indices inner, Scalar total) {
            return l.max(total, l.cast(from(inner), wide));
          });
      // Infinities stay what they are.
      Scalar bound = l.highest(wide);
      Value isFinite = l.compare(Compare::Less, l.abs(most), bound);
      Scalar shift = l.select(isFinite, most, l.zero(wide));
      Scalar sum =
          l.reduce(extents, l.zero(wide), [&](Indices inner, Scalar total) {
            Scalar x = l.sub(l.cast(from(inner), wide), shift);
            return l.add(total, l.unary("exp", x));
          });
      return l.cast(l.cast(l.add(shift, l.unary("log", sum)), type),
                    x.element());
    }
    Scalar total = l.reduce(
        extents, start(l, name, type), [&](Indices inner, Scalar total) {
          return step(l, name, total, element(l, name, from(inner)));
        });
    return l.cast(finish(l, name, total, count), x.element());
  });
  return success();
}

LogicalResult argument(Lowering &l) {
  Tensor x = l.in(0), y = l.out(0);
  const std::int64_t axis = l.axis(x.rank(), 0);
  const bool keep = l.node.integer("keepdims", 1) != 0,
             last = l.node.integer("select_last_index") != 0,
             greatest = l.op->getName().stripDialect() == "ArgMax";
  l.fill(y, [&](Indices at) {
    Index place(at);
    if (!keep)
      place.insert(place.begin() + axis, Value());
    auto from = [&](Value i) {
      Index own(place);
      own[axis] = i;
      return l.load(x, own);
    };
    Type i64 = l.b.getI64Type();
    Scalars best =
        l.loop({x.dim(axis)}, {from(l.index(0)), l.integer(0, i64)},
               [&](Indices inner, ArrayRef<Scalar> state) -> Scalars {
                 Scalar value = from(inner[0]);
                 Scalar a = greatest ? state[0] : value,
                        b = greatest ? value : state[0];
                 Value better = l.compare(
                     last ? Compare::LessOrEqual : Compare::Less, a, b);
                 return {l.select(better, value, state[0]),
                         l.select(better, l.fromIndex(inner[0]), state[1])};
               });
    return best[1];
  });
  return success();
}

LogicalResult cumulate(Lowering &l) {
  Tensor x = l.in(0), y = l.out(0);
  auto given = onnx::knownInts(l.op->getOperand(1));
  if (!given || given->size() != 1)
    return l.refuse("axis must be known");
  std::int64_t axis = (*given)[0];
  if (axis < -x.rank() || axis >= x.rank())
    return l.refuse("axis " + llvm::Twine(axis));
  axis = axis < 0 ? axis + x.rank() : axis;
  const bool exclusive = l.node.integer("exclusive") != 0,
             reverse = l.node.integer("reverse") != 0,
             isSum = l.op->getName().stripDialect() == "CumSum";
  Dims outer(x.dims());
  const std::int64_t size = outer[axis];
  outer[axis] = 1;
  Type type = sumType(x.element());
  l.forEach(outer, [&](Indices at) {
    l.loop({size}, {l.number(isSum ? 0 : 1, type)},
           [&](Indices inner, ArrayRef<Scalar> state) -> Scalars {
             Index place(at);
             place[axis] = reverse ? l.b.create<arith::SubIOp>(
                                            l.loc, l.index(size - 1), inner[0])
                                         .getResult()
                                   : inner[0];
             Scalar value = l.cast(l.load(x, place), type);
             Scalar total =
                 isSum ? l.add(state[0], value) : l.mul(state[0], value);
             l.store(y, place,
                     l.cast(exclusive ? state[0] : total, x.element()));
             return {total};
           });
  });
  return success();
}

// The rank of each element among those of its line is counted; an element whose
// rank is below K is stored there. Equal elements rank by index; a NaN is greater
// than every number, as numpy sorts it, so that each rank is taken once.
LogicalResult topK(Lowering &l) {
  Tensor x = l.in(0), values = l.out(0), indices = l.out(1);
  const std::int64_t axis = l.axis(x.rank(), -1);
  const bool largest = l.node.integer("largest", 1) != 0;
  const std::int64_t k = values.dim(axis);
  Type i64 = l.b.getI64Type();
  auto isLess = [&](Scalar a, Scalar b) {
    Value less = l.compare(Compare::Less, a, b);
    if (!isFloat(x.element()))
      return less;
    Value no = l.b.create<arith::CmpFOp>(l.loc, arith::CmpFPredicate::ORD,
                                         a.value, a.value);
    return l.b.create<arith::OrIOp>(l.loc, less, l.bitAnd(no, l.isNan(b)))
        .getResult();
  };
  l.forEach(x.dims(), [&](Indices at) {
    Scalar own = l.load(x, at), place = l.fromIndex(at[axis]);
    Scalar rank = l.reduce(
        {x.dim(axis)}, l.integer(0, i64), [&](Indices inner, Scalar total) {
          Index other(at);
          other[axis] = inner[0];
          Scalar value = l.load(x, other);
          Value before = largest ? isLess(own, value) : isLess(value, own);
          Value same = l.compare(Compare::Equal, own, value);
          if (isFloat(x.element()))
            same = l.b.create<arith::OrIOp>(
                l.loc, same, l.bitAnd(l.isNan(own), l.isNan(value)));
          Value earlier = l.bitAnd(
              same, l.compare(Compare::Less, l.fromIndex(inner[0]), place));
          Value counts = l.b.create<arith::OrIOp>(l.loc, before, earlier);
          return l.add(total, l.cast(l.flag(counts), i64));
        });
    Value to =
        l.b.create<arith::IndexCastOp>(l.loc, l.b.getIndexType(), rank.value);
    l.ifThen(l.within(to, k), [&] {
      Index target(at);
      target[axis] = to;
      l.store(values, target, own);
      l.store(indices, target, place);
    });
  });
  return success();
}

} // namespace

LoweringRule lowerReductions(llvm::StringRef name) {
  if (name.starts_with("Reduce"))
    return reduce;
  return llvm::StringSwitch<LoweringRule>(name)
      .Cases("ArgMax", "ArgMin", argument)
      .Cases("CumSum", "CumProd", cumulate)
      .Case("TopK", topK)
      .Default(nullptr);
}

} // namespace ingot::graph
