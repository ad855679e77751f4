// RUN: ingot-opt %s -split-input-file -verify-diagnostics

// A file has no negative size.
// expected-error@+1 {{source_c1: size -1 is negative}}
lm.source @src {name = "a", size = -1 : i64, hash = "00000000deadbeef"}

// -----

// A hash is not in capitals.
// expected-error@+1 {{source_c2: hash must be 16 lower-case hexadecimal digits, found "00000000DEADBEEF"}}
lm.source @src {name = "a", size = 1 : i64, hash = "00000000DEADBEEF"}

// -----

// A hash is not short.
// expected-error@+1 {{source_c2:}}
lm.source @src {name = "a", size = 1 : i64, hash = "00"}

// -----

// An integer encoding needs a group.
// expected-error@+1 {{encoding_c1: the group of i8 must be a positive multiple of 32, found 0}}
lm.weight @w [1, 64] encoding <i8> layout r16

// -----

// A group is a multiple of 32.
// expected-error@+1 {{encoding_c1: the group of i4 must be a positive multiple of 32, found 48}}
lm.weight @w [1, 64] encoding <i4, group = 48> layout r16

// -----

// A float encoding has no group.
// expected-error@+1 {{encoding_c2: f16 has no group, found 32}}
lm.weight @w [1, 64] encoding <f16, group = 32> layout r16

// -----

// Only i4 has a minimum.
// expected-error@+1 {{encoding_c3: only i4 has a minimum, found i8}}
lm.weight @w [1, 64] encoding <i8, group = 32, minimum> layout r16

// -----

// An unknown code is named.
// expected-error@+1 {{unknown code 'f8', expected f32, f16, bf16, i8 or i4}}
lm.weight @w [1, 64] encoding <f8> layout r16

// -----

// An unknown key of an encoding is named.
// expected-error@+1 {{unexpected 'zero', expected group, then minimum}}
lm.weight @w [1, 64] encoding <i8, zero = 1> layout r16

// -----

// A part of no rows.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
// expected-error@+1 {{part_c1:}}
lm.weight @w [1, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 0, stored = f32, rows = 0, columns = 64>]

// -----

// A part whose bytes do not match its elements.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
// expected-error@+1 {{part_c1: "t" of 64x64 f32 elements must be whole blocks of 1 in exactly their bytes, found 4 bytes at offset 0}}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 4, stored = f32, rows = 64, columns = 64>]

// -----

// Columns that are not whole blocks.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
// expected-error@+1 {{part_c1: "t" of 64x40 q8_0}}
lm.weight @w [64, 40] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 2720, stored = q8_0, rows = 64, columns = 40>]

// -----

// Sizes whose product overflows.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
// expected-error@+1 {{part_c1:}}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 0, stored = f32, rows = 4611686018427387904, columns = 4>]

// -----

// Heads do not divide the rows.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
// expected-error@+1 {{part_c2: 64 rows are not 3 heads of an even number of rows}}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64, permute = 3>]

// -----

// Heads of an odd number of rows.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
// expected-error@+1 {{part_c2: 64 rows are not 64 heads of an even number of rows}}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64, permute = 64>]

// -----

// A weight of three dimensions.
// expected-error@+1 {{weight_c1: shape must have one or two positive dimensions, found [1, 2, 3]}}
lm.weight @w [1, 2, 3] encoding <f32> layout row value dense<1.0> : tensor<1x2x3xf32>

// -----

// A weight of an empty dimension.
// expected-error@+1 {{weight_c1:}}
lm.weight @w [0] encoding <f32> layout row value dense<1.0> : tensor<0xf32>

// -----

// A weight of nothing.
// expected-error@+1 {{weight_c2: either parts or a value must be given}}
lm.weight @w [64] encoding <f32> layout row

// -----

// A value of another shape.
// expected-error@+1 {{weight_c2: the value must be dense f32 of shape [64], found 'tensor<8xf32>'}}
lm.weight @w [64] encoding <f32> layout row value dense<1.0> : tensor<8xf32>

// -----

// A value of another type.
// expected-error@+1 {{weight_c2:}}
lm.weight @w [8] encoding <f32> layout row value dense<1> : tensor<8xi32>

// -----

// A part of other columns.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
// expected-error@+1 {{weight_c3: part "t" has 64 columns, expected 32}}
lm.weight @w [64, 32] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]

// -----

// Parts of too few rows.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
// expected-error@+1 {{weight_c3: the parts have 64 rows, expected 65}}
lm.weight @w [65, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]

// -----

// A part of a symbol that is no file.
// expected-error@+1 {{weight_c4: @src is not an lm.source}}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]

// -----

// A part past the end of its file.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
// expected-error@+1 {{weight_c4: part "t" at [49153, +16384) is past the end of @src (65536 bytes)}}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 49153, size = 16384, stored = f32, rows = 64, columns = 64>]

// -----

// A vector is not interleaved.
// expected-error@+1 {{weight_c5: a vector is of a float encoding and layout row, found f32 and r16}}
lm.weight @w [8] encoding <f32> layout r16 value dense<1.0> : tensor<8xf32>

// -----

// An integer encoding is not in plain rows.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
// expected-error@+1 {{weight_c5: an integer encoding needs layout r16}}
lm.weight @w [64, 64] encoding <i8, group = 32> layout row parts [#lm.part<source = @src, name = "t", offset = 0, size = 4352, stored = q8_0, rows = 64, columns = 64>]

// -----

// A conversion that loses something names its method.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
// expected-error@+1 {{weight_c6: part "t" is stored as f32; its conversion to i8-g32 names no method}}
lm.weight @w [64, 64] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]

// -----

// The conversion of a value too.
// expected-error@+1 {{weight_c6: the conversion of a value to i8-g32 names no method}}
lm.weight @w [1, 32] encoding <i8, group = 32> layout r16 value dense<1.0> : tensor<1x32xf32>

// -----

// A method is a known one.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
// expected-error@+1 {{weight_c6: unknown method "guess", expected "rtn"}}
lm.weight @w [64, 64] encoding <i8, group = 32> layout r16 method "guess" parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]

// -----

