#include "compiler/codegen/graph/RunGraph.h"

#include "compiler/codegen/graph/Specialize.h"
#include "compiler/frontend/onnx/OnnxImporter.h"

#include <cstdlib>
#include <cstring>
#include <memory>

using namespace mlir;

namespace ingot::graph {
namespace {

constexpr std::uint64_t kMaxBoundElements = 4096;

struct FreeMemory {
  void operator()(void *memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<void, FreeMemory>;

Result<Memory> allocate(std::uint64_t sizeBytes) {
  Memory memory(std::aligned_alloc(
      64, (std::max<std::uint64_t>(sizeBytes, 1) + 63) / 64 * 64));
  if (!memory)
    return Status::outOfMemory("a graph needs " + std::to_string(sizeBytes) +
                               " bytes");
  return memory;
}

OnnxType onnxType(Type type) {
  if (type.isF32())
    return OnnxType::Float;
  if (type.isF64())
    return OnnxType::Double;
  if (type.isF16())
    return OnnxType::Float16;
  if (type.isBF16())
    return OnnxType::Bfloat16;
  if (type.isInteger(1))
    return OnnxType::Bool;
  const bool isUnsigned = type.isUnsignedInteger();
  switch (type.getIntOrFloatBitWidth()) {
  case 8:
    return isUnsigned ? OnnxType::Uint8 : OnnxType::Int8;
  case 16:
    return isUnsigned ? OnnxType::Uint16 : OnnxType::Int16;
  case 32:
    return isUnsigned ? OnnxType::Uint32 : OnnxType::Int32;
  default:
    return isUnsigned ? OnnxType::Uint64 : OnnxType::Int64;
  }
}

std::uint64_t elementBytes(Type type) {
  return (type.getIntOrFloatBitWidth() + 7) / 8;
}

// The elements of an attribute in their order, a byte for a boolean.
void copyElements(ElementsAttr value, std::uint8_t *to) {
  auto type = cast<ShapedType>(value.getType());
  const std::uint64_t bytes = elementBytes(type.getElementType());
  if (isa<FloatType>(type.getElementType())) {
    for (const APFloat &element : value.getValues<APFloat>()) {
      std::uint64_t bits = element.bitcastToAPInt().getZExtValue();
      std::memcpy(to, &bits, bytes);
      to += bytes;
    }
    return;
  }
  for (const APInt &element : value.getValues<APInt>()) {
    std::uint64_t bits = element.getZExtValue();
    std::memcpy(to, &bits, bytes);
    to += bytes;
  }
}

class Run {
public:
  Run(const OnnxFile &file,
      const std::vector<std::optional<OnnxTensor>> &inputs)
      : file_(file), inputs_(inputs) {}

  Result<std::vector<OnnxTensor>> run(LoweredGraph &graph);

private:
  Result<void *> argument(const ArgumentSource &source,
                          const LoweredGraph &graph);
  // Bytes at an address that any vector load may read.
  Result<void *> aligned(std::span<const std::uint8_t> bytes) {
    INGOT_ASSIGN_OR_RETURN(Memory memory, allocate(bytes.size()));
    if (!bytes.empty())
      std::memcpy(memory.get(), bytes.data(), bytes.size());
    memory_.push_back(std::move(memory));
    return memory_.back().get();
  }

  const OnnxFile &file_;
  const std::vector<std::optional<OnnxTensor>> &inputs_;
  std::vector<Memory> memory_;
  std::vector<OnnxTensor> outputs_;
};

Result<void *> Run::argument(const ArgumentSource &source,
                             const LoweredGraph &graph) {
  switch (source.kind) {
  case ArgumentSource::Kind::Arena: {
    INGOT_ASSIGN_OR_RETURN(Memory memory, allocate(graph.arenaBytes));
    memory_.push_back(std::move(memory));
    return memory_.back().get();
  }
  case ArgumentSource::Kind::Input:
    return aligned(inputs_[source.index]->bytes());
  case ArgumentSource::Kind::Constant: {
    auto type = cast<ShapedType>(source.value.getType());
    INGOT_ASSIGN_OR_RETURN(
        Memory memory,
        allocate(type.getNumElements() * elementBytes(type.getElementType())));
    copyElements(source.value, static_cast<std::uint8_t *>(memory.get()));
    memory_.push_back(std::move(memory));
    return memory_.back().get();
  }
  case ArgumentSource::Kind::Weight: {
    if (source.source >= file_.sources().size())
      return Status::internal("a weight of an unknown file");
    std::span<const std::uint8_t> bytes = file_.sources()[source.source].bytes;
    if (source.offset > bytes.size() ||
        source.sizeBytes > bytes.size() - source.offset)
      return Status::internal("a weight outside its file");
    bytes = bytes.subspan(source.offset, source.sizeBytes);
    // In place where the file has it aligned.
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % 8 == 0)
      return const_cast<void *>(static_cast<const void *>(bytes.data()));
    return aligned(bytes);
  }
  case ArgumentSource::Kind::Output:
    return static_cast<void *>(outputs_[source.index].owned.data());
  }
  return Status::internal("an argument of no kind");
}

Result<std::vector<OnnxTensor>> Run::run(LoweredGraph &graph) {
  for (RankedTensorType type : graph.outputTypes) {
    OnnxTensor output;
    output.type = onnxType(type.getElementType());
    output.dims.assign(type.getShape().begin(), type.getShape().end());
    output.numElements = type.getNumElements();
    output.owned.resize(std::max<std::uint64_t>(
        output.numElements * elementBytes(type.getElementType()), 1));
    outputs_.push_back(std::move(output));
  }
  std::vector<void *> arguments;
  for (const ArgumentSource &source : graph.arguments) {
    INGOT_ASSIGN_OR_RETURN(void *pointer, argument(source, graph));
    arguments.push_back(pointer);
  }
  INGOT_ASSIGN_OR_RETURN(std::unique_ptr<GraphCode> code, compileGraph(graph));
  code->run(arguments.data());
  for (auto [output, type] : llvm::zip(outputs_, graph.outputTypes))
    output.owned.resize(output.numElements *
                        elementBytes(type.getElementType()));
  return std::move(outputs_);
}

} // namespace

Result<std::vector<OnnxTensor>>
runGraph(ModuleOp module, const OnnxFile &file,
         const std::vector<std::optional<OnnxTensor>> &inputs,
         bool *boundValues) {
  MLIRContext *context = module.getContext();
  SmallVector<InputBinding> bindings;
  for (const std::optional<OnnxTensor> &input : inputs) {
    InputBinding binding;
    if (input) {
      Type element =
          onnxElementType(context, static_cast<std::int32_t>(input->type));
      if (!element)
        return Status::unsupported(
            "inputs of " +
            onnxTypeName(static_cast<std::int32_t>(input->type)) +
            " are not supported");
      binding.type = RankedTensorType::get(input->dims, element);
    }
    bindings.push_back(binding);
  }
  auto lowered = [&]() -> Result<LoweredGraph> {
    INGOT_ASSIGN_OR_RETURN(OwningOpRef<ModuleOp> specialized,
                           specializeGraph(module, bindings));
    return lowerGraph(*specialized);
  };
  Result<LoweredGraph> graph = lowered();
  if (boundValues)
    *boundValues = !graph.isOk();
  if (!graph) {
    for (auto [binding, input] : llvm::zip(bindings, inputs))
      if (input && input->numElements <= kMaxBoundElements)
        binding.value = onnxElements(context, *input);
    graph = lowered();
  }
  if (!graph)
    return graph.status();
  return runLowered(*graph, file, inputs);
}

Result<std::vector<OnnxTensor>>
runLowered(LoweredGraph &graph, const OnnxFile &file,
           const std::vector<std::optional<OnnxTensor>> &inputs) {
  return Run(file, inputs).run(graph);
}

} // namespace ingot::graph
