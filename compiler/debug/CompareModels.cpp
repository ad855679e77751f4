#include "compiler/debug/CompareModels.h"

#include "compiler/driver/CalibratedWeights.h"
#include "passes/quantize/Calibrated.h"

namespace ingot::debug {
namespace {

class Comparing {
public:
  explicit Comparing(const CompareRequest &request) : request_(request) {}

  Result<Comparison> run() {
    INGOT_ASSIGN_OR_RETURN(SourceKind a, kindOf(request_.a));
    INGOT_ASSIGN_OR_RETURN(SourceKind b, kindOf(request_.b));
    INGOT_RETURN_IF_ERROR(chooseTokens(request_.a, a));
    INGOT_RETURN_IF_ERROR(chooseTokens(request_.b, b));
    if (tokens_.empty())
      return Status::invalid("there are no tokens to run");
    if (b == SourceKind::Module)
      return against(request_.a, a, request_.b);
    if (a == SourceKind::Module)
      return against(request_.b, b, request_.a);
    // Dataflow is known of what runs.
    bool swap = a == SourceKind::Tensors && b == SourceKind::Artifact;
    INGOT_ASSIGN_OR_RETURN(
        Recording observed,
        record(swap ? request_.b : request_.a, swap ? b : a));
    INGOT_ASSIGN_OR_RETURN(
        Recording reference,
        record(swap ? request_.a : request_.b, swap ? a : b));
    if (observed.isProgram && reference.isProgram &&
        observed.codesHash != reference.codesHash)
      for (const Recording *side : {&observed, &reference})
        if (side->foldsScales)
          return refuseFolds(side->source, "an artifact of the same codes");
    return compareRecordings(observed, reference, request_.options);
  }

private:
  Status chooseTokens(const std::string &path, SourceKind kind) {
    if (tokens_.empty())
      tokens_ = request_.tokens;
    if (kind != SourceKind::Tensors)
      return Status::ok();
    Result<std::vector<std::int32_t>> own = readTokens(path);
    if (!own)
      return own.status().code() == StatusCode::NotFound && !tokens_.empty()
                 ? Status::ok()
                 : own.status();
    if (!tokens_.empty() && tokens_ != *own)
      return Status::invalid(path + ": was made with other tokens than those "
                                    "to run");
    tokens_ = std::move(*own);
    return Status::ok();
  }

  Result<Recording> record(const std::string &path, SourceKind kind) {
    switch (kind) {
    case SourceKind::Artifact:
      return recordArtifact(path, tokens_, request_.run);
    case SourceKind::Module: {
      INGOT_ASSIGN_OR_RETURN(
          LmModel model,
          LmModel::open(path, request_.sourceFolder, request_.diagnostic));
      INGOT_ASSIGN_OR_RETURN(Recording recording,
                             recordModule(model.executor(), tokens_));
      recording.source = path;
      return recording;
    }
    case SourceKind::Tensors:
      break;
    }
    return readTensors(path);
  }

  Result<Comparison> against(const std::string &observed, SourceKind kind,
                             const std::string &reference) {
    INGOT_ASSIGN_OR_RETURN(Recording recording, record(observed, kind));
    INGOT_ASSIGN_OR_RETURN(
        LmModel model,
        LmModel::open(reference, request_.sourceFolder, request_.diagnostic));
    if (recording.foldsScales && !holdsCodes(model.module()))
      return refuseFolds(observed, "the stage behind its compress phase "
                                   "(compile --save-stages)");
    INGOT_ASSIGN_OR_RETURN(Comparison comparison,
                           compareWithModule(recording, model.executor(),
                                             tokens_, request_.options));
    comparison.reference = reference;
    return comparison;
  }

  // What norms, v and up give is divided by scales that a model does not know.
  static Status refuseFolds(const std::string &path, const char *instead) {
    return Status::unsupported(
        path +
        ": AWQ has scaled the columns of its weights and divided what "
        "makes their inputs; compare it with " +
        instead);
  }

  // Are calibrated codes the module's weights, not only beside them?
  static bool holdsCodes(mlir::ModuleOp module) {
    bool has = false;
    for (auto source : module.getOps<lm::SourceOp>())
      has = has || source.getName().starts_with(kCalibratedFilePrefix);
    for (auto weight : module.getOps<lm::WeightOp>())
      has = has && !isCalibratedName(weight.getSymName());
    return has;
  }

  const CompareRequest &request_;
  std::vector<std::int32_t> tokens_;
};

} // namespace

Result<Comparison> compareModels(const CompareRequest &request) {
  return Comparing(request).run();
}

} // namespace ingot::debug
