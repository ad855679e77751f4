// A recursive evaluation with one result remembered for each value. Every rule
// works on elements that may be unknown; arithmetic that overflows is unknown.
#include "dialects/onnx/ShapeValues.h"

#include "dialects/onnx/OnnxOps.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ingot::onnx {
namespace {

using Element = std::optional<std::int64_t>;
using Dims = SmallVector<std::int64_t>;
constexpr std::int64_t kMaxElements = 65536;
constexpr int kMaxDepth = 512;

std::optional<std::int64_t> product(ArrayRef<std::int64_t> dims) {
  std::int64_t total = 1;
  for (std::int64_t dim : dims)
    if (dim < 0 || llvm::MulOverflow(total, dim, total) || total > kMaxElements)
      return std::nullopt;
  return total;
}

// Counts an index up through `dims`; false after the last one.
bool next(MutableArrayRef<std::int64_t> index, ArrayRef<std::int64_t> dims) {
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (++index[i] < dims[i])
      return true;
    index[i] = 0;
  }
  return false;
}

std::int64_t flat(ArrayRef<std::int64_t> index, ArrayRef<std::int64_t> dims) {
  std::int64_t at = 0;
  for (auto [i, dim] : llvm::zip(index, dims))
    at = at * dim + i;
  return at;
}

class Evaluator {
public:
  std::optional<ShapeValue> evaluate(Value value);

private:
  std::optional<ShapeValue> compute(Value value);
  std::optional<ShapeValue> elementwise(Operation *op);
  std::optional<ShapeValue> concat(ConcatOp op);
  std::optional<ShapeValue> gather(GatherOp op);
  std::optional<ShapeValue> slice(SliceOp op);
  std::optional<ShapeValue> reduce(Operation *op);
  std::optional<ShapeValue> range(RangeOp op);
  std::optional<ShapeValue> cumulate(CumSumOp op);
  std::optional<ShapeValue> castTo(Operation *op);
  std::optional<ShapeValue> split(SplitOp op, unsigned index);

  // The elements of `from` at index(i) for each index i of `dims`.
  template <typename Function>
  static std::optional<ShapeValue> map(Dims dims, Function &&at) {
    std::optional<std::int64_t> count = product(dims);
    if (!count)
      return std::nullopt;
    ShapeValue result{dims, {}};
    Dims index(dims.size(), 0);
    for (std::int64_t i = 0; i < *count; ++i, next(index, dims))
      result.elements.push_back(at(index));
    return result;
  }

  // The static shape of a value's type.
  static std::optional<Dims> staticShape(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || !type.hasStaticShape() || !product(type.getShape()))
      return std::nullopt;
    return Dims(type.getShape());
  }
  std::optional<Dims> knownList(Value value) {
    std::optional<ShapeValue> known = evaluate(value);
    if (!known || !known->isKnown())
      return std::nullopt;
    Dims list;
    for (Element element : known->elements)
      list.push_back(*element);
    return list;
  }

  llvm::DenseMap<Value, std::optional<ShapeValue>> memo_;
  int depth_ = 0;
};

std::optional<ShapeValue> Evaluator::evaluate(Value value) {
  if (auto found = memo_.find(value); found != memo_.end())
    return found->second;
  if (depth_ >= kMaxDepth)
    return std::nullopt;
  ++depth_;
  std::optional<ShapeValue> result = compute(value);
  --depth_;
  // Nothing known of the elements, but how many there are.
  if (!result &&
      (isIntTensor(value.getType()) || isBoolTensor(value.getType())))
    if (std::optional<Dims> dims = staticShape(value))
      result = map(*dims, [](auto) { return Element(); });
  memo_[value] = result;
  return result;
}

