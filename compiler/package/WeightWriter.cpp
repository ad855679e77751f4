#include "compiler/package/WeightWriter.h"

#include "compiler/package/HalfRange.h"
#include "compiler/package/MmaLayout.h"
#include "compiler/package/MmaTiles.h"
#include "compiler/package/PackWeights.h"
#include "dialects/StoredDetailsAttr.h"
#include "passes/lower/WeightLayout.h"
#include "runtime/support/RunOnThreads.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <mutex>

using namespace mlir;

namespace ingot::package {

//===----------------------------------------------------------------------===//
// WeightSources
//===----------------------------------------------------------------------===//

Result<WeightSources> WeightSources::open(ModuleOp module,
                                          const std::string &sourceFolder,
                                          bool hashed) {
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
    if (std::string found = hashed ? xxh3Text(file.bytes()) : "";
        hashed && found != op.getHash())
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

// "Q4_K", or "Q5_K, Q6_K" for a weight that was merged of both.
std::string storedText(plan::WeightOp op) {
  std::vector<std::string> forms;
  for (auto part : op.getParts()->getAsRange<plan::PartAttr>())
    if (std::string form = plan::describeStored(part);
        std::find(forms.begin(), forms.end(), form) == forms.end())
      forms.push_back(form);
  return llvm::join(forms, ", ");
}

// Whether the weight is the second packing of numbers that the module has in another
// layout too: what the encoding costs is told once.
bool isTwin(plan::WeightOp op) {
  llvm::StringRef name = op.getSymName();
  return op.getLayout() == plan::Layout::MMA16 && name.consume_back(".mma16") &&
         SymbolTable::lookupSymbolIn(op->getParentOp(), name);
}

// The conversion that a weight belongs to; null where its numbers are moved as
// they are.
Conversion *findConversion(plan::WeightOp op,
                           std::vector<Conversion> &conversions) {
  if (!op.getParts() || op.getLayout() == plan::Layout::Row ||
      plan::isMovedExactly(op) || isTwin(op))
    return nullptr;
  Conversion wanted;
  wanted.stored = storedText(op);
  wanted.encoding = op.getEncoding().getShortName();
  wanted.keptCodes = op.getMethod() == "stored";
  for (Conversion &conversion : conversions)
    if (conversion.stored == wanted.stored &&
        conversion.encoding == wanted.encoding &&
        conversion.keptCodes == wanted.keptCodes)
      return &conversion;
  conversions.push_back(std::move(wanted));
  return &conversions.back();
}

// The parts of a weight, with their bytes and those of their details.
Result<std::vector<StoredPart>> partsOf(plan::WeightOp op,
                                        const WeightSources &sources) {
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
    INGOT_ASSIGN_OR_RETURN(stored.details,
                           readStoredDetails(part.getDetails()));
    stored.details.forEachPlane([&](StoredPlane &plane) {
      plane.bytes = sources.bytes(plane.source)
                        .subspan(plane.byteOffset, plane.sizeBytes);
    });
    parts.push_back(std::move(stored));
  }
  return parts;
}

// Codes that a thread packs before it writes them.
constexpr uint64_t kRunBytes = uint64_t(4) << 20;

// The part that row `row` of a weight comes from.
llvm::StringRef tensorOfRow(plan::WeightOp op, uint64_t row) {
  for (auto part : op.getParts()->getAsRange<plan::PartAttr>()) {
    if (row < uint64_t(part.getRows()))
      return part.getName();
    row -= uint64_t(part.getRows());
  }
  return {};
}

struct PlacedWeight {
  std::string name;
  uint64_t offset = 0; // in the file
  uint64_t size = 0;
  bool isRow = false;
  bool isMma = false; // packed as "r16", then each tile moved to "mma16"
  abi::CudaCode code{};
  bool isHalf = false; // bfloat16 that CUDA multiplies as float16
  WeightPacker packer;
  PackedLayout layout;      // of the file: the packer's own, or that of "mma16"
  std::vector<float> value; // instead of a packer
  plan::WeightOp op;
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

  // `multiplied`: by a linear, which an embedding's table need not be.
  Status add(plan::WeightOp op, const WeightSources &sources,
             uint64_t segmentOffset, bool multiplied) {
    PlacedWeight weight;
    weight.name = op.getSymName().str();
    weight.op = op;
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
      INGOT_ASSIGN_OR_RETURN(std::vector<StoredPart> parts,
                             partsOf(op, sources));
      WeightEncoding encoding;
      if (!weight.isRow)
        encoding = plan::packedEncoding(op.getEncoding());
      Result<WeightPacker> packer =
          WeightPacker::create(encoding, std::move(parts));
      if (!packer)
        return packer.status().withContext("weight @" + weight.name);
      weight.packer = std::move(*packer);
      weight.layout = weight.packer.layout();
      weight.isMma = op.getLayout() == plan::Layout::MMA16;
      if (weight.isMma) {
        INGOT_ASSIGN_OR_RETURN(weight.code, cudaCode(encoding));
        weight.isHalf = multiplied && weight.code == abi::CudaCode::BF16;
        INGOT_ASSIGN_OR_RETURN(
            weight.layout, mmaLayout(encoding, op.getRows(), op.getColumns()));
      }
    }
    addRuns(weight);
    totalBytes_ += weight.size;
    weights_.push_back(std::move(weight));
    return Status::ok();
  }

