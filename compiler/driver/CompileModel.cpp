#include "compiler/driver/CompileModel.h"

#include "compiler/codegen/cpu/CpuCodegen.h"
#include "compiler/codegen/cuda/CompileCuda.h"
#include "compiler/driver/CalibratedWeights.h"
#include "compiler/driver/ExitMaps.h"
#include "compiler/frontend/ImportModel.h"
#include "compiler/frontend/lm/LmBuilder.h"
#include "compiler/package/OutputFile.h"
#include "dialects/lm/LmOps.h"
#include "dialects/plan/Plan.h"
#include "passes/Passes.h"
#include "passes/lower/Passes.h"
#include "passes/prune/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <filesystem>
#include <mutex>

using namespace mlir;

namespace ingot {
namespace {

std::string locationText(Location location) {
  if (auto file = dyn_cast<FileLineColLoc>(location))
    return file.getFilename().str() + ":" + std::to_string(file.getLine()) +
           ":" + std::to_string(file.getColumn()) + ": ";
  if (StringRef name = lm::locationName(location); !name.empty())
    return name.str() + ": ";
  return {};
}

std::string diagnosticText(Diagnostic &diagnostic) {
  const char *severity = "error";
  if (diagnostic.getSeverity() == DiagnosticSeverity::Warning)
    severity = "warning";
  else if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
    severity = "note";
  return std::string(severity) + ": " + locationText(diagnostic.getLocation()) +
         diagnostic.str();
}

// Tells of each pass over a whole module, as CompileRequest::afterPass says.
class PassWatch : public PassInstrumentation {
public:
  PassWatch(Phase phase, const CompileRequest &request)
      : phase(phase), request(request) {}

  void runBeforePass(Pass *pass, Operation *op) override {
    if (isa<ModuleOp>(op))
      start = std::chrono::steady_clock::now();
  }
  void runAfterPass(Pass *pass, Operation *op) override {
    auto module = dyn_cast<ModuleOp>(op);
    // Adaptors around nested pipelines have no name of their own.
    if (!module || pass->getArgument().empty())
      return;
    std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - start;
    std::string text;
    llvm::raw_string_ostream stream(text);
    pass->printAsTextualPipeline(stream);
    request.afterPass(phase, text, module, seconds.count());
  }

private:
  Phase phase;
  const CompileRequest &request;
  std::chrono::steady_clock::time_point start;
};

class Compilation {
public:
  Compilation(MLIRContext &context, const CompileRequest &request)
      : context(context), request(request) {}

  Result<CompiledModel> run() {
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      if (request.diagnostic) {
        request.diagnostic(diagnosticText(diagnostic));
        for (Diagnostic &note : diagnostic.getNotes())
          request.diagnostic(diagnosticText(note));
      }
      return success();
    });
    INGOT_ASSIGN_OR_RETURN(phases, phaseOptions(request.options));
    INGOT_RETURN_IF_ERROR(timed("read", [&] { return load(); }));
    for (const Pruning &pruning : request.prunings)
      INGOT_RETURN_IF_ERROR(prune(pruning));
    if (!request.calibratedWeights.empty())
      INGOT_RETURN_IF_ERROR(addCalibratedWeights(
          request.calibratedWeights, *result.module, request.calibratedPrefix));
    if (!result.module->getOps<lm::ProgramOp>().empty() || request.from)
      INGOT_RETURN_IF_ERROR(runPhases());
    if (!request.outputPath.empty())
      INGOT_RETURN_IF_ERROR(emit());
    return std::move(result);
  }

private:
  template <typename Function>
  Status timed(const std::string &step, Function &&function) {
    if (request.progress)
      request.progress(step, 0, 0);
    auto start = std::chrono::steady_clock::now();
    Status status = function();
    std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - start;
    result.seconds.emplace_back(step, seconds.count());
    return status;
  }

  //===--------------------------------------------------------------------===//
  // Import
  //===--------------------------------------------------------------------===//

