#include "cli/progress_line.h"

namespace cli {
namespace {

constexpr std::string_view kClearLine = "\r\x1b[K";
constexpr auto kBetween = std::chrono::milliseconds(100);  // no eye is quicker

}  // namespace

ProgressLine::~ProgressLine() {
  if (shown_) io::WriteOut(2, kClearLine);
}

void ProgressLine::Show(const std::string& text) {
  if (!seen_ || Clock::now() < due_) return;
  io::WriteOut(2, std::string(kClearLine) + text);
  shown_ = true;
  due_ = Clock::now() + kBetween;
}

}  // namespace cli
