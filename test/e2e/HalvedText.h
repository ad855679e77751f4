// The two halves of the held-out text, for tests of what is learned from one and
// measured on the other, in a folder that goes with the program.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace ingot::test {

class HalvedText {
public:
  HalvedText() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "ingot-halves-XXXXXX")
            .string();
    folder_ = ::mkdtemp(pattern.data());
    std::ostringstream text;
    text << std::ifstream(INGOT_SOURCE_DIR "/test/models/held-out.txt").rdbuf();
    std::string all = text.str();
    std::size_t half = all.find('\n', all.size() / 2) + 1;
    std::ofstream(folder_ / "calibration.txt") << all.substr(0, half);
    evaluation_ = all.substr(half);
  }
  ~HalvedText() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  HalvedText(const HalvedText &) = delete;
  HalvedText &operator=(const HalvedText &) = delete;

  const std::string &evaluation() const { return evaluation_; }
  // Options of compile: calibrate on the first half, keep what is made here.
  std::string flags() const {
    return "--calibrate " + (folder_ / "calibration.txt").string() +
           " --calibration-cache " + (folder_ / "cache").string();
  }

private:
  std::filesystem::path folder_;
  std::string evaluation_;
};

inline const HalvedText &halvedText() {
  static const HalvedText both;
  return both;
}

} // namespace ingot::test
