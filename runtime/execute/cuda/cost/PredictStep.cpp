// 1. Find the level's facts of each kernel. 2. Make the sequences of a step, and cut
// its attention as the executor does. 3. Walk the launches with the variants that the
// row count takes.
#include "runtime/execute/cuda/cost/PredictStep.h"

#include "runtime/execute/cuda/AttentionTiles.h"
#include "runtime/execute/cuda/cost/ExpertTraffic.h"
#include "runtime/plan/LibraryUse.h"
#include "runtime/plan/VerifyPlan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

namespace ingot::cuda {
namespace {

// As CudaExecutor: steps of few rows are graphs, whose rows and parts are buckets.
constexpr std::int32_t kMostGraphRows = 64;
std::int32_t bucketOf(std::int32_t count) {
  return std::int32_t(std::bit_ceil(std::uint32_t(std::max(count, 1))));
}

struct StepShape {
  std::vector<StepSequence> sequences;
  std::int32_t rows = 0, logitRows = 0;
  bool isGraph = false;
};

abi::KernelGeometry geometryOf(const fbs::Kernel &kernel) {
  return {std::int32_t(kernel.block_threads()),
          std::int32_t(kernel.shared_bytes()), std::int32_t(kernel.tile_rows()),
          std::int32_t(kernel.tile_tokens())};
}

abi::CudaCode codeOf(const fbs::Encoding &encoding) {
  switch (encoding.code()) {
  case fbs::WeightCode::i8:
    return abi::CudaCode::I8;
  case fbs::WeightCode::i4:
    return abi::CudaCode::I4;
  case fbs::WeightCode::bf16:
    return abi::CudaCode::BF16;
  default:
    return abi::CudaCode::F16;
  }
}

KvKind kindOf(const fbs::StateGroup &state) {
  return state.dtype() == fbs::DType::i8     ? KvKind::I8
         : state.dtype() == fbs::DType::bf16 ? KvKind::BF16
                                             : KvKind::F16;
}

// Tiles of one shape of attention in one step.
struct CutStep {
  std::vector<abi::AttentionTile> split, wide;
  std::vector<abi::TokenSlots> rows;
  std::int32_t gridSplits = 0;
};

// How many experts the tokens of a step choose.
enum class ExpertSpread { Fewest, Even, Most };

class Predictor {
public:
  Predictor(const fbs::Plan &plan, const fbs::Target &target,
            PredictedCost &made)
      : plan_(plan), target_(target), made_(made) {}

