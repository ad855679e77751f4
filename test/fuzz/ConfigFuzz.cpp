// Any bytes as one of the JSON files of a model folder. The first byte says
// which: config.json of a plain or of a quantised model, the index of shards,
// generation_config.json, or the config of an adapter. The other files are good.
#include "compiler/frontend/ImportModel.h"
#include "test/fuzz/ReadWeights.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

namespace fs = std::filesystem;

// A copy of the seeds' model, of this process alone.
struct Folder {
  fs::path path;
  Folder() {
    std::string pattern =
        (fs::temp_directory_path() / "ingot-fuzz-XXXXXX").string();
    if (!mkdtemp(pattern.data()))
      std::abort();
    path = pattern;
    for (const char *name : {"plain", "quantized", "shards", "adapter"})
      fs::copy(fs::path(INGOT_FUZZ_MODELS) / name, path / name,
               fs::copy_options::recursive);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace ingot;
  static const Folder folder;
  struct Place {
    const char *model;
    const char *file;
  };
  static const Place places[] = {
      {"plain", "plain/config.json"},
      {"quantized", "quantized/config.json"},
      {"shards", "shards/model.safetensors.index.json"},
      {"plain", "plain/generation_config.json"},
      {"plain", "adapter/adapter_config.json"}};
  if (size == 0)
    return 0;
  const size_t kind = (data[0] - '0') % std::size(places);
  const Place &place = places[kind];
  const fs::path path = folder.path / place.file;
  std::string good;
  {
    std::ifstream in(path, std::ios::binary);
    good.assign(std::istreambuf_iterator<char>(in), {});
  }
  auto put = [&](const char *bytes, size_t count) {
    std::ofstream(path, std::ios::binary)
        .write(bytes, static_cast<std::streamsize>(count));
  };
  put(reinterpret_cast<const char *>(data) + 1, size - 1);
  ImportOptions options;
  if (kind == 4)
    options.loras = {{(folder.path / "adapter").string(), 1.0}};
  if (auto spec = importModel((folder.path / place.model).string(), options))
    fuzz::readWeights(*spec);
  put(good.data(), good.size());
  return 0;
}