// value = f(operands), elementwise with broadcasting.
std::optional<ShapeValue> Evaluator::elementwise(Operation *op) {
  using Function = std::function<Element(ArrayRef<std::int64_t>)>;
  using Args = ArrayRef<std::int64_t>;
  auto checked = [](auto overflows) {
    return Function([overflows](Args a) -> Element {
      std::int64_t result = 0;
      if (overflows(a[0], a[1], result))
        return std::nullopt;
      return result;
    });
  };
  llvm::StringRef name = op->getName().stripDialect();
  Function f =
      llvm::StringSwitch<Function>(name)
          .Case("Add", checked([](auto a, auto b, auto &r) {
                  return llvm::AddOverflow(a, b, r);
                }))
          .Case("Sub", checked([](auto a, auto b, auto &r) {
                  return llvm::SubOverflow(a, b, r);
                }))
          .Case("Mul", checked([](auto a, auto b, auto &r) {
                  return llvm::MulOverflow(a, b, r);
                }))
          .Case("Div",
                [](Args a) -> Element {
                  if (a[1] == 0 || (a[1] == -1 && a[0] == INT64_MIN))
                    return std::nullopt;
                  return a[0] / a[1];
                })
          .Case("Mod",
                [](Args a) -> Element {
                  if (a[1] == 0 || a[1] == -1)
                    return std::nullopt;
                  std::int64_t r = a[0] % a[1];
                  return r != 0 && (r < 0) != (a[1] < 0) ? r + a[1] : r;
                })
          .Case("Max", [](Args a) { return *llvm::max_element(a); })
          .Case("Min", [](Args a) { return *llvm::min_element(a); })
          .Case("Equal", [](Args a) { return a[0] == a[1]; })
          .Case("Less", [](Args a) { return a[0] < a[1]; })
          .Case("LessOrEqual", [](Args a) { return a[0] <= a[1]; })
          .Case("Greater", [](Args a) { return a[0] > a[1]; })
          .Case("GreaterOrEqual", [](Args a) { return a[0] >= a[1]; })
          .Case("And", [](Args a) { return a[0] && a[1]; })
          .Case("Or", [](Args a) { return a[0] || a[1]; })
          .Case("Xor", [](Args a) { return (a[0] != 0) != (a[1] != 0); })
          .Case("Not", [](Args a) { return a[0] == 0; })
          .Case("Neg",
                [](Args a) -> Element {
                  return a[0] == INT64_MIN ? Element() : Element(-a[0]);
                })
          .Case("Abs",
                [](Args a) -> Element {
                  return a[0] == INT64_MIN ? Element()
                                           : Element(std::abs(a[0]));
                })
          .Case("Where", [](Args a) { return a[0] ? a[1] : a[2]; })
          .Default(nullptr);
  if (!f || (name == "Mod" && cast<ModOp>(op).getFmod() != 0))
    return std::nullopt;
  SmallVector<ShapeValue> inputs;
  std::size_t rank = 0;
  for (Value operand : op->getOperands()) {
    std::optional<ShapeValue> input = evaluate(operand);
    if (!input)
      return std::nullopt;
    rank = std::max(rank, input->dims.size());
    inputs.push_back(std::move(*input));
  }
  Dims dims(rank, 1);
  for (ShapeValue &input : inputs) {
    input.dims.insert(input.dims.begin(), rank - input.dims.size(), 1);
    for (auto [dim, own] : llvm::zip(dims, input.dims)) {
      if (own != 1 && dim != 1 && own != dim)
        return std::nullopt;
      dim = dim == 1 ? own : dim;
    }
  }
  return map(dims, [&](ArrayRef<std::int64_t> index) -> Element {
    SmallVector<Element> arguments;
    for (const ShapeValue &input : inputs) {
      Dims own(index);
      for (auto [i, dim] : llvm::zip(own, input.dims))
        i = dim == 1 ? 0 : i;
      arguments.push_back(input.elements[flat(own, input.dims)]);
    }
    // A condition that is known chooses even where the other side is not.
    if (name == "Where" && arguments[0])
      return arguments[*arguments[0] ? 1 : 2];
    Dims known;
    for (Element argument : arguments) {
      if (!argument)
        return std::nullopt;
      known.push_back(*argument);
    }
    return f(known);
  });
}

std::optional<ShapeValue> Evaluator::concat(ConcatOp op) {
  SmallVector<ShapeValue> inputs;
  for (Value operand : op->getOperands()) {
    std::optional<ShapeValue> input = evaluate(operand);
    if (!input || input->dims.size() != 1)
      return std::nullopt;
    inputs.push_back(std::move(*input));
  }
  ShapeValue result{{0}, {}};
  for (const ShapeValue &input : inputs)
    llvm::append_range(result.elements, input.elements);
  result.dims[0] = result.elements.size();
  if (result.dims[0] > kMaxElements)
    return std::nullopt;
  return result;
}