  Status run() {
    statistics_.resize(runs_.size());
    smallRows_.resize(runs_.size());
    runOnThreads(options_.threads, [this] { work(); });
    return failure_;
  }

  // In the order of the runs, so that sums do not depend on the threads.
  void report(std::vector<std::string> &warnings,
              std::vector<Conversion> &conversions) const {
    std::vector<PackStatistics> byWeight(weights_.size());
    std::vector<uint64_t> smallRows(weights_.size());
    for (size_t i = 0; i < runs_.size(); ++i) {
      byWeight[runs_[i].weight].add(statistics_[i]);
      smallRows[runs_[i].weight] += smallRows_[i];
    }
    for (size_t i = 0; i < weights_.size(); ++i) {
      if (uint64_t groups = byWeight[i].underflowedGroups)
        warnings.push_back(
            "weight @" + weights_[i].name + ": " + std::to_string(groups) +
            " groups are too small for a float16 scale and became zero");
      if (smallRows[i] != 0)
        warnings.push_back(
            "weight @" + weights_[i].name + ": " +
            std::to_string(smallRows[i]) +
            " rows have no element of 2^-16 or more; CUDA multiplies them as "
            "float16, which is off by up to 2^-25 there, more than bfloat16");
      if (Conversion *conversion = findConversion(weights_[i].op, conversions))
        conversion->error.add(byWeight[i].error);
    }
  }

private:
  void addRuns(const PlacedWeight &weight) {
    size_t index = weights_.size();
    if (weight.isRow) {
      runs_.push_back({index, 0, 1, weight.size});
      return;
    }
    const PackedLayout &layout = weight.layout;
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
      Status status = process(next, buffers);
      std::lock_guard<std::mutex> lock(mutex_);
      finish(runs_[next], next, std::move(status));
    }
  }

  // Under the mutex. Of several failures the one of the earliest run is kept,
  // so that the message does not depend on the threads.
  void finish(const Run &run, size_t index, Status status) {
    const PlacedWeight &weight = weights_[run.weight];
    if (!status) {
      if (index < failedRun_) {
        failedRun_ = index;
        failure_ = status.withContext("weight @" + weight.name);
      }
      stop_ = true;
      return;
    }
    doneBytes_ += run.bytes;
    if (options_.progress)
      options_.progress(weight.name, std::min(doneBytes_, totalBytes_),
                        totalBytes_);
  }

  struct Buffers {
    std::vector<uint8_t> codes, scales, mins, tile;
    std::vector<float> floats;
  };

  Status process(size_t index, Buffers &buffers) {
    const Run &run = runs_[index];
    const PlacedWeight &weight = weights_[run.weight];
    return weight.isRow ? writeRow(weight, buffers)
                        : writeTiles(weight, run, buffers, statistics_[index],
                                     smallRows_[index]);
  }

  // Of a tile as packed.
  static Status checkHalfRange(const PlacedWeight &weight, uint64_t tile,
                               std::span<const uint8_t> codes,
                               uint64_t &smallRows) {
    auto beyond = beyondHalf(codes, weight.packer.columns(), smallRows);
    if (!beyond)
      return Status::ok();
    uint64_t row = tile * 16 + beyond->row;
    return Status::unsupported(
        "row " + std::to_string(row) + " column " +
        std::to_string(beyond->column) + ", of tensor \"" +
        tensorOfRow(weight.op, row).str() +
        "\": " + std::to_string(beyond->value) +
        " is beyond float16, as which CUDA multiplies bfloat16 weights: "
        "expected at most 65504; quantize it (--quantize int8), or leave out "
        "the target cuda");
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
                    Buffers &buffers, PackStatistics &statistics,
                    uint64_t &smallRows) {
    const PackedLayout &layout = weight.layout;
    const uint64_t r16Bytes = weight.packer.layout().codesBytesPerTile;
    uint64_t count = run.last - run.first;
    uint64_t minsBytes = layout.minsOffset ? layout.scalesBytesPerTile : 0;
    buffers.codes.assign(count * layout.codesBytesPerTile, 0);
    buffers.scales.assign(count * layout.scalesBytesPerTile, 0);
    buffers.mins.assign(count * minsBytes, 0);
    auto piece = [](std::vector<uint8_t> &plane, uint64_t index,
                    uint64_t bytes) {
      return std::span<uint8_t>(plane).subspan(index * bytes, bytes);
    };
    buffers.tile.assign(weight.isMma ? r16Bytes : 0, 0);
    for (uint64_t i = 0; i < count; ++i) {
      auto codes = piece(buffers.codes, i, layout.codesBytesPerTile);
      INGOT_RETURN_IF_ERROR(weight.packer.packTile(
          run.first + i,
          weight.isMma ? std::span<uint8_t>(buffers.tile) : codes,
          piece(buffers.scales, i, layout.scalesBytesPerTile),
          piece(buffers.mins, i, minsBytes), statistics));
      if (weight.isHalf)
        INGOT_RETURN_IF_ERROR(
            checkHalfRange(weight, run.first + i, buffers.tile, smallRows));
      if (weight.isMma)
        mmaTile(weight.code, weight.packer.columns(), minsBytes != 0,
                buffers.tile, codes);
    }
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
  std::vector<PackStatistics> statistics_; // of each run
  std::vector<uint64_t> smallRows_;        // of each run: beyondHalf()
  uint64_t totalBytes_ = 0;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_; // guards what follows
  uint64_t doneBytes_ = 0;
  Status failure_;
  size_t failedRun_ = SIZE_MAX;
};

} // namespace

