#include "compiler/package/WeightWriter.h"

#include "compiler/package/PackWeights.h"
#include "passes/lower/WeightLayout.h"
#include "runtime/support/RunOnThreads.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <mutex>

using namespace mlir;

namespace ingot::package {

//===----------------------------------------------------------------------===//
// WeightSources
//===----------------------------------------------------------------------===//

Result<WeightSources> WeightSources::open(ModuleOp module,
                                          const std::string &sourceFolder) {
  WeightSources sources;
  for (auto op : module.getOps<plan::SourceOp>()) {
    std::string path;
    if (op.getPath())
      path = op.getPath()->str();
    else if (!sourceFolder.empty())
      path = sourceFolder + "/" + op.getName().str();
    else
      return Status::notFound("source @" + op.getSymName().str() + " (" +
                              op.getName().str() +
                              ") has no path; name the folder of the model");
    INGOT_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
    if (file.bytes().size() != op.getSize())
      return Status::invalid(
          path + ": has " + std::to_string(file.bytes().size()) +
          " bytes, expected " + std::to_string(op.getSize()) + " as at import");
    if (std::string found = xxh3Text(file.bytes()); found != op.getHash())
      return Status::invalid(path +
                             ": has changed since it was imported (XXH3 " +
                             found + ", expected " + op.getHash().str() + ")");
    sources.inputs_.push_back(
        {std::filesystem::path(op.getName().str()).filename(),
         file.bytes().size(), op.getHash().str()});
    sources.files_.emplace(op.getSymName().str(), std::move(file));
  }
  return sources;
}

std::span<const uint8_t> WeightSources::bytes(llvm::StringRef symbol) const {
  auto found = files_.find(symbol.str());
  return found == files_.end() ? std::span<const uint8_t>()
                               : found->second.bytes();
}

bool WeightSources::contains(const std::string &path) const {
  std::error_code error;
  for (const auto &[symbol, file] : files_)
    if (std::filesystem::equivalent(file.path(), path, error) && !error)
      return true;
  return false;
}

//===----------------------------------------------------------------------===//
// writeWeights
//===----------------------------------------------------------------------===//

namespace {

// Codes that a thread packs before it writes them.
constexpr uint64_t kRunBytes = uint64_t(4) << 20;

struct PlacedWeight {
  std::string name;
  uint64_t offset = 0; // in the file
  uint64_t size = 0;
  bool isRow = false;
  WeightPacker packer;
  std::vector<float> value; // instead of a packer
};

// Tiles [first, last) of a weight; all of one in layout "row".
struct Run {
  size_t weight = 0;
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t bytes = 0;
};

class Writer {
public:
  Writer(const OutputFile &file, const WriteOptions &options)
      : file_(file), options_(options) {}

  Status add(plan::WeightOp op, const WeightSources &sources,
             uint64_t segmentOffset) {
    PlacedWeight weight;
    weight.name = op.getSymName().str();
    if (!op.getPlacement())
      return Status::invalid("weight @" + weight.name + " has no placement");
    plan::PlacementAttr placement = *op.getPlacement();
    Result<plan::PlacementAttr> expected =
        plan::placementOf(op, placement.getOffset());
    if (!expected)
      return expected.status().withContext("weight @" + weight.name);
    if (placement != *expected)
      return Status::invalid("weight @" + weight.name +
                             ": the placement is not the " +
                             "one that its encoding, layout and shape ask for");
    weight.offset = segmentOffset + placement.getOffset();
    weight.size = placement.getSize();
    weight.isRow = op.getLayout() == plan::Layout::Row;
    if (op.getValue()) {
      auto values =
          cast<DenseFPElementsAttr>(*op.getValue()).getValues<float>();
      weight.value.assign(values.begin(), values.end());
      if (!weight.isRow)
        return Status::unsupported("weight @" + weight.name +
                                   ": a value is written in layout row only");
    } else {
      std::vector<StoredPart> parts;
      for (auto part : op.getParts()->getAsRange<plan::PartAttr>()) {
        StoredPart stored;
        stored.name = part.getName().str();
        stored.form = plan::storedForm(part.getStored());
        stored.bytes = sources.bytes(part.getSource().getValue())
                           .subspan(part.getOffset(), part.getSize());
        stored.rows = part.getRows();
        stored.columns = part.getColumns();
        stored.permuteHeads = part.getPermute();
        stored.storedRows = part.getStoredRows();
        stored.first = part.getFirst();
        stored.run = part.getRun();
        stored.stride = part.getStride();
        stored.transposed = part.getTransposed();
        parts.push_back(std::move(stored));
      }
      WeightEncoding encoding;
      if (!weight.isRow)
        encoding = plan::packedEncoding(op.getEncoding());
      Result<WeightPacker> packer =
          WeightPacker::create(encoding, std::move(parts));
      if (!packer)
        return packer.status().withContext("weight @" + weight.name);
      weight.packer = std::move(*packer);
    }
    addRuns(weight);
    totalBytes_ += weight.size;
    weights_.push_back(std::move(weight));
    return Status::ok();
  }

  Status run() {
    runOnThreads(options_.threads, [this] { work(); });
    return failure_;
  }

