// From the logits backwards: head, final norm, then blocks of the residual stream
// (a feed-forward, an attention) until the embedding. What a mask allows and by
// which angles heads turn is computed, not matched: the subgraphs that make them
// depend on positions alone.
#include "compiler/frontend/onnx/OnnxLayerReader.h"

#include "passes/raise/Match.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

using namespace mlir;

namespace ingot {

double LayerReader::takeFactor(Value &value) {
  value = through(value);
  auto by = raise::scaled(value);
  if (!by)
    return 1;
  Type element = cast<TensorType>(value.getType()).getElementType();
  // A quotient is by the number that was written.
  const double factor = value.getDefiningOp<onnx::DivOp>()
                            ? 1 / asWritten(1 / by->number, element)
                            : asWritten(by->number, element);
  value = through(by->other);
  return factor;
}

std::optional<Norm> LayerReader::takePostNorm(Value &update) {
  auto found = linear(update) ? std::nullopt : norm(update);
  if (found)
    update = found->input;
  return found;
}

// The norm of the stream that a block reads, or the stream itself.
Status LayerReader::readNormBefore(Value input, Value stream,
                                   const std::string &role, bool &has) {
  has = input != stream;
  if (!has)
    return Status::ok();
  auto before = norm(input);
  if (!before)
    return stop(input, "the norm before a block");
  if (before->input != stream)
    return stop(before->input, "the residual stream before a block");
  put(role, before->weight);
  if (before->bias)
    put(role + ".bias", *before->bias);
  return sameAsLast(*before);
}

// `is` says whether the update was one at all.
Status LayerReader::readFeedForward(Value update, Value stream, bool &is) {
  is = false;
  const double factor = takeFactor(update);
  auto post = takePostNorm(update);
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
        gate = movedLinear(through(a).getDefiningOp()->getOperand(0),
                           sizes_.positions);
        up = movedLinear(b, sizes_.positions);
        layer_.activation = *kind;
        break;
      }
    if (!gate || !up)
      return Status::ok();
    layer_.gated = true;
  } else if (auto kind = activation(hidden)) {
    up = movedLinear(hidden.getDefiningOp()->getOperand(0), sizes_.positions);
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
  feedForwardInput_ = up->input;
  INGOT_RETURN_IF_ERROR(
      readNormBefore(up->input, stream, "ffn_norm", layer_.ffnNorm));
  layer_.residualScale = factor;
  layer_.ffnSize = up->columns;
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
  layer_.ffnPostNorm = post.has_value();
  if (!post)
    return Status::ok();
  put("ffn_post_norm", post->weight);
  if (post->bias)
    put("ffn_post_norm.bias", *post->bias);
  return sameAsLast(*post);
}

// Why `update` is no feed-forward; the choice of experts is named.
Status LayerReader::noFeedForward(Value update) {
  constexpr std::size_t reach = 48; // operators of a feed-forward of experts
  SmallVector<Value> next{update};
  for (std::size_t i = 0; i < next.size() && i < reach; ++i)
    if (Operation *op = next[i].getDefiningOp()) {
      if (isa<onnx::TopKOp>(op))
        return Status::unsupported("expected one feed-forward for all tokens, "
                                   "found experts that are chosen by " +
                                   onnx::describe(op));
      for (Value operand : op->getOperands())
        if (!llvm::is_contained(next, operand))
          next.push_back(operand);
    }
  return stop(update, "a feed-forward");
}

// stream = (s + attention(norm(s))) + feedForward(norm(that)).
Status LayerReader::readSequential(Value &stream) {
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
        why = is ? status : noFeedForward(update);
    }
    if (!found)
      return why;
  }
  return Status::ok();
}

// stream = s + attention(norm(s)) + feedForward(norm(s)), in any order; the two
// norms may be one. `is` says whether a feed-forward of such a sum was found.
Status LayerReader::readParallel(Value &stream, bool &is) {
  is = false;
  Status why = Status::ok();
  auto outer = stream.getDefiningOp<onnx::AddOp>();
  for (unsigned side : {0u, 1u}) {
    auto inner =
        outer ? through(outer->getOperand(side)).getDefiningOp<onnx::AddOp>()
              : onnx::AddOp();
    if (!inner)
      continue;
    std::array<Value, 3> terms{inner.getA(), inner.getB(),
                               outer->getOperand(1 - side)};
    std::array<unsigned, 3> order{0, 1, 2};
    do {
      Value residual = through(terms[order[0]]), attention = terms[order[1]],
            feedForward = terms[order[2]];
      bool isFeedForward = false;
      layer_ = LayerSpec();
      pending_.clear();
      Status status = readFeedForward(feedForward, residual, isFeedForward);
      if (!isFeedForward || !status || !linear(attention))
        continue;
      is = true;
      status = readAttention(attention, residual);
      if (!status) {
        why = status;
        continue;
      }
      layer_.parallel = true;
      if (feedForwardInput_ == attentionInput_) {
        layer_.ffnNorm = false;
        pending_.erase("ffn_norm");
        pending_.erase("ffn_norm.bias");
      }
      stream = residual;
      return Status::ok();
    } while (std::next_permutation(order.begin(), order.end()));
  }
  return is ? why : stop(stream, "the sum of a block");
}

