// A walk over the program's block with a map of values. State is local to a
// run: keys and values of each (state, layer), rounded to the state's dtype.
#include "compiler/reference/LmExecutor.h"

#include "compiler/kernels/Exp.h"
#include "compiler/kernels/reference/Scalar.h"

#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

using namespace mlir;

namespace ingot {
namespace {

// Each head to the numbers that its codes in an int8 cache stand for. (A kernel
// multiplies by the scale once for a sum over codes: the difference is rounding.)
void roundHeads(std::vector<float> &numbers, std::int32_t headDim) {
  std::vector<std::int8_t> codes(static_cast<std::size_t>(headDim));
  for (std::size_t at = 0; at < numbers.size(); at += codes.size()) {
    float scale =
        reference::quantizeHead(numbers.data() + at, headDim, codes.data());
    for (std::size_t d = 0; d < codes.size(); ++d)
      numbers[at + d] = static_cast<float>(codes[d]) * scale;
  }
}

class Run : public LmRun {
public:
  Run(const std::map<std::string, LoadedWeight> &weights,
      std::span<const std::int32_t> tokens, std::span<const std::int64_t> rows,
      LmObserver *observer = nullptr)
      : weights_(weights), tokens_(tokens), rows_(rows),
        positions_(tokens.size()), observer_(observer) {
    std::iota(positions_.begin(), positions_.end(), 0);
  }

  Status execute(Operation &op);
  const LmRows &value(Value value) const { return values_.at(value); }

  LmRows *rows(Value value) override {
    auto found = values_.find(value);
    return found == values_.end() ? nullptr : &found->second;
  }
  const LoadedWeight &weight(llvm::StringRef name) const override {
    return weights_.at(name.str());
  }

private:
  using CacheKey = std::pair<std::string, std::uint64_t>;
  LmRows quantizedAs(LmRows rows, Type type) const {
    if (auto quantized = dyn_cast<lm::QuantizedType>(type))
      return quantizeRows(rows, quantized.getGroup(), quantized.getBits());
    return rows;
  }
  template <typename OpT>
  Status store(OpT op, const LmRows &keys, const LmRows &values) {
    Type dtype = lm::lookupState(op, op.getStateAttr()).getDtype();
    auto headDim = static_cast<std::int32_t>(op.getHeadDim());
    auto round = [&](std::vector<float> numbers) {
      if (dtype.isF16())
        for (float &x : numbers)
          x = reference::fromHalf(reference::toHalf(x));
      else if (dtype.isInteger(8))
        roundHeads(numbers, headDim);
      return numbers;
    };
    LmCache &cache = caches_[CacheKey{op.getState().str(), op.getStateLayer()}];
    cache = {round(keys.values), round(values.values)};
    return observer_ ? observer_->stored(*op, cache, *this) : Status::ok();
  }
  template <typename OpT> LmRows attend(OpT op) const {
    const LmCache &cache =
        caches_.at(CacheKey{op.getState().str(), op.getStateLayer()});
    AttentionShape shape{static_cast<std::int64_t>(op.getHeads()),
                         static_cast<std::int64_t>(op.getKvHeads()),
                         static_cast<std::int64_t>(op.getHeadDim()),
                         static_cast<std::int64_t>(op.getWindow()),
                         op.getScale().convertToFloat(),
                         op.getSoftCap().convertToFloat(),
                         op.getBidirectional(),
                         op.getSlopes().value_or(llvm::ArrayRef<float>()),
                         op.getRoundedSlopes()};
    return attendRows(value(op.getQuery()), cache.keys, cache.values, shape);
  }

  LmRows embed(lm::EmbedOp op) const;
  LmRows rmsNorm(lm::RmsNormOp op) const;
  LmRows headNorm(LmRows rows, llvm::StringRef weightName, std::int64_t heads,
                  std::int64_t headDim, float eps, lm::NormKind kind,
                  float weightOffset) const;
  LmRows rotate(LmRows rows, const LmRows &table, std::int64_t heads,
                std::int64_t headDim, std::int64_t rotaryDim,
                bool interleaved) const;
  LmRows gate(lm::GateOp op) const;
  LmRows pool(lm::PoolOp op) const;
  LmRows concat(lm::ConcatOp op) const;
  LmRows columns(const LmRows &from, std::int64_t first,
                 std::int64_t count) const;
  void split(lm::SplitOp op);
  Status ropeCacheWrite(lm::RopeCacheWriteOp op);

