// Writes the file of calibrated weights (compiler/driver/CalibratedWeights.h) a
// weight at a time: every size is known before the first, so that nothing is
// kept. The same content gives the same bytes.
#pragma once

#include "compiler/calibrate/GroupCodes.h"
#include "compiler/package/OutputFile.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ingot {

class CalibratedFile {
public:
  // What will be written; `method` is "gptq" or "awq".
  void planCodes(const std::string &name, std::int64_t rows,
                 std::int64_t columns, const CodeShape &shape,
                 const std::string &method);
  // `type` is f32, f16 or bf16.
  void planValues(const std::string &name,
                  const std::vector<std::int64_t> &shape,
                  const std::string &type = "f32");
  void setMetadata(const std::string &key, const std::string &value) {
    metadata_[key] = value;
  }

  Status create(const std::string &path);
  Status writeCodes(const std::string &name, const GroupCodes &codes);
  Status writeValues(const std::string &name, std::span<const float> values);
  // Fails where something that was planned has not been written.
  Status commit();

private:
  struct Tensor {
    std::string dtype;
    std::vector<std::int64_t> shape;
    std::uint64_t sizeBytes = 0;
    std::uint64_t offset = 0; // in the file
    bool isWritten = false;
  };
  Status write(const std::string &tensor, std::span<const std::uint8_t> bytes);

  std::map<std::string, std::string> metadata_;
  std::map<std::string, Tensor> tensors_;
  std::optional<package::OutputFile> file_;
};

} // namespace ingot
