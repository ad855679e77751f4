// Types of operators that move elements or tell a shape.
#include "dialects/onnx/Inference.h"

using namespace mlir;

namespace ingot::onnx {
namespace {

Type int64(Inference &in) { return IntegerType::get(in.op->getContext(), 64); }

FailureOr<Types> constant(Inference &in) {
  auto type = cast<ShapedType>(cast<ConstantOp>(in.op).getValue().getType());
  return in.one(type.getShape(), type.getElementType());
}

// Its type is what it says: nothing else holds it.
FailureOr<Types> weight(Inference &in) {
  return Types{in.op->getResult(0).getType()};
}

FailureOr<Types> none(Inference &in) {
  return Types{NoneType::get(in.op->getContext())};
}

FailureOr<Types> shape(Inference &in) {
  if (!in.type(0).hasRank())
    return in.one({kUnknown}, int64(in));
  auto op = cast<ShapeOp>(in.op);
  std::int64_t rank = in.rank(0);
  auto clampTo = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  std::int64_t begin = clampTo(op.getStart());
  std::int64_t end = op.getEnd() ? clampTo(*op.getEnd()) : rank;
  return in.one({std::max<std::int64_t>(0, end - begin)}, int64(in));
}

FailureOr<Types> size(Inference &in) { return in.one({}, int64(in)); }

// Dimensions that the values of a shape input give, and how many there are;
// unknown rank where even that is not known.
std::optional<SmallVector<std::optional<std::int64_t>>>
shapeInput(Inference &in, unsigned index) {
  std::optional<ShapeValue> value = shapeValue(in.value(index));
  if (!value || value->dims.size() != 1)
    return std::nullopt;
  return value->elements;
}

FailureOr<Types> reshape(Inference &in) {
  auto wanted = shapeInput(in, 1);
  if (!wanted)
    return in.unranked(in.element(0));
  const bool allowZero = in.integer("allowzero") != 0;
  Dims dims;
  std::optional<std::size_t> rest;
  bool isKnown = in.type(0).hasStaticShape();
  std::int64_t product = 1;
  for (auto [i, dim] : llvm::enumerate(*wanted)) {
    if (!dim) {
      dims.push_back(kUnknown);
      isKnown = false;
      continue;
    }
    if (*dim < -1)
      return in.fail("a dimension of " + llvm::Twine(*dim));
    std::int64_t value = *dim;
    if (value == -1) {
      if (rest)
        return in.fail("-1 is given twice");
      rest = i;
      dims.push_back(kUnknown);
      continue;
    }
    if (value == 0 && !allowZero) {
      if (!in.type(0).hasRank())
        value = kUnknown;
      else if (std::int64_t(i) >= in.rank(0))
        return in.fail("dimension " + llvm::Twine(i) +
                       " is kept, but the input has rank " +
                       llvm::Twine(in.rank(0)));
      else
        value = in.dims(0)[i];
    }
    dims.push_back(value);
    if (value == kUnknown)
      isKnown = false;
    else if (llvm::MulOverflow(product, value, product))
      return in.fail("the shape does not fit 64 bits");
  }
  // Unknown dimensions cancel where each is kept.
  if (rest && !isKnown && in.type(0).hasRank()) {
    bool cancels = true;
    std::int64_t known = 1;
    for (auto [i, dim] : llvm::enumerate(in.dims(0))) {
      if (dim != kUnknown)
        known *= dim;
      else
        cancels &= i < wanted->size() && (*wanted)[i] == 0 && !allowZero;
    }
    for (auto dim : *wanted)
      cancels &= dim.has_value();
    if (cancels && product != 0 && known % product == 0)
      dims[*rest] = known / product;
    return in.one(dims, in.element(0));
  }
  if (!isKnown)
    return in.one(dims, in.element(0));
  std::int64_t total = in.type(0).getNumElements();
  if (rest) {
    if (product == 0 || total % product != 0)
      return in.fail(llvm::Twine(total) +
                     " elements do not fill whole dimensions of " +
                     llvm::Twine(product));
    dims[*rest] = total / product;
  } else if (total != product) {
    return in.fail(llvm::Twine(total) + " elements become " +
                   llvm::Twine(product));
  }
  return in.one(dims, in.element(0));
}

std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (a == 0 || b == 0)
    return 0;
  return a == kUnknown || b == kUnknown || llvm::MulOverflow(a, b, result)
             ? kUnknown
             : result;
}

FailureOr<Types> flatten(Inference &in) {
  std::int64_t axis = in.integer("axis", 1), rank = in.rank(0);
  if (axis < -rank || axis > rank)
    return in.fail("axis " + llvm::Twine(axis) + " is outside rank " +
                   llvm::Twine(rank));
  axis = axis < 0 ? axis + rank : axis;
  std::int64_t rows = 1, columns = 1;
  for (auto [i, dim] : llvm::enumerate(in.dims(0)))
    (std::int64_t(i) < axis ? rows : columns) =
        times(std::int64_t(i) < axis ? rows : columns, dim);
  return in.one({rows, columns}, in.element(0));
}

FailureOr<Types> squeeze(Inference &in) {
  Dims dims;
  if (!in.has(1)) {
    for (std::int64_t dim : in.dims(0)) {
      if (dim == kUnknown)
        return in.unranked(in.element(0));
      if (dim != 1)
        dims.push_back(dim);
    }
    return in.one(dims, in.element(0));
  }
  auto list = knownInts(in.value(1));
  if (!list)
    return in.unranked(in.element(0));
  FailureOr<Dims> axes = in.axes(*list, in.rank(0));
  if (failed(axes))
    return failure();
  for (auto [i, dim] : llvm::enumerate(in.dims(0))) {
    if (!llvm::is_contained(*axes, std::int64_t(i)))
      dims.push_back(dim);
    else if (dim != 1 && dim != kUnknown)
      return in.fail("dimension " + llvm::Twine(i) + " is " + llvm::Twine(dim) +
                     ", expected 1");
  }
  return in.one(dims, in.element(0));
}

FailureOr<Types> unsqueeze(Inference &in) {
  auto list = knownInts(in.value(1));
  if (!list)
    return in.unranked(in.element(0));
  std::int64_t rank = in.rank(0) + list->size();
  FailureOr<Dims> axes = in.axes(*list, rank);
  if (failed(axes))
    return failure();
  Dims dims;
  std::size_t from = 0;
  for (std::int64_t i = 0; i < rank; ++i)
    dims.push_back(llvm::is_contained(*axes, i) ? 1 : in.dims(0)[from++]);
  return in.one(dims, in.element(0));
}

FailureOr<Types> transpose(Inference &in) {
  Dims perm, dims;
  if (auto given = in.integers("perm"))
    perm = *given;
  else
    for (std::int64_t i = in.rank(0); i-- > 0;)
      perm.push_back(i);
  if (std::int64_t(perm.size()) != in.rank(0) ||
      failed(in.axes(perm, in.rank(0))))
    return in.fail("perm is not a permutation of " + llvm::Twine(in.rank(0)) +
                   " dimensions");
  for (std::int64_t from : perm)
    dims.push_back(in.dims(0)[from < 0 ? from + in.rank(0) : from]);
  return in.one(dims, in.element(0));
}

FailureOr<Types> concat(Inference &in) {
  FailureOr<std::int64_t> axis = in.axis(in.integer("axis"), in.rank(0));
  if (failed(axis))
    return failure();
  Dims dims(in.dims(0));
  for (unsigned i = 1; i < in.op->getNumOperands(); ++i) {
    if (failed(in.sameElements(0, i)))
      return failure();
    if (in.rank(i) != std::int64_t(dims.size()))
      return in.fail("inputs 0 and " + llvm::Twine(i) +
                     " have different ranks");
    for (auto [j, dim] : llvm::enumerate(in.dims(i))) {
      std::int64_t &own = dims[j];
      if (std::int64_t(j) == *axis)
        own = own == kUnknown || dim == kUnknown ? kUnknown : own + dim;
      else if (own == kUnknown)
        own = dim;
      else if (dim != kUnknown && dim != own)
        return in.fail("dimension " + llvm::Twine(j) + " is " +
                       llvm::Twine(own) + " and " + llvm::Twine(dim));
    }
  }
  return in.one(dims, in.element(0));
}

FailureOr<Types> split(Inference &in) {
  FailureOr<std::int64_t> axis = in.axis(in.integer("axis"), in.rank(0));
  if (failed(axis))
    return failure();
  std::int64_t parts = in.op->getNumResults(), size = in.dims(0)[*axis];
  if (std::int64_t count = in.integer("num_outputs", parts); count != parts)
    return in.fail("num_outputs is " + llvm::Twine(count) + ", but it has " +
                   llvm::Twine(parts) + " outputs");
  Dims sizes(parts, kUnknown);
  if (in.has(1)) {
    if (auto given = knownInts(in.value(1))) {
      if (std::int64_t(given->size()) != parts)
        return in.fail("split has " + llvm::Twine(given->size()) +
                       " sizes for " + llvm::Twine(parts) + " outputs");
      std::int64_t total = 0;
      for (std::int64_t one : *given)
        if (one < 0 || llvm::AddOverflow(total, one, total))
          return in.fail("a size of " + llvm::Twine(one));
      if (size != kUnknown && total != size)
        return in.fail("sizes add up to " + llvm::Twine(total) +
                       ", the dimension is " + llvm::Twine(size));
      sizes = *given;
    }
  } else if (size != kUnknown) {
    std::int64_t each = (size + parts - 1) / parts;
    for (std::int64_t i = 0; i < parts; ++i)
      sizes[i] = std::clamp<std::int64_t>(size - each * i, 0, each);
  }
  Types types;
  for (std::int64_t one : sizes) {
    Dims dims(in.dims(0));
    dims[*axis] = one;
    types.push_back(RankedTensorType::get(dims, in.element(0)));
  }
  return types;
}

FailureOr<Types> slice(Inference &in) {
  Dims dims(in.dims(0));
  auto starts = shapeValue(in.value(1)), ends = shapeValue(in.value(2));
  Dims axes;
  std::size_t count = starts ? starts->elements.size()
                      : ends ? ends->elements.size()
                             : 0;
  if (in.has(3)) {
    auto given = knownInts(in.value(3));
    if (!given)
      return in.one(Dims(dims.size(), kUnknown), in.element(0));
    axes = *given;
    count = axes.size();
  } else {
    if (!starts && !ends)
      return in.one(Dims(dims.size(), kUnknown), in.element(0));
    for (std::size_t i = 0; i < count; ++i)
      axes.push_back(i);
  }
  std::optional<ShapeValue> steps;
  if (in.has(4))
    steps = shapeValue(in.value(4));
  auto isOf = [&](const std::optional<ShapeValue> &list) {
    return !list || list->elements.size() == count;
  };
  if (!isOf(starts) || !isOf(ends) || !isOf(steps))
    return in.fail("starts, ends, axes and steps have different lengths");
  for (auto [i, given] : llvm::enumerate(axes)) {
    FailureOr<std::int64_t> axis = in.axis(given, in.rank(0));
    if (failed(axis))
      return failure();
    std::int64_t &dim = dims[*axis];
    std::optional<std::int64_t> start, end, step = 1;
    if (starts)
      start = starts->elements[i];
    if (ends)
      end = ends->elements[i];
    if (in.has(4))
      step = steps ? steps->elements[i] : std::nullopt;
    if (step && *step == 0)
      return in.fail("a step of 0");
    if (!start || !end || !step) {
      dim = kUnknown;
      continue;
    }
    if (dim == kUnknown)
      continue;
    auto place = [&](std::int64_t at, std::int64_t low, std::int64_t high) {
      return std::clamp(at < 0 ? at + dim : at, low, high);
    };
    std::int64_t length = 0;
    if (*step > 0) {
      length = place(*end, 0, dim) - place(*start, 0, dim);
      length = length <= 0 ? 0 : (length - 1) / *step + 1;
    } else if (dim > 0) {
      length = place(*start, 0, dim - 1) - place(*end, -1, dim - 1);
      const std::int64_t down = -std::max(*step, -INT64_MAX);
      length = length <= 0 ? 0 : (length - 1) / down + 1;
    }
    dim = length;
  }
  return in.one(dims, in.element(0));
}

FailureOr<Types> gather(Inference &in) {
  FailureOr<std::int64_t> axis = in.axis(in.integer("axis"), in.rank(0));
  if (failed(axis))
    return failure();
  Dims dims(in.dims(0).take_front(*axis));
  llvm::append_range(dims, in.dims(1));
  llvm::append_range(dims, in.dims(0).drop_front(*axis + 1));
  return in.one(dims, in.element(0));
}

// Indices are of one place in every line of `axis`: outside of it they have no
// more elements than the data.
LogicalResult indicesWithin(Inference &in) {
  FailureOr<std::int64_t> axis = in.axis(in.integer("axis"), in.rank(0));
  if (failed(axis))
    return failure();
  for (auto [i, dim] : llvm::enumerate(in.dims(1)))
    if (std::int64_t of = in.dims(0)[i]; std::int64_t(i) != *axis &&
                                         dim != kUnknown && of != kUnknown &&
                                         dim > of)
      return in.fail("indices " + dimsText(in.dims(1)) + " are not within " +
                     dimsText(in.dims(0)));
  return success();
}

FailureOr<Types> gatherElements(Inference &in) {
  if (in.rank(0) != in.rank(1))
    return in.fail("data and indices have different ranks");
  if (failed(indicesWithin(in)))
    return failure();
  return in.one(in.dims(1), in.element(0));
}

FailureOr<Types> gatherNd(Inference &in) {
  std::int64_t batch = in.integer("batch_dims");
  std::int64_t last = in.rank(1) ? in.dims(1).back() : 0;
  if (in.rank(1) < 1 || batch < 0 || batch >= in.rank(1))
    return in.fail("batch_dims " + llvm::Twine(batch));
  if (last == kUnknown)
    return in.unranked(in.element(0));
  if (last < 1 || last > in.rank(0) || batch + last > in.rank(0))
    return in.fail("index tuples of " + llvm::Twine(last));
  for (std::int64_t i = 0; i < batch; ++i)
    if (differ(in.dims(0)[i], in.dims(1)[i]))
      return in.fail("data " + dimsText(in.dims(0)) + " and indices " +
                     dimsText(in.dims(1)) + " are of different batches");
  Dims dims(in.dims(1).drop_back());
  llvm::append_range(dims, in.dims(0).drop_front(batch + last));
  return in.one(dims, in.element(0));
}

FailureOr<Types> scatter(Inference &in) {
  if (failed(in.sameElements(0, 2)))
    return failure();
  return Types{in.type(0)};
}

FailureOr<Types> scatterElements(Inference &in) {
  if (in.rank(0) != in.rank(1) || in.rank(0) != in.rank(2))
    return in.fail("data, indices and updates have different ranks");
  if (failed(indicesWithin(in)) || failed(in.hasDims(2, "updates", in.dims(1))))
    return failure();
  return scatter(in);
}

FailureOr<Types> scatterNd(Inference &in) {
  std::int64_t last = in.rank(1) ? in.dims(1).back() : 0;
  if (last == kUnknown)
    return scatter(in);
  if (last < 1 || last > in.rank(0))
    return in.fail("index tuples of " + llvm::Twine(last));
  Dims updates(in.dims(1).drop_back());
  llvm::append_range(updates, in.dims(0).drop_front(last));
  if (failed(in.hasDims(2, "updates", updates)))
    return failure();
  return scatter(in);
}

// An update is as the cache, and not longer along the axis.
FailureOr<Types> tensorScatter(Inference &in) {
  FailureOr<std::int64_t> axis = in.axis(in.integer("axis", -2), in.rank(0));
  if (failed(axis) || failed(in.sameElements(0, 1)))
    return failure();
  Dims expected(in.dims(0));
  expected[*axis] = kUnknown;
  if (failed(in.hasDims(1, "update", expected)) ||
      failed(in.hasDims(2, "write_indices", {in.dims(0)[0]})))
    return failure();
  std::int64_t most = in.dims(0)[*axis], length = in.dims(1)[*axis];
  if (most != kUnknown && length != kUnknown && length > most)
    return in.fail("an update of " + llvm::Twine(length) +
                   " positions for a cache of " + llvm::Twine(most));
  return Types{in.type(0)};
}

FailureOr<Types> reverseSequence(Inference &in) {
  const std::int64_t time = in.integer("time_axis"),
                     batch = in.integer("batch_axis", 1);
  if (in.rank(0) < 2 || time < 0 || time > 1 || batch != 1 - time)
    return in.fail("expected a matrix or more, with time_axis and batch_axis 0 "
                   "and 1");
  if (failed(in.hasDims(1, "sequence_lens", {in.dims(0)[batch]})))
    return failure();
  return Types{in.type(0)};
}

FailureOr<Types> expand(Inference &in) {
  auto wanted = shapeInput(in, 1);
  if (!wanted)
    return in.unranked(in.element(0));
  Dims target;
  for (auto dim : *wanted) {
    if (dim && *dim < 0)
      return in.fail("a dimension of " + llvm::Twine(*dim));
    target.push_back(dim.value_or(kUnknown));
  }
  FailureOr<Dims> dims = in.broadcast({Dims(in.dims(0)), target});
  if (failed(dims))
    return failure();
  // An unknown dimension may be 1 and give way to the input's.
  return in.one(*dims, in.element(0));
}

FailureOr<Types> tile(Inference &in) {
  auto repeats = shapeInput(in, 1);
  if (!repeats)
    return in.one(Dims(in.rank(0), kUnknown), in.element(0));
  if (std::int64_t(repeats->size()) != in.rank(0))
    return in.fail("expected " + llvm::Twine(in.rank(0)) + " repeats");
  Dims dims;
  for (auto [dim, count] : llvm::zip(in.dims(0), *repeats)) {
    if (count && *count < 0)
      return in.fail("a repeat of " + llvm::Twine(*count));
    dims.push_back(times(dim, count.value_or(kUnknown)));
  }
  return in.one(dims, in.element(0));
}

FailureOr<Types> pad(Inference &in) {
  llvm::StringRef mode = in.text("mode", "constant");
  if (!llvm::is_contained({"constant", "reflect", "edge", "wrap"}, mode))
    return in.fail("mode \"" + mode +
                   "\", expected constant, reflect, edge or wrap");
  if (in.has(2) && (failed(in.sameElements(0, 2)) ||
                    failed(in.isScalar(2, "constant_value"))))
    return failure();
  Dims dims(in.dims(0));
  Dims axes;
  if (in.has(3)) {
    auto given = knownInts(in.value(3));
    if (!given)
      return in.one(Dims(dims.size(), kUnknown), in.element(0));
    for (std::int64_t one : *given) {
      FailureOr<std::int64_t> axis = in.axis(one, in.rank(0));
      if (failed(axis))
        return failure();
      if (llvm::is_contained(axes, *axis))
        return in.fail("axis " + llvm::Twine(*axis) + " is named twice");
      axes.push_back(*axis);
    }
  } else {
    for (std::int64_t i = 0; i < in.rank(0); ++i)
      axes.push_back(i);
  }
  auto pads = shapeInput(in, 1);
  if (!pads)
    return in.one(Dims(dims.size(), kUnknown), in.element(0));
  if (pads->size() != 2 * axes.size())
    return in.fail("expected " + llvm::Twine(2 * axes.size()) + " pads");
  for (auto [i, axis] : llvm::enumerate(axes)) {
    auto before = (*pads)[i], after = (*pads)[axes.size() + i];
    std::int64_t &dim = dims[axis];
    if (dim == kUnknown || !before || !after)
      dim = kUnknown;
    else if (llvm::AddOverflow(dim, *before, dim) ||
             llvm::AddOverflow(dim, *after, dim) || dim < 0)
      return in.fail("pads of dimension " + llvm::Twine(axis));
  }
  return in.one(dims, in.element(0));
}

FailureOr<Types> constantOfShape(Inference &in) {
  auto type =
      cast<ShapedType>(cast<ConstantOfShapeOp>(in.op).getValue().getType());
  if (type.getNumElements() != 1)
    return in.fail("value is " + dimsText(type.getShape()) +
                   ", expected one element");
  auto wanted = shapeInput(in, 0);
  if (!wanted)
    return in.unranked(type.getElementType());
  Dims dims;
  for (auto dim : *wanted) {
    if (dim && *dim < 0)
      return in.fail("a dimension of " + llvm::Twine(*dim));
    dims.push_back(dim.value_or(kUnknown));
  }
  return in.one(dims, type.getElementType());
}

// The value of a constant scalar as a float, for ranges.
std::optional<double> floatScalar(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!constant || !type || type.getNumElements() != 1 ||
      !isa<FloatType>(type.getElementType()))
    return std::nullopt;
  APFloat number = *constant.getValue().getValues<APFloat>().begin();
  bool lossy = false;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
  return number.convertToDouble();
}