// Quantised rows have columns.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{quantized_c1: columns (0) and group (32) must be positive}}
  %q = lm.quantize %x : tensor<?x64xf32> -> !lm.quantized<0, group = 32, bits = 16>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Codes have 8 or 16 bits.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{quantized_c2: codes have 8 or 16 bits, found 12}}
  %q = lm.quantize %x : tensor<?x64xf32> -> !lm.quantized<64, group = 32, bits = 12>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A state has layers.
// expected-error@+1 {{state_c1: layers, kv_heads and head_dim must be positive and window not negative}}
lm.state @kv {layers = 0 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}

// -----

// A state keeps no negative number of positions.
// expected-error@+1 {{state_c1:}}
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = -8 : i64}

// -----

// A state is of floats.
// expected-error@+1 {{state_c2: dtype must be f16, f32 or i8, found 'bf16'}}
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = bf16, window = 8 : i64}

// -----

// A program takes two rows of tokens.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
// expected-error@+1 {{program_c1: it takes token ids and positions, tensor<?xi32> each, found}}
lm.program @main(%tokens: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A program returns one result.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
// expected-error@+1 {{program_c2: it returns one tensor<?xVxf32>, found}}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Selected rows and all rows do not mix.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %s = lm.select_rows %x : tensor<?x64xf32>
  // expected-error@+1 {{program_c3: reads selected rows together with rows of all tokens}}
  %y = lm.add %x, %s : tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A cut is of all rows.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %s = lm.select_rows %x : tensor<?x64xf32>
  // expected-error@+1 {{program_c3: cannot work on selected rows}}
  %y = lm.cut "c" %s : tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Rows are selected once.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %s = lm.select_rows %x : tensor<?x64xf32>
  // expected-error@+1 {{select_rows_c1: the input's rows are selected already}}
  %y = lm.select_rows %s : tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Rows are pooled once.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %s = lm.select_rows %x : tensor<?x64xf32>
  // expected-error@+1 {{pool_c1: the input's rows are selected already}}
  %y = lm.pool mean %s : tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// What is pooled is not joined with rows of all tokens.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %s = lm.pool cls %x : tensor<?x64xf32>
  // expected-error@+1 {{program_c3: reads selected rows together with rows of all tokens}}
  %y = lm.add %x, %s : tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}

// -----

// A bias is a vector of the table's columns.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
// expected-note@+1 {{the weight is here}}
lm.weight @v16 [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  // expected-error@+1 {{embed_c2: @v16 must be a vector of 64 f32, found [16] f32 row}}
  %x = lm.embed %tokens, @w bias @v16 : tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A program returns its own type.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x32xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{return_c1: type 'tensor<?x64xf32>' is not the program's 'tensor<?x32xf32>'}}
  lm.return %x : tensor<?x64xf32>
}

// -----

// A table has the columns of what it gives.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
// expected-note@+1 {{the weight is here}}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x32xf32> {
  // expected-error@+1 {{embed_c1: @w must be an r16 matrix [any, 32], found [64, 64] f32 r16}}
  %x = lm.embed %tokens, @w : tensor<?x32xf32>
  lm.return %x : tensor<?x32xf32>
}

// -----

// A table is a weight.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{embed_c1: @kv is not an lm.weight}}
  %y = lm.embed %tokens, @kv : tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A rotation table has pairs.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @freq [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{rope_table_c1: the result has an odd number of columns (15)}}
  %r = lm.rope_table %positions, @freq : tensor<?x15xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A rotation table has two columns a frequency.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
// expected-note@+1 {{the weight is here}}
lm.weight @freq [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{rope_table_c1: @freq must be a vector of 4 f32, found [8] f32 row}}
  %r = lm.rope_table %positions, @freq : tensor<?x8xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A norm scales each column.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
// expected-note@+1 {{the weight is here}}
lm.weight @v16 [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{rms_norm_c1: @v16 must be a vector of 64 f32, found [16] f32 row}}
  %y = lm.rms_norm %x, @v16 {eps = 1.0e-5 : f32} : tensor<?x64xf32> -> tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A norm names a weight.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{rms_norm_c1: @nowhere is not an lm.weight}}
  %y = lm.rms_norm %x, @nowhere {eps = 1.0e-5 : f32} : tensor<?x64xf32> -> tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A norm keeps the columns.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @v [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{rms_norm_c2: 64 columns become 32}}
  %y = lm.rms_norm %x, @v {eps = 1.0e-5 : f32} : tensor<?x64xf32> -> tensor<?x32xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// The epsilon of a norm is positive.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @v [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{rms_norm_c3: eps must be positive}}
  %y = lm.rms_norm %x, @v {eps = 0.0 : f32} : tensor<?x64xf32> -> tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A matrix fits its product.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
// expected-note@+1 {{the weight is here}}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{linear_c1: @w must be an r16 matrix [32, 64], found [64, 64] f32 r16}}
  %y = lm.linear %x, @w : tensor<?x64xf32> -> tensor<?x32xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A vector is no matrix.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
// expected-note@+1 {{the weight is here}}
lm.weight @v [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{linear_c1: @v must be an r16 matrix}}
  %y = lm.linear %x, @v : tensor<?x64xf32> -> tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A bias has an element a column.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
// expected-note@+1 {{the weight is here}}
lm.weight @v16 [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{linear_c2: @v16 must be a vector of 64 f32}}
  %y = lm.linear %x, @w bias @v16 : tensor<?x64xf32> -> tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A residual has the type of the result.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %a, %b = lm.split %x : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x32xf32>
  // expected-error@+1 {{linear_c3: the residual is 'tensor<?x32xf32>', the result 'tensor<?x64xf32>'}}
  %y = lm.linear %x, @w residual %a : tensor<?x64xf32> -> tensor<?x64xf32>, tensor<?x32xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Quantised rows need an integer encoding.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %q = lm.quantize %x : tensor<?x64xf32> -> !lm.quantized<64, group = 32, bits = 16>
  // expected-error@+1 {{linear_c4: the input's group is 32, the weight's encoding f32}}
  %y = lm.linear %q, @w : !lm.quantized<64, group = 32, bits = 16> -> tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Quantised rows have the group of the weight.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @i8 [64, 64] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 4352, stored = q8_0, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %q = lm.quantize %x : tensor<?x64xf32> -> !lm.quantized<64, group = 64, bits = 16>
  // expected-error@+1 {{linear_c4: the input's group is 64, the weight's encoding i8-g32}}
  %y = lm.linear %q, @i8 : !lm.quantized<64, group = 64, bits = 16> -> tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Codes have the bits that the weight is multiplied with.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @i8 [64, 64] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 4352, stored = q8_0, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %q = lm.quantize %x : tensor<?x64xf32> -> !lm.quantized<64, group = 32, bits = 8>
  // expected-error@+1 {{linear_c5: the input's codes have 8 bits, a weight in i8-g32 takes 16}}
  %y = lm.linear %q, @i8 : !lm.quantized<64, group = 32, bits = 8> -> tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Heads cover the columns.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @v16 [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{head_norm_c1: 3 heads of 16 are not 64 columns}}
  %y = lm.head_norm %x, @v16 {heads = 3 : i64, head_dim = 16 : i64, eps = 1.0e-6 : f32} : tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A head norm scales each element of a head.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
