// External data (X25): which files a model may name, which spans of them, and
// the links of a hub cache.
#include "compiler/frontend/onnx/OnnxFile.h"
#include "test/compiler/frontend/TempFolder.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <filesystem>

namespace ingot {
namespace {

namespace fs = std::filesystem;
using onnxproto::TensorProto;
using ::testing::HasSubstr;

// A model whose one initializer, float[4], has these entries of external data.
std::string
modelWith(const std::vector<std::pair<std::string, std::string>> &entries) {
  onnxproto::ModelProto model;
  model.set_ir_version(8);
  TensorProto *tensor = model.mutable_graph()->add_initializer();
  tensor->set_name("w");
  tensor->set_data_type(1);
  tensor->add_dims(4);
  tensor->set_data_location(TensorProto::EXTERNAL);
  for (const auto &[key, value] : entries) {
    auto *entry = tensor->add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
  return model.SerializeAsString();
}

Result<OnnxTensor> readFrom(const std::string &path) {
  INGOT_ASSIGN_OR_RETURN(OnnxFile file, OnnxFile::open(path));
  INGOT_ASSIGN_OR_RETURN(
      OnnxTensor tensor,
      file.read(file.model().graph().initializer(0), "initializer \"w\""));
  tensor.owned.assign(tensor.bytes().begin(), tensor.bytes().end());
  tensor.file.reset(); // the mapping ends with `file`
  return tensor;
}

class OnnxExternalData : public ::testing::Test {
protected:
  OnnxExternalData() {
    fs::create_directories(folder.file("model/parts"));
    folder.write("model/weights.bin", std::string(4, 'x') + values + "tail");
    folder.write("model/parts/weights.bin", values);
    folder.write("outside.bin", values);
  }
  std::string
  problem(const std::vector<std::pair<std::string, std::string>> &entries) {
    folder.write("model/m.onnx", modelWith(entries));
    auto tensor = readFrom(folder.file("model/m.onnx"));
    if (!tensor)
      return tensor.status().message();
    std::string read(tensor->owned.begin(), tensor->owned.end());
    return read == values ? "reads the values" : "reads other bytes";
  }
  void link(const std::string &target, const std::string &name) {
    fs::create_symlink(target, folder.file(name));
  }

  testing::TempFolder folder;
  const std::string values = "0123456789abcdef";
};

TEST_F(OnnxExternalData, Reads) {
  EXPECT_EQ(problem({{"location", "weights.bin"}, {"offset", "4"}}),
            "reads the values");
  EXPECT_EQ(
      problem({{"location", "weights.bin"}, {"offset", "4"}, {"length", "16"}}),
      "reads the values");
  EXPECT_EQ(problem({{"location", "parts/weights.bin"}}), "reads the values");
  EXPECT_EQ(problem({{"location", "./parts/./weights.bin"}}),
            "reads the values");
}

TEST_F(OnnxExternalData, EscapesAreRefused) {
  for (const char *location :
       {"../outside.bin", "../../../etc/passwd", "parts/../../outside.bin",
        "parts/../weights.bin", ".."})
    EXPECT_THAT(problem({{"location", location}}),
                HasSubstr("leaves the model's folder"))
        << location;
  EXPECT_THAT(problem({{"location", "/etc/passwd"}}), HasSubstr("absolute"));
  EXPECT_THAT(problem({{"location", folder.file("model/weights.bin")}}),
              HasSubstr("absolute"));
  EXPECT_THAT(problem({{"location", ""}}), HasSubstr("the name of a file"));
  EXPECT_THAT(problem({{"location", std::string("weights.bin\0x", 13)}}),
              HasSubstr("the name of a file"));
  EXPECT_THAT(problem({{"location", "absent.bin"}}), HasSubstr("No such file"));
  EXPECT_THAT(problem({{"location", "parts"}}), HasSubstr("parts"));
}

TEST_F(OnnxExternalData, LinksOutOfTheFolderAreRefused) {
  link(folder.file("outside.bin"), "model/link.bin");
  EXPECT_THAT(problem({{"location", "link.bin"}}),
              HasSubstr("outside the model's folder"));
  fs::create_directory_symlink(folder.path(), folder.file("model/up"));
  EXPECT_THAT(problem({{"location", "up/outside.bin"}}),
              HasSubstr("outside the model's folder"));
  link("weights.bin", "model/inner.bin");
  EXPECT_EQ(problem({{"location", "inner.bin"}, {"offset", "4"}}),
            "reads the values");
}

TEST_F(OnnxExternalData, SpansOutOfTheFile) {
  EXPECT_EQ(problem({{"location", "weights.bin"}, {"offset", "12"}}),
            folder.file("model/m.onnx") +
                ": initializer \"w\": 16 bytes at offset 12 end past "
                "\"weights.bin\" (24 bytes)");
  EXPECT_THAT(problem({{"location", "weights.bin"},
                       {"offset", "18446744073709551615"}}),
              HasSubstr("end past"));
  EXPECT_THAT(problem({{"location", "weights.bin"},
                       {"offset", "18446744073709551616"}}),
              HasSubstr("expected a number of bytes"));
  EXPECT_THAT(problem({{"location", "weights.bin"}, {"offset", "-4"}}),
              HasSubstr("expected a number of bytes"));
  EXPECT_THAT(problem({{"location", "weights.bin"}, {"length", "12"}}),
              HasSubstr("takes 16 bytes, but external_data \"length\" is 12"));
}

TEST_F(OnnxExternalData, Entries) {
  EXPECT_THAT(problem({{"offset", "0"}}), HasSubstr("no location"));
  EXPECT_THAT(problem({{"location", "a"}, {"location", "b"}}),
              HasSubstr("\"location\" is given twice"));
  EXPECT_THAT(problem({{"location", "weights.bin"}, {"basepath", "/"}}),
              HasSubstr("\"basepath\": known are location, offset, length"));
}

// .../snapshots/<revision>/onnx/model.onnx and its data are links to
// .../blobs/<hash>.
TEST_F(OnnxExternalData, HubCache) {
  fs::create_directories(folder.file("hub/blobs"));
  fs::create_directories(folder.file("hub/snapshots/r1/onnx"));
  folder.write("hub/blobs/aaaa", modelWith({{"location", "model.onnx_data"}}));
  folder.write("hub/blobs/bbbb", values);
  link("../../../blobs/aaaa", "hub/snapshots/r1/onnx/model.onnx");
  link("../../../blobs/bbbb", "hub/snapshots/r1/onnx/model.onnx_data");
  auto tensor = readFrom(folder.file("hub/snapshots/r1/onnx/model.onnx"));
  ASSERT_TRUE(tensor.isOk()) << tensor.status().message();
  EXPECT_EQ(std::string(tensor->owned.begin(), tensor->owned.end()), values);

  // Of the cache itself only the blobs are allowed.
  fs::remove(folder.file("hub/snapshots/r1/onnx/model.onnx_data"));
  link(folder.file("outside.bin"), "hub/snapshots/r1/onnx/model.onnx_data");
  tensor = readFrom(folder.file("hub/snapshots/r1/onnx/model.onnx"));
  ASSERT_FALSE(tensor.isOk());
  EXPECT_THAT(tensor.status().message(),
              HasSubstr("outside the model's folder"));

  // A folder that is no hub cache has no blobs.
  link("../hub/blobs/bbbb", "model/data.bin");
  EXPECT_THAT(problem({{"location", "data.bin"}}),
              HasSubstr("outside the model's folder"));
}

} // namespace
} // namespace ingot
