// How an encoding of weights and the method that finds its codes are spelled, by
// options, recipes and passes alike: "int8", "int4-g32", "int4-g128-awq",
// "int8-gptq", "f16", "none".
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <string>

namespace ingot {

struct QuantizeSpec {
  std::string encoding = "none"; // none, f32, f16, bf16, int8 or int4
  std::int64_t group = 64;       // of the integer ones: 32, 64 or 128
  std::string method = "rtn";    // of the integer ones: rtn, gptq or awq

  bool isInteger() const { return encoding == "int8" || encoding == "int4"; }
  // Does the method look at the inputs of an operator?
  bool isCalibrated() const { return method != "rtn"; }
  // The spelling with every word: "int4-g32-rtn"; "f16" alone.
  std::string text() const;

  bool operator==(const QuantizeSpec &) const = default;
};

// Of "encoding[-gGROUP][-METHOD]"; the message begins after the word itself.
Result<QuantizeSpec> parseQuantizeSpec(const std::string &text);

} // namespace ingot
