#include "test/e2e/CompiledModel.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

namespace ingot::test {
namespace {

namespace fs = std::filesystem;

const std::string kCompiler = INGOT_TEST_COMPILER;

struct Folder {
  fs::path path;
  Folder() {
    std::string pattern =
        (fs::temp_directory_path() / "ingot-e2e-XXXXXX").string();
    path = ::mkdtemp(pattern.data());
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

// Of the model's folder or file; an absolute `model` stands for itself.
fs::path modelPath(const std::string &model) {
  return fs::path(INGOT_SOURCE_DIR "/test/models") / model;
}

} // namespace

std::string whyNotCompiled(const std::string &model) {
  if (!fs::exists(kCompiler))
    return kCompiler + " is not built";
  fs::path path = modelPath(model);
  if (!fs::is_regular_file(path) && !fs::exists(path / "config.json"))
    return path.string() + " is not there";
  return {};
}

// The folder of everything that is made here.
static const fs::path &outputFolder() {
  static const Folder folder;
  return folder.path;
}

// Runs a command and gives what it printed; nothing, with a test failure, where
// it fails.
static std::optional<std::string> runCommand(const std::string &command) {
  std::string log = (outputFolder() / "log").string();
  bool isDone = std::system((command + " > " + log + " 2>&1").c_str()) == 0;
  std::ostringstream text;
  text << std::ifstream(log).rdbuf();
  if (isDone)
    return text.str();
  ADD_FAILURE() << command << "\n" << text.str();
  return std::nullopt;
}

std::string compiledModel(const std::string &model, const std::string &quantize,
                          const std::string &kv, const std::string &flags) {
  static std::map<std::string, std::string> made;
  fs::path path = modelPath(model);
  std::string key = path.string() + " " + quantize + " " + kv + " " + flags;
  if (auto found = made.find(key); found != made.end())
    return found->second;
  fs::path out =
      outputFolder() / (path.filename().string() + "-" + quantize + "-" + kv +
                        "-" + std::to_string(made.size()) + ".ingot");
  if (!runCommand(kCompiler + " compile '" + path.string() + "' -o '" +
                  out.string() + "' --quantize '" + quantize + "' --kv " + kv +
                  " " + flags))
    return {};
  return made[key] = out.string();
}

std::string fittedExits(const std::string &model, const std::string &quantize,
                        const std::string &exits, std::string *report) {
  std::ostringstream text;
  text << std::ifstream(INGOT_SOURCE_DIR "/test/models/held-out.txt").rdbuf();
  fs::path half = outputFolder() / "calibration.txt";
  std::ofstream(half) << text.str().substr(0, text.str().size() / 2);
  fs::path out =
      outputFolder() / (model + "-" + quantize + "-" + exits + ".safetensors");
  auto printed =
      runCommand(kCompiler + " fit-exits '" + modelPath(model).string() +
                 "' -o " + out.string() + " --exits " + exits + " --quantize " +
                 quantize + " --text " + half.string() + " --json");
  if (!printed)
    return {};
  if (report)
    *report = *printed;
  return out.string();
}

} // namespace ingot::test
