// The order of what is built: sources, weights, states, the program. Names of
// weights are the roles of ModelSpec::parameters; names of operations, which
// become names of launches, are "layer.{i}.{what}".
#include "compiler/frontend/lm/LmBuilder.h"

#include "compiler/frontend/lm/LmModelInfo.h"
#include "dialects/StoredDetailsAttr.h"
#include "dialects/lm/LmOps.h"
#include "dialects/lm/Provenance.h"
#include "runtime/support/MappedFile.h"

#include "mlir/IR/Verifier.h"

#include <filesystem>
#include <set>
#include <tuple>
#include <xxhash.h>

using namespace mlir;

namespace ingot {
namespace {

lm::ActivationKind activationOf(Activation activation) {
  switch (activation) {
  case Activation::Silu:
    return lm::ActivationKind::Silu;
  case Activation::Gelu:
    return lm::ActivationKind::Gelu;
  case Activation::GeluTanh:
    return lm::ActivationKind::GeluTanh;
  case Activation::Relu:
    return lm::ActivationKind::Relu;
  }
  llvm_unreachable("all activations are handled");
}

lm::RopeScaling scalingOf(RotaryKind kind) {
  switch (kind) {
  case RotaryKind::Dynamic:
    return lm::RopeScaling::Dynamic;
  case RotaryKind::LongRope:
    return lm::RopeScaling::Listed;
  default:
    return lm::RopeScaling::Fixed;
  }
}

// Whether two rotary embeddings turn every position alike.
bool isSameTable(const RotarySpec &a, const RotarySpec &b) {
  auto byLength = [](const RotarySpec &rotary) {
    return rotary.kind == RotaryKind::Dynamic ||
           rotary.kind == RotaryKind::LongRope;
  };
  return a.invFreq == b.invFreq && a.attentionFactor == b.attentionFactor &&
         ((!byLength(a) && !byLength(b)) ||
          (a.kind == b.kind && a.theta == b.theta && a.factor == b.factor &&
           a.originalContextLength == b.originalContextLength));
}

lm::PoolKind poolKindOf(Pooling pooling) {
  switch (pooling) {
  case Pooling::Mean:
    return lm::PoolKind::Mean;
  case Pooling::Cls:
    return lm::PoolKind::Cls;
  case Pooling::Last:
    return lm::PoolKind::Last;
  }
  llvm_unreachable("all poolings are handled");
}

// "layer.3.q_norm.7"
bool isOfOneHead(const std::string &role) {
  return role.find(".q_norm.") != std::string::npos ||
         role.find(".k_norm.") != std::string::npos;
}

class LmBuilder {
public:
  LmBuilder(MLIRContext &context, const ModelSpec &spec,
            const LmBuildOptions &options)
      : context_(&context), spec_(spec), options_(options), builder_(&context) {
  }

  FailureOr<OwningOpRef<ModuleOp>> build();

private:
  struct StateUse {
    std::string symbol;
    std::int64_t layer;
  };

  LogicalResult checkSupported();
  LogicalResult addSources();
  LogicalResult addWeights();
  lm::PartAttr partOf(const TensorSource &tensor);
  LogicalResult addExperts(std::int64_t layer, const std::string &name,
                           llvm::ArrayRef<const char *> roles);
  LogicalResult addHeadNorms(std::int64_t layer);
  void addRopeWeights();
  void addStates();
  LogicalResult addProgram();
  // What a part of the block gives, before it is added to the stream.
  Value attention(std::int64_t layer, Value input, llvm::ArrayRef<Value> ropes);
  Value feedForward(std::int64_t layer, Value input);
  Value addBlock(std::int64_t layer, Value x, llvm::ArrayRef<Value> ropes);
  Value addHead(Value x);

  InFlightDiagnostic error() { return emitError(builder_.getUnknownLoc()); }
  Location loc(const std::string &name) {
    return lm::nameLocation(context_, name);
  }
  // Of what reads the parameter `role`, which a tensor of the model holds.
  Location weightLoc(const std::string &name, const std::string &role) {
    auto found = spec_.parameters.find(role);
    return lm::importedLocation(
        context_, name,
        found == spec_.parameters.end() ? "" : found->second.name);
  }
  Location loc(std::int64_t layer, const std::string &what) {
    return loc(layerRole(layer, what));
  }
  FlatSymbolRefAttr symbol(const std::string &name) {
    return FlatSymbolRefAttr::get(context_, name);
  }
  FloatAttr f32(double value) { return builder_.getF32FloatAttr(value); }
  Type rows(std::int64_t columns) {
    return lm::activationType(context_, columns);
  }