FailureOr<Types> range(Inference &in) {
  if (failed(in.sameElements(0, 1)) || failed(in.sameElements(0, 2)))
    return failure();
  std::int64_t count = kUnknown;
  if (isa<FloatType>(in.element(0))) {
    auto start = floatScalar(in.value(0)), limit = floatScalar(in.value(1)),
         delta = floatScalar(in.value(2));
    if (start && limit && delta) {
      double steps = std::ceil((*limit - *start) / *delta);
      if (!(steps < 1e9))
        return in.fail("too long a range");
      count = static_cast<std::int64_t>(std::max(0.0, steps));
    }
  } else {
    auto start = knownInts(in.value(0)), limit = knownInts(in.value(1)),
         delta = knownInts(in.value(2));
    if (start && limit && delta && start->size() == 1 && limit->size() == 1 &&
        delta->size() == 1) {
      if ((*delta)[0] == 0)
        return in.fail("a step of 0");
      double steps = std::ceil((double((*limit)[0]) - double((*start)[0])) /
                               double((*delta)[0]));
      if (!(steps < 1e9))
        return in.fail("too long a range");
      count = static_cast<std::int64_t>(std::max(0.0, steps));
    }
  }
  return in.one({count}, in.element(0));
}

FailureOr<Types> trilu(Inference &in) {
  if (in.rank(0) < 2)
    return in.fail("expected a matrix");
  if (failed(in.isScalar(1, "k")))
    return failure();
  return Types{in.type(0)};
}

