// 1. Split a name into its operation and its parts. 2. Read each part. 3. Spell them
//    as constants of the operation's file.
#include "compiler/codegen/cuda/CudaCatalog.h"

#include "compiler/codegen/cuda/KernelSources.h"
#include "runtime/plan/CudaExpertsAbi.h"
#include "runtime/plan/CudaLibraryAbi.h"

#include <charconv>
#include <optional>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ingot::codegen {
namespace {

using abi::CudaCode;
using abi::LinearTile;

constexpr std::pair<std::string_view, LinearTile> kTiles[] = {
    {"t8", LinearTile::T8},   {"t16", LinearTile::T16},
    {"t32", LinearTile::T32}, {"t64", LinearTile::T64},
    {"p64", LinearTile::P64},
};

struct RowOperation {
  std::string_view op, file, params;
};
constexpr RowOperation kRowOperations[] = {
    {"add", "Add.cu", "abi::AddParams"},
    {"cap", "Cap.cu", "abi::CapParams"},
    {"combine", "Combine.cu", "abi::CombineParams"},
    {"dispatch", "Dispatch.cu", "abi::CudaDispatchParams"},
    {"gather_rows", "GatherRows.cu", "abi::GatherRowsParams"},
    {"layer_norm", "LayerNorm.cu", "abi::LayerNormParams"},
    {"order_slots", "OrderSlots.cu", "abi::OrderSlotsParams"},
    {"quantize", "Quantize.cu", "abi::QuantizeParams"},
    {"rms_norm", "RmsNorm.cu", "abi::RmsNormParams"},
    {"rope_table", "RopeTable.cu", "abi::RopeTableParams"},
    {"route", "Route.cu", "abi::CudaRouteParams"},
};

std::optional<std::int32_t> number(std::string_view text) {
  std::int32_t value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() ||
      text.empty() || text[0] == '0')
    return std::nullopt;
  return value;
}

Status wrong(std::string_view name, const std::string &why) {
  return Status::unsupported("CUDA kernel \"" + std::string(name) +
                             "\": " + why);
}

// "h<size>_<kv>" of the kernels that touch the cache.
Status readCachePart(std::string_view name, std::string_view part,
                     CudaKernel &kernel, std::int32_t &headDim) {
  const std::size_t bar = part.find('_');
  const auto size = part.starts_with("h") && bar != part.npos
                        ? number(part.substr(1, bar - 1))
                        : std::nullopt;
  if (!size)
    return wrong(name, "expected h<head size>_<kv>, found \"" +
                           std::string(part) + "\"");
  if (*size % 8 != 0 || *size > 256)
    return wrong(name, "heads of " + std::to_string(*size) +
                           " elements; they must be multiples of 8 up to 256");
  const std::string_view kv = part.substr(bar + 1);
  const std::string spelled = kv == "f16"    ? "F16"
                              : kv == "bf16" ? "BF16"
                              : kv == "i8"   ? "I8"
                                             : "";
  if (spelled.empty())
    return wrong(name, "a cache of \"" + std::string(kv) +
                           "\"; expected f16, bf16 or i8");
  headDim = *size;
  kernel.constants.emplace_back("INGOT_HEAD_DIM", std::to_string(*size));
  kernel.constants.emplace_back("INGOT_KV", spelled);
  return Status::ok();
}

void addEncoding(const CudaEncoding &encoding, CudaKernel &kernel) {
  constexpr const char *kNames[] = {"F16", "BF16", "I8", "I4"};
  kernel.constants.emplace_back("INGOT_CODE",
                                kNames[static_cast<int>(encoding.code)]);
  kernel.constants.emplace_back("INGOT_GROUP", std::to_string(encoding.group));
  kernel.constants.emplace_back("INGOT_MINIMUM",
                                encoding.minimum ? "true" : "false");
}

Status readActivation(std::string_view name, std::string_view part,
                      CudaKernel &kernel) {
  const std::string law = part == "silu"        ? "siluLaw"
                          : part == "gelu"      ? "geluLaw"
                          : part == "gelu_tanh" ? "geluTanhLaw"
                          : part == "relu"      ? "reluLaw"
                                                : "";
  if (law.empty())
    return wrong(name, "no activation \"" + std::string(part) + "\"");
  kernel.constants.emplace_back("INGOT_ACTIVATION", law);
  return Status::ok();
}

} // namespace