  const std::map<std::string, LoadedWeight> &weights_;
  std::span<const std::int32_t> tokens_;
  std::span<const std::int64_t> rows_;
  std::vector<std::int32_t> positions_;
  llvm::DenseMap<Value, LmRows> values_;
  std::map<CacheKey, LmCache> caches_;
  LmObserver *observer_ = nullptr;
};

LmRows Run::embed(lm::EmbedOp op) const {
  const LoadedWeight &table = weight(op.getTable());
  auto program = op->getParentOfType<lm::ProgramOp>();
  std::span<const std::int32_t> ids = tokens_;
  if (op.getTokens() == program.getPositions())
    ids = positions_;
  LmRows result = LmRows::zeros(tokens_.size(), table.columns);
  float scale = op.getScale().convertToFloat();
  for (std::size_t t = 0; t < tokens_.size(); ++t)
    for (std::int64_t k = 0; k < table.columns; ++k)
      result.row(t)[k] = table.values[ids[t] * table.columns + k] * scale;
  if (op.getBias()) {
    const LoadedWeight &bias = weight(*op.getBias());
    for (std::size_t t = 0; t < tokens_.size(); ++t)
      for (std::int64_t k = 0; k < table.columns; ++k)
        result.row(t)[k] = result.row(t)[k] + bias.values[k];
  }
  return result;
}

LmRows Run::rmsNorm(lm::RmsNormOp op) const {
  LmRows rows = value(op.getInput());
  for (std::int64_t t = 0; t < rows.rows; ++t)
    normalizeInPlace(
        rows.row(t), rows.columns, weight(op.getWeight()).values.data(),
        op.getEps().convertToFloat(), op.getWeightOffset().convertToFloat());
  return quantizedAs(std::move(rows), op.getType());
}

LmRows Run::headNorm(LmRows rows, llvm::StringRef weightName,
                     std::int64_t heads, std::int64_t headDim, float eps,
                     lm::NormKind kind, float weightOffset) const {
  const LoadedWeight &of = weight(weightName);
  std::int64_t stride = of.rows == headDim ? 0 : headDim;
  for (std::int64_t t = 0; t < rows.rows; ++t)
    for (std::int64_t h = 0; h < heads; ++h) {
      const float *scales = of.values.data() + h * stride;
      if (kind == lm::NormKind::Layer)
        centreInPlace(rows.row(t) + h * headDim, headDim, scales, nullptr, eps);
      else
        normalizeInPlace(rows.row(t) + h * headDim, headDim, scales, eps,
                         weightOffset);
    }
  return rows;
}

LmRows Run::rotate(LmRows rows, const LmRows &table, std::int64_t heads,
                   std::int64_t headDim, std::int64_t rotaryDim,
                   bool interleaved) const {
  for (std::int64_t t = 0; t < rows.rows; ++t)
    rotateInPlace(rows.row(t), heads, headDim, table.row(t), rotaryDim,
                  interleaved);
  return rows;
}

LmRows Run::gate(lm::GateOp op) const {
  const LmRows &both = value(op.getGateUp());
  std::int64_t width = both.columns / 2;
  LmRows result = LmRows::zeros(both.rows, width);
  for (std::int64_t t = 0; t < both.rows; ++t)
    for (std::int64_t f = 0; f < width; ++f)
      result.row(t)[f] =
          activate(op.getActivation(), both.row(t)[f]) * both.row(t)[width + f];
  return quantizedAs(std::move(result), op.getType());
}

// Every chosen row is of the one sequence.
LmRows Run::pool(lm::PoolOp op) const {
  const LmRows &from = value(op.getInput());
  LmRows result = LmRows::zeros(rows_.size(), from.columns);
  for (std::int64_t r = 0; r < result.rows; ++r) {
    float *to = result.row(r);
    bool isMean = op.getKind() == lm::PoolKind::Mean;
    bool isLast = op.getKind() == lm::PoolKind::Last;
    std::copy_n(from.row(isLast ? from.rows - 1 : 0), from.columns, to);
    if (isMean)
      for (std::int64_t k = 0; k < from.columns; ++k) {
        for (std::int64_t t = 1; t < from.rows; ++t)
          to[k] = to[k] + from.row(t)[k];
        to[k] = to[k] / static_cast<float>(from.rows);
      }
    if (op.getNormalize())
      reference::normalizeLength(to, static_cast<std::int32_t>(from.columns));
  }
  return result;
}

LmRows Run::columns(const LmRows &from, std::int64_t first,
                    std::int64_t count) const {
  LmRows result = LmRows::zeros(from.rows, count);
  for (std::int64_t t = 0; t < from.rows; ++t)
    std::copy_n(from.row(t) + first, count, result.row(t));
  return result;
}

LmRows Run::concat(lm::ConcatOp op) const {
  LmRows result = LmRows::zeros(value(op.getParts().front()).rows,
                                lm::columnsOf(op.getType()));
  std::int64_t first = 0;
  for (Value operand : op.getParts()) {
    const LmRows &part = value(operand);
    for (std::int64_t t = 0; t < part.rows; ++t)
      std::copy_n(part.row(t), part.columns, result.row(t) + first);
    first += part.columns;
  }
  return result;
}

void Run::split(lm::SplitOp op) {
  LmRows from = value(op.getInput());
  std::int64_t first = 0;
  for (Value part : op.getParts()) {
    std::int64_t count = lm::columnsOf(part.getType());
    values_[part] = columns(from, first, count);
    first += count;
  }
}

Status Run::ropeCacheWrite(lm::RopeCacheWriteOp op) {
  const LmRows qkv = value(op.getQkv());
  std::int64_t heads = op.getHeads(), kvHeads = op.getKvHeads();
  std::int64_t headDim = op.getHeadDim();
  float eps = op.getNormEps().convertToFloat();
  LmRows q = columns(qkv, 0, heads * headDim);
  LmRows k = columns(qkv, heads * headDim, kvHeads * headDim);
  LmRows v = columns(qkv, (heads + kvHeads) * headDim, kvHeads * headDim);
  if (op.getQNorm()) {
    float offset = op.getNormOffset().convertToFloat();
    bool rows = op.getNormRows();
    q = headNorm(std::move(q), *op.getQNorm(), rows ? 1 : heads,
                 rows ? heads * headDim : headDim, eps, op.getNormKind(),
                 offset);
    k = headNorm(std::move(k), *op.getKNorm(), rows ? 1 : kvHeads,
                 rows ? kvHeads * headDim : headDim, eps, op.getNormKind(),
                 offset);
  }
  if (op.getTable()) {
    const LmRows table = value(op.getTable());
    q = rotate(std::move(q), table, heads, headDim, op.getRotaryDim(),
               op.getInterleaved());
    k = rotate(std::move(k), table, kvHeads, headDim, op.getRotaryDim(),
               op.getInterleaved());
  }
  values_[op.getQuery()] = std::move(q);
  return store(op, k, v);
}

Status Run::execute(Operation &op) {
  auto set = [&](LmRows rows) { values_[op.getResult(0)] = std::move(rows); };
  Status status;
  llvm::TypeSwitch<Operation *>(&op)
      .Case([&](lm::EmbedOp embedOp) { set(embed(embedOp)); })
      .Case([&](lm::RopeTableOp table) {
        set(ropeTableRows(positions_, weight(table.getInvFreq()), table));
      })
      .Case([&](lm::RmsNormOp norm) { set(rmsNorm(norm)); })
      .Case([&](lm::LinearOp linear) {
        set(linearRows(value(linear.getInput()), weight(linear.getWeight()),
                       linear.getBias() ? &weight(*linear.getBias()) : nullptr,
                       linear.getResidual() ? &value(linear.getResidual())
                                            : nullptr));
      })
      .Case([&](lm::HeadNormOp norm) {
        set(headNorm(value(norm.getInput()), norm.getWeight(), norm.getHeads(),
                     norm.getHeadDim(), norm.getEps().convertToFloat(),
                     norm.getKind(), norm.getWeightOffset().convertToFloat()));
      })
      .Case([&](lm::RotaryOp rotary) {
        set(rotate(value(rotary.getInput()), value(rotary.getTable()),
                   rotary.getHeads(), rotary.getHeadDim(),
                   rotary.getRotaryDim(), rotary.getInterleaved()));
      })
      .Case([&](lm::AttentionOp attention) {
        status = store(attention, value(attention.getKey()),
                       value(attention.getValue()));
        if (status)
          set(attend(attention));
      })
      .Case([&](lm::AddOp add) {
        LmRows sum = value(add.getResidual());
        const LmRows &update = value(add.getUpdate());
        float scale = add.getScale().convertToFloat();
        for (std::size_t i = 0; i < sum.values.size(); ++i)
          sum.values[i] =
              sum.values[i] +
              (scale == 1.0f ? update.values[i] : update.values[i] * scale);
        set(std::move(sum));
      })
      .Case([&](lm::LayerNormOp norm) {
        LmRows rows = value(norm.getInput());
        const float *bias =
            norm.getBias() ? weight(*norm.getBias()).values.data() : nullptr;
        for (std::int64_t t = 0; t < rows.rows; ++t)
          centreInPlace(rows.row(t), rows.columns,
                        weight(norm.getWeight()).values.data(), bias,
                        norm.getEps().convertToFloat());
        set(quantizedAs(std::move(rows), norm.getType()));
      })
      .Case([&](lm::ActivateOp activateOp) {
        LmRows rows = value(activateOp.getInput());
        for (float &x : rows.values)
          x = activate(activateOp.getActivation(), x);
        set(quantizedAs(std::move(rows), activateOp.getType()));
      })
      .Case([&](lm::CapOp cap) {
        LmRows rows = value(cap.getInput());
        float scale = cap.getScale().convertToFloat();
        float softCap = cap.getSoftCap().convertToFloat();
        for (float &x : rows.values) {
          x = scale == 1.0f ? x : x * scale;
          if (softCap != 0.0f)
            x = kernels::softCapLaw(x, softCap);
        }
        set(std::move(rows));
      })
      .Case([&](lm::GateOp gateOp) { set(gate(gateOp)); })
      .Case([&](lm::RouteOp route) {
        set(routeRows(value(route.getLogits()), route.getTopK(),
                      route.getNormalized()));
      })
      .Case([&](lm::DispatchOp dispatch) {
        const LmRows &from = value(dispatch.getInput());
        const LmRows &routes = value(dispatch.getRoutes());
        std::vector<std::int64_t> order = orderSlots(routes);
        LmRows slots = LmRows::zeros(order.size(), from.columns);
        for (std::size_t r = 0; r < order.size(); ++r)
          std::copy_n(from.row(order[r] / (routes.columns / 2)), from.columns,
                      slots.row(r));
        set(std::move(slots));
      })
      .Case([&](lm::ExpertLinearOp linear) {
        set(expertLinearRows(
            value(linear.getInput()), value(linear.getRoutes()),
            weight(linear.getWeight()), lm::columnsOf(linear.getType())));
      })
      .Case([&](lm::CombineOp combine) {
        set(combineRows(value(combine.getInput()), value(combine.getRoutes())));
      })
      .Case([&](lm::SplitOp splitOp) { split(splitOp); })
      .Case([&](lm::ConcatOp concatOp) { set(concat(concatOp)); })
      .Case([&](lm::SelectRowsOp select) {
        const LmRows &from = value(select.getInput());
        LmRows selected = LmRows::zeros(rows_.size(), from.columns);
        for (std::size_t r = 0; r < rows_.size(); ++r)
          std::copy_n(from.row(rows_[r]), from.columns, selected.row(r));
        set(std::move(selected));
      })
      .Case([&](lm::PoolOp poolOp) { set(pool(poolOp)); })
      .Case([&](lm::QuantizeOp quantize) {
        set(quantizeRows(value(quantize.getInput()),
                         quantize.getType().getGroup(),
                         quantize.getType().getBits()));
      })
      .Case([&](lm::CutOp cut) { set(value(cut.getInput())); })
      .Case([&](lm::RopeCacheWriteOp write) { status = ropeCacheWrite(write); })
      .Case([&](lm::CachedAttentionOp attention) {
        set(quantizedAs(attend(attention), attention.getType()));
      })
      .Default([&](Operation *) {
        status = Status::unsupported("the reference executor has no " +
                                     op.getName().getStringRef().str());
      });
  return status && observer_ ? observer_->ran(op, *this) : status;
}

} // namespace

Result<LmExecutor> LmExecutor::create(ModuleOp module,
                                      const std::string &folder) {
  LmExecutor executor;
  auto programs = llvm::to_vector(module.getOps<lm::ProgramOp>());
  if (programs.size() != 1)
    return Status::invalid("expected one lm.program, found " +
                           std::to_string(programs.size()));
  executor.program_ = programs.front();
  INGOT_ASSIGN_OR_RETURN(executor.files_, LmSourceFiles::open(module, folder));
  for (lm::WeightOp weight : module.getOps<lm::WeightOp>()) {
    INGOT_ASSIGN_OR_RETURN(LoadedWeight loaded, executor.files_.load(weight));
    executor.weights_.emplace(weight.getSymName().str(), std::move(loaded));
  }
  return executor;
}

Status LmExecutor::checkTokens(std::span<const std::int32_t> tokens) const {
  lm::ProgramOp program = program_;
  for (auto embed : program.getEntryBlock().getOps<lm::EmbedOp>()) {
    std::int64_t rows = weights_.at(embed.getTable().str()).rows;
    if (embed.getTokens() == program.getPositions()) {
      if (std::ssize(tokens) > rows)
        return Status::invalid(std::to_string(tokens.size()) +
                               " tokens, the model has " +
                               std::to_string(rows) + " positions");
      continue;
    }
    for (std::int32_t token : tokens)
      if (token < 0 || token >= rows)
        return Status::invalid("token id " + std::to_string(token) +
                               " is outside the embedding");
  }
  return Status::ok();
}

Status LmExecutor::observe(std::span<const std::int32_t> tokens,
                           LmObserver &observer) const {
  lm::ProgramOp program = program_;
  INGOT_RETURN_IF_ERROR(checkTokens(tokens));
  std::vector<std::int64_t> rows(tokens.size());
  std::iota(rows.begin(), rows.end(), 0);
  Run run(weights_, tokens, rows, &observer);
  for (Operation &op : program.getEntryBlock().without_terminator()) {
    auto exit = dyn_cast<lm::ExitOp>(op);
    if (!exit) {
      INGOT_RETURN_IF_ERROR(run.execute(op));
      continue;
    }
    for (Operation &inner : exit.getHead().front().without_terminator())
      INGOT_RETURN_IF_ERROR(run.execute(inner));
  }
  return Status::ok();
}

Result<LoadedWeight> LmExecutor::load(lm::WeightOp weight,
                                      lm::EncodingAttr encoding) const {
  if (encoding == weight.getEncoding())
    return weights_.at(weight.getSymName().str());
  lm::WeightOp other = weight.clone();
  other.setEncodingAttr(encoding);
  Result<LoadedWeight> loaded = files_.load(other);
  other->destroy();
  return loaded;
}

Result<std::vector<float>> LmExecutor::run(std::span<const std::int32_t> tokens,
                                           std::span<const std::int64_t> rows,
                                           const std::string &exitName) const {
  lm::ProgramOp program = program_;
  INGOT_RETURN_IF_ERROR(checkTokens(tokens));
  for (std::int64_t row : rows)
    if (row < 0 || row >= static_cast<std::int64_t>(tokens.size()))
      return Status::invalid("row " + std::to_string(row) + " of " +
                             std::to_string(tokens.size()) + " tokens");
  Run run(weights_, tokens, rows);
  for (Operation &op : program.getEntryBlock()) {
    if (isa<lm::ReturnOp>(op) && !exitName.empty())
      break;
    if (auto end = dyn_cast<lm::ReturnOp>(op))
      return run.value(end.getLogits()).values;
    if (auto exit = dyn_cast<lm::ExitOp>(op)) {
      if (exit.getName() != exitName)
        continue;
      for (Operation &inner : exit.getHead().front().without_terminator())
        INGOT_RETURN_IF_ERROR(run.execute(inner));
      return run.value(exit.getHead().front().getTerminator()->getOperand(0))
          .values;
    }
    INGOT_RETURN_IF_ERROR(run.execute(op));
  }
  return exitName.empty()
             ? Status::internal("the program does not return")
             : Status::notFound("the program has no exit \"" + exitName + "\"");
}

} // namespace ingot