std::optional<ShapeValue> Evaluator::gather(GatherOp op) {
  std::optional<ShapeValue> data = evaluate(op.getData());
  std::optional<ShapeValue> indices = evaluate(op.getIndices());
  if (!data || !indices || data->dims.size() != 1)
    return std::nullopt;
  std::int64_t size = data->dims[0];
  ShapeValue result{indices->dims, {}};
  for (Element index : indices->elements) {
    if (!index) {
      result.elements.push_back(std::nullopt);
      continue;
    }
    std::int64_t at = *index < 0 ? *index + size : *index;
    if (at < 0 || at >= size)
      return std::nullopt;
    result.elements.push_back(data->elements[at]);
  }
  return result;
}

std::optional<ShapeValue> Evaluator::slice(SliceOp op) {
  std::optional<ShapeValue> data = evaluate(op.getData());
  std::optional<Dims> starts = knownList(op.getStarts());
  std::optional<Dims> ends = knownList(op.getEnds());
  if (!data || data->dims.size() != 1 || !starts || !ends ||
      starts->size() != 1 || ends->size() != 1)
    return std::nullopt;
  if (data->elements.empty())
    return data;
  std::int64_t step = 1, size = data->dims[0];
  if (!isAbsent(op.getSteps())) {
    std::optional<Dims> steps = knownList(op.getSteps());
    if (!steps || steps->size() != 1 || (*steps)[0] == 0)
      return std::nullopt;
    step = (*steps)[0];
  }
  auto place = [&](std::int64_t at, std::int64_t low, std::int64_t high) {
    return std::clamp(at < 0 ? at + size : at, low, high);
  };
  ShapeValue result{{0}, {}};
  if (step > 0)
    for (std::int64_t at = place((*starts)[0], 0, size),
                      end = place((*ends)[0], 0, size);
         at < end && step <= kMaxElements; at += step)
      result.elements.push_back(data->elements[at]);
  else
    for (std::int64_t at = place((*starts)[0], 0, size - 1),
                      end = place((*ends)[0], -1, size - 1);
         at > end && step >= -kMaxElements; at += step)
      result.elements.push_back(data->elements[at]);
  result.dims[0] = result.elements.size();
  return result;
}

std::optional<ShapeValue> Evaluator::reduce(Operation *op) {
  std::optional<ShapeValue> data = evaluate(op->getOperand(0));
  std::optional<Dims> dims = staticShape(op->getResult(0));
  if (!data || data->elements.empty() || !dims)
    return std::nullopt;
  const std::int64_t rank = data->dims.size();
  Dims axes;
  if (!isAbsent(op->getOperand(1))) {
    std::optional<Dims> given = knownList(op->getOperand(1));
    if (!given)
      return std::nullopt;
    axes = *given;
  }
  auto flag = [&](llvm::StringRef attr) {
    auto value = op->getAttrOfType<IntegerAttr>(attr);
    return value && value.getInt() != 0;
  };
  if (axes.empty() && flag("noop_with_empty_axes"))
    return std::nullopt;
  llvm::SmallVector<bool> reduced(rank, axes.empty());
  for (std::int64_t axis : axes)
    reduced[axis < 0 ? axis + rank : axis] = true;
  llvm::StringRef name = op->getName().stripDialect();
  auto combine = [&](Element total, Element element) -> Element {
    std::int64_t result = 0;
    if (!element || !total)
      return std::nullopt;
    if (name == "ReduceSum"    ? llvm::AddOverflow(*total, *element, result)
        : name == "ReduceProd" ? llvm::MulOverflow(*total, *element, result)
                               : false)
      return std::nullopt;
    if (name == "ReduceMax")
      return std::max(*total, *element);
    return name == "ReduceMin" ? std::min(*total, *element) : result;
  };
  // The kept dimensions of an element say where it goes.
  ShapeValue result{*dims, {}};
  result.elements.resize(*product(*dims));
  llvm::SmallVector<bool> begun(result.elements.size(), false);
  Dims index(rank, 0);
  for (Element element : data->elements) {
    std::int64_t to = 0;
    for (std::int64_t i = 0; i < rank; ++i)
      if (!reduced[i])
        to = to * data->dims[i] + index[i];
    if (to >= std::int64_t(begun.size()))
      return std::nullopt;
    result.elements[to] =
        begun[to] ? combine(result.elements[to], element) : element;
    begun[to] = true;
    next(index, data->dims);
  }
  return result;
}

