#include "runtime/execute/cuda/BindCudaLaunch.h"

#include <algorithm>
#include <initializer_list>

namespace ingot::cuda {
namespace {

// Addresses of the device in the structs of the ABI: no thread of the host follows
// them.
template <typename T> T *pointer(DevicePointer address) {
  return reinterpret_cast<T *>(address);
}

class Binder {
public:
  explicit Binder(const CudaBindContext &context) : context_(context) {}

  void bind(const fbs::Embed &op, CudaLaunch &out) const {
    const fbs::Weight &table = *context_.plan->weights()->Get(op.table());
    const DeviceArrays &arrays = *context_.arrays;
    out.params.embed = {pointer<const std::int32_t>(op.by_position()
                                                        ? arrays.positions
                                                        : arrays.tokens),
                        packed(op.table()),
                        rows(op.output()),
                        0,
                        std::int32_t(table.columns()),
                        std::int32_t(table.rows()),
                        op.scale(),
                        vector(op.bias())};
    out.bytesPerRow =
        2 * rowBytes({op.output()}); // about what a row of the table takes
  }

  void bind(const fbs::RopeTable &op, CudaLaunch &out) const {
    const DeviceArrays &arrays = *context_.arrays;
    out.params.ropeTable = {pointer<const std::int32_t>(arrays.positions),
                            pointer<const std::int32_t>(arrays.rotaryLengths),
                            vector(op.inv_freq()),
                            rows(op.output()),
                            op.theta(),
                            op.factor(),
                            0,
                            std::int32_t(op.rotary_dim()),
                            op.attention_factor(),
                            std::int32_t(op.original()),
                            static_cast<abi::RopeScaling>(op.scaling()),
                            0};
    out.bytesPerRow = rowBytes({op.output()});
  }

  void bind(const fbs::RmsNorm &op, CudaLaunch &out) const {
    out.params.rmsNorm = {rows(op.input()),
                          vector(op.weight()),
                          rows(op.output()),
                          halves(op.quantized()),
                          0,
                          std::int32_t(op.width()),
                          op.eps(),
                          op.weight_offset()};
    out.domain = op.domain();
    out.bytesPerRow = rowBytes({op.input(), op.output(), op.quantized()});
  }

  void bind(const fbs::LayerNorm &op, CudaLaunch &out) const {
    out.params.layerNorm = {rows(op.input()),
                            vector(op.weight()),
                            vector(op.bias()),
                            rows(op.output()),
                            halves(op.quantized()),
                            0,
                            std::int32_t(op.width()),
                            op.eps(),
                            0};
    out.domain = op.domain();
    out.bytesPerRow = rowBytes({op.input(), op.output(), op.quantized()});
  }

  void bind(const fbs::Quantize &op, CudaLaunch &out) const {
    out.params.quantize = {rows(op.input()), halves(op.output()), 0,
                           std::int32_t(op.width())};
    out.domain = op.domain();
    out.bytesPerRow = rowBytes({op.input(), op.output()});
  }

  void bind(const fbs::Linear &op, CudaLaunch &out) const {
    auto stride = [&](std::int32_t index) {
      return index < 0
                 ? std::int64_t(0)
                 : std::int64_t(
                       context_.target->buffers()->Get(index)->row_bytes() /
                       sizeof(float));
    };
    auto column = [&](std::int32_t index) {
      return index < 0 ? nullptr
                       : pointer<float>(context_.bufferAddress(index) +
                                        op.output_column() * sizeof(float));
    };
    out.params.linear = {nullptr,
                         halves(op.input()),
                         packed(op.weight()),
                         vector(op.bias()),
                         column(op.residual()),
                         column(op.output()),
                         stride(op.output()),
                         stride(op.residual()),
                         0,
                         std::int32_t(op.k()),
                         std::int32_t(op.n()),
                         0};
    out.domain = op.domain();
    out.bytesPerRow = rowBytes({op.input()}) + 4.0 * op.n() +
                      (op.residual() >= 0 ? 4.0 * op.n() : 0.0);
    out.fixedBytes = double(context_.plan->weights()->Get(op.weight())->size());
  }