  // And, where layers have experts, what the step takes with the fewest and the most.
  Result<StepCost> predict(const std::string &name, const StepShape &step) {
    INGOT_ASSIGN_OR_RETURN(StepCost cost,
                           predict(name, step, ExpertSpread::Even));
    if (choices_.empty())
      return cost;
    auto usedBy = [&] {
      const ExpertChoice &choice = choices_.rbegin()->second.choice;
      const std::vector<std::int32_t> rows = choice.rowsOfExperts();
      return std::int32_t(rows.size()) -
             std::int32_t(std::count(rows.begin(), rows.end(), 0));
    };
    cost.experts.experts = choices_.rbegin()->first;
    cost.experts.used = usedBy();
    INGOT_ASSIGN_OR_RETURN(const StepCost least,
                           predict(name, step, ExpertSpread::Fewest));
    cost.experts.fewest = usedBy();
    cost.experts.fewestSeconds = least.seconds;
    INGOT_ASSIGN_OR_RETURN(const StepCost most,
                           predict(name, step, ExpertSpread::Most));
    cost.experts.most = usedBy();
    cost.experts.mostSeconds = most.seconds;
    return cost;
  }

private:
  Result<StepCost> predict(const std::string &name, const StepShape &step,
                           ExpertSpread spread) {
    StepCost cost;
    cost.name = name;
    cost.rows = step.rows;
    step_ = &step;
    cuts_.clear();
    costs_.clear();
    choices_.clear();
    spread_ = spread;
    libraryProducts_ = 0;
    for (const fbs::ProgramSegment *segment : *target_.segments())
      for (const fbs::Launch *launch : *segment->launches())
        if (Status status = add(*launch); !status)
          return status.withContext("launch \"" + launch->name()->str() + "\"");
    for (auto &[index, kernel] : costs_) {
      if (kernel.seconds > 0)
        kernel.fill /= kernel.seconds;
      cost.launches += kernel.launches;
      cost.traffic += kernel.traffic;
      cost.seconds += kernel.seconds;
      cost.idealSeconds += kernel.idealSeconds;
      cost.kernels.push_back(kernel);
    }
    cost.libraryProducts = libraryProducts_;
    for (std::uint32_t i = 0; i < target_.kernels()->size(); ++i)
      if (target_.kernels()->Get(i)->op()->string_view() == "sample") {
        // Padding is not chosen from.
        const auto rows = std::int32_t(
            std::min(std::size_t(step.logitRows), step.sequences.size()));
        KernelCost &choosing = cost.choosing.emplace();
        addTo(choosing, i,
              sampleTraffic({rows, std::int32_t(plan_.model()->vocab())}));
        if (choosing.seconds > 0)
          choosing.fill /= choosing.seconds;
      }
    std::sort(cost.kernels.begin(), cost.kernels.end(),
              [](const KernelCost &a, const KernelCost &b) {
                return a.seconds > b.seconds;
              });
    return cost;
  }

  Status add(const fbs::Launch &launch) {
    switch (launch.params_type()) {
    case fbs::Params::Linear:
      return addLinear(launch, *launch.params_as_Linear());
    case fbs::Params::Attention:
      return addAttention(launch, *launch.params_as_Attention());
    case fbs::Params::RopeCacheWrite:
      return addRopeWrite(launch, *launch.params_as_RopeCacheWrite());
    case fbs::Params::Embed: {
      const fbs::Embed &op = *launch.params_as_Embed();
      const fbs::Weight &table = *plan_.weights()->Get(unsigned(op.table()));
      const fbs::Encoding &encoding = *table.encoding();
      count(launch, step_->rows,
            embedTraffic({codeOf(encoding), groupOf(table), encoding.minimum(),
                          step_->rows, std::int32_t(table.columns())}));
      return Status::ok();
    }
    case fbs::Params::RopeTable:
      return addRow(launch, RowOperation::RopeTable,
                    launch.params_as_RopeTable()->rotary_dim(),
                    fbs::Domain::token, 0, -1);
    case fbs::Params::RmsNorm: {
      const fbs::RmsNorm &op = *launch.params_as_RmsNorm();
      return addRow(launch, RowOperation::RmsNorm, op.width(), op.domain(),
                    op.output(), op.quantized());
    }
    case fbs::Params::LayerNorm: {
      const fbs::LayerNorm &op = *launch.params_as_LayerNorm();
      return addRow(launch, RowOperation::LayerNorm, op.width(), op.domain(),
                    op.output(), op.quantized(), op.bias() >= 0);
    }
    case fbs::Params::Quantize: {
      const fbs::Quantize &op = *launch.params_as_Quantize();
      return addRow(launch, RowOperation::Quantize, op.width(), op.domain(), -1,
                    op.output());
    }
    case fbs::Params::Gated: {
      const fbs::Gated &op = *launch.params_as_Gated();
      return addRow(launch, RowOperation::Gated, op.width(), op.domain(),
                    op.output(), op.quantized());
    }
    case fbs::Params::Activate: {
      const fbs::Activate &op = *launch.params_as_Activate();
      return addRow(launch, RowOperation::Activate, op.width(),
                    fbs::Domain::token, op.output(), op.quantized());
    }
    case fbs::Params::Add:
      return addRow(launch, RowOperation::Add, launch.params_as_Add()->width(),
                    fbs::Domain::token, 0, -1);
    case fbs::Params::Cap: {
      const fbs::Cap &op = *launch.params_as_Cap();
      return addRow(launch, RowOperation::Cap, op.width(), op.domain(), 0, -1);
    }
    case fbs::Params::Route: {
      const fbs::Route &op = *launch.params_as_Route();
      const ExpertChoice &choice = choose(op.experts(), op.top_k()).choice;
      count(launch, step_->rows, routeTraffic(choice, op.normalized()));
      return Status::ok();
    }
    case fbs::Params::OrderSlots: {
      const fbs::OrderSlots &op = *launch.params_as_OrderSlots();
      count(launch, step_->rows, choose(op.experts(), op.top_k()).order);
      return Status::ok();
    }
    case fbs::Params::Dispatch: {
      const fbs::Dispatch &op = *launch.params_as_Dispatch();
      auto parts = [&](std::int32_t buffer) {
        return target_.buffers()->Get(unsigned(buffer))->dtype() ==
                       fbs::DType::f16
                   ? partsOf(buffer)
                   : 0;
      };
      count(launch, rowsOf(fbs::Domain::slot),
            dispatchTraffic(choose(op.experts(), op.top_k()).choice,
                            {std::int32_t(op.width()), parts(op.input()),
                             parts(op.output())}));
      return Status::ok();
    }
    case fbs::Params::ExpertLinear:
      return addExperts(launch, *launch.params_as_ExpertLinear());
    case fbs::Params::Combine: {
      const fbs::Combine &op = *launch.params_as_Combine();
      count(launch, step_->rows,
            combineTraffic(choose(op.experts(), op.top_k()).choice,
                           std::int32_t(op.width())));
      return Status::ok();
    }
    case fbs::Params::GatherRows:
      return addRow(launch, RowOperation::GatherRows,
                    launch.params_as_GatherRows()->width(),
                    fbs::Domain::logit_row, 0, -1);
    default:
      return Status::unsupported(std::string("the operation ") +
                                 fbs::EnumNameParams(launch.params_type()) +
                                 " has no model of its cost on CUDA devices");
    }
  }

