// Matrix products. Sums of halves and bfloat16 are float32 until they are
// stored; every product adds in ascending order of the inner dimension.
#include "compiler/codegen/graph/Lowering.h"

#include "dialects/onnx/Windows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace ingot::graph {
namespace {

// sum[m, n] += a(m, k) * b(k, n), loops in the order batch, m, k, n: the
// innermost walks rows.
void accumulate(Lowering &l, Tensor sum, std::int64_t inner,
                llvm::function_ref<Scalar(Indices batch, Value m, Value k)> a,
                llvm::function_ref<Scalar(Indices batch, Value k, Value n)> b) {
  l.fill(sum, [&](Indices) { return l.zero(sum.element()); });
  Dims loops(sum.dims());
  const std::int64_t columns = loops.pop_back_val();
  loops.push_back(inner);
  l.forEach(loops, [&](Indices at) {
    const std::size_t batch = at.size() - 2;
    Scalar left = l.cast(a(at.take_front(batch), at[batch], at[batch + 1]),
                         sum.element());
    l.forEach({columns}, [&](Indices column) {
      Index place(at.take_front(batch + 1));
      place.push_back(column[0]);
      Scalar right = l.cast(b(at.take_front(batch), at[batch + 1], column[0]),
                            sum.element());
      l.store(sum, place, l.add(l.load(sum, place), l.mul(left, right)));
    });
  });
}

// [m, k] x [k, n] for each index of the batch, vectors made matrices.
struct Operands {
  Tensor a, b;
  Dims batch;
  std::int64_t m, k, n;
};
Operands matrices(Lowering &l, Tensor a, Tensor b, Tensor y) {
  Operands o;
  Dims left(a.dims()), right(b.dims());
  if (left.size() == 1)
    left.insert(left.begin(), 1);
  if (right.size() == 1)
    right.push_back(1);
  o.m = left[left.size() - 2];
  o.k = left.back();
  o.n = right.back();
  o.a = l.reshaped(a, left);
  o.b = l.reshaped(b, right);
  const std::int64_t outer = y.rank() - (a.rank() > 1) - (b.rank() > 1);
  o.batch = Dims(y.dims().take_front(outer));
  return o;
}

Scalar element(Lowering &l, Tensor from, Indices batch, Value row,
               Value column) {
  Index at(batch);
  at.push_back(row);
  at.push_back(column);
  Index own(at.end() - from.rank(), at.end());
  for (std::int64_t i = 0; i + 2 < from.rank(); ++i)
    if (from.dim(i) == 1)
      own[i] = l.index(0);
  return l.load(from, own);
}

LogicalResult matMul(Lowering &l) {
  Tensor y = l.out(0);
  Operands o = matrices(l, l.in(0), l.in(1), y);
  Dims dims(o.batch);
  dims.push_back(o.m);
  dims.push_back(o.n);
  Type type = sumType(y.element());
  const bool isDirect = type == y.element();
  Tensor sum = isDirect ? l.reshaped(y, dims) : l.temporary(dims, type);
  accumulate(
      l, sum, o.k,
      [&](Indices batch, Value m, Value k) {
        return element(l, o.a, batch, m, k);
      },
      [&](Indices batch, Value k, Value n) {
        return element(l, o.b, batch, k, n);
      });
  if (!isDirect)
    l.fill(l.reshaped(y, dims),
           [&](Indices at) { return l.cast(l.load(sum, at), y.element()); });
  return success();
}

// A zero point: one for all, or one for each row of A or column of B.
Scalar centred(Lowering &l, Scalar x, unsigned zero, Value place) {
  Type i32 = l.b.getI32Type();
  Scalar wide = l.cast(x, i32);
  if (!l.has(zero))
    return wide;
  Tensor points = l.in(zero);
  if (points.type.getNumElements() == 1)
    return l.sub(wide, l.cast(l.loadScalar(points), i32));
  return l.sub(wide, l.cast(l.load(points, Index{place}), i32));
}

LogicalResult matMulInteger(Lowering &l) {
  Tensor y = l.out(0);
  Operands o = matrices(l, l.in(0), l.in(1), y);
  for (unsigned zero : {2u, 3u})
    if (l.has(zero) && l.in(zero).type.getNumElements() != 1 &&
        (l.in(zero).rank() != 1 ||
         l.in(zero).dim(0) != (zero == 2 ? o.m : o.n)))
      return l.refuse("a zero point that is neither one number nor one for "
                      "each row or column");
  Dims dims(o.batch);
  dims.push_back(o.m);
  dims.push_back(o.n);
  accumulate(
      l, l.reshaped(y, dims), o.k,
      [&](Indices batch, Value m, Value k) {
        return centred(l, element(l, o.a, batch, m, k), 2, m);
      },
      [&](Indices batch, Value k, Value n) {
        return centred(l, element(l, o.b, batch, k, n), 3, n);
      });
  return success();
}

LogicalResult gemm(Lowering &l) {
  Tensor a = l.in(0), b = l.in(1), y = l.out(0);
  const bool ta = l.node.integer("transA") != 0,
             tb = l.node.integer("transB") != 0;
  Type type = sumType(y.element());
  Tensor sum = l.temporary(y.dims(), type);
  accumulate(
      l, sum, a.dim(ta ? 0 : 1),
      [&](Indices, Value m, Value k) {
        return l.load(a, ta ? Index{k, m} : Index{m, k});
      },
      [&](Indices, Value k, Value n) {
        return l.load(b, tb ? Index{n, k} : Index{k, n});
      });
  auto factor = [&](llvm::StringRef name) {
    return l.op->getAttrOfType<FloatAttr>(name).getValueAsDouble();
  };
  const bool has = l.has(2);
  Tensor c = has ? l.in(2) : Tensor();
  l.fill(y, [&](Indices at) {
    auto scaled = [&](Scalar x, double by) {
      if (by == 1.0)
        return x;
      if (isFloat(x.type))
        return l.mul(x, l.number(by, x.type));
      Type f64 = l.b.getF64Type();
      return l.cast(l.mul(l.cast(x, f64), l.number(by, f64)), x.type);
    };
    Scalar value = scaled(l.load(sum, at), factor("alpha"));
    if (has)
      value = l.add(
          value, scaled(l.cast(l.loadBroadcast(c, at), type), factor("beta")));
    return l.cast(value, y.element());
  });
  return success();
}

LogicalResult einsum(Lowering &l) {
  auto plan = onnx::planEinsum(l.op);
  if (failed(plan))
    return failure();
  Tensor y = l.out(0);
  llvm::SmallVector<unsigned> summed;
  Dims extents;
  for (unsigned letter = 0; letter < plan->sizes.size(); ++letter)
    if (!llvm::is_contained(plan->output, letter)) {
      summed.push_back(letter);
      extents.push_back(plan->sizes[letter]);
    }
  Type type = sumType(y.element());
  l.fill(y, [&](Indices at) {
    Scalar total =
        l.reduce(extents, l.zero(type), [&](Indices inner, Scalar sum) {
          Index place(plan->sizes.size());
          for (auto [letter, value] : llvm::zip(plan->output, at))
            place[letter] = value;
          for (auto [letter, value] : llvm::zip(summed, inner))
            place[letter] = value;
          Scalar product = l.number(1, type);
          for (auto [i, letters] : llvm::enumerate(plan->inputs)) {
            Tensor x = l.in(i);
            Index own;
            for (auto [dim, letter] : llvm::zip(x.dims(), letters))
              own.push_back(dim == 1 ? l.index(0) : place[letter]);
            product = l.mul(product, l.cast(l.load(x, own), type));
          }
          return l.add(sum, product);
        });
    return l.cast(total, y.element());
  });
  return success();
}

// Codes from the lowest bit of each byte; a block has block_size codes, the last
// one too. Without zero points they are 2^(bits - 1).
LogicalResult matMulNBits(Lowering &l) {
  Tensor a = l.in(0), y = l.out(0);
  const std::int64_t k = l.node.integer("K"), n = l.node.integer("N"),
                     bits = l.node.integer("bits"),
                     block = l.node.integer("block_size");
  const std::int64_t blocks = (k + block - 1) / block;
  if (l.has(4))
    return l.refuse("g_idx is not supported");
  const bool hasZeros = l.has(3);
  if (hasZeros && l.in(3).element() != l.in(2).element() &&
      !l.in(3).element().isUnsignedInteger(8))
    return l.refuse("zero points are packed codes or numbers like the scales");
  Type f32 = l.b.getF32Type(), i32 = l.b.getI32Type();
  Tensor codes = l.reshaped(l.in(1), {n, blocks, block * bits / 8});
  Tensor scales = l.reshaped(l.in(2), {n, blocks});
  const std::int64_t perByte = 8 / bits;
  const bool isPacked = hasZeros && l.in(3).element().isUnsignedInteger(8);
  Tensor zeros;
  if (hasZeros)
    zeros = l.reshaped(
        l.in(3), {n, isPacked ? (blocks + perByte - 1) / perByte : blocks});
  auto code = [&](Scalar byte, Value place) {
    Scalar wide = l.cast(byte, i32);
    if (bits == 8)
      return wide;
    Scalar by = l.cast(l.fromIndex(l.mulIndex(l.remIndex(place, 2), 4)), i32);
    return l.bitAnd(l.shift(wide, by, false), l.integer(15, i32));
  };
  Tensor rows = l.reshaped(a, {a.type.getNumElements() / k, k});
  Tensor sum = l.temporary({rows.dim(0), n}, f32);
  l.fill(sum, [&](Indices at) {
    return l.reduce({k}, l.zero(f32), [&](Indices inner, Scalar total) {
      Value g = l.divIndex(inner[0], block), i = l.remIndex(inner[0], block);
      Scalar q =
          code(l.load(codes, Index{at[1], g, l.divIndex(i, perByte)}), i);
      Scalar zero = l.number(double(1 << (bits - 1)), f32);
      if (isPacked)
        zero = l.cast(
            code(l.load(zeros, Index{at[1], l.divIndex(g, perByte)}), g), f32);
      else if (hasZeros)
        zero = l.cast(l.load(zeros, Index{at[1], g}), f32);
      Scalar weight = l.mul(l.sub(l.cast(q, f32), zero),
                            l.cast(l.load(scales, Index{at[1], g}), f32));
      Scalar x = l.cast(l.load(rows, Index{at[0], inner[0]}), f32);
      return l.add(total, l.mul(x, weight));
    });
  });
  const bool hasBias = l.has(5);
  Tensor bias = hasBias ? l.in(5) : Tensor();
  l.fill(l.reshaped(y, sum.dims()), [&](Indices at) {
    Scalar value = l.load(sum, at);
    if (hasBias)
      value = l.add(value, l.cast(l.load(bias, Index{at[1]}), f32));
    return l.cast(value, y.element());
  });
  return success();
}

} // namespace

LoweringRule lowerProducts(llvm::StringRef name) {
  return llvm::StringSwitch<LoweringRule>(name)
      .Case("MatMul", matMul)
      .Case("MatMulInteger", matMulInteger)
      .Case("MatMulNBits", matMulNBits)
      .Case("Gemm", gemm)
      .Case("Einsum", einsum)
      .Default(nullptr);
}

} // namespace ingot::graph
