// Any bytes as a safetensors file: read from memory, every tensor touched, and
// written again by our own writer, which must give the same tensors.
#include "compiler/frontend/huggingface/SafetensorsFile.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace ingot;
  auto file = SafetensorsFile::fromMemory({data, size}, "fuzz");
  if (!file)
    return 0;
  SafetensorsWriter writer;
  uint64_t total = 0;
  for (const SafetensorsTensor &tensor : file->tensors()) {
    auto bytes = file->data(tensor);
    total += bytes.size();
    if (!writer.add(tensor.name, tensor.dtype, tensor.shape, bytes))
      __builtin_trap();
  }
  // Tensors tile the data: no byte belongs to two.
  if (total > size)
    __builtin_trap();
  if (file->hasMetadata())
    writer.setMetadata(file->metadata());
  auto again = writer.bytes();
  if (!again)
    return 0; // names that are not UTF-8
  auto copy = SafetensorsFile::fromMemory(*again, "again");
  if (!copy || copy->tensors().size() != file->tensors().size() ||
      copy->metadata() != file->metadata())
    __builtin_trap();
  for (const SafetensorsTensor &tensor : file->tensors()) {
    const SafetensorsTensor *found = copy->find(tensor.name);
    auto bytes = file->data(tensor);
    if (!found || found->shape != tensor.shape ||
        found->dtype != tensor.dtype || found->sizeBytes != bytes.size() ||
        (!bytes.empty() && std::memcmp(copy->data(*found).data(), bytes.data(),
                                       bytes.size()) != 0))
      __builtin_trap();
  }
  return 0;
}
