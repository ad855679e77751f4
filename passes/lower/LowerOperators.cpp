// A launch for each operator of the program. What targets do not share, they say
// through the virtual functions of TargetLowering.
#include "dialects/lm/Provenance.h"
#include "passes/lower/TargetLowering.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ingot::plan {

// The elements of a cache, as names of kernels spell them.
static std::string stateCode(Operation *op, FlatSymbolRefAttr state) {
  Type dtype = lm::lookupState(op, state).getDtype();
  return dtype.isF16() ? "f16" : dtype.isF32() ? "f32" : "i8";
}

LogicalResult TargetLowering::lower(Operation *op) {
  LogicalResult lowered =
      llvm::TypeSwitch<Operation *, LogicalResult>(op)
          .Case<lm::EmbedOp, lm::RopeTableOp, lm::RmsNormOp, lm::QuantizeOp,
                lm::LinearOp, lm::GateOp, lm::RopeCacheWriteOp,
                lm::CachedAttentionOp, lm::SelectRowsOp, lm::LayerNormOp,
                lm::ActivateOp, lm::AddOp, lm::CapOp, lm::RouteOp,
                lm::DispatchOp, lm::ExpertLinearOp, lm::CombineOp, lm::PoolOp>(
              [&](auto typed) {
                ++numLaunches;
                return lowerOp(typed);
              })
          .Case<lm::ConcatOp, lm::CutOp, lm::ExitOp, lm::YieldOp, lm::ReturnOp>(
              [&](auto typed) { return lowerOp(typed); })
          .Default([](Operation *other) {
            return other->emitOpError()
                   << "has no lowering to plan; the passes "
                      "of the fuse phase remove "
                      "what has one";
          });
  return failed(lowered) ? failure() : finish(op);
}

LogicalResult TargetLowering::lowerOp(lm::EmbedOp op) {
  codegen::KernelConfig config;
  addEncoding(config, lm::lookupWeight(op, op.getTableAttr()).getEncoding());
  FailureOr<ArrayAttr> variants = variantsFor(op, "embed", config);
  if (failed(variants))
    return failure();
  Place place = resultPlace(op, op.getResult(), Domain::Token);
  bool byPosition = op.getTokens() == program.getPositions();
  launchBuilder.create<EmbedOp>(op.getLoc(), useMatrix(op.getTableAttr()),
                                symbol(place), op.getScaleAttr(), *variants,
                                byPosition ? moduleBuilder.getUnitAttr()
                                           : UnitAttr(),
                                use(op.getBiasAttr()));
  return success();
}

LogicalResult TargetLowering::lowerOp(lm::RopeTableOp op) {
  FailureOr<ArrayAttr> variants = variantsFor(op, "rope_table", {});
  if (failed(variants))
    return failure();
  Place place = resultPlace(op, op.getResult(), Domain::Token);
  launchBuilder.create<RopeTableOp>(
      op.getLoc(), use(op.getInvFreqAttr()), symbol(place),
      integer(lm::columnsOf(op.getResult().getType())),
      op.getAttentionFactorAttr(), *variants,
      StringAttr::get(context, lm::stringifyRopeScaling(op.getScaling())),
      op.getOriginalAttr(), op.getThetaAttr(), op.getFactorAttr());
  return success();
}

LogicalResult TargetLowering::lowerOp(lm::RmsNormOp op) {
  codegen::KernelConfig config;
  addQuantization(config, op.getResult().getType());
  FailureOr<ArrayAttr> variants = variantsFor(op, "rms_norm", config);
  if (failed(variants))
    return failure();
  Domain domain = domainOf(op.getInput());
  auto [output, quantized] = results(op, op.getResult(), domain);
  launchBuilder.create<RmsNormOp>(
      op.getLoc(), read(op.getInput()), use(op.getWeightAttr()), output,
      quantized, integer(lm::columnsOf(op.getInput().getType())),
      op.getEpsAttr(), op.getWeightOffsetAttr(),
      DomainAttr::get(context, domain), *variants);
  return success();
}

LogicalResult TargetLowering::lowerOp(lm::LayerNormOp op) {
  codegen::KernelConfig config;
  addQuantization(config, op.getResult().getType());
  FailureOr<ArrayAttr> variants = variantsFor(op, "layer_norm", config);
  if (failed(variants))
    return failure();
  Domain domain = domainOf(op.getInput());
  auto [output, quantized] = results(op, op.getResult(), domain);
  launchBuilder.create<LayerNormOp>(
      op.getLoc(), read(op.getInput()), use(op.getWeightAttr()),
      use(op.getBiasAttr()), output, quantized,
      integer(lm::columnsOf(op.getInput().getType())), op.getEpsAttr(),
      DomainAttr::get(context, domain), *variants);
  return success();
}

