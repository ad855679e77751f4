// Leaves products of prompts to a library, in the target @cuda:
//   1. a linear of the domain token with f16 or bf16 weights gets its kernels for 65
//      rows and more replaced by one "library_linear" of its encoding;
//   2. the kernels that this needs are made, and those that nothing names any more go.
#include "compiler/codegen/cuda/CudaCatalog.h"
#include "dialects/plan/Plan.h"
#include "passes/lower/Passes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace ingot {
#define GEN_PASS_DEF_ALLOWLIBRARYGEMMPASS
#include "passes/lower/Passes.h.inc"
} // namespace ingot

namespace ingot::plan {

namespace {

constexpr uint32_t kFirstRows = 65; // linear_c10

// The kernel of a name, behind those that the target has.
FailureOr<KernelOp> kernelOf(TargetOp target, StringRef name) {
  KernelOp last;
  for (auto kernel : target.getBody().getOps<KernelOp>()) {
    if (kernel.getSymName() == name)
      return kernel;
    last = kernel;
  }
  if (SymbolTable::lookupSymbolIn(target, name)) {
    target.emitOpError() << "has a symbol @" << name
                         << " that is no kernel, whose name one needs";
    return failure();
  }
  Result<codegen::CudaKernel> found = codegen::cudaKernel(name.str());
  if (!found) {
    target.emitOpError() << found.status().message();
    return failure();
  }
  OpBuilder builder(target.getContext());
  builder.setInsertionPointAfter(last);
  const abi::KernelGeometry &geometry = found->geometry;
  return builder.create<KernelOp>(
      UnknownLoc::get(target.getContext()), name, found->op,
      DictionaryAttr::get(target.getContext()), 0,
      GeometryAttr::get(target.getContext(), geometry.blockThreads,
                        geometry.sharedBytes, geometry.rows, geometry.tokens));
}

// The variants with the kernel for rows from kFirstRows on.
ArrayAttr leftToLibrary(ArrayAttr variants, KernelOp kernel) {
  MLIRContext *context = variants.getContext();
  SmallVector<Attribute> kept;
  for (VariantAttr variant : variants.getAsRange<VariantAttr>()) {
    if (variant.getFirst() >= kFirstRows)
      continue;
    bool isCut = variant.getLast() == 0 || variant.getLast() >= kFirstRows;
    kept.push_back(isCut ? VariantAttr::get(context, variant.getFirst(),
                                            kFirstRows - 1, variant.getKernel())
                         : variant);
  }
  kept.push_back(VariantAttr::get(
      context, kFirstRows, 0, FlatSymbolRefAttr::get(kernel.getSymNameAttr())));
  return ArrayAttr::get(context, kept);
}

class AllowLibraryGemm
    : public ingot::impl::AllowLibraryGemmPassBase<AllowLibraryGemm> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    TargetOp target;
    for (auto each : module.getOps<TargetOp>())
      if (each.isCuda())
        target = each;
    if (!target) {
      module.emitError() << "expected a target @cuda, whose products a library "
                            "could make";
      return signalPassFailure();
    }
    SmallVector<LinearOp> linears;
    target.walk([&](LinearOp linear) {
      auto weight = cast<WeightOp>(
          SymbolTable::lookupSymbolIn(module, linear.getWeightAttr()));
      Code code = weight.getEncoding().getCode();
      if (linear.getDomain() == Domain::Token &&
          (code == Code::F16 || code == Code::BF16))
        linears.push_back(linear);
    });
    if (linears.empty()) {
      target.emitError() << "no linear of a prompt's tokens has f16 or bf16 "
                            "weights, which alone a library multiplies";
      return signalPassFailure();
    }
    if (failed(kernelOf(target, "library_finish")))
      return signalPassFailure();
    DenseSet<StringAttr> replaced;
    for (LinearOp linear : linears) {
      auto weight = cast<WeightOp>(
          SymbolTable::lookupSymbolIn(module, linear.getWeightAttr()));
      FailureOr<KernelOp> kernel =
          kernelOf(target, weight.getEncoding().getCode() == Code::F16
                               ? "library_linear_f16"
                               : "library_linear_bf16");
      if (failed(kernel))
        return signalPassFailure();
      for (VariantAttr variant : linear.getVariants().getAsRange<VariantAttr>())
        replaced.insert(variant.getKernel().getAttr());
      linear.setVariantsAttr(leftToLibrary(linear.getVariants(), *kernel));
      ++numLinears;
    }
    for (auto kernel :
         llvm::make_early_inc_range(target.getBody().getOps<KernelOp>()))
      if (replaced.contains(kernel.getSymNameAttr()) &&
          SymbolTable::symbolKnownUseEmpty(kernel, target))
        kernel.erase();
  }
};

} // namespace
} // namespace ingot::plan
