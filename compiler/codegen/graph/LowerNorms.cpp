// Softmax and normalisations. Statistics of halves and bfloat16 are float32
// (stash_type 1), whatever the type of the elements.
#include "compiler/codegen/graph/Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace ingot::graph {
namespace {

double real(Lowering &l, StringRef name) {
  return l.op->getAttrOfType<FloatAttr>(name).getValueAsDouble();
}

Index with(Indices at, std::int64_t axis, Value value) {
  Index own(at);
  own[axis] = value;
  return own;
}

// Each line of the axis: its greatest element, then the sum of exponentials.
LogicalResult softmax(Lowering &l) {
  StringRef name = l.op->getName().stripDialect();
  Tensor x = l.in(0), y = l.out(0);
  if (x.rank() == 0)
    return l.refuse("a scalar");
  const std::int64_t axis = l.axis(x.rank(), -1), size = x.dim(axis);
  Type type = wideType(x.element()), i64 = l.b.getI64Type();
  Dims outer(x.dims());
  outer[axis] = 1;
  l.forEach(outer, [&](Indices line) {
    auto at = [&](Value i) {
      return l.cast(l.load(x, with(line, axis, i)), type);
    };
    Scalars most =
        l.loop({size}, {l.lowest(type), l.integer(0, i64)},
               [&](Indices i, ArrayRef<Scalar> state) -> Scalars {
                 Scalar value = at(i[0]);
                 Value better = l.compare(Compare::Less, state[0], value);
                 return {l.max(state[0], value),
                         l.select(better, l.fromIndex(i[0]), state[1])};
               });
    if (name == "Hardmax") {
      l.forEach({size}, [&](Indices i) {
        Value is = l.compare(Compare::Equal, l.fromIndex(i[0]), most[1]);
        l.store(y, with(line, axis, i[0]),
                l.select(is, l.number(1, y.element()), l.zero(y.element())));
      });
      return;
    }
    Scalar sum = l.reduce({size}, l.zero(type), [&](Indices i, Scalar total) {
      return l.add(total, l.unary("exp", l.sub(at(i[0]), most[0])));
    });
    Scalar log = name == "LogSoftmax" ? l.unary("log", sum) : Scalar();
    l.forEach({size}, [&](Indices i) {
      Scalar shifted = l.sub(at(i[0]), most[0]);
      Scalar value = name == "LogSoftmax" ? l.sub(shifted, log)
                                          : l.div(l.unary("exp", shifted), sum);
      l.store(y, with(line, axis, i[0]), l.cast(value, y.element()));
    });
  });
  return success();
}

// The tensor as rows of the dimensions from axis on. Scale and bias broadcast
// to the tensor.
struct Rows {
  std::int64_t count = 1, size = 1;
  Dims inner;
};
Rows rowsFrom(Tensor x, std::int64_t axis) {
  Rows rows;
  for (auto [i, dim] : llvm::enumerate(x.dims()))
    if (std::int64_t(i) < axis)
      rows.count *= dim;
    else {
      rows.size *= dim;
      rows.inner.push_back(dim);
    }
  return rows;
}

// The index in `inner` dimensions of a position in a row.
Index unflatten(Lowering &l, Value place, ArrayRef<std::int64_t> inner) {
  Index at(inner.size());
  for (std::size_t i = inner.size(); i-- > 0;) {
    at[i] = i == 0 ? place : l.remIndex(place, inner[i]);
    place = l.divIndex(place, inner[i]);
  }
  return at;
}

struct Statistics {
  Scalar mean, inverse; // 1 / sqrt(variance + epsilon)
};

// Of `size` values; without `centre` of the values themselves.
Statistics statistics(Lowering &l, std::int64_t size, Type type, bool centre,
                      double epsilon, llvm::function_ref<Scalar(Value)> value) {
  Scalar count = l.number(double(size), type), mean = l.zero(type);
  if (centre)
    mean = l.div(l.reduce({size}, l.zero(type),
                          [&](Indices i, Scalar total) {
                            return l.add(total, value(i[0]));
                          }),
                 count);
  Scalar squares = l.reduce({size}, l.zero(type), [&](Indices i, Scalar total) {
    Scalar x = centre ? l.sub(value(i[0]), mean) : value(i[0]);
    return l.add(total, l.mul(x, x));
  });
  Scalar variance = l.add(l.div(squares, count), l.number(epsilon, type));
  return {mean, l.div(l.number(1, type), l.unary("sqrt", variance))};
}

LogicalResult layerNorm(Lowering &l) {
  const bool centre = l.op->getName().stripDialect() == "LayerNormalization";
  Tensor x = l.in(0), scale = l.in(1), y = l.out(0);
  const std::int64_t axis = l.axis(x.rank(), -1);
  Rows rows = rowsFrom(x, axis);
  Type type = wideType(x.element());
  const bool hasBias = centre && l.has(2);
  Tensor bias = hasBias ? l.in(2) : Tensor();
  Tensor from = l.reshaped(x, {rows.count, rows.size}),
         to = l.reshaped(y, {rows.count, rows.size});
  Dims outer(x.dims().take_front(axis));
  auto line = [&](unsigned i) {
    return l.wants(i) ? l.reshaped(l.out(i), {rows.count}) : Tensor();
  };
  Tensor means = line(1), inverses = line(2);
  l.forEach({rows.count}, [&](Indices row) {
    auto value = [&](Value i) {
      return l.cast(l.load(from, Index{row[0], i}), type);
    };
    Statistics s =
        statistics(l, rows.size, type, centre, real(l, "epsilon"), value);
    if (l.wants(1))
      l.store(means, row, l.cast(s.mean, means.element()));
    if (l.wants(2))
      l.store(inverses, row, l.cast(s.inverse, inverses.element()));
    l.forEach({rows.size}, [&](Indices i) {
      Index place = unflatten(l, row[0], outer);
      llvm::append_range(place, unflatten(l, i[0], rows.inner));
      Scalar shifted = centre ? l.sub(value(i[0]), s.mean) : value(i[0]);
      // Rounded to the type of X before it is scaled, as the standard says.
      Scalar normal =
          l.cast(l.cast(l.mul(shifted, s.inverse), x.element()), type);
      Scalar result =
          l.mul(normal, l.cast(l.loadBroadcast(scale, place), type));
      if (hasBias)
        result = l.add(result, l.cast(l.loadBroadcast(bias, place), type));
      l.store(to, Index{row[0], i[0]}, l.cast(result, y.element()));
    });
  });
  return success();
}

// A norm of a sum; output 3 is the sum itself.
LogicalResult skipNorm(Lowering &l) {
  const bool centre =
      l.op->getName().stripDialect() == "SkipLayerNormalization";
  Tensor x = l.in(0), skip = l.in(1), gamma = l.in(2), y = l.out(0);
  const unsigned biasAt = centre ? 4 : 3;
  const std::int64_t size = x.dims().back();
  Rows rows = rowsFrom(x, x.rank() - 1);
  Type type = wideType(x.element());
  Tensor sum = l.wants(3) ? l.out(3) : l.temporary(x.dims(), x.element());
  l.fill(sum, [&](Indices at) {
    Scalar value = l.add(l.cast(l.load(x, at), type),
                         l.cast(l.loadBroadcast(skip, at), type));
    if (l.has(biasAt))
      value =
          l.add(value, l.cast(l.load(l.in(biasAt), Index{at.back()}), type));
    return l.cast(value, x.element());
  });
  Tensor from = l.reshaped(sum, {rows.count, size}),
         to = l.reshaped(y, {rows.count, size});
  Tensor means = l.wants(1) ? l.reshaped(l.out(1), {rows.count}) : Tensor(),
         inverses = l.wants(2) ? l.reshaped(l.out(2), {rows.count}) : Tensor();
  l.forEach({rows.count}, [&](Indices row) {
    auto value = [&](Value i) {
      return l.cast(l.load(from, Index{row[0], i}), type);
    };
    Statistics s = statistics(l, size, type, centre, real(l, "epsilon"), value);
    if (l.wants(1))
      l.store(means, row, l.cast(s.mean, means.element()));
    if (l.wants(2))
      l.store(inverses, row, l.cast(s.inverse, inverses.element()));
    l.forEach({size}, [&](Indices i) {
      Scalar shifted = centre ? l.sub(value(i[0]), s.mean) : value(i[0]);
      Scalar result =
          l.mul(l.mul(shifted, s.inverse), l.cast(l.load(gamma, i), type));
      if (centre && l.has(3))
        result = l.add(result, l.cast(l.load(l.in(3), i), type));
      l.store(to, Index{row[0], i[0]}, l.cast(result, y.element()));
    });
  });
  return success();
}

LogicalResult batchNorm(Lowering &l) {
  Tensor x = l.in(0), y = l.out(0);
  Type type = wideType(x.element());
  l.fill(y, [&](Indices at) {
    Index channel{x.rank() > 1 ? at[1] : l.index(0)};
    auto of = [&](unsigned i) {
      return l.cast(l.load(l.in(i), channel), type);
    };
    Scalar deviation =
        l.unary("sqrt", l.add(of(4), l.number(real(l, "epsilon"), type)));
    Scalar normal = l.div(l.sub(l.cast(l.load(x, at), type), of(3)), deviation);
    return l.cast(l.add(l.mul(normal, of(1)), of(2)), y.element());
  });
  return success();
}

// InstanceNormalization is GroupNormalization with a group for each channel.
LogicalResult groupNorm(Lowering &l) {
  Tensor x = l.in(0), scale = l.in(1), bias = l.in(2), y = l.out(0);
  if (x.rank() < 2)
    return l.refuse("expected channels");
  const bool isInstance =
      l.op->getName().stripDialect() == "InstanceNormalization";
  const std::int64_t channels = x.dim(1);
  const std::int64_t groups =
      isInstance ? channels : l.node.integer("num_groups");
  if (groups < 1 || channels % groups != 0)
    return l.refuse(llvm::Twine(channels) + " channels in " +
                    llvm::Twine(groups) + " groups");
  const std::int64_t pixels =
      x.dim(0) == 0 || channels == 0
          ? 0
          : x.type.getNumElements() / (x.dim(0) * channels);
  const std::int64_t size = channels / groups * pixels;
  Type type = wideType(x.element());
  Tensor from = l.reshaped(x, {x.dim(0), groups, size}),
         to = l.reshaped(y, {x.dim(0), groups, size});
  l.forEach({x.dim(0), groups}, [&](Indices at) {
    auto value = [&](Value i) {
      return l.cast(l.load(from, Index{at[0], at[1], i}), type);
    };
    Statistics s = statistics(l, size, type, true, real(l, "epsilon"), value);
    l.forEach({size}, [&](Indices i) {
      Value channel =
          l.addIndex(l.mulIndex(at[1], channels / groups),
                     l.divIndex(i[0], std::max<std::int64_t>(pixels, 1)));
      auto of = [&](Tensor t) {
        return l.cast(l.load(t, Index{channel}), type);
      };
      Scalar normal = l.mul(l.sub(value(i[0]), s.mean), s.inverse);
      l.store(to, Index{at[0], at[1], i[0]},
              l.cast(l.add(l.mul(normal, of(scale)), of(bias)), y.element()));
    });
  });
  return success();
}

LogicalResult lpNorm(Lowering &l) {
  Tensor x = l.in(0), y = l.out(0);
  const std::int64_t axis = l.axis(x.rank(), -1), p = l.node.integer("p", 2);
  if (p != 1 && p != 2)
    return l.refuse("p " + llvm::Twine(p));
  Type type = wideType(x.element());
  l.fill(y, [&](Indices at) {
    Scalar sum =
        l.reduce({x.dim(axis)}, l.zero(type), [&](Indices i, Scalar total) {
          Scalar v = l.cast(l.load(x, with(at, axis, i[0])), type);
          return l.add(total, p == 1 ? l.abs(v) : l.mul(v, v));
        });
    Scalar norm = p == 1 ? sum : l.unary("sqrt", sum);
    // A line of zeros stays zero.
    Value isZero = l.compare(Compare::Equal, norm, l.zero(type));
    Scalar value = l.div(l.cast(l.load(x, at), type),
                         l.select(isZero, l.number(1, type), norm));
    return l.cast(value, y.element());
  });
  return success();
}

LogicalResult meanVariance(Lowering &l) {
  Tensor x = l.in(0), y = l.out(0);
  Dims axes = l.node.integers("axes").value_or(Dims{0, 2, 3});
  Dims extents;
  double count = 1;
  for (std::int64_t &axis : axes) {
    axis = axis < 0 ? axis + x.rank() : axis;
    if (axis < 0 || axis >= x.rank())
      return l.refuse("axes");
    extents.push_back(x.dim(axis));
    count *= double(x.dim(axis));
  }
  Type type = wideType(x.element());
  l.fill(y, [&](Indices at) {
    auto value = [&](Indices inner) {
      Index own(at);
      for (auto [axis, place] : llvm::zip(axes, inner))
        own[axis] = place;
      return l.cast(l.load(x, own), type);
    };
    Scalar n = l.number(count, type);
    Scalar sum = l.reduce(extents, l.zero(type), [&](Indices i, Scalar total) {
      return l.add(total, value(i));
    });
    Scalar mean = l.div(sum, n);
    // Of the differences: the mean of the squares less the square of the mean
    // cancels, below zero even.
    Scalar squares =
        l.reduce(extents, l.zero(type), [&](Indices i, Scalar total) {
          Scalar v = l.sub(value(i), mean);
          return l.add(total, l.mul(v, v));
        });
    Scalar deviation = l.unary("sqrt", l.div(squares, n));
    Scalar result = l.div(l.sub(l.cast(l.load(x, at), type), mean),
                          l.add(deviation, l.number(1e-9, type)));
    return l.cast(result, y.element());
  });
  return success();
}

LogicalResult lrn(Lowering &l) {
  Tensor x = l.in(0), y = l.out(0);
  const std::int64_t size = l.node.integer("size");
  if (size < 1 || x.rank() < 2)
    return l.refuse("size " + llvm::Twine(size));
  Type type = wideType(x.element());
  l.fill(y, [&](Indices at) {
    Scalar squares =
        l.reduce({size}, l.zero(type), [&](Indices i, Scalar total) {
          Value c = l.addIndex(l.addIndex(at[1], i[0]), -((size - 1) / 2));
          Scalar v = l.ifElse(
              l.within(c, x.dim(1)),
              [&] { return l.cast(l.load(x, with(at, 1, c)), type); },
              l.zero(type));
          return l.add(total, l.mul(v, v));
        });
    Scalar base =
        l.add(l.number(real(l, "bias"), type),
              l.mul(l.number(real(l, "alpha") / double(size), type), squares));
    Scalar power = l.pow(base, l.number(real(l, "beta"), type));
    return l.cast(l.div(l.cast(l.load(x, at), type), power), y.element());
  });
  return success();
}

} // namespace

LoweringRule lowerNorms(llvm::StringRef name) {
  return llvm::StringSwitch<LoweringRule>(name)
      .Cases("Softmax", "LogSoftmax", "Hardmax", softmax)
      .Cases("LayerNormalization", "RMSNormalization", layerNorm)
      .Cases("SkipLayerNormalization", "SkipSimplifiedLayerNormalization",
             skipNorm)
      .Case("BatchNormalization", batchNorm)
      .Cases("InstanceNormalization", "GroupNormalization", groupNorm)
      .Case("LpNormalization", lpNorm)
      .Case("MeanVarianceNormalization", meanVariance)
      .Case("LRN", lrn)
      .Default(nullptr);
}

} // namespace ingot::graph