LogicalResult TargetLowering::lowerOp(lm::ActivateOp op) {
  codegen::KernelConfig config;
  StringRef activation = lm::stringifyActivationKind(op.getActivation());
  config["activation"] = activation.str();
  addQuantization(config, op.getResult().getType());
  FailureOr<ArrayAttr> variants = variantsFor(op, "activate", config);
  if (failed(variants) || failed(tokensOnly(op, op.getInput())))
    return failure();
  auto [output, quantized] = results(op, op.getResult(), Domain::Token);
  launchBuilder.create<ActivateOp>(
      op.getLoc(), read(op.getInput()), output, quantized,
      integer(lm::columnsOf(op.getResult().getType())),
      StringAttr::get(context, activation), *variants);
  return success();
}

LogicalResult TargetLowering::lowerOp(lm::AddOp op) {
  FailureOr<ArrayAttr> variants = variantsFor(op, "add", {});
  if (failed(variants) || failed(tokensOnly(op, op.getResidual())))
    return failure();
  Place place = resultPlace(op, op.getResult(), Domain::Token);
  launchBuilder.create<AddOp>(op.getLoc(), read(op.getResidual()),
                              read(op.getUpdate()), symbol(place),
                              integer(lm::columnsOf(op.getResult().getType())),
                              op.getScaleAttr(), *variants);
  return success();
}

LogicalResult TargetLowering::lowerOp(lm::CapOp op) {
  FailureOr<ArrayAttr> variants = variantsFor(op, "cap", {});
  if (failed(variants))
    return failure();
  Domain domain = domainOf(op.getInput());
  Place place = resultPlace(op, op.getResult(), domain);
  launchBuilder.create<CapOp>(op.getLoc(), read(op.getInput()), symbol(place),
                              integer(lm::columnsOf(op.getResult().getType())),
                              op.getScaleAttr(), op.getSoftCapAttr(),
                              DomainAttr::get(context, domain), *variants);
  return success();
}

LogicalResult TargetLowering::lowerOp(lm::LinearOp op) {
  lm::EncodingAttr encoding =
      lm::lookupWeight(op, op.getWeightAttr()).getEncoding();
  int64_t k = lm::columnsOf(op.getInput().getType());
  codegen::KernelConfig config;
  addEncoding(config, encoding);
  FailureOr<ArrayAttr> variants = linearVariants(op, config);
  if (failed(variants))
    return failure();
  Domain domain = domainOf(op.getInput());
  Place place = resultPlace(op, op.getResult(), domain);
  if (place.buffer.getDomain() != domain)
    return op.emitOpError() << "is joined with rows of another domain";
  launchBuilder.create<LinearOp>(
      op.getLoc(), linearInput(op), useMatrix(op.getWeightAttr()),
      use(op.getBiasAttr()),
      op.getResidual() ? read(op.getResidual()) : FlatSymbolRefAttr(),
      symbol(place), integer(k),
      integer(lm::columnsOf(op.getResult().getType())), integer(place.column),
      DomainAttr::get(context, domain), *variants);
  return success();
}

LogicalResult TargetLowering::lowerOp(lm::GateOp op) {
  codegen::KernelConfig config;
  config["activation"] = lm::stringifyActivationKind(op.getActivation()).str();
  addQuantization(config, op.getResult().getType());
  FailureOr<ArrayAttr> variants = variantsFor(op, "gated", config);
  if (failed(variants))
    return failure();
  Domain domain = domainOf(op.getGateUp());
  if (domain == Domain::LogitRow)
    return tokensOnly(op, op.getGateUp());
  auto [output, quantized] = results(op, op.getResult(), domain);
  launchBuilder.create<GatedOp>(
      op.getLoc(), read(op.getGateUp()), output, quantized,
      integer(lm::columnsOf(op.getResult().getType())),
      StringAttr::get(context, lm::stringifyActivationKind(op.getActivation())),
      *variants, DomainAttr::get(context, domain));
  return success();
}

LogicalResult TargetLowering::lowerOp(lm::RopeCacheWriteOp op) {
  codegen::KernelConfig config;
  config["head_dim"] = int64_t(op.getHeadDim());
  config["kv"] = stateCode(op, op.getStateAttr());
  FailureOr<ArrayAttr> variants = variantsFor(op, "rope_cache_write", config);
  if (failed(variants) || failed(tokensOnly(op, op.getQkv())))
    return failure();
  Place place = resultPlace(op, op.getQuery(), Domain::Token);
  launchBuilder.create<RopeCacheWriteOp>(
      op.getLoc(), read(op.getQkv()),
      op.getTable() ? read(op.getTable()) : FlatSymbolRefAttr(),
      use(op.getQNormAttr()), use(op.getKNormAttr()), symbol(place),
      op.getStateAttr(), op.getStateLayerAttr(), op.getHeadsAttr(),
      op.getKvHeadsAttr(), op.getHeadDimAttr(), op.getRotaryDimAttr(),
      op.getNormEpsAttr(), *variants, op.getInterleavedAttr(),
      StringAttr::get(context, lm::stringifyNormKind(op.getNormKind())),
      op.getNormRowsAttr(), op.getNormOffsetAttr());
  return success();
}

