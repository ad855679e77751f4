// RUN: ingot-opt %s -quantize-weights="encoding=int4 group=32" | FileCheck %s --check-prefix=INT4
// RUN: ingot-opt %s -quantize-weights=encoding=f16 | FileCheck %s --check-prefix=F16
// RUN: ingot-opt %s -quantize-weights="encoding=int4 group=32 overrides=router=int8" | FileCheck %s --check-prefix=ROUTER
// RUN: ingot-opt %s -quantize-weights="encoding=int4 group=32 overrides=*=int8-g32,router=none" | FileCheck %s --check-prefix=KEPT
// RUN: not ingot-opt %s -quantize-weights="encoding=int4 overrides=experts=int4-g32-gptq" 2>&1 | FileCheck %s --check-prefix=METHOD
// RUN: not ingot-opt %s -quantize-weights="encoding=int4 overrides=embed=int8-awq" 2>&1 | FileCheck %s --check-prefix=TABLE
// RUN: ingot-opt %s -quantize-weights="encoding=int8 group=32" -insert-quantize | FileCheck %s --check-prefix=INSERT

// The matrices of experts are matrices; what chooses them gets no integers.
// INT4: lm.weight @router {{.*}} encoding <f32> layout r16 parts
// INT4: lm.weight @experts {{.*}} encoding <i4, group = 32> layout r16 method "rtn"
// F16: lm.weight @router {{.*}} encoding <f16>
// F16: lm.weight @experts {{.*}} encoding <f16>

// An override that names the router is taken at its word, by a wide pattern as well;
// a later one gives it its floats back.
// ROUTER: lm.weight @router {{.*}} encoding <i8, group = 64> layout r16 method "rtn"
// ROUTER: lm.weight @experts {{.*}} encoding <i4, group = 32> layout r16 method "rtn"
// KEPT: lm.weight @router {{.*}} encoding <f32> layout r16 parts
// KEPT: lm.weight @experts {{.*}} encoding <i8, group = 32> layout r16 method "rtn"

// Codes by the inputs are for what calibration sees: experts alone have none.
// METHOD: error: quantize-weights: override "experts=int4-g32-gptq": expected the method rtn, found gptq: tables, heads and experts are rounded
// TABLE: error: quantize-weights: override "embed=int8-awq": expected the method rtn, found awq: tables, heads and experts are rounded

// Experts read quantised slots, and the router float rows.
// INSERT: %[[ROUTES:.*]] = lm.route
// INSERT: %[[SLOTS:.*]] = lm.dispatch
// INSERT-NEXT: %[[ROWS:.*]] = lm.quantize %[[SLOTS]] : tensor<?x64xf32> -> !lm.quantized<64, group = 32, bits = 16>
// INSERT-NEXT: lm.expert_linear %[[ROWS]], %[[ROUTES]], @experts
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @router [4, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "r", offset = 0, size = 1024, stored = f32, rows = 4, columns = 64>]
lm.weight @experts [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "e", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %l = lm.linear %x, @router : tensor<?x64xf32> -> tensor<?x4xf32>
  %r = lm.route %l {top_k = 2 : i64} : tensor<?x4xf32> -> tensor<?x4xf32>
  %d = lm.dispatch %x, %r : tensor<?x64xf32>, tensor<?x4xf32>
  %y = lm.expert_linear %d, %r, @experts : tensor<?x64xf32>, tensor<?x4xf32> -> tensor<?x16xf32>
  lm.return %x : tensor<?x64xf32>
}
