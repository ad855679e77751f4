// Small ONNX models written in a test, and what they give for inputs.
#pragma once

#include "compiler/codegen/graph/RunGraph.h"
#include "compiler/frontend/onnx/OnnxImporter.h"

#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

#include <cstring>
#include <string>
#include <vector>

namespace ingot::testing {

template <typename T> constexpr OnnxType onnxTypeOf() {
  if constexpr (std::is_same_v<T, float>)
    return OnnxType::Float;
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return OnnxType::Int64;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return OnnxType::Int32;
  else if constexpr (std::is_same_v<T, bool>)
    return OnnxType::Bool;
  else if constexpr (std::is_same_v<T, std::uint8_t>)
    return OnnxType::Uint8;
  else if constexpr (std::is_same_v<T, std::int8_t>)
    return OnnxType::Int8;
  else
    return OnnxType::Float16; // std::uint16_t: the bits
}

template <typename T>
OnnxTensor tensor(std::vector<std::int64_t> dims,
                  const std::vector<T> &values) {
  OnnxTensor result;
  result.type = onnxTypeOf<T>();
  result.dims = std::move(dims);
  result.numElements = values.size();
  for (T value : values) {
    const auto *bytes = reinterpret_cast<const std::uint8_t *>(&value);
    result.owned.insert(result.owned.end(), bytes, bytes + sizeof(T));
  }
  return result;
}

template <typename T> std::vector<T> valuesOf(const OnnxTensor &tensor) {
  std::vector<T> values;
  for (std::size_t at = 0; at < tensor.bytes().size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, tensor.bytes().data() + at, sizeof(T));
    values.push_back(value);
  }
  return values;
}

// A graph whose inputs and nodes are added one by one.
class OnnxModel {
public:
  explicit OnnxModel(std::int64_t opset) {
    proto.set_ir_version(10);
    addOpset("", opset);
    addOpset("com.microsoft", 1);
  }
  void addOpset(const std::string &domain, std::int64_t version) {
    auto *opset = proto.add_opset_import();
    opset->set_domain(domain);
    opset->set_version(version);
  }

  // A node of the main graph, or of another.
  onnxproto::NodeProto *node(const std::string &op,
                             const std::vector<std::string> &inputs,
                             const std::vector<std::string> &outputs,
                             onnxproto::GraphProto *graph = nullptr) {
    auto *node = (graph ? graph : proto.mutable_graph())->add_node();
    std::size_t dot = op.rfind('.');
    if (dot != std::string::npos)
      node->set_domain(op.substr(0, dot));
    node->set_op_type(dot == std::string::npos ? op : op.substr(dot + 1));
    for (const std::string &name : inputs)
      node->add_input(name);
    for (const std::string &name : outputs)
      node->add_output(name);
    return node;
  }
  static void set(onnxproto::NodeProto *node, const std::string &name,
                  std::int64_t value) {
    auto *attr = node->add_attribute();
    attr->set_name(name);
    attr->set_type(onnxproto::AttributeProto::INT);
    attr->set_i(value);
  }
  static void set(onnxproto::NodeProto *node, const std::string &name,
                  int value) {
    set(node, name, static_cast<std::int64_t>(value));
  }
  static void set(onnxproto::NodeProto *node, const std::string &name,
                  float value) {
    auto *attr = node->add_attribute();
    attr->set_name(name);
    attr->set_type(onnxproto::AttributeProto::FLOAT);
    attr->set_f(value);
  }
  static void set(onnxproto::NodeProto *node, const std::string &name,
                  const std::vector<std::int64_t> &values) {
    auto *attr = node->add_attribute();
    attr->set_name(name);
    attr->set_type(onnxproto::AttributeProto::INTS);
    for (std::int64_t value : values)
      attr->add_ints(value);
  }
  static onnxproto::GraphProto *branch(onnxproto::NodeProto *node,
                                       const std::string &name) {
    auto *attr = node->add_attribute();
    attr->set_name(name);
    attr->set_type(onnxproto::AttributeProto::GRAPH);
    return attr->mutable_g();
  }

  void input(const std::string &name, const OnnxTensor &value) {
    inputs.push_back(value);
    declare(name, value);
  }
  // An input that is not given at run time.
  void defaultInput(const std::string &name, const OnnxTensor &value) {
    inputs.push_back(std::nullopt);
    declare(name, value);
    initializer(name, value);
  }
  void initializer(const std::string &name, const OnnxTensor &value,
                   onnxproto::GraphProto *graph = nullptr) {
    auto *tensor = (graph ? graph : proto.mutable_graph())->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(static_cast<std::int32_t>(value.type));
    for (std::int64_t dim : value.dims)
      tensor->add_dims(dim);
    tensor->set_raw_data(value.bytes().data(), value.bytes().size());
  }
  void output(const std::string &name, onnxproto::GraphProto *graph = nullptr) {
    (graph ? graph : proto.mutable_graph())->add_output()->set_name(name);
  }

  Result<std::vector<OnnxTensor>> run() const {
    std::string text = proto.SerializeAsString();
    INGOT_ASSIGN_OR_RETURN(
        OnnxFile file,
        OnnxFile::fromMemory(
            {reinterpret_cast<const std::uint8_t *>(text.data()), text.size()},
            "m.onnx"));
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    INGOT_ASSIGN_OR_RETURN(auto module, importOnnxGraph(context, file));
    return graph::runGraph(*module, file, inputs);
  }
  // The first output; a failure of the test where there is none.
  template <typename T> std::vector<T> values() const {
    auto outputs = run();
    EXPECT_TRUE(outputs.isOk()) << outputs.status().message();
    return outputs.isOk() ? valuesOf<T>((*outputs)[0]) : std::vector<T>();
  }
  std::string problem() const {
    auto outputs = run();
    return outputs.isOk() ? "no problem" : outputs.status().message();
  }

  onnxproto::ModelProto proto;
  std::vector<std::optional<OnnxTensor>> inputs;

private:
  void declare(const std::string &name, const OnnxTensor &value) {
    auto *info = proto.mutable_graph()->add_input();
    info->set_name(name);
    auto *type = info->mutable_type()->mutable_tensor_type();
    type->set_elem_type(static_cast<std::int32_t>(value.type));
    type->mutable_shape();
    for (std::int64_t dim : value.dims)
      type->mutable_shape()->add_dim()->set_dim_value(dim);
  }
};

} // namespace ingot::testing