std::optional<ShapeValue> Evaluator::range(RangeOp op) {
  std::optional<Dims> start = knownList(op.getStart()),
                      limit = knownList(op.getLimit()),
                      delta = knownList(op.getDelta());
  if (!start || !limit || !delta || start->size() != 1 || limit->size() != 1 ||
      delta->size() != 1 || (*delta)[0] == 0)
    return std::nullopt;
  std::int64_t step = (*delta)[0];
  ShapeValue result{{0}, {}};
  for (std::int64_t at = (*start)[0];
       step > 0 ? at < (*limit)[0] : at > (*limit)[0];) {
    result.elements.push_back(at);
    if (std::int64_t(result.elements.size()) > kMaxElements ||
        llvm::AddOverflow(at, step, at))
      return std::nullopt;
  }
  result.dims[0] = result.elements.size();
  return result;
}

std::optional<ShapeValue> Evaluator::cumulate(CumSumOp op) {
  std::optional<ShapeValue> data = evaluate(op.getX());
  if (!data || data->dims.size() != 1 || op.getExclusive() || op.getReverse())
    return std::nullopt;
  Element total = 0;
  for (Element &element : data->elements) {
    std::int64_t sum = 0;
    if (!element || !total || llvm::AddOverflow(*total, *element, sum))
      total = std::nullopt;
    else
      total = sum;
    element = total;
  }
  return data;
}

// To another integer type; what does not fit it is unknown.
std::optional<ShapeValue> Evaluator::castTo(Operation *op) {
  std::optional<ShapeValue> input = evaluate(op->getOperand(0));
  auto to = dyn_cast<IntegerType>(
      cast<TensorType>(op->getResult(0).getType()).getElementType());
  if (!input || !to)
    return std::nullopt;
  const unsigned width = to.getWidth();
  for (Element &element : input->elements) {
    if (!element)
      continue;
    if (width == 1)
      element = *element != 0;
    else if (to.isUnsigned() ? *element < 0 || (width < 64 &&
                                                !llvm::isUIntN(width, *element))
                             : width < 64 && !llvm::isIntN(width, *element))
      element = std::nullopt;
  }
  return input;
}

std::optional<ShapeValue> Evaluator::split(SplitOp op, unsigned index) {
  std::optional<ShapeValue> data = evaluate(op.getInput());
  if (!data || data->dims.size() != 1)
    return std::nullopt;
  std::int64_t begin = 0;
  for (unsigned i = 0;; ++i) {
    auto type = dyn_cast<RankedTensorType>(op->getResult(i).getType());
    if (!type || !type.hasStaticShape())
      return std::nullopt;
    std::int64_t size = type.getDimSize(0);
    if (begin + size > data->dims[0])
      return std::nullopt;
    if (i == index) {
      auto part = ArrayRef(data->elements).slice(begin, size);
      return ShapeValue{{size}, SmallVector<Element>(part)};
    }
    begin += size;
  }
}

