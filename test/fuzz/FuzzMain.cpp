// Runs a fuzz target where libFuzzer is not at hand (g++, or a build without
// instrumentation): every seed as it is, then seeds damaged at random until the
// time is up. The damage follows from a fixed number, so that a finding comes
// again; the input that crashed is written to ./<program>.crash.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace {

std::string input;
char crashFile[512];

extern "C" void onCrash(int signal) {
  int file = open(crashFile, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file >= 0) {
    if (write(file, input.data(), input.size()) >= 0)
      close(file);
    const char text[] = "fuzz: crashed; the input is in the file *.crash\n";
    if (write(2, text, sizeof text - 1) < 0)
      _exit(3);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void run() {
  // A copy of its own size, so that a read past the end is out of bounds.
  std::vector<uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

std::string damage(const std::vector<std::string> &seeds, size_t maxLength,
                   std::mt19937_64 &random) {
  std::string text = seeds[random() % seeds.size()];
  for (size_t n = 1 + random() % 6; n > 0; --n) {
    size_t at = text.empty() ? 0 : random() % text.size();
    switch (random() % 8) {
    case 0:
      if (!text.empty())
        text[at] = static_cast<char>(random());
      break;
    case 1:
      if (!text.empty())
        text[at] ^= static_cast<char>(1 << random() % 8);
      break;
    case 2:
      text.erase(at, 1 + random() % 16);
      break;
    case 3:
      text.insert(at, 1 + random() % 8, static_cast<char>(random()));
      break;
    case 4: // a part again elsewhere
      if (!text.empty())
        text.insert(at, text.substr(random() % text.size(), 1 + random() % 64));
      break;
    case 5: { // a part of another seed
      const std::string &other = seeds[random() % seeds.size()];
      if (!other.empty())
        text.insert(at,
                    other.substr(random() % other.size(), 1 + random() % 64));
      break;
    }
    case 6: { // a number that readers get wrong
      const uint64_t numbers[] = {
          0,          1,          0x7F,       0xFF,
          0x7FFFFFFF, 0xFFFFFFFF, UINT64_MAX, uint64_t(1) << 63};
      uint64_t number = numbers[random() % std::size(numbers)];
      size_t width = size_t(1) << random() % 4;
      if (at + width <= text.size())
        std::memcpy(&text[at], &number, width);
      break;
    }
    case 7:
      text.resize(at);
      break;
    }
  }
  if (text.size() > maxLength)
    text.resize(maxLength);
  return text;
}

int usage(const char *program) {
  std::fprintf(stderr,
               "usage: %s [--seconds N] [--max-length BYTES] FILE|FOLDER...\n",
               program);
  return 1;
}

} // namespace

int main(int argc, char **argv) {
  double seconds = 0;
  size_t maxLength = 65536;
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if ((argument == "--seconds" || argument == "--max-length") &&
        i + 1 < argc) {
      double value = std::atof(argv[++i]);
      if (argument == "--seconds")
        seconds = value;
      else
        maxLength = static_cast<size_t>(value);
      continue;
    }
    if (argument.starts_with("--"))
      return usage(argv[0]);
    if (std::filesystem::is_directory(argument)) {
      for (const auto &entry : std::filesystem::directory_iterator(argument))
        files.push_back(entry.path());
    } else {
      files.push_back(argument);
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> seeds;
  for (const auto &file : files) {
    std::ifstream in(file, std::ios::binary);
    if (!in) {
      std::fprintf(stderr, "fuzz: cannot read %s\n", file.c_str());
      return 1;
    }
    seeds.emplace_back(std::istreambuf_iterator<char>(in),
                       std::istreambuf_iterator<char>());
  }
  if (seeds.empty())
    return usage(argv[0]);

  std::snprintf(crashFile, sizeof crashFile, "%s.crash",
                std::filesystem::path(argv[0]).filename().c_str());
  for (int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL})
    std::signal(signal, onCrash);

  for (const std::string &seed : seeds) {
    input = seed;
    run();
  }
  std::mt19937_64 random(20240229);
  auto start = std::chrono::steady_clock::now();
  size_t runs = 0;
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
             .count() < seconds) {
    input = damage(seeds, maxLength, random);
    run();
    ++runs;
  }
  std::printf("%zu seeds, %zu damaged inputs\n", seeds.size(), runs);
}
