#include "io/terminal.h"

#include <cerrno>
#include <cstdlib>

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace io {

Terminal TerminalOf(int fd) {
  Terminal out;
  const char* term = getenv("TERM");
  const bool dumb = !term || std::string_view(term) == "dumb" || !*term;
  out.is_terminal = isatty(fd) && !dumb;
  const char* no_color = getenv("NO_COLOR");
  out.colour = out.is_terminal && !(no_color && *no_color);
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = getenv(name);
    if (!value || !*value) continue;
    const std::string_view locale = value;
    out.unicode = locale.find("UTF-8") != std::string_view::npos || locale.find("utf8") != std::string_view::npos;
    break;
  }
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) out.width = size.ws_col;
  return out;
}

void WriteOut(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = write(fd, text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) {
      pollfd ready{fd, POLLOUT, 0};
      poll(&ready, 1, -1);
      continue;
    }
    if (size <= 0) return;
    text.remove_prefix(static_cast<size_t>(size));
  }
}

}  // namespace io
