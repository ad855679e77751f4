#include "runtime/plan/RotaryChoice.h"

namespace ingot {

RotaryChoice RotaryChoice::of(const fbs::Target &target) {
  RotaryChoice choice;
  for (const fbs::ProgramSegment *segment : *target.segments())
    for (const fbs::Launch *launch : *segment->launches()) {
      const auto *table = launch->params_as_RopeTable();
      if (!table || table->scaling() == fbs::RopeScaling::fixed)
        continue;
      auto original = std::int32_t(table->original());
      choice.original = choice.scaling == fbs::RopeScaling::fixed
                            ? original
                            : std::min(choice.original, original);
      choice.scaling = table->scaling();
    }
  return choice;
}

} // namespace ingot
