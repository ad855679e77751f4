#include "compiler/debug/RecordModule.h"

#include "compiler/debug/LaunchDetails.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace ingot::debug {
namespace {

class ModuleObserver : public LmObserver {
public:
  explicit ModuleObserver(const RecordOptions &options) : recorder_(options) {}

  Recording take() { return recorder_.take(); }

  Status stored(Operation &op, LmCache &cache, LmRun &run) override {
    std::size_t index = producer(op);
    std::string prefix = attentionPrefix(op);
    Type dtype;
    std::int64_t headDim = 0, kvHeads = 0;
    Value query;
    llvm::TypeSwitch<Operation *>(&op)
        .Case<lm::AttentionOp, lm::RopeCacheWriteOp>([&](auto typed) {
          dtype = lm::lookupState(typed, typed.getStateAttr()).getDtype();
          headDim = typed.getHeadDim();
          kvHeads = typed.getKvHeads();
          query = typed.getQuery();
        });
    Storage storage = dtype.isF16()        ? Storage::F16
                      : dtype.isInteger(8) ? Storage::I8Heads
                                           : Storage::F32;
    auto write = dyn_cast<lm::RopeCacheWriteOp>(op);
    auto wrote = [&](Value value, std::optional<std::size_t> added) {
      if (write && added)
        writers_[value].push_back(*added);
    };
    wrote(query, add(prefix + ".query", index, *run.rows(query)));
    for (bool ofKeys : {true, false}) {
      LmRows rows;
      rows.columns = kvHeads * headDim;
      rows.values = ofKeys ? cache.keys : cache.values;
      rows.rows = std::int64_t(rows.values.size()) / rows.columns;
      wrote(write ? write.getCache() : Value(),
            recorder_.add(prefix + (ofKeys ? ".keys" : ".values"), index,
                          std::move(rows), 0, storage, headDim));
    }
    return Status::ok();
  }

  Status ran(Operation &op, LmRun &run) override {
    if (isa<lm::RopeCacheWriteOp, lm::CutOp>(op))
      return Status::ok(); // recorded already
    slots_.follow(op, run);
    std::size_t index = producer(op);
    for (const NamedResult &named : namedResults(op)) {
      LmRows rows = *run.rows(named.value);
      if (const auto *order = slots_.of(named.value))
        rows = inSlotOrder(rows, *order);
      bool isWhole = named.columns == rows.columns;
      if (auto added =
              add(named.name, index,
                  isWhole ? rows
                          : debug::columnsOf(rows, named.first, named.columns)))
        writers_[named.value].push_back(*added);
    }
    return Status::ok();
  }

private:
  std::optional<std::size_t> add(const std::string &name, std::size_t index,
                                 LmRows rows) {
    Storage storage = rows.group ? Storage::Quantized : Storage::F32;
    return recorder_.add(name, index, std::move(rows), 0, storage);
  }

  std::size_t producer(Operation &op) {
    Producer producer;
    producer.name = lm::locationName(op.getLoc()).str();
    producer.op = op.getName().stripDialect().str();
    producer.settings = settingsOf(op);
    producer.layer = layerOf(producer.name);
    producer.origins = lm::originsOf(op.getLoc());
    if (lm::WeightOp weight = mainWeight(op))
      producer.encoding = lm::weightEncoding(weight.getEncoding());
    for (Value operand : op.getOperands())
      if (auto found = writers_.find(operand); found != writers_.end())
        for (std::size_t index : found->second)
          producer.inputs.push_back(index);
    return recorder_.addProducer(std::move(producer));
  }

  Recorder recorder_;
  SlotOrders slots_;
  llvm::DenseMap<Value, llvm::SmallVector<std::size_t, 3>> writers_;
};

} // namespace

void SlotOrders::follow(Operation &op, LmRun &run) {
  if (op.getNumResults() == 0 || isa<lm::CombineOp>(op))
    return;
  if (auto dispatch = dyn_cast<lm::DispatchOp>(op)) {
    values_[dispatch.getResult()] = orders_.size();
    orders_.push_back(orderSlots(*run.rows(dispatch.getRoutes())));
    return;
  }
  for (Value operand : op.getOperands())
    if (auto found = values_.find(operand); found != values_.end()) {
      std::size_t order = found->second;
      for (Value result : op.getResults())
        values_[result] = order;
      return;
    }
}

const std::vector<std::int64_t> *SlotOrders::of(Value value) const {
  auto found = values_.find(value);
  return found == values_.end() ? nullptr : &orders_[found->second];
}

std::vector<NamedResult> namedResults(Operation &op) {
  std::vector<NamedResult> named;
  if (op.getNumResults() == 0)
    return named;
  std::vector<lm::Origin> origins = lm::originsOf(op.getLoc());
  std::vector<lm::Origin> parts;
  for (const lm::Origin &origin : origins)
    if (origin.columns > 0 && isa<lm::LinearOp, lm::SplitOp>(op))
      parts.push_back(origin);
  auto split = dyn_cast<lm::SplitOp>(op);
  if (split) {
    if (parts.size() == split.getNumResults())
      for (auto [part, value] : llvm::zip(parts, split.getParts()))
        named.push_back({part.name, value, 0, lm::columnsOf(value.getType())});
    return named;
  }
  Value result = op.getResult(0);
  auto width = lm::columnsOf(result.getType());
  if (!parts.empty()) {
    for (const lm::Origin &part : parts)
      if (part.first + part.columns <= width)
        named.push_back({part.name, result, part.first, part.columns});
    return named;
  }
  auto linear = dyn_cast<lm::LinearOp>(op);
  bool isFused = linear && linear.getResidual() && !origins.empty();
  named.push_back(
      {isFused ? origins.back().name : lm::locationName(op.getLoc()).str(),
       result, 0, width});
  return named;
}

lm::WeightOp mainWeight(Operation &op) {
  return llvm::TypeSwitch<Operation *, lm::WeightOp>(&op)
      .Case<lm::LinearOp, lm::ExpertLinearOp>([](auto linear) {
        return lm::lookupWeight(linear, linear.getWeightAttr());
      })
      .Case([](lm::EmbedOp embed) {
        return lm::lookupWeight(embed, embed.getTableAttr());
      })
      .Default([](Operation *) { return lm::WeightOp(); });
}

std::string attentionPrefix(Operation &op) {
  return prefixOf(lm::locationName(op.getLoc()));
}

std::string settingsOf(Operation &op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (NamedAttribute attribute : op.getAttrs()) {
    llvm::StringRef name = attribute.getName().getValue();
    if (name.ends_with("SegmentSizes") || name.ends_with("segment_sizes"))
      continue;
    stream << (text.empty() ? "" : ", ") << name << " = ";
    attribute.getValue().print(stream, /*elideType=*/true);
  }
  if (lm::WeightOp weight = mainWeight(op))
    stream << (text.empty() ? "" : ", ") << "encoding = "
           << encodingText(lm::weightEncoding(weight.getEncoding()));
  return stream.str();
}

Result<Recording> recordModule(const LmExecutor &executor,
                               std::span<const std::int32_t> tokens,
                               const RecordOptions &options) {
  if (tokens.empty())
    return Status::invalid("there are no tokens to run");
  ModuleObserver observer(options);
  INGOT_RETURN_IF_ERROR(executor.observe(tokens, observer));
  return observer.take();
}

} // namespace ingot::debug
