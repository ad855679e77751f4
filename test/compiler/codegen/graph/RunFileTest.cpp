// A graph that is no decoder, from file to file.
#include "compiler/codegen/graph/RunFile.h"
#include "compiler/frontend/huggingface/SafetensorsFile.h"
#include "test/compiler/codegen/graph/OnnxModel.h"
#include "test/compiler/frontend/TempFolder.h"

#include "gmock/gmock.h"

#include <cmath>
#include <cstring>
#include <fstream>

namespace ingot {
namespace {

using ::testing::HasSubstr;
using testing::OnnxModel;
using testing::tensor;
using Floats = std::vector<float>;

class RunFile : public ::testing::Test {
protected:
  // z = relu(x w), and x itself.
  RunFile() {
    OnnxModel model(17);
    model.input("x", tensor<float>({2, 3}, Floats(6)));
    model.initializer("w", tensor<float>({3, 2}, Floats{1, 0, 0, 1, -4, 0}));
    model.node("MatMul", {"x", "w"}, {"y"});
    model.node("Relu", {"y"}, {"z"});
    model.node("Identity", {"x"}, {"same"});
    model.output("z");
    model.output("same");
    std::ofstream(folder_.file("m.onnx"), std::ios::binary)
        << model.proto.SerializeAsString();
  }

  template <typename T>
  void give(const std::string &name, SafetensorsDtype dtype,
            const std::vector<std::uint64_t> &shape,
            const std::vector<T> &values) {
    Status status =
        writer_.add(name, dtype, shape,
                    {reinterpret_cast<const std::uint8_t *>(values.data()),
                     values.size() * sizeof(T)});
    ASSERT_TRUE(status.isOk()) << status.message();
  }
  Status run() {
    INGOT_RETURN_IF_ERROR(writer_.write(folder_.file("in.safetensors")));
    return graph::runOnnxFile(folder_.file("m.onnx"),
                              folder_.file("in.safetensors"),
                              folder_.file("out.safetensors"), report_);
  }

  testing::TempFolder folder_;
  SafetensorsWriter writer_;
  std::string report_;
};

TEST_F(RunFile, GivesTheOutputsByName) {
  give<float>("x", SafetensorsDtype::F32, {2, 3}, {1, 2, 0, 3, -4, 1});
  Status status = run();
  ASSERT_TRUE(status.isOk()) << status.message();
  auto file = SafetensorsFile::open(folder_.file("out.safetensors"));
  ASSERT_TRUE(file.isOk()) << file.status().message();
  ASSERT_EQ(file->tensors().size(), 2u);
  const SafetensorsTensor *z = file->find("z");
  ASSERT_NE(z, nullptr);
  EXPECT_EQ(z->shape, (std::vector<std::uint64_t>{2, 2}));
  Floats values(4);
  std::memcpy(values.data(), file->data(*z).data(), 16);
  EXPECT_EQ(values, (Floats{1, 2, 0, 0}));
  EXPECT_THAT(report_, HasSubstr("input \"x\" float [2, 3]\n"));
  EXPECT_THAT(report_, HasSubstr("output \"z\" float [2, 2]\n"));
}

TEST_F(RunFile, NamesTheInputThatIsAbsent) {
  EXPECT_THAT(run().message(), HasSubstr("input \"x\" of "));
}

TEST_F(RunFile, NamesTheTensorThatIsNoInput) {
  give<float>("x", SafetensorsDtype::F32, {2, 3}, Floats(6));
  give<float>("other", SafetensorsDtype::F32, {1}, {1});
  EXPECT_THAT(run().message(), HasSubstr("\"other\" is no input of "));
}

TEST_F(RunFile, RefusesInputsOfTypesThatGraphsHaveNot) {
  give<std::uint8_t>("x", SafetensorsDtype::F8E4M3, {2, 3},
                     std::vector<std::uint8_t>(6));
  Status status = run();
  EXPECT_EQ(status.code(), StatusCode::Unsupported);
  EXPECT_THAT(status.message(), HasSubstr("inputs of F8_E4M3"));
}

// Shapes of the graph are not those of the file.
TEST_F(RunFile, RefusesInputsOfOtherShapes) {
  give<float>("x", SafetensorsDtype::F32, {2, 4}, Floats(8));
  Status status = run();
  EXPECT_THAT(status.message(),
              HasSubstr("\"x\": expected tensor<2x3xf32>, found "
                        "tensor<2x4xf32>"));
}

// Encoders as torch.onnx.export leaves them give onnxruntime's states
// (goldens/make_onnx_encoder_goldens.py): one sequence, and three of which one is
// padded.
class EncoderExports : public ::testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Cases, EncoderExports,
                         ::testing::Values("bert-3x17", "bert-1x64",
                                           "distilbert-3x17"));

TEST_P(EncoderExports, GiveTheStatesOfOnnxruntime) {
  const std::string name = GetParam(),
                    source = std::string(INGOT_SOURCE_DIR) + "/test/",
                    golden = source + "e2e/goldens/encoders-onnx/" + name;
  testing::TempFolder folder;
  std::string report;
  Status status = graph::runOnnxFile(
      source + "models/encoders/" + name.substr(0, name.find('-')) +
          "/encoder.onnx",
      golden + ".inputs.safetensors", folder.file("out.safetensors"), report);
  ASSERT_TRUE(status.isOk()) << status.message();
  auto file = SafetensorsFile::open(folder.file("out.safetensors")),
       expected = SafetensorsFile::open(golden + ".outputs.safetensors");
  ASSERT_TRUE(file.isOk()) << file.status().message();
  ASSERT_TRUE(expected.isOk()) << expected.status().message();
  const SafetensorsTensor *states = file->find("last_hidden_state"),
                          *theirs = expected->find("last_hidden_state");
  ASSERT_NE(states, nullptr);
  ASSERT_NE(theirs, nullptr);
  ASSERT_EQ(states->shape, theirs->shape);
  auto values = [](const SafetensorsFile &from, const SafetensorsTensor &of) {
    Floats list(from.data(of).size() / sizeof(float));
    std::memcpy(list.data(), from.data(of).data(), list.size() * sizeof(float));
    return list;
  };
  const Floats ours = values(*file, *states),
               right = values(*expected, *theirs);
  ASSERT_EQ(ours.size(), right.size());
  ASSERT_GT(ours.size(), 1000u);
  // Measured: 1.9e-6.
  for (std::size_t i = 0; i < ours.size(); ++i)
    ASSERT_NEAR(ours[i], right[i], 1e-5f * std::max(1.0f, std::abs(right[i])))
        << i;
}

} // namespace
} // namespace ingot
