// `ingot inspect`: what an artifact is, without running it: the model with the
// effective values of each layer, its weights by encoding, its code by level
// and whether this machine runs it, its state, its origin.
#include "tools/ingot/Commands.h"
#include "tools/ingot/Report.h"

#include "runtime/engine/Encoder.h"
#include "runtime/execute/cuda/cost/Chips.h"
#include "runtime/plan/CpuFeatures.h"
#include "runtime/plan/LibraryUse.h"
#include "runtime/plan/VerifyPlan.h"
#include "runtime/support/Printable.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <map>

namespace ingot::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string encodingName(const fbs::Encoding &encoding) {
  static const char *codes[] = {"f32", "f16", "bf16", "i8", "i4"};
  std::string name = codes[static_cast<unsigned>(encoding.code())];
  if (encoding.group() != 0)
    name += "-g" + std::to_string(encoding.group());
  return encoding.minimum() ? name + "-min" : name;
}

// Experts by layer, read from the launches that choose them.
using ExpertsByLayer = std::map<std::uint32_t, Json>;

ExpertsByLayer expertsByLayer(const fbs::Plan &plan) {
  ExpertsByLayer experts;
  for (const fbs::Target *target : *plan.targets())
    for (const fbs::ProgramSegment *segment : *target->segments())
      for (const fbs::Launch *launch : *segment->launches())
        if (const fbs::Route *route = launch->params_as_Route())
          experts[static_cast<std::uint32_t>(launch->layer())] = {
              {"count", route->experts()}, {"each_token", route->top_k()}};
  return experts;
}

Json layerJson(const fbs::LayerInfo &layer, const ExpertsByLayer &experts) {
  const auto routed = experts.find(layer.index());
  return {{"experts", routed == experts.end() ? Json() : routed->second},
          {"heads", layer.heads()},
          {"kv_heads", layer.kv_heads()},
          {"head_dim", layer.head_dim()},
          {"rotary_dim", layer.rotary_dim()},
          {"rope", textOf(layer.rope_kind())},
          {"rope_theta", layer.rope_theta()},
          {"rope_attention_factor", layer.rope_attention_factor()},
          {"window", layer.window()},
          {"softmax_scale", layer.softmax_scale()},
          {"soft_cap", layer.soft_cap()},
          {"ffn", layer.ffn()},
          {"activation", textOf(layer.activation())},
          {"norm_eps", layer.norm_eps()},
          {"qk_norm", layer.qk_norm()},
          {"qkv_bias", layer.qkv_bias()},
          {"output_bias", layer.output_bias()},
          {"encodings", listOf(layer.encodings())}};
}

Json modelJson(const fbs::Plan &plan) {
  const fbs::ModelInfo &model = *plan.model();
  const ExpertsByLayer experts = expertsByLayer(plan);
  auto layers = Json::array();
  for (const fbs::LayerInfo *layer : *model.layers()) {
    Json entry = {{"index", layer->index()}};
    entry.update(layerJson(*layer, experts));
    layers.push_back(entry);
  }
  return {{"family", model.family()->str()},
          {"name", model.name()->str()},
          {"architecture", model.architecture()->str()},
          {"parameters", model.parameters()},
          {"vocab", model.vocab()},
          {"hidden", model.hidden()},
          {"context", model.context()},
          {"tied_head", model.tied_head()},
          {"bos", model.bos()},
          {"eos", listOf(model.eos())},
          {"source_bytes", model.source_bytes()},
          {"sampling",
           {{"temperature", model.default_temperature()},
            {"top_p", model.default_top_p()},
            {"top_k", model.default_top_k()},
            {"min_p", model.default_min_p()},
            {"repetition_penalty", model.default_repetition_penalty()}}},
          {"layers", layers}};
}

// Null of a model that generates.
Json embeddingJson(const fbs::ModelInfo &model) {
  const fbs::EmbeddingInfo *embedding = model.embedding();
  if (!embedding)
    return nullptr;
  return {{"dimensions", model.hidden()},
          {"pooling", fbs::EnumNamePoolKind(embedding->pooling())},
          {"normalized", embedding->normalized()}};
}

