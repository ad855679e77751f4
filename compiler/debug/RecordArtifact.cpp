// 1. Open the artifact with room for the tokens and observe its executor.
// 2. Run step by step, and in each step from cut to cut, with the heads of exits.
// 3. After each launch copy the rows that it wrote, by its origins; after a cache
//    write and before attention, the keys and values that the cache holds.
#include "compiler/debug/RecordArtifact.h"

#include "compiler/debug/LaunchDetails.h"
#include "compiler/driver/CalibratedWeights.h"
#include "compiler/stored/Dequantize.h"

#include <cstring>

namespace ingot::debug {
namespace {

constexpr SequenceId kSequence = 1;

// Keys or values of one position, [kvHeads * headDim] (KernelAbi.h).
class CacheReader {
public:
  CacheReader(const fbs::StateGroup &state, const KvCache &cache,
              std::size_t group, std::uint32_t layer)
      : state_(state), cache_(cache), group_(group), layer_(layer) {}

  std::int64_t width() const {
    return std::int64_t(state_.kv_heads()) * state_.head_dim();
  }
  bool holds(std::int64_t position) const {
    auto table = cache_.blockTable(kSequence, group_);
    std::size_t block = std::size_t(position / abi::kBlockTokens);
    return block < table.size() && table[block] >= 0;
  }
  void read(std::int64_t position, bool ofKeys, float *to) const {
    auto table = cache_.blockTable(kSequence, group_);
    const GroupGeometry &geometry = cache_.geometry(group_);
    std::int64_t slot = position % abi::kBlockTokens;
    const std::uint8_t *base =
        cache_.base(group_) +
        geometry.blockBytes() *
            std::uint64_t(table[std::size_t(position / abi::kBlockTokens)]) +
        geometry.layerBytes * layer_ + (ofKeys ? 0 : geometry.valueOffset);
    std::int64_t headDim = state_.head_dim();
    bool isCodes = state_.dtype() == fbs::DType::i8;
    std::int64_t elementBytes = isCodes                             ? 1
                                : state_.dtype() == fbs::DType::f16 ? 2
                                                                    : 4;
    for (std::int64_t h = 0; h < state_.kv_heads(); ++h) {
      const std::uint8_t *head =
          base + h * abi::kvHeadBytes(headDim, elementBytes);
      float scale = 1;
      if (isCodes)
        std::memcpy(&scale,
                    head + abi::kBlockTokens * headDim +
                        slot * std::int64_t(sizeof(float)),
                    sizeof scale);
      for (std::int64_t d = 0; d < headDim; ++d) {
        std::int64_t at =
            ofKeys ? d * abi::kBlockTokens + slot : slot * headDim + d;
        to[h * headDim + d] = number(head + at * elementBytes) * scale;
      }
    }
  }

private:
  float number(const std::uint8_t *at) const {
    if (state_.dtype() == fbs::DType::i8)
      return static_cast<float>(static_cast<std::int8_t>(*at));
    if (state_.dtype() == fbs::DType::f16) {
      std::uint16_t bits;
      std::memcpy(&bits, at, sizeof bits);
      return halfToFloat(bits);
    }
    float value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }

  const fbs::StateGroup &state_;
  const KvCache &cache_;
  std::size_t group_;
  std::uint32_t layer_;
};

class ArtifactRun {
public:
  ArtifactRun(const ArtifactRunOptions &options, Engine &engine)
      : options_(options), engine_(engine), recorder_(options) {
    for (const fbs::Target *target : *engine.artifact().plan().targets())
      if (target->name()->str() == "cpu")
        target_ = target;
  }

  Result<Recording> run(std::span<const std::int32_t> tokens) {
    CpuExecutor &executor = *engine_.cpuExecutor();
    executor.setTap([this](const TappedLaunch &launch) {
      if (status_)
        status_ = observe(launch);
    });
    Status status = runSteps(tokens);
    executor.setTap(nullptr);
    engine_.cache().removeSequence(kSequence);
    INGOT_RETURN_IF_ERROR(status);
    return recorder_.take();
  }

private:
  Status runSteps(std::span<const std::int32_t> tokens) {
    KvCache &cache = engine_.cache();
    INGOT_RETURN_IF_ERROR(cache.addSequence(kSequence));
    auto count = std::int32_t(tokens.size());
    std::int32_t chunk =
        options_.chunkTokens > 0 ? options_.chunkTokens : count;
    std::int32_t rotaryLength =
        engine_.core().options().rotary.lengthFor(count, count);
    for (std::int32_t first = 0; first < count; first += chunk) {
      if (first > 0 && options_.betweenSteps)
        options_.betweenSteps(engine_);
      StepPlan plan;
      std::int32_t rows = std::min(chunk, count - first);
      plan.sequences = {{kSequence, 0, rows, first, rotaryLength}};
      plan.tokens.assign(tokens.begin() + first, tokens.begin() + first + rows);
      INGOT_RETURN_IF_ERROR(cache.reserve(kSequence, rows));
      INGOT_RETURN_IF_ERROR(runStep(plan));
      cache.commit(kSequence, rows, tokens.first(std::size_t(first + rows)));
    }
    return Status::ok();
  }

