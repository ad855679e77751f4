// Runs passes over the text of a module: the dialects and passes of the
// project, and nothing that they do not use.
#include "compiler/pipeline/Phases.h"
#include "compiler/pipeline/PipelineText.h"
#include "dialects/lm/LmDialect.h"
#include "dialects/onnx/OnnxDialect.h"
#include "dialects/plan/Plan.h"
#include "passes/Passes.h"
#include "passes/lower/Passes.h"
#include "passes/prune/Passes.h"
#include "passes/raise/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  if (ingot::Status status = ingot::checkPipelineArguments(argc, argv);
      !status) {
    llvm::errs() << "error: " << status.message() << "\n";
    return 1;
  }
  mlir::DialectRegistry registry;
  registry.insert<ingot::lm::LmDialect, ingot::plan::PlanDialect,
                  ingot::onnx::OnnxDialect, mlir::func::FuncDialect>();
  ingot::registerIngotLmPasses();
  ingot::registerIngotLowerPasses();
  ingot::registerIngotRaisePasses();
  ingot::registerIngotPrunePasses();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  mlir::registerSymbolDCEPass();
  ingot::registerPhasePipelines();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Ingot's pass driver\n", registry));
}
