// Log lines of any bytes: parsing and tracking must neither crash nor say more than 100 percent.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "events/plain_text.h"
#include "events/progress.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  events::ProgressTracker tracker;
  base::Time now{std::chrono::seconds(1'800'000'000)};
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto said = tracker.Add(line, now);
    if (said && said->step && said->steps && *said->step > *said->steps) std::abort();
    if (events::StripAnsi(line).contains('\x1b')) std::abort();
    now += std::chrono::milliseconds(line.size() * 37);
    const events::Progress progress = tracker.At(now);
    if (progress.percent && !(*progress.percent >= 0 && *progress.percent <= 100)) std::abort();
    if (progress.eta && *progress.eta < base::Duration(0)) std::abort();
  }
  return 0;
}
