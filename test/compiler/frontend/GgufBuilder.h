// Writes GGUF bytes piece by piece, so that a test can write a wrong piece.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace ingot::testing {

// Little-endian bytes, appended one value at a time.
class ByteWriter {
public:
  template <typename T> ByteWriter &put(T value) {
    const auto *raw = reinterpret_cast<const std::uint8_t *>(&value);
    bytes.insert(bytes.end(), raw, raw + sizeof value);
    return *this;
  }
  ByteWriter &text(const std::string &value) {
    put<std::uint64_t>(value.size());
    bytes.insert(bytes.end(), value.begin(), value.end());
    return *this;
  }
  ByteWriter &append(const std::vector<std::uint8_t> &more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return *this;
  }

  std::vector<std::uint8_t> bytes;
};

class GgufBuilder {
public:
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;

  void u32(const std::string &key, std::uint32_t value) {
    ++count_;
    metadata_.text(key).put<std::uint32_t>(4).put(value);
  }
  void f32(const std::string &key, float value) {
    ++count_;
    metadata_.text(key).put<std::uint32_t>(6).put(value);
  }
  void boolean(const std::string &key, std::uint8_t value) {
    ++count_;
    metadata_.text(key).put<std::uint32_t>(7).put(value);
  }
  void text(const std::string &key, const std::string &value) {
    ++count_;
    metadata_.text(key).put<std::uint32_t>(8).text(value);
  }
  void texts(const std::string &key, const std::vector<std::string> &values) {
    ++count_;
    metadata_.text(key).put<std::uint32_t>(9).put<std::uint32_t>(8);
    metadata_.put<std::uint64_t>(values.size());
    for (const std::string &value : values)
      metadata_.text(value);
  }
  template <typename T>
  void array(const std::string &key, std::uint32_t type,
             const std::vector<T> &values) {
    ++count_;
    metadata_.text(key).put<std::uint32_t>(9).put(type);
    metadata_.put<std::uint64_t>(values.size());
    for (T value : values)
      metadata_.put(value);
  }
  // The key, the value type and the bytes of the value as they are.
  void raw(const std::string &key, std::uint32_t type,
           const std::vector<std::uint8_t> &value) {
    ++count_;
    metadata_.text(key).put(type).append(value);
  }

  // `dims` fastest first, as the format has them.
  void tensor(const std::string &name, const std::vector<std::uint64_t> &dims,
              std::uint32_t type, const std::vector<std::uint8_t> &data) {
    tensorAt(name, dims, type, data_.bytes.size());
    data_.append(data);
    while (data_.bytes.size() % alignment)
      data_.put<std::uint8_t>(0);
  }
  // A tensor info alone, wherever it points.
  void tensorAt(const std::string &name, const std::vector<std::uint64_t> &dims,
                std::uint32_t type, std::uint64_t offset) {
    ++tensors_;
    infos_.text(name).put<std::uint32_t>(dims.size());
    for (std::uint64_t dim : dims)
      infos_.put(dim);
    infos_.put(type).put(offset);
  }

  std::vector<std::uint8_t> bytes() const {
    ByteWriter out;
    out.append({'G', 'G', 'U', 'F'}).put(version);
    out.put<std::uint64_t>(tensors_).put<std::uint64_t>(count_);
    out.append(metadata_.bytes).append(infos_.bytes);
    if (tensors_ > 0)
      while (out.bytes.size() % alignment)
        out.put<std::uint8_t>(0);
    return out.append(data_.bytes).bytes;
  }

private:
  ByteWriter metadata_, infos_, data_;
  std::uint64_t count_ = 0, tensors_ = 0;
};

} // namespace ingot::testing
