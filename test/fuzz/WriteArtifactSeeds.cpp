// Writes the seeds of ArtifactFuzz: the tests' one-layer artifact, for the cpu and for
// CUDA devices, each whole and as its plan alone.
//
//   WriteArtifactSeeds FOLDER
#include "test/runtime/plan/TinyCudaArtifact.h"

#include <cstdio>
#include <fstream>

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 1;
  }
  ingot::test::TinyShape shape;
  shape.vocab = 16;
  ingot::test::TinyArtifact tiny = ingot::test::TinyArtifact::make(shape);
  auto write = [&](const char *name, const std::vector<std::uint8_t> &bytes,
                   const char *first) {
    std::ofstream out(std::string(argv[1]) + "/" + name, std::ios::binary);
    out << first;
    out.write(reinterpret_cast<const char *>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
    return bool(out);
  };
  ingot::test::TinyArtifact cuda = ingot::test::tinyCudaArtifact();
  bool written = write("plan", tiny.planBytes(), "P") &&
                 write("whole.ingot", tiny.bytes(), "") &&
                 write("cuda-plan", cuda.planBytes(), "C") &&
                 write("cuda-whole.ingot", cuda.bytes(), "");
  return written ? 0 : 1;
}
