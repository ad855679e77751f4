// 1. Import the model, and ask the passes which matrices want codes by which
//    method; group them by the rows that they read.
// 2. Where a file for all of this is kept already, that is the result.
// 3. Compile the model with float weights.
// 4. For as many layers as fit the budget: run the text, sum up the rows; choose
//    scales and codes, write them.
#include "compiler/calibrate/CalibrateWeights.h"

#include "compiler/calibrate/AwqScales.h"
#include "compiler/calibrate/CalibratedFile.h"
#include "compiler/calibrate/FloatPlan.h"
#include "compiler/calibrate/Gptq.h"
#include "compiler/calibrate/InputGroups.h"
#include "compiler/driver/CalibratedWeights.h"
#include "compiler/package/OutputFile.h"
#include "compiler/package/ScratchFolder.h"
#include "compiler/reference/LmWeights.h"

#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

using namespace mlir;

namespace ingot {
namespace {

// Changes whenever the same inputs would give another file.
constexpr const char *kMethodVersion = "calibrate 5";

std::string hashOf(const std::string &text) {
  return package::xxh3Text(
      {reinterpret_cast<const std::uint8_t *>(text.data()), text.size()});
}

CodeShape shapeOf(const QuantizeSpec &spec) {
  return {spec.encoding == "int8" ? 8 : 4, spec.group};
}

class Calibration {
public:
  Calibration(const CompileRequest &request, const CalibrationOptions &options)
      : request_(request), options_(options) {
    prepareContext(context_);
  }

  Result<CalibratedModel> run() {
    INGOT_RETURN_IF_ERROR(findMatrices());
    std::error_code error;
    std::filesystem::create_directories(options_.cacheFolder, error);
    result_.path = options_.cacheFolder + "/" + kCalibratedFilePrefix + key() +
                   ".safetensors";
    if (std::filesystem::is_regular_file(result_.path, error)) {
      result_.wasCached = true;
      return std::move(result_);
    }
    package::ScratchFolder scratch(result_.path);
    INGOT_ASSIGN_OR_RETURN(
        plan_, FloatPlan::create(request_, *imported_,
                                 scratch.file("float.ingot"), options_.text,
                                 options_.windowTokens, options_.maxTokens));
    planFile();
    INGOT_RETURN_IF_ERROR(file_.create(result_.path));
    for (std::size_t begin = 0; begin < groups_.size();) {
      std::size_t end = endOfBatch(begin);
      INGOT_RETURN_IF_ERROR(observe(begin, end));
      INGOT_RETURN_IF_ERROR(choose(begin, end));
      begin = end;
    }
    INGOT_RETURN_IF_ERROR(file_.commit());
    result_.tokens = plan_->numRows();
    return std::move(result_);
  }

private:
  void tell(const std::string &step, std::int64_t done, std::int64_t total) {
    if (request_.progress)
      request_.progress(step, std::uint64_t(done), std::uint64_t(total));
  }

  // The model of the request as it stands behind a phase.
  Result<OwningOpRef<ModuleOp>> moduleAfter(Phase phase,
                                            const CompileOptions &options) {
    CompileRequest request = request_;
    request.outputPath.clear();
    request.stagesFolder.clear();
    request.calibratedWeights.clear();
    request.until = phase;
    request.options = options;
    request.progress = nullptr;
    INGOT_ASSIGN_OR_RETURN(CompiledModel model,
                           compileModel(context_, request));
    return std::move(model.module);
  }

  Status findMatrices() {
    if (request_.options.pipelines.count("compress"))
      return Status::invalid("calibration chooses codes for the options of "
                             "--quantize; the compress phase has a pipeline "
                             "of its own");
    INGOT_ASSIGN_OR_RETURN(PhaseOptions phases, phaseOptions(request_.options));
    if (!needsCalibration(phases))
      return Status::invalid("no method that was asked for is calibrated");
    INGOT_ASSIGN_OR_RETURN(imported_,
                           moduleAfter(Phase::Import, request_.options));
    CompileOptions marking = request_.options;
    marking.kv.reset();
    marking.quantizeKv.reset();
    marking.pipelines["compress"] = quantizeWeightsText(phases, true);
    INGOT_ASSIGN_OR_RETURN(marked_, moduleAfter(Phase::Compress, marking));
    INGOT_ASSIGN_OR_RETURN(groups_, findInputGroups(*imported_, *marked_));
    if (groups_.empty())
      return Status::invalid("no matrix is left to calibrate");
    return Status::ok();
  }

