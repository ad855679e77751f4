// RUN: ingot-opt %s -split-input-file -assign-buffers | FileCheck %s

// A residual stream is updated in one buffer; what lives at other times shares
// memory: x and y take turns.
// CHECK-LABEL: plan.target @cpu
// CHECK-SAME: token_arena_bytes 256 logit_row_arena_bytes 128
// CHECK: plan.buffer @h domain token offset 0
// CHECK-NEXT: plan.buffer @x domain token offset 128
// CHECK-NEXT: plan.buffer @y domain token offset 128
// CHECK-NEXT: plan.buffer @logits domain logit_row offset 0
// CHECK: plan.linear @x weight @w residual @h to @h
// CHECK: plan.linear @y weight @w residual @h to @h
// CHECK: plan.gather_rows @h
plan.source @src0 name "a" size 65536 hash "00000000deadbeef"
plan.weight @w encoding <f32> layout r16 rows 32 columns 32
  parts [#plan.part<source = @src0, name = "w", offset = 0, size = 4096, stored = f32, rows = 32, columns = 32>]
plan.target @cpu layout "r16" levels ["l"] logits @logits {
  plan.buffer @h domain token : !plan.rows<32>
  plan.buffer @x domain token : !plan.rows<32>
  plan.buffer @h1 domain token : !plan.rows<32>
  plan.buffer @y domain token : !plan.rows<32>
  plan.buffer @h2 domain token : !plan.rows<32>
  plan.buffer @logits domain logit_row : !plan.rows<32>
  plan.kernel @embed op "embed" config {} scratch 0
  plan.kernel @linear op "linear" config {} scratch 0
  plan.kernel @gather op "gather_rows" config {} scratch 0
  plan.segment @main {
    plan.embed table @w to @h scale = 1.0 variants [#plan.variant<1, 0, @embed>]
    plan.linear @h weight @w to @x k = 32 n = 32 column = 0 domain = token variants [#plan.variant<1, 0, @linear>]
    plan.linear @x weight @w residual @h to @h1 k = 32 n = 32 column = 0 domain = token variants [#plan.variant<1, 0, @linear>]
    plan.linear @h1 weight @w to @y k = 32 n = 32 column = 0 domain = token variants [#plan.variant<1, 0, @linear>]
    plan.linear @y weight @w residual @h1 to @h2 k = 32 n = 32 column = 0 domain = token variants [#plan.variant<1, 0, @linear>]
    plan.gather_rows @h2 to @logits width = 32 variants [#plan.variant<1, 0, @gather>]
  }
}

// -----

// A residual that is read again keeps its value.
// CHECK-LABEL: plan.target @cpu
// CHECK: plan.linear @x weight @w residual @h to @h1
// CHECK: plan.linear @h1 weight @w residual @h to @h{{$| }}
plan.source @src0 name "a" size 65536 hash "00000000deadbeef"
plan.weight @w encoding <f32> layout r16 rows 32 columns 32
  parts [#plan.part<source = @src0, name = "w", offset = 0, size = 4096, stored = f32, rows = 32, columns = 32>]
plan.target @cpu layout "r16" levels ["l"] logits @logits {
  plan.buffer @h domain token : !plan.rows<32>
  plan.buffer @x domain token : !plan.rows<32>
  plan.buffer @h1 domain token : !plan.rows<32>
  plan.buffer @h2 domain token : !plan.rows<32>
  plan.buffer @logits domain logit_row : !plan.rows<32>
  plan.kernel @embed op "embed" config {} scratch 0
  plan.kernel @linear op "linear" config {} scratch 0
  plan.kernel @gather op "gather_rows" config {} scratch 0
  plan.segment @main {
    plan.embed table @w to @h scale = 1.0 variants [#plan.variant<1, 0, @embed>]
    plan.linear @h weight @w to @x k = 32 n = 32 column = 0 domain = token variants [#plan.variant<1, 0, @linear>]
    plan.linear @x weight @w residual @h to @h1 k = 32 n = 32 column = 0 domain = token variants [#plan.variant<1, 0, @linear>]
    plan.linear @h1 weight @w residual @h to @h2 k = 32 n = 32 column = 0 domain = token variants [#plan.variant<1, 0, @linear>]
    plan.gather_rows @h2 to @logits width = 32 variants [#plan.variant<1, 0, @gather>]
  }
}

// -----

// A hidden state at a cut is left as it is, and nothing shares its memory in
// the segments that it borders.
// CHECK-LABEL: plan.target @cpu
// CHECK-SAME: token_arena_bytes 384
// CHECK: plan.segment @early output @h
// CHECK: plan.linear @x weight @w residual @h to @h1
plan.source @src0 name "a" size 65536 hash "00000000deadbeef"
plan.weight @w encoding <f32> layout r16 rows 32 columns 32
  parts [#plan.part<source = @src0, name = "w", offset = 0, size = 4096, stored = f32, rows = 32, columns = 32>]
plan.target @cpu layout "r16" levels ["l"] logits @logits {
  plan.buffer @h domain token : !plan.rows<32>
  plan.buffer @x domain token : !plan.rows<32>
  plan.buffer @h1 domain token : !plan.rows<32>
  plan.buffer @logits domain logit_row : !plan.rows<32>
  plan.kernel @embed op "embed" config {} scratch 0
  plan.kernel @linear op "linear" config {} scratch 0
  plan.kernel @gather op "gather_rows" config {} scratch 0
  plan.segment @early output @h {
    plan.embed table @w to @h scale = 1.0 variants [#plan.variant<1, 0, @embed>]
  }
  plan.segment @main input @h {
    plan.linear @h weight @w to @x k = 32 n = 32 column = 0 domain = token variants [#plan.variant<1, 0, @linear>]
    plan.linear @x weight @w residual @h to @h1 k = 32 n = 32 column = 0 domain = token variants [#plan.variant<1, 0, @linear>]
    plan.gather_rows @h1 to @logits width = 32 variants [#plan.variant<1, 0, @gather>]
  }
}

// -----

// A buffer that nothing uses goes.
// CHECK-LABEL: plan.target @cpu
// CHECK-NOT: @idle
plan.source @src0 name "a" size 65536 hash "00000000deadbeef"
plan.weight @w encoding <f32> layout r16 rows 32 columns 32
  parts [#plan.part<source = @src0, name = "w", offset = 0, size = 4096, stored = f32, rows = 32, columns = 32>]
plan.target @cpu layout "r16" levels ["l"] logits @logits {
  plan.buffer @h domain token : !plan.rows<32>
  plan.buffer @idle domain token : !plan.rows<32>
  plan.buffer @logits domain logit_row : !plan.rows<32>
  plan.kernel @embed op "embed" config {} scratch 0
  plan.kernel @linear op "linear" config {} scratch 0
  plan.kernel @gather op "gather_rows" config {} scratch 0
  plan.segment @main {
    plan.embed table @w to @h scale = 1.0 variants [#plan.variant<1, 0, @embed>]
    plan.gather_rows @h to @logits width = 32 variants [#plan.variant<1, 0, @gather>]
  }
}
