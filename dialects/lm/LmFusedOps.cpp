// Verifiers of attention, plain and fused, over the state.
#include "dialects/lm/LmOps.h"

#include "llvm/ADT/bit.h"

#include <cmath>

using namespace mlir;
using namespace ingot::lm;

static LogicalResult verifyColumns(Operation *op, llvm::StringRef label,
                                   llvm::StringRef what, std::int64_t heads,
                                   std::int64_t headDim, std::int64_t columns) {
  std::int64_t product = 0;
  if (heads <= 0 || headDim <= 0 ||
      __builtin_mul_overflow(heads, headDim, &product) || product != columns)
    return op->emitOpError(label)
           << ": " << heads << " heads of " << headDim << " are not the "
           << columns << " columns of the " << what;
  return success();
}

static LogicalResult verifyGroups(Operation *op, llvm::StringRef label,
                                  std::int64_t heads, std::int64_t kvHeads) {
  if (kvHeads <= 0 || heads % kvHeads != 0)
    return op->emitOpError(label) << ": " << heads << " heads cannot share "
                                  << kvHeads << " key heads";
  return success();
}

template <typename OpT>
static LogicalResult verifyWindowAndCap(OpT op, llvm::StringRef label) {
  if (static_cast<std::int64_t>(op.getWindow()) < 0 ||
      op.getSoftCap().isNegative() || op.getSoftCap().isNaN())
    return op.emitOpError(label)
           << ": window and soft_cap must not be negative";
  if (op.getBidirectional() && op.getWindow() != 0)
    return op.emitOpError(label)
           << ": what looks both ways has no window, found " << op.getWindow();
  return success();
}

template <typename OpT>
static LogicalResult verifySlopes(OpT op, llvm::StringRef label) {
  auto slopes = op.getSlopes();
  if (!slopes)
    return op.getRoundedSlopes()
               ? op.emitOpError(label) << ": rounded_slopes without slopes"
               : success();
  if (op.getBidirectional())
    return op.emitOpError(label) << ": what looks both ways has no slopes";
  if (slopes->size() != static_cast<std::size_t>(op.getHeads()))
    return op.emitOpError(label) << ": expected " << op.getHeads()
                                 << " slopes, found " << slopes->size();
  for (float slope : *slopes)
    if (!std::isfinite(slope) ||
        (op.getRoundedSlopes() &&
         (llvm::bit_cast<std::uint32_t>(slope) & 0xffffu) != 0))
      return op.emitOpError(label)
             << ": a slope is not finite"
             << (op.getRoundedSlopes() ? ", or no bfloat16" : "");
  return success();
}

// The state is of the op's geometry and has its layer; a state that drops old
// positions keeps at least those that the op still sees (`window` of an op
// without one is negative).
template <typename OpT>
static LogicalResult verifyState(OpT op, SymbolTableCollection &symbols,
                                 llvm::StringRef label, std::int64_t window) {
  auto state = symbols.lookupNearestSymbolFrom<StateOp>(op, op.getStateAttr());
  if (!state)
    return op.emitOpError(label)
           << ": " << op.getStateAttr() << " is not an lm.state";
  if (state.getKvHeads() != op.getKvHeads() ||
      state.getHeadDim() != op.getHeadDim() ||
      op.getStateLayer() >= state.getLayers()) {
    InFlightDiagnostic diagnostic =
        op.emitOpError(label)
        << ": layer " << op.getStateLayer() << " with " << op.getKvHeads()
        << " key heads of " << op.getHeadDim() << " is not in "
        << op.getStateAttr() << " (" << state.getLayers() << " layers, "
        << state.getKvHeads() << " of " << state.getHeadDim() << ")";
    diagnostic.attachNote(state.getLoc()) << "the state is here";
    return diagnostic;
  }
  std::int64_t kept = state.getWindow();
  if (window >= 0 && kept > 0 && (window == 0 || window > kept))
    return op.emitOpError(label)
           << ": the window " << window << " of the op exceeds the " << kept
           << " positions that " << op.getStateAttr() << " keeps";
  return success();
}

//===----------------------------------------------------------------------===//
// attention
//===----------------------------------------------------------------------===//

LogicalResult AttentionOp::verify() {
  if (failed(verifyColumns(*this, "attention_c1", "query", getHeads(),
                           getHeadDim(), columnsOf(getQuery().getType()))) ||
      failed(verifyColumns(*this, "attention_c1", "key", getKvHeads(),
                           getHeadDim(), columnsOf(getKey().getType()))) ||
      failed(verifyGroups(*this, "attention_c2", getHeads(), getKvHeads())))
    return failure();
  return success(succeeded(verifyWindowAndCap(*this, "attention_c4")) &&
                 succeeded(verifySlopes(*this, "attention_c5")));
}

LogicalResult AttentionOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyState(*this, symbols, "attention_c3", getWindow());
}

