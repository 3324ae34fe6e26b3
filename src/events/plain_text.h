// What a line that was drawn for a terminal says once it stands still. Pure.
#pragma once

#include <string>
#include <string_view>

namespace events {

// Without escape sequences: colours, cursor moves, titles. One cut short at the end is dropped too.
std::string StripAnsi(std::string_view text);

// The line as last rewritten: what follows the last carriage return, if anything visible does, with
// backspaces carried out. A rewrite counts as a whole: unlike on a terminal, a shorter text does
// not let the end of the longer one before it shine through. Escape sequences are kept and take no
// room.
std::string CollapseCarriageReturns(std::string_view line);

}  // namespace events
