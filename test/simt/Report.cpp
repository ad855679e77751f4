// Faults: one entry for each kind and place, counted. Addresses become files and
// lines only when somebody reads the report.
#include "test/simt/Block.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <map>

namespace ingot::simt {

void fault(FaultKind kind, const void *pc, const std::string &message) {
  Block &block = *running;
  auto [found, isNew] = block.faultIndex.try_emplace(
      {int(kind), pc}, block.report->faults.size());
  if (isNew) {
    std::string text = message;
    if (const ThreadContext *thread = currentThread)
      text += " (block " + std::to_string(thread->block.x) + "," +
              std::to_string(thread->block.y) + "," +
              std::to_string(thread->block.z) + " thread " +
              std::to_string(thread->linear) + ")";
    block.report->faults.push_back({kind, pc, text, 0});
  }
  ++block.report->faults[found->second].count;
}

bool isPlanted(Plant kind, const void *pc) {
  Block &block = *running;
  block.sites.insert({kind, pc});
  return block.options.plant.kind == kind && block.options.plant.pc == pc;
}

void misuse(const char *message, const void *pc) {
  fault(FaultKind::Misuse, pc, message);
}

std::uint64_t LaunchReport::count(FaultKind kind) const {
  std::uint64_t total = 0;
  for (const Fault &fault : faults)
    if (fault.kind == kind)
      total += fault.count;
  return total;
}

static std::string findSourceLine(const void *pc) {
  // A return address: the instruction before it is meant.
  const auto address = reinterpret_cast<std::uintptr_t>(pc) - 1;
  Dl_info info;
  if (!dladdr(pc, &info))
    return "?";
  char command[512];
  std::snprintf(command, sizeof command,
                "addr2line -s -e '%s' 0x%" PRIxPTR " 2>/dev/null",
                info.dli_fname,
                address - reinterpret_cast<std::uintptr_t>(info.dli_fbase));
  std::string line;
  if (FILE *pipe = popen(command, "r")) {
    char text[256];
    if (std::fgets(text, sizeof text, pipe))
      line = text;
    pclose(pipe);
  }
  while (!line.empty() && (line.back() == '\n' || line.back() == ' '))
    line.pop_back();
  if (std::size_t note = line.find(" (discriminator"); note != line.npos)
    line.resize(note);
  if (line.empty() || line[0] == '?') {
    char text[32];
    std::snprintf(text, sizeof text, "%p", pc);
    return text;
  }
  return line;
}

std::string sourceLine(const void *pc) {
  static std::map<const void *, std::string> known;
  if (!pc)
    return "?";
  auto [found, isNew] = known.try_emplace(pc);
  if (isNew)
    found->second = findSourceLine(pc);
  return found->second;
}

std::string LaunchReport::text() const {
  static const char *const kNames[] = {"race", "out of bounds", "uninitialised",
                                       "deadlock", "misuse"};
  std::string out;
  for (const Fault &fault : faults)
    out += std::string(kNames[int(fault.kind)]) + " at " +
           sourceLine(fault.pc) + ": " + fault.message + ", " +
           std::to_string(fault.count) + " times\n";
  return out;
}

} // namespace ingot::simt
