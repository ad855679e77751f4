// The values of one ONNX tensor: what it is and where its bytes lie, whichever
// of the schema's ways they are stored in.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ingot {

// The numbers of TensorProto.DataType. String, complex and the types of 4 bits
// and less are known by name and read by nobody.
enum class OnnxType : std::int32_t {
  Undefined = 0,
  Float = 1,
  Uint8 = 2,
  Int8 = 3,
  Uint16 = 4,
  Int16 = 5,
  Int32 = 6,
  Int64 = 7,
  String = 8,
  Bool = 9,
  Float16 = 10,
  Double = 11,
  Uint32 = 12,
  Uint64 = 13,
  Complex64 = 14,
  Complex128 = 15,
  Bfloat16 = 16,
  Float8E4M3FN = 17,
  Float8E4M3FNUZ = 18,
  Float8E5M2 = 19,
  Float8E5M2FNUZ = 20,
  Uint4 = 21,
  Int4 = 22,
  Float4E2M1 = 23,
  Float8E8M0 = 24,
  Uint2 = 25,
  Int2 = 26,
};

// As the schema spells it ("float16" is FLOAT16), or the number for one that it
// does not have.
std::string onnxTypeName(std::int32_t type);
// Bytes of one element; 0 where elements are not whole bytes or not numbers.
std::uint64_t onnxElementBytes(std::int32_t type);

struct OnnxTensor {
  std::string name;
  OnnxType type = OnnxType::Undefined;
  std::vector<std::int64_t> dims;
  std::uint64_t numElements = 0;
  // Little-endian elements, row-major. They lie in a source file (see
  // OnnxFile::sources), not aligned, or are held in `owned`.
  std::optional<std::uint32_t> file;
  std::uint64_t byteOffset = 0;
  std::span<const std::uint8_t> mapped;
  std::vector<std::uint8_t> owned;

  std::span<const std::uint8_t> bytes() const { return file ? mapped : owned; }
};

} // namespace ingot
