// SentencePiece's "precompiled charsmap": normalisation rules as a trie of
// strings (darts-clone's double array) and the texts that stand for them. It is
// read here once, with every offset checked, and laid out anew for the runtime.
#pragma once

#include "runtime/support/Status.h"
#include "runtime/text/Normalizer.h"

#include <string>
#include <string_view>
#include <vector>

namespace ingot {

// The rules of `blob`, as a Precompiled step. `kept` are strings that stand for
// themselves whatever the rules say.
Result<NormalizerStep>
readPrecompiledCharsmap(std::string_view blob,
                        const std::vector<std::string> &kept = {});

Result<std::string> decodeBase64(std::string_view text);

} // namespace ingot
