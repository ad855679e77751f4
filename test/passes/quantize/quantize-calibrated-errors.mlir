// RUN: not ingot-opt %s -quantize-weights="encoding=int4 group=32 method=best" 2>&1 | FileCheck %s --check-prefix=METHOD
// RUN: not ingot-opt %s -quantize-weights="encoding=int4 group=64 method=gptq" 2>&1 | FileCheck %s --check-prefix=GROUP
// RUN: not ingot-opt %s -quantize-weights="encoding=int4 group=32 method=awq" 2>&1 | FileCheck %s --check-prefix=LACKS
// RUN: not ingot-opt %s -quantize-weights="encoding=int4 group=32" 2>&1 | FileCheck %s --check-prefix=UNUSED
// RUN: not ingot-opt %s -quantize-weights="encoding=int4 overrides=layer.9.*=int8" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not ingot-opt %s -quantize-weights="encoding=int4 overrides=*.o=int7" 2>&1 | FileCheck %s --check-prefix=SPEC
// RUN: not ingot-opt %s -quantize-weights="encoding=int4 overrides=int8" 2>&1 | FileCheck %s --check-prefix=FORM

// A method that does not exist.
// METHOD: error: quantize-weights: unknown method "best", expected rtn, gptq or awq
// Codes of another encoding than the options ask for.
// GROUP: error: quantize-weights: is i4-g32 of [64, 64], expected i4-g64 of [64, 64] as the options ask
// A matrix for which nothing was calibrated.
// LACKS: error: quantize-weights: method awq needs @layer.0.o.calibrated, which the module lacks
// What was calibrated and is not asked for.
// UNUSED: error: quantize-weights: was calibrated for other options: nothing takes it
// An override that names nothing, one of an unknown encoding, one that is none.
// NONE: error: quantize-weights: override "layer.9.*=int8": matches no weight matrix
// SPEC: error: quantize-weights: override "*.o=int7": expected int8, int4, f32, f16, bf16 or none
// FORM: error: quantize-weights: override "int8": expected PATTERN=ENCODING
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.source @calibrated {name = "b", size = 8192 : i64, hash = "00000000deadbeef"}
lm.weight @layer.0.q [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "q", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @layer.0.q.calibrated [64, 64] encoding <i4, group = 32> layout r16 method "stored" parts [#lm.part<source = @calibrated, name = "q by gptq", offset = 0, size = 2048, stored = codes, rows = 64, columns = 64, details = {codes = {bits = 4 : i64, group = 32 : i64, packing = "compressed", row_group = 1 : i64, scales = {name = "q.scales", offset = 4096 : i64, size = 256 : i64, source = @calibrated, type = "f16"}, zero_bias = 0 : i64}}>]
lm.weight @layer.0.o [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "o", offset = 16384, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 40960, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %q = lm.linear %x, @layer.0.q : tensor<?x64xf32> -> tensor<?x64xf32>
  %o = lm.linear %q, @layer.0.o : tensor<?x64xf32> -> tensor<?x64xf32>
  %y = lm.linear %o, @embed : tensor<?x64xf32> -> tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}
