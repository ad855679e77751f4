// The container of an artifact: a fixed header, a table of segments, then the
// segments. Everything is little endian. Read by runtime/plan/Artifact.cpp,
// written by compiler/package.
//
//   [0, 64)                 ContainerHeader
//   [64, 64 + 64*n)         SegmentEntry[n]
//   segments, each aligned as its kind asks (page-aligned: code and weights)
#pragma once

#include <cstdint>

namespace ingot::container {

inline constexpr char kMagic[8] = {'I', 'N', 'G', 'O', 'T', '\r', '\n', '\x1a'};
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint64_t kPageBytes = 4096;
inline constexpr std::uint64_t kTensorAlignment = 64;
inline constexpr std::uint32_t kMaxSegments = 64;

enum class SegmentKind : std::uint32_t {
  Plan = 1,      // FlatBuffer, runtime/plan/plan.fbs
  Code = 2,      // the levels' ELF objects, each page-aligned
  Weights = 3,   // packed tensors, page-aligned
  Tokenizer = 4, // FlatBuffer, runtime/text/tokenizer.fbs
  Template = 5,  // JSON list of {name, template}; UTF-8
  Ledger = 6,    // JSON; accuracy of each lossy step
  Licence = 7,   // text: licence and model card as found at the source
};

struct ContainerHeader {
  char magic[8];
  std::uint32_t version; // readers refuse a newer major format
  std::uint32_t numSegments;
  std::uint64_t fileBytes;
  std::uint64_t tableChecksum; // XXH3-64 of the segment table
  std::uint8_t reserved[32];   // zero
};
static_assert(sizeof(ContainerHeader) == 64);

struct SegmentEntry {
  SegmentKind kind;
  std::uint32_t flags; // zero
  std::uint64_t offset;
  std::uint64_t bytes;
  std::uint64_t checksum; // XXH3-64 of the bytes
  std::uint8_t reserved[32];
};
static_assert(sizeof(SegmentEntry) == 64);

} // namespace ingot::container
