// 1. Import the model; where a file for all of this is kept already, that is the
//    result.
// 2. Run the text over an ordinary plan of float weights: moments of what the
//    output and down projections read, and how far each layer turns the stream.
// 3. Choose: score each head or column by what it adds to its operator's output,
//    each layer by its influence.
// 4. Heal, by least squares: all projections that add to the stream from the first
//    change on, one after another (HealStream.h). What is pruned and does not add
//    to it is fitted to the outputs that it had.
#include "compiler/calibrate/PruneModel.h"

#include "compiler/calibrate/CalibratedFile.h"
#include "compiler/calibrate/ColumnsKept.h"
#include "compiler/calibrate/FloatPlan.h"
#include "compiler/calibrate/HealStream.h"
#include "compiler/calibrate/LeastSquares.h"
#include "compiler/calibrate/SecondMoments.h"
#include "compiler/driver/CalibratedWeights.h"
#include "compiler/frontend/huggingface/SafetensorsFile.h"
#include "compiler/package/OutputFile.h"
#include "compiler/package/ScratchFolder.h"
#include "compiler/pipeline/PipelineText.h"
#include "compiler/reference/LmWeights.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

using namespace mlir;

namespace ingot {
namespace {

constexpr const char *kMethodVersion = "prune 4";

std::string joined(const std::vector<std::int64_t> &numbers) {
  std::string text;
  for (std::int64_t number : numbers)
    text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

// The sum of squares of the part of an output that columns `part` make.
double partEnergy(std::span<const float> weights,
                  std::span<const float> moments, std::int64_t columns,
                  std::span<const std::int64_t> part) {
  std::vector<float> square = selectSquare(moments, columns, part);
  std::vector<float> some = selectColumns(weights, columns, part);
  auto width = std::int64_t(part.size());
  std::vector<float> image = multiply(some, square, width);
  double sum = 0;
  for (std::size_t i = 0; i < some.size(); ++i)
    sum += double(some[i]) * double(image[i]);
  return std::max(sum, 0.0);
}

class PruneRun {
public:
  PruneRun(const CompileRequest &compile, const PruneRequest &request,
           const CalibrationOptions &options)
      : compile_(compile), request_(request), options_(options) {
    prepareContext(context_);
  }

  Result<Pruning> run() {
    INGOT_RETURN_IF_ERROR(import());
    std::error_code error;
    std::filesystem::create_directories(options_.cacheFolder, error);
    Pruning pruning;
    pruning.weights =
        options_.cacheFolder + "/pruned-" + key() + ".safetensors";
    if (!std::filesystem::is_regular_file(pruning.weights, error)) {
      INGOT_ASSIGN_OR_RETURN(
          LmSourceFiles sources,
          LmSourceFiles::open(*imported_, compile_.sourceFolder));
      sources_.emplace(std::move(sources));
      package::ScratchFolder scratch(pruning.weights);
      INGOT_ASSIGN_OR_RETURN(
          plan_, FloatPlan::create(compile_, *imported_,
                                   scratch.file("float.ingot"), options_.text,
                                   options_.windowTokens, options_.maxTokens));
      Status status = request_.kind == PruneKind::Ffn     ? pruneFfn()
                      : request_.kind == PruneKind::Heads ? pruneHeads()
                                                          : pruneLayers();
      INGOT_RETURN_IF_ERROR(status);
      plan_.reset();
      if (request_.heals && std::ssize(kept_) > 1)
        INGOT_RETURN_IF_ERROR(heal(scratch));
      INGOT_RETURN_IF_ERROR(write(pruning.weights));
    }
    INGOT_ASSIGN_OR_RETURN(SafetensorsFile file,
                           SafetensorsFile::open(pruning.weights));
    auto pass = file.metadata().find("pass");
    if (pass == file.metadata().end() || pass->second.rfind("prune-", 0) != 0)
      return Status::invalid(pruning.weights + ": names no pass");
    INGOT_RETURN_IF_ERROR(checkClosed(pruning.weights, pass->second));
    pruning.pass = pass->second;
    return pruning;
  }

private:
  void tell(const std::string &step, std::int64_t done, std::int64_t total) {
    if (compile_.progress)
      compile_.progress("calibration: " + step, std::uint64_t(done),
                        std::uint64_t(total));
  }

  Status import() {
    CompileRequest look = compile_;
    look.outputPath.clear();
    look.stagesFolder.clear();
    look.until = Phase::Import;
    look.progress = nullptr;
    INGOT_ASSIGN_OR_RETURN(CompiledModel model, compileModel(context_, look));
    imported_ = std::move(model.module);
    auto info = (*imported_)->getAttrOfType<DictionaryAttr>(lm::kModelAttr);
    for (Attribute layer : info.getAs<ArrayAttr>("layers"))
      layers_.push_back(cast<DictionaryAttr>(layer));
    kept_.resize(layers_.size());
    std::iota(kept_.begin(), kept_.end(), 0);
    firstHealed_ = numLayers();
    return Status::ok();
  }

  std::string key() {
    // The module holds the hashes of its sources, and the architecture as its
    // descriptor says it.
    std::string text = kMethodVersion;
    text += " module ";
    llvm::raw_string_ostream(text) << *imported_;
    text += " kind " + std::to_string(int(request_.kind)) + " amount " +
            std::to_string(request_.amount) + " heals " +
            std::to_string(request_.heals) + " window " +
            std::to_string(options_.windowTokens) + " tokens " +
            std::to_string(options_.maxTokens) + " text " + options_.text;
    return package::xxh3Text(
        {reinterpret_cast<const std::uint8_t *>(text.data()), text.size()});
  }

  std::int64_t numLayers() const { return std::ssize(layers_); }
  std::int64_t fact(std::int64_t layer, const char *key) const {
    return layers_[std::size_t(layer)].getAs<IntegerAttr>(key).getInt();
  }
  static std::string role(std::int64_t layer, const char *what) {
    return "layer." + std::to_string(layer) + "." + what;
  }
  lm::WeightOp weightOf(const std::string &name) {
    return imported_->lookupSymbol<lm::WeightOp>(name);
  }
  Result<std::vector<float>> valuesOf(const std::string &name) {
    lm::WeightOp weight = weightOf(name);
    if (!weight)
      return Status::unsupported("pruning needs a weight @" + name +
                                 ", which the model lacks");
    INGOT_ASSIGN_OR_RETURN(LoadedWeight loaded, sources_->load(weight));
    return std::move(loaded.values);
  }

  // The moments of what the launch "layer.N.{what}" reads, for all layers.
  Result<std::vector<SecondMoments>> momentsOf(const char *what,
                                               const char *widthOf) {
    std::vector<SecondMoments> moments;
    std::map<std::string, std::size_t, std::less<>> byLaunch;
    std::uint64_t bytes = 0;
    for (std::int64_t layer = 0; layer < numLayers(); ++layer) {
      lm::WeightOp weight = weightOf(role(layer, what));
      if (!weight)
        return Status::unsupported("layer " + std::to_string(layer) +
                                   " has no weight @" + role(layer, what) +
                                   " to prune before");
      byLaunch[role(layer, what)] = moments.size();
      bytes += SecondMoments::bytes(weight.getColumns());
      moments.emplace_back(weight.getColumns());
    }
    if (bytes > options_.memoryBytes)
      return Status::unsupported(
          "the sums of all layers take " + std::to_string(bytes >> 20) +
          " MiB, allowed " + std::to_string(options_.memoryBytes >> 20));
    auto see = [&](const BoundLaunch &launch, std::int32_t rows) {
      auto found = byLaunch.find(launch.name);
      if (found == byLaunch.end() || launch.op != fbs::Params::Linear)
        return Status::ok();
      const abi::LinearParams &linear = launch.params.linear;
      if (!linear.input || linear.k != moments[found->second].width())
        return Status::internal("launch " + launch.name +
                                " does not read the rows that were expected");
      if (linear.residual)
        adds_.insert(launch.name);
      moments[found->second].add(
          {linear.input, std::size_t(rows) * std::size_t(linear.k)},
          compile_.threads);
      return Status::ok();
    };
    INGOT_RETURN_IF_ERROR(
        plan_->run(see, [&](std::int64_t done, std::int64_t total) {
          tell(std::string("what ") + widthOf + " reads", done, total);
        }));
    for (const SecondMoments &one : moments)
      if (one.numRows() != plan_->numRows())
        return Status::internal("a launch was not observed on every row");
    return moments;
  }

  //===--------------------------------------------------------------------===//
  // What is written
  //===--------------------------------------------------------------------===//

  void put(const std::string &name, std::vector<std::int64_t> shape,
           std::vector<float> values) {
    output_[name] = {std::move(shape), std::move(values)};
  }

  // As the weight is stored, where that is a float; else float16.
  std::string dtypeOf(const std::string &name) {
    lm::WeightOp weight = weightOf(name);
    if (!weight.isMatrix())
      return "f32";
    switch (weight.getEncoding().getCode()) {
    case lm::WeightCode::F32:
      return "f32";
    case lm::WeightCode::BF16:
      return "bf16";
    default:
      return "f16";
    }
  }

  Status write(const std::string &path) {
    CalibratedFile file;
    file.setMetadata("pass", pass_);
    for (const auto &[name, one] : output_)
      file.planValues(name, one.shape, dtypeOf(name));
    INGOT_RETURN_IF_ERROR(file.create(path));
    for (const auto &[name, one] : output_)
      INGOT_RETURN_IF_ERROR(file.writeValues(name, one.values));
    return file.commit();
  }

  // Rows of a matrix and of its bias.
  Status putRows(const std::string &name,
                 const std::vector<std::int64_t> &kept) {
    INGOT_ASSIGN_OR_RETURN(std::vector<float> values, valuesOf(name));
    std::int64_t columns = weightOf(name).getColumns();
    put(name, {std::ssize(kept), columns}, selectRows(values, columns, kept));
    if (!weightOf(name + ".bias"))
      return Status::ok();
    INGOT_ASSIGN_OR_RETURN(values, valuesOf(name + ".bias"));
    put(name + ".bias", {std::ssize(kept)}, selectRows(values, 1, kept));
    return Status::ok();
  }

  // Columns of a matrix; where nothing along the stream will heal it, fitted to what
  // all of them made.
  Status putColumns(const std::string &name,
                    const std::vector<std::int64_t> &kept,
                    const std::vector<float> &moments) {
    INGOT_ASSIGN_OR_RETURN(std::vector<float> values, valuesOf(name));
    std::int64_t columns = weightOf(name).getColumns();
    std::int64_t rows = weightOf(name).getRows();
    std::vector<float> some = selectColumns(values, columns, kept);
    if (request_.heals && (!adds_.count(name) || std::ssize(kept_) < 2)) {
      std::vector<float> cross =
          selectColumns(multiply(values, moments, columns), columns, kept);
      auto fitted = fitWeights(selectSquare(moments, columns, kept), cross,
                               some, rows, std::ssize(kept));
      if (!fitted)
        return fitted.status().withContext("weight @" + name);
      some = std::move(*fitted);
    }
    put(name, {rows, std::ssize(kept)}, std::move(some));
    return Status::ok();
  }

  //===--------------------------------------------------------------------===//
  // Feed-forward
  //===--------------------------------------------------------------------===//

  Status pruneFfn() {
    if (!(request_.amount > 0 && request_.amount < 1))
      return Status::invalid("the share of columns to prune is " +
                             std::to_string(request_.amount) +
                             ", expected more than 0 and less than 1");
    INGOT_ASSIGN_OR_RETURN(std::vector<SecondMoments> sums,
                           momentsOf("down", "the down projection"));
    std::vector<std::int64_t> sizes;
    for (std::int64_t layer = 0; layer < numLayers(); ++layer) {
      tell("columns", layer, numLayers());
      std::string down = role(layer, "down");
      INGOT_ASSIGN_OR_RETURN(std::vector<float> weights, valuesOf(down));
      std::vector<float> moments = sums[std::size_t(layer)].mean();
      std::int64_t columns = weightOf(down).getColumns();
      std::int64_t size = columnsKept(columns, request_.amount);
      sizes.push_back(size);
      if (size == columns)
        continue;
      std::vector<double> score(std::size_t(columns), 0.0);
      for (std::size_t i = 0; i < weights.size(); ++i)
        score[i % std::size_t(columns)] +=
            double(weights[i]) * double(weights[i]);
      for (std::int64_t k = 0; k < columns; ++k)
        score[std::size_t(k)] *= double(moments[std::size_t(k * columns + k)]);
      std::vector<std::int64_t> kept = largest(score, size);
      firstHealed_ = std::min(firstHealed_, layer);
      for (const char *what : {"gate", "up"})
        if (weightOf(role(layer, what)))
          INGOT_RETURN_IF_ERROR(putRows(role(layer, what), kept));
      INGOT_RETURN_IF_ERROR(putColumns(down, kept, moments));
    }
    if (output_.empty())
      return Status::invalid("a share of " + std::to_string(request_.amount) +
                             " prunes no group of " +
                             std::to_string(kColumnStep) + " columns");
    pass_ = "prune-ffn{columns=" + joined(sizes) + "}";
    return Status::ok();
  }

  // The `count` indices of the largest scores, ascending.
  static std::vector<std::int64_t> largest(const std::vector<double> &score,
                                           std::int64_t count) {
    std::vector<std::int64_t> order(score.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      double first = score[std::size_t(a)], second = score[std::size_t(b)];
      return first != second ? first > second : a < b;
    });
    order.resize(std::size_t(count));
    std::sort(order.begin(), order.end());
    return order;
  }

  //===--------------------------------------------------------------------===//
  // Heads
  //===--------------------------------------------------------------------===//

  static std::vector<std::int64_t>
  columnsOfHeads(const std::vector<std::int64_t> &heads, std::int64_t width) {
    std::vector<std::int64_t> columns;
    for (std::int64_t head : heads)
      for (std::int64_t i = 0; i < width; ++i)
        columns.push_back(head * width + i);
    return columns;
  }

  Status pruneHeads() {
    INGOT_ASSIGN_OR_RETURN(std::vector<SecondMoments> sums,
                           momentsOf("o", "the output projection"));
    struct Head {
      std::int64_t layer, head;
      double score; // its share of the attention's output
    };
    std::vector<Head> heads;
    std::vector<std::vector<float>> moments;
    for (std::int64_t layer = 0; layer < numLayers(); ++layer) {
      tell("heads", layer, numLayers());
      INGOT_ASSIGN_OR_RETURN(std::vector<float> weights,
                             valuesOf(role(layer, "o")));
      moments.push_back(sums[std::size_t(layer)].mean());
      std::int64_t columns = weightOf(role(layer, "o")).getColumns();
      std::int64_t kvHeads = fact(layer, "kv_heads");
      std::vector<std::int64_t> all(static_cast<std::size_t>(columns));
      std::iota(all.begin(), all.end(), 0);
      double whole = partEnergy(weights, moments.back(), columns, all);
      for (std::int64_t head = 0; head < kvHeads; ++head)
        heads.push_back({layer, head,
                         partEnergy(weights, moments.back(), columns,
                                    columnsOfHeads({head}, columns / kvHeads)) /
                             std::max(whole, 1e-30)});
    }
    auto count = std::int64_t(request_.amount);
    std::int64_t most = std::ssize(heads) - numLayers();
    if (most < 1)
      return Status::unsupported("key heads to prune: each of the model's " +
                                 std::to_string(numLayers()) +
                                 " layers has one, which stays; found " +
                                 std::to_string(request_.amount));
    if (count < 1 || double(count) != request_.amount || count > most)
      return Status::invalid(
          "key heads to prune: expected 1 to " + std::to_string(most) +
          " (each layer keeps one), found " + std::to_string(request_.amount));
    std::sort(heads.begin(), heads.end(), [](const Head &a, const Head &b) {
      return std::tie(a.score, a.layer, a.head) <
             std::tie(b.score, b.layer, b.head);
    });
    std::vector<std::vector<bool>> gone;
    std::vector<std::int64_t> left;
    for (std::int64_t layer = 0; layer < numLayers(); ++layer) {
      left.push_back(fact(layer, "kv_heads"));
      gone.emplace_back(std::size_t(left.back()), false);
    }
    for (const Head &head : heads)
      if (count > 0 && left[std::size_t(head.layer)] > 1) {
        gone[std::size_t(head.layer)][std::size_t(head.head)] = true;
        --left[std::size_t(head.layer)];
        --count;
      }
    for (std::int64_t layer = 0; layer < numLayers(); ++layer) {
      std::int64_t kvHeads = fact(layer, "kv_heads");
      if (left[std::size_t(layer)] == kvHeads)
        continue;
      std::vector<std::int64_t> kept;
      for (std::int64_t head = 0; head < kvHeads; ++head)
        if (!gone[std::size_t(layer)][std::size_t(head)])
          kept.push_back(head);
      firstHealed_ = std::min(firstHealed_, layer);
      std::int64_t headDim = fact(layer, "head_dim");
      std::int64_t perKey = fact(layer, "heads") / kvHeads;
      std::vector<std::int64_t> queries =
          columnsOfHeads(kept, perKey * headDim);
      INGOT_RETURN_IF_ERROR(putRows(role(layer, "q"), queries));
      for (const char *what : {"k", "v"})
        INGOT_RETURN_IF_ERROR(
            putRows(role(layer, what), columnsOfHeads(kept, headDim)));
      INGOT_RETURN_IF_ERROR(
          putColumns(role(layer, "o"), queries, moments[std::size_t(layer)]));
    }
    pass_ = "prune-heads{kv-heads=" + joined(left) + "}";
    return Status::ok();
  }

  //===--------------------------------------------------------------------===//
  // Layers
  //===--------------------------------------------------------------------===//

  // The residual stream that a launch adds to, "layer.N.{what}".
  static Result<std::span<const float>> streamAt(const BoundLaunch &launch,
                                                 std::int32_t rows) {
    const abi::LinearParams &linear = launch.params.linear;
    if (launch.op != fbs::Params::Linear || !linear.residual ||
        linear.residualStride != linear.n)
      return Status::unsupported(
          "launch " + launch.name +
          " does not add to the residual stream; layers of such a block cannot "
          "be pruned");
    return std::span<const float>(linear.residual,
                                  std::size_t(rows) * std::size_t(linear.n));
  }

  // For each layer but the last: 1 minus the mean cosine between the stream
  // before and behind it.
  Result<std::vector<double>> influences() {
    std::map<std::string, std::int64_t, std::less<>> layerOf;
    for (std::int64_t layer = 0; layer < numLayers(); ++layer)
      layerOf[role(layer, "o")] = layer;
    std::vector<double> sums(std::size_t(numLayers()), 0.0);
    std::vector<float> before;
    std::int64_t rowsSeen = 0;
    auto see = [&](const BoundLaunch &launch, std::int32_t rows) -> Status {
      auto found = layerOf.find(launch.name);
      if (found == layerOf.end())
        return Status::ok();
      INGOT_ASSIGN_OR_RETURN(std::span<const float> stream,
                             streamAt(launch, rows));
      if (std::int64_t layer = found->second; layer > 0) {
        auto width = std::ssize(stream) / rows;
        for (std::int64_t r = 0; r < rows; ++r) {
          double product = 0, a = 0, b = 0;
          for (std::int64_t i = r * width; i < (r + 1) * width; ++i) {
            product += double(before[std::size_t(i)]) * stream[std::size_t(i)];
            a += double(before[std::size_t(i)]) * before[std::size_t(i)];
            b += double(stream[std::size_t(i)]) * stream[std::size_t(i)];
          }
          sums[std::size_t(layer - 1)] +=
              1 - product / std::sqrt(std::max(a * b, 1e-60));
        }
      } else {
        rowsSeen += rows;
      }
      before.assign(stream.begin(), stream.end());
      return Status::ok();
    };
    INGOT_RETURN_IF_ERROR(
        plan_->run(see, [&](std::int64_t done, std::int64_t total) {
          tell("influence of layers", done, total);
        }));
    if (rowsSeen != plan_->numRows())
      return Status::unsupported("the first layer's output projection was not "
                                 "observed on every row");
    for (double &sum : sums)
      sum /= double(rowsSeen);
    return sums;
  }

  Status pruneLayers() {
    auto count = std::int64_t(request_.amount);
    // The first layer makes the stream, the last has nothing behind it to see.
    std::int64_t most = numLayers() - 2;
    if (most < 1)
      return Status::unsupported(
          "layers to prune: expected a model of 3 layers or more, of which the "
          "first and the last stay; found one of " +
          std::to_string(numLayers()));
    if (count < 1 || double(count) != request_.amount || count > most)
      return Status::invalid("layers to prune: expected 1 to " +
                             std::to_string(most) +
                             " (the first and the last stay), found " +
                             std::to_string(request_.amount));
    INGOT_ASSIGN_OR_RETURN(std::vector<double> influence, influences());
    std::vector<double> score(influence.size());
    for (std::int64_t layer = 0; layer < numLayers(); ++layer)
      score[std::size_t(layer)] = layer == 0 || layer + 1 == numLayers()
                                      ? -INFINITY
                                      : -influence[std::size_t(layer)];
    std::vector<std::int64_t> removed = largest(score, count);
    pass_ = "prune-layers{layers=" + joined(removed) + "}";
    for (std::int64_t layer : removed)
      std::erase(kept_, layer);
    firstHealed_ = removed.front() - 1;
    return Status::ok();
  }

  //===--------------------------------------------------------------------===//
  // Healing
  //===--------------------------------------------------------------------===//

  Status heal(const package::ScratchFolder &scratch) {
    HealStreamRequest request;
    request.compile = compile_;
    request.imported = *imported_;
    request.pruning = {scratch.file("pruned.safetensors"), pass_};
    INGOT_RETURN_IF_ERROR(write(request.pruning.weights));
    request.kept = kept_;
    request.firstLayer = firstHealed_;
    request.beginsWithOutput = request_.kind == PruneKind::Heads;
    request.folder = scratch.file("healing");
    std::error_code error;
    std::filesystem::create_directories(request.folder, error);
    request.progress = [&](std::int64_t done, std::int64_t total) {
      tell("healing", done, total);
    };
    INGOT_ASSIGN_OR_RETURN(std::vector<HealedWeight> healed,
                           healStream(request, options_));
    for (HealedWeight &one : healed)
      put(role(kept_[std::size_t(one.layer)], one.what),
          {one.rows, one.columns}, std::move(one.values));
    return Status::ok();
  }

  struct Values {
    std::vector<std::int64_t> shape;
    std::vector<float> values;
  };

  const CompileRequest &compile_;
  const PruneRequest &request_;
  const CalibrationOptions &options_;
  MLIRContext context_;
  OwningOpRef<ModuleOp> imported_;
  std::vector<DictionaryAttr> layers_;
  std::optional<LmSourceFiles> sources_;
  std::optional<FloatPlan> plan_;
  std::map<std::string, Values> output_;
  std::string pass_;
  // Projections that add to the stream: they are healed along it.
  std::set<std::string> adds_;
  std::vector<std::int64_t> kept_; // layers that stay
  std::int64_t firstHealed_ = 0;   // of those that stay
};

} // namespace

Result<Pruning> pruneModel(const CompileRequest &compile,
                           const PruneRequest &request,
                           const CalibrationOptions &options) {
  if (options.cacheFolder.empty())
    return Status::invalid("there is no folder to keep pruned weights in; name "
                           "one");
  return PruneRun(compile, request, options).run();
}

} // namespace ingot
