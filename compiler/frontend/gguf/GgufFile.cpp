#include "compiler/frontend/gguf/GgufFile.h"

#include "compiler/frontend/StrictJson.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <set>

namespace ingot {
namespace {

constexpr std::uint64_t maxNameBytes = 65535;
constexpr std::uint64_t maxTensorNameBytes = 64;
constexpr int maxArrayDepth = 4;

// Block sizes of every type that ggml has had a number for and still has.
constexpr std::array<GgmlType, 34> ggmlTypes = {{
    {0, "F32", 1, 4},         {1, "F16", 1, 2},
    {2, "Q4_0", 32, 18},      {3, "Q4_1", 32, 20},
    {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 40},
    {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},
    {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},
    {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},
    {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},
    {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136},
    {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},
    {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},
    {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},
    {40, "NVFP4", 64, 36},    {41, "Q1_0", 128, 18},
}};

// Bytes of one scalar; 0 for strings and arrays, which have no fixed size.
std::uint64_t scalarBytes(GgufType type) {
  switch (type) {
  case GgufType::U8:
  case GgufType::I8:
  case GgufType::Bool:
    return 1;
  case GgufType::U16:
  case GgufType::I16:
    return 2;
  case GgufType::U32:
  case GgufType::I32:
  case GgufType::F32:
    return 4;
  case GgufType::U64:
  case GgufType::I64:
  case GgufType::F64:
    return 8;
  case GgufType::String:
  case GgufType::Array:
    return 0;
  }
  return 0;
}

template <typename T> T load(const std::uint8_t *bytes) {
  static_assert(std::endian::native == std::endian::little);
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

std::optional<std::int64_t> loadInteger(GgufType type,
                                        const std::uint8_t *bytes) {
  switch (type) {
  case GgufType::U8:
    return load<std::uint8_t>(bytes);
  case GgufType::I8:
    return load<std::int8_t>(bytes);
  case GgufType::U16:
    return load<std::uint16_t>(bytes);
  case GgufType::I16:
    return load<std::int16_t>(bytes);
  case GgufType::U32:
    return load<std::uint32_t>(bytes);
  case GgufType::I32:
    return load<std::int32_t>(bytes);
  case GgufType::I64:
    return load<std::int64_t>(bytes);
  case GgufType::U64: {
    std::uint64_t value = load<std::uint64_t>(bytes);
    if (value > std::uint64_t(std::numeric_limits<std::int64_t>::max()))
      return std::nullopt;
    return static_cast<std::int64_t>(value);
  }
  default:
    return std::nullopt;
  }
}

std::optional<double> loadFloat(GgufType type, const std::uint8_t *bytes) {
  if (type == GgufType::F32)
    return load<float>(bytes);
  if (type == GgufType::F64)
    return load<double>(bytes);
  if (auto integer = loadInteger(type, bytes))
    return static_cast<double>(*integer);
  return std::nullopt;
}

} // namespace

const char *ggufTypeName(GgufType type) {
  static constexpr const char *names[] = {
      "uint8", "int8",   "uint16", "int16",  "uint32", "int32",  "float32",
      "bool",  "string", "array",  "uint64", "int64",  "float64"};
  return names[static_cast<std::uint32_t>(type)];
}

const GgmlType *ggmlType(std::uint32_t id) {
  for (const GgmlType &type : ggmlTypes)
    if (type.id == id)
      return &type;
  return nullptr;
}

std::optional<std::int64_t> GgufValue::asInteger() const {
  return loadInteger(type_, raw_.data());
}
std::optional<double> GgufValue::asFloat() const {
  return loadFloat(type_, raw_.data());
}
std::optional<bool> GgufValue::asBool() const {
  if (type_ != GgufType::Bool)
    return std::nullopt;
  return raw_[0] != 0;
}
std::optional<std::string_view> GgufValue::asString() const {
  if (type_ != GgufType::String)
    return std::nullopt;
  return std::string_view(reinterpret_cast<const char *>(raw_.data()) + 8,
                          raw_.size() - 8);
}
std::optional<std::vector<std::int64_t>> GgufValue::asIntegers() const {
  std::uint64_t step = scalarBytes(elementType_);
  if (type_ != GgufType::Array || step == 0)
    return std::nullopt;
  std::vector<std::int64_t> values;
  values.reserve(count_);
  for (std::uint64_t i = 0; i < count_; ++i) {
    auto value = loadInteger(elementType_, raw_.data() + i * step);
    if (!value)
      return std::nullopt;
    values.push_back(*value);
  }
  return values;
}
std::optional<std::vector<double>> GgufValue::asFloats() const {
  std::uint64_t step = scalarBytes(elementType_);
  if (type_ != GgufType::Array || step == 0)
    return std::nullopt;
  std::vector<double> values;
  values.reserve(count_);
  for (std::uint64_t i = 0; i < count_; ++i) {
    auto value = loadFloat(elementType_, raw_.data() + i * step);
    if (!value)
      return std::nullopt;
    values.push_back(*value);
  }
  return values;
}
std::optional<std::vector<std::string_view>> GgufValue::asStrings() const {
  if (type_ != GgufType::Array || elementType_ != GgufType::String)
    return std::nullopt;
  std::vector<std::string_view> values;
  values.reserve(count_);
  // The parser has walked these strings: their lengths are known to fit.
  const std::uint8_t *at = raw_.data();
  for (std::uint64_t i = 0; i < count_; ++i) {
    std::uint64_t size = load<std::uint64_t>(at);
    values.emplace_back(reinterpret_cast<const char *>(at) + 8, size);
    at += 8 + size;
  }
  return values;
}

// Reads forward through the bytes. Every take is checked against what is left,
// so no length from the file is used before it is known to fit.
class GgufParser {
public:
  explicit GgufParser(GgufFile &file) : file_(file), bytes_(file.bytes_) {}
  Status parse();

private:
  std::uint64_t left() const { return bytes_.size() - at_; }
  Status invalid(const std::string &message) const {
    return Status::invalid(file_.name_ + ": " + message);
  }
  Status truncated(const std::string &what, std::uint64_t needed) const {
    return invalid(what + ": needs " + std::to_string(needed) +
                   " bytes at byte " + std::to_string(at_) + ", but " +
                   std::to_string(left()) + " are left");
  }
  template <typename T> Status take(T &value, const std::string &what) {
    if (left() < sizeof(T))
      return truncated(what, sizeof(T));
    value = load<T>(bytes_.data() + at_);
    at_ += sizeof(T);
    return Status::ok();
  }
  Status takeString(std::string_view &value, const std::string &what,
                    std::uint64_t maxBytes);
  Status skipElements(GgufType type, std::uint64_t count,
                      const std::string &what, int depth);
  Status checkBools(std::span<const std::uint8_t> raw,
                    const std::string &what) const;
  Status parseType(GgufType &type, const std::string &what);
  Status parseValue(GgufValue &value, const std::string &what);
  Status parseMetadata(std::uint64_t count);
  Status parseTensor(GgufTensor &tensor, std::uint64_t index);
  Status placeTensors();