  std::int32_t rowsOf(fbs::Domain domain) const {
    return domain == fbs::Domain::logit_row ? step_->logitRows
           : domain == fbs::Domain::slot
               ? step_->rows * std::int32_t(target_.slots())
               : step_->rows;
  }
  static std::int32_t groupOf(const fbs::Weight &weight) {
    return std::int32_t(weight.encoding()->group());
  }
  std::int32_t partsOf(std::int32_t buffer) const {
    return buffer >= 0 &&
                   target_.buffers()->Get(unsigned(buffer))->sums_offset() != 0
               ? 2
               : 1;
  }
  std::int64_t strideOf(std::int32_t buffer) const {
    return buffer < 0
               ? 0
               : std::int64_t(
                     target_.buffers()->Get(unsigned(buffer))->row_bytes() / 4);
  }
  static std::uint32_t variantFor(const fbs::Launch &launch,
                                  std::int32_t rows) {
    for (const fbs::Variant *variant : *launch.variants())
      if (variant->last() == 0 || rows <= std::int32_t(variant->last()))
        return variant->kernel();
    return launch.variants()->Get(launch.variants()->size() - 1)->kernel();
  }

  void count(const fbs::Launch &launch, std::int32_t rows,
             const LaunchTraffic &traffic) {
    if (rows > 0)
      countKernel(variantFor(launch, rows), traffic);
  }
  void countKernel(std::uint32_t index, const LaunchTraffic &traffic) {
    addTo(costs_[index], index, traffic);
  }
  void addTo(KernelCost &cost, std::uint32_t index,
             const LaunchTraffic &traffic) const {
    const Chip &chip = made_.chip;
    cost.kernel = index;
    ++cost.launches;
    // The multiprocessor with most blocks decides.
    const double most = std::ceil(traffic.blocks / chip.multiprocessors);
    const double fill =
        most > 0 ? traffic.blocks / (most * chip.multiprocessors) : 1;
    const double seconds =
        std::max(traffic.bytes() / chip.bytesPerSecond,
                 fill > 0 ? traffic.flops / (chip.tensorFlops * fill) : 0);
    cost.seconds += seconds;
    cost.idealSeconds += std::max(traffic.neededBytes / chip.bytesPerSecond,
                                  traffic.neededFlops / chip.tensorFlops);
    cost.fill += fill * seconds;
    cost.traffic += traffic;
  }

