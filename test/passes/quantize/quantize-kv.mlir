// RUN: ingot-opt %s --quantize-kv | FileCheck %s

// Every state is one of codes, whatever it was and however long its window is.
// CHECK: lm.state @kv0 {dtype = i8, head_dim = 16 : i64, kv_heads = 2 : i64, layers = 1 : i64}
// CHECK: lm.state @kv1 {dtype = i8, head_dim = 16 : i64, kv_heads = 2 : i64, layers = 2 : i64, window = 64 : i64}
// CHECK: lm.state @kv2 {dtype = i8,
module {
lm.state @kv0 {layers = 1 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f16}
lm.state @kv1 {layers = 2 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = f32, window = 64 : i64}
lm.state @kv2 {layers = 1 : i64, kv_heads = 2 : i64, head_dim = 16 : i64, dtype = i8}
}
