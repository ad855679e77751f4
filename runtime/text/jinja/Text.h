// A string that remembers where each of its bytes came from. Everything the
// caller passes in (messages, tools, documents, arguments) is User; what the
// template itself writes is Template. Filters and methods build their results
// from pieces of Texts, so the origin survives them, and the tokenizer can
// refuse to see control tokens in what a user wrote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::jinja {

enum class Origin : uint8_t { Template, User };

// Half-open: [begin, end), in bytes.
struct ByteRange {
  size_t begin = 0;
  size_t end = 0;
  bool operator==(const ByteRange &) const = default;
};

class Text {
public:
  Text() = default;
  Text(std::string bytes, Origin origin);

  const std::string &str() const { return bytes_; }
  std::string_view view() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // Sorted, not empty, not touching one another.
  const std::vector<ByteRange> &userRanges() const { return user_; }

  void append(std::string_view bytes, Origin origin);
  void append(const Text &other) { append(other, 0, other.size()); }
  // Appends the bytes [begin, end) of `other` with their origins.
  void append(const Text &other, size_t begin, size_t end);
  Text slice(size_t begin, size_t end) const;
  Origin originAt(size_t byte) const;

private:
  void addUser(size_t begin, size_t end);

  std::string bytes_;
  std::vector<ByteRange> user_;
};

} // namespace ingot::jinja
