// RUN: ingot-opt %s -select-kernels="target=cuda sms=sm_90" -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s
// RUN: ingot-opt %s -select-kernels="target=cuda,cpu levels=x86-64-v3" -assign-buffers -assign-weights | FileCheck %s --check-prefix=PLACED

// A layer of experts for CUDA devices: rows of slots are half rows, copied from those
// of the tokens. The router's float weights want two parts of a token's row, the
// integers of the experts one of a slot's.
// CHECK: plan.weight @gate_up encoding <i8, group = 32> layout mma16 rows 128 columns 32
// CHECK: plan.target @cuda {{.*}}slots = 2 : i64
// CHECK-DAG: plan.buffer @embed.halves domain token : !plan.half_rows<32, parts = 2>
// CHECK-DAG: plan.buffer @layer.0.route domain token : !plan.rows<4>
// CHECK-DAG: plan.buffer @layer.0.route.order domain token : !plan.rows<9>
// CHECK-DAG: plan.buffer @layer.0.dispatch.halves domain slot : !plan.half_rows<32>
// CHECK-DAG: plan.buffer @layer.0.gate.halves domain slot : !plan.half_rows<16, parts = 2>
// CHECK-DAG: plan.kernel @route op "route" config {} scratch 0 geometry <threads = 32,
// CHECK-DAG: plan.kernel @expert_linear_i8g32_t8 op "expert_linear" config {} scratch 0 geometry <threads = 128, shared = {{[0-9]+}}, rows = 32, tokens = 8>
// CHECK: plan.quantize @embed to @embed.halves
// CHECK-NEXT: plan.linear @embed.halves weight @router to @layer.0.router
// CHECK-NEXT: plan.route @layer.0.router to @layer.0.route experts = 4 top_k = 2 normalized variants [#plan.variant<1, 0, @route>]
// CHECK-NEXT: plan.order_slots @layer.0.route to @layer.0.route.order experts = 4 top_k = 2
// CHECK-NEXT: plan.dispatch @embed.halves order @layer.0.route.order to @layer.0.dispatch.halves width = 32 experts = 4 top_k = 2

// A tile serves as many slots as its tokens could send to one expert, or half of
// what an even choice fills.
// CHECK-NEXT: plan.expert_linear @layer.0.dispatch.halves order @layer.0.route.order weight @gate_up to @layer.0.gate_up k = 32 n = 32 experts = 4 top_k = 2 variants [#plan.variant<1, 16, @expert_linear_i8g32_t8>, #plan.variant<17, 32, @expert_linear_i8g32_t16>, #plan.variant<33, 64, @expert_linear_i8g32_t32>, #plan.variant<65, 128, @expert_linear_i8g32_t64>, #plan.variant<129, 0, @expert_linear_i8g32_p64>]
// CHECK-NEXT: plan.gated @layer.0.gate_up quantized @layer.0.gate.halves width = 16 activation = "silu" {{.*}} {domain = #plan<domain slot>}
// CHECK-NEXT: plan.expert_linear @layer.0.gate.halves order @layer.0.route.order weight @down to @layer.0.down k = 16 n = 32 {{.*}} @expert_linear_f16x2_t8>
// CHECK-NEXT: plan.combine @layer.0.down order @layer.0.route.order routes @layer.0.route to @layer.0.combine width = 32 experts = 4 top_k = 2
// CHECK-NEXT: plan.add @embed update @layer.0.combine

// Weights of experts are packed for each target; slots of half rows have room for each
// choice, in whole 64 bytes.
// PLACED: plan.weight @gate_up.mma16 encoding <i8, group = 32> layout mma16 rows 128 columns 32
// PLACED: plan.weight @gate_up encoding <i8, group = 32> layout r16 rows 128 columns 32
// PLACED: plan.buffer @layer.0.dispatch.halves domain slot offset {{[0-9]+}} : !plan.half_rows<32>
module attributes {lm.model = {family = "mixtral", name = "tiny", architecture = "MixtralForCausalLM", vocab = 64 : i64, hidden = 32 : i64, context = 128 : i64,
  tied_head = true, parameters = 1000 : i64, eos = array<i64: 2>, source_bytes = 65536 : i64, sampling = {}, layers = [],
  tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
  lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
  lm.weight @embed [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @router [4, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "r", offset = 0, size = 256, stored = f16, rows = 4, columns = 32>]
  lm.weight @gate_up [128, 32] encoding <i8, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "gu", offset = 0, size = 8192, stored = f16, rows = 128, columns = 32>]
  lm.weight @down [128, 16] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "d", offset = 0, size = 4096, stored = f16, rows = 128, columns = 16>]
  lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
    %h = lm.embed %tokens, @embed : tensor<?x32xf32> loc("embed")
    %l = lm.linear %h, @router : tensor<?x32xf32> -> tensor<?x4xf32> loc("layer.0.router")
    %r = lm.route %l {top_k = 2 : i64, normalized} : tensor<?x4xf32> -> tensor<?x4xf32> loc("layer.0.route")
    %d = lm.dispatch %h, %r : tensor<?x32xf32>, tensor<?x4xf32> loc("layer.0.dispatch")
    %q = lm.quantize %d : tensor<?x32xf32> -> !lm.quantized<32, group = 32, bits = 16> loc("layer.0.quantize")
    %gu = lm.expert_linear %q, %r, @gate_up : !lm.quantized<32, group = 32, bits = 16>, tensor<?x4xf32> -> tensor<?x32xf32> loc("layer.0.gate_up")
    %g = lm.gate silu %gu : tensor<?x32xf32> -> tensor<?x16xf32> loc("layer.0.gate")
    %e = lm.expert_linear %g, %r, @down : tensor<?x16xf32>, tensor<?x4xf32> -> tensor<?x32xf32> loc("layer.0.down")
    %c = lm.combine %e, %r : tensor<?x32xf32>, tensor<?x4xf32> loc("layer.0.combine")
    %x = lm.add %h, %c : tensor<?x32xf32> loc("layer.0.add")
    %s = lm.select_rows %x : tensor<?x32xf32> loc("select")
    %logits = lm.linear %s, @embed : tensor<?x32xf32> -> tensor<?x64xf32> loc("lm_head")
    lm.return %logits : tensor<?x64xf32>
  }
}
