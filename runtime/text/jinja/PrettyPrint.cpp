// The filter pprint, which is Python's pprint.pformat: what fits into 80 columns
// stands on one line; lists, tuples, dicts (by ascending key) and strings that do
// not are laid out over several.
#include "runtime/text/jinja/TextFilters.h"

#include <algorithm>

namespace ingot::jinja {
namespace {

constexpr Int Width = 80;

Int columns(const Text &text) { return Int(countCodePoints(text.view())); }

class Printer {
public:
  explicit Printer(Runtime &rt) : rt_(rt) {}

  Text print(const Value &value) {
    format(value, 0, 0, 1);
    return std::move(out_);
  }

private:
  void write(std::string_view text) { out_.append(text, Origin::Template); }
  void newLine(Int indent) { write(",\n" + std::string(size_t(indent), ' ')); }

  // On one line, with dicts in order at every depth.
  Text repr(const Value &value) {
    Text out;
    appendSorted(out, value, 0);
    return out;
  }

  void appendSorted(Text &out, const Value &value, int depth) {
    rt_.step();
    if (depth > int(rt_.limits().depth))
      fail("pprint: a value is nested too deeply");
    if (auto *dict = value.dict()) {
      out.append("{", Origin::Template);
      bool first = true;
      for (size_t i : order(*dict)) {
        if (!first)
          out.append(", ", Origin::Template);
        first = false;
        appendSorted(out, dict->entries[i].first, depth + 1);
        out.append(": ", Origin::Template);
        appendSorted(out, dict->entries[i].second, depth + 1);
      }
      out.append("}", Origin::Template);
    } else if (isLaidOut(value) && !value.string()) {
      auto *sequence = value.sequence();
      bool tuple = sequence->kind == SequenceKind::Tuple;
      out.append(tuple ? "(" : "[", Origin::Template);
      for (size_t i = 0; i < sequence->items.size(); ++i) {
        if (i > 0)
          out.append(", ", Origin::Template);
        appendSorted(out, sequence->items[i], depth + 1);
      }
      if (tuple)
        out.append(sequence->items.size() == 1 ? ",)" : ")", Origin::Template);
      else
        out.append("]", Origin::Template);
    } else {
      appendRepr(rt_, out, value);
    }
    if (out.size() > rt_.limits().outputBytes)
      fail("pprint: the text exceeds the output limit");
  }

  static bool isLaidOut(const Value &value) {
    auto *sequence = value.sequence();
    if (auto *s = value.string())
      return !s->markup;
    return value.dict() ||
           (sequence && (sequence->kind == SequenceKind::List ||
                         sequence->kind == SequenceKind::Tuple));
  }

  // Keys that cannot be compared go by the names of their types.
  bool keyLess(const Value &a, const Value &b) {
    try {
      return less(rt_, a, b);
    } catch (const Failure &) {
      std::string left = "<class '" + typeName(a) + "'>";
      return left < "<class '" + typeName(b) + "'>";
    }
  }

  // The entries of a dict by ascending key; a sort by merging stays within
  // bounds whatever the comparison says.
  std::vector<size_t> order(const DictObject &dict) {
    std::vector<size_t> sorted(dict.entries.size());
    for (size_t i = 0; i < sorted.size(); ++i)
      sorted[i] = i;
    std::vector<size_t> other(sorted.size());
    for (size_t width = 1; width < sorted.size(); width *= 2) {
      for (size_t begin = 0; begin < sorted.size(); begin += 2 * width) {
        size_t middle = std::min(begin + width, sorted.size());
        size_t end = std::min(begin + 2 * width, sorted.size());
        size_t left = begin, right = middle;
        for (size_t to = begin; to < end; ++to) {
          rt_.step();
          bool takesRight =
              left == middle ||
              (right < end && keyLess(dict.entries[sorted[right]].first,
                                      dict.entries[sorted[left]].first));
          other[to] = sorted[takesRight ? right++ : left++];
        }
      }
      sorted.swap(other);
    }
    return sorted;
  }

