// From the logits backwards: head, final norm, then blocks of the residual stream
// (a feed-forward, an attention) until the embedding. What a mask allows and by
// which angles heads turn is computed, not matched: the subgraphs that make them
// depend on positions alone.
#include "compiler/frontend/onnx/OnnxLayers.h"

#include "compiler/frontend/StrictJson.h"
#include "compiler/frontend/onnx/OnnxParts.h"
#include "compiler/frontend/onnx/RotaryTables.h"
#include "dialects/onnx/OnnxOps.h"
#include "dialects/onnx/ShapeValues.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cmath>
#include <map>
#include <set>

using namespace mlir;

namespace ingot {
namespace {

// One of q, k, v on its way to the attention.
struct Stream {
  Linear linear;
  std::optional<Norm> norm; // of each head
  Operation *rotation = nullptr;
};

// 1 / sqrt(size) where `scale` is that, rounded to a half, a bfloat16 or a float:
// an export in 16 bits rounds the constant, and means the number.
double exactScale(double scale, std::int64_t size) {
  const double ideal = 1.0 / std::sqrt(double(size));
  for (const llvm::fltSemantics *type :
       {&APFloat::IEEEhalf(), &APFloat::BFloat(), &APFloat::IEEEsingle()}) {
    APFloat rounded(ideal);
    bool lossy = false;
    rounded.convert(*type, APFloat::rmNearestTiesToEven, &lossy);
    rounded.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                    &lossy);
    // The attribute is a float32.
    if (static_cast<float>(rounded.convertToDouble()) ==
        static_cast<float>(scale))
      return ideal;
  }
  return scale;
}

class LayerReader : private PartReader {
public:
  LayerReader(ModuleOp module, OnnxFile &file,
              const std::vector<ProbeInput> &inputs, const ProbeSizes &sizes,
              const std::function<void(const std::string &)> &explain,
              const ModelSpec *before, ModelSpec &spec)
      : PartReader(file), values_(module, file),
        function_(*module.getOps<func::FuncOp>().begin()), inputs_(inputs),
        sizes_(sizes), explain_(explain), before_(before), spec_(spec) {}

  Status run();

private:
  // What a backward step found instead of what it looked for.
  Status stop(Value at, const std::string &expected) {
    std::string found = "an input of the graph";
    if (Operation *op = at.getDefiningOp())
      found = onnx::describe(op);
    return Status::unsupported("expected " + expected + ", found " + found);
  }
  // All norms of a model are alike.
  Status sameAsLast(const Norm &norm) const {
    if (norm.kind == spec_.norm && norm.eps == spec_.normEps &&
        norm.bias.has_value() == spec_.normBias)
      return Status::ok();
    return Status::unsupported("norms of different kinds or epsilons");
  }
  Status readHead(Value logits, Value &stream);
  Status readBlock(Value &stream);
  Status readFeedForward(Value update, Value stream, bool &is);
  Status readAttention(Value update, Value stream);
  Status readStream(Value value, const char *role, Stream &stream);
  Status readEmbedding(Value stream);
  Status readRotation(Operation *op, RotarySpec &rotary);
  Status rotationOfTables(Value cosines, Value sines, bool rowsAreSteps,
                          std::int64_t half, RotarySpec &rotary);
  Status readMask(Value mask, std::int64_t &window);
  Status checkPast(Operation *attention, unsigned pastAt, std::int64_t layer);
  void put(const std::string &role, TensorSource source) {
    pending_[role] = std::move(source);
  }