LogicalResult TargetLowering::lowerOp(lm::CachedAttentionOp op) {
  codegen::KernelConfig config;
  config["head_dim"] = int64_t(op.getHeadDim());
  config["kv"] = stateCode(op, op.getStateAttr());
  addQuantization(config, op.getResult().getType());
  FailureOr<AttentionKernels> made = attentionKernels(op, config);
  if (failed(made) || failed(tokensOnly(op, op.getQuery())))
    return failure();
  auto [output, quantized] =
      results(op, op.getResult(), Domain::Token, /*attention=*/true);
  launchBuilder.create<AttentionOp>(
      op.getLoc(), read(op.getQuery()), op.getStateAttr(),
      op.getStateLayerAttr(), output, quantized, op.getHeadsAttr(),
      op.getKvHeadsAttr(), op.getHeadDimAttr(), op.getWindowAttr(),
      op.getScaleAttr(), op.getSoftCapAttr(), made->variants, made->split,
      made->merge, op.getBidirectionalAttr(), op.getSlopesAttr(),
      op.getRoundedSlopesAttr());
  return success();
}

// The routes, and the order of the slots that follows from them.
LogicalResult TargetLowering::lowerOp(lm::RouteOp op) {
  FailureOr<ArrayAttr> route = variantsFor(op, "route", {});
  FailureOr<ArrayAttr> order = variantsFor(op, "order_slots", {});
  if (failed(route) || failed(order) || failed(tokensOnly(op, op.getLogits())))
    return failure();
  int64_t topK = op.getTopK();
  int64_t experts = lm::columnsOf(op.getLogits().getType());
  if (!orders.empty() && topK != int64_t(target.getSlots()))
    return op.emitOpError()
           << "chooses " << topK << " experts, another "
           << int64_t(target.getSlots()) << "; a model needs one number";
  target.setSlots(topK);
  Place routes = resultPlace(op, op.getRoutes(), Domain::Token);
  launchBuilder.create<RouteOp>(op.getLoc(), read(op.getLogits()),
                                symbol(routes), integer(experts), integer(topK),
                                op.getNormalizedAttr(), *route);
  Location loc = lm::derivedLocation(
      context, (lm::locationName(op.getLoc()) + ".order").str(), op.getLoc());
  BufferOp buffer = makeBuffer(
      loc, lm::activationType(context, 2 * topK + experts + 1), Domain::Token);
  orders[op.getRoutes()] = buffer;
  launchBuilder.create<OrderSlotsOp>(
      loc, symbol(routes), FlatSymbolRefAttr::get(buffer.getSymNameAttr()),
      integer(experts), integer(topK), *order);
  ++numLaunches;
  return success();
}

TargetLowering::Routing TargetLowering::routingOf(Value routes) {
  auto route = routes.getDefiningOp<lm::RouteOp>();
  return {FlatSymbolRefAttr::get(orders.lookup(routes).getSymNameAttr()),
          integer(lm::columnsOf(route.getLogits().getType())),
          route.getTopKAttr()};
}
LogicalResult TargetLowering::slotsOnly(Operation *op, Value input) {
  if (domainOf(input) == Domain::Slot)
    return success();
  return op->emitOpError() << "works on rows that lm.dispatch has made";
}

LogicalResult TargetLowering::lowerDispatch(lm::DispatchOp op) {
  FailureOr<ArrayAttr> variants = variantsFor(op, "dispatch", {});
  if (failed(variants) || failed(tokensOnly(op, op.getInput())))
    return failure();
  Place place = resultPlace(op, op.getResult(), Domain::Slot);
  Routing routing = routingOf(op.getRoutes());
  launchBuilder.create<DispatchOp>(op.getLoc(), read(op.getInput()),
                                   routing.order, symbol(place),
                                   integer(lm::columnsOf(op.getType())),
                                   routing.experts, routing.topK, *variants);
  return success();
}

LogicalResult TargetLowering::lowerOp(lm::ExpertLinearOp op) {
  lm::EncodingAttr encoding =
      lm::lookupWeight(op, op.getWeightAttr()).getEncoding();
  int64_t k = lm::columnsOf(op.getInput().getType());
  codegen::KernelConfig config;
  addEncoding(config, encoding);
  FailureOr<ArrayAttr> variants = expertVariants(op, config);
  if (failed(variants) || failed(slotsOnly(op, op.getInput())))
    return failure();
  Place place = resultPlace(op, op.getResult(), Domain::Slot);
  Routing routing = routingOf(op.getRoutes());
  launchBuilder.create<ExpertLinearOp>(
      op.getLoc(), expertInput(op), routing.order,
      useMatrix(op.getWeightAttr()), symbol(place), integer(k),
      integer(lm::columnsOf(op.getType())), routing.experts, routing.topK,
      *variants);
  return success();
}

