#include "runtime/execute/cpu/BindLaunch.h"

#include <algorithm>

namespace ingot {
namespace {

class Binder {
public:
  explicit Binder(const BindContext &context) : context_(context) {}

  float *rows(std::int32_t index) const {
    return index < 0 ? nullptr
                     : reinterpret_cast<float *>(context_.bufferData(index));
  }

  abi::QuantizedRows quantized(std::int32_t index) const {
    if (index < 0)
      return {};
    const fbs::Buffer &buffer = *context_.target->buffers()->Get(index);
    return {context_.bufferData(index), std::int64_t(buffer.row_bytes()),
            std::int32_t(buffer.scales_offset()),
            std::int32_t(buffer.sums_offset())};
  }

  const float *vector(std::int32_t index) const {
    if (index < 0)
      return nullptr;
    const fbs::Weight &weight = *context_.plan->weights()->Get(index);
    return reinterpret_cast<const float *>(context_.weights + weight.offset());
  }

  abi::PackedWeights packed(std::int32_t index) const {
    const fbs::Weight &weight = *context_.plan->weights()->Get(index);
    const std::uint8_t *base = context_.weights + weight.offset();
    auto plane = [&](std::uint64_t offset) {
      return offset ? reinterpret_cast<const std::uint16_t *>(base + offset)
                    : nullptr;
    };
    return {base, plane(weight.scales_offset()), plane(weight.mins_offset())};
  }