  Status load() {
    std::error_code error;
    if (!std::filesystem::exists(request.modelPath, error))
      return Status::notFound(request.modelPath + ": no such file or folder");
    if (StringRef(request.modelPath).ends_with(".mlir"))
      return loadStage();
    if (request.from)
      return Status::invalid(
          "a first phase can be named for an .mlir stage only");
    if (!request.sourceFolder.empty())
      return Status::invalid(
          "a source folder can be named for an .mlir stage only");
    ImportOptions import;
    for (const std::string &text :
         request.options.lora.value_or(std::vector<std::string>())) {
      INGOT_ASSIGN_OR_RETURN(LoraRequest lora, parseLora(text));
      import.loras.push_back(std::move(lora));
    }
    import.descriptorPaths = request.descriptorPaths;
    import.explainFusion = request.explainFusion;
    INGOT_ASSIGN_OR_RETURN(ModelSpec spec,
                           importModel(request.modelPath, import));
    INGOT_RETURN_IF_ERROR(applyPooling(spec));
    ExitMaps maps;
    if (request.options.exitMaps) {
      INGOT_ASSIGN_OR_RETURN(
          maps, addExitMaps(*request.options.exitMaps, phases.exits, spec));
    }
    LmBuildOptions build;
    build.context = request.options.context.value_or(0);
    build.kvDtype =
        llvm::StringSwitch<KvDtype>(request.options.kv.value_or("f16"))
            .Case("f32", KvDtype::F32)
            .Default(KvDtype::F16);
    build.name = request.options.name.value_or("");
    build.hashSources = request.hashSources;
    FailureOr<OwningOpRef<ModuleOp>> module = buildLm(context, spec, build);
    if (failed(module))
      return Status::invalid(request.modelPath + ": cannot be expressed in lm");
    result.module = std::move(*module);
    addExitConfidences(maps, *result.module);
    result.notes = std::move(spec.notes);
    if (spec.tokenizer.kind == TokenizerLocation::Kind::None)
      result.notes.push_back(
          "no tokenizer was found, so the artifact takes token ids and no "
          "text (expected tokenizer.json or tokenizer.model beside the model, "
          "or a vocabulary in the GGUF file)");
    setProvenance();
    return Status::ok();
  }

  // The option wins over what the model's files say.
  Status applyPooling(ModelSpec &spec) {
    if (!request.options.pooling)
      return Status::ok();
    if (!spec.embedding)
      return Status::invalid("pooling: " + request.modelPath +
                             " is not an encoder; it generates");
    INGOT_ASSIGN_OR_RETURN(spec.embedding,
                           parsePooling(*request.options.pooling));
    return Status::ok();
  }

  Status loadStage() {
    std::error_code error;
    if (!std::filesystem::is_regular_file(request.modelPath, error))
      return Status::invalid(request.modelPath + ": is not a file");
    result.module = parseSourceFile<ModuleOp>(request.modelPath, &context);
    if (!result.module)
      return Status::invalid(request.modelPath + ": is not a valid module");
    ModuleOp module = *result.module;
    const CompileOptions &options = request.options;
    if (options.kv || options.context || options.name || options.lora ||
        options.exitMaps || options.pooling || !request.descriptorPaths.empty())
      return Status::invalid(
          "kv, context, name, lora, exit maps, pooling and descriptors "
          "are fixed at import; " +
          request.modelPath + " has been imported");
    if (options.quantizeKv &&
        request.from.value_or(Phase::Import) > Phase::Compress)
      return Status::invalid(std::string("quantize kv: phase ") +
                             phaseName(*request.from) +
                             " is behind the one that would do it, compress");
    bool hasProgram = !module.getOps<lm::ProgramOp>().empty();
    if (!hasProgram && module.getOps<plan::TargetOp>().empty())
      return Status::invalid(request.modelPath +
                             ": has neither an lm.program nor a plan.target");
    // The passes that are left of the last phase, behind the one that made it.
    bool goesOn = request.from == Phase::Lower &&
                  options.pipelines.size() == 1 &&
                  options.pipelines.count(phaseName(Phase::Lower)) != 0;
    if (!hasProgram && !goesOn &&
        (options.quantize || options.quantizeKv || options.table ||
         options.skip || options.exits || options.levels || options.target ||
         !options.pipelines.empty() || request.from))
      return Status::invalid(
          request.modelPath +
          ": no phase is left that could follow the options");
    if (!module->hasAttr(plan::PlanDialect::getProvenanceAttrName()))
      setProvenance();
    return Status::ok();
  }