  Status addRow(const fbs::Launch &launch, RowOperation operation,
                std::uint32_t width, fbs::Domain domain, std::int32_t output,
                std::int32_t halves, bool hasBias = false) {
    const std::int32_t rows = rowsOf(domain);
    count(launch, rows,
          rowTraffic({operation, rows, std::int32_t(width), output >= 0,
                      halves >= 0, hasBias, partsOf(halves)}));
    return Status::ok();
  }

  Status addLinear(const fbs::Launch &launch, const fbs::Linear &op) {
    const std::int32_t rows = rowsOf(op.domain());
    if (rows == 0)
      return Status::ok();
    const fbs::Kernel &kernel =
        *target_.kernels()->Get(variantFor(launch, rows));
    if (kernel.op()->string_view() == kLibraryLinear) {
      ++libraryProducts_;
      return Status::ok();
    }
    const fbs::Weight &weight = *plan_.weights()->Get(unsigned(op.weight()));
    LinearWork work;
    work.code = codeOf(*weight.encoding());
    work.group = groupOf(weight);
    work.minimum = weight.encoding()->minimum();
    work.parts = partsOf(op.input());
    work.geometry = geometryOf(kernel);
    work.n = std::int32_t(op.n());
    work.k = std::int32_t(op.k());
    work.tokens = rows;
    work.hasBias = op.bias() >= 0;
    work.hasResidual = op.residual() >= 0;
    work.outputStride = strideOf(op.output());
    work.residualStride = strideOf(op.residual());
    work.outputColumn = op.output_column();
    count(launch, rows, linearTraffic(work));
    return Status::ok();
  }

  // What the tokens of the step choose of so many experts.
  struct Choice {
    ExpertChoice choice;
    LaunchTraffic order; // of all layers alike
  };
  const Choice &choose(std::uint32_t experts, std::uint32_t topK) {
    auto [found, isNew] = choices_.try_emplace(std::int32_t(experts));
    if (!isNew)
      return found->second;
    std::int32_t tokens = 0;
    for (const StepSequence &sequence : step_->sequences)
      tokens += sequence.numRows;
    const std::int32_t all = std::int32_t(experts), of = std::int32_t(topK);
    const std::int64_t most =
        std::min<std::int64_t>(all, std::int64_t(tokens) * of);
    const std::int32_t used = spread_ == ExpertSpread::Fewest ? of
                              : spread_ == ExpertSpread::Most
                                  ? std::int32_t(most)
                                  : expertsOfEvenChoice(all, of, tokens);
    found->second.choice =
        choiceOf(all, of, used, step_->rows, step_->rows - tokens);
    found->second.order = orderTraffic(found->second.choice);
    return found->second;
  }

  Status addExperts(const fbs::Launch &launch, const fbs::ExpertLinear &op) {
    const std::int32_t rows = rowsOf(fbs::Domain::slot);
    if (rows == 0)
      return Status::ok();
    const fbs::Weight &weight = *plan_.weights()->Get(unsigned(op.weight()));
    LinearWork work;
    work.code = codeOf(*weight.encoding());
    work.group = groupOf(weight);
    work.minimum = weight.encoding()->minimum();
    work.parts = partsOf(op.input());
    work.geometry =
        geometryOf(*target_.kernels()->Get(variantFor(launch, rows)));
    work.n = std::int32_t(op.n());
    work.k = std::int32_t(op.k());
    work.outputStride = work.n;
    count(launch, rows,
          expertTraffic(choose(op.experts(), op.top_k()).choice, work));
    return Status::ok();
  }

