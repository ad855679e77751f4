// From an lm program to one plan.target: what all targets share. A target says in
// which layout it multiplies, which kernels there are, and what its linears read;
// CpuLowering and CudaLowering are the two.
#pragma once

#include "compiler/codegen/cpu/KernelCatalog.h"
#include "dialects/lm/LmOps.h"
#include "dialects/plan/Plan.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringSet.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace ingot::plan {

// Weights that some target reads, by their names in lm, and the layouts in which
// matrices are packed.
struct UsedWeights {
  llvm::DenseMap<mlir::StringAttr, mlir::SmallVector<Layout, 2>> layouts;
  // Whether targets of two layouts are made: those of mma16 then have a suffix.
  bool hasBoth = false;

  void add(mlir::StringAttr name, Layout layout);
  std::string nameOf(mlir::StringRef name, Layout layout) const;
};

class TargetLowering {
public:
  TargetLowering(mlir::ModuleOp module, lm::ProgramOp program,
                 mlir::StringRef targetName, Layout matrixLayout,
                 UsedWeights &usedWeights);
  virtual ~TargetLowering() = default;

  // Makes the target at the end of the module. `levels` of code: best first.
  mlir::LogicalResult run(mlir::ArrayRef<std::string> levels);

  int64_t numLaunches = 0;
  int64_t numKernels = 0;

protected:
  // Columns of a buffer that hold a value.
  struct Place {
    BufferOp buffer;
    int64_t column = 0;
  };
  // The two result attributes of launches that give float32 rows, rows as linears
  // read them, or both.
  struct Results {
    mlir::FlatSymbolRefAttr rows, quantized;
  };
  // What the launches behind a lm.route have of it.
  struct Routing {
    mlir::FlatSymbolRefAttr order;
    mlir::IntegerAttr experts, topK;
  };
  struct AttentionKernels {
    mlir::ArrayAttr variants;
    mlir::FlatSymbolRefAttr split, merge; // of CUDA devices
  };

  //===--------------------------------------------------------------------===//
  // What a target says
  //===--------------------------------------------------------------------===//

  // Asks the catalogue, makes the kernels that are new, and gives the variants.
  virtual mlir::FailureOr<mlir::ArrayAttr>
  variantsFor(mlir::Operation *op, mlir::StringRef kernelOp,
              const codegen::KernelConfig &config) = 0;
  virtual mlir::FailureOr<AttentionKernels>
  attentionKernels(lm::CachedAttentionOp op, codegen::KernelConfig config) = 0;
  // The variants of a linear, and the buffer that it reads, or an error.
  virtual mlir::FailureOr<mlir::ArrayAttr>
  linearVariants(lm::LinearOp op, const codegen::KernelConfig &config) = 0;
  virtual mlir::FlatSymbolRefAttr linearInput(lm::LinearOp op) = 0;
  // The same of a linear of experts.
  virtual mlir::FailureOr<mlir::ArrayAttr>
  expertVariants(lm::ExpertLinearOp op, codegen::KernelConfig config) = 0;
  virtual mlir::FlatSymbolRefAttr expertInput(lm::ExpertLinearOp op) = 0;
  // A launch that copies float32 rows to their slots, or what the target has instead.
  virtual mlir::LogicalResult lowerDispatch(lm::DispatchOp op);
  // How a row of a value is laid out.
  virtual mlir::Type rowsType(mlir::Type valueType) = 0;
  // `attention`: the result of an attention, whose kernels may need float32 rows.
  virtual Results results(mlir::Operation *op, mlir::Value value, Domain domain,
                          bool attention = false) = 0;
  virtual mlir::LogicalResult lowerQuantize(lm::QuantizeOp op) = 0;
  // The launches of a head or fill, in the segment that has been made for it.
  virtual mlir::LogicalResult lowerRegionOf(lm::ExitOp exit,
                                            mlir::Region &region);
  virtual Domain domainOf(mlir::Value value) {
    return places.lookup(value).buffer.getDomain();
  }
  // Behind the launches of an operator.
  virtual mlir::LogicalResult finish(mlir::Operation *op) {
    return mlir::success();
  }

  //===--------------------------------------------------------------------===//
  // Values, buffers and weights
  //===--------------------------------------------------------------------===//

  std::string uniqueName(mlir::StringRef wanted);
  BufferOp makeBuffer(mlir::Location loc, mlir::Type valueType, Domain domain);
  // Where the result of `op` is to be written.
  Place resultPlace(mlir::Operation *op, mlir::Value value, Domain domain);
  mlir::FlatSymbolRefAttr symbol(Place place) {
    return mlir::FlatSymbolRefAttr::get(place.buffer.getSymNameAttr());
  }
  // The buffer that an operator reads; parts of a concat are read by it alone.
  mlir::FlatSymbolRefAttr read(mlir::Value value) {
    return symbol(places.lookup(value));
  }
  // A vector, which all targets share.
  mlir::FlatSymbolRefAttr use(mlir::FlatSymbolRefAttr weight);
  // A matrix in the target's layout.
  mlir::FlatSymbolRefAttr useMatrix(mlir::FlatSymbolRefAttr weight);

