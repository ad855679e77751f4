// Checkpoints that other tools quantised: the numbers that their own libraries
// make of them, and every way in which config and tensors can disagree.
#include "compiler/frontend/huggingface/QuantizedTensors.h"

#include "compiler/frontend/huggingface/SafetensorsFile.h"
#include "compiler/package/HalfFloat.h"
#include "compiler/package/PackWeights.h"
#include "test/compiler/frontend/TempFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>

using namespace ingot;
using nlohmann::json;
using ::testing::HasSubstr;

namespace {

const std::string folder =
    std::string(INGOT_SOURCE_DIR) + "/test/compiler/frontend/huggingface/";

struct Vectors {
  json cases;
  SafetensorsFile file;
};

const Vectors &vectors() {
  static const Vectors loaded = [] {
    Vectors result;
    std::ifstream text(folder + "quantized-vectors.json");
    result.cases = json::parse(text);
    auto file = SafetensorsFile::open(folder + "quantized-vectors.safetensors");
    EXPECT_TRUE(file) << file.status().message();
    result.file = std::move(*file);
    return result;
  }();
  return loaded;
}

const json &caseNamed(const std::string &name) {
  for (const json &one : vectors().cases)
    if (one["name"] == name)
      return one;
  throw std::runtime_error("no case " + name);
}

// The tensors of a case as those of a module "w".
std::vector<FileTensor> tensorsOf(const std::string &name) {
  std::vector<FileTensor> tensors;
  const SafetensorsFile &file = vectors().file;
  for (const SafetensorsTensor &from : file.tensors()) {
    if (from.name.rfind(name + ".", 0) != 0 || from.name == name + ".expected")
      continue;
    FileTensor tensor;
    tensor.name = "w" + from.name.substr(name.size());
    tensor.byteOffset = from.fileOffset;
    tensor.data = file.data(from);
    tensor.dtypeName = safetensorsDtypeName(from.dtype);
    tensor.shape = from.shape;
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

struct Outcome {
  bool named = false;
  std::string message; // empty: no problems
  std::vector<std::string> notes;
};

Outcome resolve(const json &config, std::vector<FileTensor> &tensors) {
  ImportProblems problems;
  Outcome outcome;
  outcome.named = resolveQuantized(config, tensors, problems, outcome.notes);
  if (!problems.empty())
    outcome.message = problems.status("model", "llama").message();
  return outcome;
}

StoredTensor storedOf(const FileTensor &tensor) {
  StoredTensor stored;
  stored.name = tensor.name;
  stored.form = *tensor.dtype;
  stored.bytes = tensor.data;
  stored.rows = tensor.shape[0];
  stored.columns = tensor.shape[1];
  stored.details = tensor.details;
  stored.details.forEachPlane([](StoredPlane &plane) {
    for (const SafetensorsTensor &from : vectors().file.tensors())
      if (from.fileOffset == plane.byteOffset &&
          from.sizeBytes == plane.sizeBytes)
        plane.bytes = vectors().file.data(from);
  });
  return stored;
}

float rounded(float value, const std::string &type) {
  if (type == "f16")
    return package::halfToFloat(package::floatToHalf(value));
  if (type == "bf16")
    return package::brainToFloat(package::floatToBrain(value));
  return value;
}

std::string shortName(const WeightEncoding &encoding) {
  static const char *codes[] = {"f32", "f16", "bf16", "i8", "i4"};
  std::string name = codes[static_cast<int>(encoding.code)];
  if (encoding.group)
    name += "-g" + std::to_string(encoding.group);
  return encoding.minimum ? name + "-min" : name;
}

std::vector<std::string> caseNames() {
  std::vector<std::string> names;
  std::ifstream text(folder + "quantized-vectors.json");
  for (const json &one : json::parse(text))
    names.push_back(one["name"]);
  return names;
}

class QuantizedCase : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Vectors, QuantizedCase,
                         ::testing::ValuesIn(caseNames()),
                         [](const auto &info) { return info.param; });

// Every number is that of the library, in the type in which it computes.
TEST_P(QuantizedCase, EqualsItsLibrary) {
  const json &one = caseNamed(GetParam());
  std::vector<FileTensor> tensors = tensorsOf(GetParam());
  Outcome outcome = resolve(one["config"], tensors);
  ASSERT_EQ(outcome.message, "");
  ASSERT_TRUE(outcome.named);
  ASSERT_EQ(tensors.size(), 1u);
  EXPECT_EQ(tensors[0].name, "w.weight");
  Result<StoredRows> rows = StoredRows::create(storedOf(tensors[0]));
  ASSERT_TRUE(rows) << rows.status().message();
  const SafetensorsTensor *expected =
      vectors().file.find(GetParam() + ".expected");
  ASSERT_EQ(tensors[0].shape, expected->shape);
  std::vector<float> want(expected->shape[0] * expected->shape[1]);
  std::memcpy(want.data(), vectors().file.data(*expected).data(),
              want.size() * 4);
  std::vector<float> row(expected->shape[1]);
  for (std::uint64_t n = 0; n < expected->shape[0]; ++n) {
    rows->widen(n, row);
    for (std::uint64_t k = 0; k < row.size(); ++k)
      ASSERT_EQ(rounded(row[k], one["round"]), want[n * row.size() + k])
          << "row " << n << " column " << k;
  }
}

// What "as stored" makes of it, and how far that is from what was stored.
TEST_P(QuantizedCase, HasItsNativeEncoding) {
  const json &one = caseNamed(GetParam());
  std::vector<FileTensor> tensors = tensorsOf(GetParam());
  ASSERT_EQ(resolve(one["config"], tensors).message, "");
  StoredTensor stored = storedOf(tensors[0]);
  WeightEncoding encoding = nativeEncoding(stored.form, stored.details);
  EXPECT_EQ(shortName(encoding), one["encoding"].get<std::string>());
  WeightConversion conversion =
      conversionTo(encoding, stored.form, stored.details);
  auto packer = package::WeightPacker::create(encoding, {stored});
  ASSERT_TRUE(packer) << packer.status().message();
  std::vector<std::uint8_t> bytes(packer->layout().size);
  package::PackStatistics statistics;
  ASSERT_TRUE(packer->packAll(bytes, statistics));
  // Kept codes: half an ulp of a float16 scale, up to 15 times, and of a minimum
  // of up to 16 scales, beside a weight of at least 7.75 scales in each group.
  // Rounded anew: half a step of int8, or of float16.
  double bound = conversion == WeightConversion::KeepCodes ? 0x1p-11 * 4
                 : encoding.code == WeightCode::F16        ? 0x1p-11
                                                           : 0.5 / 127 * 1.01;
  EXPECT_LE(statistics.error.largest, bound);
  if (conversion == WeightConversion::KeepCodes && !encoding.minimum &&
      one["round"] == "f16") {
    EXPECT_EQ(statistics.error.error, 0.0);
  }
}

TEST(QuantizedTensors, Notes) {
  auto notesOf = [](const char *name) {
    std::vector<FileTensor> tensors = tensorsOf(name);
    return ::testing::PrintToString(
        resolve(caseNamed(name)["config"], tensors).notes);
  };
  EXPECT_THAT(notesOf("gptq_misnamed"), HasSubstr("version 2"));
  EXPECT_THAT(notesOf("gptq_act_order"), HasSubstr("scattered groups"));
  EXPECT_EQ(notesOf("gptq_trivial_index"), "{}");
}

// Zero points of all kinds (B35): what sym says must be so.
TEST(QuantizedTensors, SymmetryMustHold) {
  std::vector<FileTensor> tensors = tensorsOf("gptq_v1_asym");
  json config = caseNamed("gptq_v1_asym")["config"];
  config["sym"] = true;
  EXPECT_THAT(resolve(config, tensors).message,
              HasSubstr("has zero points beside 8"));
}

// X13: one word of AWQ holds columns 0 to 7 in this order.
TEST(QuantizedTensors, AwqOrder) {
  const std::uint32_t word = 0x75316420, zeros = 0;
  const std::uint16_t ones[8] = {0x3c00, 0x3c00, 0x3c00, 0x3c00,
                                 0x3c00, 0x3c00, 0x3c00, 0x3c00};
  auto bytes = [](const auto &value) {
    return std::span(reinterpret_cast<const std::uint8_t *>(&value),
                     sizeof(value));
  };
  StoredTensor tensor;
  tensor.form = StoredForm::Codes;
  tensor.rows = 8;
  tensor.columns = 1;
  tensor.bytes = bytes(word);
  StoredCodes codes;
  codes.packing = CodePacking::Awq;
  codes.scales.type = PlaneType::F16;
  codes.scales.bytes = bytes(ones);
  codes.scales.sizeBytes = 16;
  codes.zeros.emplace();
  codes.zeros->type = PlaneType::I32;
  codes.zeros->bytes = bytes(zeros);
  codes.zeros->sizeBytes = 4;
  tensor.details.codes = codes;
  auto rows = StoredRows::create(tensor);
  ASSERT_TRUE(rows) << rows.status().message();
  for (std::uint64_t n = 0; n < 8; ++n) {
    float value;
    rows->widen(n, {&value, 1});
    EXPECT_EQ(value, float(n));
  }
}

// Codes of eight rows in GPTQ's words (one word a row) or AWQ's (one a column),
// scales of one, a word of zero points, an index of the columns' groups.
std::vector<float> valuesOf(CodePacking packing,
                            std::vector<std::uint32_t> words,
                            std::vector<std::uint32_t> zeros,
                            std::int64_t zeroBias,
                            std::vector<std::int32_t> index = {}) {
  const std::size_t columns = packing == CodePacking::Gptq ? 8 : words.size();
  auto bytes = [](const auto &values) {
    return std::span(reinterpret_cast<const std::uint8_t *>(values.data()),
                     values.size() * sizeof(values[0]));
  };
  // Group g has the scale 2^g.
  std::vector<float> scales;
  for (std::size_t g = 0; g < zeros.size(); ++g)
    scales.insert(scales.end(), 8, std::ldexp(1.0f, int(g)));
  StoredTensor tensor;
  tensor.form = StoredForm::Codes;
  tensor.rows = 8;
  tensor.columns = columns;
  tensor.bytes = bytes(words);
  auto plane = [&](const auto &values, PlaneType type) {
    StoredPlane plane;
    plane.type = type;
    plane.bytes = bytes(values);
    plane.sizeBytes = plane.bytes.size();
    return plane;
  };
  StoredCodes codes;
  codes.packing = packing;
  codes.group = index.empty() ? 0 : std::int64_t(columns / zeros.size());
  codes.zeroBias = zeroBias;
  codes.scales = plane(scales, PlaneType::F32);
  codes.zeros = plane(zeros, PlaneType::I32);
  if (!index.empty())
    codes.index = plane(index, PlaneType::I32);
  tensor.details.codes = codes;
  auto rows = StoredRows::create(tensor);
  EXPECT_TRUE(rows) << rows.status().message();
  std::vector<float> values(8 * columns);
  for (std::uint64_t n = 0; rows && n < 8; ++n)
    rows->widen(n, std::span(values).subspan(n * columns, columns));
  return values;
}

// X13: the same order in the words of zero points.
TEST(QuantizedTensors, AwqOrderOfZeroPoints) {
  std::vector<float> values =
      valuesOf(CodePacking::Awq, {0xFFFFFFFF}, {0x75316420}, 0);
  for (int n = 0; n < 8; ++n)
    EXPECT_EQ(values[n], float(15 - n));
}

// B35: every stored zero point of both versions, and no sum that wraps: 0 of the
// second is 0, 15 of the first is 16.
TEST(QuantizedTensors, ZeroPointsDoNotWrap) {
  const std::vector<std::uint32_t> words(8, 0x76543210);
  for (std::int64_t bias : {0, 1})
    for (std::uint32_t stored = 0; stored < 16; ++stored) {
      std::vector<float> values =
          valuesOf(CodePacking::Gptq, words, {stored * 0x11111111u}, bias);
      for (int n = 0; n < 8; ++n)
        for (int k = 0; k < 8; ++k)
          ASSERT_EQ(values[n * 8 + k], float(k - int(stored) - int(bias)))
              << "stored " << stored << " bias " << bias;
    }
}

// X14: a column's group is what the index says, also where neighbours differ.
TEST(QuantizedTensors, IndexDecidesTheGroup) {
  const std::vector<std::int32_t> index = {1, 0, 0, 1, 1, 0, 1, 0};
  std::vector<float> values =
      valuesOf(CodePacking::Gptq, std::vector<std::uint32_t>(8, 0x76543210),
               {0x88888888, 0x33333333}, 0, index);
  for (int k = 0; k < 8; ++k)
    EXPECT_EQ(values[k], index[k] ? float(k - 3) * 2 : float(k - 8)) << k;
}

// X14: an index that is no trivial one counts whatever "desc_act" says.
TEST(QuantizedTensors, IndexCountsWithoutDescAct) {
  json config = caseNamed("gptq_act_order")["config"];
  ASSERT_EQ(config["desc_act"], true);
  std::vector<FileTensor> with = tensorsOf("gptq_act_order"),
                          without = tensorsOf("gptq_act_order");
  ASSERT_EQ(resolve(config, with).message, "");
  config["desc_act"] = false;
  Outcome outcome = resolve(config, without);
  ASSERT_EQ(outcome.message, "");
  ASSERT_EQ(without.size(), 1u);
  EXPECT_TRUE(without[0].details.codes->index.has_value());
  EXPECT_EQ(without[0].details, with[0].details);
  EXPECT_THAT(::testing::PrintToString(outcome.notes),
              HasSubstr("scattered groups"));
}

struct Refusal {
  const char *name;
  const char *change; // merged into the config
  const char *message;
};

// Configs that say what is not read, each by name.
TEST(QuantizedTensors, RefusesConfigs) {
  const Refusal refusals[] = {
      {"gptq_v1_sym", R"({"quant_method": "bitsandbytes"})", "bitsandbytes"},
      {"gptq_v1_sym", R"({"quant_method": "aqlm"})", "aqlm"},
      {"gptq_v1_sym", R"({"bits": 5})", "\"bits\" is 5"},
      {"gptq_v1_sym", R"({"bits": "4"})", "\"bits\" is \"4\""},
      {"gptq_v1_sym", R"({"checkpoint_format": "marlin"})", "marlin"},
      {"gptq_v1_sym", R"({"dynamic": {"-:.*": {}}})", "dynamic"},
      {"gptq_v1_sym", R"({"is_marlin_format": true})", "is_marlin_format"},
      {"gptq_v1_sym", R"({"pack_dtype": "int64"})", "pack_dtype"},
      {"gptq_v1_sym", R"({"new_key": 1})", "new_key"},
      {"gptq_v1_sym", R"({"group_size": 64})", "expected [1, 32]"},
      {"awq_group", R"({"version": "gemv"})", "gemv"},
      {"awq_group", R"({"zero_point": false})", "zero_point"},
      {"awq_group", R"({"bits": 8})", "\"bits\" is 8"},
      {"awq_group", R"({"group_size": 16})", "wrong quantised tensors"},
      {"ct_int4_group", R"({"format": "nvfp4-pack-quantized"})", "nvfp4"},
      {"ct_int4_group", R"({"format": "marlin-24"})", "marlin-24"},
      {"ct_int4_group",
       R"({"sparsity_config": {"format": "sparse-24-bitmask"}})", "sparse-24"},
      {"ct_int4_group", R"({"transform_config": {"a": 1}})",
       "transform_config"},
      {"ct_int4_group", R"({"config_groups": {}})", "config_groups"},
      {"ct_int4_group",
       R"({"config_groups": {"g": {"weights": {"num_bits": 3}}}})", "3 bits"},
      {"ct_int4_group",
       R"({"config_groups": {"g": {"weights": {"num_bits": 4,
           "strategy": "group", "group_size": 64}}}})",
       "of no scheme"},
      {"fp8_block", R"({"weight_block_size": [64, 64]})", "of no scheme"},
      {"fp8_block", R"({"weight_block_size": [0, 64]})", "weight_block_size"},
      {"fp8_block", R"({"fmt": "e5m2"})", "fmt"},
  };
  for (const Refusal &refusal : refusals) {
    SCOPED_TRACE(refusal.change);
    json config = caseNamed(refusal.name)["config"];
    const json changed = json::parse(refusal.change);
    for (const auto &item : changed.items())
      config[item.key()] = item.value();
    std::vector<FileTensor> tensors = tensorsOf(refusal.name);
    Outcome outcome = resolve(config, tensors);
    EXPECT_THAT(outcome.message, HasSubstr(refusal.message));
    EXPECT_FALSE(outcome.named);
  }
}

