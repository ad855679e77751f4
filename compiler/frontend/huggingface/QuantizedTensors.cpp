// 1. the config: method, and every key known; 2. each group of tensors by the
// names of the method; 3. what the numbers themselves decide: whether all zero
// points are the middle, whether the index of columns says anything.
#include "compiler/frontend/huggingface/QuantizedTensors.h"

#include "compiler/frontend/StrictJson.h"
#include "compiler/frontend/huggingface/QuantizationScheme.h"
#include "compiler/stored/StoredRows.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

namespace ingot {
namespace {

using Json = nlohmann::json;

constexpr const char *badConfig = badQuantizationConfig;
const char *badTensors = "wrong quantised tensors";

class QuantizedReader {
public:
  QuantizedReader(const Json &config, std::vector<FileTensor> &tensors,
                  ImportProblems &problems, std::vector<std::string> &notes)
      : config_(config), tensors_(tensors), problems_(problems), notes_(notes) {
    for (FileTensor &tensor : tensors_)
      byName_[tensor.name] = &tensor;
  }

  bool run();

private:
  void readGptq();
  void readAwq();
  void readCompressed();
  void readFp8();

  // What the config says.
  void expect(const char *key, const std::vector<Json> &allowed);
  std::int64_t integer(std::initializer_list<const char *> keys);
  void checkKeys(std::initializer_list<const char *> known);

  // Tensors by name; taking one means that it is part of a weight.
  FileTensor *find(const std::string &name) const {
    auto found = byName_.find(name);
    return found == byName_.end() ? nullptr : found->second;
  }
  FileTensor *take(const std::string &name, bool required);
  std::vector<std::string> stems(const std::string &suffix) const;
  void leaveOut(std::initializer_list<const char *> suffixes);

  std::optional<StoredPlane> plane(const FileTensor &tensor,
                                   std::vector<PlaneType> allowed);
  bool hasShape(const FileTensor &tensor,
                std::vector<std::vector<std::uint64_t>> shapes);
  // The weight of a stem: `codes` stands at the place of its codes.
  void add(const std::string &stem, const FileTensor &codesTensor,
           std::uint64_t rows, std::uint64_t columns, StoredCodes codes);
  void addScaled(const std::string &stem, FileTensor &weight,
                 const std::vector<QuantizationScheme> &schemes,
                 const char *scaleName);
  void wrong(const FileTensor &tensor, const std::string &message) {
    problems_.add(badTensors, quoteName(tensor.name) + " " + message);
  }