  // From cut to cut, so that every exit's head runs on the states there.
  Status runStep(StepPlan plan) {
    const StepLimits &limits = engine_.executor().limits();
    std::vector<std::int32_t> all(std::size_t(plan.numRows()));
    for (std::int32_t row = 0; row < plan.numRows(); ++row)
      all[std::size_t(row)] = row;
    plan.endSegment = 0;
    auto runTo = [&](std::int32_t end, std::int32_t exit) -> Status {
      plan.firstSegment = plan.endSegment;
      plan.endSegment = end;
      plan.exitHead = exit;
      plan.logitRows =
          end == -1 || exit != -1 ? all : std::vector<std::int32_t>();
      INGOT_RETURN_IF_ERROR(engine_.executor().run(plan, engine_.cache()));
      return status_;
    };
    for (std::size_t e = 0; e < limits.exitsAfter.size(); ++e)
      INGOT_RETURN_IF_ERROR(runTo(limits.exitsAfter[e], std::int32_t(e)));
    return runTo(-1, -1);
  }

  Status observe(const TappedLaunch &observed) {
    const fbs::Launch &launch = observed.launch;
    LaunchDetails details = detailsOf(engine_.artifact().plan(), launch);
    Producer producer;
    producer.name = launch.name()->str();
    producer.op = observed.kernel.op()->str();
    producer.kernel = observed.kernel.name()->str();
    producer.settings = details.settings;
    producer.layer = layerOf(producer.name);
    if (details.weight >= 0)
      producer.encoding = encodingOf(*engine_.artifact().plan().weights()->Get(
          std::uint32_t(details.weight)));
    if (launch.origins())
      for (const fbs::Origin *origin : *launch.origins())
        producer.origins.push_back({textOf(origin->name()),
                                    textOf(origin->imported()), origin->first(),
                                    origin->columns()});
    for (std::int32_t buffer : details.inputs)
      if (auto written = writers_.find(buffer); written != writers_.end())
        for (std::size_t index : written->second)
          producer.inputs.push_back(index);
    if (auto attention = launch.params_as_Attention()) {
      checkSlots(producer.name, *attention, observed.step);
      for (const char *what : {".keys", ".values"})
        if (auto found = storedTensors_.find(prefixOf(producer.name) + what);
            found != storedTensors_.end())
          producer.inputs.push_back(found->second);
    }
    std::size_t index = recorder_.addProducer(std::move(producer));
    INGOT_RETURN_IF_ERROR(addRows(observed, details, index));
    if (auto write = launch.params_as_RopeCacheWrite())
      addStored(*write, index, observed.step);
    return Status::ok();
  }

  static std::string textOf(const flatbuffers::String *text) {
    return text ? text->str() : std::string();
  }