// Tensors that are missing, of another shape or type, or hold what cannot be.
TEST(QuantizedTensors, RefusesTensors) {
  auto message = [](const char *name, auto &&change) {
    std::vector<FileTensor> tensors = tensorsOf(name);
    for (FileTensor &tensor : tensors)
      change(tensor);
    return resolve(caseNamed(name)["config"], tensors).message;
  };
  auto rename = [](const char *from) {
    return [from](FileTensor &tensor) {
      if (tensor.name == std::string("w.") + from)
        tensor.name += ".old";
    };
  };
  EXPECT_THAT(message("gptq_v1_sym", rename("scales")),
              HasSubstr("missing tensors: \"w.scales\""));
  EXPECT_THAT(message("awq_group", rename("qzeros")),
              HasSubstr("missing tensors: \"w.qzeros\""));
  EXPECT_THAT(message("ct_int4_group", rename("weight_shape")),
              HasSubstr("weight_shape"));
  EXPECT_THAT(message("fp8_block", rename("weight_scale_inv")),
              HasSubstr("no tensor is quantised so"));
  for (const char *part : {"qweight", "qzeros", "scales", "g_idx"}) {
    SCOPED_TRACE(part);
    EXPECT_NE(message("gptq_act_order",
                      [&](FileTensor &tensor) {
                        if (tensor.name == std::string("w.") + part)
                          tensor.dtypeName = "I64";
                      }),
              "");
    EXPECT_NE(message("gptq_act_order",
                      [&](FileTensor &tensor) {
                        if (tensor.name == std::string("w.") + part)
                          tensor.shape.push_back(1);
                      }),
              "");
    EXPECT_NE(message("gptq_act_order",
                      [&](FileTensor &tensor) {
                        if (tensor.name == std::string("w.") + part)
                          tensor.data = tensor.data.first(4);
                      }),
              "");
  }
  std::vector<std::uint8_t> index(64 * 4);
  index[4] = 9; // column 1 of a group that is not there
  EXPECT_THAT(message("gptq_act_order",
                      [&](FileTensor &tensor) {
                        if (tensor.name == "w.g_idx")
                          tensor.data = index;
                      }),
              HasSubstr("column 1 is of group 9"));
}

} // namespace
