#include "runtime/plan/Artifact.h"

#include "runtime/plan/VerifyPlan.h"

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace ingot {

using container::ContainerHeader;
using container::SegmentEntry;
using container::SegmentKind;

const char *segmentKindName(SegmentKind kind) {
  switch (kind) {
  case SegmentKind::Plan:
    return "plan";
  case SegmentKind::Code:
    return "code";
  case SegmentKind::Weights:
    return "weights";
  case SegmentKind::Tokenizer:
    return "tokenizer";
  case SegmentKind::Template:
    return "template";
  case SegmentKind::Ledger:
    return "ledger";
  case SegmentKind::Licence:
    return "licence";
  }
  return "unknown";
}

namespace {

std::string hex(std::uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "%016" PRIx64, value);
  return text;
}

std::uint64_t alignmentOf(SegmentKind kind) {
  bool mapped = kind == SegmentKind::Code || kind == SegmentKind::Weights;
  return mapped ? container::kPageBytes : container::kTensorAlignment;
}

bool allZero(const std::uint8_t *bytes, std::size_t count) {
  return std::all_of(bytes, bytes + count, [](auto b) { return b == 0; });
}

std::string segmentLabel(std::size_t index, const SegmentEntry &entry) {
  return "segment " + std::to_string(index) + " (" +
         segmentKindName(entry.kind) + ")";
}

Status readHeader(std::span<const std::uint8_t> bytes,
                  ContainerHeader &header) {
  if (bytes.size() < sizeof header)
    return Status::invalid("file of " + std::to_string(bytes.size()) +
                           " bytes is shorter than an artifact's header (" +
                           std::to_string(sizeof header) + ")");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, container::kMagic, sizeof header.magic) != 0)
    return Status::invalid("not an ingot: the magic bytes do not match");
  if (header.version != container::kVersion)
    return Status::unsupported(
        "container version " + std::to_string(header.version) +
        ", this runtime reads version " + std::to_string(container::kVersion) +
        "; rebuild the artifact with the compiler of this release");
  if (header.fileBytes != bytes.size())
    return Status::invalid("header says " + std::to_string(header.fileBytes) +
                           " bytes, the file has " +
                           std::to_string(bytes.size()) +
                           " (truncated or extended)");
  if (header.numSegments == 0 || header.numSegments > container::kMaxSegments)
    return Status::invalid("header says " + std::to_string(header.numSegments) +
                           " segments, expected 1 to " +
                           std::to_string(container::kMaxSegments));
  if (!allZero(header.reserved, sizeof header.reserved))
    return Status::invalid("reserved bytes of the header are not zero");
  return Status::ok();
}

Status readSegments(std::span<const std::uint8_t> bytes,
                    const ContainerHeader &header,
                    std::vector<SegmentEntry> &entries) {
  std::uint64_t tableBytes =
      std::uint64_t(header.numSegments) * sizeof(SegmentEntry);
  std::uint64_t dataStart = sizeof header + tableBytes;
  if (dataStart > bytes.size())
    return Status::invalid("segment table ends at " +
                           std::to_string(dataStart) + ", the file at " +
                           std::to_string(bytes.size()));
  const std::uint8_t *table = bytes.data() + sizeof header;
  std::uint64_t sum = XXH3_64bits(table, tableBytes);
  if (sum != header.tableChecksum)
    return Status::invalid("segment table: checksum " + hex(sum) +
                           ", expected " + hex(header.tableChecksum));
  entries.resize(header.numSegments);
  std::memcpy(entries.data(), table, tableBytes);

  for (std::size_t i = 0; i < entries.size(); ++i) {
    const SegmentEntry &entry = entries[i];
    std::string label = segmentLabel(i, entry);
    if (entry.kind < SegmentKind::Plan || entry.kind > SegmentKind::Licence)
      return Status::unsupported(
          label + ": kind " +
          std::to_string(static_cast<std::uint32_t>(entry.kind)) +
          " is unknown to this runtime");
    if (entry.flags != 0)
      return Status::unsupported(label + ": flags " +
                                 std::to_string(entry.flags) +
                                 " are unknown to this runtime");
    if (!allZero(entry.reserved, sizeof entry.reserved))
      return Status::invalid(label + ": reserved bytes are not zero");
    if (entry.offset < dataStart || entry.offset > bytes.size() ||
        entry.bytes > bytes.size() - entry.offset)
      return Status::invalid(
          label + ": offset " + std::to_string(entry.offset) + " and size " +
          std::to_string(entry.bytes) + " leave the file's data [" +
          std::to_string(dataStart) + ", " + std::to_string(bytes.size()) +
          ")");
    if (entry.offset % alignmentOf(entry.kind) != 0)
      return Status::invalid(
          label + ": offset " + std::to_string(entry.offset) +
          " is not aligned to " + std::to_string(alignmentOf(entry.kind)));
    for (std::size_t j = 0; j < i; ++j) {
      const SegmentEntry &other = entries[j];
      if (other.kind == entry.kind)
        return Status::invalid(label + ": a second segment of this kind");
      if (entry.bytes && other.bytes &&
          entry.offset < other.offset + other.bytes &&
          other.offset < entry.offset + entry.bytes)
        return Status::invalid(label + ": overlaps " + segmentLabel(j, other));
    }
  }
  return Status::ok();
}

} // namespace

