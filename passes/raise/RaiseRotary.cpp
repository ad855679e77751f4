// 1. x cos + concat(-x[second half], x[first half]) sin, where both halves of cos and
// of sin are the same, becomes RotaryEmbedding with half the tables; so does the form
// with pairs of neighbours, as the interleaved operator. 2. Where x is
// the first part of heads whose rest is joined to it again, the operator does that.
#include "passes/raise/Match.h"

#include "dialects/onnx/ShapeValues.h"

using namespace mlir;

namespace ingot::raise {
namespace {

// [begin, end) of the last dimension that a Slice takes; none for other slices.
std::optional<std::pair<std::int64_t, std::int64_t>>
lastSlice(onnx::SliceOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getData().getType());
  auto starts = onnx::knownInts(op.getStarts()),
       ends = onnx::knownInts(op.getEnds());
  if (!type || !type.hasStaticShape() || !starts || !ends ||
      starts->size() != 1 || ends->size() != 1 || onnx::isAbsent(op.getAxes()))
    return std::nullopt;
  auto axes = onnx::knownInts(op.getAxes());
  if (!axes || axes->size() != 1 ||
      ((*axes)[0] != -1 && (*axes)[0] != type.getRank() - 1))
    return std::nullopt;
  if (!onnx::isAbsent(op.getSteps())) {
    auto steps = onnx::knownInts(op.getSteps());
    if (!steps || *steps != ArrayRef<std::int64_t>{1})
      return std::nullopt;
  }
  const std::int64_t size = type.getShape().back();
  auto place = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size);
  };
  return std::pair(place((*starts)[0]), place((*ends)[0]));
}

// The span of the last dimension of x that a Slice or a Split takes.
std::optional<std::pair<std::int64_t, std::int64_t>> spanOf(Value part,
                                                            Value &x) {
  part = throughCasts(part);
  if (auto slice = part.getDefiningOp<onnx::SliceOp>()) {
    x = throughCasts(slice.getData());
    return lastSlice(slice);
  }
  auto split = part.getDefiningOp<onnx::SplitOp>();
  auto type = split ? dyn_cast<RankedTensorType>(split.getInput().getType())
                    : RankedTensorType();
  const std::int64_t axis = split ? std::int64_t(split.getAxis()) : 0;
  if (!type || (axis != -1 && axis != type.getRank() - 1))
    return std::nullopt;
  x = throughCasts(split.getInput());
  std::int64_t begin = 0;
  for (OpResult result : split->getResults()) {
    auto own = dyn_cast<RankedTensorType>(result.getType());
    if (!own || !own.hasStaticShape())
      return std::nullopt;
    if (result == part)
      return std::pair(begin, begin + own.getShape().back());
    begin += own.getShape().back();
  }
  return std::nullopt;
}

// One half of x: a Slice or a part of a Split; -1 where it is neither.
int halfOf(Value part, Value &x) {
  part = throughCasts(part);
  if (auto slice = part.getDefiningOp<onnx::SliceOp>()) {
    auto span = lastSlice(slice);
    x = slice.getData();
    const std::int64_t size =
        cast<RankedTensorType>(x.getType()).getShape().back();
    if (!span || size % 2 != 0)
      return -1;
    if (*span == std::pair<std::int64_t, std::int64_t>(0, size / 2))
      return 0;
    return *span == std::pair<std::int64_t, std::int64_t>(size / 2, size) ? 1
                                                                          : -1;
  }
  if (auto split = part.getDefiningOp<onnx::SplitOp>()) {
    auto type = dyn_cast<RankedTensorType>(split.getInput().getType());
    const std::int64_t axis = split.getAxis();
    x = split.getInput();
    if (!type || split->getNumResults() != 2 ||
        (axis != -1 && axis != type.getRank() - 1) ||
        split->getResult(0).getType() != split->getResult(1).getType())
      return -1;
    return int(cast<OpResult>(part).getResultNumber());
  }
  return -1;
}

// x of concat(-x[second half], x[first half]).
Value rotateHalf(Value value) {
  auto concat = as<onnx::ConcatOp>(value);
  if (!concat || concat->getNumOperands() != 2)
    return {};
  auto type = cast<RankedTensorType>(concat.getType());
  const std::int64_t axis = concat.getAxis();
  auto negated = as<onnx::NegOp>(concat->getOperand(0));
  if (!negated || (axis != -1 && axis != type.getRank() - 1))
    return {};
  Value first, second;
  if (halfOf(negated.getX(), second) != 1 ||
      halfOf(concat->getOperand(1), first) != 0 ||
      throughCasts(first) != throughCasts(second))
    return {};
  return throughCasts(first);
}

