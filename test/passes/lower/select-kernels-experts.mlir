// RUN: ingot-opt %s -select-kernels -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s

// A layer of experts: the choice, the order of the slots that follows from it, and
// rows of slots between dispatch and combine.
// CHECK: plan.target @cpu {{.*}}slots = 2 : i64
// CHECK-DAG: plan.buffer @layer.0.route domain token : !plan.rows<4>
// CHECK-DAG: plan.buffer @layer.0.route.order domain token : !plan.rows<9>
// CHECK-DAG: plan.buffer @layer.0.dispatch domain slot : !plan.rows<32>
// CHECK-DAG: plan.buffer @layer.0.gate domain slot : !plan.rows<16>
// CHECK-DAG: plan.kernel @expert_linear_i8g32_t1 op "expert_linear"
// CHECK: plan.linear @embed weight @router to @layer.0.router
// CHECK-NEXT: plan.route @layer.0.router to @layer.0.route experts = 4 top_k = 2 normalized variants [#plan.variant<1, 0, @route>]
// CHECK-NEXT: plan.order_slots @layer.0.route to @layer.0.route.order experts = 4 top_k = 2
// CHECK-NEXT: plan.dispatch @embed order @layer.0.route.order to @layer.0.dispatch width = 32 experts = 4 top_k = 2
// CHECK-NEXT: plan.quantize @layer.0.dispatch to @layer.0.quantize width = 32 domain = slot
// CHECK-NEXT: plan.expert_linear @layer.0.quantize order @layer.0.route.order weight @gate_up to @layer.0.gate_up k = 32 n = 32 experts = 4 top_k = 2 variants [#plan.variant<1, 1, @expert_linear_i8g32_t1>
// CHECK-NEXT: plan.gated @layer.0.gate_up to @layer.0.gate width = 16 activation = "silu" {{.*}} {domain = #plan<domain slot>}
// CHECK-NEXT: plan.expert_linear @layer.0.gate order @layer.0.route.order weight @down to @layer.0.down k = 16 n = 32
// CHECK-NEXT: plan.combine @layer.0.down order @layer.0.route.order routes @layer.0.route to @layer.0.combine width = 32 experts = 4 top_k = 2
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