//===----------------------------------------------------------------------===//
// rope_cache_write
//===----------------------------------------------------------------------===//

LogicalResult RopeCacheWriteOp::verify() {
  std::int64_t kvHeads = getKvHeads(), heads = getHeads();
  std::int64_t all = 0;
  if (kvHeads <= 0 || __builtin_mul_overflow(kvHeads, 2, &all) ||
      __builtin_add_overflow(all, heads, &all))
    all = -1;
  if (failed(verifyColumns(*this, "rope_cache_write_c1", "merged projection",
                           all, getHeadDim(), columnsOf(getQkv().getType()))) ||
      failed(verifyColumns(*this, "rope_cache_write_c1", "query", heads,
                           getHeadDim(), columnsOf(getQuery().getType()))) ||
      failed(verifyGroups(*this, "rope_cache_write_c5", heads, kvHeads)))
    return failure();
  std::int64_t rotary = getRotaryDim();
  std::int64_t table = getTable() ? columnsOf(getTable().getType()) : 0;
  if ((getTable() && rotary <= 0) || rotary % 2 != 0 ||
      rotary > static_cast<std::int64_t>(getHeadDim()) || rotary != table)
    return emitOpError("rope_cache_write_c2: rotary_dim ")
           << rotary << " must be even, at most head_dim (" << getHeadDim()
           << ") and the table's columns (" << table << ")";
  bool hasEps = !getNormEps().isZero() && !getNormEps().isNegative();
  if (static_cast<bool>(getQNormAttr()) != static_cast<bool>(getKNormAttr()) ||
      static_cast<bool>(getQNormAttr()) != hasEps)
    return emitOpError("rope_cache_write_c3: q_norm, k_norm and a positive "
                       "norm_eps are given together or not at all");
  if (getNormKind() == NormKind::Layer &&
      (getNormRows() || !getNormOffset().isZero()))
    return emitOpError("rope_cache_write_c3: a layer norm is of heads and has "
                       "no norm_offset");
  return success();
}

LogicalResult
RopeCacheWriteOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // One vector for all heads, or one of all heads' own.
  bool own = getNormRows();
  for (auto [norm, heads] : {std::pair(getQNormAttr(), getHeads()),
                             std::pair(getKNormAttr(), getKvHeads())}) {
    if (!norm)
      continue;
    auto weight = symbols.lookupNearestSymbolFrom<WeightOp>(*this, norm);
    std::int64_t headDim = getHeadDim();
    if (norm == getQNormAttr() && weight && weight.getRows() != headDim)
      own = true;
    std::int64_t size =
        own ? headDim * static_cast<std::int64_t>(heads) : headDim;
    if (!weight || weight.isMatrix() || weight.getRows() != size ||
        weight.getEncoding().getCode() != WeightCode::F32)
      return emitOpError("rope_cache_write_c3: ")
             << norm << " must be a vector of " << size << " f32";
  }
  return verifyState(*this, symbols, "rope_cache_write_c4", -1);
}

//===----------------------------------------------------------------------===//
// cached_attention
//===----------------------------------------------------------------------===//

LogicalResult CachedAttentionOp::verify() {
  if (failed(verifyColumns(*this, "cached_attention_c1", "query", getHeads(),
                           getHeadDim(), columnsOf(getQuery().getType()))) ||
      failed(verifyColumns(*this, "cached_attention_c1", "result", getHeads(),
                           getHeadDim(), columnsOf(getType()))) ||
      failed(verifyGroups(*this, "cached_attention_c2", getHeads(),
                          getKvHeads())) ||
      failed(verifyWindowAndCap(*this, "cached_attention_c4")) ||
      failed(verifySlopes(*this, "cached_attention_c6")))
    return failure();
  if (auto quantized = dyn_cast<QuantizedType>(getType()))
    if (static_cast<std::int64_t>(getHeadDim()) % quantized.getGroup() != 0)
      return emitOpError("cached_attention_c5: groups of ")
             << quantized.getGroup() << " straddle heads of " << getHeadDim();
  auto write = getCache().getDefiningOp<RopeCacheWriteOp>();
  if (!write)
    return emitOpError("cached_attention_c3: the cache does not come from an "
                       "lm.rope_cache_write");
  if (write.getStateAttr() != getStateAttr() ||
      write.getStateLayer() != getStateLayer() ||
      write.getKvHeads() != getKvHeads() ||
      write.getHeadDim() != getHeadDim()) {
    InFlightDiagnostic diagnostic =
        emitOpError("cached_attention_c3: state, layer or geometry differ from "
                    "those of the write");
    diagnostic.attachNote(write.getLoc()) << "the write is here";
    return diagnostic;
  }
  return success();
}

LogicalResult
CachedAttentionOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyState(*this, symbols, "cached_attention_c3", getWindow());
}
