// Types of normalisations, softmax, attention and quantisation.
#include "dialects/onnx/Inference.h"

using namespace mlir;

namespace ingot::onnx {
namespace {

// What statistics are computed in: float32 or more, whatever less is asked for.
LogicalResult checkStash(Inference &in) {
  const std::int64_t stash = in.integer("stash_type", 1);
  Type x = in.element(0);
  const std::int64_t own = x.isF16()    ? 10
                           : x.isBF16() ? 16
                           : x.isF64()  ? 11
                                        : 1;
  if (stash == 1 || stash == own)
    return success();
  return in.fail(
      "stash_type " + llvm::Twine(stash) + ", expected 1" +
      (own == 1 ? "" : " or " + std::to_string(own) + ", the type of X"));
}

FailureOr<Types> lpNorm(Inference &in) {
  if (failed(in.axis(in.integer("axis", -1), in.rank(0))))
    return failure();
  return Types{in.type(0)};
}

// Operands 1 to `last` hold a number for each channel.
FailureOr<Types> ofChannels(Inference &in, unsigned last) {
  const std::int64_t channels = in.rank(0) > 1 ? in.dims(0)[1] : 1;
  for (unsigned i = 1; i <= last; ++i)
    if (failed(in.hasDims(i, "input " + std::to_string(i), {channels})))
      return failure();
  return Types{in.type(0)};
}
FailureOr<Types> batchNorm(Inference &in) { return ofChannels(in, 4); }
FailureOr<Types> instanceNorm(Inference &in) { return ofChannels(in, 2); }
FailureOr<Types> groupNorm(Inference &in) {
  if (failed(checkStash(in)))
    return failure();
  return ofChannels(in, 2);
}

FailureOr<Types> meanVariance(Inference &in) {
  if (failed(in.axes(in.integers("axes").value_or(Dims{0, 2, 3}), in.rank(0))))
    return failure();
  return Types{in.type(0)};
}

FailureOr<Types> alongAxis(Inference &in) {
  if (failed(in.axis(in.integer("axis", -1),
                     std::max<std::int64_t>(in.rank(0), 1))))
    return failure();
  return Types{in.type(0)};
}

FailureOr<Types> same(Inference &in) { return Types{in.type(0)}; }

FailureOr<Types> layerNorm(Inference &in) {
  FailureOr<std::int64_t> axis = in.axis(in.integer("axis", -1), in.rank(0));
  if (failed(axis) || failed(checkStash(in)) ||
      failed(in.broadcastsTo(1, "Scale", in.dims(0))) ||
      failed(in.broadcastsTo(2, "B", in.dims(0))))
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
  const bool centres = isa<SkipLayerNormalizationOp>(in.op);
  if (failed(in.broadcastsTo(1, "skip", in.dims(0))) ||
      failed(in.hasDims(2, "gamma", {in.dims(0).back()})) ||
      failed(in.hasDims(3, centres ? "beta" : "bias", {in.dims(0).back()})) ||
      failed(in.hasDims(4, "bias", {in.dims(0).back()})))
    return failure();
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
    if (failed(
            in.hasDims(4, "past_key", {(*q)[0], (*k)[1], kUnknown, (*k)[3]})) ||
        failed(in.hasDims(5, "past_value",
                          {(*q)[0], (*k)[1], in.dims(4)[2], (*v)[3]})) ||
        failed(in.sameElements(1, 4)) || failed(in.sameElements(2, 5)))
      return failure();
  }
  if (differ((*k)[0], (*q)[0]) || differ((*v)[0], (*q)[0]) ||
      differ((*v)[1], (*k)[1]) || differ((*v)[2], (*k)[2]) ||
      differ((*k)[3], (*q)[3]))
    return in.fail("Q, K and V do not go together: " + dimsText(*q) + ", " +
                   dimsText(*k) + ", " + dimsText(*v));
  if (failed(in.hasDims(6, "nonpad_kv_seqlen", {(*q)[0]})))
    return failure();
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
  auto times = [](std::int64_t a, std::int64_t b) {
    return a == kUnknown || b == kUnknown ? kUnknown : a * b;
  };
  Dims side{q[0], q[1], times(kvHeads, size)};
  if (failed(in.hasDims(1, "key", side)) ||
      failed(in.hasDims(2, "value", side)) ||
      failed(in.hasDims(3, "past_key", {q[0], kvHeads, kUnknown, size})) ||
      failed(in.hasDims(4, "past_value",
                        {q[0], kvHeads, in.has(3) ? in.dims(3)[2] : 0, size})))
    return failure();
  for (unsigned i : {1u, 2u, 3u, 4u})
    if (in.has(i) && failed(in.sameElements(0, i)))
      return failure();
  // A cache of angles has a row for each position.
  for (unsigned i : {7u, 8u})
    if (in.has(i) &&
        (in.rank(i) != 2 || in.dims(i)[0] == 0 || in.dims(i)[1] == 0))
      return in.fail("cos_cache and sin_cache are matrices");
  if (in.has(7) && failed(in.hasDims(8, "sin_cache", in.dims(7))))
    return failure();
  std::int64_t present = kUnknown;
  auto total = knownInts(in.value(6));
  const std::int64_t keys =
      total && total->size() == 1 ? (*total)[0] : kUnknown;
  if (keys != kUnknown && keys < 1)
    return in.fail("total_sequence_length " + llvm::Twine(keys));
  if (in.has(10) && in.rank(10) != 4)
    return in.fail("attention_bias has four dimensions");
  if (failed(in.hasDims(9, "position_ids", {q[0], q[1]})) ||
      failed(in.broadcastsTo(
          10, "attention_bias",
          {q[0], heads, q[1], in.has(10) ? in.dims(10).back() : 0})))
    return failure();
  if (in.has(10) && in.dims(10)[3] != kUnknown && keys != kUnknown &&
      in.dims(10)[3] < keys)
    return in.fail("attention_bias is for " + llvm::Twine(in.dims(10)[3]) +
                   " keys of " + llvm::Twine(keys));
  if (keys != kUnknown) {
    present = keys;
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
  if (in.has(6) && (in.rank(6) != 4 || in.rank(7) != 4))
    return in.fail("past_key and past_value have four dimensions");
  Dims q(in.dims(0)), k(in.dims(1)), v(in.dims(2));
  for (std::int64_t columns : {q[2], k[2], v[2]})
    if (columns != kUnknown && columns % heads != 0)
      return in.fail(llvm::Twine(columns) + " columns for " +
                     llvm::Twine(heads) + " heads");
  auto each = [&](std::int64_t columns) {
    return columns == kUnknown ? kUnknown : columns / heads;
  };
  std::int64_t total = in.has(6) ? sum(in.dims(6)[2], k[1]) : k[1];
  if (failed(in.hasDims(1, "key", {q[0], kUnknown, q[2]})) ||
      failed(in.hasDims(2, "value", {q[0], k[1], kUnknown})) ||
      failed(in.hasDims(3, "bias", {sum(sum(q[2], k[2]), v[2])})) ||
      failed(in.hasDims(6, "past_key", {q[0], heads, kUnknown, each(q[2])})) ||
      failed(in.hasDims(
          7, "past_value",
          {q[0], heads, in.has(6) ? in.dims(6)[2] : 0, each(v[2])})) ||
      failed(in.broadcastsTo(5, "attention_bias", {q[0], heads, q[1], total})))
    return failure();
  for (unsigned i : {1u, 2u, 3u, 6u, 7u})
    if (in.has(i) && failed(in.sameElements(0, i)))
      return failure();
  if (in.has(4) && in.rank(4) == 2 &&
      failed(in.hasDims(4, "key_padding_mask", {q[0], total})))
    return failure();
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
  const std::int64_t heads = in.integer("num_heads"), wide = in.dims(0).back();
  if (in.rank(0) == 3 && wide != kUnknown && wide % heads != 0)
    return in.fail(llvm::Twine(wide) + " columns for " + llvm::Twine(heads) +
                   " heads");
  const std::int64_t batch = in.dims(0)[0],
                     positions = in.dims(0)[in.rank(0) == 3 ? 1 : 2];
  for (auto [i, what] : {std::pair(1u, "cos_cache"), {2u, "sin_cache"}}) {
    if (in.rank(i) != (in.has(3) ? 2 : 3))
      return in.fail(llvm::Twine(what) + " is " + dimsText(in.dims(i)) +
                     ", expected " + llvm::Twine(in.has(3) ? 2 : 3) +
                     " dimensions");
    if (in.has(3) && in.dims(i)[0] == 0)
      return in.fail(llvm::Twine(what) + " has no rows");
    if (!in.has(3) &&
        failed(in.broadcastsTo(i, what, {batch, positions, in.dims(i).back()})))
      return failure();
  }
  if (failed(in.broadcastsTo(3, "position_ids", {batch, positions})))
    return failure();
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
      .Cases("Softmax", "LogSoftmax", "Hardmax", alongAxis)
      .Case("LpNormalization", lpNorm)
      .Case("BatchNormalization", batchNorm)
      .Case("InstanceNormalization", instanceNorm)
      .Case("GroupNormalization", groupNorm)
      .Case("MeanVarianceNormalization", meanVariance)
      .Case("LRN", same)
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
