#include "compiler/frontend/huggingface/SafetensorsFile.h"

#include "compiler/frontend/StrictJson.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ingot {
namespace {

struct DtypeInfo {
  SafetensorsDtype dtype;
  const char *name;
  std::uint64_t bits;
};

constexpr std::array<DtypeInfo, 22> dtypes = {{
    {SafetensorsDtype::Bool, "BOOL", 8},
    {SafetensorsDtype::U8, "U8", 8},
    {SafetensorsDtype::I8, "I8", 8},
    {SafetensorsDtype::U16, "U16", 16},
    {SafetensorsDtype::I16, "I16", 16},
    {SafetensorsDtype::U32, "U32", 32},
    {SafetensorsDtype::I32, "I32", 32},
    {SafetensorsDtype::U64, "U64", 64},
    {SafetensorsDtype::I64, "I64", 64},
    {SafetensorsDtype::F4, "F4", 4},
    {SafetensorsDtype::F6E2M3, "F6_E2M3", 6},
    {SafetensorsDtype::F6E3M2, "F6_E3M2", 6},
    {SafetensorsDtype::F8E5M2, "F8_E5M2", 8},
    {SafetensorsDtype::F8E4M3, "F8_E4M3", 8},
    {SafetensorsDtype::F8E8M0, "F8_E8M0", 8},
    {SafetensorsDtype::F8E4M3FNUZ, "F8_E4M3FNUZ", 8},
    {SafetensorsDtype::F8E5M2FNUZ, "F8_E5M2FNUZ", 8},
    {SafetensorsDtype::F16, "F16", 16},
    {SafetensorsDtype::BF16, "BF16", 16},
    {SafetensorsDtype::F32, "F32", 32},
    {SafetensorsDtype::F64, "F64", 64},
    {SafetensorsDtype::C64, "C64", 64},
}};

// The entry of the table for a name, or null.
const DtypeInfo *findDtype(std::string_view name) {
  for (const DtypeInfo &info : dtypes)
    if (name == info.name)
      return &info;
  return nullptr;
}

} // namespace

const char *safetensorsDtypeName(SafetensorsDtype dtype) {
  return dtypes[static_cast<std::size_t>(dtype)].name;
}

std::uint64_t safetensorsDtypeBits(SafetensorsDtype dtype) {
  return dtypes[static_cast<std::size_t>(dtype)].bits;
}

bool safetensorsSizeBytes(SafetensorsDtype dtype,
                          std::span<const std::uint64_t> shape,
                          std::uint64_t &sizeBytes) {
  std::uint64_t bits = safetensorsDtypeBits(dtype);
  // A zero anywhere makes the tensor empty, whatever the other sizes wrap to.
  if (std::find(shape.begin(), shape.end(), 0u) != shape.end()) {
    sizeBytes = 0;
    return true;
  }
  for (std::uint64_t dim : shape)
    if (__builtin_mul_overflow(bits, dim, &bits))
      return false;
  if (bits % 8 != 0)
    return false;
  sizeBytes = bits / 8;
  return true;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string &path) {
  SafetensorsFile result;
  INGOT_ASSIGN_OR_RETURN(result.file_, MappedFile::open(path));
  result.name_ = path;
  result.bytes_ = result.file_.bytes();
  INGOT_RETURN_IF_ERROR(result.parse());
  return result;
}

Result<SafetensorsFile>
SafetensorsFile::fromMemory(std::span<const std::uint8_t> bytes,
                            const std::string &name) {
  SafetensorsFile result;
  result.name_ = name;
  result.bytes_ = bytes;
  INGOT_RETURN_IF_ERROR(result.parse());
  return result;
}

const SafetensorsTensor *SafetensorsFile::find(std::string_view name) const {
  auto found = byName_.find(name);
  return found == byName_.end() ? nullptr : &tensors_[found->second];
}

// One entry of the header. Checks the entry alone; how entries lie beside each
// other is checked once all are known.
static Status parseTensor(const std::string &file, const std::string &name,
                          const nlohmann::json &entry, std::uint64_t dataOffset,
                          std::uint64_t dataBytes, SafetensorsTensor &tensor) {
  std::string where = file + ": tensor " + quoteName(name);
  auto invalid = [&](const std::string &message) {
    return Status::invalid(where + ": " + message);
  };
  if (!entry.is_object())
    return invalid("expected an object, found " + jsonForMessage(entry));
  for (const auto &item : entry.items())
    if (item.key() != "dtype" && item.key() != "shape" &&
        item.key() != "data_offsets")
      return invalid("unknown key " + quoteName(item.key()));
  for (const char *key : {"dtype", "shape", "data_offsets"})
    if (!entry.contains(key))
      return invalid(std::string("key \"") + key + "\" is missing");

  tensor.name = name;
  const nlohmann::json &dtype = entry["dtype"];
  if (!dtype.is_string())
    return invalid("dtype: expected a string, found " + jsonForMessage(dtype));
  const std::string &dtypeName = dtype.get_ref<const std::string &>();
  const DtypeInfo *info = findDtype(dtypeName);
  if (!info)
    return Status::unsupported(file + ": unsupported dtype " +
                               quoteName(dtypeName) + " in tensor " +
                               quoteName(name));
  tensor.dtype = info->dtype;

  const nlohmann::json &shape = entry["shape"];
  if (!shape.is_array())
    return invalid("shape: expected an array, found " + jsonForMessage(shape));
  for (const nlohmann::json &dim : shape) {
    if (!dim.is_number_unsigned())
      return invalid("shape: expected integers of 0 or more, found " +
                     jsonForMessage(shape));
    tensor.shape.push_back(dim.get<std::uint64_t>());
  }

  const nlohmann::json &offsets = entry["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 ||
      !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned())
    return invalid("data_offsets: expected two integers of 0 or more, found " +
                   jsonForMessage(offsets));
  std::uint64_t begin = offsets[0].get<std::uint64_t>();
  std::uint64_t end = offsets[1].get<std::uint64_t>();
  std::string span =
      "[" + std::to_string(begin) + ", " + std::to_string(end) + ")";
  if (begin > end)
    return invalid("data_offsets " + span + " begin after they end");
  if (end > dataBytes)
    return invalid("data_offsets " + span + " end past the data section (" +
                   std::to_string(dataBytes) + " bytes)");
  std::uint64_t declared = 0;
  if (!safetensorsSizeBytes(tensor.dtype, tensor.shape, declared))
    return invalid("shape " + jsonForMessage(shape) + " of " + dtypeName +
                   " has no whole number of bytes in 64 bits; data_offsets "
                   "are " +
                   span);
  if (declared != end - begin)
    return invalid("shape " + jsonForMessage(shape) + " of " + dtypeName +
                   " takes " + std::to_string(declared) +
                   " bytes, but data_offsets " + span + " hold " +
                   std::to_string(end - begin));
  tensor.fileOffset = dataOffset + begin;
  tensor.sizeBytes = declared;
  return Status::ok();
}

