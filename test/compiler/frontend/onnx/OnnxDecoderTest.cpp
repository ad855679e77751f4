// One model as a folder and as its ONNX exports (test/models/export_onnx.py, which
// share its weights): one spec, the same bytes of the same file, one lm module.
#include "compiler/frontend/ImportModel.h"
#include "compiler/frontend/lm/LmBuilder.h"

#include "mlir/IR/MLIRContext.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <regex>

namespace ingot {
namespace {

using ::testing::HasSubstr;

const std::string kFolder =
    std::string(INGOT_SOURCE_DIR) + "/test/models/target";

// The module without what differs by the way in: the sources, the description of
// the whole model, and the names that an exporter gave to tensors.
std::string moduleText(const ModelSpec &spec) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  LmBuildOptions options;
  options.hashSources = false;
  auto module = buildLm(context, spec, options);
  EXPECT_TRUE(mlir::succeeded(module));
  std::string text, kept;
  llvm::raw_string_ostream(text) << **module;
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(text).split(lines, '\n');
  for (llvm::StringRef line : lines)
    if (!line.contains("lm.source") && !line.starts_with("module"))
      kept += line.str() + "\n";
  kept = std::regex_replace(kept, std::regex("source = @src[0-9]+"), "");
  return std::regex_replace(kept, std::regex("name = \"[^\"]*\""), "");
}

class Exports : public ::testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Forms, Exports,
                         ::testing::Values("attention", "gqa", "decomposed"));

TEST_P(Exports, GiveTheModuleOfTheFolder) {
  std::vector<std::string> said;
  ImportOptions options;
  options.explainFusion = [&](const std::string &line) {
    said.push_back(line);
  };
  auto exported = importModel(kFolder + "/" + GetParam() + ".onnx", options);
  ASSERT_TRUE(exported.isOk()) << exported.status().message() << "\n"
                               << ::testing::PrintToString(said);
  auto folder = importModel(kFolder);
  ASSERT_TRUE(folder.isOk()) << folder.status().message();
  EXPECT_EQ(exported->vocabSize, folder->vocabSize);
  EXPECT_EQ(exported->hiddenSize, folder->hiddenSize);
  EXPECT_EQ(exported->contextLength, folder->contextLength);
  EXPECT_EQ(exported->tiedHead, folder->tiedHead);
  EXPECT_EQ(exported->eosIds, folder->eosIds);
  EXPECT_EQ(static_cast<float>(exported->normEps),
            static_cast<float>(folder->normEps));
  ASSERT_EQ(exported->layers.size(), folder->layers.size());
  for (std::size_t i = 0; i < folder->layers.size(); ++i) {
    const LayerSpec &a = exported->layers[i], &b = folder->layers[i];
    EXPECT_EQ(a.rotary, b.rotary) << i;
    EXPECT_EQ(a.biases, b.biases) << i;
    EXPECT_EQ(static_cast<float>(a.softmaxScale),
              static_cast<float>(b.softmaxScale))
        << i;
  }
  ASSERT_EQ(exported->parameters.size(), folder->parameters.size());
  for (const auto &[role, source] : folder->parameters) {
    auto found = exported->parameters.find(role);
    ASSERT_NE(found, exported->parameters.end()) << role;
    EXPECT_EQ(found->second.byteOffset, source.byteOffset) << role;
    EXPECT_EQ(found->second.sizeBytes, source.sizeBytes) << role;
  }
  EXPECT_EQ(moduleText(*exported), moduleText(*folder));
  EXPECT_FALSE(said.empty());
}

TEST(OnnxDecoder, OnlyOnnxExplainsItsFusions) {
  ImportOptions options;
  options.explainFusion = [](const std::string &) {};
  auto folder = importModel(kFolder, options);
  ASSERT_FALSE(folder.isOk());
  EXPECT_THAT(folder.status().message(), HasSubstr("--explain-fusion is for"));
}

} // namespace
} // namespace ingot
