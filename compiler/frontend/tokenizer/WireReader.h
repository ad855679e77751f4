// Reads the wire format of protocol buffers, field by field, inside the bytes
// that it is given: the five messages of a SentencePiece model need no generated
// code and no library.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace ingot {

class WireReader {
public:
  // `name` of the message, for errors.
  WireReader(std::string_view bytes, std::string name)
      : bytes_(bytes), name_(std::move(name)) {}

  enum class Kind { Varint, Fixed64, Bytes, Fixed32 };
  struct Field {
    uint32_t number;
    Kind kind;
    uint64_t integer = 0;  // Varint, Fixed64, Fixed32
    std::string_view text; // Bytes
  };

  bool atEnd() const { return at_ == bytes_.size(); }
  Result<Field> next(); // not at the end

  // The value of a field of the kind that its meaning asks for.
  Result<std::string_view> text(const Field &field) const;
  Result<int32_t> integer(const Field &field) const;
  Result<bool> boolean(const Field &field) const;
  Result<float> number(const Field &field) const;

  const std::string &name() const { return name_; }
  Status invalid(const std::string &what) const {
    return Status::invalid(name_ + ": " + what);
  }

private:
  Result<uint64_t> varint();
  Status wrongKind(const Field &field, const char *expected) const;

  std::string_view bytes_;
  size_t at_ = 0;
  std::string name_;
};

} // namespace ingot
