#include "compiler/debug/ModuleLines.h"

#include "compiler/debug/Recording.h"
#include "dialects/lm/LmOps.h"
#include "dialects/plan/Plan.h"

#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <set>

using namespace mlir;

namespace ingot::debug {
namespace {

// "layer.12.q" reads "layer.N.q" in the lines of layer 12, and what it takes from
// the layer before reads "layer.N-1.down".
std::string withoutNumber(const std::string &line, std::int64_t layer) {
  auto replace = [](llvm::StringRef text, std::int64_t number,
                    llvm::StringRef other) {
    std::string from = "layer." + std::to_string(number) + ".";
    std::string result;
    while (true) {
      auto [head, rest] = text.split(from);
      result += head;
      if (head.size() == text.size())
        return result;
      result += other;
      text = rest;
    }
  };
  if (layer < 0)
    return line;
  std::string result = replace(line, layer, "layer.N.");
  // Tensors have the number behind a word of their family's own.
  for (const char *word : {"layers.", "blk.", "h."}) {
    std::string number = word + std::to_string(layer) + ".";
    for (std::size_t at = 0;
         (at = result.find(number, at)) != std::string::npos;)
      result.replace(at, number.size(), std::string(word) + "N.");
  }
  return layer == 0 ? result : replace(result, layer - 1, "layer.N-1.");
}

std::string nameOf(Value value) {
  if (auto result = dyn_cast<OpResult>(value)) {
    Operation *op = result.getOwner();
    std::string name = lm::locationName(op->getLoc()).str();
    if (name.empty())
      name = op->getName().getStringRef().str();
    return op->getNumResults() == 1
               ? name
               : name + ":" + std::to_string(result.getResultNumber());
  }
  llvm::StringRef name = lm::locationName(value.getLoc());
  return name.empty() ? "argument" : name.str();
}

class Writer {
public:
  std::map<std::int64_t, std::vector<std::string>> take() {
    return std::move(lines_);
  }

  void write(Operation &op, const std::string &indent) {
    std::string line = indent;
    llvm::raw_string_ostream out(line);
    std::string name = SymbolTable::getSymbolName(&op)
                           ? SymbolTable::getSymbolName(&op).str()
                           : std::string();
    llvm::StringRef own = lm::locationName(op.getLoc());
    std::int64_t layer = layerOf(name.empty() ? own : llvm::StringRef(name));
    out << op.getName().getStringRef();
    if (!name.empty())
      out << " @" << name;
    else if (!own.empty())
      out << " " << own;
    if (op.getNumOperands() > 0) {
      out << " (";
      llvm::interleaveComma(op.getOperands(), out,
                            [&](Value value) { out << nameOf(value); });
      out << ")";
    }
    writeAttributes(op, layer, out);
    if (op.getNumResults() > 0) {
      out << " : ";
      llvm::interleaveComma(op.getResultTypes(), out);
    }
    lines_[layer].push_back(withoutNumber(line, layer));
    for (Region &region : op.getRegions())
      for (Block &block : region)
        for (Operation &inner : block)
          write(inner, indent + "  ");
  }

private:
  static void writeAttributes(Operation &op, std::int64_t layer,
                              llvm::raw_ostream &out) {
    const char *separator = " {";
    for (NamedAttribute attribute : op.getAttrs()) {
      llvm::StringRef key = attribute.getName().getValue();
      if (key == SymbolTable::getSymbolAttrName() ||
          key.ends_with("SegmentSizes"))
        continue;
      out << separator << key << " = ";
      auto number = dyn_cast<IntegerAttr>(attribute.getValue());
      if (key == "state_layer" && number && number.getInt() == layer)
        out << "N";
      else
        writeAttribute(attribute.getValue(), out);
      separator = ", ";
    }
    if (separator[0] == ',')
      out << "}";
  }

  // Parts of a weight by their names, lists of numbers by their length.
  static void writeAttribute(Attribute value, llvm::raw_ostream &out) {
    if (auto part = dyn_cast<lm::PartAttr>(value)) {
      out << part.getName().getValue();
    } else if (auto part = dyn_cast<plan::PartAttr>(value)) {
      out << part.getName().getValue();
    } else if (auto list = dyn_cast<ArrayAttr>(value)) {
      out << "[";
      llvm::interleaveComma(list, out,
                            [&](Attribute one) { writeAttribute(one, out); });
      out << "]";
    } else if (auto numbers = dyn_cast<ElementsAttr>(value);
               numbers && numbers.getNumElements() > 4) {
      out << numbers.getNumElements() << " numbers";
    } else {
      value.print(out, /*elideType=*/true);
    }
  }

  std::map<std::int64_t, std::vector<std::string>> lines_;
};

} // namespace

std::map<std::int64_t, std::vector<std::string>> linesByLayer(ModuleOp module) {
  Writer writer;
  for (Operation &op : *module.getBody())
    writer.write(op, "");
  return writer.take();
}

std::string lineDiff(const std::vector<std::string> &before,
                     const std::vector<std::string> &after) {
  constexpr std::size_t kContext = 3;
  // The longest common subsequence, from the ends.
  std::size_t rows = before.size(), columns = after.size();
  std::vector<std::vector<std::uint32_t>> common(
      rows + 1, std::vector<std::uint32_t>(columns + 1));
  for (std::size_t i = rows; i-- > 0;)
    for (std::size_t j = columns; j-- > 0;)
      common[i][j] = before[i] == after[j]
                         ? common[i + 1][j + 1] + 1
                         : std::max(common[i + 1][j], common[i][j + 1]);
  std::vector<std::pair<char, std::string>> edits;
  std::size_t i = 0, j = 0;
  while (i < rows || j < columns) {
    if (i < rows && j < columns && before[i] == after[j]) {
      edits.emplace_back(' ', before[i]);
      ++i;
      ++j;
    } else if (i < rows &&
               (j == columns || common[i + 1][j] >= common[i][j + 1])) {
      edits.emplace_back('-', before[i++]);
    } else {
      edits.emplace_back('+', after[j++]);
    }
  }
  std::string text;
  std::size_t skipped = 0;
  for (std::size_t at = 0; at < edits.size(); ++at) {
    std::size_t first = at > kContext ? at - kContext : 0;
    std::size_t last = std::min(edits.size(), at + kContext + 1);
    bool isNear =
        std::any_of(edits.begin() + std::ptrdiff_t(first),
                    edits.begin() + std::ptrdiff_t(last),
                    [](const auto &edit) { return edit.first != ' '; });
    if (!isNear) {
      ++skipped;
      continue;
    }
    if (skipped > 0)
      text += "  ... " + std::to_string(skipped) + " lines alike\n";
    skipped = 0;
    text += std::string(1, edits[at].first) + " " + edits[at].second + "\n";
  }
  if (skipped > 0)
    text += "  ... " + std::to_string(skipped) + " lines alike\n";
  return text;
}

} // namespace ingot::debug
