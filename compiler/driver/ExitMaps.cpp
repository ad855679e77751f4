#include "compiler/driver/ExitMaps.h"

#include "compiler/frontend/huggingface/SafetensorsFile.h"
#include "dialects/lm/LmOps.h"

#include "mlir/IR/Builders.h"

#include <cstring>
#include <filesystem>

using namespace mlir;

namespace ingot {
namespace {

std::string roleOf(std::int64_t layers, const char *what) {
  return "exit." + std::to_string(layers) + "." + what;
}

Result<WeightDtype> dtypeOf(const SafetensorsTensor &tensor) {
  switch (tensor.dtype) {
  case SafetensorsDtype::F32:
    return WeightDtype::F32;
  case SafetensorsDtype::F16:
    return WeightDtype::F16;
  case SafetensorsDtype::BF16:
    return WeightDtype::BF16;
  default:
    return Status::unsupported("tensor \"" + tensor.name + "\" is " +
                               safetensorsDtypeName(tensor.dtype) +
                               ", expected F32, F16 or BF16");
  }
}

Result<std::vector<float>> readConfidence(const SafetensorsFile &file,
                                          const SafetensorsTensor &tensor) {
  if (tensor.dtype != SafetensorsDtype::F32 || tensor.shape.size() != 1 ||
      tensor.shape[0] < 2 || tensor.shape[0] > 256)
    return Status::invalid("tensor \"" + tensor.name +
                           "\": expected 2 to 256 elements of F32");
  std::vector<float> values(tensor.shape[0]);
  std::memcpy(values.data(), file.data(tensor).data(), tensor.sizeBytes);
  float before = 0;
  for (float value : values) {
    if (!(value >= before && value <= 1))
      return Status::invalid("tensor \"" + tensor.name +
                             "\": expected values from 0 to 1, none below the "
                             "one before it");
    before = value;
  }
  return values;
}

class Reader {
public:
  Reader(const SafetensorsFile &file, const std::string &path, ModelSpec &spec)
      : file_(file), spec_(spec), index_(std::uint32_t(spec.sources.size())) {
    spec.sources.push_back({path,
                            std::filesystem::path(path).filename().string(),
                            file.sizeBytes()});
  }

  Status addParameter(const std::string &role,
                      const std::vector<std::int64_t> &shape) {
    const SafetensorsTensor *tensor = file_.find(role);
    if (!tensor)
      return Status::invalid("there is no tensor \"" + role + "\"");
    if (!std::equal(shape.begin(), shape.end(), tensor->shape.begin(),
                    tensor->shape.end(), [](std::int64_t a, std::uint64_t b) {
                      return std::uint64_t(a) == b;
                    }))
      return Status::invalid("tensor \"" + role + "\" does not have " +
                             std::to_string(shape.size()) +
                             " dimensions of the hidden size " +
                             std::to_string(spec_.hiddenSize));
    TensorSource source;
    source.name = role;
    source.fileIndex = index_;
    source.byteOffset = tensor->fileOffset;
    source.sizeBytes = tensor->sizeBytes;
    INGOT_ASSIGN_OR_RETURN(source.dtype, dtypeOf(*tensor));
    source.shape = shape;
    spec_.parameters[role] = std::move(source);
    ++numUsed;
    return Status::ok();
  }

  std::size_t numUsed = 0;

private:
  const SafetensorsFile &file_;
  ModelSpec &spec_;
  std::uint32_t index_;
};

Result<ExitMaps> readMaps(const SafetensorsFile &file, const std::string &path,
                          const std::vector<std::int64_t> &exits,
                          ModelSpec &spec) {
  ExitMaps maps;
  Reader reader(file, path, spec);
  for (std::int64_t layers : exits) {
    INGOT_RETURN_IF_ERROR(reader.addParameter(
        roleOf(layers, "map"), {spec.hiddenSize, spec.hiddenSize}));
    INGOT_RETURN_IF_ERROR(
        reader.addParameter(roleOf(layers, "bias"), {spec.hiddenSize}));
    const SafetensorsTensor *tensor = file.find(roleOf(layers, "confidence"));
    if (!tensor)
      continue;
    INGOT_ASSIGN_OR_RETURN(maps.confidences[layers],
                           readConfidence(file, *tensor));
    ++reader.numUsed;
  }
  if (reader.numUsed != file.tensors().size())
    return Status::invalid("holds " + std::to_string(file.tensors().size()) +
                           " tensors, of which " +
                           std::to_string(reader.numUsed) +
                           " belong to the exits that were asked for");
  return maps;
}

} // namespace

Result<ExitMaps> addExitMaps(const std::string &path,
                             const std::vector<std::int64_t> &exits,
                             ModelSpec &spec) {
  INGOT_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(path));
  auto maps = readMaps(file, path, exits, spec);
  if (!maps)
    return maps.status().withContext(path);
  return maps;
}

void addExitConfidences(const ExitMaps &maps, ModuleOp module) {
  OpBuilder builder(module.getContext());
  for (const auto &[layers, values] : maps.confidences) {
    builder.setInsertionPoint(*module.getOps<lm::ProgramOp>().begin());
    std::string name = roleOf(layers, "confidence");
    auto count = std::int64_t(values.size());
    builder.create<lm::WeightOp>(
        lm::nameLocation(module.getContext(), name),
        builder.getStringAttr(name), builder.getDenseI64ArrayAttr({count}),
        lm::EncodingAttr::get(module.getContext(), lm::WeightCode::F32, 0,
                              false),
        lm::LayoutAttr::get(module.getContext(), lm::Layout::Row), ArrayAttr(),
        DenseElementsAttr::get(
            RankedTensorType::get({count}, builder.getF32Type()),
            llvm::ArrayRef(values)),
        StringAttr());
  }
}

} // namespace ingot
