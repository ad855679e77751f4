// The module runs; behind each operator
// 1. its result is rounded as the recording keeps it: with the recording's rows
//    and encoding of the weight, to the recording's codes or halves;
// 2. it is compared with what was recorded under the same name;
// 3. it is replaced by that, so that the next operator starts from there.
#include "compiler/debug/Comparison.h"

#include "compiler/debug/LaunchDetails.h"
#include "compiler/kernels/reference/Scalar.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace mlir;

namespace ingot::debug {
namespace {

// Methods other than round-to-nearest choose codes that may lie further off: of all
// positions together, of one position, of one column.
constexpr double kBudget = 1.5, kRowBudget = 4, kColumnBudget = 2.5;

LmRows asStored(LmRows rows, const RecordedTensor &like) {
  switch (like.storage) {
  case Storage::F32:
    break;
  case Storage::Quantized:
    return floatRows(quantizeRows(rows, like.rows.group, bitsOf(like.rows)));
  case Storage::F16:
    for (float &x : rows.values)
      x = reference::fromHalf(reference::toHalf(x));
    break;
  case Storage::I8Heads: {
    std::vector<std::int8_t> codes(std::size_t(like.headDim));
    for (std::size_t at = 0; at < rows.values.size(); at += codes.size()) {
      float scale = reference::quantizeHead(
          rows.values.data() + at, static_cast<std::int32_t>(like.headDim),
          codes.data());
      for (std::size_t d = 0; d < codes.size(); ++d)
        rows.values[at + d] = static_cast<float>(codes[d]) * scale;
    }
    break;
  }
  }
  return rows;
}

class LocalComparison : public LmObserver {
public:
  LocalComparison(const Recording &recording, const LmExecutor &executor,
                  std::span<const std::int32_t> tokens,
                  const CompareOptions &options)
      : recording_(recording), executor_(executor), tokens_(tokens),
        options_(options) {
    comparison_.observed = recording.source;
    comparison_.changedSlots = recording.changedSlots;
    for (const Producer &producer : recording.producers)
      if (producer.encoding && producer.origins.size() > 1)
        for (const lm::Origin &origin : producer.origins)
          if (origin.columns == 0)
            fusedInto_.emplace(origin.name, &producer);
  }

  Comparison take() {
    for (const RecordedTensor &tensor : recording_.tensors)
      if (!seen_.count(tensor.name) &&
          recording_.producerOf(tensor).op != "rope_table")
        comparison_.onlyObserved.push_back(tensor.name);
    llvm::erase_if(comparison_.onlyReference, [&](const std::string &name) {
      return seen_.count(name) != 0;
    });
    return std::move(comparison_);
  }

  Status stored(Operation &op, LmCache &cache, LmRun &run) override {
    std::string prefix = attentionPrefix(op);
    Value query;
    llvm::SmallVector<Value, 4> made;
    llvm::TypeSwitch<Operation *>(&op)
        .Case([&](lm::AttentionOp attention) {
          query = attention.getQuery();
          made = {attention.getKey(), attention.getValue()};
        })
        .Case([&](lm::RopeCacheWriteOp write) {
          query = write.getQuery();
          made = {write.getQkv()};
        });
    // Of an unfused attention the query is the result of another operator.
    Operation *maker = query.getDefiningOp();
    if (const RecordedTensor *tensor = find(prefix + ".query")) {
      if (forced_.contains(query))
        seen_.insert(tensor->name); // under its own name
      else
        INGOT_RETURN_IF_ERROR(compare(*tensor, *maker, query, 0,
                                      lm::columnsOf(query.getType()), run));
    }
    for (bool ofKeys : {true, false}) {
      const RecordedTensor *tensor =
          find(prefix + (ofKeys ? ".keys" : ".values"));
      if (!tensor)
        continue;
      std::vector<float> &values = ofKeys ? cache.keys : cache.values;
      LmRows rows;
      rows.columns = tensor->rows.columns;
      rows.rows = rows.columns ? std::int64_t(values.size()) / rows.columns : 0;
      rows.values = values;
      if (rows.rows != tensor->rows.rows ||
          rows.rows * rows.columns != std::int64_t(values.size())) {
        comparison_.onlyReference.push_back(tensor->name);
        continue;
      }
      Operation *from = &op;
      if (made.size() == 2)
        if (Operation *definer = made[ofKeys ? 0 : 1].getDefiningOp())
          from = definer;
      report(*tensor, *from,
             measure(floatRows(tensor->rows), asStored(rows, *tensor), nullptr,
                     options_.tolerance + slackOf(*tensor)),
             "");
      values = floatRows(tensor->rows).values;
    }
    return Status::ok();
  }

