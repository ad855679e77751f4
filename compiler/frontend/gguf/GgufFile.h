// A strict reader of GGUF versions 2 and 3. Metadata and tensor infos are
// walked once at open with checked arithmetic; arrays and data stay in the
// mapping and are decoded on demand.
#pragma once

#include "runtime/support/MappedFile.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

enum class GgufType : std::uint32_t {
  U8 = 0,
  I8,
  U16,
  I16,
  U32,
  I32,
  F32,
  Bool,
  String,
  Array,
  U64,
  I64,
  F64,
};

const char *ggufTypeName(GgufType type);

// One metadata value. The raw bytes lie in the mapping; the accessors answer
// nothing when the value is of another kind, and never guess a conversion that
// would lose something.
class GgufValue {
public:
  GgufType type() const { return type_; }
  GgufType elementType() const { return elementType_; } // of an array
  std::uint64_t count() const { return count_; }        // of an array

  std::optional<std::int64_t> asInteger() const; // any integer type in range
  std::optional<double> asFloat() const;         // F32, F64 or an integer
  std::optional<bool> asBool() const;
  std::optional<std::string_view> asString() const;
  std::optional<std::vector<std::int64_t>> asIntegers() const;
  std::optional<std::vector<double>> asFloats() const;
  std::optional<std::vector<std::string_view>> asStrings() const;

private:
  friend class GgufParser;
  GgufType type_ = GgufType::U8;
  GgufType elementType_ = GgufType::U8;
  std::uint64_t count_ = 0;
  std::span<const std::uint8_t> raw_; // of a scalar, or an array's elements
};

// A type of ggml, by its number in the file.
struct GgmlType {
  std::uint32_t id;
  const char *name;
  std::uint64_t blockElements;
  std::uint64_t blockBytes;
};

// Null for a number this reader does not know.
const GgmlType *ggmlType(std::uint32_t id);

struct GgufTensor {
  std::string name;
  const GgmlType *type = nullptr;
  std::vector<std::uint64_t> dims; // as in the file: fastest first
  std::uint64_t fileOffset = 0;    // from the start of the file
  std::uint64_t sizeBytes = 0;
};

class GgufFile {
public:
  static constexpr char magic[4] = {'G', 'G', 'U', 'F'};

  static Result<GgufFile> open(const std::string &path);
  // `bytes` must outlive the result; `name` stands for the path in messages.
  static Result<GgufFile> fromMemory(std::span<const std::uint8_t> bytes,
                                     const std::string &name);

  const std::string &name() const { return name_; }
  std::uint64_t sizeBytes() const { return bytes_.size(); }
  std::uint32_t version() const { return version_; }
  std::uint64_t alignment() const { return alignment_; }
  const std::map<std::string, GgufValue, std::less<>> &metadata() const {
    return metadata_;
  }
  const GgufValue *find(std::string_view key) const;
  const std::vector<GgufTensor> &tensors() const { return tensors_; }
  std::span<const std::uint8_t> data(const GgufTensor &tensor) const {
    return bytes_.subspan(tensor.fileOffset, tensor.sizeBytes);
  }

private:
  friend class GgufParser;
  std::string name_;
  MappedFile file_;
  std::span<const std::uint8_t> bytes_;
  std::uint32_t version_ = 0;
  std::uint64_t alignment_ = 32;
  std::map<std::string, GgufValue, std::less<>> metadata_;
  std::vector<GgufTensor> tensors_;
};

} // namespace ingot
