// The normal forms NFC, NFD, NFKC and NFKD. The characters of some ranges stand
// apart: they neither change nor join or reorder with their neighbours, because
// the reference knows an older Unicode than the library used here.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <span>
#include <string>

namespace ingot {

enum class UnicodeForm { Nfc, Nfd, Nfkc, Nfkd };

// `text` is valid UTF-8; `apart` holds the first and the last of each range,
// ascending.
Status applyUnicodeForm(std::string &text, UnicodeForm form,
                        std::span<const uint32_t> apart);

} // namespace ingot