  GgufFile &file_;
  std::span<const std::uint8_t> bytes_;
  std::uint64_t at_ = 0;
};

Status GgufParser::takeString(std::string_view &value, const std::string &what,
                              std::uint64_t maxBytes) {
  std::uint64_t size = 0;
  INGOT_RETURN_IF_ERROR(take(size, what + ": length"));
  if (size > left())
    return truncated(what, size);
  if (size > maxBytes)
    return invalid(what + ": length " + std::to_string(size) + " is above " +
                   std::to_string(maxBytes));
  value = std::string_view(reinterpret_cast<const char *>(bytes_.data()) + at_,
                           size);
  at_ += size;
  return Status::ok();
}

Status GgufParser::checkBools(std::span<const std::uint8_t> raw,
                              const std::string &what) const {
  for (std::uint8_t byte : raw)
    if (byte > 1)
      return invalid(what + ": expected a bool of 0 or 1, found " +
                     std::to_string(byte));
  return Status::ok();
}

Status GgufParser::parseType(GgufType &type, const std::string &what) {
  std::uint32_t id = 0;
  INGOT_RETURN_IF_ERROR(take(id, what + ": value type"));
  if (id > static_cast<std::uint32_t>(GgufType::F64))
    return invalid(what + ": unknown value type " + std::to_string(id));
  type = static_cast<GgufType>(id);
  return Status::ok();
}

Status GgufParser::skipElements(GgufType type, std::uint64_t count,
                                const std::string &what, int depth) {
  if (std::uint64_t step = scalarBytes(type)) {
    if (count > left() / step)
      return invalid(what + ": " + std::to_string(count) + " elements of " +
                     ggufTypeName(type) + " do not fit the " +
                     std::to_string(left()) + " bytes that are left");
    if (type == GgufType::Bool)
      INGOT_RETURN_IF_ERROR(checkBools(bytes_.subspan(at_, count), what));
    at_ += count * step;
    return Status::ok();
  }
  if (count > left() / 8)
    return invalid(what + ": " + std::to_string(count) + " elements of " +
                   ggufTypeName(type) + " do not fit the " +
                   std::to_string(left()) + " bytes that are left");
  if (type == GgufType::String) {
    std::string_view ignored;
    for (std::uint64_t i = 0; i < count; ++i)
      INGOT_RETURN_IF_ERROR(takeString(ignored, what, bytes_.size()));
    return Status::ok();
  }
  if (depth >= maxArrayDepth)
    return invalid(what + ": arrays nested deeper than " +
                   std::to_string(maxArrayDepth));
  for (std::uint64_t i = 0; i < count; ++i) {
    GgufType inner = GgufType::U8;
    std::uint64_t innerCount = 0;
    INGOT_RETURN_IF_ERROR(parseType(inner, what));
    INGOT_RETURN_IF_ERROR(take(innerCount, what + ": array length"));
    INGOT_RETURN_IF_ERROR(skipElements(inner, innerCount, what, depth + 1));
  }
  return Status::ok();
}

Status GgufParser::parseValue(GgufValue &value, const std::string &what) {
  INGOT_RETURN_IF_ERROR(parseType(value.type_, what));
  if (value.type_ == GgufType::Array) {
    INGOT_RETURN_IF_ERROR(parseType(value.elementType_, what));
    INGOT_RETURN_IF_ERROR(take(value.count_, what + ": array length"));
    std::uint64_t begin = at_;
    INGOT_RETURN_IF_ERROR(
        skipElements(value.elementType_, value.count_, what, 1));
    value.raw_ = bytes_.subspan(begin, at_ - begin);
    return Status::ok();
  }
  std::uint64_t begin = at_;
  INGOT_RETURN_IF_ERROR(skipElements(value.type_, 1, what, 1));
  value.raw_ = bytes_.subspan(begin, at_ - begin);
  return Status::ok();
}

Status GgufParser::parseMetadata(std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string_view key;
    std::string what = "metadata " + std::to_string(i);
    INGOT_RETURN_IF_ERROR(takeString(key, what + " key", maxNameBytes));
    if (key.empty())
      return invalid(what + ": the key is empty");
    what = "metadata " + quoteName(key);
    GgufValue value;
    INGOT_RETURN_IF_ERROR(parseValue(value, what));
    if (!file_.metadata_.emplace(key, value).second)
      return invalid(what + " is given twice");
  }
  const GgufValue *alignment = file_.find("general.alignment");
  if (!alignment)
    return Status::ok();
  if (alignment->type() != GgufType::U32)
    return invalid(std::string("general.alignment: expected uint32, found ") +
                   ggufTypeName(alignment->type()));
  file_.alignment_ = static_cast<std::uint64_t>(*alignment->asInteger());
  if (!std::has_single_bit(file_.alignment_))
    return invalid("general.alignment: expected a power of two, found " +
                   std::to_string(file_.alignment_));
  return Status::ok();
}

// `fileOffset` holds the offset within the data section until placeTensors().
Status GgufParser::parseTensor(GgufTensor &tensor, std::uint64_t index) {
  std::string_view name;
  std::string what = "tensor " + std::to_string(index);
  INGOT_RETURN_IF_ERROR(takeString(name, what + " name", maxTensorNameBytes));
  if (name.empty())
    return invalid(what + ": the name is empty");
  tensor.name = name;
  what = "tensor " + quoteName(name);
  std::uint32_t dims = 0;
  INGOT_RETURN_IF_ERROR(take(dims, what + ": number of dimensions"));
  if (dims < 1 || dims > 4)
    return invalid(what + ": expected 1 to 4 dimensions, found " +
                   std::to_string(dims));
  std::uint64_t elements = 1;
  for (std::uint32_t i = 0; i < dims; ++i) {
    std::uint64_t dim = 0;
    INGOT_RETURN_IF_ERROR(take(dim, what + ": dimension"));
    tensor.dims.push_back(dim);
    if (dim > std::uint64_t(std::numeric_limits<std::int64_t>::max()) ||
        __builtin_mul_overflow(elements, dim, &elements))
      return invalid(what + ": the product of its dimensions does not fit 64 "
                            "bits");
  }
  std::uint32_t typeId = 0;
  INGOT_RETURN_IF_ERROR(take(typeId, what + ": type"));
  tensor.type = ggmlType(typeId);
  if (!tensor.type)
    return Status::unsupported(file_.name_ + ": unsupported ggml type " +
                               std::to_string(typeId) + " in " + what);
  if (tensor.dims[0] % tensor.type->blockElements != 0)
    return invalid(what + ": rows of " + std::to_string(tensor.dims[0]) +
                   " are not whole blocks of " + tensor.type->name + " (" +
                   std::to_string(tensor.type->blockElements) + ")");
  std::uint64_t blocks = elements / tensor.type->blockElements;
  if (__builtin_mul_overflow(blocks, tensor.type->blockBytes,
                             &tensor.sizeBytes))
    return invalid(what + ": its size does not fit 64 bits");
  return take(tensor.fileOffset, what + ": offset");
}

// The data section starts at the next multiple of the alignment; offsets are
// aligned, inside it, and no two tensors share a byte.
Status GgufParser::placeTensors() {
  std::uint64_t begin = 0;
  if (__builtin_add_overflow(at_, file_.alignment_ - 1, &begin))
    return invalid("the data section begins past 64 bits");
  begin &= ~(file_.alignment_ - 1);
  std::uint64_t dataBytes = begin > bytes_.size() ? 0 : bytes_.size() - begin;
  for (GgufTensor &tensor : file_.tensors_) {
    std::string what = "tensor " + quoteName(tensor.name);
    if (tensor.fileOffset % file_.alignment_ != 0)
      return invalid(what + ": offset " + std::to_string(tensor.fileOffset) +
                     " is not a multiple of the alignment " +
                     std::to_string(file_.alignment_));
    if (tensor.fileOffset > dataBytes ||
        tensor.sizeBytes > dataBytes - tensor.fileOffset)
      return invalid(what + ": " + std::to_string(tensor.sizeBytes) +
                     " bytes at offset " + std::to_string(tensor.fileOffset) +
                     " end past the data section (" +
                     std::to_string(dataBytes) + " bytes)");
    // An empty tensor of a file without data lies at its end.
    tensor.fileOffset = tensor.sizeBytes == 0 && dataBytes == 0
                            ? bytes_.size()
                            : tensor.fileOffset + begin;
  }
  std::vector<const GgufTensor *> order;
  for (const GgufTensor &tensor : file_.tensors_)
    if (tensor.sizeBytes > 0)
      order.push_back(&tensor);
  std::sort(order.begin(), order.end(),
            [](auto *a, auto *b) { return a->fileOffset < b->fileOffset; });
  for (std::size_t i = 1; i < order.size(); ++i)
    if (order[i]->fileOffset <
        order[i - 1]->fileOffset + order[i - 1]->sizeBytes)
      return invalid("tensors " + quoteName(order[i - 1]->name) + " and " +
                     quoteName(order[i]->name) + " overlap");
  return Status::ok();
}

// 1. magic, version, counts; 2. metadata; 3. tensor infos; 4. the data section.
Status GgufParser::parse() {
  if (bytes_.size() < 4 || std::memcmp(bytes_.data(), GgufFile::magic, 4) != 0)
    return invalid("expected the magic \"GGUF\"");
  at_ = 4;
  INGOT_RETURN_IF_ERROR(take(file_.version_, "version"));
  if (file_.version_ == 0x02000000 || file_.version_ == 0x03000000)
    return Status::unsupported(file_.name_ + ": big-endian GGUF files are "
                                             "not read");
  if (file_.version_ < 2 || file_.version_ > 3)
    return Status::unsupported(file_.name_ +
                               ": expected GGUF version 2 or 3, found " +
                               std::to_string(file_.version_));
  std::uint64_t tensorCount = 0, metadataCount = 0;
  INGOT_RETURN_IF_ERROR(take(tensorCount, "tensor count"));
  INGOT_RETURN_IF_ERROR(take(metadataCount, "metadata count"));
  // The least a pair takes: key length, one byte of key, type, one byte.
  if (metadataCount > left() / (8 + 1 + 4 + 1))
    return invalid("metadata count " + std::to_string(metadataCount) +
                   " does not fit the file");
  INGOT_RETURN_IF_ERROR(parseMetadata(metadataCount));
  // Name length, one byte of name, dimensions, one dimension, type, offset.
  if (tensorCount > left() / (8 + 1 + 4 + 8 + 4 + 8))
    return invalid("tensor count " + std::to_string(tensorCount) +
                   " does not fit the file");
  std::set<std::string, std::less<>> names;
  for (std::uint64_t i = 0; i < tensorCount; ++i) {
    GgufTensor tensor;
    INGOT_RETURN_IF_ERROR(parseTensor(tensor, i));
    if (!names.insert(tensor.name).second)
      return invalid("tensor " + quoteName(tensor.name) + " is given twice");
    file_.tensors_.push_back(std::move(tensor));
  }
  return placeTensors();
}

Result<GgufFile> GgufFile::open(const std::string &path) {
  GgufFile result;
  INGOT_ASSIGN_OR_RETURN(result.file_, MappedFile::open(path));
  result.name_ = path;
  result.bytes_ = result.file_.bytes();
  INGOT_RETURN_IF_ERROR(GgufParser(result).parse());
  return result;
}

Result<GgufFile> GgufFile::fromMemory(std::span<const std::uint8_t> bytes,
                                      const std::string &name) {
  GgufFile result;
  result.name_ = name;
  result.bytes_ = bytes;
  INGOT_RETURN_IF_ERROR(GgufParser(result).parse());
  return result;
}

const GgufValue *GgufFile::find(std::string_view key) const {
  auto found = metadata_.find(key);
  return found == metadata_.end() ? nullptr : &found->second;
}

} // namespace ingot
