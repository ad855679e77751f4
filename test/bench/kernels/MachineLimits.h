// What one core and the memory of this machine can do, measured: the yardstick
// of the kernel benchmark. Needs AVX2.
#pragma once

#include <cstddef>

namespace ingot::bench {

// Multiply-adds a second of one core in the instruction mix of the x86-64-v3
// kernels, all in registers.
double peakInt8();  // vpmaddwd + vpaddd
double peakInt4();  // vpmaddubsw + vpaddw
double peakFloat(); // vfmadd

// Sums the bytes of a buffer; for the read bandwidth.
unsigned long long readBuffer(const unsigned char *bytes, std::size_t size);

} // namespace ingot::bench
