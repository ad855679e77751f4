// 1. Split a configuration into constants of the kernel and what only sizes its
//    scratch. 2. List the ranges of row counts. 3. Resolve each as a kernel entry,
//    which checks the configuration and spells the name.
#include "compiler/codegen/cpu/KernelCatalog.h"

#include "compiler/codegen/cpu/KernelEntry.h"
#include "compiler/codegen/cpu/KernelLimits.h"
#include "compiler/kernels/cpu/LinearScratch.h"

namespace ingot::codegen {
namespace {

constexpr std::int64_t kLargestColumns = 1 << 20;

Result<std::vector<KernelVariant>> linearVariants(KernelConfig config) {
  auto columns = config.find("k");
  if (columns == config.end() ||
      !std::holds_alternative<std::int64_t>(columns->second))
    return Status::unsupported(
        "kernel linear: needs \"k\", a number of columns");
  const std::int64_t k = std::get<std::int64_t>(columns->second);
  if (k < 1 || k > kLargestColumns)
    return Status::unsupported("kernel linear: \"k\": expected 1 to " +
                               std::to_string(kLargestColumns) + ", found " +
                               std::to_string(k));
  config.erase(columns);
  auto encoding = config.find("encoding");
  // Only int8 has a level that prepares activations (IntegerDot.h).
  const bool prepares =
      encoding != config.end() && encoding->second == ConfigValue("i8");

  std::vector<KernelVariant> variants;
  for (const auto &[first, last] :
       {std::pair<std::int64_t, std::int64_t>{1, kFewTokens - 1},
        {kFewTokens, kManyTokens - 1},
        {kManyTokens, 0}}) {
    KernelVariant variant;
    variant.first = static_cast<std::uint32_t>(first);
    variant.last = static_cast<std::uint32_t>(last);
    variant.op = "linear";
    variant.constants = config;
    variant.constants["tokens"] = first;
    INGOT_ASSIGN_OR_RETURN(KernelEntry entry,
                           kernelEntry("linear", variant.constants));
    variant.name = entry.name;
    if (prepares)
      variant.scratchBytes =
          static_cast<std::uint32_t>(kernels::linearScratchBytes(
              (k + 31) / 32 * 32, static_cast<std::int32_t>(first)));
    variants.push_back(std::move(variant));
  }
  return variants;
}

} // namespace

Result<std::vector<KernelVariant>> variantsFor(const std::string &op,
                                               const KernelConfig &config) {
  if (op == "linear") {
    if (config.count("tokens"))
      return Status::unsupported("kernel linear: unknown key \"tokens\"");
    return linearVariants(config);
  }
  KernelVariant variant;
  variant.op = op;
  variant.constants = config;
  INGOT_ASSIGN_OR_RETURN(KernelEntry entry, kernelEntry(op, config));
  variant.name = entry.name;
  return std::vector<KernelVariant>{std::move(variant)};
}

} // namespace ingot::codegen
