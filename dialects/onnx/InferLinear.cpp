// Types of products, convolutions, pooling and reductions.
#include "dialects/onnx/Inference.h"
#include "dialects/onnx/Windows.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace ingot::onnx {
namespace {

FailureOr<Types> product(Inference &in, Type element) {
  if (in.rank(0) < 1 || in.rank(1) < 1)
    return in.fail("a scalar");
  Dims a(in.dims(0)), b(in.dims(1));
  const bool isRow = a.size() == 1, isColumn = b.size() == 1;
  if (isRow)
    a.insert(a.begin(), 1);
  if (isColumn)
    b.push_back(1);
  std::int64_t inner = b[b.size() - 2];
  if (differ(a.back(), inner))
    return in.fail("inner dimensions " + llvm::Twine(a.back()) + " and " +
                   llvm::Twine(inner) + " differ");
  FailureOr<Dims> dims = in.broadcast(
      {Dims(ArrayRef(a).drop_back(2)), Dims(ArrayRef(b).drop_back(2))});
  if (failed(dims))
    return failure();
  if (!isRow)
    dims->push_back(a[a.size() - 2]);
  if (!isColumn)
    dims->push_back(b.back());
  return in.one(*dims, element);
}

FailureOr<Types> matMul(Inference &in) {
  if (failed(in.sameElements(0, 1)))
    return failure();
  return product(in, in.element(0));
}
FailureOr<Types> matMulInteger(Inference &in) {
  return product(in, IntegerType::get(in.op->getContext(), 32));
}

FailureOr<Types> matMulNBits(Inference &in) {
  std::int64_t k = in.integer("K"), n = in.integer("N"),
               bits = in.integer("bits"), block = in.integer("block_size");
  if (k < 1 || n < 1 || k > INT32_MAX || n > INT32_MAX || block > INT32_MAX)
    return in.fail("K, N and block_size are positive and below 2^31");
  if (bits != 4 && bits != 8)
    return in.fail("codes of " + llvm::Twine(bits) + " bits, expected 4 or 8");
  if (block < 16 || !llvm::isPowerOf2_64(block))
    return in.fail("blocks of " + llvm::Twine(block) +
                   " columns, expected a power of two from 16");
  if (!in.element(1).isUnsignedInteger(8))
    return in.fail("B is not of bytes");
  std::int64_t blocks = (k + block - 1) / block;
  std::int64_t expected = n * blocks * (block * bits / 8);
  if (in.type(1).hasStaticShape() && in.type(1).getNumElements() != expected)
    return in.fail("B has " + llvm::Twine(in.type(1).getNumElements()) +
                   " bytes, expected " + llvm::Twine(expected));
  if (in.type(2).hasStaticShape() && in.type(2).getNumElements() != n * blocks)
    return in.fail("scales has " + llvm::Twine(in.type(2).getNumElements()) +
                   " elements, expected " + llvm::Twine(n * blocks));
  if (in.has(3) && in.type(3).hasStaticShape()) {
    std::int64_t zeros = in.element(3).isUnsignedInteger(8)
                             ? n * ((blocks * bits + 7) / 8)
                             : n * blocks;
    if (in.type(3).getNumElements() != zeros)
      return in.fail("zero_points has " +
                     llvm::Twine(in.type(3).getNumElements()) +
                     " elements, expected " + llvm::Twine(zeros));
  }
  if (in.rank(0) < 1 || differ(in.dims(0).back(), k))
    return in.fail("the last dimension of A is not K");
  if (failed(in.hasDims(5, "bias", {n})))
    return failure();
  Dims dims(in.dims(0));
  dims.back() = n;
  return in.one(dims, in.element(0));
}

FailureOr<Types> gemm(Inference &in) {
  if (in.rank(0) != 2 || in.rank(1) != 2 || failed(in.sameElements(0, 1)))
    return in.fail("expected two matrices of one type");
  const bool ta = in.integer("transA") != 0, tb = in.integer("transB") != 0;
  std::int64_t m = in.dims(0)[ta], ka = in.dims(0)[!ta], kb = in.dims(1)[tb],
               n = in.dims(1)[!tb];
  if (differ(ka, kb))
    return in.fail("inner dimensions " + llvm::Twine(ka) + " and " +
                   llvm::Twine(kb) + " differ");
  if (in.has(2)) {
    FailureOr<Dims> sum = in.broadcast({Dims{m, n}, Dims(in.dims(2))});
    if (failed(sum) || sum->size() != 2 || differ((*sum)[0], m) ||
        differ((*sum)[1], n))
      return in.fail("C does not broadcast to the product");
  }
  return in.one({m, n}, in.element(0));
}

FailureOr<Types> einsum(Inference &in) {
  for (unsigned i = 1; i < in.op->getNumOperands(); ++i)
    if (failed(in.sameElements(0, i)))
      return failure();
  FailureOr<EinsumPlan> plan = planEinsum(in.op);
  if (failed(plan))
    return failure();
  Dims dims;
  for (unsigned letter : plan->output)
    dims.push_back(plan->sizes[letter]);
  return in.one(dims, in.element(0));
}

FailureOr<Types> window(Inference &in) {
  FailureOr<WindowPlan> plan = planWindows(in.op);
  if (failed(plan))
    return failure();
  // A bias is of a convolution, with a number for each channel of its output.
  if (failed(in.hasDims(2, "B", {plan->outputDims[1]})))
    return failure();
  Types types{RankedTensorType::get(plan->outputDims, in.element(0))};
  if (in.op->getNumResults() == 2)
    types.push_back(RankedTensorType::get(
        plan->outputDims, IntegerType::get(in.op->getContext(), 64)));
  return types;
}

FailureOr<Types> global(Inference &in) {
  if (in.rank(0) < 3)
    return in.fail("expected a batch, channels and spatial dimensions");
  Dims dims(in.rank(0), 1);
  dims[0] = in.dims(0)[0];
  dims[1] = in.dims(0)[1];
  return in.one(dims, in.element(0));
}

FailureOr<Types> reduce(Inference &in) {
  const bool keep = in.integer("keepdims", 1) != 0;
  Dims axes;
  if (in.has(1)) {
    auto given = knownInts(in.value(1));
    if (!given) {
      if (keep)
        return in.one(Dims(in.rank(0), kUnknown), in.element(0));
      return in.unranked(in.element(0));
    }
    axes = *given;
  }
  if (axes.empty() && in.integer("noop_with_empty_axes") != 0)
    return Types{in.type(0)};
  FailureOr<Dims> sorted = in.axes(axes, in.rank(0));
  if (failed(sorted))
    return failure();
  Dims dims;
  for (auto [i, dim] : llvm::enumerate(in.dims(0))) {
    if (!sorted->empty() && !llvm::is_contained(*sorted, std::int64_t(i)))
      dims.push_back(dim);
    else if (keep)
      dims.push_back(1);
  }
  return in.one(dims, in.element(0));
}

FailureOr<Types> argument(Inference &in) {
  FailureOr<std::int64_t> axis = in.axis(in.integer("axis"), in.rank(0));
  if (failed(axis))
    return failure();
  Dims dims(in.dims(0));
  if (dims[*axis] == 0)
    return in.fail("an empty axis");
  if (in.integer("keepdims", 1) != 0)
    dims[*axis] = 1;
  else
    dims.erase(dims.begin() + *axis);
  return in.one(dims, IntegerType::get(in.op->getContext(), 64));
}

FailureOr<Types> cumulate(Inference &in) { return Types{in.type(0)}; }

FailureOr<Types> topK(Inference &in) {
  FailureOr<std::int64_t> axis = in.axis(in.integer("axis", -1), in.rank(0));
  if (failed(axis))
    return failure();
  Dims dims(in.dims(0));
  auto count = knownInts(in.value(1));
  std::int64_t k = count && count->size() == 1 ? (*count)[0] : kUnknown;
  if (k != kUnknown && (k < 0 || (dims[*axis] != kUnknown && k > dims[*axis])))
    return in.fail("K is " + llvm::Twine(k) + " of a dimension of " +
                   llvm::Twine(dims[*axis]));
  dims[*axis] = k;
  return Types{
      RankedTensorType::get(dims, in.element(0)),
      RankedTensorType::get(dims, IntegerType::get(in.op->getContext(), 64))};
}

} // namespace

InferenceRule linearRule(llvm::StringRef name) {
  if (name.starts_with("Reduce"))
    return reduce;
  return llvm::StringSwitch<InferenceRule>(name)
      .Case("MatMul", matMul)
      .Case("MatMulInteger", matMulInteger)
      .Case("MatMulNBits", matMulNBits)
      .Case("Gemm", gemm)
      .Case("Einsum", einsum)
      .Cases("Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool",
             window)
      .Cases("GlobalAveragePool", "GlobalMaxPool", global)
      .Cases("ArgMax", "ArgMin", argument)
      .Cases("CumSum", "CumProd", cumulate)
      .Case("TopK", topK)
      .Default(nullptr);
}

} // namespace ingot::onnx
