#include "compiler/calibrate/CalibratedFile.h"

#include "compiler/driver/CalibratedWeights.h"
#include "compiler/package/HalfFloat.h"

#include <nlohmann/json.hpp>

#include <cstring>

namespace ingot {

void CalibratedFile::planCodes(const std::string &name, std::int64_t rows,
                               std::int64_t columns, const CodeShape &shape,
                               const std::string &method) {
  metadata_[name] = "int" + std::to_string(shape.bits) + "-g" +
                    std::to_string(shape.group) + "-" + method;
  std::int64_t perWord = 32 / shape.bits;
  std::int64_t words = (columns + perWord - 1) / perWord;
  std::int64_t groups = shape.groups(columns);
  tensors_[name + ".codes"] = {
      "I32", {rows, words}, std::uint64_t(rows * words) * 4};
  tensors_[name + ".scales"] = {
      "F16", {rows, groups}, std::uint64_t(rows * groups) * 2};
}

void CalibratedFile::planValues(const std::string &name,
                                const std::vector<std::int64_t> &shape,
                                const std::string &type) {
  metadata_[name] = type;
  std::uint64_t elements = 1;
  for (std::int64_t dim : shape)
    elements *= std::uint64_t(dim);
  tensors_[name + ".values"] = {type == "f32"   ? "F32"
                                : type == "f16" ? "F16"
                                                : "BF16",
                                shape, elements * (type == "f32" ? 4 : 2)};
}

Status CalibratedFile::create(const std::string &path) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  metadata_["format"] = kCalibratedFormat;
  header["__metadata__"] = metadata_;
  // Wider elements first, so that each is aligned.
  std::uint64_t end = 0;
  for (bool isWide : {true, false})
    for (auto &[name, tensor] : tensors_) {
      if ((tensor.dtype == "F32" || tensor.dtype == "I32") != isWide)
        continue;
      tensor.offset = end;
      end += tensor.sizeBytes;
      header[name] = {{"dtype", tensor.dtype},
                      {"shape", tensor.shape},
                      {"data_offsets", {tensor.offset, end}}};
    }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  std::uint64_t size = text.size();
  INGOT_ASSIGN_OR_RETURN(package::OutputFile file,
                         package::OutputFile::create(path, 8 + size + end));
  std::vector<std::uint8_t> head(8 + size);
  std::memcpy(head.data(), &size, 8);
  std::memcpy(head.data() + 8, text.data(), size);
  INGOT_RETURN_IF_ERROR(file.write(0, head));
  for (auto &[name, tensor] : tensors_)
    tensor.offset += head.size();
  file_.emplace(std::move(file));
  return Status::ok();
}

Status CalibratedFile::write(const std::string &name,
                             std::span<const std::uint8_t> bytes) {
  auto found = tensors_.find(name);
  if (!file_ || found == tensors_.end() ||
      found->second.sizeBytes != bytes.size())
    return Status::internal("tensor \"" + name + "\" of " +
                            std::to_string(bytes.size()) +
                            " bytes was not planned so");
  found->second.isWritten = true;
  return file_->write(found->second.offset, bytes);
}

namespace {

template <typename Value>
std::span<const std::uint8_t> bytesOf(std::span<const Value> values) {
  return {reinterpret_cast<const std::uint8_t *>(values.data()),
          values.size_bytes()};
}

} // namespace

Status CalibratedFile::writeCodes(const std::string &name,
                                  const GroupCodes &codes) {
  std::vector<std::uint32_t> words = codes.packed();
  INGOT_RETURN_IF_ERROR(
      write(name + ".codes", bytesOf(std::span<const std::uint32_t>(words))));
  return write(name + ".scales",
               bytesOf(std::span<const std::uint16_t>(codes.scales)));
}

Status CalibratedFile::writeValues(const std::string &name,
                                   std::span<const float> values) {
  auto found = tensors_.find(name + ".values");
  if (found == tensors_.end() || found->second.dtype == "F32")
    return write(name + ".values", bytesOf(values));
  std::vector<std::uint16_t> narrow;
  narrow.reserve(values.size());
  for (float value : values)
    narrow.push_back(found->second.dtype == "F16"
                         ? package::floatToHalf(value)
                         : package::floatToBrain(value));
  return write(name + ".values",
               bytesOf(std::span<const std::uint16_t>(narrow)));
}

Status CalibratedFile::commit() {
  for (const auto &[name, tensor] : tensors_)
    if (!tensor.isWritten)
      return Status::internal("tensor \"" + name + "\" was not written");
  return file_->commit();
}

} // namespace ingot
