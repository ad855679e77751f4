// For the build: writes kernels as sources for the emulator of test/simt, the text
// that NVRTC would get followed by the kernel's entry in the table.
//   ingot-cuda-host-source OUTPUT NAME...
#include "compiler/codegen/cuda/CudaCatalog.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>

namespace {

// A file that has this text already keeps its time, and its object is not built anew.
bool writeIfChanged(const std::string &path, const std::string &text) {
  {
    std::ifstream in(path, std::ios::binary);
    if (in && std::string(std::istreambuf_iterator<char>(in), {}) == text)
      return true;
  }
  std::ofstream out(path, std::ios::binary);
  out << text;
  return bool(out.flush());
}

} // namespace

int main(int argc, char **argv) {
  using namespace ingot;
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s FOLDER NAME...\n", argv[0]);
    return 2;
  }
  for (int i = 2; i < argc; ++i) {
    auto kernel = codegen::cudaKernel(argv[i]);
    if (!kernel) {
      std::fprintf(stderr, "%s\n", kernel.status().message().c_str());
      return 1;
    }
    auto text = codegen::cudaKernelText(*kernel);
    if (!text) {
      std::fprintf(stderr, "%s\n", text.status().message().c_str());
      return 1;
    }
    char hash[24];
    std::snprintf(
        hash, sizeof hash, "0x%016llxull",
        static_cast<unsigned long long>(codegen::cudaTextHash(*text)));
    const std::string path =
        std::string(argv[1]) + "/" + kernel->name + ".host.cpp";
    std::ostringstream out;
    out << *text << "#line 1 \"" << kernel->name << ".host.cpp\"\n"
        << "#include \"test/simt/KernelTable.h\"\n"
        << "static void runOne(const void *given) {\n  " << kernel->entry
        << "(*static_cast<const ingot::" << kernel->params
        << " *>(given));\n}\n"
        << "static const ingot::simt::KernelEntry entry = {\n  \""
        << kernel->entry << "\", " << hash
        << ", sizeof(ingot::" << kernel->params << "), runOne};\n"
        << "static const ingot::simt::KernelTable table(&entry, 1);\n";
    if (!writeIfChanged(path, out.str())) {
      std::fprintf(stderr, "%s: cannot be written\n", path.c_str());
      return 1;
    }
  }
  return 0;
}
