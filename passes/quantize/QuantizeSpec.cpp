#include "passes/quantize/QuantizeSpec.h"

#include <algorithm>
#include <vector>

namespace ingot {
namespace {

std::vector<std::string> wordsOf(const std::string &text) {
  std::vector<std::string> words;
  std::size_t begin = 0;
  for (std::size_t end = text.find('-'); end != std::string::npos;
       end = text.find('-', begin)) {
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  words.push_back(text.substr(begin));
  return words;
}

} // namespace

std::string QuantizeSpec::text() const {
  return isInteger() ? encoding + "-g" + std::to_string(group) + "-" + method
                     : encoding;
}

Result<QuantizeSpec> parseQuantizeSpec(const std::string &text) {
  std::vector<std::string> words = wordsOf(text);
  QuantizeSpec spec;
  spec.encoding = words.front();
  if (!spec.isInteger() && spec.encoding != "f32" && spec.encoding != "f16" &&
      spec.encoding != "bf16" && spec.encoding != "none")
    return Status::invalid("expected int8, int4, f32, f16, bf16 or none");
  std::size_t next = 1;
  if (spec.isInteger() && next < words.size() &&
      words[next].substr(0, 1) == "g" && words[next] != "gptq") {
    if (words[next] != "g32" && words[next] != "g64" && words[next] != "g128")
      return Status::invalid("the group must be g32, g64 or g128");
    spec.group = std::stoll(words[next++].substr(1));
  }
  if (spec.isInteger() && next < words.size() &&
      (words[next] == "rtn" || words[next] == "gptq" || words[next] == "awq"))
    spec.method = words[next++];
  if (next < words.size())
    return Status::invalid("unexpected \"" + words[next] + "\"");
  return spec;
}

} // namespace ingot
