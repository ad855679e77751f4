#include "test/e2e/CompiledModel.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace ingot::test {
namespace {

namespace fs = std::filesystem;

const std::string kCompiler = INGOT_BIN_DIR "/ingot-compiler";

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

std::string compiledModel(const std::string &model, const std::string &quantize,
                          const std::string &kv) {
  static const Folder folder;
  fs::path path = modelPath(model);
  fs::path out = folder.path / (path.filename().string() + "-" + quantize +
                                "-" + kv + ".ingot");
  if (fs::exists(out))
    return out.string();
  std::string log = (folder.path / "log").string();
  std::string command = kCompiler + " compile '" + path.string() + "' -o " +
                        out.string() + " --quantize " + quantize + " --kv " +
                        kv + " > " + log + " 2>&1";
  if (std::system(command.c_str()) == 0)
    return out.string();
  std::ostringstream text;
  text << std::ifstream(log).rdbuf();
  ADD_FAILURE() << command << "\n" << text.str();
  return {};
}

} // namespace ingot::test
