// Filters that need more than a few lines each: those that know markup, that
// break lines and that lay out values.
#pragma once

#include "runtime/text/jinja/Runtime.h"

namespace ingot::jinja {

// --- MarkupFilters.cpp
Value stripTags(Runtime &rt, const Value &value, const Arguments &arguments);
Value urlize(Runtime &rt, const Value &value, const Arguments &arguments);
Value xmlAttributes(Runtime &rt, const Value &value,
                    const Arguments &arguments);

// --- WordWrap.cpp
Value wordWrap(Runtime &rt, const Value &value, const Arguments &arguments);

// --- PrettyPrint.cpp
Value prettyPrint(Runtime &rt, const Value &value, const Arguments &arguments);

// All matches of a pattern of PCRE2 with UTF and Unicode classes, in order and
// each behind the one before; none is empty. Fails where matching takes more
// steps than a hostile text may have.
std::vector<ByteRange> findAll(Runtime &rt, const char *pattern,
                               std::string_view text);
// Whether the whole text is one match. Cases are ignored with `ignoreCase`.
bool matchesWhole(Runtime &rt, const char *pattern, std::string_view text,
                  bool ignoreCase = false);

} // namespace ingot::jinja
