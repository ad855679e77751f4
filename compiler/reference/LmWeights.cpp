// Exact blocks keep their codes and scales; all else goes through float32.
#include "compiler/reference/LmWeights.h"

#include "compiler/frontend/gguf/Dequantize.h"
#include "compiler/kernels/reference/Scalar.h"
#include "compiler/package/RoundWeights.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace ingot {
namespace {

WeightDtype dtypeOf(lm::Stored stored) {
  switch (stored) {
  case lm::Stored::F32:
    return WeightDtype::F32;
  case lm::Stored::F16:
    return WeightDtype::F16;
  case lm::Stored::BF16:
    return WeightDtype::BF16;
  case lm::Stored::Q8_0:
    return WeightDtype::Q8_0;
  case lm::Stored::Q4_0:
    return WeightDtype::Q4_0;
  case lm::Stored::Q4_1:
    return WeightDtype::Q4_1;
  }
  llvm_unreachable("all stored forms are handled");
}

// The stored row of a logical row: within a fused projection, or undoing
// llama.cpp's permutation.
std::int64_t storedRow(lm::PartAttr part, std::int64_t row) {
  if (part.getStoredRows() != 0)
    return part.getFirst() + row / part.getRun() * part.getStride() +
           row % part.getRun();
  if (part.getPermute() == 0)
    return row;
  std::int64_t headRows = part.getRows() / part.getPermute();
  std::int64_t inHead = row % headRows, half = headRows / 2;
  return row - inHead + 2 * (inHead % half) + inHead / half;
}

float roundToBfloat(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  bits += 0x7fffu + ((bits >> 16) & 1u);
  return std::bit_cast<float>(bits & 0xffff0000u);
}

float roundToHalf(float value) {
  return reference::fromHalf(reference::toHalf(value));
}

std::uint16_t halfBits(const std::uint8_t *bytes) {
  return static_cast<std::uint16_t>(bytes[0] | bytes[1] << 8);
}

// One block of 32 with its codes and scale as stored.
void takeBlock(lm::Stored stored, const std::uint8_t *block, std::int8_t *codes,
               float &scale, float *min) {
  scale = halfToFloat(halfBits(block));
  if (stored == lm::Stored::Q8_0) {
    std::memcpy(codes, block + 2, 32);
    return;
  }
  const std::uint8_t *nibbles = block + 2;
  if (stored == lm::Stored::Q4_1) {
    *min = halfToFloat(halfBits(block + 2));
    nibbles = block + 4;
  }
  int offset = stored == lm::Stored::Q4_0 ? 8 : 0;
  for (int i = 0; i < 16; ++i) {
    codes[i] = static_cast<std::int8_t>((nibbles[i] & 15) - offset);
    codes[16 + i] = static_cast<std::int8_t>((nibbles[i] >> 4) - offset);
  }
}

// Rounds a group as the packer does (which nearest codes to take is its choice).
Status roundGroup(lm::PartAttr part, lm::EncodingAttr encoding,
                  std::span<const float> values, std::int8_t *codes,
                  float &scale, float *min) {
  for (float value : values)
    if (!std::isfinite(value))
      return Status::invalid("tensor " + part.getName().str() +
                             ": a weight is not finite");
  std::vector<std::uint8_t> stored(values.size());
  std::uint16_t scaleBits = 0, minBits = 0;
  int offset = 0;
  package::RoundResult result;
  if (encoding.getMinimum()) {
    result =
        package::roundInt4Minimum(values, stored.data(), scaleBits, minBits);
    *min = halfToFloat(minBits);
  } else if (encoding.getCode() == lm::WeightCode::I8) {
    offset = 128;
    result = package::roundInt8(values, stored.data(), scaleBits);
  } else {
    offset = 8;
    result = package::roundInt4(values, stored.data(), scaleBits);
  }
  if (result == package::RoundResult::TooLarge)
    return Status::unsupported("tensor " + part.getName().str() +
                               ": a group needs a scale beyond float16");
  scale = halfToFloat(scaleBits);
  for (std::size_t i = 0; i < stored.size(); ++i)
    codes[i] = static_cast<std::int8_t>(stored[i] - offset);
  return Status::ok();
}

} // namespace

