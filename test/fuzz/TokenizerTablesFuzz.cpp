// Compiled tokenizer tables, as the runtime maps them from an artifact, with
// damage: the first byte picks one of the seed tokenizers, each four that follow
// set a byte of its tables.
#include "compiler/frontend/tokenizer/TokenizerBuilder.h"
#include "test/fuzz/ExerciseTokenizer.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace {

std::vector<std::vector<uint8_t>> buildSeeds() {
  std::vector<std::filesystem::path> paths;
  for (const auto &entry :
       std::filesystem::directory_iterator(INGOT_FUZZ_SEEDS "/tokenizers"))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::vector<uint8_t>> all;
  for (const auto &path : paths) {
    std::ifstream in(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    ingot::HuggingFaceTokenizer description;
    description.tokenizerJson = text;
    auto tables = ingot::buildTokenizer(description);
    if (!tables)
      __builtin_trap();
    all.push_back(std::move(tables).value());
  }
  return all;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const auto seeds = buildSeeds();
  if (size == 0)
    return 0;
  std::vector<uint8_t> tables = seeds[data[0] % seeds.size()];
  for (size_t i = 1; i + 4 <= size; i += 4) {
    size_t at = data[i] | size_t(data[i + 1]) << 8 | size_t(data[i + 2]) << 16;
    tables[at % tables.size()] = data[i + 3];
  }
  ingot::test::exercise(std::move(tables));
  return 0;
}
