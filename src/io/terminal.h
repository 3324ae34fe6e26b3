// What the terminal can show.
#pragma once

#include <string>
#include <string_view>

namespace io {

struct Terminal {
  bool is_terminal = false;  // a person is looking
  bool colour = false;       // and wants colours (NO_COLOR unset, TERM not dumb)
  bool unicode = false;      // the locale is UTF-8
  int width = 80;
};

// Of standard output (1) or standard error (2).
Terminal TerminalOf(int fd);

// Writes all of it, waiting if need be; errors are of no use to anybody and ignored.
void WriteOut(int fd, std::string_view text);

}  // namespace io
