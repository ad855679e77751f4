// --fuse-rotary-cache-write
//
// 1. For each attention, match its q and k as rotated in halves by one table,
//    after a head norm of one eps or none.
// 2. Take the value whose columns are q, k and v as they were before: the input
//    of their split, or a concat of them.
// 3. Write it to the cache and attend over the cache, at the attention's place.
// 4. Erase what no longer has a use.
#include "passes/Passes.h"

#include "dialects/lm/LmOps.h"

namespace ingot {
#define GEN_PASS_DEF_FUSEROTARYCACHEWRITEPASS
#include "passes/Passes.h.inc"
} // namespace ingot

using namespace mlir;
using namespace ingot;

namespace {

// One of q and k: what it was made from.
struct Rotated {
  lm::RotaryOp rotary;
  lm::HeadNormOp norm; // may be null
  Value projection;
};

std::optional<Rotated> matchRotated(Value value) {
  Rotated match;
  match.rotary = value.getDefiningOp<lm::RotaryOp>();
  if (!match.rotary || match.rotary.getInterleaved())
    return std::nullopt;
  match.projection = match.rotary.getInput();
  match.norm = match.projection.getDefiningOp<lm::HeadNormOp>();
  if (match.norm)
    match.projection = match.norm.getInput();
  return match;
}

// `rotated` has `heads` heads of `headDim` columns in each of its operators.
bool hasHeads(const Rotated &rotated, std::uint64_t heads,
              std::uint64_t headDim) {
  lm::HeadNormOp norm = rotated.norm;
  lm::RotaryOp rotary = rotated.rotary;
  return rotary.getHeads() == heads && rotary.getHeadDim() == headDim &&
         (!norm || (norm.getHeads() == heads && norm.getHeadDim() == headDim));
}

bool agree(Rotated &q, Rotated &k) {
  if (q.rotary.getTable() != k.rotary.getTable() ||
      q.rotary.getRotaryDim() != k.rotary.getRotaryDim() ||
      static_cast<bool>(q.norm) != static_cast<bool>(k.norm))
    return false;
  return !q.norm || q.norm.getEpsAttr() == k.norm.getEpsAttr();
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
  std::optional<Rotated> q = matchRotated(attention.getQuery());
  std::optional<Rotated> k = matchRotated(attention.getKey());
  if (!q || !k || !agree(*q, *k) ||
      !hasHeads(*q, attention.getHeads(), attention.getHeadDim()) ||
      !hasHeads(*k, attention.getKvHeads(), attention.getHeadDim()))
    return false;

  OpBuilder builder(attention);
  Value qkv = joinColumns(builder, siblingLocation(attention.getLoc(), "qkv"),
                          q->projection, k->projection, attention.getValue());
  auto normOf = [](const Rotated &rotated) {
    lm::HeadNormOp norm = rotated.norm;
    return norm ? norm.getWeightAttr() : FlatSymbolRefAttr();
  };
  auto write = builder.create<lm::RopeCacheWriteOp>(
      siblingLocation(attention.getLoc(), "cache_write"),
      attention.getQuery().getType(), lm::CacheType::get(builder.getContext()),
      qkv, q->rotary.getTable(), attention.getStateAttr(),
      attention.getStateLayerAttr(), normOf(*q), normOf(*k),
      attention.getHeadsAttr(), attention.getKvHeadsAttr(),
      attention.getHeadDimAttr(), q->rotary.getRotaryDimAttr(),
      q->norm ? q->norm.getEpsAttr() : builder.getF32FloatAttr(0.0f));
  auto attended = builder.create<lm::CachedAttentionOp>(
      attention.getLoc(), attention.getType(), write.getQuery(),
      write.getCache(), attention.getStateAttr(), attention.getStateLayerAttr(),
      attention.getHeadsAttr(), attention.getKvHeadsAttr(),
      attention.getHeadDimAttr(), attention.getScaleAttr(),
      attention.getWindowAttr(), attention.getSoftCapAttr());
  Value value = attention.getValue();
  attention.getResult().replaceAllUsesWith(attended.getResult());
  attention->erase();

  // From the rotations back to the split; each may have other users.
  llvm::SmallVector<Operation *> candidates{q->rotary, k->rotary};
  if (q->norm)
    candidates.append({q->norm, k->norm});
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