// Of a CUDA target: chips instead of features.
Json cudaLevelJson(const fbs::Level &level) {
  auto parsed = CudaLevel::parse(level.name()->string_view());
  return {{"name", level.name()->str()},
          {"code_bytes", level.code_size()},
          {"kind", parsed && parsed->isText ? "ptx" : "cubin"},
          {"driver_version", level.driver_version()}};
}

// How a CUDA kernel is launched, and what ptxas said of it for each chip; the share of
// warps that run at once is null for chips without a table. Text has
// not been compiled yet.
Json cudaKernelJson(const fbs::Kernel &kernel, const fbs::Target &target) {
  auto chips = Json::object();
  for (const fbs::KernelSymbol *symbol : *kernel.symbols()) {
    const fbs::Level &level = *target.levels()->Get(symbol->level());
    auto parsed = CudaLevel::parse(level.name()->string_view());
    if (!parsed || parsed->isText)
      continue;
    chips[level.name()->str()] = {
        {"registers", symbol->registers()},
        {"spill_bytes", symbol->spill_bytes()},
        {"static_shared_bytes", symbol->static_shared_bytes()},
        {"code_bytes", symbol->size()},
        {"occupancy", nullptr}};
    auto chip = cuda::chipOfLevel(level.name()->string_view());
    if (chip)
      chips[level.name()->str()]["occupancy"] =
          cuda::occupancyOf(
              *chip,
              {std::int32_t(kernel.block_threads()),
               std::int32_t(std::min(symbol->registers(), 1u << 16)),
               std::int32_t(std::min(symbol->static_shared_bytes(), 1u << 20) +
                            kernel.shared_bytes())})
              .share;
  }
  return {{"name", kernel.name()->str()},
          {"op", kernel.op()->str()},
          {"block_threads", kernel.block_threads()},
          {"shared_bytes", kernel.shared_bytes()},
          {"tile_rows", kernel.tile_rows()},
          {"tile_tokens", kernel.tile_tokens()},
          {"source_hash", textOf(kernel.source_hash())},
          {"chips", chips}};
}

Json targetJson(const fbs::Target &target) {
  auto levels = Json::array();
  for (const fbs::Level *level : *target.levels()) {
    if (isCuda(target)) {
      levels.push_back(cudaLevelJson(*level));
      continue;
    }
    std::vector<std::string> features = listOf(level->features());
    auto missing = missingFeatures(features, hostCpuFeatures());
    levels.push_back({{"name", level->name()->str()},
                      {"code_bytes", level->code_size()},
                      {"features", features},
                      {"missing_here", missing},
                      {"runs_here", missing.empty()}});
  }
  std::size_t launches = 0;
  auto segments = Json::array();
  for (const fbs::ProgramSegment *segment : *target.segments()) {
    launches += segment->launches()->size();
    segments.push_back({{"name", segment->name()->str()},
                        {"launches", segment->launches()->size()}});
  }
  auto exits = Json::array();
  if (target.exits())
    for (const fbs::Exit *exit : *target.exits()) {
      auto confidence = Json::array();
      if (exit->confidence())
        for (float entry : *exit->confidence())
          confidence.push_back(entry);
      exits.push_back({{"name", exit->name()->str()},
                       {"layers", exit->layers()},
                       {"after_segments", exit->after()},
                       {"head_launches", exit->head()->launches()->size()},
                       {"fill_launches",
                        exit->fill() ? exit->fill()->launches()->size() : 0},
                       {"confidence", confidence}});
    }
  auto kernels = Json::array();
  for (const fbs::Kernel *kernel : *target.kernels())
    if (isCuda(target))
      kernels.push_back(cudaKernelJson(*kernel, target));
    else
      kernels.push_back({{"name", kernel->name()->str()},
                         {"op", kernel->op()->str()},
                         {"scratch_bytes", kernel->scratch_bytes()}});
  Json made = {{"name", target.name()->str()},
               {"weight_layout", target.weight_layout()->str()},
               {"levels", levels},
               {"launches", launches},
               {"segments", segments},
               {"exits", exits},
               {"token_arena_bytes", target.token_arena_bytes()},
               {"logit_row_arena_bytes", target.logit_row_arena_bytes()},
               {"kernels", kernels}};
  if (LibraryUse use = libraryUseOf(target); use.isUsed())
    made["library"] = {{"name", "cuBLASLt"},
                       {"launches", use.numLaunches},
                       {"first_rows", use.firstRows},
                       {"matrix_bytes", use.unpackedBytes},
                       {"sums_bytes_per_row", use.sumsBytesPerRow},
                       {"workspace_bytes", kLibraryWorkspaceBytes},
                       {"row_invariant", false}};
  return made;
}