  // The rows that the launch wrote, under the names of its origins.
  Status addRows(const TappedLaunch &observed, const LaunchDetails &details,
                 std::size_t index) {
    if (auto slots = observed.launch.params_as_OrderSlots())
      readOrder(*slots, observed.rows);
    if (details.output < 0)
      return Status::ok();
    const fbs::Buffer &buffer =
        *target_->buffers()->Get(std::uint32_t(details.output));
    const Producer &producer = recorder_.recording().producers[index];
    std::int64_t columns =
        details.columns ? details.columns : std::int64_t(buffer.columns());
    LmRows rows = readRows(buffer, details.output, details.firstColumn, columns,
                           observed.rows);
    if (buffer.domain() == fbs::Domain::slot)
      rows = inSlotOrder(rows, order_);
    Storage storage = rows.group ? Storage::Quantized : Storage::F32;
    std::int64_t first = observed.step.sequences.front().firstPosition;
    if (buffer.domain() == fbs::Domain::slot)
      first *= target_->slots();
    // What reads a part of a buffer's columns is not told apart.
    std::vector<std::size_t> &writer = writers_[details.output];
    if (details.firstColumn == 0)
      writer.clear();
    auto add = [&](const std::string &name, LmRows part) {
      if (auto added =
              recorder_.add(name, index, std::move(part), first, storage))
        writer.push_back(*added);
    };
    if (observed.launch.params_type() == fbs::Params::RopeCacheWrite) {
      add(prefixOf(producer.name) + ".query", std::move(rows));
      return Status::ok();
    }
    bool isLinear = observed.launch.params_type() == fbs::Params::Linear;
    std::vector<lm::Origin> parts;
    for (const lm::Origin &origin : producer.origins)
      if (origin.columns > 0 && isLinear)
        parts.push_back(origin);
    if (parts.empty()) {
      // A copy that an exit made, or rows that were quantised, have the
      // launch's own name; what was fused has that of its last part.
      bool isFused =
          isLinear && observed.launch.params_as_Linear()->residual() >= 0;
      add(isFused && !producer.origins.empty() ? producer.origins.back().name
                                               : producer.name,
          std::move(rows));
      return Status::ok();
    }
    for (const lm::Origin &part : parts) {
      if (part.first + part.columns > columns)
        return Status::invalid("launch \"" + producer.name + "\": origin \"" +
                               part.name + "\" ends at column " +
                               std::to_string(part.first + part.columns) +
                               " of " + std::to_string(columns));
      add(part.name, debug::columnsOf(rows, part.first, part.columns));
    }
    return Status::ok();
  }

  // Which slot each row of the experts is (KernelAbi.h, order_slots).
  void readOrder(const fbs::OrderSlots &op, std::int32_t tokens) {
    auto *order = reinterpret_cast<const std::int32_t *>(
        engine_.cpuExecutor()->bufferRow(op.order(), 0).data());
    order_.assign(order, order + std::int64_t(tokens) * op.top_k());
  }

  LmRows readRows(const fbs::Buffer &buffer, std::int32_t index,
                  std::int64_t firstColumn, std::int64_t columns,
                  std::int32_t count) const {
    LmRows rows;
    rows.rows = count;
    rows.columns = columns;
    bool isFloat = buffer.dtype() == fbs::DType::f32;
    if (!isFloat) {
      rows.group = buffer.group();
      rows.groups = (columns + rows.group - 1) / rows.group;
    }
    for (std::int32_t r = 0; r < count; ++r) {
      const std::uint8_t *row =
          engine_.cpuExecutor()->bufferRow(index, r).data();
      if (isFloat) {
        auto *values = reinterpret_cast<const float *>(row) + firstColumn;
        rows.values.insert(rows.values.end(), values, values + columns);
        continue;
      }
      auto *scales =
          reinterpret_cast<const float *>(row + buffer.scales_offset());
      rows.scales.insert(rows.scales.end(), scales, scales + rows.groups);
      for (std::int64_t k = 0; k < columns; ++k)
        rows.codes.push_back(codeAt(buffer, row, k));
    }
    return rows;
  }

  // Of 16-bit codes, elements 1 and 2 of every four have traded places.
  static std::int16_t codeAt(const fbs::Buffer &buffer, const std::uint8_t *row,
                             std::int64_t k) {
    if (buffer.dtype() == fbs::DType::i8)
      return static_cast<std::int8_t>(row[k]);
    std::int64_t at = k % 4 == 1 ? k + 1 : k % 4 == 2 ? k - 1 : k;
    std::int16_t code;
    std::memcpy(&code, row + at * 2, sizeof code);
    return code;
  }

  CacheReader reader(std::int32_t state, std::uint32_t layer) const {
    return {*engine_.artifact().plan().states()->Get(std::uint32_t(state)),
            engine_.cache(), std::size_t(state), layer};
  }

