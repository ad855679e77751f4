// Types of normalisations, softmax, attention and quantisation.
#include "dialects/onnx/Inference.h"

using namespace mlir;

namespace ingot::onnx {
namespace {

FailureOr<Types> alongAxis(Inference &in) {
  if (failed(in.axis(in.integer("axis", -1),
                     std::max<std::int64_t>(in.rank(0), 1))))
    return failure();
  return Types{in.type(0)};
}

FailureOr<Types> same(Inference &in) { return Types{in.type(0)}; }

FailureOr<Types> layerNorm(Inference &in) {
  FailureOr<std::int64_t> axis = in.axis(in.integer("axis", -1), in.rank(0));
  if (failed(axis))
    return failure();
  Dims dims(in.dims(0));
  for (std::int64_t i = *axis; i < in.rank(0); ++i)
    dims[i] = 1;
  Type stash = in.integer("stash_type", 1) == 1
                   ? Type(Float32Type::get(in.op->getContext()))
                   : in.element(0);
  Types types{in.type(0)};
  for (unsigned i = 1; i < in.op->getNumResults(); ++i)
    types.push_back(RankedTensorType::get(dims, stash));
  return types;
}

FailureOr<Types> skipNorm(Inference &in) {
  if (in.rank(0) < 1 || failed(in.sameElements(0, 1)))
    return in.fail("input and skip differ");
  Dims dims(in.dims(0));
  dims.back() = 1;
  Type f32 = Float32Type::get(in.op->getContext());
  return Types{in.type(0), RankedTensorType::get(dims, f32),
               RankedTensorType::get(dims, f32), in.type(0)};
}

std::int64_t sum(std::int64_t a, std::int64_t b) {
  return a == kUnknown || b == kUnknown ? kUnknown : a + b;
}

// Q, K and V have four dimensions, or three with the heads side by side.
FailureOr<Types> attention(Inference &in) {
  const std::int64_t rank = in.rank(0);
  if ((rank != 3 && rank != 4) || in.rank(1) != rank || in.rank(2) != rank)
    return in.fail("Q, K and V have three or four dimensions");
  std::int64_t qHeads = in.integer("q_num_heads"),
               kvHeads = in.integer("kv_num_heads");
  auto heads = [&](unsigned i, std::int64_t count) -> FailureOr<Dims> {
    Dims d(in.dims(i));
    if (rank == 4)
      return d;
    if (count < 1 || (d[2] != kUnknown && d[2] % count != 0)) {
      (void)in.fail("input " + llvm::Twine(i) + " is not " +
                    llvm::Twine(count) + " heads");
      return failure();
    }
    return Dims{d[0], count, d[1], d[2] == kUnknown ? kUnknown : d[2] / count};
  };
  FailureOr<Dims> q = heads(0, qHeads), k = heads(1, kvHeads),
                  v = heads(2, kvHeads);
  if (failed(q) || failed(k) || failed(v))
    return failure();
  if ((*q)[1] != kUnknown && (*k)[1] != kUnknown &&
      ((*k)[1] < 1 || (*q)[1] % (*k)[1] != 0))
    return in.fail(llvm::Twine((*q)[1]) + " heads over " +
                   llvm::Twine((*k)[1]) + " of keys");
  if (in.has(4) != in.has(5))
    return in.fail("past_key and past_value are given together");
  std::int64_t total = (*k)[2];
  if (in.has(4)) {
    if (in.rank(4) != 4 || in.rank(5) != 4)
      return in.fail("past_key and past_value have four dimensions");
    total = sum(in.dims(4)[2], total);
  }
  Dims y = rank == 4 ? Dims{(*q)[0], (*q)[1], (*q)[2], (*v)[3]}
                     : Dims{(*q)[0], (*q)[2],
                            (*q)[1] == kUnknown || (*v)[3] == kUnknown
                                ? kUnknown
                                : (*q)[1] * (*v)[3]};
  auto of = [&](Dims dims, unsigned from) {
    return RankedTensorType::get(dims, in.element(from));
  };
  return Types{of(y, 0), of({(*k)[0], (*k)[1], total, (*k)[3]}, 1),
               of({(*v)[0], (*v)[1], total, (*v)[3]}, 2),
               of({(*q)[0], (*q)[1], (*q)[2], total}, 0)};
}

FailureOr<Types> groupQuery(Inference &in) {
  std::int64_t heads = in.integer("num_heads"),
               kvHeads = in.integer("kv_num_heads");
  if (in.rank(0) != 3 || heads < 1 || heads > INT32_MAX || kvHeads < 1 ||
      heads % kvHeads != 0)
    return in.fail("expected query [batch, sequence, hidden], and kv_num_heads "
                   "that divides num_heads");
  if (in.has(1) != in.has(2))
    return in.fail("key and value are given together");
  if (in.has(3) != in.has(4))
    return in.fail("past_key and past_value are given together");
  Dims q(in.dims(0));
  std::int64_t columns = in.has(1) ? heads : heads + 2 * kvHeads;
  if (q[2] != kUnknown && q[2] % columns != 0)
    return in.fail("a query of " + llvm::Twine(q[2]) + " columns for " +
                   llvm::Twine(columns) + " heads");
  std::int64_t size = q[2] == kUnknown ? kUnknown : q[2] / columns;
  std::int64_t present = kUnknown;
  if (auto total = knownInts(in.value(6)); total && total->size() == 1) {
    present = (*total)[0];
    if (in.has(3) && in.dims(3)[2] != kUnknown)
      present = std::max(present, in.dims(3)[2]);
  }
  Dims kv{q[0], kvHeads, present, size};
  return Types{RankedTensorType::get(
                   {q[0], q[1], size == kUnknown ? kUnknown : size * heads},
                   in.element(0)),
               RankedTensorType::get(kv, in.element(0)),
               RankedTensorType::get(kv, in.element(0))};
}

FailureOr<Types> multiHead(Inference &in) {
  std::int64_t heads = in.integer("num_heads");
  if (in.rank(0) != 3 || heads < 1 || !in.has(1) || !in.has(2) ||
      in.rank(1) != 3 || in.rank(2) != 3)
    return in.fail("expected query, key and value [batch, sequence, hidden]");
  if (in.has(6) != in.has(7))
    return in.fail("past_key and past_value are given together");
  Dims q(in.dims(0)), k(in.dims(1)), v(in.dims(2));
  for (std::int64_t columns : {q[2], k[2], v[2]})
    if (columns != kUnknown && columns % heads != 0)
      return in.fail(llvm::Twine(columns) + " columns for " +
                     llvm::Twine(heads) + " heads");
  auto each = [&](std::int64_t columns) {
    return columns == kUnknown ? kUnknown : columns / heads;
  };
  std::int64_t total = in.has(6) ? sum(in.dims(6)[2], k[1]) : k[1];
  return Types{
      RankedTensorType::get({q[0], q[1], v[2]}, in.element(0)),
      RankedTensorType::get({k[0], heads, total, each(k[2])}, in.element(0)),
      RankedTensorType::get({v[0], heads, total, each(v[2])}, in.element(0))};
}

FailureOr<Types> rotary(Inference &in) {
  if (in.rank(0) != 3 && in.rank(0) != 4)
    return in.fail("expected three or four dimensions");
  if (in.rank(0) == 3 && in.integer("num_heads") < 1)
    return in.fail("num_heads is needed for three dimensions");
  return Types{in.type(0)};
}

FailureOr<Types> quantize(Inference &in) {
  auto op = cast<QuantizeLinearOp>(in.op);
  Type to = in.has(2) ? in.element(2)
                      : Type(IntegerType::get(in.op->getContext(), 8,
                                              IntegerType::Unsigned));
  if (auto given = op.getOutputDtype()) {
    if (in.has(2) && *given != in.element(2))
      return in.fail("output_dtype is not the type of y_zero_point");
    to = *given;
  }
  return in.one(in.dims(0), to);
}

FailureOr<Types> dequantize(Inference &in) {
  auto given = cast<DequantizeLinearOp>(in.op).getOutputDtype();
  return in.one(in.dims(0), given ? *given : in.element(1));
}

FailureOr<Types> dynamicQuantize(Inference &in) {
  Type code = IntegerType::get(in.op->getContext(), 8, IntegerType::Unsigned);
  return Types{RankedTensorType::get(in.dims(0), code),
               RankedTensorType::get({}, in.element(0)),
               RankedTensorType::get({}, code)};
}

} // namespace

InferenceRule modelRule(llvm::StringRef name) {
  return llvm::StringSwitch<InferenceRule>(name)
      .Cases("Softmax", "LogSoftmax", "Hardmax", "LpNormalization", alongAxis)
      .Cases("BatchNormalization", "InstanceNormalization",
             "GroupNormalization", "MeanVarianceNormalization", "LRN", same)
      .Cases("LayerNormalization", "RMSNormalization", layerNorm)
      .Cases("SkipLayerNormalization", "SkipSimplifiedLayerNormalization",
             skipNorm)
      .Case("Attention", attention)
      .Case("GroupQueryAttention", groupQuery)
      .Case("MultiHeadAttention", multiHead)
      .Case("RotaryEmbedding", rotary)
      .Case("QuantizeLinear", quantize)
      .Case("DequantizeLinear", dequantize)
      .Case("DynamicQuantizeLinear", dynamicQuantize)
      .Default(nullptr);
}

} // namespace ingot::onnx
