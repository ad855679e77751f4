// RUN: ingot-opt %s -split-input-file -verify-diagnostics -assign-buffers

// A buffer that is read before it is written.
plan.source @src0 name "a" size 65536 hash "00000000deadbeef"
plan.weight @w encoding <f32> layout r16 rows 32 columns 32
  parts [#plan.part<source = @src0, name = "w", offset = 0, size = 4096, stored = f32, rows = 32, columns = 32>]
plan.target @cpu layout "r16" levels ["l"] logits @logits {
  plan.buffer @h domain token : !plan.rows<32>
  plan.buffer @x domain token : !plan.rows<32>
  plan.buffer @logits domain logit_row : !plan.rows<32>
  plan.kernel @embed op "embed" config {} scratch 0
  plan.kernel @linear op "linear" config {} scratch 0
  plan.kernel @gather op "gather_rows" config {} scratch 0
  plan.segment @main {
    // expected-error @below {{reads buffer @h, which nothing has written}}
    plan.linear @h weight @w to @x k = 32 n = 32 column = 0 domain = token variants [#plan.variant<1, 0, @linear>]
    plan.gather_rows @x to @logits width = 32 variants [#plan.variant<1, 0, @gather>]
  }
}

// -----

// Logits that nothing makes.
plan.source @src0 name "a" size 65536 hash "00000000deadbeef"
plan.weight @w encoding <f32> layout r16 rows 32 columns 32
  parts [#plan.part<source = @src0, name = "w", offset = 0, size = 4096, stored = f32, rows = 32, columns = 32>]
// expected-error @below {{gives logits @logits, which nothing has written}}
plan.target @cpu layout "r16" levels ["l"] logits @logits {
  plan.buffer @h domain token : !plan.rows<32>
  plan.buffer @logits domain logit_row : !plan.rows<32>
  plan.kernel @embed op "embed" config {} scratch 0
  plan.kernel @linear op "linear" config {} scratch 0
  plan.kernel @gather op "gather_rows" config {} scratch 0
  plan.segment @main {
    plan.embed table @w to @h scale = 1.0 variants [#plan.variant<1, 0, @embed>]
  }
}

// -----

// A hidden state that nothing makes.
plan.source @src0 name "a" size 65536 hash "00000000deadbeef"
plan.weight @w encoding <f32> layout r16 rows 32 columns 32
  parts [#plan.part<source = @src0, name = "w", offset = 0, size = 4096, stored = f32, rows = 32, columns = 32>]
plan.target @cpu layout "r16" levels ["l"] logits @logits {
  plan.buffer @h domain token : !plan.rows<32>
  plan.buffer @logits domain logit_row : !plan.rows<32>
  plan.kernel @embed op "embed" config {} scratch 0
  plan.kernel @linear op "linear" config {} scratch 0
  plan.kernel @gather op "gather_rows" config {} scratch 0
  // expected-error @below {{gives buffer @h, which nothing has written}}
  plan.segment @early output @h {
  }
  plan.segment @main input @h {
    plan.gather_rows @h to @logits width = 32 variants [#plan.variant<1, 0, @gather>]
  }
}
