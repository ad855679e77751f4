// From a tensor directory to the parameters of a spec: each role finds its
// tensor, each tensor its role, and every shape is the one that the sizes of
// the model demand. Both importers end here, so both are equally strict.
#pragma once

#include "compiler/architectures/Descriptor.h"
#include "compiler/frontend/ImportOptions.h"
#include "compiler/frontend/ModelSpec.h"
#include "compiler/frontend/SpecFields.h"

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace ingot {

// One tensor of the input, with its shape as [out, in] or [n].
struct FileTensor {
  std::string name;
  std::uint32_t fileIndex = 0;
  std::uint64_t byteOffset = 0;
  std::span<const std::uint8_t> data;
  std::optional<WeightDtype> dtype; // absent: one we cannot use
  std::string dtypeName;
  std::vector<std::uint64_t> shape;
  StoredDetails details; // of codes
};

// Finishes `spec`, whose layers readModelFields() has filled: parameters, tied
// head, biases where the tensors tell, and rotary frequencies. Adds to the
// problems of `fields`.
void bindTensors(SpecFields &fields, const RouteDescriptor &route,
                 const std::vector<FileTensor> &tensors,
                 const ImportOptions &options, ModelSpec &spec);

// What cases of a descriptor may ask for.
std::set<std::string> namesOf(const std::vector<FileTensor> &tensors);

} // namespace ingot
