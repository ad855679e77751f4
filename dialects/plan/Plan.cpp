// The plan dialect: sources, weights, states, targets, buffers, kernels and
// segments. Launches are in PlanLaunches.cpp.
#include "dialects/plan/Plan.h"

#include "dialects/StoredDetailsAttr.h"

#include "dialects/lm/LmDialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ingot::plan {

void PlanDialect::initialize() {
  registerTypes();
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialects/plan/Ops.cpp.inc"
      >();
}

LogicalResult PlanDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  if (!isa<ModuleOp>(op))
    return op->emitOpError() << "attribute '" << attribute.getName().getValue()
                             << "' belongs to a module";
  if (attribute.getName() == getModelAttrName())
    return lm::verifyModelAttr(
        [&] { return op->emitOpError() << "plan.model: "; },
        attribute.getValue());
  if (attribute.getName() != getProvenanceAttrName())
    return op->emitOpError()
           << "unknown attribute '" << attribute.getName().getValue()
           << "' (plan.model or plan.provenance)";
  auto provenance = dyn_cast<DictionaryAttr>(attribute.getValue());
  if (!provenance || provenance.size() != 2 ||
      !provenance.getAs<StringAttr>("compiler") ||
      !provenance.getAs<StringAttr>("pipeline"))
    return op->emitOpError()
           << "plan.provenance: expected a dictionary of the strings "
              "compiler and pipeline, found "
           << attribute.getValue();
  return success();
}

std::optional<int32_t> locationLayer(StringRef name) {
  int32_t layer = 0;
  if (!name.consume_front("layer.") || name.empty() || !isdigit(name.front()) ||
      name.consumeInteger(10, layer) || !(name.empty() || name.front() == '.'))
    return std::nullopt;
  return layer;
}

//===----------------------------------------------------------------------===//
// SourceOp, WeightOp, StateOp
//===----------------------------------------------------------------------===//

LogicalResult SourceOp::verify() {
  if (static_cast<int64_t>(getSize()) < 0)
    return emitOpError() << "source_c1: expected a size, found "
                         << static_cast<int64_t>(getSize());
  StringRef hash = getHash();
  if (hash.size() != 16 ||
      hash.find_first_not_of("0123456789abcdef") != StringRef::npos)
    return emitOpError()
           << "source_c2: expected 16 lower-case hexadecimal digits, found \""
           << hash << "\"";
  return success();
}

LogicalResult WeightOp::verify() {
  int64_t rows = getRows(), columns = getColumns();
  constexpr int64_t limit = int64_t(1) << 31;
  if (rows <= 0 || columns <= 0 || rows >= limit || columns >= limit)
    return emitOpError()
           << "weight_c1: expected between 1 and 2^31 - 1 rows and "
              "columns, found "
           << rows << " x " << columns;
  if (getParts().has_value() == getValue().has_value())
    return emitOpError() << "weight_c2: expected either parts or a value";
  if (std::optional<ArrayAttr> parts = getParts()) {
    int64_t sum = 0;
    for (PartAttr part : parts->getAsRange<PartAttr>()) {
      if (part.getColumns() != columns)
        return emitOpError() << "weight_c3: expected parts of " << columns
                             << " columns, found " << part.getColumns();
      sum += part.getRows();
    }
    if (sum != rows)
      return emitOpError() << "weight_c3: expected parts of " << rows
                           << " rows together, found " << sum;
  }
  if (std::optional<ElementsAttr> value = getValue()) {
    auto dense = dyn_cast<DenseFPElementsAttr>(*value);
    if (!dense || !dense.getElementType().isF32())
      return emitOpError()
             << "weight_c4: expected a value of dense float32, found "
             << value->getType();
    if (uint64_t(dense.getNumElements()) != uint64_t(rows) * uint64_t(columns))
      return emitOpError() << "weight_c4: expected a value of "
                           << uint64_t(rows) * uint64_t(columns)
                           << " elements, found " << dense.getNumElements();
    if (getEncoding().getCode() != Code::F32)
      return emitOpError() << "weight_c4: expected a value in f32, found "
                           << getEncoding().getShortName();
  }
  if (getLayout() == Layout::Row && getEncoding().getCode() != Code::F32)
    return emitOpError() << "weight_c5: layout row holds f32, found "
                         << getEncoding().getShortName();
  if (getLayout() == Layout::MMA16 && getEncoding().getCode() == Code::F32)
    return emitOpError() << "weight_c8: layout mma16 holds no f32";
  if (getMethod() && *getMethod() != "rtn" && *getMethod() != "stored")
    return emitOpError() << "weight_c7: expected method \"rtn\" or \"stored\", "
                            "found \""
                         << *getMethod() << "\"";
  return success();
}

