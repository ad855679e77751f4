// RUN: ingot-opt %s -split-input-file -canonicalize | FileCheck %s

// A split into one part is its input.
// CHECK-LABEL: lm.program @main
// CHECK-NOT: lm.split
// CHECK: lm.return
lm.weight @w [2, 64] encoding <f32> layout r16 value dense<1.0> : tensor<2x64xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %y = lm.split %x : tensor<?x64xf32> -> tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}

// -----

// A split of a concat at the same columns gives the concat's operands.
// CHECK-LABEL: lm.program @main
// CHECK: %[[X:.*]] = lm.embed
// CHECK-NOT: lm.concat
// CHECK: lm.add %[[X]], %[[X]]
lm.weight @w [2, 64] encoding <f32> layout r16 value dense<1.0> : tensor<2x64xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %c = lm.concat %x, %x : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x128xf32>
  %a, %b = lm.split %c : tensor<?x128xf32> -> tensor<?x64xf32>, tensor<?x64xf32>
  %y = lm.add %a, %b : tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}

// -----

// A split of a concat at other columns stays.
// CHECK-LABEL: lm.program @main
// CHECK: lm.concat
// CHECK: lm.split
lm.weight @w [2, 64] encoding <f32> layout r16 value dense<1.0> : tensor<2x64xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x32xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %c = lm.concat %x, %x : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x128xf32>
  %a, %b = lm.split %c : tensor<?x128xf32> -> tensor<?x32xf32>, tensor<?x96xf32>
  lm.return %a : tensor<?x32xf32>
}

// -----

// A concat of all parts of a split, in order, is the split's input; in another order it stays.
// CHECK-LABEL: lm.program @main
// CHECK: %[[X:.*]] = lm.embed
// CHECK: %[[S:.*]]:2 = lm.split %[[X]]
// CHECK: %[[C:.*]] = lm.concat %[[S]]#1, %[[S]]#0
// CHECK: lm.add %[[X]], %[[C]]
lm.weight @w [2, 64] encoding <f32> layout r16 value dense<1.0> : tensor<2x64xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %a, %b = lm.split %x : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x32xf32>
  %c = lm.concat %a, %b : tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x64xf32>
  %d = lm.concat %b, %a : tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x64xf32>
  %y = lm.add %c, %d : tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}

// -----

// A concat of one operand is that operand.
// CHECK-LABEL: lm.program @main
// CHECK-NOT: lm.concat
// CHECK: lm.return
lm.weight @w [2, 64] encoding <f32> layout r16 value dense<1.0> : tensor<2x64xf32>
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %y = lm.concat %x : tensor<?x64xf32> -> tensor<?x64xf32>
  lm.return %y : tensor<?x64xf32>
}

// -----

// What writes the state or marks a cut stays although nothing reads its result.
// CHECK-LABEL: lm.program @main
// CHECK: lm.cut "exit"
// CHECK: lm.attention
lm.weight @w [2, 64] encoding <f32> layout r16 value dense<1.0> : tensor<2x64xf32>
lm.state @kv {layers = 1 : i64, kv_heads = 4 : i64, head_dim = 16 : i64, dtype = f32}
lm.program @main(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = lm.embed %tokens, @w : tensor<?x64xf32>
  %c = lm.cut "exit" %x : tensor<?x64xf32>
  %a = lm.attention %x, %x, %x state @kv[0] {heads = 4 : i64, kv_heads = 4 : i64, head_dim = 16 : i64, scale = 0.25 : f32} : tensor<?x64xf32>, tensor<?x64xf32>
  lm.return %x : tensor<?x64xf32>
}