Result<Artifact> Artifact::open(const std::string &path,
                                const ArtifactOptions &options) {
  Artifact artifact;
  INGOT_ASSIGN_OR_RETURN(artifact.file_, MappedFile::open(path));
  auto bytes = artifact.file_.bytes();
  ContainerHeader header;
  if (Status status = readHeader(bytes, header); !status)
    return status.withContext(path);
  if (Status status = readSegments(bytes, header, artifact.segments_); !status)
    return status.withContext(path);
  artifact.formatVersion_ = header.version;
  for (SegmentKind kind :
       {SegmentKind::Plan, SegmentKind::Code, SegmentKind::Weights})
    if (!artifact.entry(kind))
      return Status::invalid(path + ": has no " + segmentKindName(kind) +
                             " segment");
  // The weights are most of the file, so they are read only when asked for;
  // damage to anything smaller never gets past this point.
  if (Status status = artifact.verifyChecksums(options.verifyChecksums);
      !status)
    return status.withContext(path);

  auto planBytes = artifact.segment(SegmentKind::Plan);
  flatbuffers::Verifier verifier(planBytes.data(), planBytes.size(),
                                 /*max_depth=*/32, /*max_tables=*/4000000);
  if (planBytes.size() < 8 || !fbs::VerifyPlanBuffer(verifier))
    return Status::invalid(
        path + ": plan segment is not a well-formed FlatBuffer of a plan");
  artifact.plan_ = fbs::GetPlan(planBytes.data());
  PlanBounds bounds{artifact.segment(SegmentKind::Weights).size(),
                    artifact.segment(SegmentKind::Code).size()};
  if (Status status = verifyPlan(*artifact.plan_, bounds); !status)
    return status.withContext(path);
  return artifact;
}

const SegmentEntry *Artifact::entry(SegmentKind kind) const {
  for (const SegmentEntry &entry : segments_)
    if (entry.kind == kind)
      return &entry;
  return nullptr;
}

std::span<const std::uint8_t> Artifact::segment(SegmentKind kind) const {
  const SegmentEntry *found = entry(kind);
  return found ? file_.bytes().subspan(found->offset, found->bytes)
               : std::span<const std::uint8_t>();
}

const fbs::Target *Artifact::target(std::string_view name) const {
  for (const fbs::Target *target : *plan_->targets())
    if (target->name()->string_view() == name)
      return target;
  return nullptr;
}

Status Artifact::verifyChecksums(bool weightsToo) const {
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const SegmentEntry &entry = segments_[i];
    if (entry.kind == SegmentKind::Weights && !weightsToo)
      continue;
    std::uint64_t sum =
        XXH3_64bits(file_.bytes().data() + entry.offset, entry.bytes);
    if (sum != entry.checksum)
      return Status::invalid(segmentLabel(i, entry) + ": checksum " + hex(sum) +
                             ", expected " + hex(entry.checksum) +
                             "; the file is damaged");
  }
  return Status::ok();
}

} // namespace ingot