  ValueEvaluator values_;
  func::FuncOp function_;
  const std::vector<ProbeInput> &inputs_;
  const ProbeSizes &sizes_;
  const std::function<void(const std::string &)> &explain_;
  const ModelSpec *before_;
  ModelSpec &spec_;
  // Layers from the last to the first; parameters of the one being read.
  std::vector<LayerSpec> layers_;
  std::vector<std::map<std::string, TensorSource>> parameters_;
  std::map<std::string, TensorSource> pending_;
  LayerSpec layer_;
  std::map<std::pair<void *, void *>, RotarySpec> rotations_;
  std::vector<std::int64_t> pastLayers_;
  std::int64_t rotaryRows_ = 0; // positions that the tables have, 0: any
};

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
  const OnnxType type = tables[0].type;
  read.rounding = type == OnnxType::Float16    ? 0x1p-11
                  : type == OnnxType::Bfloat16 ? 0x1p-8
                                               : 0x1p-24;
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
  if (!rowsAreSteps)
    rotaryRows_ = rows;
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

// A mask, boolean or added, that says what a causal one says; its window.
Status LayerReader::readMask(Value mask, std::int64_t &window) {
  INGOT_ASSIGN_OR_RETURN(std::vector<OnnxTensor> values,
                         values_.evaluate({mask}));
  const std::vector<double> numbers = numbersOf(values[0]);
  const bool isBool = values[0].type == OnnxType::Bool;
  const std::int64_t keys = values[0].dims.back();
  const std::int64_t rows =
      std::int64_t(numbers.size()) / std::max<std::int64_t>(keys, 1);
  if (keys != sizes_.total() || rows % sizes_.positions != 0)
    return Status::unsupported("a mask that is not of the scores' shape");
  std::int64_t span = 0; // keys that the last query sees
  auto sees = [&](std::int64_t row, std::int64_t key) {
    return isBool ? numbers[row * keys + key] != 0
                  : numbers[row * keys + key] == 0;
  };
  for (std::int64_t key = 0; key < keys; ++key)
    span += sees(sizes_.positions - 1, key);
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t key = 0; key < keys; ++key) {
      const std::int64_t position = sizes_.past + row % sizes_.positions;
      const bool expected = key <= position && position - key < span;
      if (sees(row, key) != expected)
        return Status::unsupported(
            "a mask that is not causal: query " + std::to_string(position) +
            (expected ? " does not see key " : " sees key ") +
            std::to_string(key));
      if (!isBool && !expected && numbers[row * keys + key] > -1e4)
        return Status::unsupported("a mask that adds " +
                                   std::to_string(numbers[row * keys + key]));
    }
  window = span == keys ? 0 : span;
  return Status::ok();
}

// The past is an input of this layer, the present an output of the graph.
Status LayerReader::checkPast(Operation *attention, unsigned pastAt,
                              std::int64_t layer) {
  const std::string where = onnx::describe(attention);
  std::int64_t index = -1;
  for (unsigned i : {0u, 1u}) {
    auto argument =
        dyn_cast<BlockArgument>(through(attention->getOperand(pastAt + i)));
    if (!argument || argument.getParentBlock() != &function_.front())
      return Status::unsupported(where + ": its past is not an input");
    const ProbeInput &input = inputs_[argument.getArgNumber()];
    if (input.role != (i == 0 ? InputRole::PastKey : InputRole::PastValue) ||
        (i == 1 && input.layer != index))
      return Status::unsupported(where + ": input " + quoteName(input.name) +
                                 " is not the past that belongs there");
    index = input.layer;
    if (!argument.hasOneUse())
      return Status::unsupported(where + ": its past is used elsewhere too");
  }
  for (unsigned i : {1u, 2u})
    for (Operation *user : attention->getResult(i).getUsers())
      if (!isa<func::ReturnOp>(user))
        return Status::unsupported(where + ": its present is used by " +
                                   onnx::describe(user));
  pastLayers_.push_back(index);
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

Status LayerReader::readStream(Value value, const char *role, Stream &stream) {
  value = through(value);
  if (auto rotation = value.getDefiningOp<onnx::RotaryEmbeddingOp>()) {
    stream.rotation = rotation;
    value = rotation.getX();
  }
  value = throughHeads(value);
  // A norm of each head lies between the heads and the projection.
  if (auto found = norm(value)) {
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getRank() != 4)
      return stop(value, std::string("a projection of ") + role);
    stream.norm = found;
    value = throughHeads(found->input);
  }
  auto found = linear(value);
  if (!found)
    return stop(value, std::string("the projection of ") + role);
  stream.linear = *found;
  return Status::ok();
}