// Channels and pixels by blocks: factor is what the channels are divided by.
FailureOr<Types> blocks(Inference &in, bool toSpace) {
  std::int64_t block = in.integer("blocksize");
  if (in.rank(0) != 4 || block < 1 || block > (1 << 20))
    return in.fail("expected four dimensions and a positive blocksize");
  Dims dims(in.dims(0));
  std::int64_t square = block * block;
  auto divide = [&](std::int64_t &dim, std::int64_t by) {
    if (dim == kUnknown)
      return true;
    if (dim % by != 0)
      return false;
    dim /= by;
    return true;
  };
  bool fits = toSpace ? divide(dims[1], square)
                      : divide(dims[2], block) && divide(dims[3], block);
  if (!fits)
    return in.fail("a dimension is not whole blocks of " + llvm::Twine(block));
  if (toSpace) {
    dims[2] = times(dims[2], block);
    dims[3] = times(dims[3], block);
  } else {
    dims[1] = times(dims[1], square);
  }
  return in.one(dims, in.element(0));
}
FailureOr<Types> depthToSpace(Inference &in) {
  llvm::StringRef mode = in.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    return in.fail("mode \"" + mode + "\", expected DCR or CRD");
  return blocks(in, true);
}
FailureOr<Types> spaceToDepth(Inference &in) { return blocks(in, false); }