  Status addRopeWrite(const fbs::Launch &launch,
                      const fbs::RopeCacheWrite &op) {
    const fbs::StateGroup &state = *plan_.states()->Get(unsigned(op.state()));
    RopeWriteWork work;
    work.headDim = std::int32_t(op.head_dim());
    work.heads = std::int32_t(op.heads());
    work.kvHeads = std::int32_t(op.kv_heads());
    work.rotaryDim = std::int32_t(op.rotary_dim());
    work.kv = kindOf(state);
    work.rows = step_->rows;
    work.padding = step_->rows;
    for (const StepSequence &sequence : step_->sequences)
      work.padding -= sequence.numRows;
    work.hasNorm = op.q_norm() >= 0 || op.k_norm() >= 0;
    work.isLayerNorm = op.norm_kind() == fbs::NormKind::layer;
    work.isNormOfRow = op.norm_rows();
    work.hasOwnNorms =
        op.q_norm() >= 0 &&
        plan_.weights()->Get(unsigned(op.q_norm()))->rows() != op.head_dim();
    work.interleaved = op.interleaved();
    count(launch, step_->rows, ropeWriteTraffic(work));
    return Status::ok();
  }

  const CutStep &cut(const AttentionShape &shape) {
    for (const auto &[known, made] : cuts_)
      if (known == shape)
        return made;
    CutStep made;
    const std::size_t rows = std::size_t(step_->rows);
    std::vector<std::int32_t> tables;
    for (std::size_t s = 0; s < step_->sequences.size(); ++s)
      tables.push_back(std::int32_t(s)); // of its own
    made.split.resize(rows);
    made.wide.resize(rows);
    made.rows.assign(rows, {0, -1}); // padding, where nothing else is
    const AttentionTiles tiles =
        cutAttention(shape, step_->sequences, tables,
                     std::numeric_limits<std::int32_t>::max(), made.split,
                     made.wide, made.rows);
    // A graph has a tile for each of its rows.
    made.split.resize(step_->isGraph ? rows : std::size_t(tiles.numSplitTiles));
    made.wide.resize(std::size_t(tiles.numWideTiles));
    made.gridSplits =
        step_->isGraph ? bucketOf(splitsOfStep()) : tiles.maxSplits;
    return cuts_.emplace_back(shape, std::move(made)).second;
  }
  std::int32_t splitsOfStep() const {
    std::int32_t most = 1;
    for (const StepSequence &sequence : step_->sequences)
      most = std::max(
          most, abi::numSplitsOf(sequence.firstPosition, sequence.numRows, 0));
    return most;
  }

  Status addAttention(const fbs::Launch &launch, const fbs::Attention &op) {
    if (op.split_kernel() < 0 || op.merge_kernel() < 0)
      return Status::unsupported("an attention without its three kernels");
    const AttentionShape shape{
        op.state(), std::int32_t(op.heads()), std::int32_t(op.kv_heads()),
        std::int32_t(op.head_dim()), std::int32_t(op.window())};
    const CutStep &tiles = cut(shape);
    AttentionWork work{shape.headDim,
                       shape.heads,
                       shape.kvHeads,
                       shape.window,
                       kindOf(*plan_.states()->Get(unsigned(op.state()))),
                       {},
                       tiles.gridSplits};
    if (!tiles.split.empty()) {
      work.tiles = tiles.split;
      countKernel(std::uint32_t(op.split_kernel()),
                  attentionTraffic(work, true));
    }
    if (!tiles.wide.empty()) {
      work.tiles = tiles.wide;
      countKernel(variantFor(launch, step_->rows),
                  attentionTraffic(work, false));
    }
    countKernel(std::uint32_t(op.merge_kernel()),
                mergeTraffic({shape.heads, shape.headDim, tiles.rows,
                              op.quantized() >= 0, partsOf(op.quantized())}));
    return Status::ok();
  }

