#include "compiler/package/PlanTranslation.h"

#include "dialects/lm/LmDialect.h"
#include "dialects/lm/Provenance.h"
#include "runtime/plan/KernelAbi.h"
#include "runtime/plan/plan_generated.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ingot::package {
namespace {

// Position of each symbol of a kind among those of its kind.
using Indices = llvm::StringMap<int32_t>;

class Translation {
public:
  Translation(ModuleOp module, const std::vector<TargetCode> &code,
              const std::vector<InputFile> &inputs)
      : module(module), code(code), inputs(inputs) {}

  FailureOr<std::vector<uint8_t>> run() {
    fbs::PlanT plan;
    plan.abi_version = abi::kKernelAbiVersion;
    if (failed(addModel(plan)) || failed(addProvenance(plan)) ||
        failed(addStates(plan)) || failed(addWeights(plan)) ||
        failed(addTargets(plan)))
      return failure();
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(fbs::Plan::Pack(builder, &plan), fbs::PlanIdentifier());
    return std::vector<uint8_t>(builder.GetBufferPointer(),
                                builder.GetBufferPointer() + builder.GetSize());
  }

private:
  //===--------------------------------------------------------------------===//
  // plan.model and plan.provenance
  //===--------------------------------------------------------------------===//

  static std::string text(DictionaryAttr dictionary, StringRef key) {
    return dictionary.getAs<StringAttr>(key).str();
  }
  // Numbers of the schema have 32 bits, those of the dictionary 64.
  int64_t integer(DictionaryAttr dictionary, StringRef key) {
    int64_t value = dictionary.getAs<IntegerAttr>(key).getInt();
    if (value < INT32_MIN || value > INT32_MAX)
      tooLarge = key;
    return value;
  }
  static uint64_t wide(DictionaryAttr dictionary, StringRef key) {
    return dictionary.getAs<IntegerAttr>(key).getInt();
  }
  static double real(DictionaryAttr dictionary, StringRef key) {
    return dictionary.getAs<FloatAttr>(key).getValueAsDouble();
  }
  static bool flag(DictionaryAttr dictionary, StringRef key) {
    return dictionary.getAs<BoolAttr>(key).getValue();
  }

  LogicalResult addModel(fbs::PlanT &plan) {
    auto info = module->getAttrOfType<DictionaryAttr>(
        plan::PlanDialect::getModelAttrName());
    if (!info)
      return module.emitError() << "expected the attribute plan.model";
    auto model = std::make_unique<fbs::ModelInfoT>();
    model->family = text(info, "family");
    model->name = text(info, "name");
    model->architecture = text(info, "architecture");
    model->vocab = integer(info, "vocab");
    model->hidden = integer(info, "hidden");
    model->context = integer(info, "context");
    model->tied_head = flag(info, "tied_head");
    model->parameters = wide(info, "parameters");
    model->source_bytes = wide(info, "source_bytes");
    if (info.contains("bos"))
      model->bos = integer(info, "bos");
    for (int64_t id : info.getAs<DenseI64ArrayAttr>("eos").asArrayRef()) {
      if (id < 0 || id > INT32_MAX)
        tooLarge = "eos";
      model->eos.push_back(id);
    }
    auto sampling = info.getAs<DictionaryAttr>("sampling");
    if (sampling.contains("temperature"))
      model->default_temperature = real(sampling, "temperature");
    if (sampling.contains("top_p"))
      model->default_top_p = real(sampling, "top_p");
    if (sampling.contains("top_k"))
      model->default_top_k = integer(sampling, "top_k");
    if (sampling.contains("min_p"))
      model->default_min_p = real(sampling, "min_p");
    if (sampling.contains("repetition_penalty"))
      model->default_repetition_penalty = real(sampling, "repetition_penalty");
    if (auto embedding = info.getAs<DictionaryAttr>("embedding")) {
      model->embedding = std::make_unique<fbs::EmbeddingInfoT>();
      model->embedding->pooling = poolKind(text(embedding, "pooling"));
      model->embedding->normalized = flag(embedding, "normalized");
    }
    for (auto layer :
         info.getAs<ArrayAttr>("layers").getAsRange<DictionaryAttr>())
      model->layers.push_back(layerInfo(layer));
    addEncodings(*model);
    if (!tooLarge.empty())
      return module.emitError()
             << "plan.model: " << tooLarge << " is out of range";
    plan.model = std::move(model);
    return success();
  }

