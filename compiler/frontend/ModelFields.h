// From fields to meaning: the sizes of the model and of each layer, its rotary
// embedding, window and biases, with every default of the family resolved.
#pragma once

#include "compiler/frontend/ModelSpec.h"
#include "compiler/frontend/SpecFields.h"

namespace ingot {

// Adds to the problems of `fields`. False when the layers could not be read,
// so that nothing can be said about the tensors; `rotary.invFreq` is left to
// the caller, who may hold frequency factors.
bool readModelFields(SpecFields &fields, const BlockDescriptor &block,
                     ModelSpec &spec);

// The sampling defaults among the fields.
void readSamplingFields(SpecFields &fields, DefaultSampling &sampling);

// Adds the ids that a field holds, one or a list, to `ids` (ascending, each
// once), after checking them against the vocabulary.
void readTokenIds(SpecFields &fields, const std::string &field,
                  std::int64_t vocabSize, std::vector<std::int64_t> &ids);

} // namespace ingot
