// What every launch has, whichever operation it performs.
#ifndef INGOT_DIALECTS_PLAN_INTERFACES
#define INGOT_DIALECTS_PLAN_INTERFACES

include "mlir/IR/OpBase.td"

def Plan_LaunchOpInterface : OpInterface<"LaunchOpInterface"> {
  let cppNamespace = "::ingot::plan";
  let description = [{
    A kernel launch: the variants that may serve it, the domain whose rows it
    walks, and what it reads and writes. Passes and the translation treat all
    launches alike through it.
  }];
  let methods = [
    InterfaceMethod<"Kernels by row count.", "::mlir::ArrayAttr", "getVariants">,
    InterfaceMethod<"Sets the kernels by row count.", "void", "setVariants", (ins "::mlir::ArrayAttr":$variants)>,
    InterfaceMethod<"The operation in the sense of the kernel ABI, as \"linear\".", "::llvm::StringRef", "getKernelOp">,
    InterfaceMethod<"The domain whose rows the launch has.", "::ingot::plan::Domain", "getRowDomain">,
    InterfaceMethod<"Attributes that name the buffers read.", "::llvm::SmallVector<::mlir::StringAttr, 3>", "getReadNames">,
    InterfaceMethod<"Attributes that name the buffers written.", "::llvm::SmallVector<::mlir::StringAttr, 3>", "getWriteNames">,
    InterfaceMethod<"Attributes that name the weights read.", "::llvm::SmallVector<::mlir::StringAttr, 3>", "getWeightNames">
  ];
  let extraSharedClassDeclaration = [{
    // The buffers behind getReadNames and getWriteNames.
    ::llvm::SmallVector<::mlir::FlatSymbolRefAttr, 3> getReads() { return resolve($_op.getReadNames()); }
    ::llvm::SmallVector<::mlir::FlatSymbolRefAttr, 3> getWrites() { return resolve($_op.getWriteNames()); }
    ::llvm::SmallVector<::mlir::FlatSymbolRefAttr, 3> getWeights() { return resolve($_op.getWeightNames()); }
    ::llvm::SmallVector<::mlir::FlatSymbolRefAttr, 3> resolve(::llvm::ArrayRef<::mlir::StringAttr> names) {
      ::llvm::SmallVector<::mlir::FlatSymbolRefAttr, 3> symbols;
      for (::mlir::StringAttr name : names)
        symbols.push_back($_op->template getAttrOfType<::mlir::FlatSymbolRefAttr>(name));
      return symbols;
    }
  }];
}

#endif