Json artifactJson(const Artifact &artifact, bool verified) {
  const fbs::Plan &plan = artifact.plan();
  auto segments = Json::array();
  for (const container::SegmentEntry &entry : artifact.segments())
    segments.push_back(
        {{"kind", segmentKindName(entry.kind)},
         {"offset", entry.offset},
         {"bytes", entry.bytes},
         {"xxh3",
          format("%016llx", static_cast<unsigned long long>(entry.checksum))}});
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> byEncoding;
  for (const fbs::Weight *weight : *plan.weights()) {
    auto &[count, bytes] = byEncoding[encodingName(*weight->encoding())];
    ++count;
    bytes += weight->size();
  }
  auto weights = Json::object();
  for (const auto &[name, sums] : byEncoding)
    weights[name] = {{"tensors", sums.first}, {"bytes", sums.second}};
  auto states = Json::array();
  for (const fbs::StateGroup *state : *plan.states())
    states.push_back(
        {{"name", state->name()->str()},
         {"layers", state->layers()},
         {"kv_heads", state->kv_heads()},
         {"head_dim", state->head_dim()},
         {"dtype", fbs::EnumNameDType(state->dtype())},
         {"window", state->window()},
         {"block_tokens", state->block_tokens()},
         {"bytes_per_token", state->layer_block_bytes() * state->layers() /
                                 state->block_tokens()}});
  auto targets = Json::array();
  for (const fbs::Target *target : *plan.targets())
    targets.push_back(targetJson(*target));
  Json report = {{"path", artifact.path()},
                 {"bytes", artifact.fileBytes()},
                 {"format_version", artifact.formatVersion()},
                 {"kernel_abi", plan.abi_version()},
                 {"checksums", verified ? "verified" : "all but the weights"},
                 {"segments", segments},
                 {"model", modelJson(plan)},
                 {"weights", weights},
                 {"weights_bytes", plan.weights_bytes()},
                 {"states", states},
                 {"targets", targets}};
  report["model"]["embedding"] = embeddingJson(*plan.model());
  if (const fbs::Provenance *origin = plan.provenance()) {
    auto inputs = Json::array();
    if (origin->inputs())
      for (const fbs::InputFile *input : *origin->inputs())
        inputs.push_back({{"path", textOf(input->path())},
                          {"size", input->size()},
                          {"xxh3", textOf(input->xxh3())}});
    report["provenance"] = {{"compiler", textOf(origin->compiler())},
                            {"pipeline", textOf(origin->pipeline())},
                            {"inputs", inputs}};
  }
  auto ledger = artifact.segment(container::SegmentKind::Ledger);
  if (!ledger.empty()) {
    // What is nested deeper than any ledger is left out: printing recurses.
    auto isShallow = [](int depth, Json::parse_event_t, Json &) {
      return depth < 32;
    };
    Json parsed = Json::parse(ledger.begin(), ledger.end(), isShallow, false);
    if (!parsed.is_discarded())
      report["ledger"] = parsed;
  }
  return report;
}

