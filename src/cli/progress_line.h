// One line on standard error that says how far something is: only where a person is looking, only
// when it takes longer than two seconds, and gone in the end.
#pragma once

#include <chrono>
#include <string>

#include "io/terminal.h"

namespace cli {

class ProgressLine {
 public:
  ProgressLine() = default;
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Show(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;

  const bool seen_ = io::TerminalOf(2).is_terminal;
  Clock::time_point due_ = Clock::now() + std::chrono::seconds(2);
  bool shown_ = false;
};

}  // namespace cli
