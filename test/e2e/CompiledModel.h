// Artifacts of the models in test/models, made by the compiler that was built
// with the tests: each once a program, in a folder that goes with it. A model
// is named by its folder there or by the path of a file or folder.
#pragma once

#include <string>

namespace ingot::test {

// Empty where the compiler and the model are there, else what is missing.
std::string whyNotCompiled(const std::string &model);

// The path of the artifact; empty, with a test failure, where compiling fails.
std::string compiledModel(const std::string &model, const std::string &quantize,
                          const std::string &kv = "f16");

} // namespace ingot::test
