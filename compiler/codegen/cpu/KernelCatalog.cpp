// 1. List the ranges of row counts. 2. Resolve each as a kernel entry, which
//    checks the configuration and spells the name.
#include "compiler/codegen/cpu/KernelCatalog.h"

#include "compiler/codegen/cpu/KernelEntry.h"
#include "compiler/codegen/cpu/KernelLimits.h"
#include "compiler/kernels/cpu/LinearBlock.h"

namespace ingot::codegen {
namespace {

Result<std::vector<KernelVariant>> linearVariants(const KernelConfig &config) {
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
    if (entry.source == "LinearInteger")
      variant.scratchBytes = static_cast<std::uint32_t>(
          kernels::linearScratchBytes(static_cast<std::int32_t>(first)));
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
  if (op == "expert_linear") {
    // As linear, by the rows of all experts together.
    if (config.count("tokens"))
      return Status::unsupported(
          "kernel expert_linear: unknown key \"tokens\"");
    INGOT_ASSIGN_OR_RETURN(auto variants, linearVariants(config));
    for (KernelVariant &variant : variants) {
      variant.op = op;
      INGOT_ASSIGN_OR_RETURN(KernelEntry entry,
                             kernelEntry(op, variant.constants));
      variant.name = entry.name;
    }
    return variants;
  }
  KernelVariant variant;
  variant.op = op;
  variant.constants = config;
  INGOT_ASSIGN_OR_RETURN(KernelEntry entry, kernelEntry(op, config));
  variant.name = entry.name;
  return std::vector<KernelVariant>{std::move(variant)};
}

} // namespace ingot::codegen
