// RUN: ingot-opt %s -quantize-weights="encoding=int4 group=32 method=gptq" | FileCheck %s
// RUN: ingot-opt %s -merge-gate-up -quantize-weights="encoding=int4 group=32 method=gptq" | FileCheck %s --check-prefix=MERGED
// RUN: ingot-opt %s -quantize-weights="encoding=int4 group=32 method=gptq mark-only=true" | FileCheck %s --check-prefix=MARK

// Matrices of linear operators become what was calibrated for them, codes and
// all; the head is rounded.
// CHECK: lm.weight @layer.0.gate {{.*}} encoding <i4, group = 32> layout r16 method "stored" parts [#lm.part<source = @calibrated, name = "gate by gptq"
// CHECK: lm.weight @layer.0.up {{.*}} encoding <i4, group = 32> layout r16 method "stored" parts [#lm.part<source = @calibrated, name = "up by gptq"
// CHECK: lm.weight @head {{.*}} encoding <i8, group = 32> layout r16 method "rtn"
// A norm that was scaled with them is taken too.
// CHECK: lm.weight @norm [64] encoding <f32> layout row parts [#lm.part<source = @calibrated, name = "norm"
// CHECK-NOT: .calibrated

// Passes that join weights join what was calibrated for them.
// MERGED: lm.weight @layer.0.gate_up [64, 64] encoding <i4, group = 32> layout r16 method "stored" parts
// MERGED-SAME: name = "gate by gptq"
// MERGED-SAME: name = "up by gptq"
// MERGED-NOT: .calibrated

// Marking changes no encoding.
// MARK: lm.weight @layer.0.gate {{.*}} encoding <f32> layout r16 parts {{.*}} {calibrate = "gptq", calibrate_encoding = #lm.encoding<i4, group = 32>}
// MARK: lm.weight @head {{.*}} encoding <i8, group = 32> layout r16 method "rtn" parts
// MARK-NOT: calibrate =
// MARK: lm.weight @norm
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.source @calibrated {name = "b", size = 8192 : i64, hash = "00000000deadbeef"}
lm.weight @layer.0.gate [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "gate", offset = 0, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.weight @layer.0.gate.calibrated [32, 64] encoding <i4, group = 32> layout r16 method "stored" parts [#lm.part<source = @calibrated, name = "gate by gptq", offset = 0, size = 1024, stored = codes, rows = 32, columns = 64, details = {codes = {bits = 4 : i64, group = 32 : i64, packing = "compressed", row_group = 1 : i64, scales = {name = "gate.scales", offset = 4096 : i64, size = 128 : i64, source = @calibrated, type = "f16"}, zero_bias = 0 : i64}}>]
lm.weight @layer.0.up [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "up", offset = 8192, size = 8192, stored = f32, rows = 32, columns = 64>]
lm.weight @layer.0.up.calibrated [32, 64] encoding <i4, group = 32> layout r16 method "stored" parts [#lm.part<source = @calibrated, name = "up by gptq", offset = 1024, size = 1024, stored = codes, rows = 32, columns = 64, details = {codes = {bits = 4 : i64, group = 32 : i64, packing = "compressed", row_group = 1 : i64, scales = {name = "up.scales", offset = 4224 : i64, size = 128 : i64, source = @calibrated, type = "f16"}, zero_bias = 0 : i64}}>]
lm.weight @head [64, 32] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "head", offset = 16384, size = 8192, stored = f32, rows = 64, columns = 32>]
lm.weight @norm [64] encoding <f32> layout row parts [#lm.part<source = @src0, name = "norm", offset = 32768, size = 256, stored = f32, rows = 64, columns = 1>]
lm.weight @norm.calibrated [64] encoding <f32> layout row parts [#lm.part<source = @calibrated, name = "norm", offset = 5000, size = 256, stored = f32, rows = 64, columns = 1>]
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 40960, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %n = lm.rms_norm %x, @norm {eps = 1.0e-5 : f32} : tensor<?x64xf32> -> tensor<?x64xf32>
  %g = lm.linear %n, @layer.0.gate : tensor<?x64xf32> -> tensor<?x32xf32> loc("layer.0.gate")
  %u = lm.linear %n, @layer.0.up : tensor<?x64xf32> -> tensor<?x32xf32> loc("layer.0.up")
  %gu = lm.concat %g, %u : tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x64xf32>
  %a = lm.gate silu %gu : tensor<?x64xf32> -> tensor<?x32xf32>
  %y = lm.linear %a, @head : tensor<?x32xf32> -> tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}
