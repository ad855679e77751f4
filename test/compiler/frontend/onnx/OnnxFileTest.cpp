// The reader of ONNX files against sound and hostile messages: where values lie,
// which lengths are believed, what is refused and how it is named.
#include "compiler/frontend/onnx/OnnxFile.h"
#include "compiler/frontend/onnx/DetachRawData.h"
#include "test/compiler/frontend/TempFolder.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace ingot {
namespace {

using onnxproto::ModelProto;
using onnxproto::TensorProto;
using ::testing::HasSubstr;

std::span<const std::uint8_t> bytesOf(const std::string &text) {
  return {reinterpret_cast<const std::uint8_t *>(text.data()), text.size()};
}

ModelProto emptyModel() {
  ModelProto model;
  model.set_ir_version(8);
  model.mutable_graph()->set_name("g");
  return model;
}

TensorProto *addTensor(ModelProto &model, OnnxType type,
                       std::initializer_list<std::int64_t> dims) {
  TensorProto *tensor = model.mutable_graph()->add_initializer();
  tensor->set_name("w");
  tensor->set_data_type(static_cast<std::int32_t>(type));
  for (std::int64_t dim : dims)
    tensor->add_dims(dim);
  return tensor;
}

// The message of reading the only initializer of `model`, or of opening it.
std::string problemOf(const ModelProto &model) {
  std::string text = model.SerializeAsString();
  auto file = OnnxFile::fromMemory(bytesOf(text), "m.onnx");
  if (!file)
    return file.status().message();
  auto tensor =
      file->read(file->model().graph().initializer(0), "initializer \"w\"");
  return tensor ? "no problem" : tensor.status().message();
}

template <typename T> std::vector<T> valuesOf(const OnnxTensor &tensor) {
  std::vector<T> values(tensor.bytes().size() / sizeof(T));
  if (!values.empty()) // an empty tensor has no address
    std::memcpy(values.data(), tensor.bytes().data(), tensor.bytes().size());
  return values;
}

template <typename T> std::vector<T> readValues(const ModelProto &model) {
  std::string text = model.SerializeAsString();
  auto file = OnnxFile::fromMemory(bytesOf(text), "m.onnx");
  EXPECT_TRUE(file.isOk()) << file.status().message();
  auto tensor = file->read(file->model().graph().initializer(0), "w");
  EXPECT_TRUE(tensor.isOk()) << tensor.status().message();
  return valuesOf<T>(*tensor);
}

TEST(OnnxFile, RawDataStaysInTheFile) {
  ModelProto model = emptyModel();
  TensorProto *tensor = addTensor(model, OnnxType::Float, {2});
  float values[2] = {1.5f, -2.0f};
  tensor->set_raw_data(values, sizeof(values));
  std::string text = model.SerializeAsString();
  auto file = OnnxFile::fromMemory(bytesOf(text), "m.onnx");
  ASSERT_TRUE(file.isOk()) << file.status().message();
  auto read = file->read(file->model().graph().initializer(0), "w");
  ASSERT_TRUE(read.isOk()) << read.status().message();
  ASSERT_TRUE(read->file.has_value());
  EXPECT_EQ(*read->file, 0u);
  EXPECT_EQ(std::memcmp(text.data() + read->byteOffset, values, 8), 0);
  EXPECT_TRUE(read->owned.empty());
  EXPECT_EQ(valuesOf<float>(*read), (std::vector<float>{1.5f, -2.0f}));
}

// Every type's own field of the schema.
TEST(OnnxFile, TypedFields) {
  ModelProto model = emptyModel();
  addTensor(model, OnnxType::Float16, {2})->add_int32_data(0x3c00);
  model.mutable_graph()->mutable_initializer(0)->add_int32_data(0xc000);
  EXPECT_EQ(readValues<std::uint16_t>(model),
            (std::vector<std::uint16_t>{0x3c00, 0xc000}));

  model = emptyModel();
  addTensor(model, OnnxType::Int8, {1})->add_int32_data(-128);
  EXPECT_EQ(readValues<std::int8_t>(model), (std::vector<std::int8_t>{-128}));

  model = emptyModel();
  addTensor(model, OnnxType::Uint32, {})->add_uint64_data(4294967295u);
  EXPECT_EQ(readValues<std::uint32_t>(model),
            (std::vector<std::uint32_t>{4294967295u}));

  model = emptyModel();
  addTensor(model, OnnxType::Int64, {1})->add_int64_data(-5);
  EXPECT_EQ(readValues<std::int64_t>(model), (std::vector<std::int64_t>{-5}));

  model = emptyModel();
  addTensor(model, OnnxType::Double, {1})->add_double_data(0.25);
  EXPECT_EQ(readValues<double>(model), (std::vector<double>{0.25}));

  model = emptyModel();
  addTensor(model, OnnxType::Float, {0, 7});
  EXPECT_TRUE(readValues<float>(model).empty());
}

TEST(OnnxFile, ValuesOutOfTheTypesRange) {
  ModelProto model = emptyModel();
  addTensor(model, OnnxType::Int8, {1})->add_int32_data(128);
  EXPECT_THAT(problemOf(model),
              HasSubstr("element 0 is 128, expected -128 to 127"));
  model = emptyModel();
  addTensor(model, OnnxType::Bool, {1})->set_raw_data("\2");
  EXPECT_THAT(problemOf(model),
              HasSubstr("expected a bool of 0 or 1, found 2"));
  model = emptyModel();
  addTensor(model, OnnxType::Uint32, {})->add_uint64_data(4294967296u);
  EXPECT_THAT(problemOf(model), HasSubstr("does not fit uint32"));
}

TEST(OnnxFile, DimsAndBytesDisagree) {
  ModelProto model = emptyModel();
  addTensor(model, OnnxType::Float, {3})->set_raw_data("01234567");
  EXPECT_EQ(problemOf(model), "m.onnx: initializer \"w\": float[3] takes 12 "
                              "bytes, found 8");
  model = emptyModel();
  addTensor(model, OnnxType::Float, {3})->add_float_data(1);
  EXPECT_THAT(problemOf(model), HasSubstr("takes 12 bytes, found 4"));
  model = emptyModel();
  addTensor(model, OnnxType::Float, {-1});
  EXPECT_THAT(problemOf(model), HasSubstr("dimension -1"));
}

// Nothing is allocated by what dims promise.
TEST(OnnxFile, SizesThatOverflow) {
  ModelProto model = emptyModel();
  addTensor(model, OnnxType::Double, {1ll << 62, 1});
  EXPECT_THAT(problemOf(model), HasSubstr("its size does not fit 64 bits"));
  model = emptyModel();
  addTensor(model, OnnxType::Float, {1ll << 40, 1ll << 40});
  EXPECT_THAT(problemOf(model), HasSubstr("does not fit 64 bits"));
  model = emptyModel();
  addTensor(model, OnnxType::Float, {1ll << 50});
  EXPECT_THAT(problemOf(model), HasSubstr("found 0"));
}

TEST(OnnxFile, ValuesInSeveralPlaces) {
  ModelProto model = emptyModel();
  TensorProto *tensor = addTensor(model, OnnxType::Float, {1});
  tensor->set_raw_data("0123");
  tensor->add_float_data(1);
  EXPECT_THAT(problemOf(model), HasSubstr("several fields"));
}

TEST(OnnxFile, TypesThatAreNotRead) {
  for (auto [type, name] : {std::pair(OnnxType::String, "string"),
                            std::pair(OnnxType::Int4, "int4"),
                            std::pair(OnnxType::Float4E2M1, "float4e2m1")}) {
    ModelProto model = emptyModel();
    addTensor(model, type, {1});
    EXPECT_EQ(problemOf(model), std::string("m.onnx: initializer \"w\": "
                                            "elements of type ") +
                                    name + " are not read");
  }
  ModelProto model = emptyModel();
  addTensor(model, static_cast<OnnxType>(99), {1});
  EXPECT_THAT(problemOf(model), HasSubstr("data_type 99, expected 1 to 26"));
}

// A file cannot itself say where raw data lies.
TEST(OnnxFile, OwnFieldsOfTheReaderAreDropped) {
  ModelProto model = emptyModel();
  TensorProto *tensor = addTensor(model, OnnxType::Float, {1});
  tensor->set_raw_offset(1ull << 60);
  tensor->set_raw_size(4);
  EXPECT_THAT(problemOf(model), HasSubstr("takes 4 bytes, found 0"));
}

TEST(OnnxFile, IrVersions) {
  for (std::int64_t version : {3, 13}) {
    ModelProto model = emptyModel();
    model.set_ir_version(version);
    std::string text = model.SerializeAsString();
    EXPECT_TRUE(OnnxFile::fromMemory(bytesOf(text), "m.onnx").isOk());
  }
  for (std::int64_t version : {-1, 0, 2, 14}) {
    ModelProto model = emptyModel();
    model.set_ir_version(version);
    std::string text = model.SerializeAsString();
    auto file = OnnxFile::fromMemory(bytesOf(text), "m.onnx");
    ASSERT_FALSE(file.isOk());
    EXPECT_EQ(file.status().message(), "m.onnx: ir_version " +
                                           std::to_string(version) +
                                           ", expected 3 to 13");
  }
}

TEST(OnnxFile, NotAModel) {
  for (const std::string &text :
       {std::string(), std::string("GGUF and more"), std::string("\x08", 1),
        std::string("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11),
        std::string("\x0b", 1), std::string(400, '\xff')}) {
    auto file = OnnxFile::fromMemory(bytesOf(text), "m.onnx");
    ASSERT_FALSE(file.isOk());
    EXPECT_THAT(file.status().message(), HasSubstr("m.onnx: "));
  }
}

// Every cut of a sound file is refused or read; none reads past the end.
TEST(OnnxFile, CutFiles) {
  ModelProto model = emptyModel();
  addTensor(model, OnnxType::Float, {2})->set_raw_data("01234567");
  model.mutable_graph()->add_node()->set_op_type("Relu");
  const std::string text = model.SerializeAsString();
  for (std::size_t size = 0; size < text.size(); ++size) {
    std::string cut = text.substr(0, size);
    auto file = OnnxFile::fromMemory(bytesOf(cut), "m.onnx");
    if (!file || file->model().graph().initializer().empty())
      continue;
    (void)file->read(file->model().graph().initializer(0), "w").isOk();
  }
}

TEST(OnnxFile, NestedGraphs) {
  ModelProto model = emptyModel();
  onnxproto::GraphProto *graph = model.mutable_graph();
  for (int depth = 0; depth < 60; ++depth)
    graph = graph->add_node()->add_attribute()->mutable_g();
  std::string text = model.SerializeAsString();
  auto file = OnnxFile::fromMemory(bytesOf(text), "m.onnx");
  ASSERT_FALSE(file.isOk());
  EXPECT_THAT(file.status().message(), HasSubstr("nested deeper than 32"));
}

void putVarint(std::uint64_t value, std::string &out) {
  for (; value >= 0x80; value >>= 7)
    out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

// A field of type bytes whose content follows later.
std::string head(int field, std::uint64_t size) {
  std::string out;
  putVarint(field << 3 | 2, out);
  putVarint(size, out);
  return out;
}

// X26: weights of more than 2 GiB inside the one message. The file is sparse,
// and only the few bytes that are looked at are read.
TEST(OnnxFile, InlineWeightsAboveTwoGigabytes) {
  const std::uint64_t elements = 600'000'000, rawBytes = elements * 4;
  std::string tensor;
  tensor += std::string("\x08", 1);
  putVarint(elements, tensor);
  tensor += std::string("\x10\x01", 2) + head(8, 1) + "w" + head(9, rawBytes);
  std::string graph = head(5, tensor.size() + rawBytes) + tensor;
  // After the weights: a node, so that what follows is seen too.
  std::string tail = head(1, 6) + head(4, 4) + "Relu";
  std::string model = std::string("\x08\x08", 2) +
                      head(7, graph.size() + rawBytes + tail.size()) + graph;

  testing::TempFolder folder;
  const std::string path = folder.file("big.onnx");
  int file = ::open(path.c_str(), O_CREAT | O_RDWR, 0600);
  ASSERT_GE(file, 0);
  ASSERT_EQ(::pwrite(file, model.data(), model.size(), 0),
            ssize_t(model.size()));
  float last = 42.0f;
  ASSERT_EQ(::pwrite(file, &last, 4, model.size() + rawBytes - 4), 4);
  ASSERT_EQ(::pwrite(file, tail.data(), tail.size(), model.size() + rawBytes),
            ssize_t(tail.size()));
  ::close(file);

  auto opened = OnnxFile::open(path);
  ASSERT_TRUE(opened.isOk()) << opened.status().message();
  ASSERT_EQ(opened->model().graph().node_size(), 1);
  auto read = opened->read(opened->model().graph().initializer(0), "w");
  ASSERT_TRUE(read.isOk()) << read.status().message();
  EXPECT_EQ(read->byteOffset, model.size());
  ASSERT_EQ(read->bytes().size(), rawBytes);
  float found = 0;
  std::memcpy(&found, read->bytes().data() + rawBytes - 4, 4);
  EXPECT_EQ(found, 42.0f);
}

TEST(OnnxFile, SharedModel) {
  const std::string path = std::string(INGOT_SHARED_DIR) +
                           "/data/onnx/tiny-random-gpt2-fp32/past.onnx";
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << path << " is absent";
  auto file = OnnxFile::open(path);
  ASSERT_TRUE(file.isOk()) << file.status().message();
  std::uint64_t elements = 0;
  for (const TensorProto &tensor : file->model().graph().initializer()) {
    auto read = file->read(tensor, tensor.name());
    ASSERT_TRUE(read.isOk()) << read.status().message();
    elements += read->numElements;
  }
  EXPECT_GT(elements, 10000u);
}

} // namespace
} // namespace ingot
