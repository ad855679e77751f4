#include "compiler/debug/ModelSource.h"

#include "compiler/driver/CompileModel.h"
#include "compiler/frontend/huggingface/SafetensorsFile.h"
#include "compiler/stored/Dequantize.h"
#include "runtime/plan/Container.h"

#include "mlir/Parser/Parser.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace fs = std::filesystem;

namespace ingot::debug {
namespace {

bool isArtifact(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  char magic[sizeof(container::kMagic)] = {};
  file.read(magic, sizeof(magic));
  return file && std::memcmp(magic, container::kMagic, sizeof(magic)) == 0;
}

Result<std::vector<std::string>> tensorFiles(const std::string &path) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    return std::vector<std::string>{path};
  std::vector<std::string> files;
  for (const auto &entry : fs::directory_iterator(path, error))
    if (entry.path().extension() == ".safetensors")
      files.push_back(entry.path().string());
  if (error)
    return Status::io(path + ": " + error.message());
  std::sort(files.begin(), files.end());
  if (files.empty())
    return Status::notFound(path + ": has no .safetensors file");
  return files;
}

// Rows of float32, float16, bfloat16 or float64.
Result<LmRows> readRows(const SafetensorsFile &file,
                        const SafetensorsTensor &tensor) {
  if (tensor.shape.size() > 2)
    return Status::unsupported(file.name() + ": tensor \"" + tensor.name +
                               "\" has " + std::to_string(tensor.shape.size()) +
                               " dimensions, expected [rows, columns]");
  LmRows rows;
  rows.columns = tensor.shape.empty() ? 1 : std::int64_t(tensor.shape.back());
  rows.rows = tensor.shape.size() == 2 ? std::int64_t(tensor.shape[0]) : 1;
  auto count = std::size_t(rows.rows * rows.columns);
  rows.values.resize(count);
  const std::uint8_t *data = file.data(tensor).data();
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t half = 0;
    std::uint32_t bits = 0;
    double wide = 0;
    switch (tensor.dtype) {
    case SafetensorsDtype::F32:
      std::memcpy(&rows.values[i], data + i * 4, 4);
      break;
    case SafetensorsDtype::F16:
      std::memcpy(&half, data + i * 2, 2);
      rows.values[i] = halfToFloat(half);
      break;
    case SafetensorsDtype::BF16:
      std::memcpy(&half, data + i * 2, 2);
      bits = std::uint32_t(half) << 16;
      std::memcpy(&rows.values[i], &bits, 4);
      break;
    case SafetensorsDtype::F64:
      std::memcpy(&wide, data + i * 8, 8);
      rows.values[i] = static_cast<float>(wide);
      break;
    default:
      return Status::unsupported(file.name() + ": tensor \"" + tensor.name +
                                 "\" is " + safetensorsDtypeName(tensor.dtype) +
                                 ", expected F32, F16, BF16 or F64");
    }
  }
  return rows;
}

} // namespace

Result<SourceKind> kindOf(const std::string &path) {
  std::error_code error;
  if (!fs::exists(path, error))
    return Status::notFound(path + ": no such file or folder");
  bool isFile = fs::is_regular_file(path, error);
  std::string extension = fs::path(path).extension().string();
  if (isFile && isArtifact(path))
    return SourceKind::Artifact;
  if (isFile && extension == ".safetensors")
    return SourceKind::Tensors;
  if (isFile && (extension == ".mlir" || extension == ".gguf"))
    return SourceKind::Module;
  if (!isFile && fs::exists(fs::path(path) / "config.json", error))
    return SourceKind::Module;
  if (!isFile)
    return SourceKind::Tensors;
  return Status::invalid(path + ": is neither an artifact, an .mlir stage, a "
                                "model (a folder with config.json, a .gguf "
                                "file) nor .safetensors tensors");
}