  const Json &config_;
  std::vector<FileTensor> &tensors_;
  ImportProblems &problems_;
  std::vector<std::string> &notes_;
  std::map<std::string, FileTensor *> byName_;
  std::set<std::string> taken_;
  std::vector<FileTensor> made_;
  bool firstVersion_ = false; // of GPTQ's zero points
  bool symmetric_ = false;    // GPTQ says so
  std::size_t misnamed_ = 0;  // weights whose zero points are of version 2
  std::size_t reordered_ = 0; // weights whose columns lie in scattered groups
};

std::string shapeText(const std::vector<std::uint64_t> &shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

bool endsWith(const std::string &text, const std::string &end) {
  return text.size() > end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::uint64_t divideUp(std::uint64_t value, std::uint64_t by) {
  return by == 0 ? 1 : (value + by - 1) / by;
}

void QuantizedReader::expect(const char *key,
                             const std::vector<Json> &allowed) {
  auto found = config_.find(key);
  if (found == config_.end() || found->is_null() ||
      std::find(allowed.begin(), allowed.end(), *found) != allowed.end())
    return;
  problems_.add(badConfig, quoteName(key) + " is " + jsonForMessage(*found) +
                               ", expected one of " +
                               jsonForMessage(Json(allowed)));
}

// The first of the keys that is there; the least integer where none is right.
std::int64_t
QuantizedReader::integer(std::initializer_list<const char *> keys) {
  for (const char *key : keys) {
    auto found = config_.find(key);
    if (found == config_.end() || found->is_null())
      continue;
    if (auto value = integerWithin(*found, -1, maxGroupSize))
      return *value;
    problems_.add(badConfig, quoteName(key) + " is " + jsonForMessage(*found));
    return INT64_MIN;
  }
  problems_.add("missing quantization_config keys", quoteName(*keys.begin()));
  return INT64_MIN;
}

void QuantizedReader::checkKeys(std::initializer_list<const char *> known) {
  for (const auto &item : config_.items())
    if (std::none_of(known.begin(), known.end(),
                     [&](const char *key) { return item.key() == key; }))
      problems_.add("unknown quantization_config keys", quoteName(item.key()));
}

FileTensor *QuantizedReader::take(const std::string &name, bool required) {
  FileTensor *tensor = find(name);
  if (tensor)
    taken_.insert(name);
  else if (required)
    problems_.add("missing tensors", quoteName(name));
  return tensor;
}

std::vector<std::string>
QuantizedReader::stems(const std::string &suffix) const {
  std::vector<std::string> result;
  for (const auto &[name, tensor] : byName_)
    if (endsWith(name, suffix))
      result.push_back(name.substr(0, name.size() - suffix.size()));
  return result;
}

void QuantizedReader::leaveOut(std::initializer_list<const char *> suffixes) {
  std::size_t count = 0;
  for (const auto &[name, tensor] : byName_)
    for (const char *suffix : suffixes)
      if (endsWith(name, suffix)) {
        taken_.insert(name);
        ++count;
      }
  if (count > 0)
    notes_.push_back(std::to_string(count) +
                     " tensors of scales of activations, keys and values are "
                     "left out: those are encoded by the artifact's own rules");
}

std::optional<StoredPlane>
QuantizedReader::plane(const FileTensor &tensor,
                       std::vector<PlaneType> allowed) {
  static const std::map<std::string, PlaneType> types = {
      {"F32", PlaneType::F32},   {"F16", PlaneType::F16},
      {"BF16", PlaneType::BF16}, {"F8_E8M0", PlaneType::F8E8M0},
      {"I8", PlaneType::I8},     {"I32", PlaneType::I32}};
  auto type = types.find(tensor.dtypeName);
  if (type == types.end() || std::find(allowed.begin(), allowed.end(),
                                       type->second) == allowed.end()) {
    problems_.add("unsupported dtypes", "unsupported dtype " +
                                            tensor.dtypeName + " in tensor " +
                                            quoteName(tensor.name));
    return std::nullopt;
  }
  StoredPlane plane;
  plane.name = tensor.name;
  plane.fileIndex = tensor.fileIndex;
  plane.byteOffset = tensor.byteOffset;
  plane.sizeBytes = tensor.data.size();
  plane.type = type->second;
  plane.bytes = tensor.data;
  return plane;
}

bool QuantizedReader::hasShape(const FileTensor &tensor,
                               std::vector<std::vector<std::uint64_t>> shapes) {
  if (std::find(shapes.begin(), shapes.end(), tensor.shape) != shapes.end())
    return true;
  wrong(tensor, "expected " + shapeText(shapes.front()) + ", found " +
                    shapeText(tensor.shape));
  return false;
}

const std::vector<PlaneType> scaleTypes = {PlaneType::F32, PlaneType::F16,
                                           PlaneType::BF16, PlaneType::F8E8M0};

void QuantizedReader::add(const std::string &stem,
                          const FileTensor &codesTensor, std::uint64_t rows,
                          std::uint64_t columns, StoredCodes codes) {
  StoredTensor stored;
  stored.name = codesTensor.name;
  stored.form = StoredForm::Codes;
  stored.bytes = codesTensor.data;
  stored.rows = rows;
  stored.columns = columns;
  stored.details.codes = codes;
  Result<StoredRows> reader = StoredRows::create(stored);
  if (!reader) {
    problems_.add(reader.status().code() == StatusCode::Unsupported
                      ? "unsupported quantised tensors"
                      : badTensors,
                  reader.status().message());
    return;
  }
  if (codes.index) {
    const std::uint64_t group =
        codes.group == 0 ? columns : static_cast<std::uint64_t>(codes.group);
    bool trivial = true;
    for (std::uint64_t k = 0; k < columns && trivial; ++k) {
      std::uint32_t g;
      std::memcpy(&g, codes.index->bytes.data() + k * 4, 4);
      trivial = g == k / group;
    }
    if (trivial)
      codes.index.reset();
    else
      ++reordered_;
  }
  // Zero points that all are the middle of the range need no minimum.
  if (codes.zeros) {
    const std::int32_t middle =
        codes.packing == CodePacking::Int8 ? 0 : 1 << (codes.bits - 1);
    const std::uint64_t bands = rowGroups(codes, rows);
    const std::uint64_t groups = columnGroups(codes, columns);
    const std::int32_t first = reader->zeroPoint(0, 0);
    bool alike = true;
    for (std::uint64_t r = 0; r < bands && alike; ++r)
      for (std::uint64_t g = 0; g < groups && alike; ++g)
        alike = reader->zeroPoint(r, g) == first;
    if (alike && first == middle) {
      codes.zeros.reset();
      codes.zeroBias = 0;
    } else if (symmetric_ && alike && firstVersion_ && first == middle + 1) {
      // Some tools write version 2's zero points and call them version 1.
      codes.zeros.reset();
      codes.zeroBias = 0;
      ++misnamed_;
    } else if (symmetric_) {
      wrong(codesTensor, "has zero points beside " + std::to_string(middle) +
                             ", though \"sym\" is true");
      return;
    }
  }
  FileTensor weight;
  weight.name = stem + ".weight";
  weight.fileIndex = codesTensor.fileIndex;
  weight.byteOffset = codesTensor.byteOffset;
  weight.data = codesTensor.data;
  weight.dtype = WeightDtype::Codes;
  weight.dtypeName = codesTensor.dtypeName;
  weight.shape = {rows, columns};
  weight.details.codes = std::move(codes);
  // The mapping does not outlive the import.
  weight.details.forEachPlane([](StoredPlane &plane) { plane.bytes = {}; });
  made_.push_back(std::move(weight));
}

//===----------------------------------------------------------------------===//
// GPTQ
//===----------------------------------------------------------------------===//

void QuantizedReader::readGptq() {
  checkKeys({"quant_method",
             "bits",
             "group_size",
             "desc_act",
             "sym",
             "checkpoint_format",
             "format",
             "true_sequential",
             "damp_percent",
             "damp_auto_increment",
             "static_groups",
             "model_name_or_path",
             "model_file_base_name",
             "meta",
             "lm_head",
             "batch_size",
             "block_name_to_quantize",
             "cache_block_outputs",
             "dataset",
             "exllama_config",
             "max_input_length",
             "model_seqlen",
             "module_name_preceding_first_block",
             "modules_in_block_to_quantize",
             "modules_to_not_convert",
             "pad_token_id",
             "tokenizer",
             "use_cuda_fp16",
             "use_exllama",
             "disable_exllama",
             "backend",
             "act_group_aware",
             "hyb_act",
             "mse",
             "pack_dtype",
             "is_marlin_format",
             "dynamic",
             "quantizer"});
  expect("pack_dtype", {"int32"});
  expect("is_marlin_format", {false});
  expect("dynamic", {Json::object()});
  expect("checkpoint_format", {"gptq", "gptq_v2"});
  expect("format", {"gptq", "gptq_v2"});
  // Groups that are fixed before columns are reordered need no index.
  for (const char *flag : {"desc_act", "sym", "static_groups"})
    expect(flag, {true, false});
  const std::int64_t bits = integer({"bits"});
  const std::int64_t groupSize = integer({"group_size"});
  if (bits != 2 && bits != 3 && bits != 4 && bits != 8) {
    if (bits != INT64_MIN)
      problems_.add(badConfig, "\"bits\" is " + std::to_string(bits) +
                                   ", expected 2, 3, 4 or 8");
    return;
  }
  if (groupSize == 0)
    problems_.add(badConfig, "\"group_size\" is 0");
  if (groupSize == 0 || groupSize < -1)
    return;
  std::string format = "gptq";
  for (const char *key : {"format", "checkpoint_format"})
    if (config_.contains(key) && config_[key].is_string())
      format = config_[key].get<std::string>();
  firstVersion_ = format == "gptq";
  symmetric_ = config_.value("sym", Json(false)) == Json(true);

  for (const std::string &stem : stems(".qweight")) {
    FileTensor *qweight = take(stem + ".qweight", true);
    FileTensor *qzeros = take(stem + ".qzeros", true);
    FileTensor *scales = take(stem + ".scales", true);
    FileTensor *index = take(stem + ".g_idx", false);
    if (!qzeros || !scales)
      continue;
    if (qweight->shape.size() != 2 || qweight->dtypeName != "I32" ||
        qweight->shape[0] > 1u << 27 || qweight->shape[1] > 1u << 30) {
      wrong(*qweight, "expected a matrix of I32, found " +
                          shapeText(qweight->shape) + " of " +
                          qweight->dtypeName);
      continue;
    }
    const std::uint64_t rows = qweight->shape[1];
    const std::uint64_t columns =
        qweight->shape[0] * 32 / static_cast<std::uint64_t>(bits);
    StoredCodes codes;
    codes.packing = CodePacking::Gptq;
    codes.bits = bits;
    codes.group = groupSize == -1 ? 0 : groupSize;
    codes.zeroBias = firstVersion_ ? 1 : 0;
    const std::uint64_t groups = columnGroups(codes, columns);
    if (!hasShape(*scales, {{groups, rows}}) ||
        !hasShape(*qzeros,
                  {{groups, rows * static_cast<std::uint64_t>(bits) / 32}}) ||
        (index && !hasShape(*index, {{columns}})))
      continue;
    auto scalePlane = plane(*scales, scaleTypes);
    codes.zeros = plane(*qzeros, {PlaneType::I32});
    if (index)
      codes.index = plane(*index, {PlaneType::I32});
    if (!scalePlane || !codes.zeros || (index && !codes.index))
      continue;
    codes.scales = *scalePlane;
    add(stem, *qweight, rows, columns, std::move(codes));
  }
  if (misnamed_ > 0)
    notes_.push_back(
        "the zero points of " + std::to_string(misnamed_) +
        " weights are those of GPTQ version 2 though the config says version "
        "1: \"sym\" is true and all of them are the middle of the range");
}

//===----------------------------------------------------------------------===//
// AWQ
//===----------------------------------------------------------------------===//

void QuantizedReader::readAwq() {
  checkKeys({"quant_method",
             "bits",
             "w_bit",
             "group_size",
             "q_group_size",
             "zero_point",
             "version",
             "format",
             "backend",
             "modules_to_not_convert",
             "do_fuse",
             "fuse_max_seq_len",
             "modules_to_fuse",
             "exllama_config",
             "desc_act",
             "sym",
             "checkpoint_format",
             "dataset",
             "tokenizer",
             "damp_percent",
             "true_sequential",
             "model_seqlen",
             "batch_size",
             "pad_token_id",
             "max_input_length",
             "cache_block_outputs",
             "meta",
             "block_name_to_quantize",
             "module_name_preceding_first_block",
             "modules_in_block_to_quantize",
             "act_group_aware"});
  // Other versions (gemv, gemv_fast, marlin, ipex, llm-awq) pack otherwise.
  expect("version", {"gemm", "GEMM"});
  expect("format", {"gemm", "GEMM"});
  expect("backend", {"autoawq", "auto", "auto_awq"});
  expect("zero_point", {true});
  expect("desc_act", {false});
  const std::int64_t bits = integer({"bits", "w_bit"});
  const std::int64_t groupSize = integer({"group_size", "q_group_size"});
  if (bits != 4) {
    if (bits != INT64_MIN)
      problems_.add(badConfig,
                    "\"bits\" is " + std::to_string(bits) + ", expected 4");
    return;
  }
  if (groupSize == 0)
    problems_.add(badConfig, "\"group_size\" is 0");
  if (groupSize == 0 || groupSize < -1)
    return;
  for (const std::string &stem : stems(".qweight")) {
    FileTensor *qweight = take(stem + ".qweight", true);
    FileTensor *qzeros = take(stem + ".qzeros", true);
    FileTensor *scales = take(stem + ".scales", true);
    if (!qzeros || !scales)
      continue;
    if (qweight->shape.size() != 2 || qweight->dtypeName != "I32" ||
        qweight->shape[0] > 1u << 30 || qweight->shape[1] > 1u << 27) {
      wrong(*qweight, "expected a matrix of I32, found " +
                          shapeText(qweight->shape) + " of " +
                          qweight->dtypeName);
      continue;
    }
    const std::uint64_t columns = qweight->shape[0];
    const std::uint64_t rows = qweight->shape[1] * 8;
    StoredCodes codes;
    codes.packing = CodePacking::Awq;
    codes.bits = 4;
    codes.group = groupSize == -1 ? 0 : groupSize;
    const std::uint64_t groups = columnGroups(codes, columns);
    if (!hasShape(*scales, {{groups, rows}}) ||
        !hasShape(*qzeros, {{groups, rows / 8}}))
      continue;
    auto scalePlane = plane(*scales, scaleTypes);
    codes.zeros = plane(*qzeros, {PlaneType::I32});
    if (!scalePlane || !codes.zeros)
      continue;
    codes.scales = *scalePlane;
    add(stem, *qweight, rows, columns, std::move(codes));
  }
}

//===----------------------------------------------------------------------===//
// compressed-tensors and FP8
//===----------------------------------------------------------------------===//

// A weight whose codes are elements of its own shape, or packed in words.
void QuantizedReader::addScaled(const std::string &stem, FileTensor &weight,
                                const std::vector<QuantizationScheme> &schemes,
                                const char *scaleName) {
  FileTensor *scale = take(stem + scaleName, true);
  FileTensor *zeros = take(stem + ".weight_zero_point", false);
  FileTensor *index = take(stem + ".weight_g_idx", false);
  FileTensor *shape = take(stem + ".weight_shape", false);
  taken_.insert(weight.name);
  if (!scale)
    return;
  if (weight.shape.size() != 2) {
    wrong(weight, "expected a matrix, found " + shapeText(weight.shape));
    return;
  }
  std::uint64_t rows = weight.shape[0], columns = weight.shape[1];
  const bool packed = weight.dtypeName == "I32";
  if (packed) {
    if (!shape || shape->dtypeName != "I64" || shape->data.size() != 16) {
      wrong(weight,
            "needs two integers in " + quoteName(stem + ".weight_shape"));
      return;
    }
    std::int64_t sides[2];
    std::memcpy(sides, shape->data.data(), 16);
    if (sides[0] < 1 || sides[1] < 1 || sides[0] >= std::int64_t(1) << 31 ||
        sides[1] >= std::int64_t(1) << 31 ||
        static_cast<std::uint64_t>(sides[0]) != rows) {
      wrong(*shape, "does not fit " + shapeText(weight.shape));
      return;
    }
    columns = static_cast<std::uint64_t>(sides[1]);
  }
  for (const QuantizationScheme &scheme : schemes) {
    StoredCodes codes;
    codes.bits = scheme.bits;
    codes.group = scheme.group;
    if (packed) {
      if (scheme.isFloat ||
          divideUp(columns, 32 / static_cast<std::uint64_t>(scheme.bits)) !=
              weight.shape[1])
        continue;
      codes.packing = CodePacking::Compressed;
    } else if (weight.dtypeName == "I8") {
      if (scheme.isFloat)
        continue;
      codes.packing = CodePacking::Int8;
    } else {
      if (!scheme.isFloat)
        continue;
      codes.packing = weight.dtypeName == "F8_E5M2" ? CodePacking::F8E5M2
                                                    : CodePacking::F8E4M3;
    }
    if (scheme.scales == QuantizationScheme::Scales::Tensor)
      codes.rowGroup = 0;
    else if (scheme.scales == QuantizationScheme::Scales::Block)
      codes.rowGroup = scheme.blockRows;
    const std::uint64_t bands = rowGroups(codes, rows);
    const std::uint64_t groups = columnGroups(codes, columns);
    std::vector<std::vector<std::uint64_t>> shapes = {{bands, groups}};
    if (groups == 1)
      shapes.push_back({bands});
    if (bands == 1 && groups == 1)
      shapes.push_back({});
    if (std::find(shapes.begin(), shapes.end(), scale->shape) == shapes.end())
      continue;
    auto scalePlane = plane(*scale, scaleTypes);
    if (!scalePlane)
      return;
    codes.scales = *scalePlane;
    if (zeros) {
      const std::uint64_t words =
          divideUp(bands, 32 / static_cast<std::uint64_t>(scheme.bits));
      if (packed ? !hasShape(*zeros, {{words, groups}})
                 : !hasShape(*zeros, {{bands, groups}, {bands}}))
        return;
      codes.zeros = plane(*zeros, {packed ? PlaneType::I32 : PlaneType::I8});
      if (!codes.zeros)
        return;
    }
    if (index) {
      if (!hasShape(*index, {{columns}}))
        return;
      codes.index = plane(*index, {PlaneType::I32});
      if (!codes.index)
        return;
    }
    add(stem, weight, rows, columns, std::move(codes));
    return;
  }
  wrong(*scale, shapeText(scale->shape) + " beside " + quoteName(weight.name) +
                    " " + shapeText(weight.shape) + " of " + weight.dtypeName +
                    " is of no scheme of the config");
}

void QuantizedReader::readCompressed() {
  checkKeys({"quant_method", "format", "config_groups", "ignore",
             "kv_cache_scheme", "quantization_status",
             "global_compression_ratio", "version", "sparsity_config",
             "transform_config", "moe_sparsity_config", "run_compressed"});
  expect("format", {"pack-quantized", "int-quantized", "float-quantized",
                    "naive-quantized", "mixed-precision", "dense"});
  expect("quantization_status", {"compressed", "frozen"});
  expect("transform_config", {Json::object()});
  expect("moe_sparsity_config", {Json::object()});
  if (auto sparsity = config_.find("sparsity_config");
      sparsity != config_.end() && sparsity->is_object() &&
      !sparsity->empty() && sparsity->value("format", Json()) != "dense")
    problems_.add(badConfig, "\"sparsity_config\" is " +
                                 jsonForMessage(*sparsity) +
                                 ", expected a dense format");
  std::vector<QuantizationScheme> schemes;
  auto groups = config_.find("config_groups");
  if (groups == config_.end() || !groups->is_object() || groups->empty()) {
    problems_.add("missing quantization_config keys", "\"config_groups\"");
    return;
  }
  for (const auto &item : groups->items())
    if (auto scheme =
            readQuantizationScheme(item.key(), item.value(), problems_))
      schemes.push_back(*scheme);
  if (schemes.empty())
    return;
  leaveOut({".input_scale", ".input_zero_point", ".output_scale",
            ".output_zero_point", ".k_scale", ".v_scale", ".q_scale"});
  for (const std::string &stem : stems(".weight_packed"))
    addScaled(stem, *find(stem + ".weight_packed"), schemes, ".weight_scale");
  for (const std::string &stem : stems(".weight_scale"))
    if (FileTensor *weight = find(stem + ".weight"))
      addScaled(stem, *weight, schemes, ".weight_scale");
}

void QuantizedReader::readFp8() {
  checkKeys({"quant_method", "activation_scheme", "weight_block_size", "fmt",
             "ignored_layers", "modules_to_not_convert", "dequantize",
             "scale_fmt", "kv_cache_scheme", "modules_to_convert",
             "expert_dtype"});
  expect("activation_scheme", {"dynamic", "static"});
  expect("fmt", {"e4m3", "float8_e4m3fn"});
  expect("scale_fmt", {"float", "ue8m0"});
  expect("expert_dtype", {"fp8"});
  QuantizationScheme scheme;
  scheme.bits = 8;
  scheme.isFloat = true;
  scheme.scales = QuantizationScheme::Scales::Tensor;
  std::vector<QuantizationScheme> schemes;
  if (auto block = config_.find("weight_block_size");
      block != config_.end() && !block->is_null()) {
    auto sides = readBlock(*block);
    if (!sides) {
      problems_.add(badConfig,
                    "\"weight_block_size\" is " + jsonForMessage(*block));
      return;
    }
    scheme.scales = QuantizationScheme::Scales::Block;
    scheme.blockRows = sides->first;
    scheme.group = sides->second;
    schemes.push_back(scheme);
  } else {
    schemes.push_back(scheme);
    scheme.scales = QuantizationScheme::Scales::Channel;
    schemes.push_back(scheme);
  }
  leaveOut({".input_scale", ".activation_scale", ".k_scale", ".v_scale"});
  for (const char *name : {".weight_scale_inv", ".weight_scale"})
    for (const std::string &stem : stems(name))
      if (FileTensor *weight = find(stem + ".weight"))
        addScaled(stem, *weight, schemes, name);
}

bool QuantizedReader::run() {
  if (!config_.is_object()) {
    problems_.add("wrong values", "\"quantization_config\" is not an object");
    return false;
  }
  const bool wasGood = problems_.empty();
  const Json method = config_.value("quant_method", Json("gptq"));
  if (method == "gptq")
    readGptq();
  else if (method == "awq")
    readAwq();
  else if (method == "compressed-tensors")
    readCompressed();
  else if (method == "fp8")
    readFp8();
  else {
    problems_.add(badConfig,
                  "\"quant_method\" is " + jsonForMessage(method) +
                      ", expected gptq, awq, compressed-tensors or fp8");
    return false;
  }
  if (made_.empty() && wasGood && problems_.empty())
    problems_.add("wrong values", "\"quantization_config\" says " +
                                      jsonForMessage(method) +
                                      ", but no tensor is quantised so");
  if (reordered_ > 0)
    notes_.push_back(
        std::to_string(reordered_) +
        " weights have columns in scattered groups (act-order): no encoding "
        "holds them, so they are rounded anew (see the conversions)");
  std::vector<FileTensor> rest;
  for (FileTensor &tensor : tensors_)
    if (!taken_.count(tensor.name))
      rest.push_back(std::move(tensor));
  for (FileTensor &tensor : made_)
    rest.push_back(std::move(tensor));
  tensors_ = std::move(rest);
  return !wasGood || problems_.empty();
}

} // namespace

bool resolveQuantized(const Json &config, std::vector<FileTensor> &tensors,
                      ImportProblems &problems,
                      std::vector<std::string> &notes) {
  return QuantizedReader(config, tensors, problems, notes).run();
}

} // namespace ingot
