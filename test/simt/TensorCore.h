// How the emulator's tensor cores round. CUDA does not say how an mma adds; papers have
// measured it:
//   M. Fasi, N. Higham, M. Mikaitis, S. Pranesh: Numerical behavior of NVIDIA tensor
//     cores. PeerJ Computer Science 7:e330, 2021 (V100, T4, A100)
//   F. Khattak, M. Mikaitis: Accurate Models of NVIDIA Tensor Cores.
//     arXiv:2512.07004, 2025 (up to H100 and B200)
// They find that nothing rounds to nearest: the terms of a piece of K are aligned to the
// largest of them and cut off, and their sum is cut off to float32.
#pragma once

namespace ingot::simt {

enum class MmaSums {
  Rounded, // in float64, to the nearest float32 once
  // Pieces of 8 of K; terms cut off below the last bit that a float32 as large as the
  // largest has, and the sum cut off to float32. The measured chips that Ingot has code
  // for keep a bit or more below that, and the newer of them have pieces of 16: what
  // holds here holds there.
  CutOff,
};

// While one lives, mma adds so.
class MmaSumsScope {
public:
  explicit MmaSumsScope(MmaSums sums);
  ~MmaSumsScope();
  MmaSumsScope(const MmaSumsScope &) = delete;
  MmaSumsScope &operator=(const MmaSumsScope &) = delete;

private:
  MmaSums before_;
};

} // namespace ingot::simt