  // The keys and values that the step has just written.
  void addStored(const fbs::RopeCacheWrite &write, std::size_t index,
                 const StepPlan &step) {
    CacheReader from = reader(write.state(), write.state_layer());
    const fbs::StateGroup &state =
        *engine_.artifact().plan().states()->Get(std::uint32_t(write.state()));
    Storage storage = state.dtype() == fbs::DType::f16  ? Storage::F16
                      : state.dtype() == fbs::DType::i8 ? Storage::I8Heads
                                                        : Storage::F32;
    const StepSequence &sequence = step.sequences.front();
    std::string prefix = prefixOf(recorder_.recording().producers[index].name);
    for (bool ofKeys : {true, false}) {
      LmRows rows = LmRows::zeros(sequence.numRows, from.width());
      for (std::int32_t r = 0; r < sequence.numRows; ++r)
        from.read(sequence.firstPosition + r, ofKeys, rows.row(r));
      std::string name = prefix + (ofKeys ? ".keys" : ".values");
      std::vector<float> &all = stored_[name];
      all.insert(all.end(), rows.values.begin(), rows.values.end());
      if (auto added =
              recorder_.add(name, index, std::move(rows),
                            sequence.firstPosition, storage, state.head_dim()))
        storedTensors_[name] = *added;
    }
  }

  // What attention reads is what was written, in every slot that it may see.
  void checkSlots(const std::string &launch, const fbs::Attention &op,
                  const StepPlan &step) {
    CacheReader from = reader(op.state(), op.state_layer());
    const StepSequence &sequence = step.sequences.front();
    std::int64_t first =
        op.window()
            ? std::max<std::int64_t>(0, std::int64_t(sequence.firstPosition) +
                                            1 - std::int64_t(op.window()))
            : 0;
    std::vector<float> slot(std::size_t(from.width()));
    for (bool ofKeys : {true, false}) {
      std::string name = prefixOf(launch) + (ofKeys ? ".keys" : ".values");
      auto stored = stored_.find(name);
      if (stored == stored_.end())
        continue;
      for (std::int64_t p = first; p < sequence.firstPosition; ++p) {
        if (!from.holds(p))
          continue;
        from.read(p, ofKeys, slot.data());
        if (std::memcmp(slot.data(), stored->second.data() + p * from.width(),
                        slot.size() * sizeof(float)) != 0)
          recorder_.recording().changedSlots.push_back(
              {name, p, sequence.firstPosition});
      }
    }
  }

  const ArtifactRunOptions &options_;
  Engine &engine_;
  const fbs::Target *target_ = nullptr;
  Recorder recorder_;
  Status status_;
  std::map<std::int32_t, std::vector<std::size_t>> writers_; // by buffer
  std::map<std::string, std::vector<float>> stored_; // by tensor, all positions
  std::map<std::string, std::size_t> storedTensors_;
  std::vector<std::int64_t> order_; // of the step's slots
};

// Methods that choose codes by calibration say so in the pipeline, and the file of
// their codes is among the inputs.
void readMethods(const fbs::Plan &plan, Recording &recording) {
  const fbs::Provenance *provenance = plan.provenance();
  if (!provenance)
    return;
  std::string pipeline =
      provenance->pipeline() ? provenance->pipeline()->str() : std::string();
  auto has = [&](const char *method) {
    return pipeline.find(method) != std::string::npos;
  };
  recording.foldsScales = has("awq");
  recording.roundsToNearest = !has("awq") && !has("gptq");
  if (provenance->inputs() && !recording.roundsToNearest)
    for (const fbs::InputFile *input : *provenance->inputs())
      if (input->path() && input->xxh3() &&
          input->path()->str().rfind(kCalibratedFilePrefix, 0) == 0)
        recording.codesHash = input->xxh3()->str();
}

} // namespace

Result<Recording> recordArtifact(const std::string &path,
                                 std::span<const std::int32_t> tokens,
                                 const ArtifactRunOptions &options) {
  if (tokens.empty())
    return Status::invalid("there are no tokens to run");
  auto count = std::int32_t(tokens.size());
  EngineOptions engineOptions;
  engineOptions.device = "cpu";
  engineOptions.level = options.level;
  engineOptions.threads = options.threads;
  engineOptions.context = count;
  engineOptions.stepTokens =
      options.chunkTokens > 0 ? std::min(options.chunkTokens, count) : count;
  engineOptions.logitRows = engineOptions.stepTokens;
  INGOT_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                         Engine::open(path, engineOptions));
  std::int32_t vocab = engine->executor().limits().vocab;
  for (std::int32_t token : tokens)
    if (token < 0 || token >= vocab)
      return Status::invalid("token id " + std::to_string(token) +
                             " is outside the vocabulary of " +
                             std::to_string(vocab));
  INGOT_ASSIGN_OR_RETURN(Recording recording,
                         ArtifactRun(options, *engine).run(tokens));
  recording.source = path;
  readMethods(engine->artifact().plan(), recording);
  return recording;
}

} // namespace ingot::debug
