// RUN: ingot-opt %s -split-input-file -verify-phase=after=compress -verify-diagnostics

// Integer encodings read quantised rows.
module attributes {lm.model = {family = "f", name = "n", architecture = "a", vocab = 1 : i64, hidden = 1 : i64, context = 1 : i64, tied_head = true, parameters = 1 : i64, eos = array<i64: 2>, source_bytes = 1 : i64, sampling = {}, layers = [], tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @i8 [64, 64] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src0, name = "i8", offset = 0, size = 4352, stored = q8_0, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  // expected-error@+1 {{'lm.linear' op reads float32 rows with a weight of i8-g32 after compress}}
  %y = lm.linear %x, @i8 : tensor<?x64xf32> -> tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}
}

// -----

// Quantised rows pass.
module attributes {lm.model = {family = "f", name = "n", architecture = "a", vocab = 1 : i64, hidden = 1 : i64, context = 1 : i64, tied_head = true, parameters = 1 : i64, eos = array<i64: 2>, source_bytes = 1 : i64, sampling = {}, layers = [], tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @i8 [64, 64] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src0, name = "i8", offset = 0, size = 4352, stored = q8_0, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %a = lm.quantize %x : tensor<?x64xf32> -> !lm.quantized<64, group = 32, bits = 16>
  %y = lm.linear %a, @i8 : !lm.quantized<64, group = 32, bits = 16> -> tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}
}

// -----

// So do experts.
module attributes {lm.model = {family = "f", name = "n", architecture = "a", vocab = 1 : i64, hidden = 1 : i64, context = 1 : i64, tied_head = true, parameters = 1 : i64, eos = array<i64: 2>, source_bytes = 1 : i64, sampling = {}, layers = [], tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @router [4, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "r", offset = 0, size = 1024, stored = f32, rows = 4, columns = 64>]
lm.weight @i8 [64, 64] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src0, name = "i8", offset = 0, size = 4352, stored = q8_0, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %l = lm.linear %x, @router : tensor<?x64xf32> -> tensor<?x4xf32>
  %r = lm.route %l {top_k = 2 : i64} : tensor<?x4xf32> -> tensor<?x4xf32>
  %d = lm.dispatch %x, %r : tensor<?x64xf32>, tensor<?x4xf32>
  // expected-error@+1 {{'lm.expert_linear' op reads float32 rows with a weight of i8-g32 after compress}}
  %y = lm.expert_linear %d, %r, @i8 : tensor<?x64xf32>, tensor<?x4xf32> -> tensor<?x16xf32>
  lm.return %x : tensor<?x64xf32>
}
}