Result<LmModel>
LmModel::open(const std::string &path, const std::string &sourceFolder,
              const std::function<void(const std::string &)> &diagnostic) {
  LmModel model;
  model.context_ = std::make_unique<mlir::MLIRContext>();
  prepareContext(*model.context_);
  if (llvm::StringRef(path).ends_with(".mlir")) {
    mlir::ScopedDiagnosticHandler handler(
        model.context_.get(), [&](mlir::Diagnostic &message) {
          if (diagnostic)
            diagnostic("error: " + message.str());
          return mlir::success();
        });
    model.module_ =
        mlir::parseSourceFile<mlir::ModuleOp>(path, model.context_.get());
    if (!model.module_)
      return Status::invalid(path + ": is not a valid module");
    if (model.module_->getOps<lm::ProgramOp>().empty())
      return Status::unsupported(
          path + ": has no lm.program; a plan runs as the artifact that `ingot "
                 "compile` makes of it");
  } else {
    if (!sourceFolder.empty())
      return Status::invalid(
          "a source folder can be named for an .mlir stage only");
    CompileRequest request;
    request.modelPath = path;
    request.until = Phase::Import;
    request.hashSources = false;
    request.options.kv = "f32";
    request.diagnostic = diagnostic;
    INGOT_ASSIGN_OR_RETURN(CompiledModel compiled,
                           compileModel(*model.context_, request));
    model.module_ = std::move(compiled.module);
  }
  INGOT_ASSIGN_OR_RETURN(LmExecutor executor,
                         LmExecutor::create(*model.module_, sourceFolder));
  model.executor_ = std::make_unique<LmExecutor>(std::move(executor));
  return model;
}

Result<Recording> readTensors(const std::string &path) {
  INGOT_ASSIGN_OR_RETURN(std::vector<std::string> files, tensorFiles(path));
  Recording recording;
  recording.source = path;
  recording.isProgram = false;
  for (const std::string &name : files) {
    INGOT_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(name));
    for (const SafetensorsTensor &tensor : file.tensors()) {
      if (tensor.name == "tokens")
        continue;
      if (recording.find(tensor.name))
        return Status::invalid(name + ": tensor \"" + tensor.name +
                               "\" is in another file of the folder too");
      INGOT_ASSIGN_OR_RETURN(LmRows rows, readRows(file, tensor));
      Producer producer;
      producer.name = tensor.name;
      producer.op = "tensor";
      producer.layer = layerOf(tensor.name);
      recording.producers.push_back(std::move(producer));
      recording.tensors.push_back(
          {tensor.name, recording.producers.size() - 1, std::move(rows)});
    }
  }
  return recording;
}

Result<std::vector<std::int32_t>> readTokens(const std::string &path) {
  INGOT_ASSIGN_OR_RETURN(std::vector<std::string> files, tensorFiles(path));
  for (const std::string &name : files) {
    INGOT_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(name));
    const SafetensorsTensor *tensor = file.find("tokens");
    if (!tensor)
      continue;
    bool isWide = tensor->dtype == SafetensorsDtype::I64;
    if (!isWide && tensor->dtype != SafetensorsDtype::I32)
      return Status::invalid(name + ": tensor \"tokens\" is " +
                             safetensorsDtypeName(tensor->dtype) +
                             ", expected I32 or I64");
    std::vector<std::int32_t> tokens;
    for (std::uint64_t at = 0; at < tensor->sizeBytes; at += isWide ? 8 : 4) {
      std::int64_t wide = 0;
      std::int32_t narrow = 0;
      std::memcpy(isWide ? static_cast<void *>(&wide) : &narrow,
                  file.data(*tensor).data() + at, isWide ? 8 : 4);
      if (wide != static_cast<std::int32_t>(wide))
        return Status::invalid(name + ": tensor \"tokens\" holds " +
                               std::to_string(wide) + ", which is no token id");
      tokens.push_back(isWide ? static_cast<std::int32_t>(wide) : narrow);
    }
    return tokens;
  }
  return Status::notFound(path + ": has no tensor \"tokens\"");
}

} // namespace ingot::debug
