// RUN: not ingot-opt %s -verify-phase=after=bake 2>&1 | FileCheck %s

// A phase that does not exist.
// CHECK: error: verify-phase: unknown phase "bake", expected import, simplify, compress or fuse
module {}
