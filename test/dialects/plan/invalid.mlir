// RUN: ingot-opt %s -split-input-file -verify-diagnostics

// Each constraint of the plan dialect, by its label.
// -----

// A hash of another length.
// expected-error @below {{source_c2: expected 16 lower-case hexadecimal digits}}
plan.source @s name "m" size 1 hash "abc"
// -----

// A negative size.
// expected-error @below {{source_c1: expected a size, found -1}}
plan.source @s name "m" size -1 hash "2d06800538d394c2"
// -----

// A float encoding with a group.
// expected-error @below {{encoding_c1: f16 has no group, found 32}}
plan.weight @w encoding <f16, group = 32> layout r16 rows 4 columns 8 parts []
// -----

// An integer encoding without a group.
// expected-error @below {{encoding_c1: expected a group that is a positive multiple of 32, found 0}}
plan.weight @w encoding <i8> layout r16 rows 4 columns 8 parts []
// -----

// Minima of int8.
// expected-error @below {{encoding_c2: only i4 has minima, found i8}}
plan.weight @w encoding <i8, group = 32, minimum> layout r16 rows 4 columns 8 parts []
// -----

// A part whose size does not fit its shape.
// expected-error @below {{part_c1: expected 128 bytes for 4 x 8 f32, found 127}}
module attributes {test.part = #plan.part<source = @s, name = "w", offset = 0, size = 127, stored = f32, rows = 4, columns = 8>} {}
// -----

// A part that ends inside a block.
// expected-error @below {{part_c2: expected columns in whole blocks of 32, found 8}}
module attributes {test.part = #plan.part<source = @s, name = "w", offset = 0, size = 136, stored = q8_0, rows = 4, columns = 8>} {}
// -----

// Rows of a fused tensor past its end.
// expected-error @below {{part_c4: rows in runs of 2 every 4 from 4 are not within 6 stored rows}}
module attributes {test.part = #plan.part<source = @s, name = "w", offset = 0, size = 192, stored = f32, rows = 4, columns = 8, stored_rows = 6, first = 4, run = 2, stride = 4>} {}
// -----

// Blocks lie along rows.
// expected-error @below {{part_c4: a transposed tensor has no blocks and no permutation}}
module attributes {test.part = #plan.part<source = @s, name = "w", offset = 0, size = 136, stored = q8_0, rows = 4, columns = 32, transposed = true>} {}
// -----

// Heads of an odd number of rows.
// expected-error @below {{part_c3: expected heads of an even number of rows, found 4 rows in 4 heads}}
module attributes {test.part = #plan.part<source = @s, name = "w", offset = 0, size = 128, stored = f32, rows = 4, columns = 8, permute = 4>} {}
// -----

// Details with a key that is not known.
// expected-error @below {{part_c5: details: has keys that are not known}}
module attributes {test.part = #plan.part<source = @s, name = "w", offset = 0, size = 128, stored = f32, rows = 4, columns = 8, details = {colour = "red"}>} {}
// -----

// Codes without their scales.
// expected-error @below {{part_c5: expected details of codes exactly for the form codes, found codes}}
module attributes {test.part = #plan.part<source = @s, name = "w", offset = 0, size = 128, stored = codes, rows = 4, columns = 8>} {}
// -----

// An adapter that leaves its source.
plan.source @src0 name "m" size 65536 hash "2d06800538d394c2"
// expected-error @below {{weight_c6: tensor "b" does not lie within a plan.source @src0}}
plan.weight @w encoding <f32> layout r16 rows 4 columns 8 parts [#plan.part<source = @src0, name = "w", offset = 0, size = 128, stored = f32, rows = 4, columns = 8, details = {adapters = [{a = {name = "a", offset = 0 : i64, size = 64 : i64, source = @src0, type = "f32"}, b = {name = "b", offset = 65536 : i64, size = 32 : i64, source = @src0, type = "f32"}, rank = 2 : i64, scale = 5.000000e-01 : f32, transposed = false}]}>]
// -----

// A plane that is not aligned.
// expected-error @below {{placement_c1: expected planes that start at multiples of 64, found 32, 0, 0}}
module attributes {test.place = #plan.placement<offset = 32, size = 64, scales = 0, mins = 0>} {}
// -----

// Planes out of order.
// expected-error @below {{placement_c1: expected planes in order within 256 bytes, found 128, 64}}
module attributes {test.place = #plan.placement<offset = 0, size = 256, scales = 128, mins = 64>} {}
// -----

// An empty range of rows.
// expected-error @below {{variant_c1: expected 1 <= first <= last (or last 0), found 4, 3}}
module attributes {test.variant = #plan.variant<4, 3, @k>} {}
// -----

// Rows without columns.
// expected-error @below {{rows_c1: expected between 1 and 2^31 - 1 columns, found 0}}
module attributes {test.type = !plan.rows<0>} {}
// -----

// A group that the codes do not have.
// expected-error @below {{quantized_rows_c1: expected a group that is a positive multiple of 32, found 48}}
module attributes {test.type = !plan.quantized_rows<64, group = 48, bits = 16>} {}
// -----

// Codes of no known size.
// expected-error @below {{quantized_rows_c2: expected codes of 8 or 16 bits, found 4}}
module attributes {test.type = !plan.quantized_rows<64, group = 32, bits = 4>} {}
// -----

// A weight without rows.
plan.source @src0 name "m" size 65536 hash "2d06800538d394c2"
// expected-error @below {{weight_c1: expected between 1 and 2^31 - 1 rows and columns, found 0 x 8}}
plan.weight @w encoding <f32> layout r16 rows 0 columns 8 parts [#plan.part<source = @src0, name = "w", offset = 0, size = 128, stored = f32, rows = 4, columns = 8>]
// -----

// A weight of nothing.
// expected-error @below {{weight_c2: expected either parts or a value}}
plan.weight @w encoding <f32> layout r16 rows 4 columns 8
// -----

// Parts of other columns.
plan.source @src0 name "m" size 65536 hash "2d06800538d394c2"
// expected-error @below {{weight_c3: expected parts of 9 columns, found 8}}
plan.weight @w encoding <f32> layout r16 rows 4 columns 9 parts [#plan.part<source = @src0, name = "w", offset = 0, size = 128, stored = f32, rows = 4, columns = 8>]
// -----

// Parts with too few rows.
plan.source @src0 name "m" size 65536 hash "2d06800538d394c2"
// expected-error @below {{weight_c3: expected parts of 5 rows together, found 4}}
plan.weight @w encoding <f32> layout r16 rows 5 columns 8 parts [#plan.part<source = @src0, name = "w", offset = 0, size = 128, stored = f32, rows = 4, columns = 8>]
// -----

// A value of another size.
// expected-error @below {{weight_c4: expected a value of 2 elements, found 1}}
plan.weight @w encoding <f32> layout row rows 2 columns 1 value dense<[1.0]> : tensor<1xf32>
// -----

// A value of integers.
// expected-error @below {{weight_c4: expected a value of dense float32, found 'tensor<2xi32>'}}
plan.weight @w encoding <f32> layout row rows 2 columns 1 value dense<1> : tensor<2xi32>

// -----

// A value in float16.
// expected-error @below {{weight_c4: expected a value in f32, found f16}}
plan.weight @w encoding <f16> layout r16 rows 1 columns 1 value dense<[1.0]> : tensor<1xf32>
// -----

// Plain rows of float16.
plan.source @src0 name "m" size 65536 hash "2d06800538d394c2"
// expected-error @below {{weight_c5: layout row holds f32, found f16}}
plan.weight @w encoding <f16> layout row rows 4 columns 8 parts [#plan.part<source = @src0, name = "w", offset = 0, size = 128, stored = f32, rows = 4, columns = 8>]
// -----

// A part of no source.
// expected-error @below {{weight_c6: expected a plan.source @src0}}
plan.weight @w encoding <f32> layout r16 rows 4 columns 8 parts [#plan.part<source = @src0, name = "w", offset = 0, size = 128, stored = f32, rows = 4, columns = 8>]
// -----

// A part that leaves its source.
// expected-note @below {{which has 100 bytes}}
plan.source @src0 name "m" size 100 hash "2d06800538d394c2"
// expected-error @below {{weight_c6: part "w" ends at 128, past the source}}
plan.weight @w encoding <f32> layout r16 rows 4 columns 8 parts [#plan.part<source = @src0, name = "w", offset = 0, size = 128, stored = f32, rows = 4, columns = 8>]
// -----

// An unknown method.
plan.source @src0 name "m" size 65536 hash "2d06800538d394c2"
// expected-error @below {{weight_c7: expected method "rtn" or "stored", found "magic"}}
plan.weight @w encoding <f32> layout r16 rows 4 columns 8 method "magic" parts [#plan.part<source = @src0, name = "w", offset = 0, size = 128, stored = f32, rows = 4, columns = 8>]
// -----

// A state without heads.
// expected-error @below {{state_c1: expected kv_heads between 1 and 2^24 - 1, found 0}}
plan.state @s layers 1 kv_heads 0 head_dim 8 dtype f16 window 0
// -----

// A negative window.
// expected-error @below {{state_c1: expected a window of 0 to 2^31 - 1, found -1}}
plan.state @s layers 1 kv_heads 1 head_dim 8 dtype f16 window -1
// -----

// A level twice.
// expected-error @below {{target_c1: level "a" stands twice}}
plan.target @cpu layout "r16" levels ["a", "a"] logits @logits {
  plan.buffer @logits domain logit_row : !plan.rows<64>
  plan.segment @main {
  }
}
// -----

// No level.
// expected-error @below {{target_c1: expected at least one level}}
plan.target @cpu layout "r16" levels [] logits @logits {
  plan.buffer @logits domain logit_row : !plan.rows<64>
  plan.segment @main {
  }
}
// -----

// No logits.
// expected-error @below {{target_c2: expected a plan.buffer @logits}}
plan.target @cpu layout "r16" levels ["a"] logits @logits {
  plan.segment @main {
  }
}
// -----

// Logits for every token.
// expected-error @below {{target_c2: expected logits as float32 rows in the domain logit_row}}
plan.target @cpu layout "r16" levels ["a"] logits @logits {
  plan.buffer @logits domain token : !plan.rows<64>
  plan.segment @main {
  }
}
// -----

// Something else in a target.
plan.target @cpu layout "r16" levels ["a"] logits @logits {
  plan.buffer @logits domain logit_row : !plan.rows<64>
  // expected-error @below {{target_c3: a target holds buffers, kernels and segments only}}
  plan.source @s name "m" size 1 hash "2d06800538d394c2"
  plan.segment @main {
  }
}
// -----

// No segment.
// expected-error @below {{target_c3: expected at least one segment}}
plan.target @cpu layout "r16" levels ["a"] logits @logits {
  plan.buffer @logits domain logit_row : !plan.rows<64>
}
// -----

// One arena of two.
// expected-error @below {{target_c4: expected the sizes of both arenas or of none}}
plan.target @cpu layout "r16" levels ["a"] logits @logits token_arena_bytes 64 {
  plan.buffer @logits domain logit_row : !plan.rows<64>
  plan.segment @main {
  }
}
// -----

// A buffer without a place.
plan.target @cpu layout "r16" levels ["a"] logits @logits token_arena_bytes 64 logit_row_arena_bytes 256 {
  // expected-error @below {{target_c4: expected an offset}}
  plan.buffer @logits domain logit_row : !plan.rows<64>
  plan.segment @main {
  }
}
// -----

// A buffer off the cache line.
plan.target @cpu layout "r16" levels ["a"] logits @logits token_arena_bytes 64 logit_row_arena_bytes 256 {
  // expected-error @below {{target_c4: expected an offset that is a multiple of 64, found 4}}
  plan.buffer @logits domain logit_row offset 4 : !plan.rows<64>
  plan.segment @main {
  }
}
// -----

// A buffer past its arena.
plan.target @cpu layout "r16" levels ["a"] logits @logits token_arena_bytes 64 logit_row_arena_bytes 256 {
  // expected-error @below {{target_c4: rows end at 320, past the arena of 256 bytes}}
  plan.buffer @logits domain logit_row offset 64 : !plan.rows<64>
  plan.segment @main {
  }
}
// -----

// Segments that do not meet.
plan.target @cpu layout "r16" levels ["a"] logits @logits {
  plan.buffer @logits domain logit_row : !plan.rows<64>
  plan.buffer @h domain token : !plan.rows<8>
  plan.segment @early output @h {
  }
  // expected-error @below {{target_c5: expected the output of segment @early as input}}
  plan.segment @main {
  }
}
// -----

// A buffer of bytes.
plan.target @cpu layout "r16" levels ["a"] logits @logits {
  // expected-error @below {{buffer_c1: expected !plan.rows or !plan.quantized_rows, found 'i8'}}
  plan.buffer @b domain token : i8
  plan.buffer @logits domain logit_row : !plan.rows<64>
  plan.segment @main {
  }
}
// -----

// A negative offset.
plan.target @cpu layout "r16" levels ["a"] logits @logits {
  // expected-error @below {{buffer_c2: expected an offset that is not negative, found -64}}
  plan.buffer @b domain token offset -64 : !plan.rows<8>
  plan.buffer @logits domain logit_row : !plan.rows<64>
  plan.segment @main {
  }
}
// -----

// A kernel of no operation.
plan.target @cpu layout "r16" levels ["a"] logits @logits {
  // expected-error @below {{kernel_c1: no launch operation is named "dance"}}
  plan.kernel @k op "dance" config {} scratch 0
  plan.buffer @logits domain logit_row : !plan.rows<64>
  plan.segment @main {
  }
}
// -----

// Negative scratch.
plan.target @cpu layout "r16" levels ["a"] logits @logits {
  // expected-error @below {{kernel_c1: expected a scratch size of 32 bits, found -1}}
  plan.kernel @k op "embed" config {} scratch -1
  plan.buffer @logits domain logit_row : !plan.rows<64>
  plan.segment @main {
  }
}
// -----

// A buffer in a segment.
plan.target @cpu layout "r16" levels ["a"] logits @logits {
  plan.buffer @logits domain logit_row : !plan.rows<64>
  plan.segment @main {
    // expected-error @below {{segment_c1: a segment holds launches only}}
    builtin.module {}
  }
}
// -----

// A cut at no buffer.
plan.target @cpu layout "r16" levels ["a"] logits @logits {
  plan.buffer @logits domain logit_row : !plan.rows<64>
  // expected-error @below {{segment_c2: expected a plan.buffer @h of float32 rows in the domain token}}
  plan.segment @main input @h {
  }
}
// -----

// A head of nothing.
plan.target @cpu layout "r16" levels ["a"] logits @logits {
  plan.buffer @h domain token : !plan.rows<64>
  plan.buffer @rest domain token : !plan.rows<64>
  plan.buffer @logits domain logit_row : !plan.rows<64>
  plan.kernel @gather op "gather_rows" config {} scratch 0
  plan.segment @early output @h {
  }
  // expected-error @below {{segment_c3: expected the head or the fill of a segment before it that has an output, and none of its own}}
  plan.segment @head head_of @late layers 1 input @h {
  }
  plan.segment @late input @h {
  }
}
// -----

// A head elsewhere than at the cut.
plan.target @cpu layout "r16" levels ["a"] logits @logits {
  plan.buffer @h domain token : !plan.rows<64>
  plan.buffer @rest domain token : !plan.rows<64>
  plan.buffer @logits domain logit_row : !plan.rows<64>
  plan.kernel @gather op "gather_rows" config {} scratch 0
  plan.segment @early output @h {
  }
  // expected-error @below {{target_c5: expected the output of segment @early as input}}
  plan.segment @head head_of @early layers 1 input @rest {
  }
  plan.segment @late input @h {
  }
}
// -----

// A head without logits.
plan.target @cpu layout "r16" levels ["a"] logits @logits {
  plan.buffer @h domain token : !plan.rows<64>
  plan.buffer @rest domain token : !plan.rows<64>
  plan.buffer @logits domain logit_row : !plan.rows<64>
  plan.kernel @gather op "gather_rows" config {} scratch 0
  plan.segment @early output @h {
  }
  // expected-error @below {{segment_c4: expected a head that writes the logits @logits}}
  plan.segment @head head_of @early layers 1 input @h {
  }
  plan.segment @late input @h {
  }
}
// -----

// A head behind no layer.
plan.target @cpu layout "r16" levels ["a"] logits @logits {
  plan.buffer @h domain token : !plan.rows<64>
  plan.buffer @rest domain token : !plan.rows<64>
  plan.buffer @logits domain logit_row : !plan.rows<64>
  plan.kernel @gather op "gather_rows" config {} scratch 0
  plan.segment @early output @h {
  }
  // expected-error @below {{segment_c4: expected more than 0 layers before the head}}
  plan.segment @head head_of @early layers 0 input @h {
    plan.gather_rows @h to @logits width = 64 variants [#plan.variant<1, 0, @gather>]
  }
  plan.segment @late input @h {
  }
}
// -----

// Layers of a segment that is no head.
plan.target @cpu layout "r16" levels ["a"] logits @logits {
  plan.buffer @h domain token : !plan.rows<64>
  plan.buffer @rest domain token : !plan.rows<64>
  plan.buffer @logits domain logit_row : !plan.rows<64>
  plan.kernel @gather op "gather_rows" config {} scratch 0
  // expected-error @below {{segment_c4: has layers or confidences and is no head}}
  plan.segment @early layers 1 output @h {
  }
}
// -----

// A fill without a head.
plan.target @cpu layout "r16" levels ["a"] logits @logits {
  plan.buffer @h domain token : !plan.rows<64>
  plan.buffer @rest domain token : !plan.rows<64>
  plan.buffer @logits domain logit_row : !plan.rows<64>
  plan.kernel @gather op "gather_rows" config {} scratch 0
  plan.segment @early output @h {
  }
  // expected-error @below {{segment_c5: expected one head and at most one fill, after it, of segment @early}}
  plan.segment @fill fill_of @early input @h {
  }
  plan.segment @late input @h {
  }
}
// -----

// An unknown attribute.
// expected-error @below {{unknown attribute 'plan.mood' (plan.model or plan.provenance)}}
module attributes {plan.mood = 1 : i64} {}
// -----

// Half a provenance.
// expected-error @below {{plan.provenance: expected a dictionary of the strings compiler and pipeline}}
module attributes {plan.provenance = {compiler = "x"}} {}
// -----

// A model that is no dictionary.
// expected-error @below {{plan.model: }}
module attributes {plan.model = 1 : i64} {}

// -----

// No slot at all.
// expected-error @below {{target_c6: expected positive slots, found 0}}
plan.target @cpu layout "r16" levels ["a"] logits @logits attributes {slots = 0 : i64} {
  plan.buffer @logits domain logit_row : !plan.rows<8>
  plan.segment @main {
  }
}
// -----

// Half rows without columns.
// expected-error @below {{half_rows_c1: expected between 1 and 2^31 - 1 columns, found 0}}
module attributes {test.type = !plan.half_rows<0>} {}
// -----

// A kernel for two parts, and rows of one.
plan.source @src0 name "m" size 65536 hash "2d06800538d394c2"
plan.weight @w encoding <f16> layout mma16 rows 16 columns 8 parts [#plan.part<source = @src0, name = "w", offset = 0, size = 256, stored = f16, rows = 16, columns = 8>]
plan.target @cuda layout "mma16" levels ["sm_90"] logits @y {
  plan.buffer @x domain logit_row : !plan.half_rows<8>
  plan.buffer @y domain logit_row : !plan.rows<16>
  plan.kernel @linear_f16x2_t8 op "linear" config {} scratch 0 geometry <threads = 128, shared = 0, rows = 32, tokens = 8>
  plan.segment @main {
    // expected-error @below {{linear_c11: kernel @linear_f16x2_t8 reads half rows of two parts, found '!plan.half_rows<8>'}}
    plan.linear @x weight @w to @y k = 8 n = 16 column = 0 domain = logit_row variants [#plan.variant<1, 0, @linear_f16x2_t8>]
  }
}
// -----

// Experts whose kernel wants two parts, and rows of one.
plan.source @src0 name "m" size 65536 hash "2d06800538d394c2"
plan.weight @w encoding <f16> layout mma16 rows 32 columns 8 parts [#plan.part<source = @src0, name = "w", offset = 0, size = 512, stored = f16, rows = 32, columns = 8>]
plan.target @cuda layout "mma16" levels ["sm_90"] logits @y {
  plan.buffer @x domain slot : !plan.half_rows<8>
  plan.buffer @order domain token : !plan.rows<5>
  plan.buffer @y domain slot : !plan.rows<16>
  plan.kernel @expert_linear_f16x2_t8 op "expert_linear" config {} scratch 0 geometry <threads = 128, shared = 0, rows = 32, tokens = 8>
  plan.segment @main {
    // expected-error @below {{expert_linear_c8: kernel @expert_linear_f16x2_t8 reads half rows of two parts, found '!plan.half_rows<8>'}}
    plan.expert_linear @x order @order weight @w to @y k = 8 n = 16 experts = 2 top_k = 1 variants [#plan.variant<1, 0, @expert_linear_f16x2_t8>]
  }
}
// -----

// Slots of two parts, of rows that have one.
plan.target @cuda layout "mma16" levels ["sm_90"] logits @y {
  plan.buffer @x domain token : !plan.half_rows<8>
  plan.buffer @order domain token : !plan.rows<5>
  plan.buffer @slots domain slot : !plan.half_rows<8, parts = 2>
  plan.buffer @y domain logit_row : !plan.rows<16>
  plan.kernel @dispatch op "dispatch" config {} scratch 0 geometry <threads = 256, shared = 0, rows = 1, tokens = 1>
  plan.segment @main {
    // expected-error @below {{dispatch_c6: expected input @x with as many parts as the output has, found '!plan.half_rows<8>' and '!plan.half_rows<8, parts = 2>'}}
    plan.dispatch @x order @order to @slots width = 8 experts = 2 top_k = 1 variants [#plan.variant<1, 0, @dispatch>]
  }
}
// -----

// Slots of half rows, of rows that are floats.
plan.target @cuda layout "mma16" levels ["sm_90"] logits @y {
  plan.buffer @x domain token : !plan.rows<8>
  plan.buffer @order domain token : !plan.rows<5>
  plan.buffer @slots domain slot : !plan.half_rows<8>
  plan.buffer @y domain logit_row : !plan.rows<16>
  plan.kernel @dispatch op "dispatch" config {} scratch 0 geometry <threads = 256, shared = 0, rows = 1, tokens = 1>
  plan.segment @main {
    // expected-error @below {{dispatch_c6: expected input @x as half rows of 8 columns, found '!plan.rows<8>'}}
    plan.dispatch @x order @order to @slots width = 8 experts = 2 top_k = 1 variants [#plan.variant<1, 0, @dispatch>]
  }
}
// -----

// Three parts.
// expected-error @below {{half_rows_c2: expected 1 or 2 parts, found 3}}
module attributes {test.type = !plan.half_rows<8, parts = 3>} {}
// -----

// Half a warp.
// expected-error @below {{geometry_c1: expected whole warps up to 1024 threads, at most 227 KiB and tiles of 1 to 1024, found 48 threads, 0 bytes, 1 x 1}}
module attributes {test.geometry = #plan.geometry<threads = 48, shared = 0, rows = 1, tokens = 1>} {}
// -----

// Floats in tiles of tensor cores.
plan.source @src0 name "m" size 65536 hash "2d06800538d394c2"
// expected-error @below {{weight_c8: layout mma16 holds no f32}}
plan.weight @w encoding <f32> layout mma16 rows 4 columns 8 parts [#plan.part<source = @src0, name = "w", offset = 0, size = 128, stored = f32, rows = 4, columns = 8>]
// -----

// A level of the cpu for CUDA devices.
// expected-error @below {{target_c7: level "x86-64-v3" is no chip}}
plan.target @cuda layout "mma16" levels ["x86-64-v3"] logits @logits {
  plan.buffer @logits domain logit_row : !plan.rows<8>
  plan.segment @main {
  }
}
// -----

// Half rows on the cpu.
plan.target @cpu layout "r16" levels ["a"] logits @logits {
  // expected-error @below {{buffer_c1: expected !plan.rows or !plan.quantized_rows, found '!plan.half_rows<8>'}}
  plan.buffer @b domain token : !plan.half_rows<8>
  plan.buffer @logits domain logit_row : !plan.rows<8>
  plan.segment @main {
  }
}
// -----

// Codes on CUDA devices.
plan.target @cuda layout "mma16" levels ["sm_90"] logits @logits {
  // expected-error @below {{buffer_c1: expected !plan.rows or !plan.half_rows, found '!plan.quantized_rows<32, group = 32, bits = 8>'}}
  plan.buffer @b domain token : !plan.quantized_rows<32, group = 32, bits = 8>
  plan.buffer @logits domain logit_row : !plan.rows<8>
  plan.segment @main {
  }
}
// -----

// A CUDA kernel that cannot be launched.
plan.target @cuda layout "mma16" levels ["sm_90"] logits @logits {
  plan.buffer @logits domain logit_row : !plan.rows<8>
  // expected-error @below {{kernel_c2: expected a geometry in the target @cuda}}
  plan.kernel @add op "add" config {} scratch 0
  plan.segment @main {
  }
}
// -----

// A geometry on the cpu.
plan.target @cpu layout "r16" levels ["a"] logits @logits {
  plan.buffer @logits domain logit_row : !plan.rows<8>
  // expected-error @below {{kernel_c2: expected no geometry outside the target @cuda}}
  plan.kernel @add op "add" config {} scratch 0 geometry <threads = 256, shared = 0, rows = 1, tokens = 1>
  plan.segment @main {
  }
}
// -----

// Attention without the kernel that merges.
plan.state @kv layers 1 kv_heads 1 head_dim 8 dtype f16 window 0
plan.target @cuda layout "mma16" levels ["sm_90"] logits @logits {
  plan.buffer @q domain token : !plan.rows<8>
  plan.buffer @a domain token : !plan.rows<8>
  plan.buffer @logits domain logit_row : !plan.rows<8>
  plan.kernel @wide op "attention" config {} scratch 0 geometry <threads = 128, shared = 0, rows = 64, tokens = 1>
  plan.kernel @split op "attention_split" config {} scratch 0 geometry <threads = 128, shared = 0, rows = 16, tokens = 1>
  plan.segment @main {
    // expected-error @below {{attention_c10: expected a kernel for attention_merge in the target @cuda and in no other}}
    plan.attention @q state @kv layer 0 to @a heads = 1 kv_heads = 1 head_dim = 8 window = 0 scale = 1.0 soft_cap = 0.0 variants [#plan.variant<1, 0, @wide>] split @split
  }
}
// -----

// A kernel of another operation.
plan.state @kv layers 1 kv_heads 1 head_dim 8 dtype f16 window 0
plan.target @cuda layout "mma16" levels ["sm_90"] logits @logits {
  plan.buffer @q domain token : !plan.rows<8>
  plan.buffer @a domain token : !plan.rows<8>
  plan.buffer @logits domain logit_row : !plan.rows<8>
  plan.kernel @wide op "attention" config {} scratch 0 geometry <threads = 128, shared = 0, rows = 64, tokens = 1>
  plan.segment @main {
    // expected-error @below {{attention_c10: expected a plan.kernel @wide that is for "attention_split"}}
    plan.attention @q state @kv layer 0 to @a heads = 1 kv_heads = 1 head_dim = 8 window = 0 scale = 1.0 soft_cap = 0.0 variants [#plan.variant<1, 0, @wide>] split @wide merge @wide
  }
}
// -----

// Attention into half rows alone.
plan.state @kv layers 1 kv_heads 1 head_dim 8 dtype f16 window 0
plan.target @cuda layout "mma16" levels ["sm_90"] logits @logits {
  plan.buffer @q domain token : !plan.rows<8>
  plan.buffer @a domain token : !plan.half_rows<8>
  plan.buffer @logits domain logit_row : !plan.rows<8>
  plan.kernel @wide op "attention" config {} scratch 0 geometry <threads = 128, shared = 0, rows = 64, tokens = 1>
  plan.kernel @split op "attention_split" config {} scratch 0 geometry <threads = 128, shared = 0, rows = 16, tokens = 1>
  plan.kernel @merge op "attention_merge" config {} scratch 0 geometry <threads = 256, shared = 0, rows = 1, tokens = 1>
  plan.segment @main {
    // expected-error @below {{attention_c10: expected a float32 output and heads of whole eights, found heads of 8}}
    plan.attention @q state @kv layer 0 quantized @a heads = 1 kv_heads = 1 head_dim = 8 window = 0 scale = 1.0 soft_cap = 0.0 variants [#plan.variant<1, 0, @wide>] split @split merge @merge
  }
}
