// docs/onnx.md lists what the dialect has: every operator with its versions, no
// other, and each can be inferred and lowered.
#include "compiler/codegen/graph/Lowering.h"
#include "dialects/onnx/OnnxDialect.h"

#include "gtest/gtest.h"

#include <fstream>
#include <map>

namespace ingot {
namespace {

TEST(OperatorList, DocumentsWhatIsThere) {
  std::ifstream file(std::string(INGOT_SOURCE_DIR) + "/docs/onnx.md");
  std::map<std::string, std::string> listed;
  bool inList = false;
  for (std::string line; std::getline(file, line);) {
    inList |= line == "## Operators";
    llvm::SmallVector<llvm::StringRef> cells;
    llvm::StringRef(line).split(cells, " | ");
    if (!inList || cells.size() < 3 || !cells[0].consume_front("| ") ||
        cells[0] == "operator")
      continue;
    EXPECT_TRUE(listed.emplace(cells[0].str(), cells[1].str()).second) << line;
  }
  std::map<std::string, std::string> present;
  for (llvm::StringRef name : onnx::operatorNames()) {
    const onnx::OperatorInfo &info = *onnx::findOperator(name);
    if (info.versions.empty())
      continue; // of the dialect's own
    std::string versions;
    for (std::int64_t version : info.versions)
      versions += (versions.empty() ? "" : ", ") + std::to_string(version);
    present[name.str() +
            (info.domain.empty() ? "" : " (" + info.domain.str() + ")")] =
        versions;
  }
  EXPECT_EQ(listed, present);
  EXPECT_GE(present.size(), 80u);
}

TEST(OperatorList, EveryOperatorHasALowering) {
  // Views and branches are part of the graph's lowering itself.
  for (llvm::StringRef name : onnx::operatorNames())
    if (!llvm::is_contained({"Constant", "Weight", "None", "If", "Identity",
                             "Reshape", "Squeeze", "Unsqueeze", "Flatten"},
                            name))
      EXPECT_TRUE(graph::findLowering(name)) << name.str();
}

} // namespace
} // namespace ingot
