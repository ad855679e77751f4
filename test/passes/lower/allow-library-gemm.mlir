// RUN: ingot-opt %s -allow-library-gemm | FileCheck %s

// Products of 65 rows and more with float weights go to a library; the kernels that
// nothing names any more go, those that smaller steps name stay, and the target gets
// what the library needs around it.

// CHECK-LABEL: plan.target @cuda
// CHECK: plan.kernel @linear_f16_t64 op "linear"
// CHECK-NOT: plan.kernel @linear_f16_p64
// CHECK: plan.kernel @linear_i8g32_t8 op "linear"
// CHECK: plan.kernel @linear_any op "linear"
// CHECK: plan.kernel @library_finish op "library_finish" config {} scratch 0 geometry <threads = 256, shared = {{[0-9]+}}, rows = 1, tokens = 1>
// CHECK: plan.kernel @library_linear_f16 op "library_linear" config {} scratch 0 geometry <threads = 128, shared = 0, rows = 16, tokens = 1>
// CHECK: plan.kernel @library_linear_bf16 op "library_linear"

// CHECK: plan.linear @x weight @f16 to @y {{.*}} variants [#plan.variant<1, 64, @linear_f16_t64>, #plan.variant<65, 0, @library_linear_f16>]
// A variant that serves both kinds of steps is cut.
// CHECK: plan.linear @x weight @bf16 to @y {{.*}} variants [#plan.variant<1, 64, @linear_any>, #plan.variant<65, 0, @library_linear_bf16>]
// Codes are not for a library.
// CHECK: plan.linear @x weight @i8 to @y {{.*}} variants [#plan.variant<1, 0, @linear_i8g32_t8>]
// Nor are the rows of logits, of which there are few.
// CHECK: plan.linear @r weight @f16 to @logits {{.*}} variants [#plan.variant<1, 64, @linear_f16_t64>, #plan.variant<65, 0, @linear_any>]

// The cpu's own kernels have nothing to do with it.
// CHECK-LABEL: plan.target @cpu
// CHECK-NOT: library
module {
  plan.source @src0 name "a" size 65536 hash "00000000deadbeef"
  plan.weight @f16 encoding <f16> layout mma16 rows 32 columns 32 parts [#plan.part<source = @src0, name = "f16", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32>]
  plan.weight @bf16 encoding <bf16> layout mma16 rows 32 columns 32 parts [#plan.part<source = @src0, name = "bf16", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32>]
  plan.weight @i8 encoding <i8, group = 32> layout mma16 rows 32 columns 32 parts [#plan.part<source = @src0, name = "i8", offset = 0, size = 2048, stored = f16, rows = 32, columns = 32>]
  plan.target @cuda layout "mma16" levels ["sm_90"] logits @logits {
    plan.buffer @x domain token : !plan.half_rows<32>
    plan.buffer @y domain token : !plan.rows<32>
    plan.buffer @r domain logit_row : !plan.half_rows<32>
    plan.buffer @logits domain logit_row : !plan.rows<32>
    plan.kernel @linear_f16_t64 op "linear" config {} scratch 0 geometry <threads = 128, shared = 0, rows = 32, tokens = 64>
    plan.kernel @linear_f16_p64 op "linear" config {} scratch 0 geometry <threads = 128, shared = 0, rows = 128, tokens = 64>
    plan.kernel @linear_i8g32_t8 op "linear" config {} scratch 0 geometry <threads = 128, shared = 0, rows = 32, tokens = 8>
    plan.kernel @linear_any op "linear" config {} scratch 0 geometry <threads = 128, shared = 0, rows = 32, tokens = 8>
    plan.segment @main {
      plan.linear @x weight @f16 to @y k = 32 n = 32 column = 0 domain = token variants [#plan.variant<1, 64, @linear_f16_t64>, #plan.variant<65, 0, @linear_f16_p64>]
      plan.linear @x weight @bf16 to @y k = 32 n = 32 column = 0 domain = token variants [#plan.variant<1, 0, @linear_any>]
      plan.linear @x weight @i8 to @y k = 32 n = 32 column = 0 domain = token variants [#plan.variant<1, 0, @linear_i8g32_t8>]
      plan.linear @r weight @f16 to @logits k = 32 n = 32 column = 0 domain = logit_row variants [#plan.variant<1, 64, @linear_f16_t64>, #plan.variant<65, 0, @linear_any>]
    }
  }
  plan.target @cpu layout "r16" levels ["a"] logits @logits {
    plan.buffer @logits domain logit_row : !plan.rows<32>
    plan.segment @main {
    }
  }
}
