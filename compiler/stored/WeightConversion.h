// Which encoding a stored weight has by itself, and what a conversion to an
// encoding does to its numbers. The one place that decides what "as stored"
// means for forms that no encoding holds exactly.
#pragma once

#include "compiler/stored/StoredDetails.h"
#include "compiler/stored/StoredForm.h"

#include <cstdint>
#include <string>

namespace ingot {

enum class WeightCode { F32, F16, BF16, I8, I4 };

// How the packed weight holds its numbers (as `Encoding` of plan.fbs).
struct WeightEncoding {
  WeightCode code = WeightCode::F32;
  std::uint32_t group = 0; // 0 for float codes
  bool minimum = false;

  bool operator==(const WeightEncoding &) const = default;
};

enum class WeightConversion {
  Exact,     // every number is moved as it is
  KeepCodes, // codes are moved, scales and minima rounded to float16
  Round,     // by way of float32, rounded to nearest
};

// The encoding of a matrix that nothing else is asked of: the one that holds it
// exactly; else the smallest that keeps its codes; else int8 for integer codes
// and float16 for eight-bit floats with scales.
WeightEncoding nativeEncoding(StoredForm form, const StoredDetails &details);

WeightConversion conversionTo(const WeightEncoding &encoding, StoredForm form,
                              const StoredDetails &details);

// For people: "Q4_K", "gptq 4-bit", "F16+lora".
std::string describeStored(StoredForm form, const StoredDetails &details);

} // namespace ingot