  const fbs::Plan &plan_;
  const fbs::Target &target_;
  PredictedCost &made_;
  const StepShape *step_ = nullptr;
  std::vector<std::pair<AttentionShape, CutStep>> cuts_;
  std::map<std::uint32_t, KernelCost> costs_;
  std::map<std::int32_t, Choice> choices_; // by the number of experts
  ExpertSpread spread_ = ExpertSpread::Even;
  std::uint32_t libraryProducts_ = 0;
};

// Index of the level; its name must be one of the target's cubins.
Result<std::uint32_t> findLevel(const fbs::Target &target,
                                const std::string &name) {
  std::string levels;
  for (std::uint32_t i = 0; i < target.levels()->size(); ++i) {
    const std::string own = target.levels()->Get(i)->name()->str();
    auto parsed = CudaLevel::parse(own);
    if (!parsed || parsed->isText)
      continue; // what the driver makes of text nobody knows yet
    if (own == name)
      return i;
    levels += (levels.empty() ? "" : ", ") + own;
  }
  return Status::notFound("the artifact has no cubins for " + name +
                          ", it has " + (levels.empty() ? "none" : levels));
}

} // namespace

Result<PredictedCost> predictCost(const fbs::Plan &plan,
                                  const fbs::Target &target,
                                  const CostRequest &request) {
  PredictedCost made;
  made.level = request.level;
  INGOT_ASSIGN_OR_RETURN(const std::uint32_t level,
                         findLevel(target, request.level));
  INGOT_ASSIGN_OR_RETURN(made.chip, chipOfLevel(request.level));
  for (const fbs::Kernel *kernel : *target.kernels()) {
    KernelFacts facts;
    facts.name = kernel->name()->str();
    facts.op = kernel->op()->str();
    facts.needs.threads = std::int32_t(kernel->block_threads());
    facts.needs.sharedBytes = std::int32_t(kernel->shared_bytes());
    for (const fbs::KernelSymbol *symbol : *kernel->symbols())
      if (symbol->level() == level) {
        facts.needs.registers =
            std::int32_t(std::min(symbol->registers(), 1u << 16));
        facts.needs.sharedBytes +=
            std::int32_t(std::min(symbol->static_shared_bytes(), 1u << 20));
        facts.spillBytes = symbol->spill_bytes();
      }
    facts.occupancy = occupancyOf(made.chip, facts.needs);
    made.kernels.push_back(std::move(facts));
  }
  Predictor predictor(plan, target, made);
  for (std::int32_t rows : request.rows) {
    StepShape step;
    step.isGraph = rows <= kMostGraphRows;
    step.rows = step.logitRows = step.isGraph ? bucketOf(rows) : rows;
    for (std::int32_t i = 0; i < rows; ++i)
      step.sequences.push_back(
          {std::uint64_t(i), i, 1, request.context - 1, 0});
    INGOT_ASSIGN_OR_RETURN(
        StepCost cost,
        predictor.predict("decode " + std::to_string(rows), step));
    cost.rows = rows;
    cost.context = request.context;
    made.weightsBytes =
        std::max(made.weightsBytes, cost.traffic.weights.bytes());
    made.steps.push_back(std::move(cost));
  }
  if (request.prompt > 0) {
    StepShape step;
    step.rows = request.prompt;
    step.logitRows = 1;
    step.sequences.push_back({0, 0, request.prompt, 0, 0});
    INGOT_ASSIGN_OR_RETURN(
        StepCost cost,
        predictor.predict("prompt " + std::to_string(request.prompt), step));
    cost.context = request.prompt;
    made.steps.push_back(std::move(cost));
  }
  return made;
}

} // namespace ingot::cuda
