// 1. Heads and their sizes. 2. q, k and v back to their columns of a product, past
// rotations and norms of heads. 3. Mask, past and rotations, which are computed.
#include "compiler/frontend/onnx/OnnxLayerReader.h"

#include "compiler/frontend/onnx/OnnxMovement.h"
#include "compiler/frontend/onnx/RotaryTables.h"
#include "dialects/onnx/ShapeValues.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <numeric>

using namespace mlir;

namespace ingot {
namespace {

// 1 / sqrt(size) where `scale` is that, rounded to a half, a bfloat16 or a float, or
// the inverse of such a root, or the product of two such roots of it: an export in
// 16 bits rounds the constant, and means the number.
double exactScale(double scale, std::int64_t size, Type element) {
  const double ideal = 1.0 / std::sqrt(double(size));
  auto rounded = [](double value, const llvm::fltSemantics &type) {
    APFloat result(value);
    bool lossy = false;
    result.convert(type, APFloat::rmNearestTiesToEven, &lossy);
    result.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
    return result.convertToDouble();
  };
  for (const llvm::fltSemantics *type :
       {&APFloat::IEEEhalf(), &APFloat::BFloat(), &APFloat::IEEEsingle()}) {
    const double root = rounded(std::sqrt(ideal), *type);
    // The attribute is a float32.
    for (double one : {rounded(ideal, *type), root * root,
                       1 / rounded(std::sqrt(double(size)), *type)})
      if (static_cast<float>(one) == static_cast<float>(scale))
        return ideal;
  }
  // A decimal of two digits, the root of another whole number, any decimal.
  const double decimal = asWritten(scale, element);
  const double whole = std::round(1.0 / (scale * scale));
  if (const double hundred = decimal * 100;
      std::abs(hundred - std::round(hundred)) > 1e-9 && whole >= 1 &&
      whole <= 65536 && isRounded(1.0 / std::sqrt(whole), scale, element))
    return 1.0 / std::sqrt(whole);
  return decimal;
}

// Half a unit in the last place of numbers near 1, by the coarsest type that a table
// had on its way.
double roundingOf(Value table) {
  double rounding = 0x1p-24;
  while (true) {
    Type element = cast<TensorType>(table.getType()).getElementType();
    rounding = std::max(rounding, element.isF16()    ? 0x1p-11
                                  : element.isBF16() ? 0x1p-8
                                                     : 0.0);
    Operation *op = table.getDefiningOp();
    if (!op || !isa<onnx::CastOp, onnx::IdentityOp, onnx::ReshapeOp,
                    onnx::SliceOp, onnx::SqueezeOp, onnx::UnsqueezeOp,
                    onnx::ExpandOp, onnx::TransposeOp, onnx::GatherOp>(op))
      return rounding;
    table = op->getOperand(0);
  }
}

} // namespace

//===----------------------------------------------------------------------===//
// What is computed from positions
//===----------------------------------------------------------------------===//

Status LayerReader::rotationOfTables(Value cosines, Value sines,
                                     bool rowsAreSteps, std::int64_t half,
                                     RotarySpec &rotary) {
  auto key =
      std::pair(cosines.getAsOpaquePointer(), sines.getAsOpaquePointer());
  if (auto known = rotations_.find(key); known != rotations_.end()) {
    RotaryLayout layout = rotary.layout;
    std::int64_t dim = rotary.dim;
    rotary = known->second;
    rotary.layout = layout;
    return rotary.dim == dim
               ? Status::ok()
               : Status::unsupported("one rotation table for two sizes");
  }
  INGOT_ASSIGN_OR_RETURN(std::vector<OnnxTensor> tables,
                         values_.evaluate({cosines, sines}));
  RotaryTables read;
  read.half = half;
  read.cosines = numbersOf(tables[0]);
  read.sines = numbersOf(tables[1]);
  const std::int64_t rows = std::int64_t(read.cosines.size()) / half;
  for (std::int64_t row = 0; row < rows; ++row)
    read.positions.push_back(rowsAreSteps ? sizes_.past + row % sizes_.positions
                                          : row);
  read.rounding = roundingOf(cosines);
  const RotarySpec *again = nullptr;
  for (const LayerSpec &layer :
       before_ ? before_->layers : std::vector<LayerSpec>())
    if (layer.rotary.dim == rotary.dim && rotaryFits(read, layer.rotary)) {
      const RotaryLayout layout = rotary.layout;
      rotary = layer.rotary;
      rotary.layout = layout;
      again = &rotary;
      break;
    }
  if (!again)
    INGOT_RETURN_IF_ERROR(recoverRotary(read, rotary));
  usesPositions_ |= rowsAreSteps;
  if (!rowsAreSteps)
    tableRows_ = rows;
  rotations_[key] = rotary;
  return Status::ok();
}

Status LayerReader::readRotation(Operation *op, RotarySpec &rotary) {
  auto rotation = cast<onnx::RotaryEmbeddingOp>(op);
  rotary.layout = rotation.getInterleaved() ? RotaryLayout::Interleaved
                                            : RotaryLayout::Half;
  auto cosines = cast<RankedTensorType>(rotation.getCosCache().getType());
  const std::int64_t half = cosines.getShape().back();
  rotary.dim = 2 * half;
  auto x = cast<RankedTensorType>(rotation.getX().getType());
  std::int64_t turned = integerOf(op, "rotary_embedding_dim");
  if (turned == 0)
    turned = x.getRank() == 4
                 ? x.getDimSize(3)
                 : x.getDimSize(2) /
                       std::max<std::int64_t>(integerOf(op, "num_heads"), 1);
  if (turned != rotary.dim)
    return Status::unsupported(
        onnx::describe(op) + ": turns " + std::to_string(turned) +
        " columns of a head by tables for " + std::to_string(rotary.dim));
  const bool hasPositions = !onnx::isAbsent(rotation.getPositionIds());
  if (hasPositions) {
    auto ids = onnx::knownInts(rotation.getPositionIds());
    bool counts = ids.has_value();
    for (std::size_t i = 0; ids && i < ids->size(); ++i)
      counts &= (*ids)[i] == sizes_.past + std::int64_t(i) % sizes_.positions;
    if (!counts)
      return Status::unsupported(
          onnx::describe(op) +
          ": its positions are not those that follow the past");
  }
  Status status =
      rotationOfTables(rotation.getCosCache(), rotation.getSinCache(),
                       !hasPositions, half, rotary);
  return status.withContext(onnx::describe(op));
}

// A mask, boolean or added, that with what `causal` leaves says what a causal one
// says; its window.
Status LayerReader::readMask(Value mask, bool causal, std::int64_t &window) {
  usesPositions_ = true;
  INGOT_ASSIGN_OR_RETURN(std::vector<OnnxTensor> values,
                         values_.evaluate({mask}));
  const std::vector<double> numbers = numbersOf(values[0]);
  const std::vector<std::int64_t> &dims = values[0].dims;
  const bool isBool = values[0].type == OnnxType::Bool;
  const std::int64_t keys = dims.empty() ? 0 : dims.back();
  const std::int64_t rows =
      std::int64_t(numbers.size()) / std::max<std::int64_t>(keys, 1);
  // One row may stand for all queries.
  const bool isShared = dims.size() < 2 || dims[dims.size() - 2] == 1;
  if (keys != sizes_.total() || (!isShared && rows % sizes_.positions != 0))
    return Status::unsupported("a mask that is not of the scores' shape");
  const std::int64_t all = isShared ? rows * sizes_.positions : rows;
  auto at = [&](std::int64_t row, std::int64_t key) {
    return numbers[(isShared ? row / sizes_.positions : row) * keys + key];
  };
  auto sees = [&](std::int64_t row, std::int64_t key) {
    if (causal && key > sizes_.past + row % sizes_.positions)
      return false;
    return isBool ? at(row, key) != 0 : at(row, key) == 0;
  };
  std::int64_t span = 0; // keys that the last query sees
  for (std::int64_t key = 0; key < keys; ++key)
    span += sees(sizes_.positions - 1, key);
  for (std::int64_t row = 0; row < all; ++row)
    for (std::int64_t key = 0; key < keys; ++key) {
      const std::int64_t position = sizes_.past + row % sizes_.positions;
      const bool expected = key <= position && position - key < span;
      if (sees(row, key) != expected)
        return Status::unsupported(
            "a mask that is not causal: query " + std::to_string(position) +
            (expected ? " does not see key " : " sees key ") +
            std::to_string(key));
      if (!isBool && !expected && at(row, key) > -1e4 && !causal)
        return Status::unsupported("a mask that adds " +
                                   std::to_string(at(row, key)));
    }
  window = span == keys ? 0 : span;
  return Status::ok();
}

// The past is an input of this layer, the present an output of the graph. Keys
// and values may be the halves of one tensor.
Status LayerReader::checkPast(Operation *attention, unsigned pastAt) {
  const std::string where = onnx::describe(attention);
  std::int64_t index = -1;
  for (unsigned i : {0u, 1u}) {
    // A whole past may be large; half of one has moved.
    Movement past{through(attention->getOperand(pastAt + i)), {}};
    if (!isa<BlockArgument>(past.source))
      past = traceMovement(past.source);
    auto argument = dyn_cast<BlockArgument>(past.source);
    if (!argument || argument.getParentBlock() != &function_.front())
      return Status::unsupported(where + ": its past is not an input");
    const ProbeInput &input = inputs_[argument.getArgNumber()];
    const std::int64_t size = std::int64_t(past.from.size());
    const bool isBoth = input.role == InputRole::Past;
    bool isThere = isBoth || input.role == (i == 0 ? InputRole::PastKey
                                                   : InputRole::PastValue);
    for (std::int64_t at = 0; at < size; ++at)
      isThere &= past.from[at] == at + (isBoth ? i * size : 0);
    if (!isThere || (i == 1 && input.layer != index))
      return Status::unsupported(where + ": input " + quoteName(input.name) +
                                 " is not the past that belongs there");
    index = input.layer;
    if (!isBoth && !argument.hasOneUse())
      return Status::unsupported(where + ": its past is used elsewhere too");
  }
  std::function<Operation *(Value)> otherUser = [&](Value present) {
    for (Operation *user : present.getUsers()) {
      Operation *found = user;
      if (isa<func::ReturnOp>(user))
        found = nullptr;
      else if (isa<onnx::UnsqueezeOp, onnx::ConcatOp, onnx::CastOp,
                   onnx::IdentityOp>(user))
        found = otherUser(user->getResult(0));
      if (found)
        return found;
    }
    return static_cast<Operation *>(nullptr);
  };
  for (unsigned i : {1u, 2u})
    if (Operation *user = otherUser(attention->getResult(i)))
      return Status::unsupported(where + ": its present is used by " +
                                 onnx::describe(user));
  pastLayers_.push_back(index);
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// One attention
//===----------------------------------------------------------------------===//

// Whether the operator at `value` meets heads whole: `place` runs over positions,
// heads and elements of a head. `ofPositions`: and each at its own position.
bool LayerReader::meetsWholeHeads(Value value, ArrayRef<std::int64_t> place,
                                  bool ofPositions) const {
  auto type = cast<RankedTensorType>(value.getType());
  const std::int64_t size = layer_.headDim,
                     each = std::int64_t(place.size()) / sizes_.positions;
  for (std::int64_t i = 0; i < std::int64_t(place.size()); ++i) {
    if (place[i] % size != i % size ||
        place[i] - place[i - i % size] != i % size)
      return false;
    const std::int64_t head = place[i] / size;
    const std::int64_t position = type.getRank() == 4
                                      ? head % type.getDimSize(2)
                                      : place[i] / type.getDimSize(2);
    if (ofPositions && position != i / each)
      return false;
  }
  return type.getRank() == 4
             ? type.getDimSize(3) == size
             : type.getRank() == 3 && type.getDimSize(2) % size == 0;
}

Status LayerReader::readStream(const HeadsOf &from, const char *role,
                               Stream &stream) {
  const std::int64_t size = layer_.headDim, positions = sizes_.positions;
  auto type = cast<RankedTensorType>(from.value.getType());
  std::vector<std::int64_t> place;
  for (std::int64_t s = 0; s < positions; ++s)
    for (std::int64_t h = from.first; h < from.first + from.count; ++h)
      for (std::int64_t d = 0; d < size; ++d)
        place.push_back(type.getRank() == 4 ? (h * positions + s) * size + d
                                            : (s * from.all + h) * size + d);
  Value value = from.value;
  while (true) {
    Movement movement = traceMovement(value);
    for (std::int64_t &element : place)
      element = movement.from[element];
    value = movement.source;
    if (auto rotation = value.getDefiningOp<onnx::RotaryEmbeddingOp>();
        rotation && !stream.rotation && !stream.norm) {
      if (!meetsWholeHeads(rotation.getX(), place, true))
        return stop(value, std::string("a rotation of the heads of ") + role);
      stream.rotation = rotation;
      value = rotation.getX();
      continue;
    }
    if (!stream.norm && takeOwnNorms(value, place, from.count, stream))
      continue;
    auto found = norm(value);
    if (!found || stream.norm)
      break;
    auto normed = cast<RankedTensorType>(value.getType());
    if (normed.getRank() == 4) {
      if (!meetsWholeHeads(value, place, false))
        return stop(value, std::string("a norm of the heads of ") + role);
    } else {
      for (std::size_t i = 0; i < place.size(); ++i)
        if (place[i] != std::int64_t(i) ||
            normed.getShape().back() != from.count * size)
          return stop(value, std::string("the projection of ") + role);
      stream.normsRow = true;
    }
    stream.norm = found;
    value = found->input;
  }
  stream.place = std::move(place);
  stream.product = value;
  return Status::ok();
}

// How many neighbouring heads of `place` are the same, in all positions.
static std::int64_t sameHeads(ArrayRef<std::int64_t> place, std::int64_t heads,
                              std::int64_t size) {
  for (std::int64_t count = heads; count > 1; --count) {
    bool same = heads % count == 0;
    for (std::int64_t i = 0; same && i < std::int64_t(place.size()); ++i)
      same = place[i] == place[i - i / size % heads % count * size];
    if (same)
      return count;
  }
  return 1;
}

// Heads of keys and values that were repeated before they were kept are one.
void LayerReader::joinRepeatedHeads(Stream (&streams)[3]) {
  const std::int64_t heads = layer_.kvHeads, size = layer_.headDim;
  if (!streams[1].ownWeights.empty() || streams[1].normsRow)
    return;
  const std::int64_t count = std::gcd(sameHeads(streams[1].place, heads, size),
                                      sameHeads(streams[2].place, heads, size));
  for (unsigned i : {1u, 2u}) {
    std::vector<std::int64_t> kept;
    for (std::int64_t at = 0; at < std::int64_t(streams[i].place.size()); ++at)
      if (at / size % heads % count == 0)
        kept.push_back(streams[i].place[at]);
    streams[i].place = kept;
  }
  layer_.kvHeads = heads / count;
}

// ONNX's own: q, k and v in four dimensions, or with their heads side by side.
Status LayerReader::readOperator(onnx::AttentionOp op, HeadsOf (&streams)[3]) {
  auto type = cast<RankedTensorType>(op.getQ().getType());
  const bool sideBySide = type.getRank() == 3;
  layer_.heads =
      sideBySide ? op.getQNumHeads().value_or(0) : type.getDimSize(1);
  layer_.kvHeads =
      sideBySide ? op.getKvNumHeads().value_or(0)
                 : cast<RankedTensorType>(op.getK().getType()).getDimSize(1);
  layer_.headDim =
      sideBySide ? type.getDimSize(2) / std::max<std::int64_t>(layer_.heads, 1)
                 : type.getDimSize(3);
  for (unsigned i = 0; i < 3; ++i) {
    const std::int64_t count = i == 0 ? layer_.heads : layer_.kvHeads;
    streams[i] = {op->getOperand(i), 0, count, count};
  }
  auto scale = op.getScale();
  layer_.softmaxScale =
      scale ? scale->convertToFloat() : 1.0 / std::sqrt(double(layer_.headDim));
  layer_.softCap = op.getSoftcap().convertToFloat();
  if (integerOf(op, "right_window_size") > 0 ||
      !onnx::isAbsent(op.getNonpadKvSeqlen()) ||
      !onnx::isAbsent(op->getResult(3)))
    return Status::unsupported(
        "a window to the right, nonpad_kv_seqlen and the "
        "scores have no counterpart");
  std::int64_t window = 0;
  if (!onnx::isAbsent(op.getAttnMask()))
    INGOT_RETURN_IF_ERROR(
        readMask(op.getAttnMask(), op.getIsCausal() != 0, window));
  else if (!op.getIsCausal())
    return Status::unsupported("is neither causal nor masked");
  // What a query sees is what mask and window both allow.
  if (const std::int64_t left = integerOf(op, "left_window_size"); left >= 0)
    window = window == 0 ? left + 1 : std::min(window, left + 1);
  layer_.slidingWindow = window;
  return checkPast(op, 4);
}

// com.microsoft's for one key head to each of queries.
Status LayerReader::readOperator(onnx::MultiHeadAttentionOp op,
                                 HeadsOf (&streams)[3]) {
  layer_.heads = layer_.kvHeads = integerOf(op, "num_heads");
  layer_.headDim =
      cast<RankedTensorType>(op.getQuery().getType()).getDimSize(2) /
      layer_.heads;
  for (unsigned i = 0; i < 3; ++i)
    streams[i] = {op->getOperand(i), 0, layer_.heads, layer_.heads};
  const double scale = op.getScale().convertToFloat();
  layer_.softmaxScale =
      scale != 0 ? scale : 1.0 / std::sqrt(double(layer_.headDim));
  const bool causal = op.getUnidirectional() != 0;
  if (!onnx::isAbsent(op.getKeyPaddingMask())) {
    INGOT_ASSIGN_OR_RETURN(std::vector<OnnxTensor> values,
                           values_.evaluate({op.getKeyPaddingMask()}));
    for (double number : numbersOf(values[0]))
      if (number == 0)
        return Status::unsupported("its key_padding_mask hides keys where the "
                                   "attention mask hides none");
  }
  std::int64_t window = 0;
  if (!onnx::isAbsent(op.getAttentionBias()))
    INGOT_RETURN_IF_ERROR(readMask(op.getAttentionBias(), causal, window));
  else if (!causal)
    return Status::unsupported("is neither unidirectional nor masked");
  layer_.slidingWindow = window;
  return checkPast(op, 6);
}

// com.microsoft's for grouped heads; q, k and v may be one tensor.
Status LayerReader::readOperator(onnx::GroupQueryAttentionOp op,
                                 HeadsOf (&streams)[3]) {
  layer_.heads = op.getNumHeads();
  layer_.kvHeads = op.getKvNumHeads();
  const bool isPacked = onnx::isAbsent(op.getKey());
  const std::int64_t all = layer_.heads + (isPacked ? 2 * layer_.kvHeads : 0);
  layer_.headDim =
      cast<RankedTensorType>(op.getQuery().getType()).getDimSize(2) / all;
  std::int64_t first = 0;
  for (unsigned i = 0; i < 3; ++i) {
    const std::int64_t count = i == 0 ? layer_.heads : layer_.kvHeads;
    streams[i] = {op->getOperand(isPacked ? 0 : i), isPacked ? first : 0, count,
                  isPacked ? all : count};
    first += count;
  }
  const double scale = op.getScale().convertToFloat();
  layer_.softmaxScale =
      scale != 0 ? scale : 1.0 / std::sqrt(double(layer_.headDim));
  layer_.softCap = op.getSoftcap().convertToFloat();
  layer_.slidingWindow =
      std::max<std::int64_t>(integerOf(op, "local_window_size"), 0);
  if (integerOf(op, "smooth_softmax") > 0 ||
      !onnx::isAbsent(op.getHeadSink()) ||
      !onnx::isAbsent(op.getAttentionBias()))
    return Status::unsupported(
        "smooth_softmax, head_sink and attention_bias have "
        "no counterpart");
  auto lengths = onnx::knownInts(op.getSeqlensK());
  auto total = onnx::knownInts(op.getTotalSequenceLength());
  bool counts =
      lengths && total && total->size() == 1 && (*total)[0] == sizes_.total();
  for (std::int64_t length : lengths ? *lengths : SmallVector<std::int64_t>())
    counts &= length == sizes_.total() - 1;
  if (!counts)
    return Status::unsupported(
        "its lengths are not those of the attention mask");
  INGOT_RETURN_IF_ERROR(checkPast(op, 3));
  if (!op.getDoRotary())
    return Status::ok();
  if (!onnx::isAbsent(op.getPositionIds())) {
    auto ids = onnx::knownInts(op.getPositionIds());
    for (std::size_t i = 0; i < (ids ? ids->size() : 1); ++i)
      if (!ids || (*ids)[i] != sizes_.past + std::int64_t(i) % sizes_.positions)
        return Status::unsupported(
            "its positions are not those that follow the past");
  }
  layer_.rotary.layout = op.getRotaryInterleaved() ? RotaryLayout::Interleaved
                                                   : RotaryLayout::Half;
  const std::int64_t half =
      cast<RankedTensorType>(op.getCosCache().getType()).getShape().back();
  layer_.rotary.dim = 2 * half;
  return rotationOfTables(op.getCosCache(), op.getSinCache(), false, half,
                          layer_.rotary);
}

Status LayerReader::readAttention(Value update, Value stream) {
  const double factor = takeFactor(update);
  auto post = takePostNorm(update);
  auto out = linear(update);
  if (!out)
    return stop(update, "the projection of an attention's output");
  Value attended = throughHeads(out->input);
  Operation *op = attended.getDefiningOp();
  if (!op || !isa<onnx::AttentionOp, onnx::GroupQueryAttentionOp,
                  onnx::MultiHeadAttentionOp>(op))
    return stop(attended, "an attention");
  const std::string where = onnx::describe(op);
  HeadsOf from[3];
  Status status = llvm::TypeSwitch<Operation *, Status>(op)
                      .Case<onnx::AttentionOp, onnx::GroupQueryAttentionOp,
                            onnx::MultiHeadAttentionOp>(
                          [&](auto one) { return readOperator(one, from); });
  INGOT_RETURN_IF_ERROR(status.withContext(where));
  Stream streams[3];
  const char *roles[3] = {"q", "k", "v"};
  for (unsigned i = 0; i < 3; ++i)
    INGOT_RETURN_IF_ERROR(readStream(from[i], roles[i], streams[i]));
  joinRepeatedHeads(streams);
  for (unsigned i = 0; i < 3; ++i) {
    auto found =
        linearPart(streams[i].product, streams[i].place, sizes_.positions);
    if (!found)
      return stop(streams[i].product,
                  std::string("the projection of ") + roles[i]);
    streams[i].linear = *found;
  }
  // A bias that the operator adds.
  if (auto multi = dyn_cast<onnx::MultiHeadAttentionOp>(op);
      multi && !onnx::isAbsent(multi.getBias())) {
    auto bias = constant(multi.getBias());
    std::vector<std::int64_t> rows(layer_.heads * layer_.headDim);
    for (unsigned i = 0; i < 3; ++i) {
      std::iota(rows.begin(), rows.end(), std::int64_t(i * rows.size()));
      auto part = bias ? rowsOf(*bias, rows) : std::nullopt;
      if (!part || streams[i].linear.bias || streams[i].rotation ||
          streams[i].norm)
        return Status::unsupported(where + ": its bias is not that of " +
                                   roles[i]);
      streams[i].linear.bias = part;
    }
  }
  layer_.softmaxScale = exactScale(
      layer_.softmaxScale, layer_.headDim,
      cast<RankedTensorType>(from[0].value.getType()).getElementType());
  if (factor != layer_.residualScale)
    return Status::unsupported(where + ": is added by another factor than the "
                                       "feed-forward");
  // Both q and k turn, alike; v does not.
  if ((streams[0].rotation == nullptr) != (streams[1].rotation == nullptr) ||
      streams[2].rotation || streams[2].norm ||
      streams[0].norm.has_value() != streams[1].norm.has_value())
    return Status::unsupported(where + ": q and k are not prepared alike");
  if (streams[0].rotation) {
    RotarySpec ofKeys;
    INGOT_RETURN_IF_ERROR(readRotation(streams[0].rotation, layer_.rotary));
    INGOT_RETURN_IF_ERROR(readRotation(streams[1].rotation, ofKeys));
    if (!(ofKeys == layer_.rotary))
      return Status::unsupported(where + ": q and k turn by different angles");
  }
  if (streams[0].norm) {
    INGOT_RETURN_IF_ERROR(readHeadNorms(streams).withContext(where));
  }
  Value input = streams[0].linear.input;
  if (streams[1].linear.input != input || streams[2].linear.input != input)
    return Status::unsupported(where + ": q, k and v read different values");
  bool *biases[3] = {&layer_.biases.q, &layer_.biases.k, &layer_.biases.v};
  for (unsigned i = 0; i < 3; ++i) {
    put(roles[i], streams[i].linear.weight);
    *biases[i] = streams[i].linear.bias.has_value();
    if (*biases[i])
      put(std::string(roles[i]) + ".bias", *streams[i].linear.bias);
  }
  put("o", out->weight);
  layer_.biases.o = out->bias.has_value();
  if (out->bias)
    put("o.bias", *out->bias);
  attentionInput_ = input;
  INGOT_RETURN_IF_ERROR(
      readNormBefore(input, stream, "attn_norm", layer_.attnNorm));
  layer_.attnPostNorm = post.has_value();
  if (!post)
    return Status::ok();
  put("attn_post_norm", post->weight);
  if (post->bias)
    put("attn_post_norm.bias", *post->bias);
  return sameAsLast(*post);
}

} // namespace ingot
