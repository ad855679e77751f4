// The files that this process has mapped. A mapping is not a copy: who writes
// over its file, or cuts it short, changes what was verified under those who read
// it. This cannot be prevented, but told: by size and time of the file, and in
// the last moment by the address of a bus error.
#pragma once

#include "runtime/support/Status.h"

#include <cstddef>
#include <string>

struct stat;

namespace ingot {

// `info` is of the file when it was mapped. A limited number is kept; of those
// beyond it nothing is known.
void noteMapping(const void *begin, std::size_t sizeBytes,
                 const std::string &path, const struct stat &info);
void forgetMapping(const void *begin);

// Has the file under `address` another size or time than when it was mapped?
// (IoError, with what to do). A file that was renamed, replaced by rename or
// deleted is still whole under its mapping. One look at the file's inode.
Status checkMappingUnchanged(const void *address);

// For programs: a bus error in a mapped file ends the process with `exitCode`
// after one sentence that names the file; any other does what it did before.
void exitOnBusErrors(const char *program, int exitCode);

} // namespace ingot