Result<CudaEncoding> cudaEncoding(std::string_view spelling) {
  if (spelling == "f16")
    return CudaEncoding{CudaCode::F16, 0, false};
  if (spelling == "bf16")
    return CudaEncoding{CudaCode::BF16, 0, false};
  CudaEncoding encoding;
  const bool isWide = spelling.starts_with("i8");
  if (!isWide && !spelling.starts_with("i4"))
    return Status::unsupported("CUDA kernels have no encoding \"" +
                               std::string(spelling) + "\"");
  encoding.code = isWide ? CudaCode::I8 : CudaCode::I4;
  std::string_view rest = spelling.substr(2);
  if (rest == "c")
    return encoding;
  if (rest.ends_with("m")) {
    encoding.minimum = true;
    rest.remove_suffix(1);
  }
  const auto group =
      rest.starts_with("g") ? number(rest.substr(1)) : std::nullopt;
  if (!group || (*group != 16 && *group != 32 && *group != 64 &&
                 *group != 128 && *group != 256))
    return Status::unsupported(
        "encoding \"" + std::string(spelling) +
        "\": CUDA kernels have groups of 16, 32, 64, 128 and 256");
  encoding.group = *group;
  return encoding;
}

std::string spellCudaEncoding(const CudaEncoding &encoding) {
  if (encoding.code == CudaCode::F16)
    return "f16";
  if (encoding.code == CudaCode::BF16)
    return "bf16";
  const std::string code = encoding.code == CudaCode::I8 ? "i8" : "i4";
  if (encoding.group == 0)
    return code + "c";
  return code + "g" + std::to_string(encoding.group) +
         (encoding.minimum ? "m" : "");
}

std::string_view spellLinearTile(LinearTile tile) {
  for (const auto &[name, value] : kTiles)
    if (value == tile)
      return name;
  return "";
}

Result<CudaKernel> cudaKernel(std::string_view name) {
  CudaKernel kernel;
  kernel.name = name;
  kernel.entry = "ingot_" + kernel.name;
  kernel.geometry = abi::rowGeometry();
  auto rest = [&](std::string_view prefix) {
    return name.substr(prefix.size());
  };
  for (const RowOperation &operation : kRowOperations)
    if (name == operation.op) {
      kernel.op = operation.op;
      kernel.file = operation.file;
      kernel.params = operation.params;
      if (name == "route")
        kernel.geometry = abi::routeGeometry();
      if (name == "order_slots")
        kernel.geometry = abi::orderGeometry();
      return kernel;
    }
  if (name == "attention_merge") {
    kernel.op = name;
    kernel.file = "AttentionMerge.cu";
    kernel.params = "abi::CudaAttentionMergeParams";
    kernel.geometry = abi::mergeGeometry(1);
    return kernel;
  }
  if (name == "sample") {
    kernel.op = name;
    kernel.file = "Sample.cu";
    kernel.params = "abi::CudaSampleParams";
    kernel.geometry = abi::sampleGeometry();
    return kernel;
  }
  if (name == "library_finish") {
    kernel.op = name;
    kernel.file = "LibraryFinish.cu";
    kernel.params = "abi::CudaFinishParams";
    return kernel;
  }
  if (name == "library_linear_f16" || name == "library_linear_bf16") {
    kernel.op = "library_linear";
    kernel.file = "LibraryLinear.cu";
    kernel.params = "abi::CudaUnpackParams";
    kernel.geometry = abi::unpackGeometry();
    INGOT_ASSIGN_OR_RETURN(CudaEncoding encoding,
                           cudaEncoding(rest("library_linear_")));
    addEncoding(encoding, kernel);
    return kernel;
  }
  std::int32_t headDim = 0;
  if (name.starts_with("embed_")) {
    INGOT_ASSIGN_OR_RETURN(CudaEncoding encoding, cudaEncoding(rest("embed_")));
    kernel.op = "embed";
    kernel.file = "Embed.cu";
    kernel.params = "abi::EmbedParams";
    addEncoding(encoding, kernel);
    return kernel;
  }
  if (name.starts_with("gated_")) {
    INGOT_RETURN_IF_ERROR(readActivation(name, rest("gated_"), kernel));
    kernel.op = "gated";
    kernel.file = "Gated.cu";
    kernel.params = "abi::GatedParams";
    return kernel;
  }
  if (name.starts_with("activate_")) {
    INGOT_RETURN_IF_ERROR(readActivation(name, rest("activate_"), kernel));
    kernel.op = "activate";
    kernel.file = "Activate.cu";
    kernel.params = "abi::ActivateParams";
    return kernel;
  }
  if (name.starts_with("rope_cache_write_")) {
    INGOT_RETURN_IF_ERROR(
        readCachePart(name, rest("rope_cache_write_"), kernel, headDim));
    kernel.op = "rope_cache_write";
    kernel.file = "RopeCacheWrite.cu";
    kernel.params = "abi::RopeCacheWriteParams";
    kernel.geometry = abi::ropeWriteGeometry(headDim);
    return kernel;
  }
  for (const bool isSplit : {true, false}) {
    const std::string_view prefix = isSplit ? "attention_split_" : "attention_";
    if (!name.starts_with(prefix))
      continue;
    INGOT_RETURN_IF_ERROR(readCachePart(name, rest(prefix), kernel, headDim));
    kernel.op = prefix.substr(0, prefix.size() - 1);
    kernel.file = isSplit ? "AttentionSplit.cu" : "Attention.cu";
    kernel.params = "abi::CudaAttentionParams";
    kernel.geometry = abi::attentionGeometry(headDim, isSplit);
    return kernel;
  }
  const bool isExpert = name.starts_with("expert_linear_");
  if (isExpert || name.starts_with("linear_")) {
    const std::string_view part = rest(isExpert ? "expert_linear_" : "linear_");
    const std::size_t bar = part.find('_');
    std::optional<LinearTile> tile;
    for (const auto &[spelling, value] : kTiles)
      if (bar != part.npos && part.substr(bar + 1) == spelling)
        tile = value;
    if (!tile)
      return wrong(name, "expected " + std::string(isExpert ? "expert_" : "") +
                             "linear_<encoding>_<tile>, the tile t8, t16, "
                             "t32, t64 or p64");
    std::string_view spelling = part.substr(0, bar);
    const int parts = spelling.ends_with("x2") ? 2 : 1;
    if (parts == 2)
      spelling.remove_suffix(2);
    INGOT_ASSIGN_OR_RETURN(CudaEncoding encoding, cudaEncoding(spelling));
    if (parts == 2 && encoding.code != CudaCode::F16 &&
        encoding.code != CudaCode::BF16)
      return wrong(name,
                   "activations of two parts (x2) are offered with f16 and "
                   "bf16 weights");
    kernel.op = isExpert ? "expert_linear" : "linear";
    kernel.file =
        std::string(isExpert ? "Expert" : "") +
        (abi::isSplitTile(*tile, parts) ? "LinearSplit.cu" : "LinearWide.cu");
    kernel.params = isExpert ? "abi::ExpertLinearParams" : "abi::LinearParams";
    addEncoding(encoding, kernel);
    std::string spelled(spellLinearTile(*tile));
    spelled[0] = static_cast<char>(spelled[0] - 'a' + 'A');
    kernel.constants.emplace_back("INGOT_TILE", spelled);
    kernel.constants.emplace_back("INGOT_PARTS", std::to_string(parts));
    kernel.geometry = abi::linearGeometry(encoding.code, encoding.group,
                                          encoding.minimum, *tile, parts);
    return kernel;
  }
  return wrong(name, "no such operation");
}