  void addWarnings(std::vector<std::string> &warnings) const {
    for (const auto &[index, groups] : underflows_)
      warnings.push_back(
          "weight @" + weights_[index].name + ": " + std::to_string(groups) +
          " groups are too small for a float16 scale and became zero");
  }

private:
  void addRuns(const PlacedWeight &weight) {
    size_t index = weights_.size();
    if (weight.isRow) {
      runs_.push_back({index, 0, 1, weight.size});
      return;
    }
    const PackedLayout &layout = weight.packer.layout();
    uint64_t step = std::max<uint64_t>(1, kRunBytes / layout.codesBytesPerTile);
    for (uint64_t tile = 0; tile < layout.rowTiles; tile += step) {
      uint64_t last = std::min(layout.rowTiles, tile + step);
      runs_.push_back({index, tile, last,
                       (last - tile) * (layout.codesBytesPerTile +
                                        layout.scalesBytesPerTile)});
    }
  }

  void work() {
    Buffers buffers;
    while (!stop_) {
      size_t next = next_++;
      if (next >= runs_.size())
        return;
      PackStatistics statistics;
      Status status = process(runs_[next], buffers, statistics);
      std::lock_guard<std::mutex> lock(mutex_);
      report(runs_[next], next, std::move(status), statistics);
    }
  }

  // Under the mutex. Of several failures the one of the earliest run is kept,
  // so that the message does not depend on the threads.
  void report(const Run &run, size_t index, Status status,
              const PackStatistics &statistics) {
    const PlacedWeight &weight = weights_[run.weight];
    if (!status) {
      if (index < failedRun_) {
        failedRun_ = index;
        failure_ = status.withContext("weight @" + weight.name);
      }
      stop_ = true;
      return;
    }
    if (statistics.underflowedGroups)
      underflows_[run.weight] += statistics.underflowedGroups;
    doneBytes_ += run.bytes;
    if (options_.progress)
      options_.progress(weight.name, std::min(doneBytes_, totalBytes_),
                        totalBytes_);
  }

  struct Buffers {
    std::vector<uint8_t> codes, scales, mins;
    std::vector<float> floats;
  };

  Status process(const Run &run, Buffers &buffers, PackStatistics &statistics) {
    const PlacedWeight &weight = weights_[run.weight];
    return weight.isRow ? writeRow(weight, buffers)
                        : writeTiles(weight, run, buffers, statistics);
  }

  Status writeRow(const PlacedWeight &weight, Buffers &buffers) {
    const std::vector<float> *values = &weight.value;
    if (values->empty()) {
      buffers.floats.resize(weight.size / sizeof(float));
      INGOT_RETURN_IF_ERROR(weight.packer.widenRows(0, buffers.floats));
      values = &buffers.floats;
    }
    for (size_t i = 0; i < values->size(); ++i)
      if (!std::isfinite((*values)[i]))
        return Status::invalid("element " + std::to_string(i) +
                               " is not finite");
    return file_.write(weight.offset,
                       {reinterpret_cast<const uint8_t *>(values->data()),
                        values->size() * sizeof(float)});
  }

  Status writeTiles(const PlacedWeight &weight, const Run &run,
                    Buffers &buffers, PackStatistics &statistics) {
    const PackedLayout &layout = weight.packer.layout();
    uint64_t count = run.last - run.first;
    uint64_t minsBytes = layout.minsOffset ? layout.scalesBytesPerTile : 0;
    buffers.codes.assign(count * layout.codesBytesPerTile, 0);
    buffers.scales.assign(count * layout.scalesBytesPerTile, 0);
    buffers.mins.assign(count * minsBytes, 0);
    auto piece = [](std::vector<uint8_t> &plane, uint64_t index,
                    uint64_t bytes) {
      return std::span<uint8_t>(plane).subspan(index * bytes, bytes);
    };
    for (uint64_t i = 0; i < count; ++i)
      INGOT_RETURN_IF_ERROR(weight.packer.packTile(
          run.first + i, piece(buffers.codes, i, layout.codesBytesPerTile),
          piece(buffers.scales, i, layout.scalesBytesPerTile),
          piece(buffers.mins, i, minsBytes), statistics));
    INGOT_RETURN_IF_ERROR(file_.write(
        weight.offset + run.first * layout.codesBytesPerTile, buffers.codes));
    if (layout.scalesOffset)
      INGOT_RETURN_IF_ERROR(
          file_.write(weight.offset + layout.scalesOffset +
                          run.first * layout.scalesBytesPerTile,
                      buffers.scales));
    if (layout.minsOffset)
      INGOT_RETURN_IF_ERROR(
          file_.write(weight.offset + layout.minsOffset + run.first * minsBytes,
                      buffers.mins));
    return Status::ok();
  }

  const OutputFile &file_;
  const WriteOptions &options_;
  std::vector<PlacedWeight> weights_;
  std::vector<Run> runs_;
  uint64_t totalBytes_ = 0;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_; // guards what follows
  uint64_t doneBytes_ = 0;
  Status failure_;
  size_t failedRun_ = SIZE_MAX;
  std::map<size_t, uint64_t> underflows_;
};

} // namespace

Status writeWeights(ModuleOp module, const WeightSources &sources,
                    const OutputFile &file, uint64_t segmentOffset,
                    const WriteOptions &options,
                    std::vector<std::string> &warnings) {
  Writer writer(file, options);
  for (auto op : module.getOps<plan::WeightOp>())
    INGOT_RETURN_IF_ERROR(writer.add(op, sources, segmentOffset));
  INGOT_RETURN_IF_ERROR(writer.run());
  writer.addWarnings(warnings);
  return Status::ok();
}

} // namespace ingot::package
