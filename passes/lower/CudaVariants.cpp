#include "passes/lower/CudaVariants.h"

#include "compiler/codegen/cuda/CudaCatalog.h"
#include "dialects/plan/Plan.h"
#include "runtime/plan/CudaExpertsAbi.h"

#include <algorithm>

namespace ingot::plan {
namespace {

std::string textOf(const codegen::KernelConfig &config, const char *key) {
  auto found = config.find(key);
  auto *text = found == config.end() ? nullptr
                                     : std::get_if<std::string>(&found->second);
  return text ? *text : std::string();
}
std::int64_t numberOf(const codegen::KernelConfig &config, const char *key) {
  auto found = config.find(key);
  auto *number = found == config.end()
                     ? nullptr
                     : std::get_if<std::int64_t>(&found->second);
  return number ? *number : 0;
}

// "i8g64", "f16": the encoding of a configuration as names of kernels spell it.
Result<std::string> encodingOf(const codegen::KernelConfig &config) {
  std::string code = textOf(config, "encoding");
  if (code == "f32")
    return Status::unsupported("weights in f32 have none for CUDA: expected "
                               "f16, bf16, int8 or int4 (--quantize, --table)");
  if (code != "i8" && code != "i4")
    return code;
  return code + "g" + std::to_string(numberOf(config, "group")) +
         (numberOf(config, "minimum") != 0 ? "m" : "");
}

} // namespace

Result<std::vector<CudaKernelVariant>>
cudaVariantsFor(const std::string &op, const codegen::KernelConfig &config) {
  std::vector<CudaKernelVariant> variants;
  auto add = [&](const std::string &name, std::uint32_t first = 1,
                 std::uint32_t last = 0) -> Status {
    INGOT_ASSIGN_OR_RETURN(codegen::CudaKernel kernel,
                           codegen::cudaKernel(name));
    variants.push_back({first, last, name, kernel.op, kernel.geometry});
    return Status::ok();
  };
  if (op == "linear" || op == "expert_linear") {
    INGOT_ASSIGN_OR_RETURN(std::string encoding, encodingOf(config));
    if (encoding == "f16" || encoding == "bf16")
      encoding += "x2";
    std::uint32_t first = 1;
    for (abi::LinearTile tile :
         {abi::LinearTile::T8, abi::LinearTile::T16, abi::LinearTile::T32,
          abi::LinearTile::T64, abi::LinearTile::P64}) {
      bool isLast = tile == abi::LinearTile::P64;
      auto last = isLast ? 0 : std::uint32_t(abi::linearTokens(tile));
      if (op == "expert_linear")
        last = std::uint32_t(abi::expertTileSlots(
            tile, std::int32_t(numberOf(config, "experts")),
            std::int32_t(numberOf(config, "top_k"))));
      INGOT_RETURN_IF_ERROR(add(op + "_" + encoding + "_" +
                                    std::string(codegen::spellLinearTile(tile)),
                                first, last));
      first = last + 1;
    }
  } else if (op == "embed") {
    INGOT_ASSIGN_OR_RETURN(std::string encoding, encodingOf(config));
    INGOT_RETURN_IF_ERROR(add("embed_" + encoding));
  } else if (op == "gated" || op == "activate") {
    INGOT_RETURN_IF_ERROR(add(op + "_" + textOf(config, "activation")));
  } else if (op == "rope_cache_write" || op == "attention") {
    std::string cache = "_h" + std::to_string(numberOf(config, "head_dim")) +
                        "_" + textOf(config, "kv");
    INGOT_RETURN_IF_ERROR(add(op + cache));
    if (op == "attention") {
      INGOT_RETURN_IF_ERROR(add("attention_split" + cache));
      INGOT_RETURN_IF_ERROR(add("attention_merge"));
      variants.back().geometry =
          abi::mergeGeometry(std::int32_t(numberOf(config, "heads")));
    }
  } else {
    INGOT_RETURN_IF_ERROR(add(op));
  }
  return variants;
}

Result<std::vector<std::string>>
cudaLevels(const std::vector<std::string> &chips) {
  std::vector<std::string> levels = chips;
  for (const std::string &chip : chips)
    if (!isCudaLevelName(chip) || chip[0] != 's')
      return Status::invalid("chip \"" + chip +
                             "\": expected sm_N, such as sm_80 or sm_90a");
  // "sm_100" is longer than "sm_90", "sm_90a" belongs to "sm_90".
  auto rank = [](const std::string &name) {
    bool hasLetter = name.back() > '9';
    std::string digits =
        name.substr(3, name.size() - 3 - std::size_t(hasLetter));
    return std::pair(std::stoi(digits), hasLetter ? name.back() : ' ');
  };
  std::sort(levels.begin(), levels.end(),
            [&](const std::string &a, const std::string &b) {
              return rank(a) > rank(b);
            });
  if (std::adjacent_find(levels.begin(), levels.end()) != levels.end())
    return Status::invalid("chip \"" +
                           *std::adjacent_find(levels.begin(), levels.end()) +
                           "\": stands twice");
  levels.push_back("compute_80");
  return levels;
}

} // namespace ingot::plan
