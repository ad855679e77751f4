#include "compiler/codegen/graph/Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace ingot::graph {

std::int64_t Arena::take(std::int64_t sizeBytes) {
  const std::int64_t wanted =
      std::max<std::int64_t>((sizeBytes + 63) / 64 * 64, 64);
  std::int64_t at = 0;
  auto place = used_.begin();
  for (; place != used_.end() && place->first - at < wanted; ++place)
    at = place->first + place->second;
  used_.insert(place, {at, wanted});
  size_ = std::max(size_, at + wanted);
  return at;
}

void Arena::free(std::int64_t offset) {
  llvm::erase_if(used_, [&](auto &one) { return one.first == offset; });
}

MemRefType bufferType(RankedTensorType type) {
  Dims dims(type.getShape());
  if (type.getNumElements() == 0)
    dims.assign(dims.size(), 1);
  return MemRefType::get(dims, storageType(type.getElementType()));
}

std::pair<Tensor, std::int64_t> Lowering::allocate(RankedTensorType type) {
  Type storage = storageType(type.getElementType());
  const std::int64_t bytes =
      type.getNumElements() * ((storage.getIntOrFloatBitWidth() + 7) / 8);
  const std::int64_t offset = arena_.take(bytes);
  Value buffer =
      b.create<memref::ViewOp>(loc, MemRefType::get(type.getShape(), storage),
                               arenaBuffer_, index(offset), ValueRange());
  return {{buffer, type}, offset};
}

Tensor Lowering::out(unsigned i) {
  for (auto &[result, tensor] : made_)
    if (result == i)
      return tensor;
  auto [tensor, place] =
      allocate(llvm::cast<RankedTensorType>(op->getResult(i).getType()));
  made_.push_back({i, tensor});
  places_[i] = place;
  return tensor;
}

Tensor Lowering::temporary(ArrayRef<std::int64_t> dims, Type element) {
  auto [tensor, place] = allocate(RankedTensorType::get(dims, element));
  temporaries_.push_back(place);
  return tensor;
}

Tensor Lowering::reshaped(Tensor tensor, ArrayRef<std::int64_t> dims) {
  auto type = RankedTensorType::get(dims, tensor.element());
  MemRefType memref = bufferType(type);
  SmallVector<std::int64_t> strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;)
    strides[i - 1] = strides[i] * memref.getDimSize(i);
  return {b.create<memref::ReinterpretCastOp>(loc, memref, tensor.memref, 0,
                                              memref.getShape(), strides),
          type};
}

void Lowering::fill(Tensor to, llvm::function_ref<Scalar(Indices)> value) {
  if (to.type.getNumElements() == 0)
    return;
  const std::int64_t rank = to.rank();
  AffineMap identity = b.getMultiDimIdentityMap(rank);
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  b.create<linalg::GenericOp>(
      loc, ValueRange(), ValueRange{to.memref}, ArrayRef{identity}, iterators,
      [&](OpBuilder &inner, Location, ValueRange) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPoint(inner.getInsertionBlock(),
                            inner.getInsertionPoint());
        Index at;
        for (std::int64_t i = 0; i < rank; ++i)
          at.push_back(b.create<linalg::IndexOp>(loc, i));
        Value result = narrow(value(at));
        b.create<linalg::YieldOp>(loc, result);
      });
}

Scalars
Lowering::loop(ArrayRef<std::int64_t> dims, Scalars state,
               llvm::function_ref<Scalars(Indices, ArrayRef<Scalar>)> body) {
  Index at;
  std::function<Scalars(ArrayRef<Scalar>)> nest =
      [&](ArrayRef<Scalar> outer) -> Scalars {
    if (at.size() == dims.size())
      return body(at, outer);
    SmallVector<Value> values;
    for (const Scalar &one : outer)
      values.push_back(one.value);
    auto loop = b.create<scf::ForOp>(loc, index(0), index(dims[at.size()]),
                                     index(1), values);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    at.push_back(loop.getInductionVar());
    Scalars inside;
    for (auto [one, argument] : llvm::zip(outer, loop.getRegionIterArgs()))
      inside.push_back({argument, one.type});
    Scalars next = nest(inside);
    values.clear();
    for (const Scalar &one : next)
      values.push_back(one.value);
    // Without state the loop has its terminator already.
    if (!values.empty())
      b.create<scf::YieldOp>(loc, values);
    at.pop_back();
    Scalars result;
    for (auto [one, value] : llvm::zip(outer, loop.getResults()))
      result.push_back({value, one.type});
    return result;
  };
  return nest(state);
}

void Lowering::forEach(ArrayRef<std::int64_t> dims,
                       llvm::function_ref<void(Indices)> body) {
  loop(dims, {}, [&](Indices at, ArrayRef<Scalar>) {
    body(at);
    return Scalars();
  });
}

Scalar Lowering::reduce(ArrayRef<std::int64_t> dims, Scalar state,
                        llvm::function_ref<Scalar(Indices, Scalar)> body) {
  return loop(dims, {state}, [&](Indices at, ArrayRef<Scalar> inside) {
    return Scalars{body(at, inside[0])};
  })[0];
}

void Lowering::ifThen(Value condition, llvm::function_ref<void()> body) {
  auto branch = b.create<scf::IfOp>(loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}

Scalar Lowering::ifElse(Value condition, llvm::function_ref<Scalar()> value,
                        Scalar otherwise) {
  auto branch = b.create<scf::IfOp>(loc, TypeRange{otherwise.value.getType()},
                                    condition, true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  b.create<scf::YieldOp>(loc, value().value);
  b.setInsertionPointToStart(branch.elseBlock());
  b.create<scf::YieldOp>(loc, otherwise.value);
  return {branch.getResult(0), otherwise.type};
}

Scalar Lowering::load(Tensor from, Indices at) {
  return widen(b.create<memref::LoadOp>(loc, from.memref, at), from.element());
}

Scalar Lowering::loadBroadcast(Tensor from, Indices at) {
  Index own(at.take_back(from.rank()));
  for (auto [i, dim] : llvm::enumerate(from.dims()))
    if (dim == 1)
      own[i] = index(0);
  return load(from, own);
}

Scalar Lowering::loadScalar(Tensor from) {
  return load(from, Index(from.rank(), index(0)));
}

void Lowering::store(Tensor to, Indices at, Scalar value) {
  b.create<memref::StoreOp>(loc, narrow(value), to.memref, at);
}

LoweringRule findLowering(llvm::StringRef name) {
  for (auto family : {lowerElementwise, lowerMovement, lowerIndexing,
                      lowerReductions, lowerProducts, lowerWindows, lowerNorms,
                      lowerAttention, lowerQuantization})
    if (LoweringRule rule = family(name))
      return rule;
  return nullptr;
}

} // namespace ingot::graph
