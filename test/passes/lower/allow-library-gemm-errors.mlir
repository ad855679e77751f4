// RUN: ingot-opt %s -split-input-file -verify-diagnostics -allow-library-gemm

// There is no target that a library could serve.
// expected-error @below {{expected a target @cuda, whose products a library could make}}
module {
  plan.target @cpu layout "r16" levels ["a"] logits @logits {
    plan.buffer @logits domain logit_row : !plan.rows<32>
    plan.segment @main {
    }
  }
}
// -----

// Nothing that a library multiplies.
module {
  plan.source @src0 name "a" size 65536 hash "00000000deadbeef"
  plan.weight @i8 encoding <i8, group = 32> layout mma16 rows 32 columns 32 parts [#plan.part<source = @src0, name = "i8", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32>]
  // expected-error @below {{no linear of a prompt's tokens has f16 or bf16 weights, which alone a library multiplies}}
  plan.target @cuda layout "mma16" levels ["sm_90"] logits @logits {
    plan.buffer @x domain token : !plan.half_rows<32>
    plan.buffer @y domain token : !plan.rows<32>
    plan.buffer @logits domain logit_row : !plan.rows<32>
    plan.kernel @linear_i8g32_t8 op "linear" config {} scratch 0 geometry <threads = 128, shared = 0, rows = 32, tokens = 8>
    plan.segment @main {
      plan.linear @x weight @i8 to @y k = 32 n = 32 column = 0 domain = token variants [#plan.variant<1, 0, @linear_i8g32_t8>]
    }
  }
}
// -----

// A symbol has the name of a kernel that is needed.
module {
  plan.source @src0 name "a" size 65536 hash "00000000deadbeef"
  plan.weight @f16 encoding <f16> layout mma16 rows 32 columns 32 parts [#plan.part<source = @src0, name = "f16", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32>]
  // expected-error @below {{has a symbol @library_finish that is no kernel, whose name one needs}}
  plan.target @cuda layout "mma16" levels ["sm_90"] logits @logits {
    plan.buffer @x domain token : !plan.half_rows<32>
    plan.buffer @library_finish domain token : !plan.rows<32>
    plan.buffer @logits domain logit_row : !plan.rows<32>
    plan.kernel @linear_f16_t8 op "linear" config {} scratch 0 geometry <threads = 128, shared = 0, rows = 32, tokens = 8>
    plan.segment @main {
      plan.linear @x weight @f16 to @library_finish k = 32 n = 32 column = 0 domain = token variants [#plan.variant<1, 0, @linear_f16_t8>]
    }
  }
}