// x of every second of its elements along the last dimension, from `first` on.
Value everySecond(Value part, std::int64_t first) {
  auto slice = as<onnx::SliceOp>(part);
  auto type = slice ? dyn_cast<RankedTensorType>(slice.getData().getType())
                    : RankedTensorType();
  if (!type || !type.hasStaticShape() || onnx::isAbsent(slice.getAxes()) ||
      onnx::isAbsent(slice.getSteps()))
    return {};
  auto starts = onnx::knownInts(slice.getStarts()),
       ends = onnx::knownInts(slice.getEnds()),
       axes = onnx::knownInts(slice.getAxes()),
       steps = onnx::knownInts(slice.getSteps());
  const std::int64_t size = type.getShape().back();
  if (!starts || !ends || !axes || !steps || size % 2 != 0 ||
      *starts != ArrayRef<std::int64_t>{first} ||
      *steps != ArrayRef<std::int64_t>{2} || ends->size() != 1 ||
      (*ends)[0] < size || axes->size() != 1 ||
      ((*axes)[0] != -1 && (*axes)[0] != type.getRank() - 1))
    return {};
  return throughCasts(slice.getData());
}

// f of [..., n] that is given one more dimension of 1 at the end.
Value columnOf(Value value) {
  Operation *op = throughCasts(value).getDefiningOp();
  if (!op || !isa<onnx::UnsqueezeOp, onnx::ReshapeOp>(op))
    return {};
  auto to = dyn_cast<RankedTensorType>(op->getResult(0).getType()),
       from = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  if (!to || !from || to.getRank() != from.getRank() + 1 ||
      to.getShape().back() != 1 || to.getShape().drop_back() != from.getShape())
    return {};
  return throughCasts(op->getOperand(0));
}

// a and b where the last dimension is a0, b0, a1, b1 and so on.
std::optional<std::pair<Value, Value>> alternating(Value value) {
  auto flat = as<onnx::ReshapeOp>(value);
  auto concat = flat ? as<onnx::ConcatOp>(flat.getData()) : onnx::ConcatOp();
  if (!concat || concat->getNumOperands() != 2)
    return std::nullopt;
  auto wide = dyn_cast<RankedTensorType>(concat.getType()),
       type = dyn_cast<RankedTensorType>(flat.getType());
  const std::int64_t axis = concat.getAxis();
  if (!wide || !type || wide.getRank() != type.getRank() + 1 ||
      wide.getShape().drop_back(2) != type.getShape().drop_back() ||
      (axis != -1 && axis != wide.getRank() - 1))
    return std::nullopt;
  Value a = columnOf(concat->getOperand(0)),
        b = columnOf(concat->getOperand(1));
  if (!a || !b)
    return std::nullopt;
  return std::pair(a, b);
}

// x of -x1, x0, -x3, x2 and so on.
Value rotatePairs(Value value) {
  auto parts = alternating(value);
  auto negated = parts ? as<onnx::NegOp>(parts->first) : onnx::NegOp();
  if (!negated)
    return {};
  Value odd = everySecond(negated.getX(), 1),
        even = everySecond(parts->second, 0);
  return even == odd ? even : Value();
}

// Whether the last dimension is some values, and then the same again; with `pairs`
// each of some values twice.
bool isTwice(Value value, bool pairs) {
  for (int depth = 0; depth < 16; ++depth) {
    value = throughCasts(value);
    Operation *op = value.getDefiningOp();
    if (!op)
      return false;
    if (pairs)
      if (auto parts = alternating(value))
        return parts->first == parts->second;
    if (auto concat = dyn_cast<onnx::ConcatOp>(op)) {
      auto type = cast<RankedTensorType>(concat.getType());
      const std::int64_t axis = concat.getAxis();
      return !pairs && concat->getNumOperands() == 2 &&
             concat->getOperand(0) == concat->getOperand(1) &&
             (axis == -1 || axis == type.getRank() - 1);
    }
    if (auto by = scaled(value)) {
      value = by->other;
      continue;
    }
    // Elementwise, or a dimension of 1 somewhere before the last.
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!isa<onnx::CosOp, onnx::SinOp, onnx::UnsqueezeOp, onnx::ReshapeOp>(op))
      return false;
    auto from = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
    if (!type || !from || type.getShape().back() != from.getShape().back())
      return false;
    value = op->getOperand(0);
  }
  return false;
}

