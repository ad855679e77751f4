// RUN: not ingot-opt %s -select-kernels="target=gpu" 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not ingot-opt %s -select-kernels="levels=x86-64-v9" 2>&1 | FileCheck %s --check-prefix=LEVEL
// RUN: not ingot-opt %s -select-kernels="target=cuda sms=sm_9" 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not ingot-opt %s -select-kernels="target=cuda,cpu,cuda" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not ingot-opt %s -select-kernels="target=cuda sms=sm_90,sm_80,sm_90" 2>&1 | FileCheck %s --check-prefix=CHIPS

// Options that name nothing are refused.
// TARGET: error: target "gpu" is unknown (cpu, cuda)
// CHIP: error: chip "sm_9": expected sm_N, such as sm_80 or sm_90a
// TWICE: error: target "cuda" stands twice
// CHIPS: error: chip "sm_90": stands twice
// LEVEL: error: level "x86-64-v9" is unknown (x86-64-v3, avx512-vnni)
module attributes {lm.model = {family = "llama", name = "tiny", architecture = "LlamaForCausalLM", vocab = 64 : i64, hidden = 32 : i64, context = 128 : i64,
  tied_head = true, parameters = 1000 : i64, eos = array<i64: 2>, source_bytes = 65536 : i64, sampling = {}, layers = [],
  tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
  lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
  lm.weight @embed [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @norm [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "norm", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @q [32, 32] encoding <i8, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "q", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32, permute = 2>]
  lm.weight @k [16, 32] encoding <i8, group = 32> layout r16 method "rtn" parts [#lm.part<source = @src0, name = "k", offset = 0, size = 1024, stored = f16, rows = 16, columns = 32>]
  lm.weight @v [16, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "v", offset = 0, size = 1024, stored = f16, rows = 16, columns = 32>]
  lm.weight @o [32, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "o", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32>]
  lm.weight @gate_up [64, 32] encoding <f16> layout r16 parts [#lm.part<source = @src0, name = "gu", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
  lm.weight @unused [32] encoding <f32> layout row parts [#lm.part<source = @src0, name = "unused", offset = 0, size = 128, stored = f32, rows = 32, columns = 1>]
  lm.weight @inv_freq [8] encoding <f32> layout row value dense<[1.0, 0.5, 0.25, 0.125, 0.1, 0.01, 0.001, 0.0001]> : tensor<8xf32>
  lm.state @kv0 {layers = 1 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, dtype = f16, window = 64 : i64}
  lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x32xf32> {
    %h = lm.embed %tokens, @embed : tensor<?x32xf32>
    %s = lm.select_rows %h : tensor<?x32xf32>
    lm.return %s : tensor<?x32xf32>
  }
}
