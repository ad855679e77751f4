// Artifacts of the models in test/models, made by the compiler that was built
// with the tests: each once a program, in a folder that goes with it. A model
// is named by its folder there or by the path of a file or folder.
#pragma once

#include <string>

namespace ingot::test {

// Empty where the compiler and the model are there, else what is missing.
std::string whyNotCompiled(const std::string &model);

// The path of the artifact; empty, with a test failure, where compiling fails.
// `flags` are added to the command line.
std::string compiledModel(const std::string &model, const std::string &quantize,
                          const std::string &kv = "f16",
                          const std::string &flags = "");

// The maps of early exits of a model of test/models, fitted on the first half of
// the held-out text; empty, with a test failure, where fitting fails. `report`
// gets what the program printed, as JSON.
std::string fittedExits(const std::string &model, const std::string &quantize,
                        const std::string &exits,
                        std::string *report = nullptr);

} // namespace ingot::test
