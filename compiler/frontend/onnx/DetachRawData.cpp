// Fields are copied as they are, but for those that lead to a tensor: their
// messages are walked too, and written again with the length that is left.
#include "compiler/frontend/onnx/DetachRawData.h"

namespace ingot {
namespace {

constexpr int kMaxDepth = 32 * 4; // graph, node, attribute, tensor
constexpr std::uint64_t kMaxSkeletonBytes = 1ull << 30;

enum class Kind {
  Plain,
  Model,
  Graph,
  Function,
  Node,
  Attribute,
  Sparse,
  Tensor
};

const char *kindName(Kind kind) {
  switch (kind) {
  case Kind::Plain:
    return "message";
  case Kind::Model:
    return "ModelProto";
  case Kind::Graph:
    return "GraphProto";
  case Kind::Function:
    return "FunctionProto";
  case Kind::Node:
    return "NodeProto";
  case Kind::Attribute:
    return "AttributeProto";
  case Kind::Sparse:
    return "SparseTensorProto";
  case Kind::Tensor:
    return "TensorProto";
  }
  return "message";
}

// Which message a field of `kind` holds; Plain where no tensor is below it.
Kind kindOfField(Kind kind, std::uint64_t field) {
  switch (kind) {
  case Kind::Model:
    return field == 7    ? Kind::Graph
           : field == 25 ? Kind::Function
                         : Kind::Plain;
  case Kind::Graph:
    return field == 1    ? Kind::Node
           : field == 5  ? Kind::Tensor
           : field == 15 ? Kind::Sparse
                         : Kind::Plain;
  case Kind::Function:
    return field == 7    ? Kind::Node
           : field == 11 ? Kind::Attribute
                         : Kind::Plain;
  case Kind::Node:
    return field == 5 ? Kind::Attribute : Kind::Plain;
  case Kind::Attribute:
    return field == 5 ? Kind::Tensor : field == 6 ? Kind::Graph : Kind::Plain;
  case Kind::Sparse:
    return field == 1 || field == 2 ? Kind::Tensor : Kind::Plain;
  default:
    return Kind::Plain;
  }
}

constexpr std::uint64_t kRawData = 9, kRawOffset = 1000, kRawSize = 1001;

class Walker {
public:
  Walker(std::span<const std::uint8_t> bytes, const std::string &name)
      : bytes_(bytes), name_(name) {}

  Status walk(Kind kind, std::uint64_t begin, std::uint64_t end, int depth,
              std::string &out);

private:
  Status fail(Kind kind, std::uint64_t at, const std::string &what) const {
    return Status::invalid(name_ + ": " + kindName(kind) + " at byte " +
                           std::to_string(at) + ": " + what);
  }
  // Reads a varint of at most 64 bits.
  bool take(std::uint64_t &at, std::uint64_t end, std::uint64_t &value) const {
    value = 0;
    for (int shift = 0; shift < 64 && at < end; shift += 7) {
      std::uint8_t byte = bytes_[at++];
      if (shift == 63 && byte > 1)
        return false;
      value |= std::uint64_t(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0)
        return true;
    }
    return false;
  }
  void copy(std::uint64_t begin, std::uint64_t end, std::string &out) const {
    out.append(reinterpret_cast<const char *>(bytes_.data()) + begin,
               end - begin);
  }
  static void put(std::uint64_t value, std::string &out) {
    for (; value >= 0x80; value >>= 7)
      out.push_back(static_cast<char>(value | 0x80));
    out.push_back(static_cast<char>(value));
  }

  std::span<const std::uint8_t> bytes_;
  const std::string &name_;
};

Status Walker::walk(Kind kind, std::uint64_t begin, std::uint64_t end,
                    int depth, std::string &out) {
  if (depth > kMaxDepth)
    return fail(kind, begin, "graphs nested deeper than 32");
  for (std::uint64_t at = begin; at < end;) {
    const std::uint64_t start = at;
    std::uint64_t tag = 0, value = 0;
    if (!take(at, end, tag))
      return fail(kind, start, "a field's tag is cut off or too long");
    const std::uint64_t field = tag >> 3;
    if (field == 0 || field > 0x1fffffff)
      return fail(kind, start, "field number " + std::to_string(field));
    const std::string what = "field " + std::to_string(field);
    bool keep = kind != Kind::Tensor ||
                (field != kRawData && field != kRawOffset && field != kRawSize);
    switch (tag & 7) {
    case 0:
      if (!take(at, end, value))
        return fail(kind, start, what + " is cut off or too long");
      break;
    case 1:
    case 5:
      value = (tag & 7) == 1 ? 8 : 4;
      if (value > end - at)
        return fail(kind, start, what + " is cut off");
      at += value;
      break;
    case 2: {
      if (!take(at, end, value))
        return fail(kind, start, what + ": its length is cut off or too long");
      if (value > end - at)
        return fail(kind, start,
                    what + ": length " + std::to_string(value) + ", but " +
                        std::to_string(end - at) + " bytes are left");
      const std::uint64_t data = at;
      at += value;
      if (kind == Kind::Tensor && field == kRawData) {
        put(kRawOffset << 3, out);
        put(data, out);
        put(kRawSize << 3, out);
        put(value, out);
      } else if (Kind inner = kindOfField(kind, field); inner != Kind::Plain) {
        std::string message;
        INGOT_RETURN_IF_ERROR(walk(inner, data, at, depth + 1, message));
        put(tag, out);
        put(message.size(), out);
        out += message;
        keep = false;
      }
      break;
    }
    default:
      return fail(kind, start,
                  what + " has wire type " + std::to_string(tag & 7));
    }
    if (keep)
      copy(start, at, out);
    if (out.size() > kMaxSkeletonBytes)
      return fail(kind, start,
                  "the model without its raw data is above 1 GiB: store its "
                  "weights as raw or external data");
  }
  return Status::ok();
}

} // namespace

Result<std::string> detachRawData(std::span<const std::uint8_t> bytes,
                                  OnnxMessage message,
                                  const std::string &name) {
  std::string skeleton;
  INGOT_RETURN_IF_ERROR(
      Walker(bytes, name)
          .walk(message == OnnxMessage::Model ? Kind::Model : Kind::Tensor, 0,
                bytes.size(), 0, skeleton));
  return skeleton;
}

} // namespace ingot