  Status ran(Operation &op, LmRun &run) override {
    if (isa<lm::RopeTableOp>(op))
      return Status::ok(); // its effect is the query's and the keys'
    if (isa<lm::RopeCacheWriteOp>(op))
      return Status::ok(); // compared when it stored
    slots_.follow(op, run);
    for (const NamedResult &named : namedResults(op)) {
      const RecordedTensor *tensor = find(named.name);
      if (!tensor) {
        comparison_.onlyReference.push_back(named.name);
        INGOT_RETURN_IF_ERROR(runAsFused(named, op, run));
        continue;
      }
      INGOT_RETURN_IF_ERROR(
          compare(*tensor, op, named.value, named.first, named.columns, run));
    }
    return Status::ok();
  }

private:
  const RecordedTensor *find(const std::string &name) const {
    return recording_.find(name);
  }

  // An operator that is but a part of one of the recording's: it goes on as
  // that one's encoding has it, and what it gave is kept as the exact result.
  Status runAsFused(const NamedResult &named, Operation &op, LmRun &run) {
    auto found = fusedInto_.find(named.name);
    if (found == fusedInto_.end())
      return Status::ok();
    std::string note;
    INGOT_ASSIGN_OR_RETURN(std::optional<LmRows> other,
                           reencoded(*found->second, op, run, note));
    if (!other)
      return Status::ok();
    exact_[named.value] = {std::move(*run.rows(named.value)), note};
    *run.rows(named.value) = std::move(*other);
    return Status::ok();
  }

  // What `op` gives from the recording's own rows, with its weight encoded as the
  // recording's; nothing where that is what it gave already.
  Result<std::optional<LmRows>> reencoded(const Producer &producer,
                                          Operation &op, LmRun &run,
                                          std::string &note) {
    std::optional<LmRows> result;
    lm::WeightOp weight = mainWeight(op);
    if (!weight || !producer.encoding)
      return result;
    lm::EncodingAttr encoding =
        lm::encodingAttr(op.getContext(), *producer.encoding);
    bool differs = encoding != weight.getEncoding();
    if (auto embed = dyn_cast<lm::EmbedOp>(op)) {
      if (!differs)
        return result;
      INGOT_ASSIGN_OR_RETURN(LoadedWeight table,
                             executor_.load(weight, encoding));
      LmRows rows = *run.rows(embed.getResult());
      float scale = embed.getScale().convertToFloat();
      // The row of the table that each row is: the run knows the tokens.
      for (std::int64_t t = 0; t < rows.rows; ++t) {
        std::int64_t id =
            embed.getTokens() ==
                    op.getParentOfType<lm::ProgramOp>().getPositions()
                ? t
                : tokens_[std::size_t(t)];
        for (std::int64_t k = 0; k < rows.columns; ++k)
          rows.row(t)[k] = table.values[id * table.columns + k] * scale;
      }
      note = "table as " + encodingText(*producer.encoding);
      result = std::move(rows);
      return result;
    }
    Value inputValue = op.getOperand(0);
    LmRows input = *run.rows(inputValue);
    bool isInteger = encoding.isInteger();
    bool takesCodes = isInteger && input.group == 0;
    if (!differs && !takesCodes)
      return result;
    if (isInteger && (input.group == 0 ||
                      input.group != std::int64_t(encoding.getGroup()))) {
      // The very rows that the recording's operator read, where they are known.
      const LmRows *codes = nullptr;
      for (std::size_t index : producer.inputs) {
        const LmRows &rows = recording_.tensors[index].rows;
        if (rows.group == std::int64_t(encoding.getGroup()) &&
            rows.columns == input.columns && rows.rows == input.rows)
          codes = &rows;
      }
      const auto *order = slots_.of(inputValue);
      input = codes ? (order ? inExpertOrder(*codes, *order) : *codes)
                    : quantizeRows(floatRows(input), encoding.getGroup(),
                                   encoding.getActivationBits());
    } else if (!isInteger) {
      input = floatRows(input);
    }
    INGOT_ASSIGN_OR_RETURN(LoadedWeight other,
                           executor_.load(weight, encoding));
    if (auto linear = dyn_cast<lm::LinearOp>(op)) {
      result = linearRows(
          input, other,
          linear.getBias() ? &run.weight(*linear.getBias()) : nullptr,
          linear.getResidual() ? run.rows(linear.getResidual()) : nullptr);
    } else if (auto expert = dyn_cast<lm::ExpertLinearOp>(op)) {
      result = expertLinearRows(input, *run.rows(expert.getRoutes()), other,
                                lm::columnsOf(expert.getType()));
    }
    if (differs)
      note = "weight as " + encodingText(*producer.encoding);
    return result;
  }

