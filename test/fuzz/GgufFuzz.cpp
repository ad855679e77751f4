// Any bytes as a GGUF file: the container from memory, then the whole import
// with vocabulary and weights.
#include "compiler/frontend/gguf/GgufFile.h"
#include "compiler/frontend/gguf/GgufImporter.h"
#include "compiler/frontend/gguf/GgufTokenizer.h"
#include "test/fuzz/MemoryFile.h"
#include "test/fuzz/ReadWeights.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace ingot;
  auto file = GgufFile::fromMemory({data, size}, "fuzz");
  if (!file)
    return 0;
  volatile uint8_t sum = 0;
  for (const GgufTensor &tensor : file->tensors())
    for (uint8_t byte : file->data(tensor))
      sum = static_cast<uint8_t>(sum + byte);
  for (const auto &[key, value] : file->metadata()) {
    (void)value.asInteger();
    (void)value.asFloat();
    (void)value.asBool();
    (void)value.asString();
    (void)value.asIntegers();
    (void)value.asFloats();
    (void)value.asStrings();
  }
  (void)readGgufVocabulary(*file);
  fuzz::MemoryFile memory(data, size);
  if (auto spec = importGguf(memory.path()))
    fuzz::readWeights(*spec);
  return 0;
}
