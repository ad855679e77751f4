// RUN: ingot-opt %s -split-input-file -verify-diagnostics

// Variants of linear that are left to a library: linear_c10.

// Without the kernel that stands behind it.
plan.source @src0 name "a" size 65536 hash "00000000deadbeef"
plan.weight @w encoding <f16> layout mma16 rows 8 columns 8 parts [#plan.part<source = @src0, name = "w", offset = 0, size = 128, stored = f16, rows = 8, columns = 8>]
plan.target @cuda layout "mma16" levels ["sm_90"] logits @logits {
  plan.buffer @x domain token : !plan.half_rows<8>
  plan.buffer @y domain token : !plan.rows<8>
  plan.buffer @logits domain logit_row : !plan.rows<8>
  plan.kernel @own op "linear" config {} scratch 0 geometry <threads = 128, shared = 0, rows = 32, tokens = 64>
  plan.kernel @lib op "library_linear" config {} scratch 0 geometry <threads = 128, shared = 0, rows = 16, tokens = 1>
  plan.segment @main {
    // expected-error @below {{linear_c10: expected a plan.kernel for library_finish}}
    plan.linear @x weight @w to @y k = 8 n = 8 column = 0 domain = token variants [#plan.variant<1, 64, @own>, #plan.variant<65, 0, @lib>]
  }
}
// -----

// In steps that are graphs.
plan.source @src0 name "a" size 65536 hash "00000000deadbeef"
plan.weight @w encoding <f16> layout mma16 rows 8 columns 8 parts [#plan.part<source = @src0, name = "w", offset = 0, size = 128, stored = f16, rows = 8, columns = 8>]
plan.target @cuda layout "mma16" levels ["sm_90"] logits @logits {
  plan.buffer @x domain token : !plan.half_rows<8>
  plan.buffer @y domain token : !plan.rows<8>
  plan.buffer @logits domain logit_row : !plan.rows<8>
  plan.kernel @own op "linear" config {} scratch 0 geometry <threads = 128, shared = 0, rows = 32, tokens = 64>
  plan.kernel @lib op "library_linear" config {} scratch 0 geometry <threads = 128, shared = 0, rows = 16, tokens = 1>
  plan.kernel @fin op "library_finish" config {} scratch 0 geometry <threads = 256, shared = 0, rows = 1, tokens = 1>
  plan.segment @main {
    // expected-error @below {{linear_c10: expected a library from 65 rows on or later, found from 33 on}}
    plan.linear @x weight @w to @y k = 8 n = 8 column = 0 domain = token variants [#plan.variant<1, 32, @own>, #plan.variant<33, 0, @lib>]
  }
}
// -----

// Of codes.
plan.source @src0 name "a" size 65536 hash "00000000deadbeef"
plan.weight @w encoding <i8, group = 32> layout mma16 rows 8 columns 32 parts [#plan.part<source = @src0, name = "w", offset = 0, size = 512, stored = f16, rows = 8, columns = 32>]
plan.target @cuda layout "mma16" levels ["sm_90"] logits @logits {
  plan.buffer @x domain token : !plan.half_rows<32>
  plan.buffer @y domain token : !plan.rows<8>
  plan.buffer @logits domain logit_row : !plan.rows<8>
  plan.kernel @own op "linear" config {} scratch 0 geometry <threads = 128, shared = 0, rows = 32, tokens = 64>
  plan.kernel @lib op "library_linear" config {} scratch 0 geometry <threads = 128, shared = 0, rows = 16, tokens = 1>
  plan.kernel @fin op "library_finish" config {} scratch 0 geometry <threads = 256, shared = 0, rows = 1, tokens = 1>
  plan.segment @main {
    // expected-error @below {{linear_c10: a library multiplies rows of tokens with f16 or bf16 weights only}}
    plan.linear @x weight @w to @y k = 32 n = 8 column = 0 domain = token variants [#plan.variant<1, 64, @own>, #plan.variant<65, 0, @lib>]
  }
}
// -----

// Such a kernel is for a linear alone.
plan.target @cuda layout "mma16" levels ["sm_90"] logits @logits {
  plan.buffer @x domain token : !plan.rows<8>
  plan.buffer @y domain token : !plan.half_rows<8>
  plan.buffer @logits domain logit_row : !plan.rows<8>
  plan.kernel @lib op "library_linear" config {} scratch 0 geometry <threads = 128, shared = 0, rows = 16, tokens = 1>
  plan.segment @main {
    // expected-error @below {{quantize_c2: kernel @lib is for "library_linear"}}
    plan.quantize @x to @y width = 8 domain = token variants [#plan.variant<1, 0, @lib>]
  }
}
// -----

// And for the target @cuda.
plan.target @cpu layout "r16" levels ["a"] logits @logits {
  plan.buffer @logits domain logit_row : !plan.rows<8>
  // expected-error @below {{kernel_c1: no launch operation is named "library_linear"}}
  plan.kernel @lib op "library_linear" config {} scratch 0
  plan.segment @main {
  }
}
