// What a folder holds that is not what an importer looks for, as the sentence
// that tells a user what to do about it.
#pragma once

#include <string>
#include <vector>

namespace ingot {

// `names` are those of ModelFolder::list. Each gives "" where it knows nothing.

// Of a folder without a .safetensors file.
std::string insteadOfWeights(const std::vector<std::string> &names);
// Of a folder without config.json.
std::string insteadOfConfig(const std::vector<std::string> &names);
// Of a folder with neither tokenizer.json nor tokenizer.model: the files of a
// tokenizer in a form that is not read.
std::string insteadOfTokenizer(const std::vector<std::string> &names);

// Files NAME-00002-of-00003.safetensors that others of NAME count and that are
// not there, quoted.
std::string missingShards(const std::vector<std::string> &names);

} // namespace ingot