std::vector<Conversion> plannedConversions(ModuleOp module) {
  std::vector<Conversion> conversions;
  for (auto op : module.getOps<plan::WeightOp>())
    if (Conversion *conversion = findConversion(op, conversions))
      ++conversion->tensors;
  return conversions;
}

Result<double> estimateWriteSeconds(ModuleOp module,
                                    const std::string &sourceFolder,
                                    unsigned threads) {
  INGOT_ASSIGN_OR_RETURN(
      WeightSources sources,
      WeightSources::open(module, sourceFolder, /*hashed=*/false));
  // Seconds of one element by stored form and encoding.
  std::map<std::string, double> secondsOf;
  double seconds = 0.0;
  for (auto op : module.getOps<plan::WeightOp>()) {
    if (!op.getParts() || op.getLayout() == plan::Layout::Row)
      continue;
    std::string kind = storedText(op) + " " + op.getEncoding().getShortName();
    auto known = secondsOf.find(kind);
    if (known == secondsOf.end()) {
      INGOT_ASSIGN_OR_RETURN(std::vector<StoredPart> parts,
                             partsOf(op, sources));
      INGOT_ASSIGN_OR_RETURN(
          WeightPacker packer,
          WeightPacker::create(plan::packedEncoding(op.getEncoding()),
                               std::move(parts)));
      const PackedLayout &layout = packer.layout();
      std::vector<uint8_t> codes(layout.codesBytesPerTile);
      std::vector<uint8_t> scales(layout.scalesBytesPerTile);
      std::vector<uint8_t> mins(layout.minsOffset ? layout.scalesBytesPerTile
                                                  : 0);
      // The quickest of a few tiles: the first waits for the disk, and any may
      // wait for other programs.
      double least = std::numeric_limits<double>::infinity();
      for (uint64_t tile = 0; tile < std::min<uint64_t>(layout.rowTiles, 8);
           ++tile) {
        PackStatistics statistics;
        auto start = std::chrono::steady_clock::now();
        INGOT_RETURN_IF_ERROR(
            packer.packTile(tile, codes, scales, mins, statistics));
        std::chrono::duration<double> spent =
            std::chrono::steady_clock::now() - start;
        least = std::min(least, spent.count());
      }
      known = secondsOf.emplace(kind, least / (16.0 * double(packer.columns())))
                  .first;
    }
    seconds += known->second * double(op.getNumElements());
  }
  return seconds / std::max(1u, threads);
}

Status writeWeights(ModuleOp module, const WeightSources &sources,
                    const OutputFile &file, uint64_t segmentOffset,
                    const WriteOptions &options,
                    std::vector<std::string> &warnings,
                    std::vector<Conversion> &conversions) {
  Writer writer(file, options);
  llvm::StringSet<> multiplied;
  module.walk([&](plan::LaunchOpInterface launch) {
    auto weight = launch->getAttrOfType<FlatSymbolRefAttr>("weight");
    if (weight && !isa<plan::EmbedOp>(*launch))
      multiplied.insert(weight.getValue());
  });
  for (auto op : module.getOps<plan::WeightOp>())
    INGOT_RETURN_IF_ERROR(writer.add(op, sources, segmentOffset,
                                     multiplied.contains(op.getSymName())));
  INGOT_RETURN_IF_ERROR(writer.run());
  writer.report(warnings, conversions);
  return Status::ok();
}

} // namespace ingot::package
