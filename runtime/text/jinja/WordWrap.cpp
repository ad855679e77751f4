// The filter wordwrap, which is Python's textwrap.wrap of each line of a text:
//   1. split the line into words, pieces of hyphenated words and blanks,
//   2. fill lines with them, breaking what is longer than a line,
//   3. drop blanks at the ends of lines.
#include "runtime/text/jinja/TextFilters.h"

#include <algorithm>

namespace ingot::jinja {
namespace {

// textwrap.TextWrapper.wordsep_re; its blanks are those of ASCII.
constexpr const char *WordSeparator =
    R"([\t\n\x0b\x0c\r ]+)"
    R"(|(?<=[\w!"'&.,?])-{2,}(?=\w))"
    R"(|[^\t\n\x0b\x0c\r ]+?(?:)"
    R"(-(?:(?<=[^\d\W]{2}-)|(?<=[^\d\W]-[\w!"'&.,?]-))(?=[^\d\W]-?[^\d\W]))"
    R"(|(?=[\t\n\x0b\x0c\r ]|\z))"
    R"(|(?<=[\w!"'&.,?])(?=-{2,}\w)))";
constexpr const char *Blanks = R"([\t\n\x0b\x0c\r ]+)";

struct Wrapping {
  Int width = 79;
  bool breaksWords = true;
  bool breaksHyphens = true;
};

struct Chunk {
  Text text;
  Int length = 0; // in characters
};

Chunk chunkOf(Text text) {
  Int length = Int(countCodePoints(text.view()));
  return {std::move(text), length};
}

bool isBlank(const Chunk &chunk) {
  return strip(chunk.text, nullptr, true, true).empty();
}

// Matches and what stands between them, last first.
std::vector<Chunk> splitChunks(Runtime &rt, const Text &line,
                               const Wrapping &wrapping) {
  std::vector<Chunk> chunks;
  size_t at = 0;
  auto add = [&](size_t begin, size_t end) {
    if (end > begin)
      chunks.push_back(chunkOf(line.slice(begin, end)));
  };
  for (ByteRange match : findAll(
           rt, wrapping.breaksHyphens ? WordSeparator : Blanks, line.view())) {
    add(at, match.begin);
    add(match.begin, match.end);
    at = match.end;
  }
  add(at, line.size());
  std::reverse(chunks.begin(), chunks.end());
  return chunks;
}

// The first characters of a chunk that is too long go onto the line.
void breakChunk(std::vector<Chunk> &chunks, std::vector<Chunk> &line,
                Int length, const Wrapping &wrapping) {
  Int left = wrapping.width < 1 ? 1 : wrapping.width - length;
  if (!wrapping.breaksWords) {
    if (line.empty()) {
      line.push_back(std::move(chunks.back()));
      chunks.pop_back();
    }
    return;
  }
  const Chunk &chunk = chunks.back();
  std::string_view text = chunk.text.view();
  size_t end = byteOffset(text, size_t(left));
  if (wrapping.breaksHyphens && chunk.length > left) {
    size_t hyphen = text.substr(0, end).rfind('-');
    if (hyphen != std::string_view::npos && hyphen > 0 &&
        text.substr(0, hyphen).find_first_not_of('-') != std::string_view::npos)
      end = hyphen + 1;
  }
  Chunk rest = chunkOf(chunk.text.slice(end, text.size()));
  line.push_back(chunkOf(chunk.text.slice(0, end)));
  chunks.back() = std::move(rest);
}

std::vector<Text> wrapLine(Runtime &rt, const Text &text,
                           const Wrapping &wrapping) {
  if (wrapping.width <= 0)
    fail("invalid width " + intText(wrapping.width) + " (must be > 0)");
  std::vector<Chunk> chunks = splitChunks(rt, text, wrapping);
  std::vector<Text> lines;
  while (!chunks.empty()) {
    rt.step();
    std::vector<Chunk> line;
    Int length = 0;
    if (!lines.empty() && isBlank(chunks.back()))
      chunks.pop_back();
    while (!chunks.empty() && length + chunks.back().length <= wrapping.width) {
      length += chunks.back().length;
      line.push_back(std::move(chunks.back()));
      chunks.pop_back();
    }
    if (!chunks.empty() && chunks.back().length > wrapping.width) {
      rt.touch(chunks.back().text.size());
      breakChunk(chunks, line, length, wrapping);
    }
    if (!line.empty() && isBlank(line.back()))
      line.pop_back();
    if (line.empty())
      continue;
    Text joined;
    for (const Chunk &chunk : line)
      joined.append(chunk.text);
    lines.push_back(std::move(joined));
  }
  return lines;
}

} // namespace

Value wordWrap(Runtime &rt, const Value &value, const Arguments &arguments) {
  Bound bound("wordwrap", arguments,
              {"width", "break_long_words", "wrapstring", "break_on_hyphens"});
  if (value.isUndefined())
    failUndefined(value);
  auto *s = value.string();
  if (!s)
    fail("wordwrap expects a string, not " + typeName(value));
  Wrapping wrapping;
  wrapping.width = bound.integer(0, 79);
  wrapping.breaksWords = bound.flag(1, true);
  wrapping.breaksHyphens = bound.flag(3, true);
  Text separator("\n", Origin::Template);
  if (bound.has(2) && !bound[2].isNone())
    separator = bound.text(2);

  Text out;
  bool first = true;
  for (const Text &paragraph : splitLines(s->text, false)) {
    if (!first)
      out.append(separator);
    first = false;
    bool firstLine = true;
    for (const Text &line : wrapLine(rt, paragraph, wrapping)) {
      if (!firstLine)
        out.append(separator);
      firstLine = false;
      out.append(line);
      rt.touch(separator.size() + line.size());
      if (out.size() > rt.limits().outputBytes)
        fail("a wrapped string exceeds the output limit");
    }
  }
  return rt.string(std::move(out));
}

} // namespace ingot::jinja