  // The verifiers know no other name.
  static fbs::PoolKind poolKind(StringRef name) {
    return name == "cls"    ? fbs::PoolKind::cls
           : name == "last" ? fbs::PoolKind::last
                            : fbs::PoolKind::mean;
  }

  std::unique_ptr<fbs::LayerInfoT> layerInfo(DictionaryAttr info) {
    auto layer = std::make_unique<fbs::LayerInfoT>();
    layer->index = integer(info, "index");
    layer->heads = integer(info, "heads");
    layer->kv_heads = integer(info, "kv_heads");
    layer->head_dim = integer(info, "head_dim");
    layer->rotary_dim = integer(info, "rotary_dim");
    layer->rope_kind = text(info, "rope_kind");
    layer->rope_theta = real(info, "rope_theta");
    layer->rope_attention_factor = real(info, "rope_attention_factor");
    layer->window = integer(info, "window");
    layer->softmax_scale = real(info, "softmax_scale");
    layer->soft_cap = real(info, "soft_cap");
    layer->ffn = integer(info, "ffn");
    layer->activation = text(info, "activation");
    layer->norm_eps = real(info, "norm_eps");
    layer->qk_norm = flag(info, "qk_norm");
    layer->qkv_bias = flag(info, "qkv_bias");
    layer->output_bias = flag(info, "output_bias");
    return layer;
  }

  // "qkv=i8-g128" from the weight @layer.3.qkv, for people.
  void addEncodings(fbs::ModelInfoT &model) {
    for (auto weight : module.getOps<plan::WeightOp>()) {
      StringRef name = weight.getSymName();
      std::optional<int32_t> layer = plan::locationLayer(name);
      if (!layer || *layer < 0 || size_t(*layer) >= model.layers.size() ||
          weight.getLayout() == plan::Layout::Row)
        continue;
      // One of two packings of the same numbers says nothing new.
      if (StringRef twin = name;
          twin.consume_back(".mma16") && module.lookupSymbol(twin))
        continue;
      StringRef role = name.drop_front(StringRef("layer.").size());
      role = role.drop_front(role.find('.') + 1);
      model.layers[*layer]->encodings.push_back(
          role.str() + "=" + weight.getEncoding().getShortName());
    }
  }