Status LayerReader::readAttention(Value update, Value stream) {
  auto out = linear(update);
  if (!out)
    return stop(update, "the projection of an attention's output");
  Value attended = throughHeads(out->input);
  Operation *op = attended.getDefiningOp();
  if (!op || !isa<onnx::AttentionOp, onnx::GroupQueryAttentionOp>(op))
    return stop(attended, "an attention");
  const std::string where = onnx::describe(op);
  Stream streams[3];
  const char *roles[3] = {"q", "k", "v"};
  for (unsigned i = 0; i < 3; ++i) {
    if (onnx::isAbsent(op->getOperand(i)))
      return Status::unsupported(where + ": q, k and v in one tensor");
    INGOT_RETURN_IF_ERROR(readStream(op->getOperand(i), roles[i], streams[i]));
  }
  auto type = cast<RankedTensorType>(op->getOperand(0).getType());
  if (auto attention = dyn_cast<onnx::AttentionOp>(op)) {
    const bool sideBySide = type.getRank() == 3;
    layer_.heads =
        sideBySide ? attention.getQNumHeads().value_or(0) : type.getDimSize(1);
    layer_.kvHeads =
        sideBySide
            ? attention.getKvNumHeads().value_or(0)
            : cast<RankedTensorType>(op->getOperand(1).getType()).getDimSize(1);
    layer_.headDim = sideBySide ? type.getDimSize(2) /
                                      std::max<std::int64_t>(layer_.heads, 1)
                                : type.getDimSize(3);
    auto scale = attention.getScale();
    layer_.softmaxScale = scale ? scale->convertToFloat()
                                : 1.0 / std::sqrt(double(layer_.headDim));
    layer_.softCap = attention.getSoftcap().convertToFloat();
    if (integerOf(op, "right_window_size") > 0 ||
        !onnx::isAbsent(attention.getNonpadKvSeqlen()) ||
        !onnx::isAbsent(op->getResult(3)))
      return Status::unsupported(
          where + ": a window to the right, nonpad_kv_seqlen and the scores "
                  "have no counterpart");
    std::int64_t window = 0;
    if (!onnx::isAbsent(attention.getAttnMask())) {
      Status mask = readMask(attention.getAttnMask(), window);
      // Beside is_causal a mask of ones is no mask.
      if (!mask)
        return mask.withContext(where);
    } else if (!attention.getIsCausal()) {
      return Status::unsupported(where + ": is neither causal nor masked");
    }
    if (integerOf(op, "left_window_size") >= 0)
      window = integerOf(op, "left_window_size") + 1;
    layer_.slidingWindow = window;
    INGOT_RETURN_IF_ERROR(checkPast(op, 4, std::int64_t(layers_.size())));
  } else {
    auto group = cast<onnx::GroupQueryAttentionOp>(op);
    layer_.heads = group.getNumHeads();
    layer_.kvHeads = group.getKvNumHeads();
    layer_.headDim = type.getDimSize(2) / layer_.heads;
    const double scale = group.getScale().convertToFloat();
    layer_.softmaxScale =
        scale != 0 ? scale : 1.0 / std::sqrt(double(layer_.headDim));
    layer_.softCap = group.getSoftcap().convertToFloat();
    layer_.slidingWindow =
        std::max<std::int64_t>(integerOf(op, "local_window_size"), 0);
    if (integerOf(op, "smooth_softmax") > 0 ||
        !onnx::isAbsent(group.getHeadSink()) ||
        !onnx::isAbsent(group.getAttentionBias()))
      return Status::unsupported(where + ": smooth_softmax, head_sink and "
                                         "attention_bias have no counterpart");
    auto lengths = onnx::knownInts(group.getSeqlensK());
    auto total = onnx::knownInts(group.getTotalSequenceLength());
    bool counts =
        lengths && total && total->size() == 1 && (*total)[0] == sizes_.total();
    for (std::int64_t length : lengths ? *lengths : SmallVector<std::int64_t>())
      counts &= length == sizes_.total() - 1;
    if (!counts)
      return Status::unsupported(
          where + ": its lengths are not those of the attention mask");
    INGOT_RETURN_IF_ERROR(checkPast(op, 3, std::int64_t(layers_.size())));
    if (group.getDoRotary()) {
      layer_.rotary.layout = group.getRotaryInterleaved()
                                 ? RotaryLayout::Interleaved
                                 : RotaryLayout::Half;
      const std::int64_t half =
          cast<RankedTensorType>(group.getCosCache().getType())
              .getShape()
              .back();
      layer_.rotary.dim = 2 * half;
      INGOT_RETURN_IF_ERROR(rotationOfTables(group.getCosCache(),
                                             group.getSinCache(), false, half,
                                             layer_.rotary)
                                .withContext(where));
    }
  }
  layer_.softmaxScale = exactScale(layer_.softmaxScale, layer_.headDim);
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
    if (spec_.norm != NormKind::Rms)
      return Status::unsupported(where + ": norms of heads with a mean");
    for (unsigned i : {0u, 1u})
      INGOT_RETURN_IF_ERROR(sameAsLast(*streams[i].norm).withContext(where));
    layer_.qkNorm = QkNorm::Head;
    put("q_norm", streams[0].norm->weight);
    put("k_norm", streams[1].norm->weight);
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
  auto before = norm(input);
  if (!before)
    return stop(input, "the norm before an attention");
  if (before->input != stream)
    return stop(before->input, "the residual stream before an attention");
  put("attn_norm", before->weight);
  if (before->bias)
    put("attn_norm.bias", *before->bias);
  return sameAsLast(*before);
}