// 1. the length of the header, 2. its JSON, 3. each entry, 4. the tiling of
// the data section.
Status SafetensorsFile::parse() {
  constexpr std::string_view pointer = "version https://git-lfs";
  if (bytes_.size() >= pointer.size() &&
      std::equal(pointer.begin(), pointer.end(), bytes_.begin()))
    return Status::invalid(name_ + ": is a pointer of Git LFS and not the file "
                                   "that it stands for (\"git lfs pull\" "
                                   "fetches that)");
  if (bytes_.size() < 8)
    return Status::invalid(name_ + ": header length: the file has " +
                           std::to_string(bytes_.size()) +
                           " bytes, expected at least 8");
  std::uint64_t headerBytes = 0;
  for (int i = 7; i >= 0; --i)
    headerBytes = headerBytes << 8 | bytes_[i];
  std::uint64_t rest = bytes_.size() - 8;
  if (headerBytes > rest)
    return Status::invalid(name_ + ": header length " +
                           std::to_string(headerBytes) +
                           " is more than the file holds after it (" +
                           std::to_string(rest) + " bytes)");
  if (headerBytes > maxHeaderBytes)
    return Status::invalid(name_ + ": header length " +
                           std::to_string(headerBytes) + " is above " +
                           std::to_string(maxHeaderBytes));
  if (headerBytes < 2)
    return Status::invalid(name_ + ": header length " +
                           std::to_string(headerBytes) +
                           " is too short for a JSON object");
  std::string_view header(reinterpret_cast<const char *>(bytes_.data()) + 8,
                          headerBytes);
  if (header[0] != '{')
    return Status::invalid(name_ + ": header: expected it to start with '{'");
  JsonLimits limits;
  limits.maxDepth = 8;
  INGOT_ASSIGN_OR_RETURN(auto json,
                         parseStrictJson(header, name_ + ": header", limits));

  std::uint64_t dataOffset = 8 + headerBytes;
  std::uint64_t dataBytes = rest - headerBytes;
  for (const auto &item : json.items()) {
    if (item.key() == "__metadata__") {
      if (!item.value().is_object())
        return Status::invalid(name_ +
                               ": __metadata__: expected an object, found " +
                               jsonForMessage(item.value()));
      hasMetadata_ = true;
      for (const auto &pair : item.value().items()) {
        if (!pair.value().is_string())
          return Status::invalid(
              name_ + ": __metadata__: key " + quoteName(pair.key()) +
              ": expected a string, found " + jsonForMessage(pair.value()));
        metadata_[pair.key()] = pair.value().get<std::string>();
      }
      continue;
    }
    SafetensorsTensor tensor;
    INGOT_RETURN_IF_ERROR(parseTensor(name_, item.key(), item.value(),
                                      dataOffset, dataBytes, tensor));
    tensors_.push_back(std::move(tensor));
  }

  std::sort(tensors_.begin(), tensors_.end(),
            [](const SafetensorsTensor &a, const SafetensorsTensor &b) {
              if (a.fileOffset != b.fileOffset)
                return a.fileOffset < b.fileOffset;
              if (a.sizeBytes != b.sizeBytes)
                return a.sizeBytes < b.sizeBytes;
              return a.name < b.name;
            });
  std::uint64_t covered = dataOffset;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const SafetensorsTensor &tensor = tensors_[i];
    if (tensor.fileOffset < covered)
      return Status::invalid(name_ + ": tensors " +
                             quoteName(tensors_[i - 1].name) + " and " +
                             quoteName(tensor.name) + " overlap at data byte " +
                             std::to_string(tensor.fileOffset - dataOffset));
    if (tensor.fileOffset > covered)
      return Status::invalid(
          name_ + ": data bytes [" + std::to_string(covered - dataOffset) +
          ", " + std::to_string(tensor.fileOffset - dataOffset) +
          ") before tensor " + quoteName(tensor.name) + " belong to no tensor");
    covered = tensor.fileOffset + tensor.sizeBytes;
    byName_[tensor.name] = i;
  }
  if (covered != bytes_.size())
    return Status::invalid(name_ + ": the last " +
                           std::to_string(bytes_.size() - covered) +
                           " bytes of the data section belong to no tensor");
  return Status::ok();
}

} // namespace ingot
