#include "compiler/codegen/graph/NodeTest.h"

#include "compiler/codegen/graph/CompareTensors.h"
#include "compiler/codegen/graph/RunGraph.h"
#include "compiler/frontend/onnx/OnnxImporter.h"

#include "mlir/IR/MLIRContext.h"

#include <filesystem>

namespace ingot::graph {
namespace {

namespace fs = std::filesystem;

// A refusal says which node it is about; where it is about an input, the first.
std::string withNode(const std::string &message, const OnnxFile &file) {
  const auto &graph = file.model().graph();
  if (message.find("node ") != std::string::npos || graph.node().empty())
    return message;
  const auto &node = graph.node(0);
  std::string domain = node.domain().empty() ? "ai.onnx" : node.domain();
  std::int64_t version = 0;
  for (const auto &opset : file.model().opset_import())
    if (opset.domain() == node.domain() ||
        (domain == "ai.onnx" && opset.domain() == "ai.onnx"))
      version = opset.version();
  return message + "; node " +
         (node.name().empty() ? "0" : "\"" + node.name() + "\"") + " (" +
         node.op_type() + ", " + domain + " opset " + std::to_string(version) +
         ")";
}

Result<std::vector<std::optional<OnnxTensor>>>
readTensors(const std::string &folder, const char *what, int count) {
  std::vector<std::optional<OnnxTensor>> tensors;
  for (int i = 0; i < count; ++i) {
    std::string path = folder + "/" + what + "_" + std::to_string(i) + ".pb";
    if (!fs::exists(path)) {
      tensors.push_back(std::nullopt);
      continue;
    }
    INGOT_ASSIGN_OR_RETURN(OnnxTensor tensor, OnnxFile::openTensor(path));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

NodeTestResult failedWith(const std::string &reason) {
  return {NodeTestOutcome::Failed, reason};
}

NodeTestResult runDataSet(mlir::ModuleOp module, const OnnxFile &file,
                          const std::string &folder) {
  const auto &graph = file.model().graph();
  auto inputs = readTensors(folder, "input", graph.input_size());
  auto expected = readTensors(folder, "output", graph.output_size());
  for (const auto *list : {&inputs, &expected})
    if (!*list) {
      if (list->status().code() == StatusCode::Unsupported)
        return {NodeTestOutcome::Refused,
                withNode(list->status().message(), file)};
      return failedWith(list->status().message());
    }
  auto outputs = runGraph(module, file, *inputs);
  if (!outputs) {
    if (outputs.status().code() == StatusCode::Unsupported)
      return {NodeTestOutcome::Refused,
              withNode(outputs.status().message(), file)};
    return failedWith(outputs.status().message());
  }
  for (std::size_t i = 0; i < expected->size(); ++i) {
    if (!(*expected)[i])
      return failedWith(folder + ": output_" + std::to_string(i) +
                        ".pb is absent");
    if (std::string text = compareTensors((*outputs)[i], *(*expected)[i]);
        !text.empty())
      return failedWith("output " + std::to_string(i) + ": " + text);
  }
  return {NodeTestOutcome::Passed, ""};
}

} // namespace

NodeTestResult runNodeTest(const std::string &folder) {
  auto file = OnnxFile::open(folder + "/model.onnx");
  if (!file)
    return failedWith(file.status().message());
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = importOnnxGraph(context, *file);
  if (!module) {
    if (module.status().code() == StatusCode::Unsupported)
      return {NodeTestOutcome::Refused,
              withNode(module.status().message(), *file)};
    return failedWith(module.status().message());
  }
  bool any = false;
  for (int i = 0; fs::exists(folder + "/test_data_set_" + std::to_string(i));
       ++i) {
    any = true;
    NodeTestResult result = runDataSet(
        **module, *file, folder + "/test_data_set_" + std::to_string(i));
    if (result.outcome != NodeTestOutcome::Passed)
      return result;
  }
  return any ? NodeTestResult{NodeTestOutcome::Passed, ""}
             : failedWith("has no test_data_set_0");
}

} // namespace ingot::graph
