// How the numbers of a weight lie in a source file, in whichever format: plain
// elements, ggml's blocks, or codes whose scales are tensors of their own. One
// table that importers, dialects and the packer share.
#pragma once

#include <cstdint>

namespace ingot {

// Changing the order changes the Stored enums of dialects/lm and dialects/plan.
enum class StoredForm {
  F32,
  F16,
  BF16,
  Q8_0,
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q4_K,
  Q5_K,
  Q6_K,
  F64,
  F8E4M3,
  F8E5M2,
  F8E8M0,
  Codes, // see StoredCodes; it has no block of a fixed size
};
constexpr int kNumStoredForms = 16;

// As file formats spell it: "Q4_K", "F8_E4M3".
const char *storedFormName(StoredForm form);
// Elements in one block along a row (1 for plain elements) and its bytes;
// 0 bytes for Codes.
std::uint64_t storedBlockElements(StoredForm form);
std::uint64_t storedBlockBytes(StoredForm form);

// The integer encoding that a form's codes can be carried over to.
struct KeptCodes {
  bool int8 = false; // codes of 8 bits, else 4
  std::uint32_t group = 0;
  bool minimum = false;
  // Scale and minimum are float16 values already; else they are rounded.
  bool exact = false;

  bool operator==(const KeptCodes &) const = default;
};

// What a block form keeps; group 0 where its codes cannot be kept.
KeptCodes keptCodes(StoredForm form);

} // namespace ingot
