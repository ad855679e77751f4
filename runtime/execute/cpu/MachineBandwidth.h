// The machine's own limit, measured: how many bytes a second all workers
// together read from memory. Speeds are told as shares of it.
#pragma once

#include "runtime/execute/cpu/WorkerPool.h"

namespace ingot {

// Reads a buffer larger than the caches several times (about 0.1 s) and
// returns the best rate, in bytes a second.
Result<double> measureReadBandwidth(WorkerPool &pool);

} // namespace ingot
