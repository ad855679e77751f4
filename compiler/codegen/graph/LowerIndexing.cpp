// Operators whose positions are values: gathers, scatters, caches.
#include "compiler/codegen/graph/Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace ingot::graph {
namespace {

LogicalResult gather(Lowering &l) {
  Tensor data = l.in(0), indices = l.in(1), y = l.out(0);
  const std::int64_t axis = l.axis(data.rank(), 0);
  if (y.type.getNumElements() > 0 && data.dim(axis) == 0)
    return l.refuse("nothing to gather from");
  l.fill(y, [&](Indices at) {
    Scalar index = l.load(indices, at.slice(axis, indices.rank()));
    Index from(at.take_front(axis));
    from.push_back(l.toIndex(index, data.dim(axis)));
    llvm::append_range(from, at.drop_front(axis + indices.rank()));
    return l.load(data, from);
  });
  return success();
}

LogicalResult gatherElements(Lowering &l) {
  Tensor data = l.in(0), indices = l.in(1), y = l.out(0);
  const std::int64_t axis = l.axis(data.rank(), 0);
  if (y.type.getNumElements() > 0 && data.dim(axis) == 0)
    return l.refuse("nothing to gather from");
  l.fill(y, [&](Indices at) {
    Index from(at);
    from[axis] = l.toIndex(l.load(indices, at), data.dim(axis));
    return l.load(data, from);
  });
  return success();
}

LogicalResult gatherNd(Lowering &l) {
  Tensor data = l.in(0), indices = l.in(1), y = l.out(0);
  const std::int64_t batch = l.node.integer("batch_dims");
  const std::int64_t tuple = indices.dims().back(), head = indices.rank() - 1;
  if (y.type.getNumElements() > 0 && data.type.getNumElements() == 0)
    return l.refuse("nothing to gather from");
  l.fill(y, [&](Indices at) {
    Index from(at.take_front(batch));
    Index place(at.take_front(head));
    place.push_back({});
    for (std::int64_t i = 0; i < tuple; ++i) {
      place.back() = l.index(i);
      from.push_back(l.toIndex(l.load(indices, place), data.dim(batch + i)));
    }
    llvm::append_range(from, at.drop_front(head));
    return l.load(data, from);
  });
  return success();
}

// What an update makes of what is there.
FailureOr<Scalar> combine(Lowering &l, StringRef how, Scalar old,
                          Scalar update) {
  if (how == "none")
    return update;
  if (how == "add")
    return l.add(old, update);
  if (how == "mul")
    return l.mul(old, update);
  if (how == "max")
    return l.max(old, update);
  if (how == "min")
    return l.min(old, update);
  return failure();
}

bool knowsReduction(StringRef how) {
  return llvm::is_contained({"none", "add", "mul", "max", "min"}, how);
}

void copy(Lowering &l, Tensor from, Tensor to) {
  l.fill(to, [&](Indices at) { return l.load(from, at); });
}

LogicalResult scatterElements(Lowering &l) {
  Tensor data = l.in(0), indices = l.in(1), updates = l.in(2), y = l.out(0);
  const std::int64_t axis = l.axis(data.rank(), 0);
  StringRef how = l.node.text("reduction");
  if (!knowsReduction(how) || isBool(data.element()))
    return l.refuse("reduction \"" + how + "\"");
  copy(l, data, y);
  l.forEach(indices.dims(), [&](Indices at) {
    Index to(at);
    to[axis] = l.toIndex(l.load(indices, at), data.dim(axis));
    l.store(y, to, *combine(l, how, l.load(y, to), l.load(updates, at)));
  });
  return success();
}

LogicalResult scatterNd(Lowering &l) {
  Tensor data = l.in(0), indices = l.in(1), updates = l.in(2), y = l.out(0);
  StringRef how = l.node.text("reduction");
  if (!knowsReduction(how) || (isBool(data.element()) && how != "none"))
    return l.refuse("reduction \"" + how + "\"");
  const std::int64_t tuple = indices.dims().back(), head = indices.rank() - 1;
  copy(l, data, y);
  l.forEach(updates.dims(), [&](Indices at) {
    Index place(at.take_front(head)), to;
    place.push_back({});
    for (std::int64_t i = 0; i < tuple; ++i) {
      place.back() = l.index(i);
      to.push_back(l.toIndex(l.load(indices, place), data.dim(i)));
    }
    llvm::append_range(to, at.drop_front(head));
    l.store(y, to, *combine(l, how, l.load(y, to), l.load(updates, at)));
  });
  return success();
}

LogicalResult oneHot(Lowering &l) {
  Tensor indices = l.in(0), values = l.in(2), y = l.out(0);
  const std::int64_t axis = l.axis(y.rank(), -1);
  const std::int64_t depth = y.dim(axis);
  l.fill(y, [&](Indices at) {
    Index from(at);
    from.erase(from.begin() + axis);
    Type i64 = l.b.getI64Type();
    Scalar index = l.cast(l.load(indices, from), i64);
    Scalar counted = l.select(l.compare(Compare::Less, index, l.zero(i64)),
                              l.add(index, l.integer(depth, i64)), index);
    Value is = l.compare(Compare::Equal, counted, l.fromIndex(at[axis]));
    return l.select(is, l.load(values, Index{l.index(1)}),
                    l.load(values, Index{l.index(0)}));
  });
  return success();
}

LogicalResult reverseSequence(Lowering &l) {
  Tensor x = l.in(0), lengths = l.in(1), y = l.out(0);
  const std::int64_t time = l.node.integer("time_axis", 0),
                     batch = l.node.integer("batch_axis", 1);
  l.fill(y, [&](Indices at) {
    Scalar place = l.fromIndex(at[time]);
    Scalar length = l.cast(l.load(lengths, Index{at[batch]}), l.b.getI64Type());
    Scalar mirrored = l.sub(l.sub(length, l.integer(1, place.type)), place);
    Index from(at);
    from[time] = l.toIndex(
        l.select(l.compare(Compare::Less, place, length), mirrored, place),
        x.dim(time));
    return l.load(x, from);
  });
  return success();
}

// Row b of the cache gets its update from write_indices[b] on; "circular" starts
// again at the beginning.
LogicalResult tensorScatter(Lowering &l) {
  Tensor cache = l.in(0), update = l.in(1), y = l.out(0);
  const std::int64_t axis = l.axis(cache.rank(), -2);
  StringRef mode = l.node.text("mode");
  if (axis == 0 || (mode != "linear" && mode != "circular"))
    return l.refuse("axis 0, or mode \"" + mode + "\"");
  copy(l, cache, y);
  l.forEach(update.dims(), [&](Indices at) {
    Value place = at[axis];
    if (l.has(2)) {
      Scalar begin = l.cast(l.load(l.in(2), Index{at[0]}), l.b.getI64Type());
      place = l.addIndex(place, l.b.create<arith::IndexCastOp>(
                                    l.loc, l.b.getIndexType(), begin.value));
    }
    if (mode == "circular")
      place = l.remIndex(place, cache.dim(axis));
    l.ifThen(l.within(place, cache.dim(axis)), [&] {
      Index to(at);
      to[axis] = place;
      l.store(y, to, l.load(update, at));
    });
  });
  return success();
}

} // namespace

LoweringRule lowerIndexing(llvm::StringRef name) {
  return llvm::StringSwitch<LoweringRule>(name)
      .Case("Gather", gather)
      .Case("GatherElements", gatherElements)
      .Case("GatherND", gatherNd)
      .Case("ScatterElements", scatterElements)
      .Case("ScatterND", scatterNd)
      .Case("OneHot", oneHot)
      .Case("ReverseSequence", reverseSequence)
      .Case("TensorScatter", tensorScatter)
      .Default(nullptr);
}

} // namespace ingot::graph
