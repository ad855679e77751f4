// RUN: ingot-opt %s -assign-weights | FileCheck %s

// Weights follow each other on cache lines, planes within them. K is padded to
// 32 and rows to 16; a short last group has a scale of its own.
plan.source @src0 name "a" size 65536 hash "00000000deadbeef"
// CHECK: plan.weight @v {{.*}} placement <offset = 0, size = 20, scales = 0, mins = 0>
plan.weight @v encoding <f32> layout row rows 5 columns 1 value dense<[1.0, 2.0, 3.0, 4.0, 5.0]> : tensor<5xf32>
// CHECK: plan.weight @w8 {{.*}} placement <offset = 64, size = 3200, scales = 3072, mins = 0>
plan.weight @w8 encoding <i8, group = 64> layout r16 rows 17 columns 96 method "rtn"
  parts [#plan.part<source = @src0, name = "w", offset = 0, size = 6528, stored = f32, rows = 17, columns = 96>]
// CHECK: plan.weight @w4 {{.*}} placement <offset = 3264, size = 1280, scales = 1024, mins = 1152>
plan.weight @w4 encoding <i4, group = 32, minimum> layout r16 rows 32 columns 64
  parts [#plan.part<source = @src0, name = "w", offset = 0, size = 1280, stored = q4_1, rows = 32, columns = 64>]