// A string of the artifact, for a person's terminal.
std::string shown(const flatbuffers::String *text) {
  return printable(textOf(text));
}
std::string shown(const Json &text) {
  return printable(text.get<std::string>());
}

void printLayers(const fbs::Plan &plan) {
  // Equal neighbours are told once.
  const ExpertsByLayer experts = expertsByLayer(plan);
  const auto &layers = *plan.model()->layers();
  for (std::uint32_t i = 0; i < layers.size();) {
    Json values = layerJson(*layers.Get(i), experts);
    std::uint32_t end = i + 1;
    while (end < layers.size() &&
           layerJson(*layers.Get(end), experts) == values)
      ++end;
    const fbs::LayerInfo &layer = *layers.Get(i);
    std::string range = std::to_string(i);
    if (end - i > 1)
      range += "-" + std::to_string(end - 1);
    std::string encodings;
    for (const std::string &encoding : listOf(layer.encodings()))
      encodings += (encodings.empty() ? "" : ", ") + printable(encoding);
    std::string routed;
    if (auto found = experts.find(layer.index()); found != experts.end())
      routed = "; " + found->second["each_token"].dump() + " of " +
               found->second["count"].dump() + " experts";
    std::printf("  %-7s %u heads, %u kv, head %u; rope %s theta %g on %u; "
                "window %s; ffn %u %s%s%s%s\n          %s\n",
                range.c_str(), layer.heads(), layer.kv_heads(),
                layer.head_dim(), shown(layer.rope_kind()).c_str(),
                layer.rope_theta(), layer.rotary_dim(),
                layer.window() ? std::to_string(layer.window()).c_str()
                               : "none",
                layer.ffn(), shown(layer.activation()).c_str(), routed.c_str(),
                layer.qk_norm() ? "; qk norm" : "",
                layer.qkv_bias() ? "; qkv bias" : "", encodings.c_str());
    i = end;
  }
}

// The accuracy of each lossy step, as compile measured it.
void printMeasurements(Json &ledger) {
  const auto found =
      ledger.is_object() ? ledger.find("measurements") : ledger.end();
  auto isMeasurement = [](const Json &one) {
    auto isNumber = [&](const char *key) {
      return one.contains(key) && one[key].is_number();
    };
    auto isText = [&](const char *key) {
      return one.contains(key) && one[key].is_string();
    };
    return one.is_object() && isText("step") && isText("settings") &&
           isText("plan") && isText("level") && isNumber("perplexity") &&
           isNumber("mean_kl") && isNumber("p99_kl") &&
           isNumber("top1_agreement") && isNumber("artifact_bytes");
  };
  if (!ledger.is_object() || found == ledger.end() || !found->is_array() ||
      !std::all_of(found->begin(), found->end(), isMeasurement))
    return;
  if (found->empty()) {
    std::printf("accuracy  not measured (compile --evaluate)\n");
  } else {
    std::printf("accuracy  against the imported model\n  %-18s %11s %10s %10s "
                "%9s %10s  plan\n",
                "behind", "perplexity", "mean KL", "p99 KL", "top-1",
                "artifact");
    for (const Json &one : *found)
      std::printf("  %-18s %11.4f %10.6f %10.6f %7.2f %% %10s  %s\n"
                  "    %s on %s\n",
                  shown(one["step"]).c_str(), one["perplexity"].get<double>(),
                  one["mean_kl"].get<double>(), one["p99_kl"].get<double>(),
                  100 * one["top1_agreement"].get<double>(),
                  bytesText(one["artifact_bytes"].get<double>()).c_str(),
                  shown(one["plan"]).c_str(), shown(one["settings"]).c_str(),
                  shown(one["level"]).c_str());
  }
  ledger.erase("measurements");
}

