#include "compiler/frontend/ModelSpec.h"

namespace ingot {

const char *poolingName(Pooling pooling) {
  switch (pooling) {
  case Pooling::Mean:
    return "mean";
  case Pooling::Cls:
    return "cls";
  case Pooling::Last:
    return "last";
  }
  return "unknown";
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
