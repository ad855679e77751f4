#include "compiler/codegen/graph/RunFile.h"

#include "compiler/codegen/graph/RunGraph.h"
#include "compiler/frontend/StrictJson.h"
#include "compiler/frontend/huggingface/SafetensorsFile.h"
#include "compiler/frontend/onnx/OnnxImporter.h"

#include "mlir/IR/MLIRContext.h"

#include <chrono>
#include <cstdio>
#include <set>

namespace ingot::graph {
namespace {

constexpr std::pair<OnnxType, SafetensorsDtype> kTypes[] = {
    {OnnxType::Float, SafetensorsDtype::F32},
    {OnnxType::Double, SafetensorsDtype::F64},
    {OnnxType::Float16, SafetensorsDtype::F16},
    {OnnxType::Bfloat16, SafetensorsDtype::BF16},
    {OnnxType::Bool, SafetensorsDtype::Bool},
    {OnnxType::Int8, SafetensorsDtype::I8},
    {OnnxType::Int16, SafetensorsDtype::I16},
    {OnnxType::Int32, SafetensorsDtype::I32},
    {OnnxType::Int64, SafetensorsDtype::I64},
    {OnnxType::Uint8, SafetensorsDtype::U8},
    {OnnxType::Uint16, SafetensorsDtype::U16},
    {OnnxType::Uint32, SafetensorsDtype::U32},
    {OnnxType::Uint64, SafetensorsDtype::U64}};

Result<OnnxTensor> inputOf(const SafetensorsFile &file,
                           const SafetensorsTensor &stored) {
  for (auto [type, dtype] : kTypes)
    if (dtype == stored.dtype) {
      OnnxTensor tensor;
      tensor.name = stored.name;
      tensor.type = type;
      tensor.dims.assign(stored.shape.begin(), stored.shape.end());
      tensor.numElements = 1;
      for (std::uint64_t dim : stored.shape)
        tensor.numElements *= dim;
      auto bytes = file.data(stored);
      tensor.owned.assign(bytes.begin(), bytes.end());
      return tensor;
    }
  return Status::unsupported(
      "tensor " + quoteName(stored.name) + ": inputs of " +
      safetensorsDtypeName(stored.dtype) + " are not supported");
}

std::string line(const char *what, const std::string &name,
                 const OnnxTensor &tensor) {
  std::string text = std::string(what) + " " + quoteName(name) + " " +
                     onnxTypeName(static_cast<std::int32_t>(tensor.type)) +
                     " [";
  for (std::size_t i = 0; i < tensor.dims.size(); ++i)
    text += (i ? ", " : "") + std::to_string(tensor.dims[i]);
  return text + "]\n";
}

} // namespace

Status runOnnxFile(const std::string &model, const std::string &inputs,
                   const std::string &outputs, std::string &report) {
  INGOT_ASSIGN_OR_RETURN(OnnxFile file, OnnxFile::open(model));
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  INGOT_ASSIGN_OR_RETURN(auto module, importOnnxGraph(context, file));
  INGOT_ASSIGN_OR_RETURN(SafetensorsFile given, SafetensorsFile::open(inputs));
  const auto &graph = file.model().graph();
  std::set<std::string> defaults, known;
  for (const auto &initializer : graph.initializer())
    defaults.insert(initializer.name());
  std::vector<std::optional<OnnxTensor>> tensors;
  for (const auto &input : graph.input()) {
    known.insert(input.name());
    const SafetensorsTensor *stored = given.find(input.name());
    if (!stored && !defaults.count(input.name()))
      return Status::invalid(inputs + ": input " + quoteName(input.name()) +
                             " of " + model + " is absent");
    tensors.emplace_back();
    if (!stored)
      continue;
    INGOT_ASSIGN_OR_RETURN(tensors.back(), inputOf(given, *stored));
    report += line("input", input.name(), *tensors.back());
  }
  for (const SafetensorsTensor &stored : given.tensors())
    if (!known.count(stored.name))
      return Status::invalid(inputs + ": " + quoteName(stored.name) +
                             " is no input of " + model);
  const auto start = std::chrono::steady_clock::now();
  INGOT_ASSIGN_OR_RETURN(std::vector<OnnxTensor> results,
                         runGraph(*module, file, tensors));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  SafetensorsWriter writer;
  for (int i = 0; i < graph.output_size(); ++i) {
    const std::string &name = graph.output(i).name();
    const OnnxTensor &result = results[std::size_t(i)];
    const SafetensorsDtype *dtype = nullptr;
    for (const auto &[type, to] : kTypes)
      if (type == result.type)
        dtype = &to;
    if (!dtype)
      return Status::unsupported("output " + quoteName(name) + " of " +
                                 onnxTypeName(std::int32_t(result.type)) +
                                 " cannot be written");
    INGOT_RETURN_IF_ERROR(writer.add(name, *dtype,
                                     {result.dims.begin(), result.dims.end()},
                                     result.bytes()));
    report += line("output", name, result);
  }
  INGOT_RETURN_IF_ERROR(writer.write(outputs));
  char text[64];
  std::snprintf(text, sizeof(text), "compiled and run in %.3f s\n", seconds);
  report += text;
  return Status::ok();
}

} // namespace ingot::graph