  abi::KvLayer layer(std::int32_t state, std::uint32_t stateLayer) const {
    const GroupGeometry &geometry = context_.cache->geometry(state);
    return {context_.cache->base(state) + geometry.layerBytes * stateLayer,
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

  void bind(const fbs::Embed &op, BoundLaunch &out) const {
    const fbs::Weight &table = *context_.plan->weights()->Get(op.table());
    out.params.embed = {op.by_position() ? context_.arrays->positions.data()
                                         : context_.arrays->tokens.data(),
                        packed(op.table()),
                        rows(op.output()),
                        0,
                        std::int32_t(table.columns()),
                        std::int32_t(op.by_position()
                                         ? table.rows()
                                         : context_.plan->model()->vocab()),
                        op.scale(),
                        vector(op.bias())};
    out.itemsPerRow = 1;
    out.bytesPerRow =
        rowBytes({op.output()}) + double(table.size()) / double(table.rows());
  }

  void bind(const fbs::RopeTable &op, BoundLaunch &out) const {
    out.params.ropeTable = {context_.arrays->positions.data(),
                            context_.arrays->rotaryLengths.data(),
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
    out.itemsPerRow = 1;
    out.bytesPerRow = rowBytes({op.output()});
  }

  void bind(const fbs::RmsNorm &op, BoundLaunch &out) const {
    out.params.rmsNorm = {rows(op.input()),
                          vector(op.weight()),
                          rows(op.output()),
                          quantized(op.quantized()),
                          0,
                          std::int32_t(op.width()),
                          op.eps(),
                          op.weight_offset()};
    out.domain = op.domain();
    out.itemsPerRow = 1;
    out.bytesPerRow = rowBytes({op.input(), op.output(), op.quantized()});
  }

  void bind(const fbs::LayerNorm &op, BoundLaunch &out) const {
    out.params.layerNorm = {rows(op.input()),
                            vector(op.weight()),
                            vector(op.bias()),
                            rows(op.output()),
                            quantized(op.quantized()),
                            0,
                            std::int32_t(op.width()),
                            op.eps(),
                            0};
    out.domain = op.domain();
    out.itemsPerRow = 1;
    out.bytesPerRow = rowBytes({op.input(), op.output(), op.quantized()});
  }

  void bind(const fbs::Activate &op, BoundLaunch &out) const {
    out.params.activate = {rows(op.input()), rows(op.output()),
                           quantized(op.quantized()), 0,
                           std::int32_t(op.width())};
    out.itemsPerRow = 1;
    out.bytesPerRow = rowBytes({op.input(), op.output(), op.quantized()});
  }

  void bind(const fbs::Add &op, BoundLaunch &out) const {
    out.params.add = {rows(op.residual()),
                      rows(op.update()),
                      rows(op.output()),
                      0,
                      std::int32_t(op.width()),
                      op.scale(),
                      0};
    out.itemsPerRow = 1;
    out.bytesPerRow = rowBytes({op.residual(), op.update(), op.output()});
  }

  void bind(const fbs::Cap &op, BoundLaunch &out) const {
    out.params.cap = {
        rows(op.input()),         rows(op.output()), 0,
        std::int32_t(op.width()), op.scale(),        op.soft_cap()};
    out.domain = op.domain();
    out.itemsPerRow = 1;
    out.bytesPerRow = rowBytes({op.input(), op.output()});
  }

  void bind(const fbs::Quantize &op, BoundLaunch &out) const {
    out.params.quantize = {rows(op.input()), quantized(op.output()), 0,
                           std::int32_t(op.width())};
    out.domain = op.domain();
    out.itemsPerRow = 1;
    out.bytesPerRow = rowBytes({op.input(), op.output()});
  }

  void bind(const fbs::Linear &op, BoundLaunch &out) const {
    const fbs::Weight &weight = *context_.plan->weights()->Get(op.weight());
    bool integer = weight.encoding()->group() != 0;
    auto stride = [&](std::int32_t index) {
      return index < 0
                 ? std::int64_t(0)
                 : std::int64_t(
                       context_.target->buffers()->Get(index)->row_bytes() /
                       sizeof(float));
    };
    auto column = [&](std::int32_t index) {
      float *base = rows(index);
      return base ? base + op.output_column() : nullptr;
    };
    out.params.linear = {integer ? nullptr : rows(op.input()),
                         integer ? quantized(op.input()) : abi::QuantizedRows{},
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
    out.fixedItems =
        (std::int32_t(op.n()) + abi::kTileRows - 1) / abi::kTileRows;
    out.bytesPerRow = rowBytes({op.input()}) + 4.0 * op.n() +
                      (op.residual() >= 0 ? 4.0 * op.n() : 0.0);
    out.fixedBytes = double(weight.size());
  }

  void bind(const fbs::Gated &op, BoundLaunch &out) const {
    out.params.gated = {rows(op.input()), rows(op.output()),
                        quantized(op.quantized()), 0, std::int32_t(op.width())};
    out.domain = op.domain();
    out.itemsPerRow = 1;
    out.bytesPerRow = rowBytes({op.input(), op.output(), op.quantized()});
  }

  std::int32_t *integers(std::int32_t index) const {
    return reinterpret_cast<std::int32_t *>(context_.bufferData(index));
  }

  void bind(const fbs::Route &op, BoundLaunch &out) const {
    out.params.route = {
        rows(op.logits()),          rows(op.routes()),        0,
        std::int32_t(op.experts()), std::int32_t(op.top_k()), op.normalized()};
    out.itemsPerRow = 1;
    out.bytesPerRow = rowBytes({op.logits(), op.routes()});
  }

  void bind(const fbs::OrderSlots &op, BoundLaunch &out) const {
    out.params.orderSlots = {
        rows(op.routes()),          integers(op.order()),     0,
        std::int32_t(op.experts()), std::int32_t(op.top_k()), 0};
    out.fixedItems = 1;
    out.bytesPerRow = rowBytes({op.routes(), op.order()});
  }

  void bind(const fbs::Dispatch &op, BoundLaunch &out) const {
    out.params.dispatch = {rows(op.input()),
                           integers(op.order()),
                           rows(op.output()),
                           0,
                           std::int32_t(op.width()),
                           std::int32_t(op.top_k()),
                           0};
    out.domain = fbs::Domain::slot;
    out.itemsPerRow = 1;
    out.bytesPerRow = 2.0 * rowBytes({op.output()});
  }

  void bind(const fbs::ExpertLinear &op, BoundLaunch &out) const {
    const fbs::Weight &weight = *context_.plan->weights()->Get(op.weight());
    bool integer = weight.encoding()->group() != 0;
    abi::LinearParams &linear = out.params.expertLinear.linear;
    linear = {};
    linear.input = integer ? nullptr : rows(op.input());
    linear.quantized = integer ? quantized(op.input()) : abi::QuantizedRows{};
    linear.weights = packed(op.weight());
    linear.output = rows(op.output());
    linear.outputStride = op.n();
    linear.k = std::int32_t(op.k());
    linear.n = std::int32_t(op.n());
    out.params.expertLinear.order = integers(op.order());
    out.params.expertLinear.experts = std::int32_t(op.experts());
    out.domain = fbs::Domain::slot;
    out.fixedItems = std::int32_t(op.experts() * (op.n() / abi::kTileRows));
    out.bytesPerRow = rowBytes({op.input(), op.output()});
    // What one token reads; more tokens read more experts, and at most all.
    out.fixedBytes = double(weight.size()) * op.top_k() / op.experts();
  }

  void bind(const fbs::Combine &op, BoundLaunch &out) const {
    out.params.combine = {rows(op.input()),
                          integers(op.order()),
                          rows(op.routes()),
                          rows(op.output()),
                          0,
                          std::int32_t(op.width()),
                          std::int32_t(op.top_k()),
                          0};
    out.itemsPerRow = 1;
    out.bytesPerRow = rowBytes({op.output()}) * (1.0 + op.top_k());
  }

  void bind(const fbs::RopeCacheWrite &op, BoundLaunch &out) const {
    const StepArrays::Group &group = context_.arrays->groups[op.state()];
    // Weights of each head's own lie one head after another.
    bool isOwn =
        op.q_norm() >= 0 &&
        context_.plan->weights()->Get(op.q_norm())->rows() != op.head_dim();
    out.params.ropeCacheWrite = {rows(op.input()),
                                 rows(op.table()),
                                 vector(op.q_norm()),
                                 vector(op.k_norm()),
                                 rows(op.query()),
                                 layer(op.state(), op.state_layer()),
                                 group.blockTable.data(),
                                 group.sequences.data(),
                                 context_.arrays->tokenSequence.data(),
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
    out.itemsPerRow = 1;
    out.bytesPerRow = rowBytes({op.input(), op.table(), op.query()});
  }

  void bind(const fbs::Attention &op, BoundLaunch &out) const {
    const StepArrays::Group &group = context_.arrays->groups[op.state()];
    const GroupGeometry &geometry = context_.cache->geometry(op.state());
    const abi::AttentionParams params = {rows(op.query()),
                                         layer(op.state(), op.state_layer()),
                                         rows(op.output()),
                                         quantized(op.quantized()),
                                         group.blockTable.data(),
                                         group.sequences.data(),
                                         context_.arrays->tokenSequence.data(),
                                         0,
                                         0,
                                         std::int32_t(op.heads()),
                                         std::int32_t(op.kv_heads()),
                                         std::int32_t(op.head_dim()),
                                         std::int32_t(op.window()),
                                         op.scale(),
                                         op.soft_cap(),
                                         op.bidirectional()};
    // The plan stays mapped as long as its launches.
    if (op.slopes())
      out.params.alibiAttention = {params, op.slopes()->data(),
                                   op.rounded_slopes(), 0};
    else
      out.params.attention = params;
    out.itemsPerRow = std::int32_t(op.heads());
    // A slice should hold the queries that read the same keys.
    out.itemMultiple = std::int32_t(op.heads() / op.kv_heads());
    out.bytesPerRow = rowBytes({op.query(), op.output(), op.quantized()});
    out.bytesPerPosition =
        double(geometry.layerBytes) / double(geometry.blockTokens);
  }

  void bind(const fbs::GatherRows &op, BoundLaunch &out) const {
    out.params.gatherRows = {rows(op.input()),
                             context_.arrays->logitRows.data(),
                             rows(op.output()), 0, std::int32_t(op.width())};
    out.domain = fbs::Domain::logit_row;
    out.itemsPerRow = 1;
    out.bytesPerRow = 2.0 * rowBytes({op.output()});
  }

  void bind(const fbs::Pool &op, BoundLaunch &out) const {
    // Rows and spans are the same in every group.
    out.params.pool = {rows(op.input()),
                       context_.arrays->logitRows.data(),
                       context_.arrays->groups.front().sequences.data(),
                       context_.arrays->tokenSequence.data(),
                       rows(op.output()),
                       0,
                       std::int32_t(op.width()),
                       static_cast<abi::PoolKind>(op.kind()),
                       op.normalize()};
    out.domain = fbs::Domain::logit_row;
    out.itemsPerRow = 1;
    out.bytesPerRow = 2.0 * rowBytes({op.output()});
  }

private:
  const BindContext &context_;
};

} // namespace

std::uint8_t *BindContext::bufferData(std::int32_t index) const {
  const fbs::Buffer &buffer = *target->buffers()->Get(index);
  bool isToken = buffer.domain() != fbs::Domain::logit_row;
  return (isToken ? tokenArena : logitArena) +
         buffer.offset() *
             std::uint64_t(isToken ? tokenCapacity : logitCapacity);
}

BoundLaunch bindLaunch(const fbs::Launch &launch, const BindContext &context) {
  BoundLaunch out;
  out.planned = &launch;
  out.name = launch.name()->str();
  out.layer = launch.layer();
  out.op = launch.params_type();
  for (const fbs::Variant *variant : *launch.variants())
    out.variants.push_back({std::int32_t(variant->last()), variant->kernel(),
                            (*context.functions)[variant->kernel()], 0});
  Binder binder(context);
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
  case fbs::Params::Quantize:
    binder.bind(*launch.params_as_Quantize(), out);
    break;
  case fbs::Params::Linear:
    binder.bind(*launch.params_as_Linear(), out);
    break;
  case fbs::Params::Gated:
    binder.bind(*launch.params_as_Gated(), out);
    break;
  case fbs::Params::RopeCacheWrite:
    binder.bind(*launch.params_as_RopeCacheWrite(), out);
    break;
  case fbs::Params::Attention:
    binder.bind(*launch.params_as_Attention(), out);
    break;
  case fbs::Params::GatherRows:
    binder.bind(*launch.params_as_GatherRows(), out);
    break;
  case fbs::Params::LayerNorm:
    binder.bind(*launch.params_as_LayerNorm(), out);
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
  case fbs::Params::Pool:
    binder.bind(*launch.params_as_Pool(), out);
    break;
  case fbs::Params::NONE:
    break; // refused by verifyPlan
  }
  return out;
}

std::int32_t BoundLaunch::grain(std::int32_t rows, double positions,
                                std::int32_t workers) const {
  std::int32_t items = numItems(rows);
  // Several claims a worker even out what others on the machine take, more where
  // items differ in length; a claim below some kilobytes costs more than it brings.
  constexpr double kLeastBytes = 16384;
  const std::int32_t claimsPerWorker = bytesPerPosition > 0 ? 24 : 6;
  double bytesPerItem =
      (bytesPerRow * rows + fixedBytes + bytesPerPosition * positions) / items;
  double least = kLeastBytes / std::max(bytesPerItem, 1.0);
  std::int32_t fair = items / (workers * claimsPerWorker) + 1;
  std::int32_t size =
      std::max(fair, std::int32_t(std::min(least, double(items))));
  return (size + itemMultiple - 1) / itemMultiple * itemMultiple;
}

void BoundLaunch::setRows(std::int32_t rows, std::int32_t numSequences) {
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
  case fbs::Params::Quantize:
    params.quantize.numTokens = rows;
    break;
  case fbs::Params::Linear:
    params.linear.numTokens = rows;
    break;
  case fbs::Params::Gated:
    params.gated.numTokens = rows;
    break;
  case fbs::Params::RopeCacheWrite:
    params.ropeCacheWrite.numTokens = rows;
    params.ropeCacheWrite.numSequences = numSequences;
    break;
  case fbs::Params::Attention:
    params.attention.numTokens = rows;
    params.attention.numSequences = numSequences;
    break;
  case fbs::Params::GatherRows:
    params.gatherRows.numRows = rows;
    break;
  case fbs::Params::LayerNorm:
    params.layerNorm.numTokens = rows;
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
  case fbs::Params::Pool:
    params.pool.numRows = rows;
    break;
  case fbs::Params::NONE:
    break;
  }
}

BoundVariant &BoundLaunch::variantFor(std::int32_t rows) {
  for (BoundVariant &variant : variants)
    if (variant.last == 0 || rows <= variant.last)
      return variant;
  return variants.back();
}

} // namespace ingot
