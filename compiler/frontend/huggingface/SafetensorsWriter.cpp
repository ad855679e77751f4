#include "compiler/frontend/StrictJson.h"
#include "compiler/frontend/huggingface/SafetensorsFile.h"
#include "compiler/package/OutputFile.h"

#include <algorithm>

namespace ingot {

Status SafetensorsWriter::add(const std::string &name, SafetensorsDtype dtype,
                              const std::vector<std::uint64_t> &shape,
                              std::span<const std::uint8_t> data) {
  if (name == "__metadata__")
    return Status::invalid("tensor name \"__metadata__\" is reserved");
  std::uint64_t sizeBytes = 0;
  if (!safetensorsSizeBytes(dtype, shape, sizeBytes) ||
      sizeBytes != data.size())
    return Status::invalid("tensor " + quoteName(name) + ": " +
                           std::to_string(data.size()) +
                           " bytes of data are not those of its shape and " +
                           safetensorsDtypeName(dtype));
  Entry entry{dtype, shape, {data.begin(), data.end()}};
  if (!entries_.emplace(name, std::move(entry)).second)
    return Status::invalid("tensor " + quoteName(name) + " is added twice");
  return Status::ok();
}

void SafetensorsWriter::setMetadata(
    std::map<std::string, std::string> metadata) {
  hasMetadata_ = true;
  metadata_ = std::move(metadata);
}

Result<std::vector<std::uint8_t>> SafetensorsWriter::bytes() const {
  std::vector<const std::pair<const std::string, Entry> *> order;
  for (const auto &item : entries_)
    order.push_back(&item);
  // Wider types first keeps every tensor aligned to its own element.
  std::sort(order.begin(), order.end(), [](auto *a, auto *b) {
    std::uint64_t aBits = safetensorsDtypeBits(a->second.dtype);
    std::uint64_t bBits = safetensorsDtypeBits(b->second.dtype);
    return aBits != bBits ? aBits > bBits : a->first < b->first;
  });
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (hasMetadata_) {
    json["__metadata__"] = nlohmann::ordered_json::object();
    for (const auto &[key, value] : metadata_)
      json["__metadata__"][key] = value;
  }
  std::uint64_t offset = 0;
  for (const auto *item : order) {
    const Entry &entry = item->second;
    nlohmann::ordered_json tensor;
    tensor["dtype"] = safetensorsDtypeName(entry.dtype);
    tensor["shape"] = entry.shape;
    tensor["data_offsets"] = {offset, offset + entry.data.size()};
    json[item->first] = std::move(tensor);
    offset += entry.data.size();
  }
  std::string header;
  try {
    header = json.dump();
  } catch (const nlohmann::json::exception &exception) {
    // A name or a metadata string that is not UTF-8.
    return Status::invalid(std::string("safetensors header: ") +
                           exception.what());
  }
  header.append((8 - header.size() % 8) % 8, ' ');

  std::vector<std::uint8_t> result;
  result.reserve(8 + header.size() + offset);
  for (int i = 0; i < 8; ++i)
    result.push_back(static_cast<std::uint64_t>(header.size()) >> (8 * i));
  result.insert(result.end(), header.begin(), header.end());
  for (const auto *item : order)
    result.insert(result.end(), item->second.data.begin(),
                  item->second.data.end());
  return result;
}

Status SafetensorsWriter::write(const std::string &path) const {
  INGOT_ASSIGN_OR_RETURN(auto content, bytes());
  return package::writeOutputFile(
      path, {reinterpret_cast<const char *>(content.data()), content.size()});
}

} // namespace ingot
