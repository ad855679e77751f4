// Convolutions and pools of any number of spatial dimensions.
#include "compiler/codegen/graph/Lowering.h"

#include "dialects/onnx/Windows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace ingot::graph {
namespace {

// The input positions under window element `k` of output `at`, and whether all
// are inside.
std::pair<Index, Value> under(Lowering &l, const onnx::WindowPlan &plan,
                              Tensor x, Indices spatial, Indices k) {
  Value is = l.b.create<arith::ConstantOp>(l.loc, l.b.getBoolAttr(true));
  Index place;
  for (std::size_t i = 0; i < plan.kernel.size(); ++i) {
    Value p = l.addIndex(l.addIndex(l.mulIndex(spatial[i], plan.strides[i]),
                                    l.mulIndex(k[i], plan.dilations[i])),
                         -plan.padsBefore[i]);
    is = l.bitAnd(is, l.within(p, x.dim(2 + i)));
    place.push_back(p);
  }
  return {place, is};
}

LogicalResult conv(Lowering &l) {
  auto plan = onnx::planWindows(l.op);
  if (failed(plan))
    return failure();
  Tensor x = l.in(0), w = l.in(1), y = l.out(0);
  const std::int64_t group = l.node.integer("group", 1);
  const std::int64_t perGroup = w.dim(1), out = w.dim(0);
  if (group < 1 || perGroup * group != x.dim(1) || out % group != 0)
    return l.refuse(llvm::Twine(x.dim(1)) + " channels in " +
                    llvm::Twine(group) + " groups of " + llvm::Twine(perGroup));
  Type type = sumType(y.element());
  const bool hasBias = l.has(2);
  Tensor bias = hasBias ? l.in(2) : Tensor();
  l.fill(y, [&](Indices at) {
    Scalar start =
        hasBias ? l.cast(l.load(bias, Index{at[1]}), type) : l.zero(type);
    Value first = l.mulIndex(l.divIndex(at[1], out / group), perGroup);
    Dims loops{perGroup};
    llvm::append_range(loops, plan->kernel);
    Scalar sum = l.reduce(loops, start, [&](Indices inner, Scalar sum) {
      auto [place, is] =
          under(l, *plan, x, at.drop_front(2), inner.drop_front());
      Scalar value = l.ifElse(
          is,
          [&] {
            Index from{at[0], l.addIndex(first, inner[0])};
            llvm::append_range(from, place);
            Index weight{at[1]};
            llvm::append_range(weight, inner);
            return l.mul(l.cast(l.load(x, from), type),
                         l.cast(l.load(w, weight), type));
          },
          l.zero(type));
      return l.add(sum, value);
    });
    return l.cast(sum, y.element());
  });
  return success();
}

// Each input element is spread over the output.
LogicalResult convTranspose(Lowering &l) {
  auto plan = onnx::planWindows(l.op);
  if (failed(plan))
    return failure();
  Tensor x = l.in(0), w = l.in(1), y = l.out(0);
  const std::int64_t group = l.node.integer("group", 1);
  if (group < 1 || x.dim(1) % group != 0 || w.dim(0) != x.dim(1))
    return l.refuse(llvm::Twine(x.dim(1)) + " channels in " +
                    llvm::Twine(group) + " groups");
  const std::int64_t perGroup = w.dim(1);
  Type type = sumType(y.element());
  const bool hasBias = l.has(2);
  Tensor sum = l.temporary(y.dims(), type);
  l.fill(sum, [&](Indices at) {
    return hasBias ? l.cast(l.load(l.in(2), Index{at[1]}), type) : l.zero(type);
  });
  Dims loops(x.dims());
  loops.push_back(perGroup);
  llvm::append_range(loops, plan->kernel);
  const std::size_t spatial = plan->kernel.size();
  l.forEach(loops, [&](Indices at) {
    Indices from = at.take_front(x.rank()), k = at.take_back(spatial);
    Value m = at[x.rank()];
    Value is = l.b.create<arith::ConstantOp>(l.loc, l.b.getBoolAttr(true));
    Index to{at[0],
             l.addIndex(
                 l.mulIndex(l.divIndex(at[1], x.dim(1) / group), perGroup), m)};
    for (std::size_t i = 0; i < spatial; ++i) {
      Value p = l.addIndex(l.addIndex(l.mulIndex(at[2 + i], plan->strides[i]),
                                      l.mulIndex(k[i], plan->dilations[i])),
                           -plan->padsBefore[i]);
      is = l.bitAnd(is, l.within(p, y.dim(2 + i)));
      to.push_back(p);
    }
    l.ifThen(is, [&] {
      Index weight{at[1], m};
      llvm::append_range(weight, k);
      Scalar product =
          l.mul(l.cast(l.load(x, from), type), l.cast(l.load(w, weight), type));
      l.store(sum, to, l.add(l.load(sum, to), product));
    });
  });
  l.fill(y, [&](Indices at) { return l.cast(l.load(sum, at), y.element()); });
  return success();
}

LogicalResult maxPool(Lowering &l) {
  auto plan = onnx::planWindows(l.op);
  if (failed(plan))
    return failure();
  Tensor x = l.in(0), y = l.out(0);
  const bool columnMajor = l.node.integer("storage_order") != 0;
  Type i64 = l.b.getI64Type();
  const bool wantsIndices = l.wants(1);
  Tensor indices = wantsIndices ? l.out(1) : Tensor();
  l.forEach(y.dims(), [&](Indices at) {
    Scalars best =
        l.loop(plan->kernel, {l.lowest(x.element()), l.integer(-1, i64)},
               [&](Indices k, ArrayRef<Scalar> s) -> Scalars {
                 auto [place, is] = under(l, *plan, x, at.drop_front(2), k);
                 Index from{at[0], at[1]};
                 for (auto [i, p] : llvm::enumerate(place))
                   from.push_back(l.inside(p, x.dim(2 + i)));
                 Scalar value = l.load(x, from);
                 // The first element counts even where it is the lowest value.
                 Value isFirst = l.compare(Compare::Less, s[1], l.zero(i64));
                 Value better = l.b.create<arith::OrIOp>(
                     l.loc, l.compare(Compare::Less, s[0], value), isFirst);
                 better = l.bitAnd(better, is);
                 Value flat =
                     l.addIndex(l.mulIndex(from[0], x.dim(1)), from[1]);
                 if (columnMajor) {
                   Value inner = l.index(0);
                   for (std::int64_t i = x.rank(); i-- > 2;)
                     inner = l.addIndex(l.mulIndex(inner, x.dim(i)), from[i]);
                   for (std::int64_t i = 2; i < x.rank(); ++i)
                     flat = l.mulIndex(flat, x.dim(i));
                   flat = l.addIndex(flat, inner);
                 } else {
                   for (std::int64_t i = 2; i < x.rank(); ++i)
                     flat = l.addIndex(l.mulIndex(flat, x.dim(i)), from[i]);
                 }
                 return {l.select(better, value, s[0]),
                         l.select(better, l.fromIndex(flat), s[1])};
               });
    l.store(y, at, best[0]);
    if (wantsIndices)
      l.store(indices, at, best[1]);
  });
  return success();
}

// Means and norms: a sum over what is inside, then what becomes of it.
LogicalResult sumPool(Lowering &l) {
  auto plan = onnx::planWindows(l.op);
  if (failed(plan))
    return failure();
  Tensor x = l.in(0), y = l.out(0);
  const bool isMean = l.op->getName().stripDialect() == "AveragePool",
             countsPads = l.node.integer("count_include_pad") != 0;
  const std::int64_t p = l.node.integer("p", 2);
  if (!isMean && p < 1)
    return l.refuse("p " + llvm::Twine(p));
  Type type = sumType(y.element());
  l.fill(y, [&](Indices at) {
    Scalars sums = l.loop(
        plan->kernel, {l.zero(type), l.zero(type)},
        [&](Indices k, ArrayRef<Scalar> s) -> Scalars {
          auto [place, is] = under(l, *plan, x, at.drop_front(2), k);
          Scalar value = l.ifElse(
              is,
              [&] {
                Index from{at[0], at[1]};
                llvm::append_range(from, place);
                Scalar v = l.cast(l.load(x, from), type);
                if (isMean)
                  return v;
                if (p == 1)
                  return l.abs(v);
                return p == 2 ? l.mul(v, v)
                              : l.pow(l.abs(v), l.number(double(p), type));
              },
              l.zero(type));
          // Padding counts, what a rounded-up window has beyond it does not.
          Value counts = is;
          if (countsPads) {
            counts =
                l.b.create<arith::ConstantOp>(l.loc, l.b.getBoolAttr(true));
            for (std::size_t i = 0; i < place.size(); ++i)
              counts = l.bitAnd(
                  counts, l.within(l.addIndex(place[i], plan->padsBefore[i]),
                                   x.dim(2 + i) + plan->padsBefore[i] +
                                       plan->padsAfter[i]));
          }
          Scalar one = l.select(counts, l.number(1, type), l.zero(type));
          return {l.add(s[0], value), l.add(s[1], one)};
        });
    Scalar result = sums[0];
    if (isMean)
      result = l.div(sums[0], sums[1]);
    else if (p == 2)
      result = l.unary("sqrt", sums[0]);
    else if (p != 1)
      result = l.pow(sums[0], l.number(1.0 / double(p), type));
    return l.cast(result, y.element());
  });
  return success();
}

LogicalResult global(Lowering &l) {
  Tensor x = l.in(0), y = l.out(0);
  const bool isMean = l.op->getName().stripDialect() == "GlobalAveragePool";
  Dims spatial(x.dims().drop_front(2));
  double count = 1;
  for (std::int64_t dim : spatial)
    count *= double(dim);
  Type type = isMean ? sumType(x.element()) : x.element();
  l.fill(y, [&](Indices at) {
    Scalar start = isMean ? l.zero(type) : l.lowest(type);
    Scalar total = l.reduce(spatial, start, [&](Indices k, Scalar total) {
      Index from{at[0], at[1]};
      llvm::append_range(from, k);
      Scalar value = l.cast(l.load(x, from), type);
      return isMean ? l.add(total, value) : l.max(total, value);
    });
    return l.cast(isMean ? l.div(total, l.number(count, type)) : total,
                  y.element());
  });
  return success();
}

} // namespace

LoweringRule lowerWindows(llvm::StringRef name) {
  return llvm::StringSwitch<LoweringRule>(name)
      .Case("Conv", conv)
      .Case("ConvTranspose", convTranspose)
      .Case("MaxPool", maxPool)
      .Cases("AveragePool", "LpPool", sumPool)
      .Cases("GlobalAveragePool", "GlobalMaxPool", global)
      .Default(nullptr);
}

} // namespace ingot::graph