  std::string key() {
    // The module holds the hashes of its sources, and what else decides: the
    // architecture as its descriptor says, and what pruning left.
    std::string module;
    llvm::raw_string_ostream(module) << *imported_;
    std::string text = kMethodVersion;
    text += " module " + hashOf(module) + " text " + hashOf(options_.text) + " window " +
            std::to_string(options_.windowTokens) + " tokens " +
            std::to_string(options_.maxTokens);
    for (InputGroup &group : groups_)
      for (CalibratedMatrix &matrix : group.matrices)
        text += " " + matrix.weight.getSymName().str() + "=" +
                matrix.spec.text() + "+" + std::to_string(int(group.fold));
    return hashOf(text);
  }

  // Whole layers, at least one, whose sums fit the budget.
  std::size_t endOfBatch(std::size_t begin) const {
    std::uint64_t bytes = 0;
    std::size_t end = begin;
    while (end < groups_.size()) {
      std::size_t next = end;
      std::uint64_t more = 0;
      while (next < groups_.size() && groups_[next].layer == groups_[end].layer)
        more += SecondMoments::bytes(groups_[next++].columns);
      if (end > begin && bytes + more > options_.memoryBytes)
        break;
      bytes += more;
      end = next;
    }
    return end;
  }

  Status observe(std::size_t begin, std::size_t end) {
    moments_.clear();
    std::map<std::string, std::size_t, std::less<>> byLaunch;
    for (std::size_t g = begin; g < end; ++g) {
      byLaunch[groups_[g].launch] = g;
      moments_.emplace(g, SecondMoments(groups_[g].columns));
    }
    std::string step = "calibration: layers " +
                       std::to_string(groups_[begin].layer) + " to " +
                       std::to_string(groups_[end - 1].layer);
    auto see = [&](const BoundLaunch &launch, std::int32_t rows) {
      auto found = byLaunch.find(launch.name);
      if (found == byLaunch.end() || launch.op != fbs::Params::Linear)
        return Status::ok();
      const abi::LinearParams &linear = launch.params.linear;
      SecondMoments &moments = moments_.at(found->second);
      if (!linear.input || linear.k != moments.width())
        return Status::internal("launch " + launch.name +
                                " does not read float rows of " +
                                std::to_string(moments.width()));
      moments.add({linear.input, std::size_t(rows) * std::size_t(linear.k)},
                  request_.threads);
      return Status::ok();
    };
    INGOT_RETURN_IF_ERROR(
        plan_->run(see, [&](std::int64_t done, std::int64_t total) {
          tell(step, done, total);
        }));
    for (const auto &[g, moments] : moments_)
      if (moments.numRows() != plan_->numRows())
        return Status::internal("launch " + groups_[g].launch + " ran on " +
                                std::to_string(moments.numRows()) +
                                " rows of " + std::to_string(plan_->numRows()));
    return Status::ok();
  }

  //===--------------------------------------------------------------------===//
  // What is written
  //===--------------------------------------------------------------------===//

  void planFile() {
    for (InputGroup &group : groups_) {
      for (CalibratedMatrix &matrix : group.matrices)
        file_.planCodes(matrix.weight.getSymName().str(),
                        matrix.weight.getRows(), matrix.weight.getColumns(),
                        shapeOf(matrix.spec), matrix.spec.method);
      if (group.fold == FoldInto::Norm)
        for (lm::WeightOp weight : {group.normWeight, group.normBias})
          if (weight)
            planVector(weight);
      // Biases of one launch go together, as simplify joins them.
      if (group.fold == FoldInto::Values || group.fold == FoldInto::Up)
        for (CalibratedMatrix &sibling : groups_[group.producerGroup].matrices)
          if (groups_[group.producerGroup]
                  .matrices[group.producerMatrix]
                  .bias &&
              sibling.bias)
            planVector(sibling.bias);
    }
  }

  void planVector(lm::WeightOp weight) {
    vectors_.insert(weight.getSymName().str());
    file_.planValues(weight.getSymName().str(),
                     {weight.getShape().begin(), weight.getShape().end()});
  }

  Result<std::vector<float>> valuesOf(lm::WeightOp weight) {
    if (!sources_) {
      INGOT_ASSIGN_OR_RETURN(
          LmSourceFiles files,
          LmSourceFiles::open(*imported_, request_.sourceFolder));
      sources_.emplace(std::move(files));
    }
    INGOT_ASSIGN_OR_RETURN(LoadedWeight loaded, sources_->load(weight));
    return std::move(loaded.values);
  }