FailureOr<Types> eyeLike(Inference &in) {
  if (in.rank(0) != 2)
    return in.fail("expected a matrix");
  auto to = cast<EyeLikeOp>(in.op).getDtype();
  return in.one(in.dims(0), to ? *to : in.element(0));
}

FailureOr<Types> oneHot(Inference &in) {
  std::int64_t rank = in.rank(0) + 1;
  FailureOr<std::int64_t> axis = in.axis(in.integer("axis", -1), rank);
  if (failed(axis))
    return failure();
  std::int64_t depth = kUnknown;
  if (auto known = knownInts(in.value(1)); known && known->size() == 1)
    depth = (*known)[0];
  else if (auto number = floatScalar(in.value(1));
           number && *number > -1e9 && *number < 1e9)
    depth = static_cast<std::int64_t>(*number);
  if (depth < 0 && depth != kUnknown)
    return in.fail("a depth of " + llvm::Twine(depth));
  if (failed(in.hasDims(2, "values", {2})))
    return failure();
  Dims dims(in.dims(0));
  dims.insert(dims.begin() + *axis, depth);
  return in.one(dims, in.element(2));
}

// What both branches yield, as far as they agree.
FailureOr<Types> ifElse(Inference &in) {
  auto op = cast<IfOp>(in.op);
  if (op.getThenBranch().empty() || op.getElseBranch().empty())
    return in.fail("a branch is empty");
  auto yields = [](Region &branch) {
    return branch.front().getTerminator()->getOperandTypes();
  };
  auto then = yields(op.getThenBranch()), other = yields(op.getElseBranch());
  if (then.size() != other.size())
    return in.fail("its branches have " + llvm::Twine(then.size()) + " and " +
                   llvm::Twine(other.size()) + " outputs");
  Types types;
  for (auto [a, b] : llvm::zip(then, other)) {
    auto x = cast<TensorType>(a), y = cast<TensorType>(b);
    if (x.getElementType() != y.getElementType())
      return in.fail("its branches have outputs of different types");
    if (!x.hasRank() || !y.hasRank() || x.getRank() != y.getRank()) {
      types.push_back(UnrankedTensorType::get(x.getElementType()));
      continue;
    }
    Dims dims;
    for (auto [i, j] : llvm::zip(x.getShape(), y.getShape()))
      dims.push_back(i == j ? i : kUnknown);
    types.push_back(RankedTensorType::get(dims, x.getElementType()));
  }
  return types;
}

} // namespace