Result<LmSourceFiles> LmSourceFiles::open(mlir::ModuleOp module,
                                          const std::string &folder) {
  LmSourceFiles files;
  for (lm::SourceOp source : module.getOps<lm::SourceOp>()) {
    std::string path = source.getPath() ? source.getPath()->str()
                                        : folder + "/" + source.getName().str();
    INGOT_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
    if (file.bytes().size() != source.getSize())
      return Status::invalid(
          path + ": has " + std::to_string(file.bytes().size()) +
          " bytes, expected " + std::to_string(source.getSize()));
    files.files_.emplace(source.getSymName().str(), std::move(file));
  }
  return files;
}

Result<LoadedWeight> LmSourceFiles::load(lm::WeightOp weight) const {
  LoadedWeight loaded;
  lm::EncodingAttr encoding = weight.getEncoding();
  loaded.rows = weight.getRows();
  loaded.columns = weight.getColumns();
  loaded.values.resize(weight.getNumElements());
  if (auto value = weight.getValueAttr()) {
    llvm::copy(llvm::cast<mlir::DenseElementsAttr>(value).getValues<float>(),
               loaded.values.begin());
    if (encoding.isInteger())
      return Status::unsupported("weight " + weight.getSymName().str() +
                                 ": a value of an integer encoding");
  }
  if (encoding.isInteger()) {
    loaded.group = encoding.getGroup();
    loaded.groups = (loaded.columns + loaded.group - 1) / loaded.group;
    loaded.codes.resize(loaded.values.size());
    loaded.scales.resize(loaded.rows * loaded.groups);
    if (encoding.getMinimum())
      loaded.mins.resize(loaded.scales.size());
  }

  std::int64_t row = 0;
  for (lm::PartAttr part : weight.getPartList()) {
    lm::Stored stored = part.getStored();
    bool exact = lm::encodingOf(weight.getContext(), stored) == encoding;
    std::span<const std::uint8_t> bytes =
        files_.at(part.getSource().getValue().str())
            .bytes()
            .subspan(part.getOffset(), part.getSize());
    std::int64_t storedRows =
        part.getStoredRows() ? part.getStoredRows() : part.getRows();
    std::int64_t rowBytes = part.getSize() / storedRows;
    std::vector<std::uint8_t> column;
    for (std::int64_t partRow = 0; partRow < part.getRows(); ++partRow, ++row) {
      std::span<const std::uint8_t> from;
      if (part.getTransposed()) {
        std::int64_t element = lm::storedBlockBytes(stored);
        column.clear();
        for (std::int64_t k = 0; k < loaded.columns; ++k) {
          auto at = bytes.subspan(
              (k * storedRows + storedRow(part, partRow)) * element, element);
          column.insert(column.end(), at.begin(), at.end());
        }
        from = column;
      } else {
        from = bytes.subspan(storedRow(part, partRow) * rowBytes, rowBytes);
      }
      std::span<float> to(&loaded.values[row * loaded.columns], loaded.columns);
      INGOT_RETURN_IF_ERROR(dequantize(dtypeOf(stored), from, to));
      for (std::int64_t group = 0; group < loaded.groups; ++group) {
        std::int64_t begin = group * loaded.group;
        std::int64_t size = std::min(loaded.group, loaded.columns - begin);
        std::int8_t *codes = &loaded.codes[row * loaded.columns + begin];
        std::int64_t index = row * loaded.groups + group;
        float &scale = loaded.scales[index];
        float *min = loaded.mins.empty() ? nullptr : &loaded.mins[index];
        if (exact)
          takeBlock(stored, &from[group * lm::storedBlockBytes(stored)], codes,
                    scale, min);
        else
          INGOT_RETURN_IF_ERROR(roundGroup(
              part, encoding, to.subspan(begin, size), codes, scale, min));
        for (std::int64_t i = 0; i < size; ++i)
          to[begin + i] =
              min ? std::fma(scale, static_cast<float>(codes[i]), *min)
                  : scale * static_cast<float>(codes[i]);
      }
    }
  }
  for (float &value : loaded.values) {
    if (encoding.getCode() == lm::WeightCode::F16)
      value = roundToHalf(value);
    else if (encoding.getCode() == lm::WeightCode::BF16)
      value = roundToBfloat(value);
  }
  return loaded;
}

} // namespace ingot