// `is` says whether the update was one at all.
Status LayerReader::readFeedForward(Value update, Value stream, bool &is) {
  is = false;
  auto down = linear(update);
  if (!down)
    return Status::ok();
  // act(gate) * up, where act is Swish, or x * sigmoid(x) that is not raised.
  Value hidden = through(down->input);
  auto activation = [&](Value value) -> std::optional<Activation> {
    Operation *op = through(value).getDefiningOp();
    if (auto swish = dyn_cast_or_null<onnx::SwishOp>(op))
      return swish.getAlpha().convertToFloat() == 1.0f
                 ? std::optional(Activation::Silu)
                 : std::nullopt;
    if (auto gelu = dyn_cast_or_null<onnx::GeluOp>(op))
      return gelu.getApproximate() == "tanh" ? Activation::GeluTanh
                                             : Activation::Gelu;
    if (isa_and_nonnull<onnx::ReluOp>(op))
      return Activation::Relu;
    return std::nullopt;
  };
  std::optional<Linear> up, gate;
  if (auto product = hidden.getDefiningOp<onnx::MulOp>()) {
    for (auto [a, b] : {std::pair(product.getA(), product.getB()),
                        std::pair(product.getB(), product.getA())})
      if (auto kind = activation(a)) {
        gate = linear(through(a).getDefiningOp()->getOperand(0));
        up = linear(b);
        layer_.activation = *kind;
        break;
      }
    if (!gate || !up)
      return Status::ok();
    layer_.gated = true;
  } else if (auto kind = activation(hidden)) {
    up = linear(hidden.getDefiningOp()->getOperand(0));
    if (!up)
      return Status::ok();
    layer_.activation = *kind;
    layer_.gated = false;
  } else {
    return Status::ok();
  }
  is = true;
  if (gate && gate->input != up->input)
    return stop(gate->input, "gate and up of one value");
  auto before = norm(up->input);
  if (!before)
    return stop(up->input, "the norm before a feed-forward");
  if (before->input != stream)
    return stop(before->input, "the residual stream before a feed-forward");
  layer_.ffnSize = up->columns;
  put("ffn_norm", before->weight);
  if (before->bias)
    put("ffn_norm.bias", *before->bias);
  auto add = [&](const char *role, const Linear &one, bool &bias) {
    put(role, one.weight);
    bias = one.bias.has_value();
    if (bias)
      put(std::string(role) + ".bias", *one.bias);
  };
  if (gate)
    add("gate", *gate, layer_.biases.gate);
  add("up", *up, layer_.biases.up);
  add("down", *down, layer_.biases.down);
  return sameAsLast(*before);
}

// stream = (s + attention(norm(s))) + feedForward(norm(that)).
Status LayerReader::readBlock(Value &stream) {
  layer_ = LayerSpec();
  pending_.clear();
  for (bool feedForward : {true, false}) {
    auto add = stream.getDefiningOp<onnx::AddOp>();
    if (!add)
      return stop(stream, "the sum of a block");
    Status why = Status::ok();
    bool found = false;
    for (auto [before, update] : {std::pair(add.getA(), add.getB()),
                                  std::pair(add.getB(), add.getA())}) {
      Value residual = through(before);
      bool is = true;
      Status status = feedForward ? readFeedForward(update, residual, is)
                                  : readAttention(update, residual);
      if (status && is) {
        stream = residual;
        found = true;
        break;
      }
      // The side that is no block at all says less than the other.
      if (why.isOk() || linear(update))
        why = is ? status : stop(update, "a feed-forward");
    }
    if (!found)
      return why.withContext("layer " + std::to_string(layers_.size()) +
                             " from the end");
  }
  layers_.push_back(layer_);
  parameters_.push_back(pending_);
  if (explain_)
    explain_("layer " + std::to_string(layers_.size()) +
             " from the end: " + std::to_string(layer_.heads) + " heads over " +
             std::to_string(layer_.kvHeads) + " of keys, " +
             (layer_.rotary.dim ? "rotary" : "no rotation") + ", " +
             (layer_.gated ? "gated " : "") + "feed-forward of " +
             std::to_string(layer_.ffnSize));
  return Status::ok();
}

