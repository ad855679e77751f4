// --fuse-rotary-cache-write
//
// 1. For each attention, match its q and k as rotated by one table, or both not
//    rotated, after norms of one kind and eps or none.
// 2. Take the value whose columns are q, k and v as they were before: the input
//    of their split, or a concat of them.
// 3. Write it to the cache and attend over the cache, at the attention's place.
// 4. Erase what no longer has a use.
#include "passes/Passes.h"

#include "dialects/lm/LmOps.h"
#include "dialects/lm/Provenance.h"

namespace ingot {
#define GEN_PASS_DEF_FUSEROTARYCACHEWRITEPASS
#include "passes/Passes.h.inc"
} // namespace ingot

using namespace mlir;
using namespace ingot;

namespace {

// One of q and k: what it was made from.
struct Made {
  lm::RotaryOp rotary; // may be null
  lm::HeadNormOp norm; // may be null
  Value projection;
};

Made matchMade(Value value) {
  Made match;
  match.projection = value;
  match.rotary = value.getDefiningOp<lm::RotaryOp>();
  if (match.rotary)
    match.projection = match.rotary.getInput();
  match.norm = match.projection.getDefiningOp<lm::HeadNormOp>();
  if (match.norm)
    match.projection = match.norm.getInput();
  return match;
}

// `made` has `heads` heads of `headDim` columns in each of its operators; its
// norm may also be one of the whole row.
bool hasHeads(const Made &made, std::uint64_t heads, std::uint64_t headDim) {
  lm::HeadNormOp norm = made.norm;
  lm::RotaryOp rotary = made.rotary;
  return (!rotary ||
          (rotary.getHeads() == heads && rotary.getHeadDim() == headDim)) &&
         (!norm || norm.getHeads() == 1 ||
          (norm.getHeads() == heads && norm.getHeadDim() == headDim));
}

// Whether a norm is of all heads of a row together.
bool isOfRow(lm::HeadNormOp norm, std::uint64_t headDim) {
  return norm && norm.getHeadDim() != headDim;
}

std::int64_t weightSize(lm::HeadNormOp norm) {
  return lm::lookupWeight(norm, norm.getWeightAttr()).getRows();
}

bool agree(Made &q, Made &k, std::uint64_t headDim) {
  if (static_cast<bool>(q.rotary) != static_cast<bool>(k.rotary) ||
      static_cast<bool>(q.norm) != static_cast<bool>(k.norm))
    return false;
  if (q.rotary && (q.rotary.getTable() != k.rotary.getTable() ||
                   q.rotary.getRotaryDim() != k.rotary.getRotaryDim() ||
                   q.rotary.getInterleaved() != k.rotary.getInterleaved()))
    return false;
  if (!q.norm)
    return true;
  if (q.norm.getEpsAttr() != k.norm.getEpsAttr() ||
      q.norm.getKind() != k.norm.getKind() ||
      q.norm.getWeightOffset() != k.norm.getWeightOffset())
    return false;
  // One key head is a row: its norm goes with either form of the queries'.
  bool ofRow = isOfRow(q.norm, headDim);
  if (isOfRow(k.norm, headDim) != ofRow && k.norm.getHeadDim() != headDim)
    return false;
  if (ofRow)
    return q.norm.getKind() == lm::NormKind::Rms;
  bool own = weightSize(q.norm) != static_cast<std::int64_t>(headDim);
  return weightSize(k.norm) ==
         static_cast<std::int64_t>(own ? k.norm.getHeads() * headDim : headDim);
}

Value joinColumns(OpBuilder &builder, Location location, Value q, Value k,
                  Value v) {
  if (auto split = q.getDefiningOp<lm::SplitOp>())
    if (llvm::equal(split.getParts(), llvm::ArrayRef<Value>{q, k, v}))
      return split.getInput();
  std::int64_t columns = 0;
  for (Value part : {q, k, v})
    columns += lm::columnsOf(part.getType());
  return builder.create<lm::ConcatOp>(
      location, lm::activationType(builder.getContext(), columns),
      ValueRange{q, k, v});
}

// "layer.0.attention" and "cache_write" give "layer.0.cache_write".
Location siblingLocation(Location location, llvm::StringRef lastComponent) {
  llvm::StringRef name = lm::locationName(location);
  if (name.empty())
    return location;
  auto [prefix, last] = name.rsplit('.');
  return lm::nameLocation(location.getContext(),
                          last.empty() ? lastComponent.str()
                                       : (prefix + "." + lastComponent).str());
}

bool fuse(lm::AttentionOp attention) {
  Made q = matchMade(attention.getQuery());
  Made k = matchMade(attention.getKey());
  std::uint64_t headDim = attention.getHeadDim();
  if (!agree(q, k, headDim) || !hasHeads(q, attention.getHeads(), headDim) ||
      !hasHeads(k, attention.getKvHeads(), headDim))
    return false;

  OpBuilder builder(attention);
  Value qkv = joinColumns(builder, siblingLocation(attention.getLoc(), "qkv"),
                          q.projection, k.projection, attention.getValue());
  auto normOf = [](lm::HeadNormOp norm) {
    return norm ? norm.getWeightAttr() : FlatSymbolRefAttr();
  };
  llvm::SmallVector<Location> locations;
  for (Operation *op :
       std::initializer_list<Operation *>{q.norm, k.norm, q.rotary, k.rotary})
    if (op)
      locations.push_back(op->getLoc());
  Location writeLocation = siblingLocation(attention.getLoc(), "cache_write");
  if (!locations.empty())
    writeLocation = lm::derivedLocation(
        builder.getContext(), lm::locationName(writeLocation), locations);
  auto write = builder.create<lm::RopeCacheWriteOp>(
      writeLocation, attention.getQuery().getType(),
      lm::CacheType::get(builder.getContext()), qkv,
      q.rotary ? q.rotary.getTable() : Value(), attention.getStateAttr(),
      attention.getStateLayerAttr(), normOf(q.norm), normOf(k.norm),
      attention.getHeadsAttr(), attention.getKvHeadsAttr(),
      attention.getHeadDimAttr(),
      q.rotary ? q.rotary.getRotaryDimAttr() : builder.getI64IntegerAttr(0),
      q.norm ? q.norm.getEpsAttr() : builder.getF32FloatAttr(0.0f),
      q.rotary ? q.rotary.getInterleavedAttr() : UnitAttr(),
      q.norm ? q.norm.getKindAttr()
             : lm::NormKindAttr::get(builder.getContext(), lm::NormKind::Rms),
      isOfRow(q.norm, headDim) ? builder.getUnitAttr() : UnitAttr(),
      q.norm ? q.norm.getWeightOffsetAttr() : builder.getF32FloatAttr(0.0f));
  auto attended = builder.create<lm::CachedAttentionOp>(
      attention.getLoc(), attention.getType(), write.getQuery(),
      write.getCache(), attention.getStateAttr(), attention.getStateLayerAttr(),
      attention.getHeadsAttr(), attention.getKvHeadsAttr(),
      attention.getHeadDimAttr(), attention.getScaleAttr(),
      attention.getWindowAttr(), attention.getSoftCapAttr(),
      attention.getBidirectionalAttr(), attention.getSlopesAttr(),
      attention.getRoundedSlopesAttr());
  Value value = attention.getValue();
  attention.getResult().replaceAllUsesWith(attended.getResult());
  attention->erase();

  // From the rotations back to the split; each may have other users.
  llvm::SmallVector<Operation *> candidates;
  if (q.rotary)
    candidates.append({q.rotary, k.rotary});
  if (q.norm)
    candidates.append({q.norm, k.norm});
  if (auto split = value.getDefiningOp<lm::SplitOp>())
    candidates.push_back(split);
  for (Operation *op : candidates)
    if (op->use_empty())
      op->erase();
  return true;
}

struct FuseRotaryCacheWrite
    : ingot::impl::FuseRotaryCacheWritePassBase<FuseRotaryCacheWrite> {
  void runOnOperation() override {
    llvm::SmallVector<lm::AttentionOp> attentions;
    getOperation().walk([&](lm::AttentionOp op) { attentions.push_back(op); });
    for (lm::AttentionOp attention : attentions)
      if (fuse(attention))
        ++numFused;
  }
};

} // namespace