// The ledger is the file's own text: whatever is not as written by the compiler
// is shown as it stands.
void printLedger(Json ledger) {
  printMeasurements(ledger);
  const auto conversions =
      ledger.is_object() ? ledger.find("conversions") : ledger.end();
  auto isConversion = [](const Json &one) {
    return one.is_object() && one.contains("stored") &&
           one["stored"].is_string() && one.contains("encoding") &&
           one["encoding"].is_string() && one.contains("codes") &&
           one["codes"].is_string() && one.contains("tensors") &&
           one["tensors"].is_number_unsigned() &&
           one.contains("mean_relative_error") &&
           one["mean_relative_error"].is_number() &&
           one.contains("max_relative_error") &&
           one["max_relative_error"].is_number();
  };
  if (ledger.is_object() && conversions != ledger.end() &&
      conversions->is_array() &&
      std::all_of(conversions->begin(), conversions->end(), isConversion)) {
    std::printf("conversions%s\n", conversions->empty() ? " none" : "");
    for (const Json &one : *conversions)
      std::printf(
          "  %s to %s, %llu tensors, codes %s: error %.3f %% in the mean, "
          "%.3f %% at most\n",
          shown(one["stored"]).c_str(), shown(one["encoding"]).c_str(),
          static_cast<unsigned long long>(one["tensors"].get<std::uint64_t>()),
          shown(one["codes"]).c_str(),
          100.0 * one["mean_relative_error"].get<double>(),
          100.0 * one["max_relative_error"].get<double>());
    ledger.erase("conversions");
  }
  if (!ledger.empty())
    std::printf("ledger    %s\n", printable(jsonText(ledger, -1)).c_str());
}

// The chips, then for each kernel its registers on each, the share of warps that run
// at once, and what it spills.
void printCuda(const Json &target) {
  if (target.contains("library")) {
    const Json &library = target["library"];
    std::printf(
        "  library        %s makes the products of %u launches in steps "
        "of %u rows and more;\n                 lossy: the bits of a row "
        "depend on those beside it\n",
        shown(library["name"]).c_str(), library["launches"].get<unsigned>(),
        library["first_rows"].get<unsigned>());
  }
  for (const Json &level : target["levels"]) {
    unsigned driver = level["driver_version"].get<unsigned>();
    std::printf("  %-14s %9s  %s, driver for CUDA %u.%u\n",
                shown(level["name"]).c_str(),
                bytesText(level["code_bytes"].get<double>()).c_str(),
                level["kind"] == "ptx" ? "text for later chips" : "cubins",
                driver / 1000, driver % 1000 / 10);
  }
  for (const Json &kernel : target["kernels"]) {
    std::string chips;
    for (const auto &[name, chip] : kernel["chips"].items()) {
      chips += (chips.empty() ? "" : ", ") + printable(name) + " " +
               std::to_string(chip["registers"].get<unsigned>());
      if (chip["occupancy"].is_number())
        chips += format(" (%.0f %% of its warps)",
                        100 * chip["occupancy"].get<double>());
      if (unsigned spill = chip["spill_bytes"].get<unsigned>())
        chips += " (spills " + std::to_string(spill) + " bytes)";
    }
    std::printf("  %-34s %4u threads, %6u bytes shared; registers: %s\n",
                shown(kernel["name"]).c_str(),
                kernel["block_threads"].get<unsigned>(),
                kernel["shared_bytes"].get<unsigned>(),
                chips.empty() ? "by the driver" : chips.c_str());
  }
}