LogicalResult TargetLowering::lowerOp(lm::CombineOp op) {
  FailureOr<ArrayAttr> variants = variantsFor(op, "combine", {});
  if (failed(variants) || failed(slotsOnly(op, op.getInput())))
    return failure();
  Place place = resultPlace(op, op.getResult(), Domain::Token);
  Routing routing = routingOf(op.getRoutes());
  launchBuilder.create<CombineOp>(
      op.getLoc(), read(op.getInput()), routing.order, read(op.getRoutes()),
      symbol(place), integer(lm::columnsOf(op.getType())), routing.experts,
      routing.topK, *variants);
  return success();
}

LogicalResult TargetLowering::lowerOp(lm::SelectRowsOp op) {
  FailureOr<ArrayAttr> variants = variantsFor(op, "gather_rows", {});
  if (failed(variants) || failed(tokensOnly(op, op.getInput())))
    return failure();
  Place place = resultPlace(op, op.getResult(), Domain::LogitRow);
  launchBuilder.create<GatherRowsOp>(
      op.getLoc(), read(op.getInput()), symbol(place),
      integer(lm::columnsOf(op.getInput().getType())), *variants);
  return success();
}

LogicalResult TargetLowering::lowerOp(lm::PoolOp op) {
  FailureOr<ArrayAttr> variants = variantsFor(op, "pool", {});
  if (failed(variants) || failed(tokensOnly(op, op.getInput())))
    return failure();
  Place place = resultPlace(op, op.getResult(), Domain::LogitRow);
  launchBuilder.create<PoolOp>(
      op.getLoc(),
      StringAttr::get(context, lm::stringifyPoolKind(op.getKind())),
      read(op.getInput()), symbol(place),
      integer(lm::columnsOf(op.getInput().getType())), op.getNormalizeAttr(),
      *variants);
  return success();
}

// Its parts have been written in place.
LogicalResult TargetLowering::lowerOp(lm::ConcatOp op) { return success(); }

LogicalResult TargetLowering::lowerOp(lm::CutOp op) {
  if (failed(tokensOnly(op, op.getInput())))
    return failure();
  FlatSymbolRefAttr hidden = read(op.getInput());
  segment.setSymName(uniqueName(op.getName()));
  segment.setOutputAttr(hidden);
  endsAt[op.getResult()] = segment;
  startSegment();
  segment.setInputAttr(hidden);
  places[op.getResult()] = places.lookup(op.getInput());
  return success();
}

LogicalResult TargetLowering::lowerOp(lm::ExitOp op) {
  // The name may still change; symbols follow it.
  SegmentOp before = endsAt.lookup(op.getInput());
  FailureOr<SegmentOp> head = lowerExitRegion(op, op.getHead(), ".head");
  if (failed(head))
    return failure();
  head->setHeadOfAttr(FlatSymbolRefAttr::get(before.getSymNameAttr()));
  head->setLayersAttr(op.getLayersAttr());
  head->setConfidenceAttr(op.getConfidenceAttr());
  if (op.getFill().empty())
    return success();
  FailureOr<SegmentOp> fill = lowerExitRegion(op, op.getFill(), ".fill");
  if (failed(fill))
    return failure();
  fill->setFillOfAttr(FlatSymbolRefAttr::get(before.getSymNameAttr()));
  return success();
}

LogicalResult TargetLowering::lowerOp(lm::YieldOp op) {
  if (op.getNumOperands() == 0)
    return success();
  Place place = places.lookup(op.getOperand(0));
  if (place.buffer.getDomain() != Domain::LogitRow)
    return op.emitOpError() << "yields a row for each token; expected logits "
                               "that follow from lm.select_rows";
  exitLogits.emplace_back(segment, place.buffer);
  return success();
}

LogicalResult TargetLowering::lowerOp(lm::ReturnOp op) {
  Place place = places.lookup(op.getLogits());
  if (place.buffer.getDomain() != Domain::LogitRow)
    return op.emitOpError()
           << "returns a row for each token; expected logits that "
              "follow from lm.select_rows";
  segment.setSymName(uniqueName("main"));
  target.setLogitsAttr(symbol(place));
  shareLogits(symbol(place));
  return success();
}

LogicalResult TargetLowering::tokensOnly(Operation *op, Value input) {
  if (domainOf(input) == Domain::Token)
    return success();
  return op->emitOpError()
         << "works on the rows that lm.select_rows kept; it has a "
            "lowering for all tokens only";
}

} // namespace ingot::plan