  LogicalResult addProvenance(fbs::PlanT &plan) {
    auto info = module->getAttrOfType<DictionaryAttr>(
        plan::PlanDialect::getProvenanceAttrName());
    if (!info)
      return module.emitError() << "expected the attribute plan.provenance";
    auto provenance = std::make_unique<fbs::ProvenanceT>();
    provenance->compiler = text(info, "compiler");
    provenance->pipeline = text(info, "pipeline");
    for (const InputFile &input : inputs) {
      auto file = std::make_unique<fbs::InputFileT>();
      file->path = input.name;
      file->size = input.sizeBytes;
      file->xxh3 = input.xxh3;
      provenance->inputs.push_back(std::move(file));
    }
    plan.provenance = std::move(provenance);
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Bytes and state
  //===--------------------------------------------------------------------===//

  LogicalResult addStates(fbs::PlanT &plan) {
    for (auto op : module.getOps<plan::StateOp>()) {
      auto state = std::make_unique<fbs::StateGroupT>();
      state->name = op.getSymName().str();
      state->layers = op.getLayers();
      state->kv_heads = op.getKvHeads();
      state->head_dim = op.getHeadDim();
      state->dtype = op.getDtype() == plan::StateDType::F16   ? fbs::DType::f16
                     : op.getDtype() == plan::StateDType::F32 ? fbs::DType::f32
                                                              : fbs::DType::i8;
      state->block_tokens = abi::kBlockTokens;
      state->window = op.getWindow();
      state->layer_block_bytes = op.getLayerBlockBytes();
      state->value_offset = op.getValueOffset();
      stateIndices[op.getSymName()] = plan.states.size();
      plan.states.push_back(std::move(state));
    }
    return success();
  }

  LogicalResult addWeights(fbs::PlanT &plan) {
    for (auto op : module.getOps<plan::WeightOp>()) {
      if (!op.getPlacement())
        return op.emitOpError()
               << "has no placement; assign-weights gives it one";
      auto weight = std::make_unique<fbs::WeightT>();
      weight->name = op.getSymName().str();
      weight->rows = op.getRows();
      weight->columns = op.getColumns();
      weight->encoding = std::make_unique<fbs::EncodingT>();
      weight->encoding->code =
          static_cast<fbs::WeightCode>(op.getEncoding().getCode());
      weight->encoding->group = op.getEncoding().getGroup();
      weight->encoding->minimum = op.getEncoding().getMinimum();
      weight->layout = plan::stringifyLayout(op.getLayout()).str();
      weight->offset = op.getPlacement()->getOffset();
      weight->size = op.getPlacement()->getSize();
      weight->scales_offset = op.getPlacement()->getScales();
      weight->mins_offset = op.getPlacement()->getMins();
      if (op.getParts())
        for (auto part : op.getParts()->getAsRange<plan::PartAttr>())
          weight->source +=
              (weight->source.empty() ? "" : "+") + part.getName().str();
      weightIndices[op.getSymName()] = plan.weights.size();
      plan.weights.push_back(std::move(weight));
    }
    plan.weights_bytes = weightsBytes(module);
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Targets
  //===--------------------------------------------------------------------===//

  LogicalResult addTargets(fbs::PlanT &plan) {
    size_t index = 0;
    for (auto op : module.getOps<plan::TargetOp>()) {
      if (index >= code.size())
        return op.emitOpError() << "has no code";
      if (failed(addTarget(plan, op, code[index++])))
        return failure();
    }
    if (plan.targets.empty())
      return module.emitError() << "expected a plan.target";
    return success();
  }

  LogicalResult addTarget(fbs::PlanT &plan, plan::TargetOp op,
                          const TargetCode &targetCode) {
    if (!op.getTokenArenaBytes())
      return op.emitOpError() << "has no arenas; assign-buffers gives it two";
    auto target = std::make_unique<fbs::TargetT>();
    target->name = op.getSymName().str();
    target->weight_layout = op.getWeightLayout().str();
    target->token_arena_bytes = *op.getTokenArenaBytes();
    target->logit_row_arena_bytes = *op.getLogitRowArenaBytes();
    target->slots = op.getSlots();
    if (failed(addLevels(*target, op, targetCode)) ||
        failed(addKernels(*target, op, targetCode)))
      return failure();
    bufferIndices.clear();
    for (auto buffer : op.getBody().getOps<plan::BufferOp>())
      addBuffer(*target, buffer);
    target->logits = bufferIndices.lookup(op.getLogits());
    for (auto segment : op.getBody().getOps<plan::SegmentOp>()) {
      std::unique_ptr<fbs::ProgramSegmentT> made = translateSegment(segment);
      if (!made)
        return failure();
      if (segment.isChain())
        target->segments.push_back(std::move(made));
      else
        addToExit(*target, segment, std::move(made));
    }
    plan.targets.push_back(std::move(target));
    return success();
  }

  LogicalResult addLevels(fbs::TargetT &target, plan::TargetOp op,
                          const TargetCode &targetCode) {
    size_t numLevels =
        op.isCuda() ? targetCode.cudaLevels.size() : targetCode.levels.size();
    if (numLevels != op.getLevels().size() ||
        targetCode.codeOffsets.size() != op.getLevels().size())
      return op.emitOpError() << "has " << op.getLevels().size()
                              << " levels, but code for " << numLevels;
    if (op.isCuda()) {
      for (auto [compiled, offset] :
           llvm::zip(targetCode.cudaLevels, targetCode.codeOffsets)) {
        auto level = std::make_unique<fbs::LevelT>();
        level->name = compiled.name;
        level->driver_version = compiled.driverVersion;
        level->code_offset = offset;
        level->code_size = compiled.bytes.size();
        target.levels.push_back(std::move(level));
      }
      return success();
    }
    for (auto [compiled, offset] :
         llvm::zip(targetCode.levels, targetCode.codeOffsets)) {
      auto level = std::make_unique<fbs::LevelT>();
      level->name = compiled.name;
      level->features = compiled.features;
      level->code_offset = offset;
      level->code_size = compiled.elf.size();
      level->map_offset = compiled.mapOffset;
      level->map_size = compiled.mapSize;
      level->map_vaddr = compiled.mapVaddr;
      level->eh_frame_offset = compiled.ehFrameOffset;
      level->eh_frame_size = compiled.ehFrameSize;
      target.levels.push_back(std::move(level));
    }
    return success();
  }

  LogicalResult addKernels(fbs::TargetT &target, plan::TargetOp op,
                           const TargetCode &targetCode) {
    kernelIndices.clear();
    for (auto kernelOp : op.getBody().getOps<plan::KernelOp>()) {
      size_t index = target.kernels.size();
      auto kernel = std::make_unique<fbs::KernelT>();
      kernel->name = kernelOp.getSymName().str();
      kernel->op = kernelOp.getOp().str();
      kernel->scratch_bytes = kernelOp.getScratch();
      if (std::optional<plan::GeometryAttr> geometry = kernelOp.getGeometry()) {
        kernel->block_threads = geometry->getThreads();
        kernel->shared_bytes = geometry->getShared();
        kernel->tile_rows = geometry->getRows();
        kernel->tile_tokens = geometry->getTokens();
        if (failed(addImages(*kernel, kernelOp, index, targetCode)))
          return failure();
      }
      for (auto [number, level] : llvm::enumerate(targetCode.levels)) {
        if (index >= level.kernels.size() ||
            level.kernels[index].name != kernel->name)
          return kernelOp.emitOpError()
                 << "has no code at level " << level.name;
        auto symbol = std::make_unique<fbs::KernelSymbolT>();
        symbol->level = number;
        symbol->offset = level.kernels[index].offset;
        symbol->size = level.kernels[index].size;
        kernel->symbols.push_back(std::move(symbol));
      }
      kernelIndices[kernelOp.getSymName()] = index;
      target.kernels.push_back(std::move(kernel));
    }
    return success();
  }

  // The images of a CUDA kernel, of which every level has one of the same text.
  LogicalResult addImages(fbs::KernelT &kernel, plan::KernelOp op, size_t index,
                          const TargetCode &targetCode) {
    for (auto [number, level] : llvm::enumerate(targetCode.cudaLevels)) {
      if (index >= level.kernels.size() ||
          level.kernels[index].name != kernel.name)
        return op.emitOpError() << "has no code at level " << level.name;
      const CudaKernelImage &image = level.kernels[index];
      if (number != 0 && image.sourceHash != kernel.source_hash)
        return op.emitOpError()
               << "was compiled of another text at level " << level.name;
      kernel.source_hash = image.sourceHash;
      auto symbol = std::make_unique<fbs::KernelSymbolT>();
      symbol->level = number;
      symbol->offset = image.offset;
      symbol->size = image.size;
      symbol->registers = image.registers;
      symbol->spill_bytes = image.spillBytes;
      symbol->static_shared_bytes = image.staticSharedBytes;
      kernel.symbols.push_back(std::move(symbol));
    }
    return success();
  }

  void addBuffer(fbs::TargetT &target, plan::BufferOp op) {
    auto buffer = std::make_unique<fbs::BufferT>();
    buffer->name = op.getSymName().str();
    buffer->domain = static_cast<fbs::Domain>(op.getDomain());
    buffer->row_bytes = op.getRowBytes();
    buffer->offset = *op.getOffset(); // the verifier's target_c4
    buffer->columns = op.getColumns();
    if (auto type = dyn_cast<plan::QuantizedRowsType>(op.getType())) {
      buffer->dtype = type.getBits() == 16 ? fbs::DType::i16 : fbs::DType::i8;
      buffer->group = type.getGroup();
      buffer->scales_offset = type.getScalesOffset();
      buffer->sums_offset = type.getSumsOffset();
    } else if (auto type = dyn_cast<plan::HalfRowsType>(op.getType())) {
      buffer->dtype = fbs::DType::f16;
      buffer->scales_offset = type.getScaleOffset();
      buffer->sums_offset = type.getRestOffset();
    } else {
      buffer->dtype = fbs::DType::f32;
    }
    bufferIndices[op.getSymName()] = target.buffers.size();
    target.buffers.push_back(std::move(buffer));
  }

  // The verifier's segment_c3 to c5: a head stands behind its segment, a fill
  // behind its head.
  static void addToExit(fbs::TargetT &target, plan::SegmentOp op,
                        std::unique_ptr<fbs::ProgramSegmentT> segment) {
    if (op.getFillOf()) {
      target.exits.back()->fill = std::move(segment);
      return;
    }
    auto exit = std::make_unique<fbs::ExitT>();
    exit->name = op.getHeadOf()->str();
    exit->layers = *op.getLayers();
    exit->after = target.segments.size();
    if (std::optional<ArrayRef<float>> confidence = op.getConfidence())
      exit->confidence.assign(confidence->begin(), confidence->end());
    exit->head = std::move(segment);
    target.exits.push_back(std::move(exit));
  }

  // Null after an error.
  std::unique_ptr<fbs::ProgramSegmentT> translateSegment(plan::SegmentOp op) {
    auto segment = std::make_unique<fbs::ProgramSegmentT>();
    segment->name = op.getSymName().str();
    segment->input = buffer(op.getInputAttr());
    segment->output = buffer(op.getOutputAttr());
    for (Operation &inner : op.getBody().front()) {
      auto launchOp = cast<plan::LaunchOpInterface>(inner);
      auto launch = std::make_unique<fbs::LaunchT>();
      launch->name = lm::locationName(inner.getLoc()).str();
      if (launch->name.empty()) {
        inner.emitOpError()
            << "has no name in its location; print modules with debug info "
               "(--mlir-print-debuginfo)";
        return nullptr;
      }
      launch->layer = plan::locationLayer(launch->name).value_or(-1);
      for (lm::Origin &from : lm::originsOf(inner.getLoc())) {
        auto origin = std::make_unique<fbs::OriginT>();
        origin->name = std::move(from.name);
        origin->imported = std::move(from.imported);
        origin->first = from.first;
        origin->columns = from.columns;
        launch->origins.push_back(std::move(origin));
      }
      for (auto variant :
           launchOp.getVariants().getAsRange<plan::VariantAttr>()) {
        auto entry = std::make_unique<fbs::VariantT>();
        entry->first = variant.getFirst();
        entry->last = variant.getLast();
        entry->kernel = kernelIndices.lookup(variant.getKernel().getValue());
        launch->variants.push_back(std::move(entry));
      }
      llvm::TypeSwitch<Operation *>(&inner)
          .Case<plan::EmbedOp, plan::RopeTableOp, plan::RmsNormOp,
                plan::QuantizeOp, plan::LinearOp, plan::GatedOp,
                plan::RopeCacheWriteOp, plan::AttentionOp, plan::GatherRowsOp,
                plan::LayerNormOp, plan::ActivateOp, plan::AddOp, plan::CapOp,
                plan::RouteOp, plan::OrderSlotsOp, plan::DispatchOp,
                plan::ExpertLinearOp, plan::CombineOp, plan::PoolOp>(
              [&](auto typed) { launch->params.Set(params(typed)); });
      segment->launches.push_back(std::move(launch));
    }
    return segment;
  }

  //===--------------------------------------------------------------------===//
  // Launches, one to one with the tables of plan.fbs
  //===--------------------------------------------------------------------===//

  static int32_t index(const Indices &indices, FlatSymbolRefAttr name) {
    return name ? indices.lookup(name.getValue()) : -1;
  }
  int32_t buffer(FlatSymbolRefAttr name) { return index(bufferIndices, name); }
  int32_t weight(FlatSymbolRefAttr name) { return index(weightIndices, name); }
  int32_t state(FlatSymbolRefAttr name) { return index(stateIndices, name); }

  fbs::EmbedT params(plan::EmbedOp op) {
    fbs::EmbedT params;
    params.table = weight(op.getTableAttr());
    params.output = buffer(op.getOutputAttr());
    params.scale = op.getScale().convertToFloat();
    params.by_position = op.getByPosition();
    params.bias = weight(op.getBiasAttr());
    return params;
  }

  fbs::RopeTableT params(plan::RopeTableOp op) {
    fbs::RopeTableT params;
    params.inv_freq = weight(op.getInvFreqAttr());
    params.output = buffer(op.getOutputAttr());
    params.rotary_dim = op.getRotaryDim();
    params.attention_factor = op.getAttentionFactor().convertToFloat();
    params.scaling = op.getScaling() == "dynamic"  ? fbs::RopeScaling::dynamic
                     : op.getScaling() == "listed" ? fbs::RopeScaling::listed
                                                   : fbs::RopeScaling::fixed;
    params.original = op.getOriginal();
    params.theta = op.getTheta().convertToDouble();
    params.factor = op.getFactor().convertToDouble();
    return params;
  }

  fbs::LayerNormT params(plan::LayerNormOp op) {
    fbs::LayerNormT params;
    params.input = buffer(op.getInputAttr());
    params.weight = weight(op.getWeightAttr());
    params.bias = weight(op.getBiasAttr());
    params.output = buffer(op.getOutputAttr());
    params.quantized = buffer(op.getQuantizedAttr());
    params.width = op.getWidth();
    params.eps = op.getEps().convertToFloat();
    params.domain = static_cast<fbs::Domain>(op.getDomain());
    return params;
  }

  fbs::ActivateT params(plan::ActivateOp op) {
    fbs::ActivateT params;
    params.input = buffer(op.getInputAttr());
    params.output = buffer(op.getOutputAttr());
    params.quantized = buffer(op.getQuantizedAttr());
    params.width = op.getWidth();
    params.activation = op.getActivation().str();
    return params;
  }

  fbs::RouteT params(plan::RouteOp op) {
    fbs::RouteT params;
    params.logits = buffer(op.getLogitsAttr());
    params.routes = buffer(op.getRoutesAttr());
    params.experts = op.getExperts();
    params.top_k = op.getTopK();
    params.normalized = op.getNormalized();
    return params;
  }

  fbs::OrderSlotsT params(plan::OrderSlotsOp op) {
    fbs::OrderSlotsT params;
    params.routes = buffer(op.getRoutesAttr());
    params.order = buffer(op.getOrderAttr());
    params.experts = op.getExperts();
    params.top_k = op.getTopK();
    return params;
  }

  fbs::DispatchT params(plan::DispatchOp op) {
    fbs::DispatchT params;
    params.input = buffer(op.getInputAttr());
    params.order = buffer(op.getOrderAttr());
    params.output = buffer(op.getOutputAttr());
    params.width = op.getWidth();
    params.experts = op.getExperts();
    params.top_k = op.getTopK();
    return params;
  }

  fbs::ExpertLinearT params(plan::ExpertLinearOp op) {
    fbs::ExpertLinearT params;
    params.input = buffer(op.getInputAttr());
    params.order = buffer(op.getOrderAttr());
    params.weight = weight(op.getWeightAttr());
    params.output = buffer(op.getOutputAttr());
    params.k = op.getK();
    params.n = op.getN();
    params.experts = op.getExperts();
    params.top_k = op.getTopK();
    return params;
  }

  fbs::CombineT params(plan::CombineOp op) {
    fbs::CombineT params;
    params.input = buffer(op.getInputAttr());
    params.order = buffer(op.getOrderAttr());
    params.routes = buffer(op.getRoutesAttr());
    params.output = buffer(op.getOutputAttr());
    params.width = op.getWidth();
    params.experts = op.getExperts();
    params.top_k = op.getTopK();
    return params;
  }

  fbs::AddT params(plan::AddOp op) {
    fbs::AddT params;
    params.residual = buffer(op.getResidualAttr());
    params.update = buffer(op.getUpdateAttr());
    params.output = buffer(op.getOutputAttr());
    params.width = op.getWidth();
    params.scale = op.getScale().convertToFloat();
    return params;
  }

  fbs::CapT params(plan::CapOp op) {
    fbs::CapT params;
    params.input = buffer(op.getInputAttr());
    params.output = buffer(op.getOutputAttr());
    params.width = op.getWidth();
    params.scale = op.getScale().convertToFloat();
    params.soft_cap = op.getSoftCap().convertToFloat();
    params.domain = static_cast<fbs::Domain>(op.getDomain());
    return params;
  }

  fbs::RmsNormT params(plan::RmsNormOp op) {
    fbs::RmsNormT params;
    params.input = buffer(op.getInputAttr());
    params.weight = weight(op.getWeightAttr());
    params.output = buffer(op.getOutputAttr());
    params.quantized = buffer(op.getQuantizedAttr());
    params.width = op.getWidth();
    params.eps = op.getEps().convertToFloat();
    params.weight_offset = op.getWeightOffset().convertToFloat();
    params.domain = static_cast<fbs::Domain>(op.getDomain());
    return params;
  }

  fbs::QuantizeT params(plan::QuantizeOp op) {
    fbs::QuantizeT params;
    params.input = buffer(op.getInputAttr());
    params.output = buffer(op.getOutputAttr());
    params.width = op.getWidth();
    params.domain = static_cast<fbs::Domain>(op.getDomain());
    return params;
  }

  fbs::LinearT params(plan::LinearOp op) {
    fbs::LinearT params;
    params.input = buffer(op.getInputAttr());
    params.weight = weight(op.getWeightAttr());
    params.bias = weight(op.getBiasAttr());
    params.residual = buffer(op.getResidualAttr());
    params.output = buffer(op.getOutputAttr());
    params.k = op.getK();
    params.n = op.getN();
    params.output_column = op.getOutputColumn();
    params.domain = static_cast<fbs::Domain>(op.getDomain());
    return params;
  }

  fbs::GatedT params(plan::GatedOp op) {
    fbs::GatedT params;
    params.input = buffer(op.getInputAttr());
    params.output = buffer(op.getOutputAttr());
    params.quantized = buffer(op.getQuantizedAttr());
    params.width = op.getWidth();
    params.activation = op.getActivation().str();
    params.domain = static_cast<fbs::Domain>(op.getDomain());
    return params;
  }

  fbs::RopeCacheWriteT params(plan::RopeCacheWriteOp op) {
    fbs::RopeCacheWriteT params;
    params.input = buffer(op.getInputAttr());
    params.table = buffer(op.getTableAttr());
    params.q_norm = weight(op.getQNormAttr());
    params.k_norm = weight(op.getKNormAttr());
    params.query = buffer(op.getQueryAttr());
    params.state = state(op.getStateAttr());
    params.state_layer = op.getStateLayer();
    params.heads = op.getHeads();
    params.kv_heads = op.getKvHeads();
    params.head_dim = op.getHeadDim();
    params.rotary_dim = op.getRotaryDim();
    params.norm_eps = op.getNormEps().convertToFloat();
    params.interleaved = op.getInterleaved();
    params.norm_kind =
        op.getNormKind() == "layer" ? fbs::NormKind::layer : fbs::NormKind::rms;
    params.norm_rows = op.getNormRows();
    params.norm_offset = op.getNormOffset().convertToFloat();
    return params;
  }

  fbs::AttentionT params(plan::AttentionOp op) {
    fbs::AttentionT params;
    params.query = buffer(op.getQueryAttr());
    params.state = state(op.getStateAttr());
    params.state_layer = op.getStateLayer();
    params.output = buffer(op.getOutputAttr());
    params.quantized = buffer(op.getQuantizedAttr());
    params.heads = op.getHeads();
    params.kv_heads = op.getKvHeads();
    params.head_dim = op.getHeadDim();
    params.window = op.getWindow();
    params.scale = op.getScale().convertToFloat();
    params.soft_cap = op.getSoftCap().convertToFloat();
    params.bidirectional = op.getBidirectional();
    if (auto slopes = op.getSlopes())
      params.slopes.assign(slopes->begin(), slopes->end());
    params.rounded_slopes = op.getRoundedSlopes();
    params.split_kernel = index(kernelIndices, op.getSplitAttr());
    params.merge_kernel = index(kernelIndices, op.getMergeAttr());
    return params;
  }

  fbs::PoolT params(plan::PoolOp op) {
    fbs::PoolT params;
    params.input = buffer(op.getInputAttr());
    params.output = buffer(op.getOutputAttr());
    params.width = op.getWidth();
    params.kind = poolKind(op.getKind());
    params.normalize = op.getNormalize();
    return params;
  }

  fbs::GatherRowsT params(plan::GatherRowsOp op) {
    fbs::GatherRowsT params;
    params.input = buffer(op.getInputAttr());
    params.output = buffer(op.getOutputAttr());
    params.width = op.getWidth();
    return params;
  }

  ModuleOp module;
  const std::vector<TargetCode> &code;
  const std::vector<InputFile> &inputs;
  StringRef tooLarge; // key of plan.model with a number out of range
  Indices stateIndices, weightIndices, bufferIndices, kernelIndices;
};

} // namespace

uint64_t weightsBytes(ModuleOp module) {
  uint64_t end = 0;
  for (auto weight : module.getOps<plan::WeightOp>())
    if (auto placement = weight.getPlacement())
      end = std::max(end, placement->getOffset() +
                              (placement->getSize() + 63) / 64 * 64);
  return end;
}

FailureOr<std::vector<uint8_t>>
translatePlan(ModuleOp module, const std::vector<TargetCode> &code,
              const std::vector<InputFile> &inputs) {
  return Translation(module, code, inputs).run();
}

} // namespace ingot::package