  // `indent`: the column that the value begins at; `allowance`: how many columns
  // behind it are taken.
  void format(const Value &value, Int indent, Int allowance, int level) {
    Text line = repr(value);
    rt_.touch(line.size());
    if (columns(line) <= Width - indent - allowance || !isLaidOut(value)) {
      out_.append(line);
    } else if (auto *dict = value.dict()) {
      formatDict(*dict, indent, allowance + 1, level);
    } else if (auto *s = value.string()) {
      formatString(s->text, indent, allowance, level);
    } else {
      formatItems(*value.sequence(), indent, allowance, level);
    }
    if (out_.size() > rt_.limits().outputBytes)
      fail("pprint: the text exceeds the output limit");
  }

  void formatDict(const DictObject &dict, Int indent, Int allowance,
                  int level) {
    write("{");
    size_t left = dict.entries.size();
    for (size_t i : order(dict)) {
      const auto &[key, item] = dict.entries[i];
      Text name = repr(key);
      out_.append(name);
      write(": ");
      format(item, indent + 1 + columns(name) + 2, --left > 0 ? 1 : allowance,
             level + 1);
      if (left > 0)
        newLine(indent + 1);
    }
    write("}");
  }

  void formatItems(const SequenceObject &sequence, Int indent, Int allowance,
                   int level) {
    bool tuple = sequence.kind == SequenceKind::Tuple;
    std::string_view end = !tuple                       ? "]"
                           : sequence.items.size() == 1 ? ",)"
                                                        : ")";
    write(tuple ? "(" : "[");
    for (size_t i = 0; i < sequence.items.size(); ++i) {
      bool last = i + 1 == sequence.items.size();
      format(sequence.items[i], indent + 1,
             last ? allowance + Int(end.size()) : 1, level + 1);
      if (!last)
        newLine(indent + 1);
    }
    write(end);
  }

  Text quotedText(const Text &text) {
    Text out;
    appendRepr(rt_, out, rt_.string(text));
    return out;
  }

  // Runs of anything but blanks with the blanks behind them.
  static std::vector<Text> words(const Text &line) {
    std::vector<Text> parts;
    size_t begin = 0;
    bool inBlanks = false;
    for (size_t i = 0; i < line.size();) {
      size_t at = i;
      bool blank = isSpace(nextCodePoint(line.view(), i));
      if (inBlanks && !blank) {
        parts.push_back(line.slice(begin, at));
        begin = at;
      }
      inBlanks = blank;
    }
    if (begin < line.size())
      parts.push_back(line.slice(begin, line.size()));
    return parts;
  }

  // Literals one below the other, which Python joins.
  void formatString(const Text &text, Int indent, Int allowance, int level) {
    if (text.empty())
      return write("''");
    if (level == 1) {
      ++indent;
      ++allowance;
    }
    std::vector<Text> lines = splitLines(text, true), chunks;
    const Int width = Width - indent;
    for (size_t i = 0; i < lines.size(); ++i) {
      bool lastLine = i + 1 == lines.size();
      Text line = quotedText(lines[i]);
      if (columns(line) <= (lastLine ? width - allowance : width)) {
        chunks.push_back(std::move(line));
        continue;
      }
      std::vector<Text> parts = words(lines[i]);
      Text current;
      for (size_t j = 0; j < parts.size(); ++j) {
        Text candidate = current;
        candidate.append(parts[j]);
        bool last = lastLine && j + 1 == parts.size();
        rt_.touch(candidate.size());
        if (columns(quotedText(candidate)) >
            (last ? width - allowance : width)) {
          if (!current.empty())
            chunks.push_back(quotedText(current));
          current = parts[j];
        } else {
          current = std::move(candidate);
        }
      }
      if (!current.empty())
        chunks.push_back(quotedText(current));
    }
    if (chunks.size() == 1) {
      out_.append(chunks[0]);
      return;
    }
    if (level == 1)
      write("(");
    for (size_t i = 0; i < chunks.size(); ++i) {
      if (i > 0)
        write("\n" + std::string(size_t(std::max<Int>(indent, 0)), ' '));
      out_.append(chunks[i]);
    }
    if (level == 1)
      write(")");
  }

  Runtime &rt_;
  Text out_;
};

} // namespace

Value prettyPrint(Runtime &rt, const Value &value, const Arguments &arguments) {
  Bound bound("pprint", arguments, {});
  return rt.string(Printer(rt).print(value));
}

} // namespace ingot::jinja
