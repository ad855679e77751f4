// A strict reader and a deterministic writer of the safetensors format. A file
// is hostile: the header length is compared with what the file holds before
// anything is allocated, duplicate names are refused, and the tensors must tile
// the data section exactly. Data is mapped, never copied.
#pragma once

#include "runtime/support/MappedFile.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

// Every element type of the format. Sizes are in bits: some are below a byte.
enum class SafetensorsDtype {
  Bool,
  U8,
  I8,
  U16,
  I16,
  U32,
  I32,
  U64,
  I64,
  F4,
  F6E2M3,
  F6E3M2,
  F8E5M2,
  F8E4M3,
  F8E8M0,
  F8E4M3FNUZ,
  F8E5M2FNUZ,
  F16,
  BF16,
  F32,
  F64,
  C64,
};

const char *safetensorsDtypeName(SafetensorsDtype dtype);
std::uint64_t safetensorsDtypeBits(SafetensorsDtype dtype);
// The bytes of a tensor, or false when they do not fit 64 bits or are not a
// whole number.
bool safetensorsSizeBytes(SafetensorsDtype dtype,
                          std::span<const std::uint64_t> shape,
                          std::uint64_t &sizeBytes);

struct SafetensorsTensor {
  std::string name;
  SafetensorsDtype dtype = SafetensorsDtype::F32;
  std::vector<std::uint64_t> shape; // empty: a scalar, one element
  std::uint64_t fileOffset = 0;     // from the start of the file
  std::uint64_t sizeBytes = 0;
};

class SafetensorsFile {
public:
  // Longest header that is read; the reference reader has the same limit.
  static constexpr std::uint64_t maxHeaderBytes = 100'000'000;

  static Result<SafetensorsFile> open(const std::string &path);
  // `bytes` must outlive the result; `name` stands for the path in messages.
  static Result<SafetensorsFile> fromMemory(std::span<const std::uint8_t> bytes,
                                            const std::string &name);

  const std::string &name() const { return name_; }
  std::uint64_t sizeBytes() const { return bytes_.size(); }
  std::span<const std::uint8_t> bytes() const { return bytes_; }
  // In the order of their data.
  const std::vector<SafetensorsTensor> &tensors() const { return tensors_; }
  const SafetensorsTensor *find(std::string_view name) const;
  std::span<const std::uint8_t> data(const SafetensorsTensor &tensor) const {
    return bytes_.subspan(tensor.fileOffset, tensor.sizeBytes);
  }
  // The "__metadata__" object; present even when empty, if hasMetadata().
  bool hasMetadata() const { return hasMetadata_; }
  const std::map<std::string, std::string> &metadata() const {
    return metadata_;
  }

private:
  Status parse();

  std::string name_;
  MappedFile file_;
  std::span<const std::uint8_t> bytes_;
  std::vector<SafetensorsTensor> tensors_;
  std::map<std::string, std::size_t, std::less<>> byName_;
  bool hasMetadata_ = false;
  std::map<std::string, std::string> metadata_;
};

// Collects tensors and gives the bytes of a file. The same content gives the
// same bytes whatever the order of the calls: wider types first, then by name,
// and the header is padded so that the data starts at a multiple of 8.
class SafetensorsWriter {
public:
  // The data is copied. Refuses a name used twice, the reserved name
  // "__metadata__", and data whose size is not that of the shape.
  Status add(const std::string &name, SafetensorsDtype dtype,
             const std::vector<std::uint64_t> &shape,
             std::span<const std::uint8_t> data);
  // An empty map writes an empty object; not calling this writes none.
  void setMetadata(std::map<std::string, std::string> metadata);

  Result<std::vector<std::uint8_t>> bytes() const;
  Status write(const std::string &path) const;

private:
  struct Entry {
    SafetensorsDtype dtype;
    std::vector<std::uint64_t> shape;
    std::vector<std::uint8_t> data;
  };
  std::map<std::string, Entry> entries_;
  bool hasMetadata_ = false;
  std::map<std::string, std::string> metadata_;
};

} // namespace ingot