  //===--------------------------------------------------------------------===//
  // Kernels
  //===--------------------------------------------------------------------===//

  VariantAttr variantAttr(uint32_t first, uint32_t last, KernelOp kernel);
  // A kernel's name is that of its code; a buffer or segment that has it takes
  // another.
  void reserveKernelName(mlir::StringRef name);
  // Adds how a weight, or a quantised result, is encoded to a configuration.
  void addEncoding(codegen::KernelConfig &config, lm::EncodingAttr encoding);
  void addQuantization(codegen::KernelConfig &config, mlir::Type result);
  mlir::IntegerAttr integer(int64_t value) {
    return moduleBuilder.getI64IntegerAttr(value);
  }

  // These launches exist for one domain only.
  mlir::LogicalResult tokensOnly(mlir::Operation *op, mlir::Value input);
  mlir::LogicalResult slotsOnly(mlir::Operation *op, mlir::Value input);
  Routing routingOf(mlir::Value routes);

  lm::ProgramOp program;
  mlir::MLIRContext *context;
  mlir::OpBuilder moduleBuilder, bufferBuilder, kernelBuilder, launchBuilder;
  llvm::DenseMap<mlir::Value, Place> places;
  std::map<std::string, KernelOp> kernels;

private:
  // One concatenation that a linear's result is a part of.
  struct ConcatPart {
    lm::ConcatOp concat;
    int64_t column;
  };
  // A concat costs nothing when each of its parts can be written in place: it is
  // the result of a linear that nothing else reads.
  mlir::LogicalResult findConcats();

  // Segments.
  void startSegment();
  SegmentOp createSegment(mlir::StringRef name, mlir::FlatSymbolRefAttr input);
  mlir::FailureOr<SegmentOp> lowerExitRegion(lm::ExitOp exit,
                                             mlir::Region &region,
                                             mlir::StringRef suffix);
  void shareLogits(mlir::FlatSymbolRefAttr logits);
  void moveKernelsAfterBuffers();

  // Operators (LowerOperators.cpp).
  mlir::LogicalResult lower(mlir::Operation *op);
  mlir::LogicalResult lowerOp(lm::EmbedOp op);
  mlir::LogicalResult lowerOp(lm::RopeTableOp op);
  mlir::LogicalResult lowerOp(lm::RmsNormOp op);
  mlir::LogicalResult lowerOp(lm::LayerNormOp op);
  mlir::LogicalResult lowerOp(lm::ActivateOp op);
  mlir::LogicalResult lowerOp(lm::AddOp op);
  mlir::LogicalResult lowerOp(lm::CapOp op);
  mlir::LogicalResult lowerOp(lm::QuantizeOp op) { return lowerQuantize(op); }
  mlir::LogicalResult lowerOp(lm::LinearOp op);
  mlir::LogicalResult lowerOp(lm::GateOp op);
  mlir::LogicalResult lowerOp(lm::RopeCacheWriteOp op);
  mlir::LogicalResult lowerOp(lm::CachedAttentionOp op);
  mlir::LogicalResult lowerOp(lm::RouteOp op);
  mlir::LogicalResult lowerOp(lm::DispatchOp op) { return lowerDispatch(op); }
  mlir::LogicalResult lowerOp(lm::ExpertLinearOp op);
  mlir::LogicalResult lowerOp(lm::CombineOp op);
  mlir::LogicalResult lowerOp(lm::SelectRowsOp op);
  mlir::LogicalResult lowerOp(lm::PoolOp op);
  mlir::LogicalResult lowerOp(lm::ConcatOp op);
  mlir::LogicalResult lowerOp(lm::CutOp op);
  mlir::LogicalResult lowerOp(lm::ExitOp op);
  mlir::LogicalResult lowerOp(lm::YieldOp op);
  mlir::LogicalResult lowerOp(lm::ReturnOp op);

  mlir::ModuleOp module;
  mlir::StringRef targetName;
  Layout matrixLayout;
  UsedWeights &usedWeights;
  TargetOp target;
  SegmentOp segment;
  llvm::DenseMap<mlir::Value, SegmentOp> endsAt; // by the cut's result
  mlir::SmallVector<std::pair<SegmentOp, BufferOp>> exitLogits;
  llvm::DenseMap<mlir::Value, ConcatPart> concatParts;
  llvm::DenseMap<mlir::Value, BufferOp> orders; // of routes
  llvm::StringSet<> usedNames;
};

std::unique_ptr<TargetLowering> makeCpuLowering(mlir::ModuleOp module,
                                                lm::ProgramOp program,
                                                UsedWeights &usedWeights);
std::unique_ptr<TargetLowering> makeCudaLowering(mlir::ModuleOp module,
                                                 lm::ProgramOp program,
                                                 UsedWeights &usedWeights);

} // namespace ingot::plan
