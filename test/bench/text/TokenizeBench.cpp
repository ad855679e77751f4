// How fast a tokenizer encodes: each file whole, several times, in one thread;
// prints the best time of the processor in seconds and the number of ids, one line a file.
//
//   TokenizeBench ROUNDS FOLDER|tokenizer.json FILE...
#include "compiler/frontend/tokenizer/TokenizerBuilder.h"
#include "runtime/text/Tokenizer.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <time.h>

static double processorSeconds() {
  timespec now;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

int main(int argc, char **argv) {
  using namespace ingot;
  const int rounds = argc < 4 ? 0 : std::atoi(argv[1]);
  if (rounds < 1) {
    std::fprintf(stderr,
                 "usage: TokenizeBench ROUNDS FOLDER|tokenizer.json FILE...\n");
    return 1;
  }
  auto read = [](const char *path) {
    std::ifstream in(path, std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(in), {}};
  };
  std::string json;
  Result<std::vector<uint8_t>> tables = Status::ok();
  if (std::filesystem::is_directory(argv[2])) {
    tables = buildTokenizerFromFolder(argv[2]);
  } else {
    json = read(argv[2]);
    HuggingFaceTokenizer description;
    description.tokenizerJson = json;
    tables = buildTokenizer(description);
  }
  if (!tables) {
    std::fprintf(stderr, "%s\n", tables.status().message().c_str());
    return 1;
  }
  auto tokenizer = Tokenizer::open(*tables);
  if (!tokenizer) {
    std::fprintf(stderr, "%s\n", tokenizer.status().message().c_str());
    return 1;
  }
  EncodeOptions options;
  options.addSpecialTokens = false;
  for (int i = 3; i < argc; ++i) {
    std::string text = read(argv[i]);
    double best = 1e9;
    size_t numIds = 0;
    for (int round = 0; round < rounds; ++round) {
      double start = processorSeconds();
      auto ids = tokenizer->encode(text, options);
      double took = processorSeconds() - start;
      if (!ids) {
        std::fprintf(stderr, "%s\n", ids.status().message().c_str());
        return 1;
      }
      numIds = ids->size();
      best = std::min(best, took);
    }
    std::printf("%.6f %zu\n", best, numIds);
  }
}
