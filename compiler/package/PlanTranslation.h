// From a plan module to the FlatBuffer of runtime/plan/plan.fbs. A pure
// translation: every number comes from the module, from the linked code or from
// the list of input files, and the same arguments give the same bytes.
#pragma once

#include "compiler/codegen/cpu/CpuCodegen.h"
#include "compiler/package/CudaLevelCode.h"
#include "dialects/plan/Plan.h"

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ingot::package {

// The code of one target, level by level in the order of the plan, with the
// kernels in the order in which they stand there: of the cpu or of CUDA devices.
struct TargetCode {
  std::vector<codegen::CompiledLevel> levels;
  std::vector<CudaLevelCode> cudaLevels;
  std::vector<uint64_t> codeOffsets; // of each level in the Code segment
};

struct InputFile {
  std::string name; // never a path of this machine
  uint64_t sizeBytes = 0;
  std::string xxh3; // 16 hexadecimal digits
};

// Fails with diagnostics on what the module lacks: placements of weights,
// offsets of buffers, names of launches (their locations), plan.model.
// `code` has an element for each target.
mlir::FailureOr<std::vector<uint8_t>>
translatePlan(mlir::ModuleOp module, const std::vector<TargetCode> &code,
              const std::vector<InputFile> &inputs);

// Bytes of the weights segment that the placements ask for.
uint64_t weightsBytes(mlir::ModuleOp module);

} // namespace ingot::package
