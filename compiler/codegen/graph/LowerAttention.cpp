// Attention as the standard and com.microsoft have it, and rotations. All is
// computed in float32 (float64 for doubles). What a query may see is decided by
// selection, never by adding large negative numbers; a query that sees nothing
// gets zeros.
#include "compiler/codegen/graph/Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace mlir;

namespace ingot::graph {
namespace {

// Heads of a tensor [batch, heads, positions, size], or of one where the heads
// lie side by side: [batch, positions, heads * size].
struct Heads {
  Tensor tensor;
  bool sideBySide = false;
  std::int64_t batch = 0, count = 0, positions = 0, size = 0;

  Index at(Lowering &l, Value batch, Value head, Value position,
           Value column) const {
    if (sideBySide)
      return {batch, position, l.addIndex(l.mulIndex(head, size), column)};
    return {batch, head, position, column};
  }
};

Heads headsOf(Tensor tensor, std::int64_t count) {
  if (tensor.rank() == 4)
    return {tensor,        false,         tensor.dim(0),
            tensor.dim(1), tensor.dim(2), tensor.dim(3)};
  return {tensor,        true,
          tensor.dim(0), count,
          tensor.dim(1), tensor.dim(2) / std::max<std::int64_t>(count, 1)};
}

using Element = std::function<Scalar(Value batch, Value head, Value position,
                                     Value column)>;

// One attention: softmax(cap(q k * scale) + bias) v over what is allowed.
struct Attention {
  std::int64_t batch, heads, kvHeads, queries, keys, size, valueSize;
  Type type; // of the computation
  double scale = 1, softcap = 0;
  Element query, key, value;
  // Whether query i of (batch, head) sees key j; null for all.
  std::function<Value(Value batch, Value head, Value i, Value j)> allowed;
  // What is added to a score; null for nothing.
  std::function<Scalar(Value batch, Value head, Value i, Value j)> bias;
  // Receives scores by stage: 0 scaled, 1 capped, 2 with bias, 3 probabilities.
  int stage = -1;
  std::function<void(Indices, Scalar)> observe;
  std::function<void(Value batch, Value head, Value i, Value d, Scalar)> store;
};

void attend(Lowering &l, const Attention &a) {
  Tensor scores = l.temporary({std::max<std::int64_t>(a.keys, 1)}, a.type);
  const std::int64_t group = a.heads / std::max<std::int64_t>(a.kvHeads, 1);
  l.forEach({a.batch, a.heads, a.queries}, [&](Indices at) {
    Value kvHead = l.divIndex(at[1], group);
    Scalar low = l.lowest(a.type);
    Scalar most = l.reduce({a.keys}, low, [&](Indices j, Scalar most) {
      Index place(at);
      place.push_back(j[0]);
      Scalar dot =
          l.reduce({a.size}, l.zero(a.type), [&](Indices d, Scalar sum) {
            return l.add(sum, l.mul(a.query(at[0], at[1], at[2], d[0]),
                                    a.key(at[0], kvHead, j[0], d[0])));
          });
      Scalar score = l.mul(dot, l.number(a.scale, a.type));
      if (a.stage == 0)
        a.observe(place, score);
      if (a.softcap > 0) {
        Scalar cap = l.number(a.softcap, a.type);
        score = l.mul(cap, l.unary("tanh", l.div(score, cap)));
      }
      if (a.stage == 1)
        a.observe(place, score);
      if (a.bias)
        score = l.add(score, a.bias(at[0], at[1], at[2], j[0]));
      if (a.allowed)
        score = l.select(a.allowed(at[0], at[1], at[2], j[0]), score, low);
      if (a.stage == 2)
        a.observe(place, score);
      l.store(scores, j, score);
      return l.max(most, score);
    });
    // Nothing seen: every score is minus infinity, and the sum is made 1.
    Value isBlind = l.compare(Compare::Equal, most, low);
    Scalar shift = l.select(isBlind, l.zero(a.type), most);
    Scalar sum = l.reduce({a.keys}, l.zero(a.type), [&](Indices j, Scalar sum) {
      Scalar e = l.unary("exp", l.sub(l.load(scores, j), shift));
      l.store(scores, j, e);
      return l.add(sum, e);
    });
    Scalar whole = l.select(isBlind, l.number(1, a.type), sum);
    if (a.stage == 3)
      l.forEach({a.keys}, [&](Indices j) {
        Index place(at);
        place.push_back(j[0]);
        a.observe(place, l.div(l.load(scores, j), whole));
      });
    l.forEach({a.valueSize}, [&](Indices d) {
      Scalar total =
          l.reduce({a.keys}, l.zero(a.type), [&](Indices j, Scalar total) {
            Scalar p = l.div(l.load(scores, j), whole);
            return l.add(total, l.mul(p, a.value(at[0], kvHead, j[0], d[0])));
          });
      a.store(at[0], at[1], at[2], d[0], total);
    });
  });
}

Element reader(Lowering &l, Heads from, Type type) {
  return [&l, from, type](Value b, Value h, Value i, Value d) {
    return l.cast(l.load(from.tensor, from.at(l, b, h, i, d)), type);
  };
}

// past then new along the positions, into `present`.
void concatenate(Lowering &l, Tensor past, Heads now, Tensor present) {
  const std::int64_t length = past.memref ? past.dim(2) : 0;
  l.fill(present, [&](Indices at) {
    Value place = l.addIndex(at[2], -length);
    if (!past.memref)
      return l.load(now.tensor, now.at(l, at[0], at[1], place, at[3]));
    Value isNew = l.within(place, std::max<std::int64_t>(now.positions, 0));
    Value inNew = l.inside(place, now.positions),
          inPast = l.inside(at[2], length);
    if (length == 0)
      return l.load(now.tensor, now.at(l, at[0], at[1], inNew, at[3]));
    if (now.positions == 0)
      return l.load(past, Index{at[0], at[1], inPast, at[3]});
    return l.select(isNew,
                    l.load(now.tensor, now.at(l, at[0], at[1], inNew, at[3])),
                    l.load(past, Index{at[0], at[1], inPast, at[3]}));
  });
}

Value signedLess(Lowering &l, Value x, Value y, bool orEqual) {
  return l.b.create<arith::CmpIOp>(
      l.loc, orEqual ? arith::CmpIPredicate::sle : arith::CmpIPredicate::slt, x,
      y);
}

Value asIndex(Lowering &l, Scalar x) {
  return l.b.create<arith::IndexCastOp>(l.loc, l.b.getIndexType(),
                                        l.cast(x, l.b.getI64Type()).value);
}

LogicalResult attention(Lowering &l) {
  Heads q = headsOf(l.in(0), l.node.integer("q_num_heads")),
        k = headsOf(l.in(1), l.node.integer("kv_num_heads")),
        v = headsOf(l.in(2), l.node.integer("kv_num_heads"));
  const bool hasPast = l.has(4), hasLengths = l.has(6);
  if (hasPast && hasLengths)
    return l.refuse("past_key and nonpad_kv_seqlen together");
  if (k.count < 1 || q.count % k.count != 0 || v.count != k.count ||
      v.positions != k.positions || k.size != q.size || k.batch != q.batch ||
      v.batch != q.batch)
    return l.refuse("Q, K and V do not go together");
  const std::int64_t past = hasPast ? l.in(4).dim(2) : 0;
  const std::int64_t total = past + k.positions;
  Type type = wideType(q.tensor.element());
  // Floats of 16 bits are computed in float32; no less than is asked for.
  const std::int64_t precision = l.node.integer("softmax_precision", 1);
  if (precision == 11)
    type = l.b.getF64Type();
  else if (precision != 1 && precision != 10 && precision != 16)
    return l.refuse("softmax_precision " + llvm::Twine(precision));

  auto present = [&](unsigned result, unsigned from, Heads now) {
    Tensor whole = l.wants(result)
                       ? l.out(result)
                       : l.temporary({now.batch, now.count, total, now.size},
                                     now.tensor.element());
    concatenate(l, hasPast ? l.in(from) : Tensor(), now, whole);
    return headsOf(whole, now.count);
  };
  if (hasPast || l.wants(1))
    k = present(1, 4, k);
  if (hasPast || l.wants(2))
    v = present(2, 5, v);

  Attention a;
  a.batch = q.batch;
  a.heads = q.count;
  a.kvHeads = k.count;
  a.queries = q.positions;
  a.keys = total;
  a.size = q.size;
  a.valueSize = v.size;
  a.type = type;
  auto scale = l.op->getAttrOfType<FloatAttr>("scale");
  a.scale = scale ? scale.getValueAsDouble() : 1.0 / std::sqrt(double(q.size));
  a.softcap = l.op->getAttrOfType<FloatAttr>("softcap").getValueAsDouble();
  a.query = reader(l, q, type);
  a.key = reader(l, k, type);
  a.value = reader(l, v, type);

  const bool causal = l.node.integer("is_causal") != 0;
  const std::int64_t left = l.node.integer("left_window_size", -1),
                     right = l.node.integer("right_window_size", -1);
  if (left < -1 || right < -1)
    return l.refuse("a window size below -1");
  const bool hasMask = l.has(3);
  Tensor mask = hasMask ? l.in(3) : Tensor();
  Tensor lengths = hasLengths ? l.in(6) : Tensor();
  const bool isBoolMask = hasMask && isBool(mask.element());
  if (hasMask &&
      (mask.rank() < 1 || mask.rank() > 4 || mask.dims().back() > total))
    return l.refuse("the mask is not of the scores' shape");
  if (hasMask) {
    Dims scores{q.batch, q.count, q.positions};
    for (std::int64_t i = 0; i + 1 < mask.rank(); ++i) {
      std::int64_t dim = mask.dim(i), of = scores[3 - mask.rank() + 1 + i];
      if (dim != 1 && dim != of)
        return l.refuse("the mask is not of the scores' shape");
    }
  }
  const std::int64_t maskKeys = hasMask ? mask.dims().back() : 0;
  // One column serves all keys, as a broadcast does.
  const bool maskIsWide = hasMask && maskKeys == 1 && total > 1;
  auto maskAt = [&](Value b, Value h, Value i, Value j) {
    Index at{b, h, i, maskIsWide ? l.index(0) : l.inside(j, maskKeys)};
    return l.loadBroadcast(mask, at);
  };
  const bool restricts = causal || left >= 0 || right >= 0 || hasLengths ||
                         isBoolMask || (hasMask && maskKeys < total);
  if (restricts)
    a.allowed = [&](Value b, Value h, Value i, Value j) {
      Value is = l.b.create<arith::ConstantOp>(l.loc, l.b.getBoolAttr(true));
      Value position = l.addIndex(i, past);
      if (hasLengths) {
        Value length = asIndex(l, l.load(lengths, Index{b}));
        is = l.bitAnd(is, signedLess(l, j, length, false));
        position = l.addIndex(l.addIndex(i, length), -q.positions);
      }
      if (causal)
        is = l.bitAnd(is, signedLess(l, j, position, true));
      if (left >= 0)
        is = l.bitAnd(is, signedLess(l, l.addIndex(position, -left), j, true));
      if (right >= 0)
        is = l.bitAnd(is, signedLess(l, j, l.addIndex(position, right), true));
      if (hasMask && maskKeys < total && !maskIsWide)
        is = l.bitAnd(is, l.within(j, maskKeys));
      if (isBoolMask)
        is = l.bitAnd(is, maskAt(b, h, i, j).value);
      return is;
    };
  if (hasMask && !isBoolMask)
    a.bias = [&](Value b, Value h, Value i, Value j) {
      return l.cast(maskAt(b, h, i, j), type);
    };
  Heads y = headsOf(l.out(0), q.count);
  a.store = [&](Value b, Value h, Value i, Value d, Scalar value) {
    l.store(y.tensor, y.at(l, b, h, i, d), l.cast(value, y.tensor.element()));
  };
  if (l.wants(3)) {
    a.stage = static_cast<int>(l.node.integer("qk_matmul_output_mode"));
    if (a.stage < 0 || a.stage > 3)
      return l.refuse("qk_matmul_output_mode " + llvm::Twine(a.stage));
    Tensor scores = l.out(3);
    a.observe = [&l, scores](Indices at, Scalar value) {
      l.store(scores, at, l.cast(value, scores.element()));
    };
    attend(l, a);
    return success();
  }
  attend(l, a);
  return success();
}

// com.microsoft: each row of the batch has seqlens_k + 1 positions in all. Where
// the query is as long as the longest, this is a prompt and nothing is past.
LogicalResult groupQuery(Lowering &l) {
  const std::int64_t heads = l.node.integer("num_heads"),
                     kvHeads = l.node.integer("kv_num_heads");
  if (l.node.integer("smooth_softmax") > 0 || l.has(11))
    return l.refuse("smooth_softmax and head_sink are not supported");
  auto totals = onnx::knownInts(l.op->getOperand(6));
  if (!totals || totals->size() != 1)
    return l.refuse("total_sequence_length must be known");
  Tensor query = l.in(0), lengths = l.in(5);
  const std::int64_t batch = query.dim(0), positions = query.dim(1);
  if (lengths.type.getNumElements() != batch)
    return l.refuse("seqlens_k has " +
                    llvm::Twine(lengths.type.getNumElements()) +
                    " elements, expected one for each of " +
                    llvm::Twine(batch) + " sequences");
  lengths = l.reshaped(lengths, {batch});
  if (auto known = onnx::knownInts(l.op->getOperand(5)))
    for (std::int64_t length : *known)
      if (length < 0 || length >= (*totals)[0])
        return l.refuse("seqlens_k " + llvm::Twine(length) +
                        " is not within 0 and total_sequence_length - 1");
  const bool isPacked = !l.has(1), hasPast = l.has(3);
  Type type = wideType(query.element());
  Heads all = headsOf(query, isPacked ? heads + 2 * kvHeads : heads);
  const std::int64_t size = all.size;
  Heads k = isPacked ? all : headsOf(l.in(1), kvHeads),
        v = isPacked ? all : headsOf(l.in(2), kvHeads);
  if (!isPacked && (k.size != size || k.positions != positions))
    return l.refuse("query, key and value do not go together");
  const bool isPrompt = (*totals)[0] == positions;
  // [batch, kvHeads, present, size], also where no output is asked for.
  auto presentType = RankedTensorType::get(
      {batch, kvHeads,
       std::max((*totals)[0], hasPast ? l.in(3).dim(2) : std::int64_t(0)),
       size},
      query.element());
  const std::int64_t present = presentType.getDimSize(2);
  auto pastOf = [&](Value b) -> Value {
    if (isPrompt)
      return l.index(0);
    Value length = asIndex(l, l.load(lengths, Index{b}));
    Value past = l.addIndex(l.addIndex(length, 1), -positions);
    past = l.b.create<arith::MaxSIOp>(l.loc, past, l.index(0));
    return l.b.create<arith::MinSIOp>(
        l.loc, past, l.index(std::max<std::int64_t>(present - positions, 0)));
  };

  const bool rotates = l.node.integer("do_rotary") != 0,
             interleaved = l.node.integer("rotary_interleaved") != 0;
  if (rotates && (!l.has(7) || !l.has(8)))
    return l.refuse("do_rotary without cos_cache and sin_cache");
  const std::int64_t half = rotates ? l.in(7).dim(1) : 0;
  if (half * 2 > size)
    return l.refuse("cos_cache is wider than half a head");
  // Element (b, h, i, d) of new queries or keys, rotated.
  auto rotated = [&](Heads from, Value b, Value h, Value i, Value d) {
    auto at = [&](Value column) {
      return l.cast(l.load(from.tensor, from.at(l, b, h, i, column)), type);
    };
    if (!rotates)
      return at(d);
    Value position = l.has(9) ? asIndex(l, l.load(l.in(9), Index{b, i}))
                              : l.addIndex(pastOf(b), i);
    position = l.inside(position, l.in(7).dim(0));
    Value rotating = l.within(d, 2 * half);
    Value place = l.inside(d, 2 * half);
    Value pair = interleaved ? l.divIndex(place, 2) : l.remIndex(place, half);
    Value isSecond =
        interleaved ? signedLess(l, l.index(0), l.remIndex(place, 2), false)
                    : signedLess(l, l.index(half), place, true);
    Value first = interleaved ? l.mulIndex(pair, 2) : pair;
    Value second = l.addIndex(first, interleaved ? 1 : half);
    Scalar c = l.cast(l.load(l.in(7), Index{position, pair}), type),
           s = l.cast(l.load(l.in(8), Index{position, pair}), type);
    Scalar x = at(first), y = at(second);
    Scalar turned = l.select(isSecond, l.add(l.mul(s, x), l.mul(c, y)),
                             l.sub(l.mul(c, x), l.mul(s, y)));
    return l.select(rotating, turned, at(d));
  };
  auto fillPresent = [&](unsigned result, unsigned from, Heads now,
                         std::int64_t firstHead, bool rotate) {
    Tensor whole = l.wants(result)
                       ? l.out(result)
                       : l.temporary(presentType.getShape(), query.element());
    l.fill(whole, [&](Indices at) {
      Value place = l.b.create<arith::SubIOp>(l.loc, at[2], pastOf(at[0]));
      Value isNew = l.within(place, positions);
      Value inside = l.inside(place, positions);
      Value head = l.addIndex(at[1], firstHead);
      Scalar fresh =
          rotate ? l.cast(rotated(now, at[0], head, inside, at[3]),
                          whole.element())
                 : l.load(now.tensor, now.at(l, at[0], head, inside, at[3]));
      Scalar old = l.zero(whole.element());
      if (hasPast && l.in(from).dim(2) > 0) {
        Tensor past = l.in(from);
        old = l.select(l.within(at[2], past.dim(2)),
                       l.load(past, Index{at[0], at[1],
                                          l.inside(at[2], past.dim(2)), at[3]}),
                       old);
      }
      return l.select(isNew, fresh, old);
    });
    return headsOf(whole, kvHeads);
  };
  Heads keys = fillPresent(1, 3, k, isPacked ? heads : 0, true);
  Heads values = fillPresent(2, 4, v, isPacked ? heads + kvHeads : 0, false);
  Tensor turned = l.temporary({batch, heads, positions, size}, type);
  l.fill(turned,
         [&](Indices at) { return rotated(all, at[0], at[1], at[2], at[3]); });

  Attention a;
  a.batch = batch;
  a.heads = heads;
  a.kvHeads = kvHeads;
  a.queries = positions;
  a.keys = present;
  a.size = a.valueSize = size;
  a.type = type;
  double scale = l.op->getAttrOfType<FloatAttr>("scale").getValueAsDouble();
  a.scale = scale != 0 ? scale : 1.0 / std::sqrt(double(size));
  a.softcap = l.op->getAttrOfType<FloatAttr>("softcap").getValueAsDouble();
  a.query = reader(l, headsOf(turned, heads), type);
  a.key = reader(l, keys, type);
  a.value = reader(l, values, type);
  const std::int64_t window = l.node.integer("local_window_size", -1);
  a.allowed = [&](Value b, Value, Value i, Value j) {
    Value position = l.addIndex(pastOf(b), i);
    Value is = signedLess(l, j, position, true);
    if (window > 0)
      is = l.bitAnd(is, signedLess(l, l.addIndex(position, -window), j, false));
    return is;
  };
  if (l.has(10))
    a.bias = [&](Value b, Value h, Value i, Value j) {
      Tensor bias = l.in(10);
      Index at{b, h, i, l.inside(j, bias.dims().back())};
      return l.cast(l.loadBroadcast(bias, at), type);
    };
  Heads y = headsOf(l.out(0), heads);
  a.store = [&](Value b, Value h, Value i, Value d, Scalar value) {
    l.store(y.tensor, y.at(l, b, h, i, d), l.cast(value, y.tensor.element()));
  };
  attend(l, a);
  return success();
}

// com.microsoft: heads side by side, a bias for q, k and v in one vector.
LogicalResult multiHead(Lowering &l) {
  const std::int64_t heads = l.node.integer("num_heads");
  Heads q = headsOf(l.in(0), heads), k = headsOf(l.in(1), heads),
        v = headsOf(l.in(2), heads);
  const bool hasPast = l.has(6), hasBias = l.has(3), hasPadding = l.has(4);
  Type type = wideType(q.tensor.element());
  const std::int64_t past = hasPast ? l.in(6).dim(2) : 0,
                     total = past + k.positions;
  if (hasPadding && (l.in(4).rank() != 2 || l.in(4).dim(1) != total))
    return l.refuse("key_padding_mask [batch, keys] is supported only");
  auto withBias = [&](Heads from, std::int64_t begin) {
    if (!hasBias)
      return from;
    Tensor sum = l.temporary(from.tensor.dims(), from.tensor.element());
    l.fill(sum, [&](Indices at) {
      return l.add(l.load(from.tensor, at),
                   l.load(l.in(3), Index{l.addIndex(at[2], begin)}));
    });
    return headsOf(sum, heads);
  };
  const std::int64_t columns = q.tensor.dim(2);
  q = withBias(q, 0);
  k = withBias(k, columns);
  v = withBias(v, 2 * columns);
  auto present = [&](unsigned result, unsigned from, Heads now) {
    if (!hasPast && !l.wants(result))
      return now;
    Tensor whole = l.wants(result)
                       ? l.out(result)
                       : l.temporary({now.batch, heads, total, now.size},
                                     now.tensor.element());
    concatenate(l, hasPast ? l.in(from) : Tensor(), now, whole);
    return headsOf(whole, heads);
  };
  k = present(1, 6, k);
  v = present(2, 7, v);
  Attention a;
  a.batch = q.batch;
  a.heads = a.kvHeads = heads;
  a.queries = q.positions;
  a.keys = total;
  a.size = q.size;
  a.valueSize = v.size;
  a.type = type;
  double scale = l.op->getAttrOfType<FloatAttr>("scale").getValueAsDouble();
  a.scale = scale != 0 ? scale : 1.0 / std::sqrt(double(q.size));
  a.query = reader(l, q, type);
  a.key = reader(l, k, type);
  a.value = reader(l, v, type);
  const bool causal = l.node.integer("unidirectional") != 0;
  if (causal || hasPadding)
    a.allowed = [&](Value b, Value, Value i, Value j) {
      Value is = l.b.create<arith::ConstantOp>(l.loc, l.b.getBoolAttr(true));
      if (causal)
        is = l.bitAnd(is, signedLess(l, j, l.addIndex(i, past), true));
      if (hasPadding)
        is = l.bitAnd(
            is, l.cast(l.load(l.in(4), Index{b, j}), l.b.getI1Type()).value);
      return is;
    };
  if (l.has(5))
    a.bias = [&](Value b, Value h, Value i, Value j) {
      return l.cast(l.loadBroadcast(l.in(5), Index{b, h, i, j}), type);
    };
  Heads y = headsOf(l.out(0), heads);
  a.store = [&](Value b, Value h, Value i, Value d, Scalar value) {
    l.store(y.tensor, y.at(l, b, h, i, d), l.cast(value, y.tensor.element()));
  };
  attend(l, a);
  return success();
}

LogicalResult rotary(Lowering &l) {
  Heads x = headsOf(l.in(0), l.node.integer("num_heads")),
        y = headsOf(l.out(0), l.node.integer("num_heads"));
  Tensor cosines = l.in(1), sines = l.in(2);
  const bool interleaved = l.node.integer("interleaved") != 0,
             hasPositions = l.has(3);
  std::int64_t dim = l.node.integer("rotary_embedding_dim");
  dim = dim == 0 ? x.size : dim;
  const std::int64_t half = dim / 2;
  if (dim % 2 != 0 || dim > x.size || x.size * x.count == 0 ||
      cosines.dims().back() != half || sines.dims() != cosines.dims() ||
      cosines.rank() != (hasPositions ? 2 : 3))
    return l.refuse("the caches are not of half a rotated head");
  Type type = wideType(x.tensor.element());
  Dims dims{x.batch, x.positions, x.count, x.size};
  l.forEach(dims, [&](Indices at) {
    Value b = at[0], i = at[1], h = at[2], d = at[3];
    auto load = [&](Value column) {
      return l.cast(l.load(x.tensor, x.at(l, b, h, i, column)), type);
    };
    Value place = l.inside(d, dim);
    Value pair = interleaved ? l.divIndex(place, 2) : l.remIndex(place, half);
    Value isSecond =
        interleaved ? signedLess(l, l.index(0), l.remIndex(place, 2), false)
                    : signedLess(l, l.index(half), place, true);
    Value first = interleaved ? l.mulIndex(pair, 2) : pair;
    Value second = l.addIndex(first, interleaved ? 1 : half);
    auto angle = [&](Tensor cache) {
      if (!hasPositions) {
        Index own{cache.dim(0) == 1 ? l.index(0) : b,
                  cache.dim(1) == 1 ? l.index(0) : i, pair};
        return l.cast(l.load(cache, own), type);
      }
      Value position =
          l.toIndex(l.loadBroadcast(l.in(3), Index{b, i}), cache.dim(0));
      return l.cast(l.load(cache, Index{position, pair}), type);
    };
    Scalar c = angle(cosines), s = angle(sines);
    Scalar u = load(first), v = load(second);
    Scalar turned = l.select(isSecond, l.add(l.mul(s, u), l.mul(c, v)),
                             l.sub(l.mul(c, u), l.mul(s, v)));
    Scalar value = l.select(l.within(d, dim), turned, load(d));
    l.store(y.tensor, y.at(l, b, h, i, d), l.cast(value, y.tensor.element()));
  });
  return success();
}

} // namespace

LoweringRule lowerAttention(llvm::StringRef name) {
  return llvm::StringSwitch<LoweringRule>(name)
      .Case("Attention", attention)
      .Case("GroupQueryAttention", groupQuery)
      .Case("MultiHeadAttention", multiHead)
      .Case("RotaryEmbedding", rotary)
      .Default(nullptr);
}

} // namespace ingot::graph
