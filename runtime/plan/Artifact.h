// An artifact, opened and checked. The file is hostile until it has passed, in
// this order: header, segment table, FlatBuffers verifier, meaning. Only then
// is anything in it used. Nothing is copied: plan, weights and tokenizer are
// read in place from one mapping of the file.
#pragma once

#include "runtime/plan/Container.h"
#include "runtime/plan/plan_generated.h"
#include "runtime/support/MappedFile.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

const char *segmentKindName(container::SegmentKind kind);

struct ArtifactOptions {
  // Also read the weights and compare their checksum. Those of the other
  // segments are always compared.
  bool verifyChecksums = false;
};

class Artifact {
public:
  static Result<Artifact> open(const std::string &path,
                               const ArtifactOptions &options = {});

  const std::string &path() const { return file_.path(); }
  std::uint64_t fileBytes() const { return file_.bytes().size(); }
  std::uint32_t formatVersion() const { return formatVersion_; }
  std::span<const container::SegmentEntry> segments() const {
    return segments_;
  }

  // The bytes of a segment; empty where the artifact has none of that kind.
  std::span<const std::uint8_t> segment(container::SegmentKind kind) const;
  const container::SegmentEntry *entry(container::SegmentKind kind) const;

  const fbs::Plan &plan() const { return *plan_; }
  const std::uint8_t *weights() const {
    return segment(container::SegmentKind::Weights).data();
  }
  std::string_view licence() const {
    auto bytes = segment(container::SegmentKind::Licence);
    return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
  }

  // The target called `name` ("cpu"), or null.
  const fbs::Target *target(std::string_view name) const;

  // Compares segments with their checksums; names the first that differs.
  Status verifyChecksums(bool weightsToo) const;

private:
  MappedFile file_;
  std::vector<container::SegmentEntry> segments_;
  std::uint32_t formatVersion_ = 0;
  const fbs::Plan *plan_ = nullptr;
};

} // namespace ingot