  void bind(const fbs::Route &op, CudaLaunch &out) const {
    out.params.route = {
        rows(op.logits()),
        rows(op.routes()),
        pointer<const std::int32_t>(context_.arrays->tokenSequence),
        0,
        std::int32_t(op.experts()),
        std::int32_t(op.top_k()),
        op.normalized()};
    out.bytesPerRow = rowBytes({op.logits(), op.routes()});
  }

  void bind(const fbs::OrderSlots &op, CudaLaunch &out) const {
    out.params.orderSlots = {
        rows(op.routes()),          integers(op.order()),     0,
        std::int32_t(op.experts()), std::int32_t(op.top_k()), 0};
    out.bytesPerRow = rowBytes({op.routes(), op.order()});
  }

  void bind(const fbs::Dispatch &op, CudaLaunch &out) const {
    bool isHalves = context_.target->buffers()->Get(op.output())->dtype() ==
                    fbs::DType::f16;
    auto of = [&](std::int32_t index) {
      return isHalves ? halves(index) : abi::QuantizedRows{};
    };
    out.params.dispatch = {integers(op.order()),
                           isHalves ? nullptr : rows(op.input()),
                           isHalves ? nullptr : rows(op.output()),
                           of(op.input()),
                           of(op.output()),
                           0,
                           std::int32_t(op.width()),
                           std::int32_t(op.top_k()),
                           0};
    out.domain = fbs::Domain::slot;
    out.bytesPerRow = 2.0 * rowBytes({op.output()});
  }

  void bind(const fbs::ExpertLinear &op, CudaLaunch &out) const {
    const fbs::Weight &weight = *context_.plan->weights()->Get(op.weight());
    abi::LinearParams &linear = out.params.expertLinear.linear;
    linear = {};
    linear.quantized = halves(op.input());
    linear.weights = packed(op.weight());
    linear.output = rows(op.output());
    linear.outputStride = op.n();
    linear.k = std::int32_t(op.k());
    linear.n = std::int32_t(op.n());
    out.params.expertLinear.order = integers(op.order());
    out.params.expertLinear.experts = std::int32_t(op.experts());
    out.domain = fbs::Domain::slot;
    out.bytesPerRow = rowBytes({op.input(), op.output()});
    // What one token reads; more tokens read more experts, and at most all.
    out.fixedBytes = double(weight.size()) * op.top_k() / op.experts();
  }

  void bind(const fbs::Combine &op, CudaLaunch &out) const {
    out.params.combine = {rows(op.input()),
                          integers(op.order()),
                          rows(op.routes()),
                          rows(op.output()),
                          0,
                          std::int32_t(op.width()),
                          std::int32_t(op.top_k()),
                          0};
    out.bytesPerRow = rowBytes({op.output(), op.routes()}) +
                      double(op.top_k()) * rowBytes({op.input()});
  }

  void bind(const fbs::Gated &op, CudaLaunch &out) const {
    out.params.gated = {rows(op.input()), rows(op.output()),
                        halves(op.quantized()), 0, std::int32_t(op.width())};
    out.domain = op.domain();
    out.bytesPerRow = rowBytes({op.input(), op.output(), op.quantized()});
  }

  void bind(const fbs::Activate &op, CudaLaunch &out) const {
    out.params.activate = {rows(op.input()), rows(op.output()),
                           halves(op.quantized()), 0, std::int32_t(op.width())};
    out.bytesPerRow = rowBytes({op.input(), op.output(), op.quantized()});
  }

  void bind(const fbs::Add &op, CudaLaunch &out) const {
    out.params.add = {rows(op.residual()),
                      rows(op.update()),
                      rows(op.output()),
                      0,
                      std::int32_t(op.width()),
                      op.scale(),
                      0};
    out.bytesPerRow = rowBytes({op.residual(), op.update(), op.output()});
  }

