#include "compiler/frontend/tokenizer/WireReader.h"

#include <cstring>

namespace ingot {

Result<uint64_t> WireReader::varint() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (atEnd())
      return invalid("ends within a number at byte " + std::to_string(at_));
    auto byte = static_cast<uint8_t>(bytes_[at_++]);
    value |= uint64_t(byte & 0x7F) << shift;
    if (byte < 0x80)
      return value;
  }
  return invalid("a number of more than ten bytes before byte " +
                 std::to_string(at_));
}

Result<WireReader::Field> WireReader::next() {
  size_t start = at_;
  INGOT_ASSIGN_OR_RETURN(uint64_t key, varint());
  Field field{};
  if (key >> 3 == 0 || key >> 3 > (1u << 29) - 1)
    return invalid("field number " + std::to_string(key >> 3) + " at byte " +
                   std::to_string(start));
  field.number = static_cast<uint32_t>(key >> 3);
  size_t left = bytes_.size() - at_;
  auto fixed = [&](Kind kind, size_t size) -> Result<Field> {
    if (left < size)
      return invalid("ends within field " + std::to_string(field.number));
    field.kind = kind;
    std::memcpy(&field.integer, bytes_.data() + at_, size);
    at_ += size;
    return field;
  };
  switch (key & 7) {
  case 0: {
    field.kind = Kind::Varint;
    INGOT_ASSIGN_OR_RETURN(field.integer, varint());
    return field;
  }
  case 1:
    return fixed(Kind::Fixed64, 8);
  case 2: {
    INGOT_ASSIGN_OR_RETURN(uint64_t size, varint());
    left = bytes_.size() - at_;
    if (size > left)
      return invalid("field " + std::to_string(field.number) + " of " +
                     std::to_string(size) + " bytes, of which " +
                     std::to_string(left) + " are there");
    field.kind = Kind::Bytes;
    field.text = bytes_.substr(at_, static_cast<size_t>(size));
    at_ += static_cast<size_t>(size);
    return field;
  }
  case 5:
    return fixed(Kind::Fixed32, 4);
  default:
    return invalid("wire type " + std::to_string(key & 7) + " at byte " +
                   std::to_string(start));
  }
}

Status WireReader::wrongKind(const Field &field, const char *expected) const {
  return invalid("field " + std::to_string(field.number) + ": expected " +
                 expected);
}

Result<std::string_view> WireReader::text(const Field &field) const {
  if (field.kind != Kind::Bytes)
    return wrongKind(field, "a string");
  return field.text;
}

Result<int32_t> WireReader::integer(const Field &field) const {
  if (field.kind != Kind::Varint)
    return wrongKind(field, "an integer");
  return static_cast<int32_t>(static_cast<uint32_t>(field.integer));
}

Result<bool> WireReader::boolean(const Field &field) const {
  if (field.kind != Kind::Varint)
    return wrongKind(field, "true or false");
  return field.integer != 0;
}

Result<float> WireReader::number(const Field &field) const {
  if (field.kind != Kind::Fixed32)
    return wrongKind(field, "a number");
  auto bits = static_cast<uint32_t>(field.integer);
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

} // namespace ingot
