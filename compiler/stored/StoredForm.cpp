#include "compiler/stored/StoredForm.h"

#include <array>

namespace ingot {
namespace {

struct FormInfo {
  const char *name;
  std::uint64_t elements;
  std::uint64_t bytes;
};

constexpr std::array<FormInfo, kNumStoredForms> forms = {{
    {"F32", 1, 4},
    {"F16", 1, 2},
    {"BF16", 1, 2},
    {"Q8_0", 32, 34},   // half scale, 32 bytes
    {"Q4_0", 32, 18},   // half scale, 32 nibbles
    {"Q4_1", 32, 20},   // half scale and minimum, 32 nibbles
    {"Q5_0", 32, 22},   // half scale, 32 high bits, 32 nibbles
    {"Q5_1", 32, 24},   // half scale and minimum, 32 high bits, 32 nibbles
    {"Q4_K", 256, 144}, // 8 groups of 32 whose scales and minima are 6 bits
    {"Q5_K", 256, 176}, // the same with 256 high bits
    {"Q6_K", 256, 210}, // 16 groups of 16 with int8 scales
    {"F64", 1, 8},
    {"F8_E4M3", 1, 1},
    {"F8_E5M2", 1, 1},
    {"F8_E8M0", 1, 1},
    {"codes", 1, 0},
}};

const FormInfo &infoOf(StoredForm form) {
  return forms[static_cast<std::size_t>(form)];
}

} // namespace

const char *storedFormName(StoredForm form) { return infoOf(form).name; }
std::uint64_t storedBlockElements(StoredForm form) {
  return infoOf(form).elements;
}
std::uint64_t storedBlockBytes(StoredForm form) { return infoOf(form).bytes; }

KeptCodes keptCodes(StoredForm form) {
  switch (form) {
  case StoredForm::Q8_0:
  case StoredForm::Q5_0: // five bits around zero are eight
    return {true, 32, false, true};
  case StoredForm::Q4_0:
    return {false, 32, false, true};
  case StoredForm::Q4_1:
    return {false, 32, true, true};
  case StoredForm::Q4_K: // a scale is a product of a half and six bits
    return {false, 32, true, false};
  default:
    return {};
  }
}

} // namespace ingot
