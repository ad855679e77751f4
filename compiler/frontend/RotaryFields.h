// From fields to the rotary embeddings of a model: one for its layers, and one
// of their own for the layers with a window where the family has that. Keys of a
// scaling object are strict for each type, as a key of another type means that
// something else was intended.
#pragma once

#include "compiler/frontend/ModelSpec.h"
#include "compiler/frontend/SpecFields.h"

namespace ingot {

struct RotaryFields {
  RotarySpec full, sliding;
  double fullPartial = 1.0, slidingPartial = 1.0; // rotating part of a head
  bool good = true;
};

// Adds to the problems of `fields`. What depends on the head size is left to the
// caller.
RotaryFields readRotaryFields(SpecFields &fields, const BlockDescriptor &block,
                              std::int64_t contextLength);

// The longest sequence under the rotary embedding, where its scaling stretches
// the length that the config states.
std::int64_t stretchedContext(const RotarySpec &rotary,
                              std::int64_t contextLength);

} // namespace ingot
