// Models that hold a language model among other parts, such as one that also
// sees images. A wrapper says, as data (wrappers.json), which family the text
// part is of and how its keys and tensors are reached; the rest is left out.
#pragma once

#include "runtime/support/Status.h"

#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

struct Wrapper {
  std::vector<std::string> names;         // model_type of the whole
  std::vector<std::string> architectures; // its class names
  // model_type of the text part to the model_type that a family reads; "" where
  // the keys of the text part stand among those of the whole.
  std::map<std::string, std::string> text;
  nlohmann::json defaults; // object: keys that files of the text part leave out
  // Positions of three kinds (mrope), which are one and the same for text.
  bool ropeSections = false;
  std::map<std::string, std::string> ignored; // keys of the whole, with reasons
  std::map<std::string, std::string>
      prefixes;                            // of tensors, as the family has it
  std::vector<std::string> ignoredTensors; // prefixes
};

// Refuses keys that no importer knows; `name` stands for the text in messages.
Result<std::vector<Wrapper>> parseWrappers(std::string_view text,
                                           const std::string &name);

// Those that the build embedded.
Result<std::vector<Wrapper>> loadWrappers();

} // namespace ingot
