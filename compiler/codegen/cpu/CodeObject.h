// Objects to one position-independent ELF shared object, and the proof that it
// is what a runtime may map without a dynamic linker.
#pragma once

#include "compiler/codegen/cpu/CpuCodegen.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ingot::codegen {

struct NamedObject {
  std::string name; // of the kernel
  std::vector<std::uint8_t> bytes;
};

// Fails where the object needs something from outside, has writable data or
// constructors, naming the kernel and the symbol or section.
Status checkObject(const NamedObject &object);

// Links the objects, in order, with LLD inside the process (one link at a time).
Result<std::vector<std::uint8_t>>
linkObjects(const std::vector<NamedObject> &objects,
            const std::string &levelName);

// Reads the linked object: exactly one load segment, read and execute, at file
// offset and address 0; no relocations, imports, constructors or thread-local
// data. Fills everything of `level` that describes `level.elf`.
Status describeElf(CompiledLevel &level);

} // namespace ingot::codegen
