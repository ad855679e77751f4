// Names, templates and texts of a model are what a stranger wrote. Shown to a
// person they must not move the cursor, recolour the screen or hide what they
// say: everything that a terminal would obey is spelled out as \x1b or \u202e.
#pragma once

#include <string>
#include <string_view>

namespace ingot {

// On one line: line breaks and tabs are spelled out too.
std::string printable(std::string_view text);

// The same for text of several lines, such as a message: line breaks and tabs
// stay.
std::string printableLines(std::string_view text);

} // namespace ingot