std::optional<ShapeValue> Evaluator::compute(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !(isIntTensor(value.getType()) || isBoolTensor(value.getType())))
    return std::nullopt;
  return llvm::TypeSwitch<Operation *, std::optional<ShapeValue>>(op)
      .Case(
          [&](ConstantOp constant) { return shapeValue(constant.getValue()); })
      .Case([&](ShapeOp shape) -> std::optional<ShapeValue> {
        auto type = dyn_cast<RankedTensorType>(shape.getData().getType());
        if (!type)
          return std::nullopt;
        std::int64_t rank = type.getRank();
        auto clampTo = [&](std::int64_t at) {
          return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
        };
        std::int64_t begin = clampTo(shape.getStart());
        std::int64_t end = shape.getEnd() ? clampTo(*shape.getEnd()) : rank;
        ShapeValue result{{std::max<std::int64_t>(0, end - begin)}, {}};
        for (std::int64_t i = begin; i < end; ++i)
          result.elements.push_back(
              type.isDynamicDim(i) ? Element() : Element(type.getDimSize(i)));
        return result;
      })
      .Case([&](SizeOp size) -> std::optional<ShapeValue> {
        auto type = dyn_cast<RankedTensorType>(size.getData().getType());
        if (!type || !type.hasStaticShape())
          return std::nullopt;
        return ShapeValue{{}, {type.getNumElements()}};
      })
      .Case([&](IdentityOp same) { return evaluate(same.getInput()); })
      .Case<CastOp, CastLikeOp>([&](Operation *op) { return castTo(op); })
      .Case<ReshapeOp, SqueezeOp, UnsqueezeOp, FlattenOp>(
          [&](Operation *moved) -> std::optional<ShapeValue> {
            std::optional<ShapeValue> input = evaluate(moved->getOperand(0));
            std::optional<Dims> dims = staticShape(value);
            if (!input || !dims ||
                product(*dims) != std::int64_t(input->elements.size()))
              return std::nullopt;
            return ShapeValue{*dims, input->elements};
          })
      .Case([&](ConstantOfShapeOp fill) -> std::optional<ShapeValue> {
        std::optional<Dims> dims = staticShape(value);
        std::optional<ShapeValue> one = shapeValue(fill.getValue());
        if (!dims || !one || one->elements.size() != 1)
          return std::nullopt;
        return map(*dims, [&](auto) { return one->elements[0]; });
      })
      .Case([&](ExpandOp expand) -> std::optional<ShapeValue> {
        std::optional<ShapeValue> input = evaluate(expand.getInput());
        std::optional<Dims> dims = staticShape(value);
        if (!input || !dims || dims->size() < input->dims.size())
          return std::nullopt;
        input->dims.insert(input->dims.begin(),
                           dims->size() - input->dims.size(), 1);
        return map(*dims, [&](ArrayRef<std::int64_t> index) {
          Dims own(index);
          for (auto [i, dim] : llvm::zip(own, input->dims))
            i = dim == 1 ? 0 : i;
          return input->elements[flat(own, input->dims)];
        });
      })
      .Case([&](ConcatOp op) { return concat(op); })
      .Case([&](GatherOp op) { return gather(op); })
      .Case([&](SliceOp op) { return slice(op); })
      .Case([&](RangeOp op) { return range(op); })
      .Case([&](CumSumOp op) { return cumulate(op); })
      .Case([&](SplitOp op) {
        return split(op, cast<OpResult>(value).getResultNumber());
      })
      .Case<ReduceSumOp, ReduceProdOp, ReduceMaxOp, ReduceMinOp>(
          [&](Operation *op) { return reduce(op); })
      .Default([&](Operation *op) { return elementwise(op); });
}

} // namespace

bool ShapeValue::isKnown() const {
  return llvm::all_of(elements, [](Element element) { return !!element; });
}

std::optional<ShapeValue> shapeValue(ElementsAttr attr) {
  auto type = cast<ShapedType>(attr.getType());
  auto integer = dyn_cast<IntegerType>(type.getElementType());
  if (!integer || type.getNumElements() > kMaxElements)
    return std::nullopt;
  ShapeValue result{Dims(type.getShape()), {}};
  const bool isSigned = !integer.isUnsigned() && integer.getWidth() > 1;
  for (const APInt &element : attr.getValues<APInt>())
    result.elements.push_back(isSigned ? element.getSExtValue()
                              : element.isIntN(63)
                                  ? Element(element.getZExtValue())
                                  : Element());
  return result;
}

std::optional<ShapeValue> shapeValue(Value value) {
  return Evaluator().evaluate(value);
}

std::optional<SmallVector<std::int64_t>> knownInts(Value value) {
  std::optional<ShapeValue> known = shapeValue(value);
  if (!known || !known->isKnown())
    return std::nullopt;
  SmallVector<std::int64_t> list;
  for (Element element : known->elements)
    list.push_back(*element);
  return list;
}

} // namespace ingot::onnx