void printText(const Artifact &artifact, const Json &report) {
  const fbs::ModelInfo &model = *artifact.plan().model();
  std::printf("%s  %s, format %u, kernel ABI %u\n",
              printable(artifact.path()).c_str(),
              bytesText(double(artifact.fileBytes())).c_str(),
              artifact.formatVersion(), artifact.plan().abi_version());
  std::printf("model     %s (%s, %s), %.1f M parameters\n",
              shown(model.name()).c_str(), shown(model.architecture()).c_str(),
              shown(model.family()).c_str(), double(model.parameters()) / 1e6);
  std::printf("          vocab %u, hidden %u, context %u, %s head, %u layers\n",
              model.vocab(), model.hidden(), model.context(),
              model.embedding()   ? "no"
              : model.tied_head() ? "tied"
                                  : "own",
              model.layers()->size());
  if (const fbs::EmbeddingInfo *embedding = model.embedding())
    std::printf("          an encoder: vectors of %u numbers, %s\n",
                model.hidden(), embeddingText(*embedding).c_str());
  std::printf("layers\n");
  printLayers(artifact.plan());
  std::printf("weights\n");
  for (const auto &[name, sums] : report["weights"].items())
    std::printf(
        "  %-12s %5llu tensors  %s\n", name.c_str(),
        static_cast<unsigned long long>(sums["tensors"].get<std::uint64_t>()),
        bytesText(double(sums["bytes"].get<std::uint64_t>())).c_str());
  for (const Json &state : report["states"])
    std::printf("state     %s: %d layers, %s%s, %s a token\n",
                shown(state["name"]).c_str(), state["layers"].get<int>(),
                state["dtype"].get<std::string>().c_str(),
                state["dtype"] == "i8"
                    ? " (rounded, a scale for each token and head)"
                    : "",
                bytesText(state["bytes_per_token"].get<double>()).c_str());
  for (const Json &target : report["targets"]) {
    std::printf("target    %s: %d launches, %zu kernels\n",
                shown(target["name"]).c_str(), target["launches"].get<int>(),
                target["kernels"].size());
    for (const Json &exit : target["exits"])
      std::printf("  exit after %d layers%s%s\n", exit["layers"].get<int>(),
                  exit["confidence"].empty() ? "" : ", confidence measured",
                  exit["fill_launches"] == 0 ? ", no fill" : "");
    if (target["name"] == kCudaTarget) {
      printCuda(target);
      continue;
    }
    for (const Json &level : target["levels"]) {
      std::string missing;
      for (const Json &name : level["missing_here"])
        missing += " " + shown(name);
      std::printf("  %-14s %9s  %s\n", shown(level["name"]).c_str(),
                  bytesText(level["code_bytes"].get<double>()).c_str(),
                  missing.empty() ? "runs here"
                                  : ("missing here:" + missing).c_str());
    }
  }
  for (const char *name : {"cpu", kCudaTarget}) {
    const fbs::Target *target = artifact.target(name);
    if (!target)
      continue;
    auto contract = computeContract(artifact.plan(), *target, {});
    if (contract)
      std::printf("memory of one sequence%s\n%s",
                  isCuda(*target) ? " on a CUDA device" : "",
                  contract->describe().c_str());
  }
  std::printf("segments\n");
  for (const Json &segment : report["segments"])
    std::printf("  %-10s %12s  %s\n",
                segment["kind"].get<std::string>().c_str(),
                bytesText(segment["bytes"].get<double>()).c_str(),
                segment["xxh3"].get<std::string>().c_str());
  std::printf("checksums %s\n", report["checksums"].get<std::string>().c_str());
  if (report.contains("provenance"))
    std::printf("made by   %s\n          %s\n",
                shown(report["provenance"]["compiler"]).c_str(),
                shown(report["provenance"]["pipeline"]).c_str());
  if (report.contains("ledger"))
    printLedger(report["ledger"]);
}

} // namespace

Status inspect(const InspectFlags &flags) {
  INGOT_ASSIGN_OR_RETURN(Artifact artifact,
                         Artifact::open(flags.path, {flags.verify}));
  if (!flags.cost.empty())
    return inspectCost(artifact, flags);
  Json report = artifactJson(artifact, flags.verify);
  if (flags.ledger && !report.contains("ledger"))
    return Status::notFound(flags.path + ": has no ledger");
  if (flags.json)
    std::printf("%s\n",
                jsonText(flags.ledger ? report["ledger"] : report).c_str());
  else if (flags.ledger)
    printLedger(report["ledger"]);
  else
    printText(artifact, report);
  return Status::ok();
}

} // namespace ingot::cli