  Status prune(const Pruning &pruning) {
    if (!pruning.weights.empty())
      INGOT_RETURN_IF_ERROR(addPrunedWeights(pruning.weights, *result.module));
    auto passes = PassManager::on<ModuleOp>(&context);
    std::string message;
    llvm::raw_string_ostream stream(message);
    if (failed(parsePassPipeline(pruning.pass, passes, stream)))
      return Status::invalid("pipeline \"" + pruning.pass +
                             "\": " + stream.str());
    if (failed(passes.run(*result.module)))
      return Status::unsupported("\"" + pruning.pass + "\" failed");
    return Status::ok();
  }

  // The whole pipeline, with what was pruned before it.
  std::string provenanceText() const {
    std::string text = wholePipelineText(phases, request.options);
    std::string pruned;
    for (const Pruning &pruning : request.prunings)
      pruned += pruning.pass + ",";
    return text.insert(text.find('(') + 1, pruned);
  }

  void setProvenance() {
    Builder builder(&context);
    (*result.module)
        ->setAttr(
            plan::PlanDialect::getProvenanceAttrName(),
            builder.getDictionaryAttr(
                {builder.getNamedAttr(
                     "compiler", builder.getStringAttr("ingot " INGOT_VERSION)),
                 builder.getNamedAttr(
                     "pipeline", builder.getStringAttr(provenanceText()))}));
  }

  //===--------------------------------------------------------------------===//
  // Phases
  //===--------------------------------------------------------------------===//

  Status runPhases() {
    for (Phase phase : kPhases) {
      if (phase < request.from.value_or(Phase::Import) || phase > request.until)
        continue;
      INGOT_RETURN_IF_ERROR(
          timed(phaseName(phase), [&] { return runPhase(phase); }));
      INGOT_RETURN_IF_ERROR(saveStage(phase));
    }
    return Status::ok();
  }

  Status runPhase(Phase phase) {
    auto passes = PassManager::on<ModuleOp>(&context);
    std::string text = phaseText(phase, phases, request.options);
    std::string message;
    llvm::raw_string_ostream stream(message);
    if (failed(parsePassPipeline(text, passes, stream)))
      return Status::invalid(std::string("phase ") + phaseName(phase) +
                             ": pipeline \"" + text + "\": " + stream.str());
    if (request.afterPass)
      passes.addInstrumentation(std::make_unique<PassWatch>(phase, request));
    if (failed(passes.run(*result.module)))
      return Status::unsupported(std::string("phase ") + phaseName(phase) +
                                 " failed");
    return Status::ok();
  }

  Status saveStage(Phase phase) {
    if (request.stagesFolder.empty())
      return Status::ok();
    std::error_code error;
    std::filesystem::create_directories(request.stagesFolder, error);
    std::string path = request.stagesFolder + "/" +
                       std::to_string(static_cast<int>(phase)) + "-" +
                       phaseName(phase) + ".mlir";
    return package::writeOutputFile(path, stageText(*result.module));
  }

  //===--------------------------------------------------------------------===//
  // Code and file
  //===--------------------------------------------------------------------===//

  Status emit() {
    if (request.until != Phase::Lower)
      return Status::invalid("an artifact needs all phases");
    std::vector<package::TargetCode> code;
    INGOT_RETURN_IF_ERROR(timed("code", [&] { return compileTargets(code); }));
    package::WriteOptions write;
    write.threads = request.threads;
    write.sourceFolder = request.sourceFolder;
    write.progress = request.progress;
    return timed("write", [&]() -> Status {
      INGOT_ASSIGN_OR_RETURN(result.artifact,
                             package::writeArtifact(request.outputPath,
                                                    *result.module,
                                                    std::move(code), write));
      return Status::ok();
    });
  }

  Status compileTargets(std::vector<package::TargetCode> &code) {
    for (auto target : result.module->getOps<plan::TargetOp>()) {
      package::TargetCode &compiled = code.emplace_back();
      if (target.isCuda()) {
        INGOT_RETURN_IF_ERROR(compileCuda(target, compiled));
        continue;
      }
      if (target.getSymName() != "cpu")
        return Status::unsupported("target @" + target.getSymName().str() +
                                   " (cpu and cuda have code)");
      INGOT_RETURN_IF_ERROR(compileCpu(target, compiled));
    }
    return Status::ok();
  }

