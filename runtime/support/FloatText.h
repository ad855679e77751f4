// A float32 in the fewest digits that give it back, whatever the locale.
#pragma once

#include <string>

namespace ingot {

// "0.1", "-1.5e-08"; "nan" and "inf" for what is no number.
std::string floatText(float value);
// The double of those digits: a writer of JSON then writes no more of them.
double shortDouble(float value);

} // namespace ingot