Result<std::string> cudaKernelText(const CudaKernel &kernel) {
  INGOT_ASSIGN_OR_RETURN(
      std::string body,
      flattenCudaSource("compiler/kernels/cuda/" + kernel.file));
  std::string text = "#define INGOT_NAME " + kernel.entry + "\n";
  for (const auto &[name, value] : kernel.constants)
    text += "#define " + name + " " + value + "\n";
  return text + body;
}

std::uint64_t cudaTextHash(std::string_view text) {
  return XXH3_64bits(text.data(), text.size());
}

std::vector<std::string> commonCudaKernels() {
  std::vector<std::string> names;
  for (const RowOperation &operation : kRowOperations)
    names.emplace_back(operation.op);
  names.emplace_back("attention_merge");
  names.emplace_back("sample");
  names.emplace_back("library_linear_f16");
  names.emplace_back("library_linear_bf16");
  names.emplace_back("library_finish");
  for (const char *activation : {"silu", "gelu", "gelu_tanh", "relu"}) {
    names.push_back(std::string("gated_") + activation);
    names.push_back(std::string("activate_") + activation);
  }
  for (const char *encoding :
       {"f16", "bf16", "i8g16", "i8g32", "i8g128", "i8c", "i4g16m", "i4g32",
        "i4g32m", "i4g64", "i4g128", "i4c"}) {
    names.push_back(std::string("embed_") + encoding);
    for (const auto &[tile, value] : kTiles)
      names.push_back(std::string("linear_") + encoding + "_" +
                      std::string(tile));
  }
  for (const char *encoding : {"f16x2", "bf16x2"})
    for (const auto &[tile, value] : kTiles)
      names.push_back(std::string("linear_") + encoding + "_" +
                      std::string(tile));
  for (const char *encoding :
       {"f16x2", "bf16x2", "i8g32", "i8g128", "i4g32", "i4g32m", "i4g128"})
    for (const auto &[tile, value] : kTiles)
      names.push_back(std::string("expert_linear_") + encoding + "_" +
                      std::string(tile));
  for (const char *cache :
       {"h16_f16", "h64_f16", "h64_bf16", "h64_i8", "h80_f16", "h96_f16",
        "h128_f16", "h128_bf16", "h128_i8", "h256_f16", "h256_i8"})
    for (const char *op :
         {"rope_cache_write_", "attention_", "attention_split_"})
      names.push_back(std::string(op) + cache);
  return names;
}

} // namespace ingot::codegen