// The first half of a table, or every second column, as [batch, positions, half];
// none where its rows differ by head.
Value halfTable(onnx::OpMaker &maker, Value table, Type element, bool pairs) {
  auto type = cast<RankedTensorType>(table.getType());
  SmallVector<std::int64_t> dims(type.getShape());
  // The heads' dimension, third from the end, in which the table is the same.
  if (dims.size() >= 3) {
    auto heads = dims.end() - 3;
    if (*heads != 1)
      return {};
    dims.erase(heads);
  }
  while (dims.size() < 3)
    dims.insert(dims.begin(), 1);
  FailureOr<Value> flat = maker.value("Reshape", {table, maker.ints(dims)});
  if (failed(flat))
    return {};
  FailureOr<Value> half =
      maker.value("Slice", {*flat, maker.ints({0}),
                            maker.ints({pairs ? dims[2] : dims[2] / 2}),
                            maker.ints({2}), maker.ints({pairs ? 2 : 1})});
  return failed(half) ? Value() : castTo(maker, *half, element);
}

} // namespace

unsigned raiseRotary(ModuleOp module, const Explain &explain) {
  unsigned count = rewriteEach<onnx::AddOp>(
      module, [&](onnx::AddOp op, onnx::OpMaker &maker) -> Value {
        auto type = dyn_cast<RankedTensorType>(op.getType());
        if (!type || type.getRank() != 4 || !type.hasStaticShape())
          return {};
        for (auto [plain, turned] : {std::pair(op.getA(), op.getB()),
                                     std::pair(op.getB(), op.getA())}) {
          auto straight = as<onnx::MulOp>(plain);
          auto crossed = as<onnx::MulOp>(turned);
          if (!straight || !crossed)
            continue;
          for (auto [half, sine] :
               {std::pair(crossed.getA(), crossed.getB()),
                std::pair(crossed.getB(), crossed.getA())}) {
            Value x = rotateHalf(half);
            const bool pairs = !x;
            if (pairs)
              x = rotatePairs(half);
            if (!x)
              continue;
            Value cosine;
            if (throughCasts(straight.getA()) == x)
              cosine = straight.getB();
            else if (throughCasts(straight.getB()) == x)
              cosine = straight.getA();
            auto own = dyn_cast<RankedTensorType>(x.getType());
            if (!cosine || !own || own.getShape() != type.getShape())
              continue;
            if (!isTwice(cosine, pairs) || !isTwice(sine, pairs)) {
              if (explain)
                explain("raise-rotary: left alone " + onnx::describe(op) +
                        (pairs ? ": neighbours in its tables are not the same"
                               : ": the two halves of its tables are not the "
                                 "same"));
              continue;
            }
            Type element = type.getElementType();
            Value c = halfTable(maker, cosine, element, pairs),
                  s = halfTable(maker, sine, element, pairs);
            if (!c || !s)
              continue;
            FailureOr<Value> rotary = maker.value(
                "RotaryEmbedding", {castTo(maker, x, element), c, s},
                {maker.attr("interleaved", pairs)});
            if (failed(rotary))
              continue;
            if (explain)
              explain(std::string("raise-rotary: ") +
                      (pairs ? "interleaved " : "") + "RotaryEmbedding from " +
                      onnx::describe(op));
            return *rotary;
          }
        }
        return {};
      });
  // concat(rotated(x[.., :n]), x[.., n:])
  count += rewriteEach<onnx::ConcatOp>(
      module, [&](onnx::ConcatOp op, onnx::OpMaker &maker) -> Value {
        auto type = dyn_cast<RankedTensorType>(op.getType());
        const std::int64_t axis = op.getAxis();
        auto rotary = as<onnx::RotaryEmbeddingOp>(op->getOperand(0));
        if (!type || !type.hasStaticShape() || type.getRank() != 4 ||
            op->getNumOperands() != 2 || (axis != -1 && axis != 3) || !rotary ||
            rotary->getAttrOfType<IntegerAttr>("rotary_embedding_dim")
                    .getInt() != 0)
          return {};
        Value x, rest;
        auto turned = spanOf(rotary.getX(), x),
             kept = spanOf(op->getOperand(1), rest);
        if (!turned || !kept || x != rest ||
            cast<RankedTensorType>(x.getType()).getShape() != type.getShape() ||
            turned->first != 0 || kept->first != turned->second ||
            kept->second != type.getDimSize(3))
          return {};
        Type element = type.getElementType();
        FailureOr<Operation *> whole =
            maker.make("RotaryEmbedding",
                       {castTo(maker, x, element),
                        castTo(maker, rotary.getCosCache(), element),
                        castTo(maker, rotary.getSinCache(), element),
                        rotary.getPositionIds()},
                       {maker.builder.getNamedAttr(
                            "interleaved", rotary->getAttr("interleaved")),
                        maker.attr("rotary_embedding_dim", turned->second)});
        if (failed(whole))
          return {};
        if (explain)
          explain("raise-rotary: RotaryEmbedding of " +
                  std::to_string(turned->second) + " of " +
                  std::to_string(kept->second) + " columns from " +
                  onnx::describe(op));
        return (*whole)->getResult(0);
      });
  eraseUnused(module);
  return count;
}

} // namespace ingot::raise