Status LayerReader::readBlock(Value &stream) {
  auto reset = [&] {
    layer_ = LayerSpec();
    pending_.clear();
    pastLayers_.resize(layers_.size());
  };
  reset();
  Value end = stream;
  if (Status sequential = readSequential(stream); !sequential) {
    reset();
    stream = end;
    bool isParallel = false;
    Status parallel = readParallel(stream, isParallel);
    if (!parallel)
      return (isParallel ? parallel : sequential)
          .withContext("layer " + std::to_string(layers_.size()) +
                       " from the end");
  }
  layers_.push_back(layer_);
  parameters_.push_back(pending_);
  if (explain_)
    explain_("layer " + std::to_string(layers_.size()) +
             " from the end: " + std::to_string(layer_.heads) + " heads over " +
             std::to_string(layer_.kvHeads) + " of keys, " +
             (layer_.rotary.dim ? "rotary" : "no rotation") + ", " +
             (layer_.parallel ? "beside a " : "") +
             (layer_.gated ? "gated " : "") + "feed-forward of " +
             std::to_string(layer_.ffnSize));
  return Status::ok();
}

// cap * tanh(logits / cap), of which the logits are left.
Status LayerReader::takeSoftCap(Value &logits) {
  auto outer = raise::scaled(through(logits));
  auto tanh = outer ? through(outer->other).getDefiningOp<onnx::TanhOp>()
                    : onnx::TanhOp();
  if (!tanh)
    return Status::ok();
  auto inner = raise::scaled(through(tanh.getInput()));
  if (!inner || std::abs(inner->number * outer->number - 1) > 1e-6)
    return Status::unsupported(
        onnx::describe(tanh) +
        ": logits are capped by one number and scaled by another");
  spec_.logitSoftcap = takeFactor(logits);
  logits = through(inner->other);
  return Status::ok();
}

Status LayerReader::readHead(Value logits, Value &stream) {
  INGOT_RETURN_IF_ERROR(takeSoftCap(logits));
  spec_.logitScale = takeFactor(logits);
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
  spec_.normOffset = last->offset;
  stream = last->input;
  return Status::ok();
}

// Rows of a table; or their sum with the rows of positions.
bool LayerReader::isEmbedding(Value stream) {
  auto isRows = [&](Value value) {
    return through(value).getDefiningOp<onnx::GatherOp>() != nullptr;
  };
  if (auto add = stream.getDefiningOp<onnx::AddOp>())
    return isRows(add.getA()) && isRows(add.getB());
  return !stream.getDefiningOp<onnx::AddOp>();
}

Status LayerReader::readPositions(onnx::GatherOp gather) {
  auto table = constant(gather.getData());
  auto ids = values_.evaluate({gather.getIndices()});
  if (!table || table->shape.size() != 2 || gather.getAxis() != 0 || !ids)
    return stop(gather.getResult(), "the table of positions");
  const std::vector<double> numbers = numbersOf((*ids)[0]);
  const std::int64_t rows = table->shape[0];
  const std::int64_t first =
      numbers.empty() ? -1 : std::int64_t(numbers[0]) - sizes_.past;
  bool counts = first >= 0 && first < rows;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    counts &= numbers[i] ==
              double(first + sizes_.past + std::int64_t(i) % sizes_.positions);
  if (!counts || (before_ && before_->firstPosition != first))
    return Status::unsupported(onnx::describe(gather) +
                               ": its rows are not those of the positions that "
                               "follow the past");
  spec_.learnedPositions = true;
  spec_.firstPosition = first;
  std::vector<std::int64_t> used(rows - first);
  std::iota(used.begin(), used.end(), first);
  spec_.parameters["positions"] = *rowsOf(*table, used);
  tableRows_ = tableRows_ ? std::min(tableRows_, rows - first) : rows - first;
  return Status::ok();
}

Status LayerReader::readEmbedding(Value stream) {
  auto scale = raise::scaled(through(stream));
  spec_.embeddingScale = takeFactor(stream);
  // The root of the width, as far as the type of the elements tells.
  const double root = std::sqrt(double(spec_.hiddenSize));
  if (scale &&
      isRounded(root, scale->number,
                cast<TensorType>(scale->other.getType()).getElementType()))
    spec_.embeddingScale = root;
  if (auto add = stream.getDefiningOp<onnx::AddOp>()) {
    // The rows of tokens are those that an input chooses.
    auto first = through(add.getA()).getDefiningOp<onnx::GatherOp>(),
         second = through(add.getB()).getDefiningOp<onnx::GatherOp>();
    if (values_.evaluate({first.getIndices()}))
      std::swap(first, second);
    INGOT_RETURN_IF_ERROR(readPositions(second));
    stream = first.getResult();
  }
  auto gather = stream.getDefiningOp<onnx::GatherOp>();
  if (!gather || gather.getAxis() != 0)
    return stop(stream, "the embedding");
  Value tokens = gather.getIndices();
  while (Operation *op = tokens.getDefiningOp()) {
    if (!isa<onnx::CastOp, onnx::ReshapeOp>(op))
      break;
    tokens = op->getOperand(0);
  }
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
  while (!isEmbedding(stream))
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
    if (isPast(input.role) && input.layer >= count)
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
  spec_.contextLength = tableRows_;
  return Status::ok();
}

Status readLayers(ModuleOp probed, OnnxFile &file,
                  const std::vector<ProbeInput> &inputs,
                  const ProbeSizes &sizes,
                  const std::function<void(const std::string &)> &explain,
                  const ModelSpec *before, ModelSpec &spec,
                  bool &usesPositions) {
  LayerReader reader(probed, file, inputs, sizes, explain, before, spec);
  Status status = reader.run();
  usesPositions |= reader.usesPositions();
  return status;
}

} // namespace ingot
