#include "runtime/support/FloatText.h"

#include <charconv>

namespace ingot {

std::string floatText(float value) {
  char text[32];
  auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return {text, end}; // 32 characters hold every float32
}

double shortDouble(float value) {
  std::string text = floatText(value);
  double result = value;
  (void)std::from_chars(text.data(), text.data() + text.size(), result);
  return result;
}

} // namespace ingot