  // Images of every kernel for every chip, and as text for later ones.
  Status compileCuda(plan::TargetOp target, package::TargetCode &compiled) {
    std::vector<std::string> kernels, chips;
    for (auto kernel : target.getBody().getOps<plan::KernelOp>())
      kernels.push_back(kernel.getSymName().str());
    codegen::CompileCudaOptions options;
    options.threads = request.threads;
    options.cacheFolder = codegen::defaultCudaCacheFolder();
    options.withPtx = false;
    for (Attribute level : target.getLevels()) {
      StringRef name = cast<StringAttr>(level).getValue();
      if (name == "compute_80")
        options.withPtx = true;
      else
        chips.push_back(name.str());
    }
    INGOT_ASSIGN_OR_RETURN(codegen::CompiledCuda made,
                           codegen::compileCuda(chips, kernels, options));
    for (Attribute wanted : target.getLevels()) {
      StringRef name = cast<StringAttr>(wanted).getValue();
      auto found = llvm::find_if(
          made.levels, [&](const auto &level) { return level.name == name; });
      if (found == made.levels.end())
        return Status::unsupported("level \"" + name.str() +
                                   "\" of target @cuda: no code is made for "
                                   "it (sm_N and compute_80 have some)");
      package::CudaLevelCode &level = compiled.cudaLevels.emplace_back();
      level.name = found->name;
      level.driverVersion = std::uint32_t(found->driverVersion);
      for (const codegen::CudaImage &image : found->images) {
        package::CudaKernelImage entry;
        entry.name = image.kernel;
        entry.registers = image.resources.registers;
        entry.spillBytes = image.resources.spillBytes;
        entry.staticSharedBytes = image.resources.staticSharedBytes;
        entry.sourceHash =
            llvm::utohexstr(image.textHash, /*LowerCase=*/true, /*Width=*/16);
        level.add(std::move(entry), image.bytes);
      }
    }
    return Status::ok();
  }

  Status compileCpu(plan::TargetOp target, package::TargetCode &compiled) {
    std::vector<codegen::KernelRequest> kernels;
    for (auto kernel : target.getBody().getOps<plan::KernelOp>()) {
      codegen::KernelRequest wanted;
      wanted.name = kernel.getSymName().str();
      wanted.op = kernel.getOp().str();
      for (NamedAttribute constant : kernel.getConfig()) {
        std::string key = constant.getName().str();
        if (auto text = dyn_cast<StringAttr>(constant.getValue()))
          wanted.constants[key] = text.str();
        else if (auto number = dyn_cast<IntegerAttr>(constant.getValue());
                 number && number.getType().isSignlessInteger(64))
          wanted.constants[key] = number.getInt();
        else
          return Status::invalid("kernel @" + wanted.name + ": constant \"" +
                                 key + "\" is neither a string nor an i64");
      }
      kernels.push_back(std::move(wanted));
    }
    for (Attribute level : target.getLevels()) {
      INGOT_ASSIGN_OR_RETURN(
          codegen::CompiledLevel one,
          codegen::compileLevel(cast<StringAttr>(level).str(), kernels,
                                request.threads));
      compiled.levels.push_back(std::move(one));
    }
    return Status::ok();
  }

  MLIRContext &context;
  const CompileRequest &request;
  PhaseOptions phases;
  CompiledModel result;
};

} // namespace

void prepareContext(MLIRContext &context) {
  context.disableMultithreading();
  // A diagnostic that also printed its operation would print the whole model.
  context.printOpOnDiagnostic(false);
  context.loadDialect<lm::LmDialect, plan::PlanDialect>();
  static std::once_flag registered; // the registry of passes is the process's
  std::call_once(registered, [] {
    registerIngotLmPasses();
    registerIngotLowerPasses();
    registerIngotPrunePasses();
    registerCanonicalizerPass();
    registerCSEPass();
    registerSymbolDCEPass();
  });
}

Result<CompiledModel> compileModel(MLIRContext &context,
                                   const CompileRequest &request) {
  return Compilation(context, request).run();
}

std::string stageText(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  OpPrintingFlags flags;
  flags.enableDebugInfo(true, /*prettyForm=*/false);
  module.print(stream, flags);
  stream << "\n";
  return stream.str();
}

} // namespace ingot
