// 1. The wire is walked and raw data detached. 2. Protobuf parses the skeleton.
// 3. Each tensor is checked when it is read: type, dims, one place for its
// values, as many bytes as the dims say.
#include "compiler/frontend/onnx/OnnxFile.h"

#include "compiler/frontend/StrictJson.h"
#include "compiler/frontend/onnx/DetachRawData.h"
#include "compiler/frontend/onnx/ExternalFile.h"

#include <charconv>
#include <cstring>
#include <filesystem>
#include <limits>

namespace ingot {
namespace {

using onnxproto::TensorProto;

struct TypeRow {
  const char *name;
  std::uint64_t bytes;
};

// By the number of the type.
constexpr TypeRow kTypes[] = {
    {"undefined", 0},      {"float", 4},      {"uint8", 1},
    {"int8", 1},           {"uint16", 2},     {"int16", 2},
    {"int32", 4},          {"int64", 8},      {"string", 0},
    {"bool", 1},           {"float16", 2},    {"double", 8},
    {"uint32", 4},         {"uint64", 8},     {"complex64", 8},
    {"complex128", 16},    {"bfloat16", 2},   {"float8e4m3fn", 1},
    {"float8e4m3fnuz", 1}, {"float8e5m2", 1}, {"float8e5m2fnuz", 1},
    {"uint4", 0},          {"int4", 0},       {"float4e2m1", 0},
    {"float8e8m0", 1},     {"uint2", 0},      {"int2", 0},
};
constexpr std::int32_t kNumTypes = std::size(kTypes);

// Values in the list of one field, each stored in `bytes` little-endian bytes.
template <typename Stored, typename List>
Status narrow(const List &list, std::int64_t low, std::int64_t high,
              const std::string &what, std::vector<std::uint8_t> &out) {
  out.resize(list.size() * sizeof(Stored));
  for (int i = 0; i < list.size(); ++i) {
    std::int64_t value = list.Get(i);
    if (value < low || value > high)
      return Status::invalid(what + ": element " + std::to_string(i) + " is " +
                             std::to_string(value) + ", expected " +
                             std::to_string(low) + " to " +
                             std::to_string(high));
    Stored stored = static_cast<Stored>(value);
    std::memcpy(out.data() + i * sizeof(Stored), &stored, sizeof(Stored));
  }
  return Status::ok();
}

template <typename List>
void copyList(const List &list, std::vector<std::uint8_t> &out) {
  using Element = std::decay_t<decltype(list.Get(0))>;
  out.resize(list.size() * sizeof(Element));
  if (!out.empty())
    std::memcpy(out.data(), list.data(), out.size());
}

// The typed field that holds the values of a type, into bytes.
Status readTyped(const TensorProto &tensor, OnnxType type,
                 const std::string &what, std::vector<std::uint8_t> &out) {
  const auto &ints = tensor.int32_data();
  switch (type) {
  case OnnxType::Float:
  case OnnxType::Complex64:
    copyList(tensor.float_data(), out);
    return Status::ok();
  case OnnxType::Double:
  case OnnxType::Complex128:
    copyList(tensor.double_data(), out);
    return Status::ok();
  case OnnxType::Int64:
    copyList(tensor.int64_data(), out);
    return Status::ok();
  case OnnxType::Uint64:
    copyList(tensor.uint64_data(), out);
    return Status::ok();
  case OnnxType::Uint32: {
    const auto &list = tensor.uint64_data();
    out.resize(list.size() * 4);
    for (int i = 0; i < list.size(); ++i) {
      if (list.Get(i) > std::numeric_limits<std::uint32_t>::max())
        return Status::invalid(what + ": element " + std::to_string(i) +
                               " does not fit uint32");
      std::uint32_t value = static_cast<std::uint32_t>(list.Get(i));
      std::memcpy(out.data() + i * 4, &value, 4);
    }
    return Status::ok();
  }
  case OnnxType::Int32:
    copyList(ints, out);
    return Status::ok();
  case OnnxType::Int16:
    return narrow<std::int16_t>(ints, -32768, 32767, what, out);
  case OnnxType::Uint16:
  case OnnxType::Float16:
  case OnnxType::Bfloat16:
    return narrow<std::uint16_t>(ints, 0, 65535, what, out);
  case OnnxType::Int8:
    return narrow<std::int8_t>(ints, -128, 127, what, out);
  case OnnxType::Bool:
    return narrow<std::uint8_t>(ints, 0, 1, what, out);
  default:
    return narrow<std::uint8_t>(ints, 0, 255, what, out);
  }
}

std::string shapeText(const std::vector<std::int64_t> &dims) {
  std::string text = "[";
  for (std::size_t i = 0; i < dims.size(); ++i)
    text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

Result<std::uint64_t> decimal(const std::string &text,
                              const std::string &what) {
  std::uint64_t value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size())
    return Status::invalid(what + ": expected a number of bytes, found " +
                           quoteName(text));
  return value;
}

struct ExternalPlace {
  std::string location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
};

Result<ExternalPlace> externalPlace(const TensorProto &tensor,
                                    const std::string &what) {
  ExternalPlace place;
  bool seen[3] = {};
  for (const auto &entry : tensor.external_data()) {
    const std::string field =
        what + ": external_data " + quoteName(entry.key());
    const int index = entry.key() == "location" ? 0
                      : entry.key() == "offset" ? 1
                      : entry.key() == "length" ? 2
                                                : -1;
    if (index < 0)
      return Status::unsupported(field +
                                 ": known are location, offset, length");
    if (seen[index])
      return Status::invalid(field + " is given twice");
    seen[index] = true;
    if (index == 0) {
      place.location = entry.value();
      continue;
    }
    INGOT_ASSIGN_OR_RETURN(std::uint64_t value, decimal(entry.value(), field));
    if (index == 1)
      place.offset = value;
    else
      place.length = value;
  }
  if (!seen[0])
    return Status::invalid(what + ": external_data has no location");
  return place;
}

// Everything of a tensor but its values.
Result<OnnxTensor> readHead(const TensorProto &tensor, const std::string &what,
                            std::uint64_t &sizeBytes) {
  OnnxTensor result;
  result.name = tensor.name();
  const std::int32_t type = tensor.data_type();
  if (type <= 0 || type >= kNumTypes)
    return Status::invalid(what + ": data_type " + std::to_string(type) +
                           ", expected 1 to " + std::to_string(kNumTypes - 1));
  const std::uint64_t elementBytes = onnxElementBytes(type);
  if (elementBytes == 0)
    return Status::unsupported(what + ": elements of type " +
                               onnxTypeName(type) + " are not read");
  result.type = static_cast<OnnxType>(type);
  std::uint64_t elements = 1;
  for (std::int64_t dim : tensor.dims()) {
    if (dim < 0)
      return Status::invalid(what + ": dimension " + std::to_string(dim));
    if (__builtin_mul_overflow(elements, static_cast<std::uint64_t>(dim),
                               &elements))
      return Status::invalid(what + ": the product of its dimensions does not "
                                    "fit 64 bits");
    result.dims.push_back(dim);
  }
  result.numElements = elements;
  if (__builtin_mul_overflow(elements, elementBytes, &sizeBytes))
    return Status::invalid(what + ": its size does not fit 64 bits");
  if (tensor.has_segment())
    return Status::unsupported(what + ": tensors in segments are not read");
  return result;
}

// The values where they are in the message itself.
Status readInline(const TensorProto &tensor, std::uint64_t sizeBytes,
                  std::span<const std::uint8_t> file, const std::string &what,
                  OnnxTensor &result) {
  const int places =
      tensor.has_raw_size() + !tensor.float_data().empty() +
      !tensor.int32_data().empty() + !tensor.int64_data().empty() +
      !tensor.double_data().empty() + !tensor.uint64_data().empty();
  if (places > 1)
    return Status::invalid(what + ": its values are given in several fields");
  if (tensor.has_raw_size()) {
    result.file = 0;
    result.byteOffset = tensor.raw_offset();
    result.mapped = file.subspan(tensor.raw_offset(), tensor.raw_size());
  } else {
    INGOT_RETURN_IF_ERROR(readTyped(tensor, result.type, what, result.owned));
  }
  if (result.bytes().size() != sizeBytes)
    return Status::invalid(what + ": " + onnxTypeName(tensor.data_type()) +
                           shapeText(result.dims) + " takes " +
                           std::to_string(sizeBytes) + " bytes, found " +
                           std::to_string(result.bytes().size()));
  return Status::ok();
}

Status checkBools(const OnnxTensor &tensor, const std::string &what) {
  if (tensor.type != OnnxType::Bool)
    return Status::ok();
  for (std::uint8_t byte : tensor.bytes())
    if (byte > 1)
      return Status::invalid(what + ": expected a bool of 0 or 1, found " +
                             std::to_string(byte));
  return Status::ok();
}

} // namespace

std::string onnxTypeName(std::int32_t type) {
  return type >= 0 && type < kNumTypes ? kTypes[type].name
                                       : std::to_string(type);
}

std::uint64_t onnxElementBytes(std::int32_t type) {
  return type >= 0 && type < kNumTypes ? kTypes[type].bytes : 0;
}

Status OnnxFile::parse(std::span<const std::uint8_t> bytes) {
  INGOT_ASSIGN_OR_RETURN(std::string skeleton,
                         detachRawData(bytes, OnnxMessage::Model, name_));
  model_ = std::make_unique<onnxproto::ModelProto>();
  if (!model_->ParseFromString(skeleton))
    return Status::invalid(name_ + ": is not an ONNX model: its message does "
                                   "not parse");
  const std::int64_t ir = model_->ir_version();
  if (!model_->has_ir_version() || !model_->has_graph())
    return Status::invalid(name_ + ": is not an ONNX model: it has no " +
                           (model_->has_graph() ? "ir_version" : "graph"));
  if (ir < 3 || ir > 13)
    return Status::unsupported(name_ + ": ir_version " + std::to_string(ir) +
                               ", expected 3 to 13");
  return Status::ok();
}

Result<OnnxFile> OnnxFile::open(const std::string &path) {
  OnnxFile result;
  result.name_ = path;
  std::filesystem::path at(path);
  result.folder_ = at.has_parent_path() ? at.parent_path().string() : ".";
  INGOT_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  result.sources_.push_back({path, at.filename().string(), file.bytes()});
  result.files_.push_back(std::move(file));
  INGOT_RETURN_IF_ERROR(result.parse(result.sources_[0].bytes));
  return result;
}

Result<OnnxFile> OnnxFile::fromMemory(std::span<const std::uint8_t> bytes,
                                      const std::string &name,
                                      const std::string &folder) {
  OnnxFile result;
  result.name_ = name;
  result.folder_ = folder;
  result.sources_.push_back({name, name, bytes});
  INGOT_RETURN_IF_ERROR(result.parse(bytes));
  return result;
}

Result<OnnxTensor> OnnxFile::openTensor(const std::string &path) {
  INGOT_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  INGOT_ASSIGN_OR_RETURN(
      std::string skeleton,
      detachRawData(file.bytes(), OnnxMessage::Tensor, path));
  TensorProto tensor;
  if (!tensor.ParseFromString(skeleton))
    return Status::invalid(path + ": is not an ONNX tensor");
  std::uint64_t sizeBytes = 0;
  INGOT_ASSIGN_OR_RETURN(OnnxTensor result, readHead(tensor, path, sizeBytes));
  if (tensor.data_location() == TensorProto::EXTERNAL)
    return Status::unsupported(path + ": external data is not read here");
  INGOT_RETURN_IF_ERROR(
      readInline(tensor, sizeBytes, file.bytes(), path, result));
  result.owned.assign(result.bytes().begin(), result.bytes().end());
  result.file.reset();
  INGOT_RETURN_IF_ERROR(checkBools(result, path));
  return result;
}

Result<std::uint32_t> OnnxFile::externalSource(const std::string &location,
                                               const std::string &what) {
  if (auto found = sourceOfLocation_.find(location);
      found != sourceOfLocation_.end())
    return found->second;
  INGOT_ASSIGN_OR_RETURN(std::string path,
                         externalFile(folder_, location, what));
  INGOT_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  const std::uint32_t index = static_cast<std::uint32_t>(sources_.size());
  sources_.push_back({path, location, file.bytes()});
  files_.push_back(std::move(file));
  sourceOfLocation_.emplace(location, index);
  return index;
}

Result<OnnxTensor> OnnxFile::read(const TensorProto &tensor,
                                  const std::string &what) {
  const std::string where = name_ + ": " + what;
  std::uint64_t sizeBytes = 0;
  INGOT_ASSIGN_OR_RETURN(OnnxTensor result, readHead(tensor, where, sizeBytes));
  if (tensor.data_location() != TensorProto::EXTERNAL) {
    if (!tensor.external_data().empty())
      return Status::invalid(where + ": external_data is given, but "
                                     "data_location is not EXTERNAL");
    INGOT_RETURN_IF_ERROR(
        readInline(tensor, sizeBytes, sources_[0].bytes, where, result));
    INGOT_RETURN_IF_ERROR(checkBools(result, where));
    return result;
  }
  if (tensor.has_raw_size() || !tensor.float_data().empty() ||
      !tensor.int32_data().empty() || !tensor.int64_data().empty() ||
      !tensor.double_data().empty() || !tensor.uint64_data().empty())
    return Status::invalid(where + ": its values are given both in the model "
                                   "and in an external file");
  INGOT_ASSIGN_OR_RETURN(ExternalPlace place, externalPlace(tensor, where));
  INGOT_ASSIGN_OR_RETURN(std::uint32_t source,
                         externalSource(place.location, where));
  const std::span<const std::uint8_t> bytes = sources_[source].bytes;
  if (place.length && *place.length != sizeBytes)
    return Status::invalid(where + ": " + onnxTypeName(tensor.data_type()) +
                           shapeText(result.dims) + " takes " +
                           std::to_string(sizeBytes) +
                           " bytes, but external_data \"length\" is " +
                           std::to_string(*place.length));
  if (place.offset > bytes.size() || sizeBytes > bytes.size() - place.offset)
    return Status::invalid(where + ": " + std::to_string(sizeBytes) +
                           " bytes at offset " + std::to_string(place.offset) +
                           " end past " + quoteName(place.location) + " (" +
                           std::to_string(bytes.size()) + " bytes)");
  result.file = source;
  result.byteOffset = place.offset;
  result.mapped = bytes.subspan(place.offset, sizeBytes);
  INGOT_RETURN_IF_ERROR(checkBools(result, where));
  return result;
}

} // namespace ingot
