// Which CPU kernels exist, what they are called and which step sizes they
// serve. Lowering asks `variantsFor` and writes the answer into the plan; code
// generation turns each named kernel into native code. Names and the keys of a
// configuration are written down in docs/kernel-names.md.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace ingot::codegen {

using ConfigValue = std::variant<std::int64_t, std::string>;
// Ordered, so that equal configurations print and compare equal.
using KernelConfig = std::map<std::string, ConfigValue>;

// A kernel and the row counts it serves: first <= rows <= last (last 0: no
// bound). Two variants with one name are one kernel with the same constants;
// where their scratch sizes differ, the larger serves both.
struct KernelVariant {
  std::uint32_t first = 1;
  std::uint32_t last = 0;
  std::string name;
  std::string op;
  KernelConfig constants;         // what code generation needs, no more
  std::uint32_t scratchBytes = 0; // of each worker
};

// The variants of an operation of KernelAbi.h ("linear", "attention", ...), in
// ascending order, covering [1, infinity) without gaps. An unknown operation or
// key, a missing key or a value without a kernel is an error that names it.
//
//   op                config (keys in brackets may be left out)
//   embed             encoding; group, [minimum] for i8 and i4
//   rope_table        -
//   rms_norm          [group, bits]: without them float32 only
//   quantize          group, bits
//   linear            encoding; group, [minimum] for i8 and i4
//   layer_norm        [group, bits], as rms_norm
//   gated, activate   activation ("silu", "gelu_tanh", "gelu", "relu");
//                     [group, bits]
//   add, cap          -
//   route, order_slots, dispatch, combine
//                     -
//   expert_linear     as linear
//   rope_cache_write  head_dim, kv ("f32", "f16", "i8")
//   attention         head_dim, kv; [group, bits]: group divides head_dim
//   gather_rows       -
//
// `encoding` is "f32", "f16", "bf16", "i8" or "i4"; `bits` of an activation code
// are 8 or 16.
Result<std::vector<KernelVariant>> variantsFor(const std::string &op,
                                               const KernelConfig &config);

} // namespace ingot::codegen
