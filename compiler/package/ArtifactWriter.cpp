// The file is laid out before anything is written, because every size is known:
//   1. map and check the sources, compile tokenizer and templates;
//   2. place the levels' code, translate the plan;
//   3. give each segment its offset, reserve the file;
//   4. write the small segments, pack the weights into theirs;
//   5. checksums, header and table last, then rename.
#include "compiler/package/ArtifactWriter.h"

#include "compiler/package/ModelAssets.h"
#include "compiler/package/OutputFile.h"
#include "compiler/package/OutputPath.h"
#include "compiler/package/WeightWriter.h"
#include "runtime/plan/Artifact.h"
#include "runtime/plan/Container.h"

#include <cstdio>
#include <cstring>
#include <filesystem>

using namespace mlir;

namespace ingot::package {
namespace {

uint64_t alignTo(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

std::span<const uint8_t> bytesOf(const std::string &text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

// A segment of the file: its bytes, or only its size where they are written
// piece by piece.
struct Segment {
  container::SegmentKind kind;
  std::span<const uint8_t> bytes;
  uint64_t size;
  uint64_t alignment;
  uint64_t offset = 0;
};

class ArtifactLayout {
public:
  void add(container::SegmentKind kind, std::span<const uint8_t> bytes) {
    if (!bytes.empty())
      segments_.push_back(
          {kind, bytes, bytes.size(), container::kTensorAlignment});
  }
  void addReserved(container::SegmentKind kind, uint64_t size) {
    segments_.push_back({kind, {}, size, container::kPageBytes});
  }

  // Offsets of all segments; gives the size of the file.
  uint64_t place() {
    uint64_t end = sizeof(container::ContainerHeader) +
                   segments_.size() * sizeof(container::SegmentEntry);
    for (Segment &segment : segments_) {
      segment.offset = alignTo(end, segment.alignment);
      end = segment.offset + segment.size;
    }
    // Whole pages, so that the last segment can be mapped to its end.
    return fileBytes_ = alignTo(end, container::kPageBytes);
  }

  uint64_t offsetOf(container::SegmentKind kind) const {
    for (const Segment &segment : segments_)
      if (segment.kind == kind)
        return segment.offset;
    return 0;
  }

  Status writeSegments(const OutputFile &file) const {
    for (const Segment &segment : segments_)
      INGOT_RETURN_IF_ERROR(file.write(segment.offset, segment.bytes));
    return Status::ok();
  }

  Status writeTable(const OutputFile &file) const {
    std::vector<container::SegmentEntry> table;
    for (const Segment &segment : segments_) {
      container::SegmentEntry entry{};
      entry.kind = segment.kind;
      entry.offset = segment.offset;
      entry.bytes = segment.size;
      INGOT_ASSIGN_OR_RETURN(entry.checksum,
                             file.checksum(segment.offset, segment.size));
      table.push_back(entry);
    }
    std::span<const uint8_t> tableBytes(
        reinterpret_cast<const uint8_t *>(table.data()),
        table.size() * sizeof(container::SegmentEntry));
    container::ContainerHeader header{};
    std::memcpy(header.magic, container::kMagic, sizeof(header.magic));
    header.version = container::kVersion;
    header.numSegments = static_cast<uint32_t>(table.size());
    header.fileBytes = fileBytes_;
    header.tableChecksum = xxh3(tableBytes);
    INGOT_RETURN_IF_ERROR(file.write(sizeof(header), tableBytes));
    return file.write(
        0, {reinterpret_cast<const uint8_t *>(&header), sizeof(header)});
  }

private:
  std::vector<Segment> segments_;
  uint64_t fileBytes_ = 0;
};

// A number of always the same length, so that the text can be reserved.
std::string fixedNumber(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6e", value < 1e-90 ? 0.0 : value);
  return text;
}

// No lossy step has been measured on text, so the ledger has no measurements of
// accuracy; it tells how far the weights are from those that were stored, and
// what a cache of codes may lose of a number: half a code of 127.
std::string ledgerText(ModuleOp module,
                       const std::vector<Conversion> &conversions) {
  std::string text = "{\"measurements\":[],\"conversions\":[";
  for (const Conversion &conversion : conversions) {
    text += &conversion == conversions.data() ? "{" : ",{";
    text += "\"stored\":\"" + conversion.stored + "\",\"encoding\":\"" +
            conversion.encoding + "\",\"codes\":\"" +
            (conversion.keptCodes ? "kept" : "rounded") +
            "\",\"tensors\":" + std::to_string(conversion.tensors) +
            ",\"max_relative_error\":" + fixedNumber(conversion.error.largest) +
            ",\"mean_relative_error\":" + fixedNumber(conversion.error.mean()) +
            "}";
  }
  text += "]";
  for (auto state : module.getOps<plan::StateOp>())
    if (state.getDtype() == plan::StateDType::I8) {
      text +=
          ",\"kv_cache\":{\"encoding\":\"i8\",\"scales\":\"f32, by token and "
          "head\",\"max_relative_error\":" +
          fixedNumber(0.5 / 127) + "}";
      break;
    }
  return text + "}";
}

// Turns the diagnostics of the translation into the message of a status.
Result<std::vector<uint8_t>> translate(ModuleOp module,
                                       const std::vector<TargetCode> &code,
                                       const std::vector<InputFile> &inputs) {
  std::string message;
  ScopedDiagnosticHandler handler(
      module.getContext(), [&](Diagnostic &diagnostic) {
        message += (message.empty() ? "" : "; ") + diagnostic.str();
        return success();
      });
  FailureOr<std::vector<uint8_t>> plan = translatePlan(module, code, inputs);
  if (failed(plan))
    return Status::invalid("plan: " + message);
  return std::move(*plan);
}

} // namespace

Result<WrittenArtifact> writeArtifact(const std::string &path, ModuleOp module,
                                      std::vector<TargetCode> code,
                                      const WriteOptions &options) {
  auto model = module->getAttrOfType<DictionaryAttr>(
      plan::PlanDialect::getModelAttrName());
  if (!model)
    return Status::invalid("the module has no plan.model");
  INGOT_ASSIGN_OR_RETURN(WeightSources sources,
                         WeightSources::open(module, options.sourceFolder));
  if (sources.contains(path))
    return Status::invalid(path + ": is a source of the model");
  INGOT_RETURN_IF_ERROR(checkArtifactPath(path));
  INGOT_ASSIGN_OR_RETURN(ModelAssets assets,
                         buildModelAssets(model, options.sourceFolder));

  // Levels follow each other, each on a page of its own.
  std::vector<uint8_t> codeBytes;
  for (TargetCode &target : code) {
    target.codeOffsets.clear();
    auto place = [&](const std::vector<uint8_t> &bytes) {
      codeBytes.resize(alignTo(codeBytes.size(), container::kPageBytes));
      target.codeOffsets.push_back(codeBytes.size());
      codeBytes.insert(codeBytes.end(), bytes.begin(), bytes.end());
    };
    for (const codegen::CompiledLevel &level : target.levels)
      place(level.elf);
    for (const CudaLevelCode &level : target.cudaLevels)
      place(level.bytes);
  }
  codeBytes.resize(alignTo(codeBytes.size(), container::kPageBytes));

  std::vector<InputFile> inputs = sources.inputs();
  inputs.insert(inputs.end(), assets.inputs.begin(), assets.inputs.end());
  INGOT_ASSIGN_OR_RETURN(std::vector<uint8_t> plan,
                         translate(module, code, inputs));

  WrittenArtifact written;
  written.weightsBytes = weightsBytes(module);
  written.codeBytes = codeBytes.size();
  written.warnings = assets.notes;
  written.planBytes = plan.size();
  written.tokenizerBytes = assets.tokenizer.size();
  // Errors are known when the weights are written: this only takes the place.
  written.conversions = plannedConversions(module);
  const std::string ledger = ledgerText(module, written.conversions);

  ArtifactLayout layout;
  layout.add(container::SegmentKind::Plan, plan);
  layout.add(container::SegmentKind::Tokenizer, assets.tokenizer);
  layout.add(container::SegmentKind::Template, bytesOf(assets.templates));
  layout.add(container::SegmentKind::Ledger, bytesOf(ledger));
  layout.add(container::SegmentKind::Licence, bytesOf(assets.licence));
  layout.addReserved(container::SegmentKind::Code, codeBytes.size());
  layout.addReserved(container::SegmentKind::Weights, written.weightsBytes);
  written.fileBytes = layout.place();

  INGOT_ASSIGN_OR_RETURN(OutputFile file,
                         OutputFile::create(path, written.fileBytes));
  INGOT_RETURN_IF_ERROR(layout.writeSegments(file));
  INGOT_RETURN_IF_ERROR(
      file.write(layout.offsetOf(container::SegmentKind::Code), codeBytes));
  INGOT_RETURN_IF_ERROR(writeWeights(
      module, sources, file, layout.offsetOf(container::SegmentKind::Weights),
      options, written.warnings, written.conversions));
  const std::string measured = ledgerText(module, written.conversions);
  if (measured.size() != ledger.size())
    return Status::internal("the ledger has changed its size");
  INGOT_RETURN_IF_ERROR(file.write(
      layout.offsetOf(container::SegmentKind::Ledger), bytesOf(measured)));
  INGOT_RETURN_IF_ERROR(layout.writeTable(file));
  INGOT_RETURN_IF_ERROR(file.commit());
  return written;
}

Result<uint64_t> replaceLedger(const std::string &from, const std::string &to,
                               const std::string &ledger) {
  INGOT_ASSIGN_OR_RETURN(Artifact artifact, Artifact::open(from));
  std::error_code error;
  if (std::filesystem::equivalent(from, to, error) && !error)
    return Status::invalid(to + ": cannot be written over itself");
  INGOT_RETURN_IF_ERROR(checkArtifactPath(to));
  ArtifactLayout layout;
  std::vector<std::pair<container::SegmentKind, std::span<const uint8_t>>>
      pages;
  for (container::SegmentKind kind :
       {container::SegmentKind::Plan, container::SegmentKind::Tokenizer,
        container::SegmentKind::Template, container::SegmentKind::Ledger,
        container::SegmentKind::Licence})
    layout.add(kind, kind == container::SegmentKind::Ledger
                         ? bytesOf(ledger)
                         : artifact.segment(kind));
  for (container::SegmentKind kind :
       {container::SegmentKind::Code, container::SegmentKind::Weights}) {
    pages.emplace_back(kind, artifact.segment(kind));
    layout.addReserved(kind, pages.back().second.size());
  }
  const uint64_t size = layout.place();
  INGOT_ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(to, size));
  INGOT_RETURN_IF_ERROR(layout.writeSegments(file));
  for (const auto &[kind, bytes] : pages)
    INGOT_RETURN_IF_ERROR(file.write(layout.offsetOf(kind), bytes));
  INGOT_RETURN_IF_ERROR(layout.writeTable(file));
  INGOT_RETURN_IF_ERROR(file.commit());
  return size;
}

} // namespace ingot::package