LogicalResult WeightOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!getParts())
    return success();
  Operation *module = (*this)->getParentOp();
  for (PartAttr part : getParts()->getAsRange<PartAttr>()) {
    Operation *found = symbols.lookupSymbolIn(module, part.getSource());
    auto source = dyn_cast_or_null<SourceOp>(found);
    if (!source)
      return emitOpError() << "weight_c6: expected a plan.source "
                           << part.getSource();
    if (part.getOffset() + part.getSize() > uint64_t(source.getSize())) {
      InFlightDiagnostic diagnostic =
          emitOpError() << "weight_c6: part " << part.getName() << " ends at "
                        << part.getOffset() + part.getSize()
                        << ", past the source";
      diagnostic.attachNote(source.getLoc())
          << "which has " << source.getSize() << " bytes";
      return diagnostic;
    }
    // The verifier of the part has read its details.
    Result<StoredDetails> details = readStoredDetails(part.getDetails());
    LogicalResult inside = success();
    details->forEachPlane([&](const StoredPlane &plane) {
      auto file = dyn_cast_or_null<SourceOp>(symbols.lookupSymbolIn(
          module, StringAttr::get(getContext(), plane.source)));
      if (failed(inside) ||
          (file && plane.byteOffset <= uint64_t(file.getSize()) &&
           plane.sizeBytes <= uint64_t(file.getSize()) - plane.byteOffset))
        return;
      inside = emitOpError()
               << "weight_c6: tensor \"" << plane.name
               << "\" does not lie within a plan.source @" << plane.source;
    });
    if (failed(inside))
      return failure();
  }
  return success();
}

LogicalResult StateOp::verify() {
  constexpr int64_t limit = int64_t(1) << 24;
  for (auto [name, value] :
       {std::pair<StringRef, int64_t>{"layers", getLayers()},
        {"kv_heads", getKvHeads()},
        {"head_dim", getHeadDim()}})
    if (value <= 0 || value >= limit)
      return emitOpError() << "state_c1: expected " << name
                           << " between 1 and 2^24 - 1, found " << value;
  if (int64_t window = getWindow(); window < 0 || window > INT32_MAX)
    return emitOpError()
           << "state_c1: expected a window of 0 to 2^31 - 1, found "
           << static_cast<int64_t>(getWindow());
  return success();
}

uint64_t StateOp::getHeadBytes() {
  switch (getDtype()) {
  case StateDType::F32:
    return getHeadDim() * 4;
  case StateDType::F16:
    return getHeadDim() * 2;
  case StateDType::I8:
    return getHeadDim() + 4; // the scale
  }
  llvm_unreachable("no other element of a state");
}

uint64_t StateOp::getValueOffset() {
  // Keys of 32 positions (kBlockTokens of runtime/plan/KernelAbi.h), padded so
  // that the values start on a cache line.
  uint64_t keys = uint64_t(getKvHeads()) * 32 * getHeadBytes();
  return (keys + 63) / 64 * 64;
}

//===----------------------------------------------------------------------===//
// TargetOp, BufferOp, KernelOp, SegmentOp
//===----------------------------------------------------------------------===//

bool isCudaLevelName(StringRef name) {
  bool isText = name.consume_front("compute_");
  if (!isText && !name.consume_front("sm_"))
    return false;
  if (!isText && (name.ends_with("a") || name.ends_with("f")))
    name = name.drop_back();
  return (name.size() == 2 || name.size() == 3) && name.front() != '0' &&
         llvm::all_of(name, llvm::isDigit);
}

namespace {

// Heads and fills, in the order in which they stand.
class ExitChecks {
public:
  explicit ExitChecks(TargetOp target) : target(target) {}