// expected-note@+1 {{the weight is here}}
lm.weight @v [32] encoding <f32> layout row value dense<1.0> : tensor<32xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{head_norm_c2: @v must be a vector of 16 f32}}
  %y = lm.head_norm %x, @v {heads = 4 : i64, head_dim = 16 : i64, eps = 1.0e-6 : f32} : tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// The epsilon of a head norm is positive.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @v16 [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{head_norm_c3: eps must be positive}}
  %y = lm.head_norm %x, @v16 {heads = 4 : i64, head_dim = 16 : i64, eps = -1.0 : f32} : tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Rotated heads cover the columns.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @freq [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %r = lm.rope_table %positions, @freq : tensor<?x16xf32>
  // expected-error@+1 {{rotary_c1: 5 heads of 16 are not 64 columns}}
  %y = lm.rotary %x, %r {heads = 5 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x64xf32>, tensor<?x16xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// The table has an angle for each pair.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @freq [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %r = lm.rope_table %positions, @freq : tensor<?x16xf32>
  // expected-error@+1 {{rotary_c2: rotary_dim 8 must be even, at most head_dim (16) and the table's columns (16)}}
  %y = lm.rotary %x, %r {heads = 4 : i64, head_dim = 16 : i64, rotary_dim = 8 : i64} : tensor<?x64xf32>, tensor<?x16xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A negative rotary dimension.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @freq [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %r = lm.rope_table %positions, @freq : tensor<?x16xf32>
  // expected-error@+1 {{rotary_c2: rotary_dim -2}}
  %y = lm.rotary %x, %r {heads = 4 : i64, head_dim = 16 : i64, rotary_dim = -2 : i64} : tensor<?x64xf32>, tensor<?x16xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Query heads cover the query.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %k, %v = lm.split %x : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x32xf32>
  // expected-error@+1 {{attention_c1: 5 heads of 16 are not the 64 columns of the query}}
  %y = lm.attention %x, %k, %v state @kv[0] {heads = 5 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32, window = 8 : i64} : tensor<?x64xf32>, tensor<?x32xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Key heads cover the keys.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %k, %v = lm.split %x : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x32xf32>
  // expected-error@+1 {{attention_c1: 4 heads of 16 are not the 32 columns of the key}}
  %y = lm.attention %x, %k, %v state @kv[0] {heads = 4 : i64, kv_heads = 4 : i64, head_dim = 16 : i64, scale = 0.25 : f32, window = 8 : i64} : tensor<?x64xf32>, tensor<?x32xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Query heads share key heads evenly.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %a, %b = lm.split %x : tensor<?x64xf32> -> tensor<?x48xf32>, tensor<?x16xf32>
  // expected-error@+1 {{attention_c2: 4 heads cannot share 3 key heads}}
  %y = lm.attention %x, %a, %a state @kv[0] {heads = 4 : i64, kv_heads = 3 : i64, head_dim = 16 : i64, scale = 0.25 : f32, window = 8 : i64} : tensor<?x64xf32>, tensor<?x48xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A state has the layer.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
// expected-note@+1 {{the state is here}}
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %k, %v = lm.split %x : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x32xf32>
  // expected-error@+1 {{attention_c3: layer 2 with 2 key heads of 16 is not in @kv (2 layers, 2 of 16)}}
  %y = lm.attention %x, %k, %v state @kv[2] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32, window = 8 : i64} : tensor<?x64xf32>, tensor<?x32xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A state has the geometry.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
// expected-note@+1 {{the state is here}}
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %k, %v = lm.split %x : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x32xf32>
  // expected-error@+1 {{attention_c3: layer 0 with 1 key heads of 32 is not in @kv}}
  %y = lm.attention %x, %k, %v state @kv[0] {heads = 2 : i64, kv_heads = 1 : i64, head_dim = 32 : i64, scale = 0.25 : f32, window = 8 : i64} : tensor<?x64xf32>, tensor<?x32xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// An attention names a state.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %k, %v = lm.split %x : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x32xf32>
  // expected-error@+1 {{attention_c3: @w is not an lm.state}}
  %y = lm.attention %x, %k, %v state @w[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32, window = 8 : i64} : tensor<?x64xf32>, tensor<?x32xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A state keeps all that is seen.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %k, %v = lm.split %x : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x32xf32>
  // expected-error@+1 {{attention_c3: the window 0 of the op exceeds the 8 positions that @kv keeps}}
  %y = lm.attention %x, %k, %v state @kv[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x32xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A window is not negative.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %k, %v = lm.split %x : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x32xf32>
  // expected-error@+1 {{attention_c4: window and soft_cap must not be negative}}
  %y = lm.attention %x, %k, %v state @kv[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32, window = -1 : i64} : tensor<?x64xf32>, tensor<?x32xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// What looks both ways sees everything.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %k, %v = lm.split %x : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x32xf32>
  // expected-error@+1 {{attention_c4: what looks both ways has no window, found 8}}
  %y = lm.attention %x, %k, %v state @kv[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32, window = 8 : i64, bidirectional} : tensor<?x64xf32>, tensor<?x32xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A slope for each query head.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %k, %v = lm.split %x : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x32xf32>
  // expected-error@+1 {{attention_c5: expected 4 slopes, found 2}}
  %y = lm.attention %x, %k, %v state @kv[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32, slopes = array<f32: 0.5, 0.25>} : tensor<?x64xf32>, tensor<?x32xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Rounding needs slopes.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %k, %v = lm.split %x : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x32xf32>
  // expected-error@+1 {{attention_c5: rounded_slopes without slopes}}
  %y = lm.attention %x, %k, %v state @kv[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32, rounded_slopes} : tensor<?x64xf32>, tensor<?x32xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Slopes that are rounded are bfloat16.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %k, %v = lm.split %x : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x32xf32>
  // expected-error@+1 {{attention_c5: a slope is not finite, or no bfloat16}}
  %y = lm.attention %x, %k, %v state @kv[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32, slopes = array<f32: 0.5, 0.25, 0.1, 0.5>, rounded_slopes} : tensor<?x64xf32>, tensor<?x32xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Slopes fall with the distance back.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %k, %v = lm.split %x : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x32xf32>
  // expected-error@+1 {{attention_c5: what looks both ways has no slopes}}
  %y = lm.attention %x, %k, %v state @kv[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32, slopes = array<f32: 0.5, 0.25, 0.125, 0.5>, bidirectional} : tensor<?x64xf32>, tensor<?x32xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A soft cap is not negative.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %k, %v = lm.split %x : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x32xf32>
  // expected-error@+1 {{attention_c4:}}
  %y = lm.attention %x, %k, %v state @kv[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32, window = 8 : i64, soft_cap = -1.0 : f32} : tensor<?x64xf32>, tensor<?x32xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A gate halves the columns.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{gate_c1: the operand has 64 columns, expected 128}}
  %y = lm.gate silu %x : tensor<?x64xf32> -> tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A split keeps the columns.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{split_c1: results of 48 columns from an input of 64}}
  %a, %b = lm.split %x : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x16xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A concat keeps the columns.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{concat_c1: operands of 128 columns for a result of 64}}
  %a = lm.concat %x, %x : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Quantisation keeps the columns.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{quantize_c1: 64 columns become 32}}
  %q = lm.quantize %x : tensor<?x64xf32> -> !lm.quantized<32, group = 32, bits = 16>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A merged projection holds q, k and v.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @freq [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.weight @v [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.weight @v16 [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %qkv = lm.concat %x, %x : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x128xf32>
  %r = lm.rope_table %positions, @freq : tensor<?x16xf32>
  // expected-error@+1 {{rope_cache_write_c1: 7 heads of 16 are not the 128 columns of the merged projection}}
  %q, %c = lm.rope_cache_write %qkv, %r state @kv[0] {heads = 5 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x128xf32>, tensor<?x16xf32> -> tensor<?x80xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// The query of a write is its heads.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @freq [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.weight @v [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.weight @v16 [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %qkv = lm.concat %x, %x : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x128xf32>
  %r = lm.rope_table %positions, @freq : tensor<?x16xf32>
  // expected-error@+1 {{rope_cache_write_c1: 4 heads of 16 are not the 32 columns of the query}}
  %q, %c = lm.rope_cache_write %qkv, %r state @kv[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x128xf32>, tensor<?x16xf32> -> tensor<?x32xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A write rotates by its table.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @freq [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.weight @v [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.weight @v16 [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %qkv = lm.concat %x, %x : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x128xf32>
  %r = lm.rope_table %positions, @freq : tensor<?x16xf32>
  // expected-error@+1 {{rope_cache_write_c2: rotary_dim 8}}
  %q, %c = lm.rope_cache_write %qkv, %r state @kv[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 8 : i64} : tensor<?x128xf32>, tensor<?x16xf32> -> tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A write normalises both or none.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @freq [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.weight @v [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.weight @v16 [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %qkv = lm.concat %x, %x : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x128xf32>
  %r = lm.rope_table %positions, @freq : tensor<?x16xf32>
  // expected-error@+1 {{rope_cache_write_c3: q_norm, k_norm and a positive norm_eps are given together or not at all}}
  %q, %c = lm.rope_cache_write %qkv, %r state @kv[0] q_norm @v16 {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x128xf32>, tensor<?x16xf32> -> tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A norm of a write has an epsilon.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @freq [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.weight @v [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.weight @v16 [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %qkv = lm.concat %x, %x : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x128xf32>
  %r = lm.rope_table %positions, @freq : tensor<?x16xf32>
  // expected-error@+1 {{rope_cache_write_c3: q_norm, k_norm and}}
  %q, %c = lm.rope_cache_write %qkv, %r state @kv[0] q_norm @v16 k_norm @v16 {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x128xf32>, tensor<?x16xf32> -> tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A norm of a write is of a head.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @freq [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.weight @v [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.weight @v16 [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %qkv = lm.concat %x, %x : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x128xf32>
  %r = lm.rope_table %positions, @freq : tensor<?x16xf32>
  // expected-error@+1 {{rope_cache_write_c3: @v must be a vector of 16 f32}}
  %q, %c = lm.rope_cache_write %qkv, %r state @kv[0] q_norm @v16 k_norm @v {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64, norm_eps = 1.0e-6 : f32} : tensor<?x128xf32>, tensor<?x16xf32> -> tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A write has a layer of the state.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @freq [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.weight @v [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.weight @v16 [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
// expected-note@+1 {{the state is here}}
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %qkv = lm.concat %x, %x : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x128xf32>
  %r = lm.rope_table %positions, @freq : tensor<?x16xf32>
  // expected-error@+1 {{rope_cache_write_c4: layer 2 with 2 key heads of 16 is not in @kv}}
  %q, %c = lm.rope_cache_write %qkv, %r state @kv[2] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x128xf32>, tensor<?x16xf32> -> tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Query heads of a write share key heads evenly.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @freq [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.weight @v [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.weight @v16 [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %qkv = lm.concat %x, %x : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x128xf32>
  %r = lm.rope_table %positions, @freq : tensor<?x16xf32>
  // expected-error@+1 {{rope_cache_write_c5: 2 heads cannot share 3 key heads}}
  %q, %c = lm.rope_cache_write %qkv, %r state @kv[0] {heads = 2 : i64, kv_heads = 3 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x128xf32>, tensor<?x16xf32> -> tensor<?x32xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Heads cover the query.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @freq [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.weight @v [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.weight @v16 [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %qkv = lm.concat %x, %x : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x128xf32>
  %r = lm.rope_table %positions, @freq : tensor<?x16xf32>
  %q, %c = lm.rope_cache_write %qkv, %r state @kv[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x128xf32>, tensor<?x16xf32> -> tensor<?x64xf32>
  // expected-error@+1 {{cached_attention_c1: 2 heads of 16 are not the 64 columns of the query}}
  %y = lm.cached_attention %q, %c state @kv[0] {heads = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32, window = 8 : i64} : tensor<?x64xf32> -> tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Heads cover the result.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @freq [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.weight @v [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.weight @v16 [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %qkv = lm.concat %x, %x : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x128xf32>
  %r = lm.rope_table %positions, @freq : tensor<?x16xf32>
  %q, %c = lm.rope_cache_write %qkv, %r state @kv[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x128xf32>, tensor<?x16xf32> -> tensor<?x64xf32>
  // expected-error@+1 {{cached_attention_c1: 4 heads of 16 are not the 32 columns of the result}}
  %y = lm.cached_attention %q, %c state @kv[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32, window = 8 : i64} : tensor<?x64xf32> -> tensor<?x32xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Heads of a read share key heads evenly.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @freq [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.weight @v [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.weight @v16 [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %qkv = lm.concat %x, %x : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x128xf32>
  %r = lm.rope_table %positions, @freq : tensor<?x16xf32>
  %q, %c = lm.rope_cache_write %qkv, %r state @kv[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x128xf32>, tensor<?x16xf32> -> tensor<?x64xf32>
  // expected-error@+1 {{cached_attention_c2: 4 heads cannot share 3 key heads}}
  %y = lm.cached_attention %q, %c state @kv[0] {heads = 4 : i64, kv_heads = 3 : i64, head_dim = 16 : i64, scale = 0.25 : f32, window = 8 : i64} : tensor<?x64xf32> -> tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A read is of the layer that was written.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @freq [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.weight @v [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.weight @v16 [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %qkv = lm.concat %x, %x : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x128xf32>
  %r = lm.rope_table %positions, @freq : tensor<?x16xf32>
  // expected-note@+1 {{the write is here}}
  %q, %c = lm.rope_cache_write %qkv, %r state @kv[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x128xf32>, tensor<?x16xf32> -> tensor<?x64xf32>
  // expected-error@+1 {{cached_attention_c3: state, layer or geometry differ from those of the write}}
  %y = lm.cached_attention %q, %c state @kv[1] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32, window = 8 : i64} : tensor<?x64xf32> -> tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A read sees no more than is kept.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @freq [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.weight @v [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.weight @v16 [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %qkv = lm.concat %x, %x : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x128xf32>
  %r = lm.rope_table %positions, @freq : tensor<?x16xf32>
  %q, %c = lm.rope_cache_write %qkv, %r state @kv[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x128xf32>, tensor<?x16xf32> -> tensor<?x64xf32>
  // expected-error@+1 {{cached_attention_c3: the window 16 of the op exceeds the 8 positions that @kv keeps}}
  %y = lm.cached_attention %q, %c state @kv[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32, window = 16 : i64} : tensor<?x64xf32> -> tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// The window of a read is not negative.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @freq [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.weight @v [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.weight @v16 [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %qkv = lm.concat %x, %x : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x128xf32>
  %r = lm.rope_table %positions, @freq : tensor<?x16xf32>
  %q, %c = lm.rope_cache_write %qkv, %r state @kv[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x128xf32>, tensor<?x16xf32> -> tensor<?x64xf32>
  // expected-error@+1 {{cached_attention_c4: window and soft_cap must not be negative}}
  %y = lm.cached_attention %q, %c state @kv[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32, window = -8 : i64} : tensor<?x64xf32> -> tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// No group straddles a head.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @freq [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.weight @v [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.weight @v16 [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %qkv = lm.concat %x, %x : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x128xf32>
  %r = lm.rope_table %positions, @freq : tensor<?x16xf32>
  %q, %c = lm.rope_cache_write %qkv, %r state @kv[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x128xf32>, tensor<?x16xf32> -> tensor<?x64xf32>
  // expected-error@+1 {{cached_attention_c5: groups of 32 straddle heads of 16}}
  %y = lm.cached_attention %q, %c state @kv[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32, window = 8 : i64} : tensor<?x64xf32> -> !lm.quantized<64, group = 32, bits = 16>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A slope for each query head.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @freq [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.weight @v [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.weight @v16 [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, window = 8 : i64}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %qkv = lm.concat %x, %x : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x128xf32>
  %r = lm.rope_table %positions, @freq : tensor<?x16xf32>
  %q, %c = lm.rope_cache_write %qkv, %r state @kv[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64} : tensor<?x128xf32>, tensor<?x16xf32> -> tensor<?x64xf32>
  // expected-error@+1 {{cached_attention_c6: expected 4 slopes, found 1}}
  %y = lm.cached_attention %q, %c state @kv[0] {heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, scale = 0.25 : f32, window = 8 : i64, slopes = array<f32: 0.5>} : tensor<?x64xf32> -> tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// The dictionary of a model is one.
// expected-error@+1 {{lm.model must be a dictionary, found 1}}
module attributes {lm.model = 1 : i64} {}

// -----

// A key that nobody reads.
// expected-error@+1 {{lm.model has no key 'colour'}}
module attributes {lm.model = {family = "f", name = "n", architecture = "a", vocab = 1 : i64, hidden = 1 : i64, context = 1 : i64, tied_head = true, parameters = 1 : i64, eos = array<i64: 2>, source_bytes = 1 : i64, sampling = {}, layers = [], tokenizer = {kind = "none"}, templates = [], licence = "", model_card = "", colour = 1 : i64}} {}

// -----

// A key that is missing.
// expected-error@+1 {{lm.model lacks the key 'vocab'}}
module attributes {lm.model = {family = "f", name = "n", architecture = "a", hidden = 1 : i64, context = 1 : i64, tied_head = true, parameters = 1 : i64, eos = array<i64: 2>, source_bytes = 1 : i64, sampling = {}, layers = [], tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {}

// -----

// A value of another type.
// expected-error@+1 {{lm.model: 'vocab' must be an i64 that is not negative, found -1 : i64}}
module attributes {lm.model = {family = "f", name = "n", architecture = "a", vocab = -1 : i64, hidden = 1 : i64, context = 1 : i64, tied_head = true, parameters = 1 : i64, eos = array<i64: 2>, source_bytes = 1 : i64, sampling = {}, layers = [], tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {}

// -----

// Sampling has its own keys.
// expected-error@+1 {{lm.model sampling has no key 'mirostat'}}
module attributes {lm.model = {family = "f", name = "n", architecture = "a", vocab = 1 : i64, hidden = 1 : i64, context = 1 : i64, tied_head = true, parameters = 1 : i64, eos = array<i64: 2>, source_bytes = 1 : i64, sampling = {mirostat = 1 : i64}, layers = [], tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {}

// -----

// A layer has all its keys.
// expected-error@+1 {{lm.model layers[0] lacks the key 'index'}}
module attributes {lm.model = {family = "f", name = "n", architecture = "a", vocab = 1 : i64, hidden = 1 : i64, context = 1 : i64, tied_head = true, parameters = 1 : i64, eos = array<i64: 2>, source_bytes = 1 : i64, sampling = {}, layers = [{}], tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {}

// -----

// Layers are in order.
// expected-error@+1 {{lm.model layers[0] has index 1}}
module attributes {lm.model = {family = "f", name = "n", architecture = "a", vocab = 1 : i64, hidden = 1 : i64, context = 1 : i64, tied_head = true, parameters = 1 : i64, eos = array<i64: 2>, source_bytes = 1 : i64, sampling = {}, layers = [{index = 1 : i64, heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64, rope_kind = "default", rope_theta = 1.0e4, rope_attention_factor = 1.0, window = 0 : i64, softmax_scale = 0.25, soft_cap = 0.0, ffn = 96 : i64, activation = "silu", norm_eps = 1.0e-5, qk_norm = true, qkv_bias = true, output_bias = false}], tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""}} {}

// -----

// A pooling has a name.
// expected-error@+1 {{lm.model embedding: no pooling is called "max"}}
module attributes {lm.model = {family = "f", name = "n", architecture = "a", vocab = 1 : i64, hidden = 1 : i64, context = 1 : i64, tied_head = true, parameters = 1 : i64, eos = array<i64: 2>, source_bytes = 1 : i64, sampling = {}, layers = [{index = 0 : i64, heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64, rope_kind = "default", rope_theta = 1.0e4, rope_attention_factor = 1.0, window = 0 : i64, softmax_scale = 0.25, soft_cap = 0.0, ffn = 96 : i64, activation = "silu", norm_eps = 1.0e-5, qk_norm = true, qkv_bias = true, output_bias = false}], tokenizer = {kind = "none"}, templates = [], licence = "", model_card = "", embedding = {pooling = "max", normalized = true}}} {}

// -----

// A pooling says whether its vectors have length 1.
// expected-error@+1 {{lm.model embedding lacks the key 'normalized'}}
module attributes {lm.model = {family = "f", name = "n", architecture = "a", vocab = 1 : i64, hidden = 1 : i64, context = 1 : i64, tied_head = true, parameters = 1 : i64, eos = array<i64: 2>, source_bytes = 1 : i64, sampling = {}, layers = [{index = 0 : i64, heads = 4 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64, rope_kind = "default", rope_theta = 1.0e4, rope_attention_factor = 1.0, window = 0 : i64, softmax_scale = 0.25, soft_cap = 0.0, ffn = 96 : i64, activation = "silu", norm_eps = 1.0e-5, qk_norm = true, qkv_bias = true, output_bias = false}], tokenizer = {kind = "none"}, templates = [], licence = "", model_card = "", embedding = {pooling = "cls"}}} {}

// -----

// The model belongs to a module.
// expected-error@+1 {{'lm.model' belongs to a module}}
lm.state @kv {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16, lm.model = {}}

// -----

// No other attribute of the dialect exists.
// expected-error@+1 {{unknown lm attribute 'lm.extra'}}
module attributes {lm.extra = 1 : i64} {}

// -----

// Frequencies chosen by length need the length.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @f [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{rope_table_c2: listed needs a positive original length}}
  %r = lm.rope_table %positions, @f {scaling = #lm<rope_scaling listed>} : tensor<?x8xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A base that grows needs its factor.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @f [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{rope_table_c2: factor must be positive}}
  %r = lm.rope_table %positions, @f {scaling = #lm<rope_scaling dynamic>, original = 64 : i64, theta = 1.0e+04 : f64} : tensor<?x16xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Two lists have twice the frequencies.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
// expected-note@+1 {{the weight is here}}
lm.weight @f [8] encoding <f32> layout row value dense<1.0> : tensor<8xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{rope_table_c1: @f must be a vector of 16 f32}}
  %r = lm.rope_table %positions, @f {scaling = #lm<rope_scaling listed>, original = 64 : i64} : tensor<?x16xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A layer norm shifts each column.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @v [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
// expected-note@+1 {{the weight is here}}
lm.weight @v16 [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{layer_norm_c1: @v16 must be a vector of 64 f32}}
  %y = lm.layer_norm %x, @v bias @v16 {eps = 1.0e-5 : f32} : tensor<?x64xf32> -> tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A layer norm keeps the columns.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @v [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{layer_norm_c2: 64 columns become 32}}
  %y = lm.layer_norm %x, @v {eps = 1.0e-5 : f32} : tensor<?x64xf32> -> tensor<?x32xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// The epsilon of a layer norm is positive.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @v [64] encoding <f32> layout row value dense<1.0> : tensor<64xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{layer_norm_c3: eps must be positive}}
  %y = lm.layer_norm %x, @v {eps = 0.0 : f32} : tensor<?x64xf32> -> tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A layer norm of heads has no offset.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @v16 [16] encoding <f32> layout row value dense<1.0> : tensor<16xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{head_norm_c4: a layer norm has no weight_offset}}
  %y = lm.head_norm %x, @v16 {heads = 4 : i64, head_dim = 16 : i64, eps = 1.0e-6 : f32, kind = #lm<norm_kind layer>, weight_offset = 1.0 : f32} : tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// An activation keeps the columns.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{activate_c1: 64 columns become 32}}
  %y = lm.activate gelu %x : tensor<?x64xf32> -> tensor<?x32xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// A cap is not negative.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{cap_c1: soft_cap must not be negative}}
  %y = lm.cap %x {soft_cap = -1.0 : f32} : tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Rows of a fused projection past its end.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
// expected-error@+1 {{part_c3: rows in runs of 16 every 48 from 40 are not within 96 stored rows}}
lm.weight @w [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 24576, stored = f32, rows = 32, columns = 64, stored_rows = 96, first = 40, run = 16, stride = 48>]

// -----

// Rows of a fused projection without a run.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
// expected-error@+1 {{part_c3:}}
lm.weight @w [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 24576, stored = f32, rows = 32, columns = 64, stored_rows = 96>]

// -----

// Blocks lie along rows.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
// expected-error@+1 {{part_c3: a transposed tensor has no blocks and no permutation}}
lm.weight @w [32, 64] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 2176, stored = q8_0, rows = 32, columns = 64, transposed = true>]

// -----

// Codes without their scales.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
// expected-error@+1 {{part_c4: "t" has details of codes exactly where it is stored as codes}}
lm.weight @w [32, 64] encoding <i4, group = 32> layout r16 method "stored" parts [#lm.part<source = @src, name = "t", offset = 0, size = 1024, stored = codes, rows = 32, columns = 64>]

// -----

// Scales of floats.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
// expected-error@+1 {{part_c4: "t" has details of codes exactly where it is stored as codes}}
lm.weight @w [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 8192, stored = f32, rows = 32, columns = 64, details = {codes = {bits = 4 : i64, group = 32 : i64, packing = "gptq", row_group = 1 : i64, scales = {name = "s", offset = 1024 : i64, size = 128 : i64, source = @src, type = "f16"}, zero_bias = 1 : i64}}>]

// -----

// A plane of another size.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
// expected-error@+1 {{part_c4: tensor "t": scales "s" has 127 bytes, expected 128 (64 of f16)}}
lm.weight @w [32, 64] encoding <i4, group = 32> layout r16 method "stored" parts [#lm.part<source = @src, name = "t", offset = 0, size = 1024, stored = codes, rows = 32, columns = 64, details = {codes = {bits = 4 : i64, group = 32 : i64, packing = "gptq", row_group = 1 : i64, scales = {name = "s", offset = 1024 : i64, size = 127 : i64, source = @src, type = "f16"}, zero_bias = 1 : i64}}>]

// -----

// A key that is not known.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
// expected-error@+1 {{part_c4: details: has keys that are not known}}
lm.weight @w [32, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 8192, stored = f32, rows = 32, columns = 64, details = {colour = "red"}>]

// -----

// Scales past the end of their file.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
// expected-error@+1 {{weight_c4: "s" at [65500, +128) does not lie within an lm.source @src}}
lm.weight @w [32, 64] encoding <i4, group = 32> layout r16 method "stored" parts [#lm.part<source = @src, name = "t", offset = 0, size = 1024, stored = codes, rows = 32, columns = 64, details = {codes = {bits = 4 : i64, group = 32 : i64, packing = "gptq", row_group = 1 : i64, scales = {name = "s", offset = 65500 : i64, size = 128 : i64, source = @src, type = "f16"}, zero_bias = 1 : i64}}>]

// -----

// Codes that the encoding cannot hold.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
// expected-error@+1 {{weight_c6: part "t" is stored as f32; i4-g32 cannot keep its codes}}
lm.weight @w [32, 64] encoding <i4, group = 32> layout r16 method "stored" parts [#lm.part<source = @src, name = "t", offset = 0, size = 8192, stored = f32, rows = 32, columns = 64>]

// -----

// An exit is at its own cut.
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %c = lm.cut "e" %x : tensor<?x64xf32>
  // expected-error@+1 {{exit_c1: expected the result of an lm.cut "f"}}
  lm.exit "f" %c layers 1 : tensor<?x64xf32> head {
    %s = lm.select_rows %c : tensor<?x64xf32>
    lm.yield %s : tensor<?x64xf32>
  }
  lm.return %x : tensor<?x64xf32>
}

// -----

// No cut at all.
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  // expected-error@+1 {{exit_c1: expected the result of an lm.cut "e"}}
  lm.exit "e" %x layers 1 : tensor<?x64xf32> head {
    %s = lm.select_rows %x : tensor<?x64xf32>
    lm.yield %s : tensor<?x64xf32>
  }
  lm.return %x : tensor<?x64xf32>
}

// -----

// No layer has run.
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %c = lm.cut "e" %x : tensor<?x64xf32>
  // expected-error@+1 {{exit_c2: expected a positive number of layers, found 0}}
  lm.exit "e" %c layers 0 : tensor<?x64xf32> head {
    %s = lm.select_rows %c : tensor<?x64xf32>
    lm.yield %s : tensor<?x64xf32>
  }
  lm.return %x : tensor<?x64xf32>
}

// -----

// A head gives logits.
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %c = lm.cut "e" %x : tensor<?x64xf32>
  // expected-error@+1 {{exit_c3: expected a head that yields 'tensor<?x64xf32>'}}
  lm.exit "e" %c layers 1 : tensor<?x64xf32> head {
    lm.yield
  }
  lm.return %x : tensor<?x64xf32>
}

// -----

// Of the rows that want them.
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %c = lm.cut "e" %x : tensor<?x64xf32>
  // expected-error@+1 {{exit_c3: the head yields a row for each token, expected selected ones}}
  lm.exit "e" %c layers 1 : tensor<?x64xf32> head {
    lm.yield %c : tensor<?x64xf32>
  }
  lm.return %x : tensor<?x64xf32>
}

// -----

// A fill gives nothing.
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %c = lm.cut "e" %x : tensor<?x64xf32>
  // expected-error@+1 {{exit_c4: expected a fill that yields nothing}}
  lm.exit "e" %c layers 1 : tensor<?x64xf32> head {
    %s = lm.select_rows %c : tensor<?x64xf32>
    lm.yield %s : tensor<?x64xf32>
  } fill {
    lm.yield %c : tensor<?x64xf32>
  }
  lm.return %x : tensor<?x64xf32>
}

// -----

// One entry says nothing.
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %c = lm.cut "e" %x : tensor<?x64xf32>
  // expected-error@+1 {{exit_c5: expected 2 to 256 entries from 0 to 1, none below the one before it}}
  lm.exit "e" %c layers 1 confidence [0.5] : tensor<?x64xf32> head {
    %s = lm.select_rows %c : tensor<?x64xf32>
    lm.yield %s : tensor<?x64xf32>
  }
  lm.return %x : tensor<?x64xf32>
}

// -----

// More confident, less often right.
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %c = lm.cut "e" %x : tensor<?x64xf32>
  // expected-error@+1 {{exit_c5: expected 2 to 256 entries from 0 to 1, none below the one before it}}
  lm.exit "e" %c layers 1 confidence [0.5, 0.25] : tensor<?x64xf32> head {
    %s = lm.select_rows %c : tensor<?x64xf32>
    lm.yield %s : tensor<?x64xf32>
  }
  lm.return %x : tensor<?x64xf32>
}

// -----

// Oftener than always.
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %c = lm.cut "e" %x : tensor<?x64xf32>
  // expected-error@+1 {{exit_c5: expected 2 to 256 entries from 0 to 1, none below the one before it}}
  lm.exit "e" %c layers 1 confidence [0.5, 1.5] : tensor<?x64xf32> head {
    %s = lm.select_rows %c : tensor<?x64xf32>
    lm.yield %s : tensor<?x64xf32>
  }
  lm.return %x : tensor<?x64xf32>
}

// -----

// A later step has the cut, and nothing from before it.
lm.source @src0 {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @embed [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src0, name = "embed", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @embed : tensor<?x64xf32>
  %c = lm.cut "e" %x : tensor<?x64xf32>
  lm.exit "e" %c layers 1 : tensor<?x64xf32> head {
    // expected-error@+1 {{exit_c6: reads a value from outside the exit that is neither its cut nor a rotation table}}
    %s = lm.select_rows %x : tensor<?x64xf32>
    lm.yield %s : tensor<?x64xf32>
  }
  lm.return %x : tensor<?x64xf32>
}

// -----

// More experts than there are logits.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{route_c1: the 65 largest of 64 in 130 columns}}
  %r = lm.route %x {top_k = 65 : i64} : tensor<?x64xf32> -> tensor<?x130xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Routes without room for the probabilities.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{route_c1: the 2 largest of 64 in 2 columns}}
  %r = lm.route %x {top_k = 2 : i64} : tensor<?x64xf32> -> tensor<?x2xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Routes that no route made.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  // expected-error@+1 {{dispatch_c1: the routes do not come from an lm.route}}
  %d = lm.dispatch %x, %x : tensor<?x64xf32>, tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Sums by routes that no route made.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %s, %t = lm.split %x : tensor<?x64xf32> -> tensor<?x4xf32>, tensor<?x60xf32>
  %r = lm.route %s {top_k = 2 : i64} : tensor<?x4xf32> -> tensor<?x4xf32>
  %d = lm.dispatch %x, %r : tensor<?x64xf32>, tensor<?x4xf32>
  // expected-error@+1 {{combine_c1: the routes do not come from an lm.route}}
  %c = lm.combine %d, %s : tensor<?x64xf32>, tensor<?x4xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Columns of an expert that fill no tiles.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %s, %t = lm.split %x : tensor<?x64xf32> -> tensor<?x4xf32>, tensor<?x60xf32>
  %r = lm.route %s {top_k = 2 : i64} : tensor<?x4xf32> -> tensor<?x4xf32>
  %d = lm.dispatch %x, %r : tensor<?x64xf32>, tensor<?x4xf32>
  // expected-error@+1 {{expert_linear_c1: 8 columns are not a multiple of 16}}
  %y = lm.expert_linear %d, %r, @w : tensor<?x64xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Products by routes that no route made.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @w [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %s, %t = lm.split %x : tensor<?x64xf32> -> tensor<?x4xf32>, tensor<?x60xf32>
  %r = lm.route %s {top_k = 2 : i64} : tensor<?x4xf32> -> tensor<?x4xf32>
  %d = lm.dispatch %x, %r : tensor<?x64xf32>, tensor<?x4xf32>
  // expected-error@+1 {{expert_linear_c3: the routes do not come from an lm.route}}
  %y = lm.expert_linear %d, %s, @w : tensor<?x64xf32>, tensor<?x4xf32> -> tensor<?x16xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Slots quantised in other groups than the weight.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @e [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @w [64, 64] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 4352, stored = q8_0, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @e : tensor<?x64xf32>
  %s, %t = lm.split %x : tensor<?x64xf32> -> tensor<?x4xf32>, tensor<?x60xf32>
  %r = lm.route %s {top_k = 2 : i64} : tensor<?x4xf32> -> tensor<?x4xf32>
  %d = lm.dispatch %x, %r : tensor<?x64xf32>, tensor<?x4xf32>
  %q = lm.quantize %d : tensor<?x64xf32> -> !lm.quantized<64, group = 64, bits = 16>
  // expected-error@+1 {{expert_linear_c2: the input's group is 64, the weight's encoding i8-g32}}
  %y = lm.expert_linear %q, %r, @w : !lm.quantized<64, group = 64, bits = 16>, tensor<?x4xf32> -> tensor<?x16xf32>
  lm.return %x : tensor<?x64xf32>
}

// -----

// Codes of 8 bits for experts in int8.
lm.source @src {name = "a", size = 65536 : i64, hash = "00000000deadbeef"}
lm.weight @e [64, 64] encoding <f32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 16384, stored = f32, rows = 64, columns = 64>]
lm.weight @w [64, 64] encoding <i8, group = 32> layout r16 parts [#lm.part<source = @src, name = "t", offset = 0, size = 4352, stored = q8_0, rows = 64, columns = 64>]
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @e : tensor<?x64xf32>
  %s, %t = lm.split %x : tensor<?x64xf32> -> tensor<?x4xf32>, tensor<?x60xf32>
  %r = lm.route %s {top_k = 2 : i64} : tensor<?x4xf32> -> tensor<?x4xf32>
  %d = lm.dispatch %x, %r : tensor<?x64xf32>, tensor<?x4xf32>
  %q = lm.quantize %d : tensor<?x64xf32> -> !lm.quantized<64, group = 32, bits = 8>
  // expected-error@+1 {{expert_linear_c2: the input's codes have 8 bits}}
  %y = lm.expert_linear %q, %r, @w : !lm.quantized<64, group = 32, bits = 8>, tensor<?x4xf32> -> tensor<?x16xf32>
  lm.return %x : tensor<?x64xf32>
}