  // What the result stands on: a sum is as large as what it adds.
  static const LmRows *baseOf(Operation &op, LmRun &run) {
    if (auto add = dyn_cast<lm::AddOp>(op))
      return run.rows(add.getResidual());
    if (auto linear = dyn_cast<lm::LinearOp>(op))
      if (linear.getResidual())
        return run.rows(linear.getResidual());
    return nullptr;
  }

  Status compare(const RecordedTensor &tensor, Operation &op, Value value,
                 std::int64_t first, std::int64_t columns, LmRun &run) {
    LmRows &whole = *run.rows(value);
    if (tensor.rows.columns != columns || tensor.rows.rows != whole.rows) {
      comparison_.onlyReference.push_back(tensor.name);
      return Status::ok();
    }
    std::string note;
    INGOT_ASSIGN_OR_RETURN(
        std::optional<LmRows> other,
        reencoded(recording_.producerOf(tensor), op, run, note));
    const auto *order = slots_.of(value);
    auto part = [&](const LmRows &rows) {
      LmRows chosen = debug::columnsOf(rows, first, columns);
      return order ? inSlotOrder(chosen, *order) : chosen;
    };
    LmRows own = part(whole);
    LmRows expected = asStored(other ? part(*other) : own, tensor);
    LmRows actual = floatRows(tensor.rows);
    std::optional<LmRows> base;
    if (const LmRows *rows = baseOf(op, run))
      base = debug::columnsOf(*rows, first, columns);
    if (auto add = dyn_cast<lm::AddOp>(op))
      if (auto exact = exact_.find(add.getUpdate()); exact != exact_.end()) {
        other = own;
        note = exact->second.note;
        for (std::size_t i = 0; i < own.values.size(); ++i)
          own.values[i] = base->values[i] + exact->second.rows.values[i] *
                                                add.getScale().convertToFloat();
      }
    Measured measured = measure(actual, expected, base ? &*base : nullptr,
                                options_.tolerance + slackOf(tensor));
    if (!measured.isWithin() && other && !recording_.roundsToNearest) {
      Measured lenient =
          withinBudget(actual, expected, own, base ? &*base : nullptr, tensor);
      note += ", which a calibrated method may choose otherwise";
      measured = lenient;
    }
    report(tensor, op, measured, note);
    force(tensor, value, first, columns, run);
    return Status::ok();
  }

  // A weight is the same at all positions, so what its encoding costs is judged over
  // all of them: a calibrated one may be as far from the exact result as
  // round-to-nearest is, and half as much again (more where positions are few); no
  // position or column by itself much more.
  Measured withinBudget(const LmRows &actual, const LmRows &rounded,
                        const LmRows &exact, const LmRows *base,
                        const RecordedTensor &tensor) const {
    double least = options_.tolerance + slackOf(tensor);
    Measured cost = measure(rounded, exact, base, 0);
    double share =
        kBudget + (kRowBudget - kBudget) / std::sqrt(double(exact.rows));
    double allowed = least + share * cost.error;
    std::vector<double> rows(std::size_t(exact.rows));
    for (std::int64_t r = 0; r < exact.rows; ++r) {
      LmRows a = debug::rowOf(rounded, r), b = debug::rowOf(exact, r);
      std::optional<LmRows> stands;
      if (base)
        stands = debug::rowOf(*base, r);
      double own = measure(a, b, stands ? &*stands : nullptr, 0).error;
      rows[std::size_t(r)] = least + kRowBudget * std::max(cost.error, own);
    }
    Measured measured = measure(actual, exact, base, allowed, rows);
    if (!measured.isWithin())
      return measured;
    if (measured.error > allowed) {
      measured.numBeyond = exact.rows;
      measured.firstBeyond = 0;
      measured.worst = measured.error;
      measured.allowedOfWorst = allowed;
      return measured;
    }
    for (std::int64_t k = 0; k < exact.columns; ++k) {
      double own = 0, nearest = 0, size = 0;
      for (std::int64_t r = 0; r < exact.rows; ++r) {
        own += std::pow(double(actual.row(r)[k]) - exact.row(r)[k], 2);
        nearest += std::pow(double(rounded.row(r)[k]) - exact.row(r)[k], 2);
        size += std::pow(double(exact.row(r)[k]), 2);
      }
      double limit = kColumnBudget * std::sqrt(nearest) +
                     (allowed + cost.error) * std::sqrt(size);
      if (std::sqrt(own) <= limit)
        continue;
      measured.numBeyond = exact.rows;
      measured.firstBeyond = 0;
      measured.worstColumn = k;
      measured.worst = std::sqrt(own / std::max(size, 1e-30));
      measured.allowedOfWorst = limit / std::sqrt(std::max(size, 1e-30));
      break;
    }
    return measured;
  }

