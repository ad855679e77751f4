// The ONNX back-end cases of the shared data: none fails, and what is refused is
// refused by node, operator and opset.
#include "compiler/codegen/graph/NodeTest.h"
#include "test/compiler/frontend/TempFolder.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <filesystem>
#include <map>

namespace ingot {
namespace {

TEST(NodeTests, NoneFails) {
  namespace fs = std::filesystem;
  const std::string archive =
      std::string(INGOT_SHARED_DIR) + "/data/onnx/node_tests.tar.xz";
  if (!fs::exists(archive))
    GTEST_SKIP() << archive << " is absent";
  testing::TempFolder folder;
  const std::string command =
      "tar xf '" + archive + "' -C '" + folder.path() + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  int passed = 0, refused = 0;
  for (const auto &entry : fs::directory_iterator(folder.file("node"))) {
    graph::NodeTestResult result = graph::runNodeTest(entry.path().string());
    const std::string name = entry.path().filename().string();
    switch (result.outcome) {
    case graph::NodeTestOutcome::Passed:
      ++passed;
      break;
    case graph::NodeTestOutcome::Refused:
      ++refused;
      EXPECT_NE(result.reason.find("node "), std::string::npos)
          << name << ": " << result.reason;
      EXPECT_NE(result.reason.find(" opset "), std::string::npos)
          << name << ": " << result.reason;
      break;
    case graph::NodeTestOutcome::Failed:
      ADD_FAILURE() << name << ": " << result.reason;
    }
  }
  EXPECT_EQ(passed + refused, 1036);
  EXPECT_GE(passed, 670);
  RecordProperty("passed", passed);
}

// com.microsoft's operators one by one, against onnxruntime
// (make_contrib_goldens.py). What is not supported is refused, and nothing else.
TEST(NodeTests, ContribOperatorsAreAsOnnxruntime) {
  namespace fs = std::filesystem;
  const std::map<std::string, std::string> refused = {
      {"group-query-sink", "smooth_softmax and head_sink are not supported"},
      {"group-query-smooth", "smooth_softmax and head_sink are not supported"},
      {"matmul-2", "codes of 2 bits, expected 4 or 8"}};
  int passed = 0;
  std::size_t left = refused.size();
  for (const auto &entry :
       fs::directory_iterator(std::string(INGOT_SOURCE_DIR) +
                              "/test/compiler/codegen/graph/contrib")) {
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    graph::NodeTestResult result = graph::runNodeTest(entry.path().string());
    if (auto found = refused.find(name); found != refused.end()) {
      EXPECT_EQ(result.outcome, graph::NodeTestOutcome::Refused);
      EXPECT_NE(result.reason.find(found->second), std::string::npos)
          << result.reason;
      --left;
      continue;
    }
    EXPECT_EQ(result.outcome, graph::NodeTestOutcome::Passed) << result.reason;
    ++passed;
  }
  EXPECT_EQ(left, 0u);
  EXPECT_EQ(passed, 48);
}

// A decoder whose operators are com.microsoft's, against onnxruntime
// (make_gpt2_golden.py).
TEST(NodeTests, Gpt2IsAsOnnxruntime) {
  namespace fs = std::filesystem;
  const std::string model = std::string(INGOT_SHARED_DIR) +
                            "/data/onnx/tiny-random-gpt2-fp32/past.onnx";
  if (!fs::exists(model))
    GTEST_SKIP() << model << " is absent";
  testing::TempFolder folder;
  fs::copy_file(model, folder.file("model.onnx"));
  fs::copy(std::string(INGOT_SOURCE_DIR) + "/test/compiler/codegen/graph/gpt2",
           folder.file("test_data_set_0"));
  graph::NodeTestResult result = graph::runNodeTest(folder.path());
  EXPECT_EQ(result.outcome, graph::NodeTestOutcome::Passed) << result.reason;
}

} // namespace
} // namespace ingot
