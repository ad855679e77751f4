#include "compiler/driver/CheckModel.h"

#include "compiler/driver/CompileSummary.h"
#include "compiler/package/ModelAssets.h"
#include "compiler/package/WeightWriter.h"
#include "dialects/plan/Plan.h"
#include "runtime/support/Printable.h"

#include "llvm/ADT/StringExtras.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

using namespace mlir;

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

// Measured on x86-64 servers: one kernel of one level through LLVM and LLD, and
// the code it leaves. Reading is at the speed of hashing from a warm disk.
constexpr double kSecondsPerKernel = 0.12;
constexpr std::uint64_t kCodeBytesPerKernel = 12 << 10;
constexpr double kBytesReadPerSecond = 2e9;
// The compiler itself with LLVM, and what each thread packs at a time.
constexpr std::uint64_t kCompilerBytes = std::uint64_t(128) << 20;
constexpr std::uint64_t kThreadBytes = std::uint64_t(8) << 20;

std::string bytesText(std::uint64_t bytes) {
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit < 4; ++unit)
    value /= 1024;
  char text[64];
  std::snprintf(text, sizeof(text), unit ? "%.1f %s" : "%.0f %s", value,
                units[unit]);
  return text;
}

void fillModel(ModuleOp module, CheckReport &report) {
  auto info = module->getAttrOfType<DictionaryAttr>(
      plan::PlanDialect::getModelAttrName());
  auto number = [&](StringRef key) {
    return std::uint64_t(info.getAs<IntegerAttr>(key).getInt());
  };
  report.name = info.getAs<StringAttr>("name").str();
  report.family = info.getAs<StringAttr>("family").str();
  report.embedding = embeddingText(module);
  report.parameters = number("parameters");
  report.context = number("context");
  report.sourceBytes = number("source_bytes");
  for (auto weight : module.getOps<plan::WeightOp>()) {
    if (weight.getLayout() == plan::Layout::Row)
      continue;
    CheckReport::Encoding &encoding =
        report.encodings[weight.getEncoding().getShortName()];
    ++encoding.tensors;
    encoding.bytes += weight.getPlacement()->getSize();
  }
  report.weightsBytes = package::weightsBytes(module);
  report.conversions = package::plannedConversions(module);
  report.kvElements = kvElementsOf(module);
  for (auto state : module.getOps<plan::StateOp>())
    report.kvBytesPerToken +=
        state.getLayers() * (state.getLayerBlockBytes() / 32);
}

// Target, code and arenas; gives the number of kernels times levels.
std::uint64_t fillTarget(ModuleOp module, CheckReport &report) {
  std::uint64_t kernels = 0;
  for (auto target : module.getOps<plan::TargetOp>()) {
    CheckReport::Target &named =
        report.targets.emplace_back(target.getSymName().str());
    for (Attribute level : target.getLevels())
      named.levels.push_back(cast<StringAttr>(level).str());
    std::uint64_t ofTarget = 0;
    target.walk([&](plan::KernelOp) { ++ofTarget; });
    kernels += ofTarget * target.getLevels().size();
    report.tokenArenaBytes = std::max<std::uint64_t>(
        report.tokenArenaBytes, *target.getTokenArenaBytes());
    report.logitRowArenaBytes = std::max<std::uint64_t>(
        report.logitRowArenaBytes, *target.getLogitRowArenaBytes());
  }
  return kernels;
}

Status check(MLIRContext &context, const CompileRequest &asked,
             CheckReport &report) {
  // Codes that calibration would choose have the size of rounded ones.
  CompileRequest request = asked;
  if (request.options.quantize) {
    INGOT_ASSIGN_OR_RETURN(request.options.quantize,
                           roundedShorthand(*request.options.quantize));
  }
  INGOT_ASSIGN_OR_RETURN(CompiledModel compiled,
                         compileModel(context, request));
  report.notes = compiled.notes;
  ModuleOp module = *compiled.module;
  fillModel(module, report);
  const std::uint64_t kernels = fillTarget(module, report);
  auto model = module->getAttrOfType<DictionaryAttr>(
      plan::PlanDialect::getModelAttrName());
  INGOT_ASSIGN_OR_RETURN(
      package::ModelAssets assets,
      package::buildModelAssets(model, request.sourceFolder));
  report.notes.insert(report.notes.end(), assets.notes.begin(),
                      assets.notes.end());
  INGOT_ASSIGN_OR_RETURN(report.secondsWrite,
                         package::estimateWriteSeconds(
                             module, request.sourceFolder, request.threads));
  const unsigned threads = std::max(1u, request.threads);
  report.secondsCode = double(kernels) * kSecondsPerKernel / threads;
  report.secondsRead = double(report.sourceBytes) / kBytesReadPerSecond;
  report.artifactBytes = report.weightsBytes + assets.tokenizer.size() +
                         assets.templates.size() + assets.licence.size() +
                         kernels * kCodeBytesPerKernel;
  report.compileMemoryBytes = kCompilerBytes + threads * kThreadBytes;
  return Status::ok();
}

} // namespace

