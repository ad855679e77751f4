// What a stored tensor consists of beside its rows: the scales, zero points and
// column groups of codes that another tool made, and the low-rank adapters that
// are added when a row is read. Plain values: importers fill them, the dialects
// keep them as text (dialects/StoredDetailsAttr), the packer reads by them.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ingot {

enum class PlaneType { F32, F16, BF16, F8E8M0, I8, I32 };

const char *planeTypeName(PlaneType type); // "f32", "i32" ...
std::optional<PlaneType> planeTypeByName(const std::string &name);
std::uint64_t planeElementBytes(PlaneType type);

// A further tensor, or whole rows of one. Where its bytes lie is said by file
// index before there is a module, by symbol in one, and by `bytes` when mapped.
struct StoredPlane {
  std::string name;
  std::uint32_t fileIndex = 0;
  std::string source;
  std::uint64_t byteOffset = 0;
  std::uint64_t sizeBytes = 0;
  PlaneType type = PlaneType::F32;
  std::span<const std::uint8_t> bytes;

  bool operator==(const StoredPlane &other) const {
    return name == other.name && fileIndex == other.fileIndex &&
           source == other.source && byteOffset == other.byteOffset &&
           sizeBytes == other.sizeBytes && type == other.type;
  }
};

// How codes of N rows and K columns lie. "Stream": codes of b bits follow each
// other from the lowest bit of consecutive words.
enum class CodePacking {
  Gptq, // int32 [K * b / 32, N], a stream down each column; scales [G, N],
        // zeros a stream along each row of int32 [G, N * b / 32]
  Awq,  // int32 [K, N / 8], nibbles of columns 0 2 4 6 1 3 5 7; scales
        // [G, N], zeros int32 [G, N / 8] in the same order
  Compressed, // int32 [N, words], 32 / b codes a word from the lowest bit;
              // scales [R, G], zeros int32 [words of R, G] packed down
  Int8,       // int8 [N, K]; scales [R, G], zeros int8 [R, G]
  F8E4M3,     // [N, K]; scales [R, G]
  F8E5M2,
};

const char *codePackingName(CodePacking packing); // "gptq" ...
std::optional<CodePacking> codePackingByName(const std::string &name);
bool isFloatPacking(CodePacking packing);

// value[n, k] = (code[n, k] - zero[r, g]) * scale[r, g], r and g being the
// groups of row and column.
struct StoredCodes {
  CodePacking packing = CodePacking::Gptq;
  std::int64_t bits = 4;     // of an integer code
  std::int64_t group = 0;    // columns that share a scale; 0: all
  std::int64_t rowGroup = 1; // rows that share a scale; 0: all
  // Added to each stored zero point: 1 in the first version of GPTQ's format.
  std::int64_t zeroBias = 0;
  StoredPlane scales;
  // Absent: 2^(bits - 1) for packed codes, 0 for int8.
  std::optional<StoredPlane> zeros;
  // int32 [K]: the group of each column. Absent: k / group.
  std::optional<StoredPlane> index;

  bool operator==(const StoredCodes &) const = default;
};

// A row n gains scale * sum over r ascending of b[n, r] * a[r, :].
struct StoredAdapter {
  StoredPlane a; // [rank, columns]
  StoredPlane b; // [rows, rank]
  std::int64_t rank = 0;
  float scale = 1.0f;
  // a is [columns, rank] and b [rank, rows]: adapters of embeddings.
  bool transposed = false;

  bool operator==(const StoredAdapter &) const = default;
};

struct StoredDetails {
  std::optional<StoredCodes> codes;
  std::vector<StoredAdapter> adapters;

  bool empty() const { return !codes && adapters.empty(); }
  bool operator==(const StoredDetails &) const = default;

  template <typename Function> void forEachPlane(Function &&function) {
    if (codes) {
      function(codes->scales);
      if (codes->zeros)
        function(*codes->zeros);
      if (codes->index)
        function(*codes->index);
    }
    for (StoredAdapter &adapter : adapters) {
      function(adapter.a);
      function(adapter.b);
    }
  }
};

// Bytes of the codes themselves; an error where they are not whole words.
Result<std::uint64_t> codesBytes(const StoredCodes &codes, std::uint64_t rows,
                                 std::uint64_t columns);
// Every plane has the size that the shape asks for; `name` is for messages.
Status checkDetails(const StoredDetails &details, const std::string &name,
                    std::uint64_t rows, std::uint64_t columns);

// Groups of columns and of rows.
std::uint64_t columnGroups(const StoredCodes &codes, std::uint64_t columns);
std::uint64_t rowGroups(const StoredCodes &codes, std::uint64_t rows);

} // namespace ingot
