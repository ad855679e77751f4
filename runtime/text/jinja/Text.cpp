// See Text.h.
#include "runtime/text/jinja/Text.h"

#include <algorithm>

namespace ingot::jinja {

Text::Text(std::string bytes, Origin origin) : bytes_(std::move(bytes)) {
  if (origin == Origin::User && !bytes_.empty())
    user_.push_back({0, bytes_.size()});
}

void Text::addUser(size_t begin, size_t end) {
  if (begin == end)
    return;
  if (!user_.empty() && user_.back().end == begin)
    user_.back().end = end;
  else
    user_.push_back({begin, end});
}

void Text::append(std::string_view bytes, Origin origin) {
  if (origin == Origin::User)
    addUser(bytes_.size(), bytes_.size() + bytes.size());
  bytes_.append(bytes);
}

// The first range that ends after `byte`.
static std::vector<ByteRange>::const_iterator
rangeAfter(const std::vector<ByteRange> &ranges, size_t byte) {
  return std::upper_bound(
      ranges.begin(), ranges.end(), byte,
      [](size_t b, const ByteRange &range) { return b < range.end; });
}

void Text::append(const Text &other, size_t begin, size_t end) {
  if (begin >= end)
    return;
  size_t base = bytes_.size();
  // `other` may be this very text: sizes first, then the ranges by index.
  size_t index = rangeAfter(other.user_, begin) - other.user_.begin();
  size_t count = other.user_.size();
  for (; index < count && other.user_[index].begin < end; ++index) {
    ByteRange range = other.user_[index];
    addUser(base + std::max(range.begin, begin) - begin,
            base + std::min(range.end, end) - begin);
  }
  bytes_.append(other.bytes_, begin, end - begin);
}

Text Text::slice(size_t begin, size_t end) const {
  Text out;
  out.append(*this, begin, end);
  return out;
}

Origin Text::originAt(size_t byte) const {
  auto it = rangeAfter(user_, byte);
  return it != user_.end() && it->begin <= byte ? Origin::User
                                                : Origin::Template;
}

} // namespace ingot::jinja