  Value linear(std::int64_t layer, const std::string &role, Value input,
               std::int64_t columns, bool bias);
  Value norm(Location location, const std::string &role, Value input);
  Value norm(std::int64_t layer, const std::string &role, bool present,
             Value input);
  Value add(std::int64_t layer, const std::string &what, Value x, Value update);

  MLIRContext *context_;
  const ModelSpec &spec_;
  const LmBuildOptions &options_;
  OpBuilder builder_;
  std::vector<std::size_t> ropeOfLayer_;
  std::vector<const RotarySpec *> ropes_; // one for each distinct table
  std::vector<StateUse> stateOfLayer_;
};

FailureOr<OwningOpRef<ModuleOp>> LmBuilder::build() {
  if (failed(checkSupported()))
    return failure();
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder_.getUnknownLoc());
  builder_.setInsertionPointToEnd(module->getBody());
  if (failed(addSources()) || failed(addWeights()))
    return failure();
  addRopeWeights();
  addStates();
  if (failed(addProgram()))
    return failure();
  (*module)->setAttr(lm::kModelAttr, modelInfo(*context_, spec_, options_));
  if (failed(verify(*module)))
    return failure();
  return module;
}

LogicalResult LmBuilder::checkSupported() {
  if (spec_.layers.empty())
    return error() << "the model has no layers";
  std::set<RotaryKind> choices; // that depend on a sequence's length
  for (const LayerSpec &layer : spec_.layers)
    if (layer.rotary.dim > 0 && (layer.rotary.kind == RotaryKind::Dynamic ||
                                 layer.rotary.kind == RotaryKind::LongRope))
      choices.insert(layer.rotary.kind);
  if (choices.size() > 1)
    return error() << "layers with dynamic and with longrope rotary scaling "
                      "are not supported together";
  if (options_.context < 0 || options_.context > spec_.contextLength)
    return error() << "context " << options_.context
                   << " is not within the model's " << spec_.contextLength;
  return success();
}

LogicalResult LmBuilder::addSources() {
  for (auto [index, source] : llvm::enumerate(spec_.sources)) {
    Result<MappedFile> file = MappedFile::open(source.path);
    if (!file)
      return error() << file.status().message();
    if (file->bytes().size() != source.sizeBytes)
      return error() << "source \"" << source.path << "\" has "
                     << file->bytes().size() << " bytes, expected "
                     << source.sizeBytes;
    char hash[17];
    std::snprintf(hash, sizeof(hash), "%016llx",
                  options_.hashSources
                      ? static_cast<unsigned long long>(XXH3_64bits(
                            file->bytes().data(), file->bytes().size()))
                      : 0ull);
    builder_.create<lm::SourceOp>(
        loc(source.name), builder_.getStringAttr("src" + std::to_string(index)),
        builder_.getStringAttr(source.name),
        options_.hidePaths ? StringAttr() : builder_.getStringAttr(source.path),
        builder_.getI64IntegerAttr(source.sizeBytes),
        builder_.getStringAttr(hash));
  }
  return success();
}

lm::PartAttr LmBuilder::partOf(const TensorSource &tensor) {
  return lm::PartAttr::getChecked(
      [&] { return error(); }, context_,
      symbol("src" + std::to_string(tensor.fileIndex)),
      builder_.getStringAttr(tensor.name),
      static_cast<std::int64_t>(tensor.byteOffset),
      static_cast<std::int64_t>(tensor.sizeBytes), lm::storedOf(tensor.dtype),
      tensor.shape[0], tensor.shape.size() == 2 ? tensor.shape[1] : 1,
      tensor.permutationHeads, tensor.storedRows, tensor.first, tensor.run,
      tensor.stride, tensor.transposed,
      storedDetailsAttr(context_, tensor.details, [](std::uint32_t index) {
        return "src" + std::to_string(index);
      }));
}

// The matrices of all experts of a layer, one expert after another.
LogicalResult LmBuilder::addExperts(std::int64_t layer, const std::string &name,
                                    llvm::ArrayRef<const char *> roles) {
  llvm::SmallVector<lm::PartAttr> parts;
  std::int64_t allRows = 0;
  for (std::int64_t e = 0; e < spec_.layers[layer].experts; ++e)
    for (const char *role : roles) {
      const TensorSource &tensor = spec_.parameters.at(
          layerRole(layer, "expert." + std::to_string(e) + "." + role));
      lm::PartAttr part = partOf(tensor);
      if (!part)
        return failure();
      parts.push_back(part);
      allRows += tensor.shape[0];
      lm::EncodingAttr first = lm::nativeEncoding(parts.front());
      if (lm::EncodingAttr own = lm::nativeEncoding(part); own != first)
        return error() << "tensor \"" << tensor.name << "\" becomes "
                       << own.getShortName() << ", " << parts.front().getName()
                       << " " << first.getShortName()
                       << "; experts of one layer must be stored alike";
    }
  std::string role = layerRole(layer, name);
  lm::EncodingAttr encoding = lm::nativeEncoding(parts.front());
  llvm::SmallVector<Attribute> attributes(parts.begin(), parts.end());
  builder_.create<lm::WeightOp>(
      loc(role), builder_.getStringAttr(role),
      builder_.getDenseI64ArrayAttr({allRows, parts.front().getColumns()}),
      encoding, lm::LayoutAttr::get(context_, lm::Layout::R16),
      builder_.getArrayAttr(attributes), ElementsAttr(),
      lm::conversionMethod(parts, encoding));
  return success();
}

// Norms of each head's own, one head after another.
LogicalResult LmBuilder::addHeadNorms(std::int64_t layer) {
  const LayerSpec &spec = spec_.layers[layer];
  for (auto [norm, heads] :
       {std::pair("q_norm", spec.heads), std::pair("k_norm", spec.kvHeads)}) {
    std::string role = layerRole(layer, norm);
    if (!spec_.parameters.count(role + ".0"))
      continue;
    llvm::SmallVector<Attribute> parts;
    for (std::int64_t h = 0; h < heads; ++h) {
      lm::PartAttr part =
          partOf(spec_.parameters.at(role + "." + std::to_string(h)));
      if (!part)
        return failure();
      parts.push_back(part);
    }
    builder_.create<lm::WeightOp>(
        loc(role), builder_.getStringAttr(role),
        builder_.getDenseI64ArrayAttr({heads * spec.headDim}),
        lm::EncodingAttr::get(context_, lm::WeightCode::F32, 0, false),
        lm::LayoutAttr::get(context_, lm::Layout::Row),
        builder_.getArrayAttr(parts), ElementsAttr(), StringAttr());
  }
  return success();
}

LogicalResult LmBuilder::addWeights() {
  for (const auto &[role, tensor] : spec_.parameters) {
    if (role.find(".expert.") != std::string::npos || isOfOneHead(role))
      continue; // part of a weight of all
    bool matrix = tensor.shape.size() == 2;
    if (!matrix && tensor.shape.size() != 1)
      return error() << "tensor \"" << tensor.name << "\" has "
                     << tensor.shape.size() << " dimensions, expected 1 or 2";
    lm::PartAttr part = partOf(tensor);
    if (!part)
      return failure();
    lm::EncodingAttr encoding =
        matrix ? lm::nativeEncoding(part)
               : lm::EncodingAttr::get(context_, lm::WeightCode::F32, 0, false);
    builder_.create<lm::WeightOp>(
        weightLoc(role, role), builder_.getStringAttr(role),
        builder_.getDenseI64ArrayAttr(tensor.shape), encoding,
        lm::LayoutAttr::get(context_,
                            matrix ? lm::Layout::R16 : lm::Layout::Row),
        builder_.getArrayAttr({part}), ElementsAttr(),
        matrix ? lm::conversionMethod(part, encoding) : StringAttr());
  }
  for (std::int64_t layer = 0;
       layer < static_cast<std::int64_t>(spec_.layers.size()); ++layer)
    if (failed(addHeadNorms(layer)) ||
        (spec_.layers[layer].experts > 0 &&
         (failed(addExperts(layer, "experts.gate_up", {"gate", "up"})) ||
          failed(addExperts(layer, "experts.down", {"down"})))))
      return failure();
  return success();
}

// One table for each distinct list of frequencies and factor.
void LmBuilder::addRopeWeights() {
  for (const LayerSpec &layer : spec_.layers) {
    const RotarySpec &rotary = layer.rotary;
    std::size_t index = 0;
    while (rotary.dim > 0 && index < ropes_.size() &&
           !isSameTable(*ropes_[index], rotary))
      ++index;
    ropeOfLayer_.push_back(index);
    if (rotary.dim == 0 || index < ropes_.size())
      continue;
    ropes_.push_back(&rotary);
    std::int64_t count = rotary.invFreq.size();
    std::string name = "rope." + std::to_string(index);
    auto value = DenseElementsAttr::get(
        RankedTensorType::get({count}, builder_.getF32Type()),
        llvm::ArrayRef(rotary.invFreq));
    builder_.create<lm::WeightOp>(
        loc(name), builder_.getStringAttr(name),
        builder_.getDenseI64ArrayAttr({count}),
        lm::EncodingAttr::get(context_, lm::WeightCode::F32, 0, false),
        lm::LayoutAttr::get(context_, lm::Layout::Row), ArrayAttr(), value,
        StringAttr());
  }
}

// Layers of one geometry share a state and its block table.
void LmBuilder::addStates() {
  using Geometry = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
  std::vector<std::pair<Geometry, std::int64_t>> groups;
  for (const LayerSpec &layer : spec_.layers) {
    Geometry geometry{layer.kvHeads, layer.headDim, layer.slidingWindow};
    auto group = llvm::find_if(
        groups, [&](const auto &entry) { return entry.first == geometry; });
    if (group == groups.end())
      group = groups.insert(groups.end(), {geometry, 0});
    stateOfLayer_.push_back(
        {"kv" + std::to_string(group - groups.begin()), group->second++});
  }
  Type dtype = builder_.getF16Type();
  if (options_.kvDtype == KvDtype::F32)
    dtype = builder_.getF32Type();
  else if (options_.kvDtype == KvDtype::I8)
    dtype = builder_.getI8Type();
  for (auto [index, group] : llvm::enumerate(groups)) {
    auto [kvHeads, headDim, window] = group.first;
    std::string name = "kv" + std::to_string(index);
    builder_.create<lm::StateOp>(loc(name), name, group.second, kvHeads,
                                 headDim, dtype, window);
  }
}

LogicalResult LmBuilder::addProgram() {
  Type tokenRow =
      RankedTensorType::get({ShapedType::kDynamic}, builder_.getI32Type());
  std::int64_t resultColumns =
      spec_.embedding ? spec_.hiddenSize : spec_.vocabSize;
  auto program = builder_.create<lm::ProgramOp>(
      loc("main"), builder_.getStringAttr("main"),
      TypeAttr::get(builder_.getFunctionType({tokenRow, tokenRow},
                                             {rows(resultColumns)})),
      ArrayAttr(), ArrayAttr());
  Block *block =
      builder_.createBlock(&program.getBody(), {}, {tokenRow, tokenRow},
                           {loc("tokens"), loc("positions")});
  builder_.setInsertionPointToEnd(block);

  llvm::SmallVector<Value> ropes;
  for (auto [index, rotary] : llvm::enumerate(ropes_)) {
    std::string name = "rope." + std::to_string(index);
    ropes.push_back(builder_.create<lm::RopeTableOp>(
        loc(name), rows(rotary->dim), program.getPositions(), symbol(name),
        f32(rotary->attentionFactor),
        lm::RopeScalingAttr::get(context_, scalingOf(rotary->kind)),
        builder_.getI64IntegerAttr(scalingOf(rotary->kind) ==
                                           lm::RopeScaling::Fixed
                                       ? 0
                                       : rotary->originalContextLength),
        builder_.getF64FloatAttr(
            rotary->kind == RotaryKind::Dynamic ? rotary->theta : 0.0),
        builder_.getF64FloatAttr(
            rotary->kind == RotaryKind::Dynamic ? rotary->factor : 0.0)));
  }
  Value x = builder_.create<lm::EmbedOp>(
      weightLoc("embed", "embed"), rows(spec_.hiddenSize), program.getTokens(),
      symbol("embed"), f32(spec_.embeddingScale),
      spec_.tokenTypes ? symbol("token_types") : FlatSymbolRefAttr());
  if (spec_.learnedPositions) {
    Value positions = builder_.create<lm::EmbedOp>(
        weightLoc("positions", "positions"), x.getType(),
        program.getPositions(), symbol("positions"), f32(1.0),
        FlatSymbolRefAttr());
    x = builder_.create<lm::AddOp>(loc("embed_positions"), x.getType(), x,
                                   positions, f32(1.0));
  }
  if (spec_.embeddingNorm)
    x = norm(loc("embed_norm"), "embed_norm", x);
  for (std::int64_t layer = 0;
       layer < static_cast<std::int64_t>(spec_.layers.size()); ++layer) {
    x = addBlock(layer, x, ropes);
  }
  builder_.create<lm::ReturnOp>(loc("return"), addHead(x));
  return success();
}

// What the rows of the last layer become: logits, or vectors of texts.
Value LmBuilder::addHead(Value x) {
  if (spec_.embedding)
    return builder_.create<lm::PoolOp>(
        loc("pool"), x.getType(),
        lm::PoolKindAttr::get(context_, poolKindOf(spec_.embedding->pooling)),
        x, spec_.embedding->normalized ? builder_.getUnitAttr() : UnitAttr());
  std::string head = spec_.tiedHead ? "embed" : "lm_head";
  x = builder_.create<lm::SelectRowsOp>(loc("select_rows"), x.getType(), x);
  x = norm(weightLoc("final_norm", "final_norm"), "final_norm", x);
  x = builder_.create<lm::LinearOp>(weightLoc("lm_head", head),
                                    rows(spec_.vocabSize), x, symbol(head),
                                    FlatSymbolRefAttr(), Value());
  if (spec_.logitScale != 1.0 || spec_.logitSoftcap != 0.0)
    x = builder_.create<lm::CapOp>(loc("logits"), x.getType(), x,
                                   f32(spec_.logitScale),
                                   f32(spec_.logitSoftcap));
  return x;
}

Value LmBuilder::linear(std::int64_t layer, const std::string &role,
                        Value input, std::int64_t columns, bool bias) {
  std::string name = layerRole(layer, role);
  return builder_.create<lm::LinearOp>(
      weightLoc(name, name), rows(columns), input, symbol(name),
      bias ? symbol(name + ".bias") : FlatSymbolRefAttr(), Value());
}

Value LmBuilder::norm(Location location, const std::string &role, Value input) {
  if (spec_.norm == NormKind::Layer)
    return builder_.create<lm::LayerNormOp>(
        location, input.getType(), input, symbol(role),
        spec_.normBias ? symbol(role + ".bias") : FlatSymbolRefAttr(),
        f32(spec_.normEps));
  return builder_.create<lm::RmsNormOp>(location, input.getType(), input,
                                        symbol(role), f32(spec_.normEps),
                                        f32(spec_.normOffset));
}

Value LmBuilder::norm(std::int64_t layer, const std::string &role, bool present,
                      Value input) {
  std::string name = layerRole(layer, role);
  return present ? norm(weightLoc(name, name), name, input) : input;
}

Value LmBuilder::add(std::int64_t layer, const std::string &what, Value x,
                     Value update) {
  return builder_.create<lm::AddOp>(loc(layer, what), x.getType(), x, update,
                                    f32(spec_.layers[layer].residualScale));
}

Value LmBuilder::addBlock(std::int64_t layer, Value x,
                          llvm::ArrayRef<Value> ropes) {
  const LayerSpec &spec = spec_.layers[layer];
  Value input = norm(layer, "attn_norm", spec.attnNorm, x);
  Value attended = attention(layer, input, ropes);
  attended = norm(layer, "attn_post_norm", spec.attnPostNorm, attended);
  Value sum = add(layer, "attn_residual", x, attended);
  sum = norm(layer, "attn_sum_norm", spec.attnSumNorm, sum);
  // In a parallel block the feed-forward reads what the attention read.
  Value from =
      spec.parallel && !spec.ffnNorm
          ? input
          : norm(layer, "ffn_norm", spec.ffnNorm, spec.parallel ? x : sum);
  Value fed = feedForward(layer, from);
  fed = norm(layer, "ffn_post_norm", spec.ffnPostNorm, fed);
  return norm(layer, "ffn_sum_norm", spec.ffnSumNorm,
              add(layer, "ffn_residual", sum, fed));
}

Value LmBuilder::attention(std::int64_t layer, Value input,
                           llvm::ArrayRef<Value> ropes) {
  const LayerSpec &spec = spec_.layers[layer];
  Value q = linear(layer, "q", input, spec.heads * spec.headDim, spec.biases.q);
  Value k =
      linear(layer, "k", input, spec.kvHeads * spec.headDim, spec.biases.k);
  Value v =
      linear(layer, "v", input, spec.kvHeads * spec.headDim, spec.biases.v);

  auto prepare = [&](Value value, const std::string &role,
                     std::int64_t heads) -> Value {
    if (spec.qkNorm != QkNorm::None) {
      bool ofRow = spec.qkNorm == QkNorm::Row;
      bool layerNorm = spec_.norm == NormKind::Layer;
      std::string name = layerRole(layer, role + "_norm");
      value = builder_.create<lm::HeadNormOp>(
          weightLoc(name, name), value.getType(), value,
          symbol(layerRole(layer, role + "_norm")),
          builder_.getI64IntegerAttr(ofRow ? 1 : heads),
          builder_.getI64IntegerAttr(ofRow ? heads * spec.headDim
                                           : spec.headDim),
          f32(spec_.normEps),
          lm::NormKindAttr::get(context_, layerNorm ? lm::NormKind::Layer
                                                    : lm::NormKind::Rms),
          f32(layerNorm ? 0.0 : spec_.normOffset));
    }
    if (spec.rotary.dim == 0)
      return value;
    return builder_
        .create<lm::RotaryOp>(loc(layer, role + "_rotary"), value,
                              ropes[ropeOfLayer_[layer]], heads, spec.headDim,
                              spec.rotary.dim,
                              spec.rotary.layout == RotaryLayout::Interleaved)
        .getResult();
  };
  q = prepare(q, "q", spec.heads);
  k = prepare(k, "k", spec.kvHeads);

  const StateUse &state = stateOfLayer_[layer];
  Value attended = builder_.create<lm::AttentionOp>(
      loc(layer, "attention"), q, k, v, symbol(state.symbol),
      builder_.getI64IntegerAttr(state.layer),
      builder_.getI64IntegerAttr(spec.heads),
      builder_.getI64IntegerAttr(spec.kvHeads),
      builder_.getI64IntegerAttr(spec.headDim), f32(spec.softmaxScale),
      builder_.getI64IntegerAttr(spec.slidingWindow), f32(spec.softCap),
      spec.bidirectional ? builder_.getUnitAttr() : UnitAttr(),
      spec.slopes.empty() ? DenseF32ArrayAttr()
                          : builder_.getDenseF32ArrayAttr(spec.slopes),
      spec.roundedSlopes ? builder_.getUnitAttr() : UnitAttr());
  return linear(layer, "o", attended, spec_.hiddenSize, spec.biases.o);
}

Value LmBuilder::feedForward(std::int64_t layer, Value input) {
  const LayerSpec &spec = spec_.layers[layer];
  auto kind =
      lm::ActivationKindAttr::get(context_, activationOf(spec.activation));
  if (spec.experts > 0) {
    Value logits = linear(layer, "router", input, spec.experts, false);
    Value routes = builder_.create<lm::RouteOp>(
        loc(layer, "route"), rows(2 * spec.expertsPerToken), logits,
        builder_.getI64IntegerAttr(spec.expertsPerToken),
        spec.expertsNormalized ? builder_.getUnitAttr() : UnitAttr());
    Value slots = builder_.create<lm::DispatchOp>(
        loc(layer, "dispatch"), input.getType(), input, routes);
    Value both = builder_.create<lm::ExpertLinearOp>(
        loc(layer, "experts.gate_up"), rows(2 * spec.ffnSize), slots, routes,
        symbol(layerRole(layer, "experts.gate_up")));
    Value gated = builder_.create<lm::GateOp>(loc(layer, "activation"),
                                              rows(spec.ffnSize), both, kind);
    Value fed = builder_.create<lm::ExpertLinearOp>(
        loc(layer, "experts.down"), rows(spec_.hiddenSize), gated, routes,
        symbol(layerRole(layer, "experts.down")));
    return builder_.create<lm::CombineOp>(loc(layer, "combine"),
                                          rows(spec_.hiddenSize), fed, routes);
  }
  Value hidden;
  if (spec.gated) {
    Value gate = linear(layer, "gate", input, spec.ffnSize, spec.biases.gate);
    Value up = linear(layer, "up", input, spec.ffnSize, spec.biases.up);
    Value both = builder_.create<lm::ConcatOp>(
        loc(layer, "gate_up"), rows(2 * spec.ffnSize), ValueRange{gate, up});
    hidden = builder_.create<lm::GateOp>(loc(layer, "activation"),
                                         rows(spec.ffnSize), both, kind);
  } else {
    Value up = linear(layer, "up", input, spec.ffnSize, spec.biases.up);
    hidden = builder_.create<lm::ActivateOp>(loc(layer, "activation"),
                                             rows(spec.ffnSize), up, kind);
  }
  return linear(layer, "down", hidden, spec_.hiddenSize, spec.biases.down);
}

} // namespace

FailureOr<OwningOpRef<ModuleOp>> buildLm(MLIRContext &context,
                                         const ModelSpec &spec,
                                         const LmBuildOptions &options) {
  context.loadDialect<lm::LmDialect>();
  return LmBuilder(context, spec, options).build();
}

} // namespace ingot