  void bind(const fbs::Cap &op, CudaLaunch &out) const {
    out.params.cap = {
        rows(op.input()),         rows(op.output()), 0,
        std::int32_t(op.width()), op.scale(),        op.soft_cap()};
    out.domain = op.domain();
    out.bytesPerRow = rowBytes({op.input(), op.output()});
  }

  void bind(const fbs::GatherRows &op, CudaLaunch &out) const {
    out.params.gatherRows = {
        rows(op.input()),
        pointer<const std::int32_t>(context_.arrays->logitRows),
        rows(op.output()), 0, std::int32_t(op.width())};
    out.domain = fbs::Domain::logit_row;
    out.bytesPerRow = 2.0 * rowBytes({op.output()});
  }

  void bind(const fbs::RopeCacheWrite &op, CudaLaunch &out) const {
    const DeviceArrays::Group &group = context_.arrays->groups[op.state()];
    // Weights of each head's own lie one head after another.
    bool isOwn =
        op.q_norm() >= 0 &&
        context_.plan->weights()->Get(op.q_norm())->rows() != op.head_dim();
    out.params.ropeCacheWrite = {
        rows(op.input()),
        rows(op.table()),
        vector(op.q_norm()),
        vector(op.k_norm()),
        rows(op.query()),
        layer(op.state(), op.state_layer()),
        pointer<const std::int32_t>(group.blockTable),
        pointer<const abi::SequenceSpan>(group.sequences),
        pointer<const std::int32_t>(context_.arrays->tokenSequence),
        0,
        0,
        std::int32_t(op.heads()),
        std::int32_t(op.kv_heads()),
        std::int32_t(op.head_dim()),
        std::int32_t(op.rotary_dim()),
        op.norm_eps(),
        op.norm_offset(),
        static_cast<abi::HeadNorm>(op.norm_kind()),
        isOwn ? std::int32_t(op.head_dim()) : 0,
        op.norm_rows(),
        op.interleaved()};
    out.bytesPerRow = rowBytes({op.input(), op.table(), op.query()});
  }

  void bind(const fbs::Attention &op, CudaLaunch &out) const {
    const std::vector<AttentionShape> &shapes = *context_.shapes;
    out.shape = std::int32_t(
        std::find(shapes.begin(), shapes.end(), shapeOf(op)) - shapes.begin());
    const DeviceArrays &arrays = *context_.arrays;
    const DeviceArrays::Shape &shape = arrays.shapes[std::size_t(out.shape)];
    const GroupGeometry &geometry = context_.cache->geometry(op.state());
    out.params.attention = {
        rows(op.query()),
        layer(op.state(), op.state_layer()),
        rows(op.output()),
        pointer<float>(context_.partialValues),
        pointer<float>(context_.partialStats),
        nullptr, // tiles of either kind
        pointer<const std::int32_t>(arrays.groups[op.state()].blockTable),
        0,
        std::int32_t(op.heads()),
        std::int32_t(op.kv_heads()),
        std::int32_t(op.window()),
        op.scale(),
        op.soft_cap()};
    out.mergeParams = {rows(op.output()),
                       halves(op.quantized()),
                       pointer<const float>(context_.partialValues),
                       pointer<float>(context_.partialStats),
                       pointer<const abi::TokenSlots>(shape.tokenSlots),
                       0,
                       std::int32_t(op.heads()),
                       std::int32_t(op.head_dim()),
                       0};
    out.split = kernel(std::uint32_t(op.split_kernel()));
    out.merge = kernel(std::uint32_t(op.merge_kernel()));
    out.bytesPerRow = rowBytes({op.query(), op.output(), op.quantized()});
    out.bytesPerPosition =
        double(geometry.layerBytes) / double(geometry.blockTokens);
  }