CheckReport checkModel(MLIRContext &context, CompileRequest request) {
  CheckReport report;
  report.modelPath = request.modelPath;
  request.outputPath.clear();
  request.stagesFolder.clear();
  request.until = Phase::Lower;
  request.hashSources = false;
  request.diagnostic = [&report](const std::string &text) {
    report.diagnostics.push_back(text);
  };
  report.status = check(context, request, report);
  return report;
}

std::string checkTable(const CheckReport &report) {
  std::string text = printable(report.modelPath) + "\n";
  auto row = [&](const std::string &key, const std::string &value) {
    text += "  " + key +
            std::string(key.size() < 22 ? 22 - key.size() : 1, ' ') + value +
            "\n";
  };
  if (!report.status) {
    row("will compile", "no");
    for (const std::string &line : report.diagnostics)
      text += "  " + printableLines(line) + "\n";
    return text + "  " + printableLines(report.status.message()) + "\n";
  }
  char number[64];
  std::snprintf(number, sizeof(number), "%.1f M",
                double(report.parameters) / 1e6);
  row("will compile", "yes");
  row("model", printable(report.name + " (" + report.family + ")"));
  if (!report.embedding.empty())
    row("gives", report.embedding);
  row("parameters", number);
  for (const CheckReport::Target &target : report.targets)
    row("target", target.name + " (" + llvm::join(target.levels, ", ") + ")");
  text += "encodings\n";
  for (const auto &[name, encoding] : report.encodings)
    row(name, std::to_string(encoding.tensors) + " matrices, " +
                  bytesText(encoding.bytes));
  text += "conversions\n" + conversionsText(report.conversions, false);
  text += "memory of a server\n";
  row("weights", bytesText(report.weightsBytes));
  row("arena per token", bytesText(report.tokenArenaBytes));
  row("arena per logits row", bytesText(report.logitRowArenaBytes));
  row("KV cache per token",
      bytesText(report.kvBytesPerToken) + ", " + kvText(report.kvElements));
  row("KV cache of a context",
      bytesText(report.kvBytesPerToken * report.context) + " (" +
          std::to_string(report.context) + " tokens)");
  text += "compilation, about\n";
  row("disk", bytesText(report.artifactBytes));
  row("memory",
      bytesText(report.compileMemoryBytes) + ", beside the mapped model");
  std::snprintf(number, sizeof(number),
                "%.1f s (read %.1f, code %.1f, write %.1f)", report.seconds(),
                report.secondsRead, report.secondsCode, report.secondsWrite);
  row("time", number);
  for (const std::string &note : report.notes)
    text += "note: " + printableLines(note) + "\n";
  return text;
}

std::string checkJson(const CheckReport &report) {
  Json json = {{"model", report.modelPath}, {"compiles", report.status.isOk()}};
  if (!report.status) {
    json["code"] = statusCodeName(report.status.code());
    json["error"] = report.status.message();
    json["diagnostics"] = report.diagnostics;
    return json.dump(2, ' ', /*ensure_ascii=*/true,
                     Json::error_handler_t::replace) +
           "\n";
  }
  Json encodings = Json::object();
  for (const auto &[name, encoding] : report.encodings)
    encodings[name] = {{"tensors", encoding.tensors},
                       {"bytes", encoding.bytes}};
  Json conversions = Json::array();
  for (const package::Conversion &one : report.conversions)
    conversions.push_back({{"stored", one.stored},
                           {"encoding", one.encoding},
                           {"codes", one.keptCodes ? "kept" : "rounded"},
                           {"tensors", one.tensors}});
  json["name"] = report.name;
  json["family"] = report.family;
  json["gives"] = report.embedding.empty() ? "logits" : report.embedding;
  json["parameters"] = report.parameters;
  json["context"] = report.context;
  for (const CheckReport::Target &target : report.targets)
    json["targets"].push_back(
        {{"name", target.name}, {"levels", target.levels}});
  json["encodings"] = encodings;
  json["conversions"] = conversions;
  json["memory"] = {{"weights_bytes", report.weightsBytes},
                    {"arena_bytes_per_token", report.tokenArenaBytes},
                    {"arena_bytes_per_logits_row", report.logitRowArenaBytes},
                    {"kv_elements", report.kvElements},
                    {"kv_bytes_per_token", report.kvBytesPerToken}};
  json["estimates"] = {{"artifact_bytes", report.artifactBytes},
                       {"compile_memory_bytes", report.compileMemoryBytes},
                       {"seconds_read", report.secondsRead},
                       {"seconds_code", report.secondsCode},
                       {"seconds_write", report.secondsWrite}};
  json["notes"] = report.notes;
  return json.dump(2, ' ', /*ensure_ascii=*/true,
                   Json::error_handler_t::replace) +
         "\n";
}

} // namespace ingot