  // The scales of the columns of each group, then the codes.
  Status choose(std::size_t begin, std::size_t end) {
    std::map<std::size_t, std::vector<float>> columnScales; // by group
    std::map<std::pair<std::size_t, std::size_t>, std::vector<float>> rowScales;
    for (std::size_t g = begin; g < end; ++g) {
      tell("calibration: scales of " + groups_[g].launch, std::int64_t(g),
           std::ssize(groups_));
      INGOT_ASSIGN_OR_RETURN(std::vector<float> scales, scalesOf(g));
      InputGroup &group = groups_[g];
      if (group.fold == FoldInto::Norm)
        INGOT_RETURN_IF_ERROR(writeNorm(group, scales));
      if (group.fold == FoldInto::Values || group.fold == FoldInto::Up) {
        CalibratedMatrix &producer =
            groups_[group.producerGroup].matrices[group.producerMatrix];
        std::vector<float> rows(std::size_t(producer.weight.getRows()), 1.0f);
        for (std::size_t k = 0; k < scales.size(); ++k)
          rows[group.ties.empty() ? k : std::size_t(group.ties[k])] =
              1.0f / scales[k];
        rowScales[{group.producerGroup, group.producerMatrix}] = rows;
      }
      columnScales[g] = std::move(scales);
    }
    for (std::size_t g = begin; g < end; ++g) {
      tell("calibration: codes of " + groups_[g].launch, std::int64_t(g),
           std::ssize(groups_));
      INGOT_RETURN_IF_ERROR(encode(g, columnScales[g], rowScales));
    }
    return Status::ok();
  }

  // Ones where nothing can be scaled.
  Result<std::vector<float>> scalesOf(std::size_t g) {
    InputGroup &group = groups_[g];
    if (group.fold == FoldInto::Nothing)
      return std::vector<float>(std::size_t(group.columns), 1.0f);
    std::vector<std::vector<float>> values;
    std::vector<AwqWeight> weights;
    for (CalibratedMatrix &matrix : group.matrices) {
      INGOT_ASSIGN_OR_RETURN(std::vector<float> one, valuesOf(matrix.weight));
      values.push_back(std::move(one));
    }
    for (std::size_t m = 0; m < values.size(); ++m)
      weights.push_back({values[m], group.matrices[m].weight.getRows(),
                         shapeOf(group.matrices[m].spec)});
    const SecondMoments &moments = moments_.at(g);
    AwqOptions search;
    search.ties = group.ties;
    search.threads = request_.threads;
    INGOT_ASSIGN_OR_RETURN(AwqChoice choice,
                           searchAwqScales(weights, moments.mean(),
                                           moments.meanMagnitude(), search));
    return std::move(choice.scales);
  }

  Status writeNorm(InputGroup &group, const std::vector<float> &scales) {
    INGOT_ASSIGN_OR_RETURN(std::vector<float> values,
                           valuesOf(group.normWeight));
    for (std::size_t k = 0; k < values.size(); ++k)
      values[k] = (values[k] + group.normOffset) / scales[k] - group.normOffset;
    INGOT_RETURN_IF_ERROR(
        file_.writeValues(group.normWeight.getSymName().str(), values));
    if (!group.normBias)
      return Status::ok();
    INGOT_ASSIGN_OR_RETURN(values, valuesOf(group.normBias));
    for (std::size_t k = 0; k < values.size(); ++k)
      values[k] /= scales[k];
    return file_.writeValues(group.normBias.getSymName().str(), values);
  }