InferenceRule shapeRule(llvm::StringRef name) {
  return llvm::StringSwitch<InferenceRule>(name)
      .Case("Constant", constant)
      .Case("Weight", weight)
      .Case("None", none)
      .Case("Shape", shape)
      .Case("Size", size)
      .Case("Reshape", reshape)
      .Case("Flatten", flatten)
      .Case("Squeeze", squeeze)
      .Case("Unsqueeze", unsqueeze)
      .Case("Transpose", transpose)
      .Case("Concat", concat)
      .Case("Split", split)
      .Case("Slice", slice)
      .Case("Gather", gather)
      .Case("GatherElements", gatherElements)
      .Case("GatherND", gatherNd)
      .Case("ScatterElements", scatterElements)
      .Case("ScatterND", scatterNd)
      .Case("TensorScatter", tensorScatter)
      .Case("Expand", expand)
      .Case("Tile", tile)
      .Case("Pad", pad)
      .Case("ConstantOfShape", constantOfShape)
      .Case("Range", range)
      .Case("Trilu", trilu)
      .Case("DepthToSpace", depthToSpace)
      .Case("SpaceToDepth", spaceToDepth)
      .Case("EyeLike", eyeLike)
      .Case("OneHot", oneHot)
      .Case("ReverseSequence", reverseSequence)
      .Case("If", ifElse)
      .Default(nullptr);
}

} // namespace ingot::onnx