  LogicalResult check(SegmentOp segment) {
    if (segment.isChain()) {
      if (segment.getLayers() || segment.getConfidence())
        return segment.emitOpError()
               << "segment_c4: has layers or confidences and is no head";
      chain[segment.getSymNameAttr()] = segment;
      return success();
    }
    SegmentOp of = chain.lookup(segment.getExitOf().getAttr());
    if (!of || !of.getOutput() || segment.getOutput() ||
        (segment.getHeadOf() && segment.getFillOf()))
      return segment.emitOpError()
             << "segment_c3: expected the head or the fill of a segment "
                "before it that has an output, and none of its own";
    if (segment.getInputAttr() != of.getOutputAttr())
      return segment.emitOpError() << "target_c5: expected the output of "
                                      "segment @"
                                   << of.getSymName() << " as input";
    bool isHead = segment.getHeadOf().has_value();
    if (!(isHead ? heads : fills).insert(of).second ||
        (!isHead && !heads.contains(of)))
      return segment.emitOpError()
             << "segment_c5: expected one head and at most one fill, after "
                "it, of segment @"
             << of.getSymName();
    return isHead ? checkHead(segment) : checkFill(segment);
  }

private:
  LogicalResult checkHead(SegmentOp segment) {
    std::optional<int64_t> layers = segment.getLayers();
    if (!layers || *layers <= latestLayers)
      return segment.emitOpError() << "segment_c4: expected more than "
                                   << latestLayers << " layers before the head";
    latestLayers = *layers;
    for (Operation &op : segment.getBody().front())
      if (auto launch = dyn_cast<LaunchOpInterface>(op))
        if (llvm::is_contained(launch.getWrites(), target.getLogitsAttr()))
          return success();
    return segment.emitOpError()
           << "segment_c4: expected a head that writes the logits "
           << target.getLogitsAttr();
  }
  static LogicalResult checkFill(SegmentOp segment) {
    if (segment.getLayers() || segment.getConfidence())
      return segment.emitOpError()
             << "segment_c4: has layers or confidences and is no head";
    return success();
  }

  TargetOp target;
  llvm::DenseMap<StringAttr, SegmentOp> chain;
  llvm::DenseSet<SegmentOp> heads, fills;
  int64_t latestLayers = 0;
};

} // namespace

LogicalResult TargetOp::verifyRegions() {
  llvm::StringSet<> levelNames;
  for (Attribute level : getLevels())
    if (!levelNames.insert(cast<StringAttr>(level).getValue()).second)
      return emitOpError() << "target_c1: level " << level << " stands twice";
  if (levelNames.empty())
    return emitOpError() << "target_c1: expected at least one level";

  if (isCuda())
    for (Attribute level : getLevels())
      if (!isCudaLevelName(cast<StringAttr>(level).getValue()))
        return emitOpError()
               << "target_c7: level " << level
               << " is no chip (sm_N, with or without a letter, or compute_N)";

  auto logits = dyn_cast_or_null<BufferOp>(
      mlir::SymbolTable::lookupSymbolIn(getOperation(), getLogitsAttr()));
  if (!logits)
    return emitOpError() << "target_c2: expected a plan.buffer "
                         << getLogitsAttr();
  if (logits.isQuantized() || logits.getDomain() != Domain::LogitRow)
    return emitOpError()
           << "target_c2: expected logits as float32 rows in the domain "
              "logit_row";

  SegmentOp previous;
  ExitChecks exits(*this);
  for (Operation &op : getBody().front()) {
    if (!isa<BufferOp, KernelOp, SegmentOp>(op))
      return op.emitOpError()
             << "target_c3: a target holds buffers, kernels and "
                "segments only";
    if (auto segment = dyn_cast<SegmentOp>(op)) {
      if (failed(exits.check(segment)))
        return failure();
      if (!segment.isChain())
        continue;
      if (previous && (!previous.getOutput() || !segment.getInput() ||
                       *previous.getOutput() != *segment.getInput()))
        return segment.emitOpError()
               << "target_c5: expected the output of segment @"
               << previous.getSymName() << " as input";
      previous = segment;
    }
  }
  if (!previous)
    return emitOpError() << "target_c3: expected at least one segment";

  int64_t slots = getSlots();
  if (slots <= 0 || slots > INT32_MAX)
    return emitOpError() << "target_c6: expected positive slots, found "
                         << slots;
  if (getTokenArenaBytes().has_value() != getLogitRowArenaBytes().has_value())
    return emitOpError()
           << "target_c4: expected the sizes of both arenas or of none";
  if (!getTokenArenaBytes())
    return success();
  for (auto buffer : getBody().getOps<BufferOp>()) {
    int64_t arena = buffer.getDomain() == Domain::LogitRow
                        ? *getLogitRowArenaBytes()
                        : *getTokenArenaBytes();
    uint64_t bytes =
        buffer.getRowBytes() * (buffer.getDomain() == Domain::Slot ? slots : 1);
    std::optional<int64_t> offset = buffer.getOffset();
    if (!offset)
      return buffer.emitOpError() << "target_c4: expected an offset";
    if (*offset % 64 != 0)
      return buffer.emitOpError()
             << "target_c4: expected an offset that is a multiple of 64, found "
             << *offset;
    if (arena < 0 || uint64_t(*offset) + bytes > uint64_t(arena))
      return buffer.emitOpError()
             << "target_c4: rows end at " << uint64_t(*offset) + bytes
             << ", past the arena of " << arena << " bytes";
  }
  return success();
}

