#include "compiler/frontend/ModelSpec.h"

namespace ingot {

const char *weightDtypeName(WeightDtype dtype) {
  switch (dtype) {
  case WeightDtype::F32:
    return "F32";
  case WeightDtype::F16:
    return "F16";
  case WeightDtype::BF16:
    return "BF16";
  case WeightDtype::Q8_0:
    return "Q8_0";
  case WeightDtype::Q4_0:
    return "Q4_0";
  case WeightDtype::Q4_1:
    return "Q4_1";
  }
  return "?";
}

std::uint64_t weightBlockElements(WeightDtype dtype) {
  switch (dtype) {
  case WeightDtype::F32:
  case WeightDtype::F16:
  case WeightDtype::BF16:
    return 1;
  case WeightDtype::Q8_0:
  case WeightDtype::Q4_0:
  case WeightDtype::Q4_1:
    return 32;
  }
  return 1;
}

std::uint64_t weightBlockBytes(WeightDtype dtype) {
  switch (dtype) {
  case WeightDtype::F32:
    return 4;
  case WeightDtype::F16:
  case WeightDtype::BF16:
    return 2;
  case WeightDtype::Q8_0: // half scale, 32 bytes
    return 34;
  case WeightDtype::Q4_0: // half scale, 32 nibbles
    return 18;
  case WeightDtype::Q4_1: // half scale and minimum, 32 nibbles
    return 20;
  }
  return 1;
}

const char *activationName(Activation activation) {
  switch (activation) {
  case Activation::Silu:
    return "silu";
  case Activation::Gelu:
    return "gelu";
  case Activation::GeluTanh:
    return "gelu_tanh";
  case Activation::Relu:
    return "relu";
  }
  return "?";
}

const char *rotaryKindName(RotaryKind kind) {
  switch (kind) {
  case RotaryKind::Default:
    return "default";
  case RotaryKind::Linear:
    return "linear";
  case RotaryKind::Llama3:
    return "llama3";
  case RotaryKind::Yarn:
    return "yarn";
  case RotaryKind::Dynamic:
    return "dynamic";
  case RotaryKind::LongRope:
    return "longrope";
  case RotaryKind::FrequencyFactors:
    return "frequency_factors";
  }
  return "?";
}

std::int64_t storedRow(const TensorSource &source, std::int64_t row) {
  if (source.storedRows != 0)
    return source.first + row / source.run * source.stride + row % source.run;
  if (source.permutation == RowPermutation::None)
    return row;
  std::int64_t headDim = source.shape[0] / source.permutationHeads;
  std::int64_t half = headDim / 2;
  std::int64_t head = row / headDim, inHead = row % headDim;
  return head * headDim + 2 * (inHead % half) + inHead / half;
}

std::string layerRole(std::int64_t layer, const std::string &role) {
  return "layer." + std::to_string(layer) + "." + role;
}

} // namespace ingot
