// A program started with a standard stream closed gets that stream's number for
// the next file it opens, and would then print into a model. Called first by
// every main.
#pragma once

namespace ingot {

// Opens each closed standard stream on /dev/null, the wrong way round: its use
// fails, as it would have, and goes nowhere else.
void holdStandardStreams();

} // namespace ingot
