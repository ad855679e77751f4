// The native code of one level, mapped executable straight from the artifact's
// file: no temporary file, no dynamic loader, no relocation.
#pragma once

#include "runtime/plan/Artifact.h"
#include "runtime/plan/KernelAbi.h"
#include "runtime/support/Status.h"

#include <set>
#include <string>
#include <vector>

namespace ingot {

// Chooses a level of `target`: `wanted` by name where not empty, else the first
// whose features are all in `present` (levels are listed best first). Fails
// with one sentence that lists the features needed and missing.
Result<std::uint32_t> chooseLevel(const fbs::Target &target,
                                  const std::string &wanted,
                                  const std::set<std::string> &present);

class CodeMapping {
public:
  // Maps `level` of `target`. Where the environment sets INGOT_PERF_MAP, also
  // writes the symbols to /tmp/perf-<pid>.map, where `perf` looks for them.
  static Result<CodeMapping>
  map(const Artifact &artifact, const fbs::Target &target, std::uint32_t level);

  CodeMapping(CodeMapping &&other) noexcept;
  CodeMapping &operator=(CodeMapping &&other) noexcept;
  CodeMapping(const CodeMapping &) = delete;
  CodeMapping &operator=(const CodeMapping &) = delete;
  ~CodeMapping();

  // One function for each kernel of the target, by index.
  const std::vector<abi::KernelFn> &functions() const { return functions_; }
  const std::string &levelName() const { return levelName_; }

private:
  CodeMapping() = default;

  void *base_ = nullptr;
  std::size_t sizeBytes_ = 0;
  const void *ehFrame_ = nullptr; // registered with the unwinder
  std::vector<abi::KernelFn> functions_;
  std::string levelName_;
};

} // namespace ingot