  BoundKernel kernel(std::uint32_t index) const {
    return bindKernel(index, context_);
  }

private:
  float *rows(std::int32_t index) const {
    return index < 0 ? nullptr : pointer<float>(context_.bufferAddress(index));
  }
  std::int32_t *integers(std::int32_t index) const {
    return pointer<std::int32_t>(context_.bufferAddress(index));
  }
  abi::QuantizedRows halves(std::int32_t index) const {
    if (index < 0)
      return {};
    const fbs::Buffer &buffer = *context_.target->buffers()->Get(index);
    return {pointer<std::uint8_t>(context_.bufferAddress(index)),
            std::int64_t(buffer.row_bytes()),
            std::int32_t(buffer.scales_offset()),
            std::int32_t(buffer.sums_offset())};
  }
  abi::PackedWeights packed(std::int32_t index) const {
    const fbs::Weight &weight = *context_.plan->weights()->Get(index);
    DevicePointer base = context_.weights[std::size_t(index)];
    auto plane = [&](std::uint64_t offset) {
      return offset ? pointer<const std::uint16_t>(base + offset) : nullptr;
    };
    return {pointer<const void>(base), plane(weight.scales_offset()),
            plane(weight.mins_offset())};
  }
  const float *vector(std::int32_t index) const {
    return index < 0
               ? nullptr
               : pointer<const float>(context_.weights[std::size_t(index)]);
  }
  abi::KvLayer layer(std::int32_t state, std::uint32_t number) const {
    const GroupGeometry &geometry = context_.cache->geometry(state);
    return {context_.cache->base(state) + number * geometry.layerBytes,
            std::int64_t(geometry.blockBytes()),
            std::int64_t(geometry.valueOffset)};
  }
  double rowBytes(std::initializer_list<std::int32_t> buffers) const {
    double sum = 0;
    for (std::int32_t index : buffers)
      if (index >= 0)
        sum += double(context_.target->buffers()->Get(index)->row_bytes());
    return sum;
  }

