#include "compiler/codegen/graph/CompareTensors.h"

#include "llvm/ADT/APFloat.h"

#include <cmath>
#include <cstring>

namespace ingot::graph {
namespace {

std::string shapeText(const OnnxTensor &tensor) {
  std::string text = onnxTypeName(static_cast<std::int32_t>(tensor.type)) + "[";
  for (std::size_t i = 0; i < tensor.dims.size(); ++i)
    text += (i ? ", " : "") + std::to_string(tensor.dims[i]);
  return text + "]";
}

const llvm::fltSemantics *semanticsOf(OnnxType type) {
  switch (type) {
  case OnnxType::Float:
    return &llvm::APFloat::IEEEsingle();
  case OnnxType::Double:
    return &llvm::APFloat::IEEEdouble();
  case OnnxType::Float16:
    return &llvm::APFloat::IEEEhalf();
  case OnnxType::Bfloat16:
    return &llvm::APFloat::BFloat();
  default:
    return nullptr;
  }
}

double number(const std::uint8_t *bytes, std::uint64_t size,
              const llvm::fltSemantics &semantics) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes, size);
  llvm::APFloat value(semantics, llvm::APInt(unsigned(size) * 8, bits));
  bool lossy = false;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven,
                &lossy);
  return value.convertToDouble();
}

} // namespace

std::string compareTensors(const OnnxTensor &found, const OnnxTensor &expected,
                           const Tolerance &tolerance) {
  if (found.type != expected.type || found.dims != expected.dims)
    return "expected " + shapeText(expected) + ", found " + shapeText(found);
  const std::uint64_t size =
      onnxElementBytes(static_cast<std::int32_t>(expected.type));
  const llvm::fltSemantics *semantics = semanticsOf(expected.type);
  std::uint64_t wrong = 0;
  std::string first;
  for (std::uint64_t i = 0; i < expected.numElements; ++i) {
    const std::uint8_t *a = found.bytes().data() + i * size,
                       *b = expected.bytes().data() + i * size;
    if (std::memcmp(a, b, size) == 0)
      continue;
    std::string text;
    if (semantics) {
      double x = number(a, size, *semantics), y = number(b, size, *semantics);
      if ((std::isnan(x) && std::isnan(y)) || x == y)
        continue;
      double allowed = tolerance.absolute + tolerance.relative * std::abs(y);
      if (size == 2) // one unit of 10 or 7 bits of fraction
        allowed =
            std::max(allowed, std::abs(y) * (expected.type == OnnxType::Float16
                                                 ? 0x1p-10
                                                 : 0x1p-7));
      // An infinity allows no distance, though its share of itself is infinite.
      if (std::isfinite(y) && std::abs(x - y) <= allowed)
        continue;
      text = std::to_string(y) + ", found " + std::to_string(x);
    } else {
      std::int64_t x = 0, y = 0;
      std::memcpy(&x, a, size);
      std::memcpy(&y, b, size);
      text = std::to_string(y) + ", found " + std::to_string(x);
    }
    if (wrong++ == 0)
      first = "element " + std::to_string(i) + ": expected " + text;
  }
  if (wrong == 0)
    return {};
  return std::to_string(wrong) + " of " + std::to_string(expected.numElements) +
         " elements differ; " + first;
}

} // namespace ingot::graph
