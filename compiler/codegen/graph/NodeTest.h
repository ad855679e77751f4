// One case of a folder that is laid out like the ONNX back-end test suite.
#pragma once

#include <string>

namespace ingot::graph {

enum class NodeTestOutcome { Passed, Failed, Refused };

struct NodeTestResult {
  NodeTestOutcome outcome = NodeTestOutcome::Failed;
  // Why it failed or was refused; a refusal names node, operator and opset.
  std::string reason;
};

// Reads `folder`/model.onnx and runs it on every test_data_set_N, input_M.pb
// and output_M.pb by the order of the graph's inputs and outputs. Refused is a
// model that asks for what is not supported; whatever else is not right, and a
// folder that cannot be read, is failed.
NodeTestResult runNodeTest(const std::string &folder);

} // namespace ingot::graph
