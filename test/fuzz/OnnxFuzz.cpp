// Any bytes as an ONNX model: the reader, the importer, then specialisation and
// lowering for shapes of the graph's own, and the recognition of a decoder.
#include "compiler/codegen/graph/LowerGraph.h"
#include "compiler/codegen/graph/Specialize.h"
#include "compiler/frontend/onnx/OnnxImporter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace ingot;
  auto file = OnnxFile::fromMemory({data, size}, "fuzz");
  if (!file)
    return 0;
  for (const auto &tensor : file->model().graph().initializer())
    (void)file->read(tensor, "initializer");
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = importOnnxGraph(context, *file);
  if (!module)
    return 0;
  // Unknown dimensions are 3.
  auto function = *(**module).getOps<mlir::func::FuncOp>().begin();
  llvm::SmallVector<graph::InputBinding> bindings;
  for (mlir::Type type : function.getArgumentTypes()) {
    auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
    if (!tensor)
      return 0;
    llvm::SmallVector<int64_t> dims(tensor.getShape());
    for (int64_t &dim : dims)
      dim = mlir::ShapedType::isDynamic(dim) ? 3 : dim;
    bindings.push_back(
        {mlir::RankedTensorType::get(dims, tensor.getElementType()), {}});
  }
  if (auto special = graph::specializeGraph(**module, bindings))
    (void)graph::lowerGraph(**special);
  return 0;
}
