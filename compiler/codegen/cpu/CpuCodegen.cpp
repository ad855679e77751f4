// 1. Resolve every request to an entry and check that its name is its own.
// 2. Specialise the kernels, each in its own LLVM context, on a few threads.
// 3. Link them in the order of the requests. 4. Check and describe the result.
#include "compiler/codegen/cpu/CpuCodegen.h"

#include "compiler/codegen/cpu/CodeObject.h"
#include "compiler/codegen/cpu/KernelBitcode.h"
#include "compiler/codegen/cpu/KernelEntry.h"
#include "compiler/codegen/cpu/Specialize.h"
#include "runtime/support/RunOnThreads.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>

namespace ingot::codegen {
namespace {

bool isSymbol(const std::string &name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9'))
    return false;
  return name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") ==
         std::string::npos;
}

} // namespace

std::vector<std::string> cpuLevelNames() {
  std::vector<std::string> names;
  for (const CpuLevel &level : cpuLevels())
    names.push_back(level.name);
  return names;
}

Result<CompiledLevel> compileForLevel(const CpuLevel &level,
                                      const std::vector<KernelRequest> &kernels,
                                      unsigned threads) {
  if (kernels.empty())
    return Status::invalid("level " + level.name + ": no kernels to compile");
  CompiledLevel result;
  result.name = level.name;
  result.features = level.features;
  std::vector<KernelEntry> entries;
  std::set<std::string> names;
  for (const KernelRequest &request : kernels) {
    if (!isSymbol(request.name))
      return Status::invalid("kernel name \"" + request.name +
                             "\": expected [a-z0-9_]+");
    if (!names.insert(request.name).second)
      return Status::invalid("kernel name \"" + request.name +
                             "\" is used twice");
    INGOT_ASSIGN_OR_RETURN(KernelEntry entry,
                           kernelEntry(request.op, request.constants));
    entries.push_back(std::move(entry));
    result.kernels.push_back({request.name, 0, 0});
  }

  std::vector<std::optional<Result<NamedObject>>> built(kernels.size());
  std::atomic<std::size_t> next{0};
  auto work = [&] {
    for (std::size_t i = next++; i < kernels.size(); i = next++)
      built[i].emplace(specialize(level, entries[i], kernels[i].name));
  };
  runOnThreads(unsigned(std::min<std::size_t>(threads, kernels.size())), work);

  std::vector<NamedObject> objects;
  for (std::optional<Result<NamedObject>> &object : built) {
    if (!object->isOk())
      return object->status();
    objects.push_back(std::move(**object));
  }
  INGOT_ASSIGN_OR_RETURN(result.elf, linkObjects(objects, level.name));
  INGOT_RETURN_IF_ERROR(describeElf(result));
  return result;
}

Result<CompiledLevel> compileLevel(const std::string &levelName,
                                   const std::vector<KernelRequest> &kernels,
                                   unsigned threads) {
  std::string known;
  for (const CpuLevel &level : cpuLevels()) {
    if (level.name == levelName)
      return compileForLevel(level, kernels, threads);
    known += (known.empty() ? "" : ", ") + level.name;
  }
  return Status::unsupported("unknown CPU level \"" + levelName +
                             "\"; known: " + known);
}

} // namespace ingot::codegen