Status LayerReader::readHead(Value logits, Value &stream) {
  auto head = linear(logits);
  if (!head)
    return stop(through(logits), "the product of the head");
  if (head->bias)
    return Status::unsupported("a head with a bias");
  spec_.vocabSize = head->columns;
  spec_.hiddenSize = head->weight.shape[1];
  spec_.parameters["lm_head"] = head->weight;
  auto last = norm(head->input);
  if (!last)
    return stop(head->input, "the final norm");
  spec_.parameters["final_norm"] = last->weight;
  if (last->bias)
    spec_.parameters["final_norm.bias"] = *last->bias;
  spec_.norm = last->kind;
  spec_.normBias = last->bias.has_value();
  spec_.normEps = last->eps;
  stream = last->input;
  return Status::ok();
}

Status LayerReader::readEmbedding(Value stream) {
  auto gather = stream.getDefiningOp<onnx::GatherOp>();
  if (!gather || gather.getAxis() != 0)
    return stop(stream, "the embedding");
  Value tokens = gather.getIndices();
  if (auto cast = tokens.getDefiningOp<onnx::CastOp>())
    tokens = cast.getInput();
  auto argument = dyn_cast<BlockArgument>(tokens);
  if (!argument || inputs_[argument.getArgNumber()].role != InputRole::Tokens)
    return stop(tokens, "the token ids");
  auto table = constant(gather.getData());
  if (!table || table->shape.size() != 2)
    return stop(gather.getData(), "the table of the embedding");
  spec_.parameters["embed"] = *table;
  return Status::ok();
}

Status LayerReader::run() {
  Value stream;
  INGOT_RETURN_IF_ERROR(
      readHead(function_.front().getTerminator()->getOperand(0), stream));
  while (stream.getDefiningOp<onnx::AddOp>())
    INGOT_RETURN_IF_ERROR(readBlock(stream));
  INGOT_RETURN_IF_ERROR(readEmbedding(stream));
  if (layers_.empty())
    return Status::unsupported(
        "expected layers, found an embedding and a head");
  const std::int64_t count = std::int64_t(layers_.size());
  for (std::int64_t i = 0; i < count; ++i) {
    if (pastLayers_[count - 1 - i] != i)
      return Status::unsupported("layer " + std::to_string(i) +
                                 " keeps the past of layer " +
                                 std::to_string(pastLayers_[count - 1 - i]));
    spec_.layers.push_back(layers_[count - 1 - i]);
    for (auto &[role, source] : parameters_[count - 1 - i])
      spec_.parameters[layerRole(i, role)] = source;
  }
  for (const ProbeInput &input : inputs_)
    if ((input.role == InputRole::PastKey ||
         input.role == InputRole::PastValue) &&
        input.layer >= count)
      return Status::unsupported("input " + quoteName(input.name) +
                                 " belongs to no layer");
  // A head that is the embedding itself.
  const TensorSource &head = spec_.parameters["lm_head"],
                     &table = spec_.parameters["embed"];
  if (head.fileIndex == table.fileIndex &&
      head.byteOffset == table.byteOffset && head.shape == table.shape &&
      head.transposed == table.transposed) {
    spec_.tiedHead = true;
    spec_.parameters.erase("lm_head");
  }
  spec_.contextLength = rotaryRows_;
  return Status::ok();
}

} // namespace

Status readLayers(ModuleOp probed, OnnxFile &file,
                  const std::vector<ProbeInput> &inputs,
                  const ProbeSizes &sizes,
                  const std::function<void(const std::string &)> &explain,
                  const ModelSpec *before, ModelSpec &spec) {
  return LayerReader(probed, file, inputs, sizes, explain, before, spec).run();
}

} // namespace ingot
