// The language model within a model of several parts (one that also sees images,
// say): its config and its tensors as those of a model of its own.
#pragma once

#include "compiler/architectures/Wrapper.h"
#include "compiler/frontend/SpecBuilder.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace ingot {

// Turns `config` into that of the language model. Any config may nest it in
// "text_config", whose keys then stand above the outer ones; one whose
// model_type a wrapper knows also loses what belongs to the other parts. Gives
// that wrapper, or null. `where` is the file, for messages.
Result<const Wrapper *> takeTextPart(const std::vector<Wrapper> &wrappers,
                                     const std::string &where,
                                     nlohmann::json &config);

// Names the tensors as the family of the text part does, and leaves out those of
// other parts, which a note counts.
Status takeTextTensors(const Wrapper &wrapper, const std::string &where,
                       std::vector<FileTensor> &tensors,
                       std::vector<std::string> &notes);

} // namespace ingot