  Status encode(std::size_t g, const std::vector<float> &columnScales,
                const std::map<std::pair<std::size_t, std::size_t>,
                               std::vector<float>> &rowScales) {
    InputGroup &group = groups_[g];
    std::vector<float> moments = moments_.at(g).mean();
    std::optional<GptqFactor> factor;
    for (std::size_t m = 0; m < group.matrices.size(); ++m) {
      CalibratedMatrix &matrix = group.matrices[m];
      std::string name = matrix.weight.getSymName().str();
      auto found = rowScales.find({g, m});
      const std::vector<float> *rows =
          found == rowScales.end() ? nullptr : &found->second;
      INGOT_ASSIGN_OR_RETURN(std::vector<float> values,
                             valuesOf(matrix.weight));
      std::vector<float> stored = values;
      std::int64_t columns = group.columns;
      std::int64_t count = std::ssize(values) / columns;
      for (std::int64_t r = 0; r < count; ++r)
        for (std::int64_t k = 0; k < columns; ++k)
          values[std::size_t(r * columns + k)] *=
              columnScales[std::size_t(k)] *
              (rows ? (*rows)[std::size_t(r)] : 1.0f);
      GroupCodes codes;
      if (matrix.spec.method == "gptq") {
        if (!factor) {
          INGOT_ASSIGN_OR_RETURN(
              factor,
              GptqFactor::create(moments, columns, GptqOptions().damping));
        }
        auto chosen = factor->apply(values, count, shapeOf(matrix.spec),
                                    request_.threads);
        if (!chosen)
          return chosen.status().withContext("weight @" + name);
        codes = std::move(*chosen);
      } else {
        // The inputs are divided by what the columns are multiplied by.
        std::vector<float> scaled = moments;
        for (std::int64_t i = 0; i < columns; ++i)
          for (std::int64_t j = 0; j < columns; ++j)
            scaled[std::size_t(i * columns + j)] /=
                columnScales[std::size_t(i)] * columnScales[std::size_t(j)];
        auto chosen =
            roundToInputs(values, count, columns, shapeOf(matrix.spec), scaled,
                          request_.threads);
        if (!chosen)
          return chosen.status().withContext("weight @" + name);
        codes = std::move(*chosen);
      }
      if (codes.underflowedGroups && request_.diagnostic)
        request_.diagnostic(
            "warning: weight @" + name + ": " +
            std::to_string(codes.underflowedGroups) +
            " groups are too small for a float16 scale and became zero");
      INGOT_RETURN_IF_ERROR(file_.writeCodes(name, codes));
      if (matrix.bias && vectors_.count(matrix.bias.getSymName().str())) {
        INGOT_ASSIGN_OR_RETURN(std::vector<float> bias, valuesOf(matrix.bias));
        for (std::size_t r = 0; rows && r < bias.size(); ++r)
          bias[r] *= (*rows)[r];
        INGOT_RETURN_IF_ERROR(
            file_.writeValues(matrix.bias.getSymName().str(), bias));
      }
      INGOT_RETURN_IF_ERROR(report(name, matrix.spec, stored, codes,
                                   columnScales, rows, moments));
    }
    return Status::ok();
  }

  // A few rows at equal distances say how far the outputs are.
  Status report(const std::string &name, const QuantizeSpec &spec,
                const std::vector<float> &stored, const GroupCodes &codes,
                const std::vector<float> &columnScales,
                const std::vector<float> *rowScales,
                const std::vector<float> &moments) {
    MatrixError error{name, spec.method, 0, 0};
    std::int64_t columns = codes.columns;
    std::int64_t step = std::max<std::int64_t>(1, codes.rows / 64);
    double size = 0;
    std::vector<float> row(static_cast<std::size_t>(columns));
    for (std::int64_t r = 0; r < codes.rows; r += step) {
      auto values = std::span(stored).subspan(std::size_t(r * columns),
                                              std::size_t(columns));
      size += rowError(values, moments);
      INGOT_ASSIGN_OR_RETURN(GroupCodes rounded,
                             roundToNearest(values, 1, columns, codes.shape));
      rounded.decode(0, row);
      for (std::size_t k = 0; k < row.size(); ++k)
        row[k] = values[k] - row[k];
      error.rounded += rowError(row, moments);
      codes.decode(r, row);
      for (std::size_t k = 0; k < row.size(); ++k)
        row[k] = values[k] -
                 row[k] / (columnScales[k] *
                           (rowScales ? (*rowScales)[std::size_t(r)] : 1.0f));
      error.chosen += rowError(row, moments);
    }
    error.rounded /= std::max(size, 1e-30);
    error.chosen /= std::max(size, 1e-30);
    result_.errors.push_back(std::move(error));
    return Status::ok();
  }

  const CompileRequest &request_;
  const CalibrationOptions &options_;
  MLIRContext context_;
  OwningOpRef<ModuleOp> imported_, marked_;
  std::vector<InputGroup> groups_;
  std::optional<FloatPlan> plan_;
  std::map<std::size_t, SecondMoments> moments_; // by group, of the batch
  std::optional<LmSourceFiles> sources_;
  CalibratedFile file_;
  std::set<std::string> vectors_; // that are written beside codes
  CalibratedModel result_;
};

} // namespace

Result<CalibratedModel> calibrateWeights(const CompileRequest &request,
                                         const CalibrationOptions &options) {
  if (options.windowTokens < 8 || options.windowTokens > 4096)
    return Status::invalid("calibration windows of " +
                           std::to_string(options.windowTokens) +
                           " tokens, expected 8 to 4096");
  if (options.cacheFolder.empty())
    return Status::invalid("there is no folder to keep calibrated weights in; "
                           "name one");
  return Calibration(request, options).run();
}

std::string defaultCacheFolder() {
  if (const char *own = std::getenv("INGOT_CACHE"); own && *own)
    return own;
  if (const char *cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return std::string(cache) + "/ingot";
  if (const char *home = std::getenv("HOME"); home && *home)
    return std::string(home) + "/.cache/ingot";
  return {};
}

} // namespace ingot
