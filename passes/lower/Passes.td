// Passes of the lower phase: lm to plan, then memory.
#ifndef INGOT_PASSES_LOWER_PASSES
#define INGOT_PASSES_LOWER_PASSES

include "mlir/Pass/PassBase.td"

def SelectKernelsPass : Pass<"select-kernels", "::mlir::ModuleOp"> {
  let summary = "Turns an lm program into a plan target of kernel launches";
  let description = [{
    Needs a module with one `lm.program` after the fuse phase. Each operator
    becomes a launch; the kernel catalogue says which kernels serve which row
    counts. `lm.concat` becomes nothing: the linears that it joins write column
    ranges of one buffer. Sources, the weights that are used and the states
    become their plan twins, and `lm.model` becomes `plan.model`. Launches and
    buffers are named by their locations.

    Each of `target` becomes a `plan.target`. In that of CUDA devices every linear
    reads half rows (`!plan.half_rows`), so `lm.quantize` becomes nothing: the producer
    of its input writes half rows, or a `plan.quantize` behind it does. Its matrices
    are weights of the layout mma16, beside those of the cpu where both are made.

    Guarantees that nothing of lm is left. An operator without a lowering is an
    error on it.

    Before:
    ```mlir
    %1 = lm.rms_norm %0, @norm {eps = 1.0e-5 : f32} : tensor<?x64xf32> -> tensor<?x64xf32> loc("layer.0.norm")
    ```
    After:
    ```mlir
    plan.rms_norm @embed weight @norm to @layer.0.norm width = 64 eps = 9.99999974E-6
      weight_offset = 0.0 domain = token variants [#plan.variant<1, 0, @rms_norm_f32>] loc("layer.0.norm")
    ```
  }];
  let dependentDialects = ["::ingot::plan::PlanDialect"];
  let options = [
    ListOption<"targets", "target", "std::string",
               "Devices to lower for: cpu, cuda (cpu where none is named)">,
    ListOption<"levels", "levels", "std::string",
               "Feature levels of the cpu to make code for, best first (all where none is named)">,
    ListOption<"chips", "sms", "std::string",
               "CUDA chips to make code for, sm_N (sm_80, sm_86, sm_89 and sm_90 where none is named)">
  ];
  let statistics = [
    Statistic<"numLaunches", "launches", "Launches made">,
    Statistic<"numKernels", "kernels", "Different kernels selected">,
    Statistic<"numUnusedWeights", "unused-weights", "Weights left out because nothing reads them">
  ];
}

def AllowLibraryGemmPass : Pass<"allow-library-gemm", "::mlir::ModuleOp"> {
  let summary = "Leaves products of prompts with float weights to cuBLASLt";
  let description = [{
    In the target @cuda, linears of the domain token with f16 or bf16 weights serve 65
    rows and more by a variant "library_linear": it lays the weights out as plain
    float16, cuBLASLt multiplies, and the kernel "library_finish" applies scales, bias
    and residual. The weights stay in the layout mma16, which smaller steps read.

    Lossy: the bits of a row then depend on how many rows are beside it. A module
    without a target @cuda, or whose target has no such linear, is an error.

    Before:
    ```mlir
    plan.linear @h weight @q to @y {{.*}} variants [..., #plan.variant<65, 0, @linear_f16_p64>]
    ```
    After:
    ```mlir
    plan.linear @h weight @q to @y {{.*}} variants [..., #plan.variant<65, 0, @library_linear_f16>]
    ```
  }];
  let dependentDialects = ["::ingot::plan::PlanDialect"];
  let statistics = [
    Statistic<"numLinears", "linears", "Linears that a library serves">
  ];
}

def AssignBuffersPass : Pass<"assign-buffers", "::mlir::ModuleOp"> {
  let summary = "Gives the buffers of each target their places in the arenas";
  let description = [{
    A linear whose residual is not read again is made to update it in place.
    Then buffers whose lives do not meet share memory: the largest is placed
    first, each at the lowest offset that is free during its whole life.
    Hidden states at cuts live through the segments that they border, and are
    never updated in place.

    Guarantees that every buffer has an offset and the target has the sizes of
    its arenas. A buffer that is read before it is written is an error.
  }];
  let dependentDialects = ["::ingot::plan::PlanDialect"];
  let statistics = [
    Statistic<"numInPlace", "in-place", "Linears made to update their residual in place">,
    Statistic<"numBytesWithout", "bytes-without-sharing", "Bytes a row that buffers would take side by side">,
    Statistic<"numBytes", "bytes", "Bytes a row of both arenas">
  ];
}

def AssignWeightsPass : Pass<"assign-weights", "::mlir::ModuleOp"> {
  let summary = "Gives each weight its place in the weights segment";
  let description = [{
    Weights follow each other in the order of the module, each aligned to 64
    bytes, with the planes that the packer makes for its encoding and layout.
    Guarantees that every weight has a placement. A weight that the packer
    cannot lay out is an error.
  }];
  let dependentDialects = ["::ingot::plan::PlanDialect"];
  let statistics = [
    Statistic<"numBytes", "bytes", "Bytes of the weights segment">
  ];
}

#endif