LogicalResult BufferOp::verify() {
  bool isCuda = cast<TargetOp>((*this)->getParentOp()).isCuda();
  if (!isa<RowsType>(getType()) &&
      !(isCuda ? isa<HalfRowsType>(getType())
               : isa<QuantizedRowsType>(getType())))
    return emitOpError() << "buffer_c1: expected !plan.rows or "
                         << (isCuda ? "!plan.half_rows"
                                    : "!plan.quantized_rows")
                         << ", found " << getType();
  if (std::optional<int64_t> offset = getOffset(); offset && *offset < 0)
    return emitOpError()
           << "buffer_c2: expected an offset that is not negative, found "
           << *offset;
  return success();
}

uint64_t BufferOp::getRowBytes() {
  return llvm::TypeSwitch<Type, uint64_t>(getType())
      .Case<RowsType, QuantizedRowsType, HalfRowsType>(
          [](auto rows) { return rows.getRowBytes(); });
}

int64_t BufferOp::getColumns() {
  return llvm::TypeSwitch<Type, int64_t>(getType())
      .Case<RowsType, QuantizedRowsType, HalfRowsType>(
          [](auto rows) { return rows.getColumns(); });
}

int64_t BufferOp::getGroup() {
  auto quantized = dyn_cast<QuantizedRowsType>(getType());
  return quantized ? quantized.getGroup() : 0;
}

LogicalResult KernelOp::verify() {
  static const llvm::StringSet<> ops = {"embed",
                                        "rope_table",
                                        "rms_norm",
                                        "quantize",
                                        "linear",
                                        "gated",
                                        "rope_cache_write",
                                        "attention",
                                        "alibi_attention",
                                        "gather_rows",
                                        "pool",
                                        "layer_norm",
                                        "route",
                                        "order_slots",
                                        "dispatch",
                                        "expert_linear",
                                        "combine",
                                        "activate",
                                        "add",
                                        "cap"};
  bool isCuda = cast<TargetOp>((*this)->getParentOp()).isCuda();
  static const llvm::StringSet<> cudaOps = {"attention_split",
                                            "attention_merge", "sample",
                                            "library_linear", "library_finish"};
  if (!ops.contains(getOp()) && !(isCuda && cudaOps.contains(getOp())))
    return emitOpError() << "kernel_c1: no launch operation is named \""
                         << getOp() << "\"";
  if (static_cast<int64_t>(getScratch()) < 0 || getScratch() > UINT32_MAX)
    return emitOpError()
           << "kernel_c1: expected a scratch size of 32 bits, found "
           << static_cast<int64_t>(getScratch());
  if (getGeometry().has_value() != isCuda)
    return emitOpError() << "kernel_c2: expected "
                         << (isCuda ? "a geometry in the target @cuda"
                                    : "no geometry outside the target @cuda");
  return success();
}

LogicalResult SegmentOp::verifyRegions() {
  for (Operation &op : getBody().front())
    if (!isa<LaunchOpInterface>(op))
      return op.emitOpError() << "segment_c1: a segment holds launches only";
  return success();
}

LogicalResult SegmentOp::verifySymbolUses(SymbolTableCollection &symbols) {
  Operation *target = (*this)->getParentOp();
  for (FlatSymbolRefAttr name : {getInputAttr(), getOutputAttr()}) {
    if (!name)
      continue;
    auto buffer =
        dyn_cast_or_null<BufferOp>(symbols.lookupSymbolIn(target, name));
    if (!buffer || buffer.isQuantized() || buffer.getDomain() != Domain::Token)
      return emitOpError() << "segment_c2: expected a plan.buffer " << name
                           << " of float32 rows in the domain token";
  }
  return success();
}

} // namespace ingot::plan

#include "dialects/plan/Dialect.cpp.inc"

#include "dialects/plan/Interfaces.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/plan/Ops.cpp.inc"