  const CudaBindContext &context_;
};

} // namespace

DevicePointer CudaBindContext::bufferAddress(std::int32_t index) const {
  const fbs::Buffer &buffer = *target->buffers()->Get(index);
  bool isToken = buffer.domain() != fbs::Domain::logit_row;
  return (isToken ? tokenArena : logitArena) +
         buffer.offset() *
             std::uint64_t(isToken ? tokenCapacity : logitCapacity);
}

BoundKernel bindKernel(std::uint32_t index, const CudaBindContext &context) {
  const fbs::Kernel &found = *context.target->kernels()->Get(index);
  return {index,
          (*context.functions)[index],
          {std::int32_t(found.block_threads()),
           std::int32_t(found.shared_bytes()), std::int32_t(found.tile_rows()),
           std::int32_t(found.tile_tokens())}};
}

AttentionShape shapeOf(const fbs::Attention &op) {
  return {op.state(), std::int32_t(op.heads()), std::int32_t(op.kv_heads()),
          std::int32_t(op.head_dim()), std::int32_t(op.window())};
}

CudaLaunch bindCudaLaunch(const fbs::Launch &launch,
                          const CudaBindContext &context) {
  CudaLaunch out;
  out.name = launch.name()->str();
  out.layer = launch.layer();
  out.op = launch.params_type();
  Binder binder(context);
  for (const fbs::Variant *variant : *launch.variants())
    out.variants.push_back(
        {std::int32_t(variant->last()), binder.kernel(variant->kernel()), 0});
  switch (out.op) {
  case fbs::Params::Embed:
    binder.bind(*launch.params_as_Embed(), out);
    break;
  case fbs::Params::RopeTable:
    binder.bind(*launch.params_as_RopeTable(), out);
    break;
  case fbs::Params::RmsNorm:
    binder.bind(*launch.params_as_RmsNorm(), out);
    break;
  case fbs::Params::LayerNorm:
    binder.bind(*launch.params_as_LayerNorm(), out);
    break;
  case fbs::Params::Quantize:
    binder.bind(*launch.params_as_Quantize(), out);
    break;
  case fbs::Params::Linear:
    binder.bind(*launch.params_as_Linear(), out);
    break;
  case fbs::Params::Gated:
    binder.bind(*launch.params_as_Gated(), out);
    break;
  case fbs::Params::Activate:
    binder.bind(*launch.params_as_Activate(), out);
    break;
  case fbs::Params::Add:
    binder.bind(*launch.params_as_Add(), out);
    break;
  case fbs::Params::Cap:
    binder.bind(*launch.params_as_Cap(), out);
    break;
  case fbs::Params::GatherRows:
    binder.bind(*launch.params_as_GatherRows(), out);
    break;
  case fbs::Params::RopeCacheWrite:
    binder.bind(*launch.params_as_RopeCacheWrite(), out);
    break;
  case fbs::Params::Attention:
    binder.bind(*launch.params_as_Attention(), out);
    break;
  case fbs::Params::Route:
    binder.bind(*launch.params_as_Route(), out);
    break;
  case fbs::Params::OrderSlots:
    binder.bind(*launch.params_as_OrderSlots(), out);
    break;
  case fbs::Params::Dispatch:
    binder.bind(*launch.params_as_Dispatch(), out);
    break;
  case fbs::Params::ExpertLinear:
    binder.bind(*launch.params_as_ExpertLinear(), out);
    break;
  case fbs::Params::Combine:
    binder.bind(*launch.params_as_Combine(), out);
    break;
  default:
    break; // refused by verifyPlan
  }
  return out;
}

CudaVariant &CudaLaunch::variantFor(std::int32_t rows) {
  for (CudaVariant &variant : variants)
    if (variant.last == 0 || rows <= variant.last)
      return variant;
  return variants.back();
}

void CudaLaunch::setRows(std::int32_t rows, std::int32_t numSequences) {
  switch (op) {
  case fbs::Params::Embed:
    params.embed.numTokens = rows;
    break;
  case fbs::Params::RopeTable:
    params.ropeTable.numTokens = rows;
    break;
  case fbs::Params::RmsNorm:
    params.rmsNorm.numTokens = rows;
    break;
  case fbs::Params::LayerNorm:
    params.layerNorm.numTokens = rows;
    break;
  case fbs::Params::Quantize:
    params.quantize.numTokens = rows;
    break;
  case fbs::Params::Linear:
    params.linear.numTokens = rows;
    break;
  case fbs::Params::Gated:
    params.gated.numTokens = rows;
    break;
  case fbs::Params::Activate:
    params.activate.numTokens = rows;
    break;
  case fbs::Params::Add:
    params.add.numTokens = rows;
    break;
  case fbs::Params::Cap:
    params.cap.numRows = rows;
    break;
  case fbs::Params::GatherRows:
    params.gatherRows.numRows = rows;
    break;
  case fbs::Params::RopeCacheWrite:
    params.ropeCacheWrite.numTokens = rows;
    params.ropeCacheWrite.numSequences = numSequences;
    break;
  case fbs::Params::Attention:
    mergeParams.numTokens = rows;
    break;
  case fbs::Params::Route:
    params.route.numTokens = rows;
    break;
  case fbs::Params::OrderSlots:
    params.orderSlots.numTokens = rows;
    break;
  case fbs::Params::Dispatch:
    params.dispatch.numSlots = rows;
    break;
  case fbs::Params::ExpertLinear:
    params.expertLinear.linear.numTokens = rows;
    break;
  case fbs::Params::Combine:
    params.combine.numTokens = rows;
    break;
  default:
    break;
  }
}

abi::KernelGrid CudaLaunch::grid(const abi::KernelGeometry &geometry,
                                 std::int32_t rows) const {
  switch (op) {
  case fbs::Params::Linear:
    return abi::linearGrid(geometry, params.linear.n, rows);
  case fbs::Params::OrderSlots:
    return abi::orderGrid(params.orderSlots.experts);
  case fbs::Params::ExpertLinear:
    return abi::expertGrid(geometry, params.expertLinear.linear.n, rows,
                           params.expertLinear.experts);
  default:
    return abi::rowGrid(rows);
  }
}

} // namespace ingot::cuda