  void report(const RecordedTensor &tensor, Operation &op,
              const Measured &measured, const std::string &note) {
    if (!seen_.insert(tensor.name).second)
      return;
    const Producer &producer = recording_.producerOf(tensor);
    Difference difference;
    difference.name = tensor.name;
    difference.op = op.getName().stripDialect().str();
    describe(op, difference);
    difference.layer = layerOf(tensor.name);
    fill(difference, measured);
    // Of experts, a row is one of a position's slots.
    std::int64_t slots = std::max<std::int64_t>(
        1, tensor.rows.rows / std::max<std::int64_t>(1, std::ssize(tokens_)));
    if (difference.firstPosition >= 0)
      difference.firstPosition /= slots;
    if (difference.worstPosition >= 0)
      difference.worstPosition /= slots;
    difference.launch = producer.name;
    difference.kernel = producer.kernel;
    difference.settings = producer.settings;
    difference.referenceSettings = settingsOf(op);
    difference.note = note;
    comparison_.numPositions = tokens_.size();
    comparison_.differences.push_back(std::move(difference));
  }

  // The operator and those before it whose results were not compared.
  void describe(Operation &op, Difference &difference) const {
    std::set<std::string> known;
    std::vector<Operation *> ops;
    auto visit = [&](auto &&self, Operation &at) -> void {
      for (Value operand : at.getOperands()) {
        Operation *maker = operand.getDefiningOp();
        if (maker && !forced_.contains(operand) &&
            !isa<lm::RopeTableOp, lm::SplitOp, lm::ConcatOp, lm::CutOp>(maker))
          self(self, *maker);
      }
      if (!llvm::is_contained(ops, &at))
        ops.push_back(&at);
    };
    visit(visit, op);
    for (Operation *at : ops) {
      for (const lm::Origin &origin : lm::originsOf(at->getLoc()))
        if (known.insert(origin.name).second)
          difference.operators.push_back(origin.name);
      std::string settings = settingsOf(*at);
      if (settings.empty())
        continue;
      if (ops.size() > 1)
        settings = lm::locationName(at->getLoc()).str() + ": " + settings;
      difference.referenceSettings +=
          (difference.referenceSettings.empty() ? "" : "; ") + settings;
    }
  }

  void force(const RecordedTensor &tensor, Value value, std::int64_t first,
             std::int64_t columns, LmRun &run) {
    LmRows &whole = *run.rows(value);
    forced_.insert(value);
    bool isAll = columns == whole.columns;
    const auto *order = slots_.of(value);
    LmRows recorded = order ? inExpertOrder(tensor.rows, *order) : tensor.rows;
    if (whole.group > 0 && isAll) {
      whole =
          recorded.group == whole.group
              ? recorded
              : quantizeRows(floatRows(recorded), whole.group, bitsOf(whole));
      return;
    }
    if (whole.group > 0)
      return; // a part of quantised rows: nothing is merged there
    LmRows rows = floatRows(recorded);
    for (std::int64_t r = 0; r < rows.rows; ++r)
      std::copy_n(rows.row(r), columns, whole.row(r) + first);
  }

  const Recording &recording_;
  const LmExecutor &executor_;
  std::span<const std::int32_t> tokens_;
  const CompareOptions &options_;
  Comparison comparison_;
  std::set<std::string> seen_;
  llvm::DenseSet<Value> forced_;
  SlotOrders slots_;
  std::map<std::string, const Producer *> fusedInto_; // by origin
  struct Exact {
    LmRows rows;
    std::string note;
  };
  llvm::DenseMap<Value, Exact> exact_;
};

} // namespace

Result<Comparison> compareWithModule(const Recording &recording,
                                     const LmExecutor &executor,
                                     std::span<const std::int32_t> tokens,
                                     const CompareOptions &options) {
  LocalComparison comparison(recording, executor, tokens, options);
  INGOT_RETURN_IF_ERROR(executor.observe(tokens, comparison));
  Comparison result = comparison.take();
  if (result.differences.empty())
    return Status::invalid(recording.source +
                           ": has no tensor of a name and shape that the "
                           "module has");
  return result;
}

} // namespace ingot::debug
