// A strict reader of ONNX models, IR versions 3 to 13, and of single tensors
// (the .pb files of the ONNX test suite). The message is hostile input: weights
// stay in mapped files, external files are found only where a model may keep
// them, and no length is believed before its bytes are there. What the operators
// mean is compiler/frontend/onnx/OnnxImporter.
#pragma once

#include "compiler/frontend/onnx/OnnxModel.pb.h"
#include "compiler/frontend/onnx/OnnxTensor.h"
#include "runtime/support/MappedFile.h"
#include "runtime/support/Status.h"

#include <map>
#include <memory>

namespace ingot {

// A file that tensors point into: the model itself, or an external one.
struct OnnxSource {
  std::string path; // as it was opened, links not resolved
  std::string name; // within the model's folder
  std::span<const std::uint8_t> bytes;
};

class OnnxFile {
public:
  static Result<OnnxFile> open(const std::string &path);
  // `bytes` must outlive the result; `name` stands for the path in messages.
  // External data is looked for in `folder`, and refused where that is empty.
  static Result<OnnxFile> fromMemory(std::span<const std::uint8_t> bytes,
                                     const std::string &name,
                                     const std::string &folder = {});
  // A file that holds one TensorProto.
  static Result<OnnxTensor> openTensor(const std::string &path);

  const std::string &name() const { return name_; }
  const onnxproto::ModelProto &model() const { return *model_; }
  const std::vector<OnnxSource> &sources() const { return sources_; }

  // The values of a tensor of this file; opens its external file on first use.
  // Fails where type, dims and bytes disagree. `what` names the tensor's place:
  // `initializer "w"`.
  Result<OnnxTensor> read(const onnxproto::TensorProto &tensor,
                          const std::string &what);

private:
  Status parse(std::span<const std::uint8_t> bytes);
  Result<std::uint32_t> externalSource(const std::string &location,
                                       const std::string &what);

  std::string name_;
  std::string folder_;
  std::unique_ptr<onnxproto::ModelProto> model_;
  std::vector<OnnxSource> sources_;
  std::vector<MappedFile> files_;
  std::map<std::string, std::uint32_t> sourceOfLocation_;
};

} // namespace ingot
