// Codes that the encoding can hold are kept; all else goes through float32.
#include "compiler/reference/LmWeights.h"

#include "compiler/kernels/reference/Scalar.h"
#include "compiler/package/RoundWeights.h"
#include "compiler/stored/Dequantize.h"
#include "dialects/StoredDetailsAttr.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace ingot {
namespace {

float roundToBfloat(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  bits += 0x7fffu + ((bits >> 16) & 1u);
  return std::bit_cast<float>(bits & 0xffff0000u);
}

float roundToHalf(float value) {
  return reference::fromHalf(reference::toHalf(value));
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

Result<StoredRows> LmSourceFiles::open(lm::PartAttr part) const {
  auto bytes = [&](const std::string &source, std::uint64_t offset,
                   std::uint64_t size) {
    return files_.at(source).bytes().subspan(offset, size);
  };
  StoredTensor tensor;
  tensor.name = part.getName().str();
  tensor.form = lm::storedForm(part.getStored());
  tensor.bytes = bytes(part.getSource().getValue().str(), part.getOffset(),
                       part.getSize());
  tensor.rows = part.getRows();
  tensor.columns = part.getColumns();
  tensor.permuteHeads = part.getPermute();
  tensor.storedRows = part.getStoredRows();
  tensor.first = part.getFirst();
  tensor.run = part.getRun();
  tensor.stride = part.getStride();
  tensor.transposed = part.getTransposed();
  INGOT_ASSIGN_OR_RETURN(tensor.details, readStoredDetails(part.getDetails()));
  tensor.details.forEachPlane([&](StoredPlane &plane) {
    plane.bytes = bytes(plane.source, plane.byteOffset, plane.sizeBytes);
  });
  return StoredRows::create(std::move(tensor));
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
    INGOT_ASSIGN_OR_RETURN(StoredRows rows, open(part));
    bool keep = conversionTo(lm::weightEncoding(encoding), rows.tensor().form,
                             rows.tensor().details) != WeightConversion::Round;
    int offset = encoding.getCode() == lm::WeightCode::I8 ? 128
                 : encoding.getMinimum()                  ? 0
                                                          : 8;
    std::vector<std::uint8_t> stored(loaded.columns);
    std::vector<CodeScale> kept(loaded.groups);
    for (std::int64_t partRow = 0; partRow < part.getRows(); ++partRow, ++row) {
      std::span<float> to(&loaded.values[row * loaded.columns], loaded.columns);
      rows.widen(partRow, to);
      if (loaded.groups == 0)
        continue;
      std::int8_t *codes = &loaded.codes[row * loaded.columns];
      if (keep) {
        rows.readCodes(partRow, loaded.group, stored.data(), kept);
        for (std::int64_t k = 0; k < loaded.columns; ++k)
          codes[k] = static_cast<std::int8_t>(stored[k] - offset);
      }
      for (std::int64_t group = 0; group < loaded.groups; ++group) {
        std::int64_t begin = group * loaded.group;
        std::int64_t size = std::min(loaded.group, loaded.columns - begin);
        std::int64_t index = row * loaded.groups + group;
        float &scale = loaded.scales[index];
        float *min = loaded.mins.empty() ? nullptr : &loaded.mins[index];
        if (keep) {
          scale = roundToHalf(kept[group].scale);
          if (min)
            *min = roundToHalf(kept[group].minimum);
        } else {
          INGOT_RETURN_IF_ERROR(roundGroup(part, encoding,
                                           to.subspan(begin, size),
                                           codes + begin, scale, min));
        }
        for (std::int64_t i = begin; i < begin + size; ++i)
          to[i] = min ? std::fma(scale, static_cast<float>(codes[i]), *min)
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
