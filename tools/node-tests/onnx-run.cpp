// Runs any ONNX graph on the tensors of a safetensors file.
#include "compiler/codegen/graph/RunFile.h"
#include "runtime/support/Printable.h"
#include "tools/ExitCodes.h"

#include <CLI/CLI.hpp>

#include <cstdio>

int main(int argc, char **argv) {
  CLI::App app(
      "Runs an ONNX graph as native code, which is made for the shapes of "
      "its inputs and not kept");
  std::string model, inputs, outputs;
  app.add_option("MODEL", model, "ONNX file")->required();
  app.add_option(
         "INPUTS", inputs,
         "safetensors file: a tensor for each input of the graph, by name")
      ->required();
  app.add_option("-o,--output", outputs, "safetensors file for the outputs")
      ->required();
  ingot::addExitCodes(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return ingot::exitOf(app, error);
  }
  std::string report;
  ingot::Status status =
      ingot::graph::runOnnxFile(model, inputs, outputs, report);
  if (!status) {
    std::fprintf(stderr, "error: %s\n",
                 ingot::printable(status.message()).c_str());
    return ingot::exitCode(status);
  }
  std::printf("%s", report.c_str());
  return 0;
}
