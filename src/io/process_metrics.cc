#include "io/process_metrics.h"

#include <ctime>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include "base/strings.h"
#include "io/files.h"

namespace io {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

double ToDouble(std::string_view text) {
  const auto number = base::ParseInt(text);
  return number ? static_cast<double>(*number) : kUnknown;
}

// A field of /proc/self/stat, counted from 1 as proc(5) does. The second, the program's name, may
// hold spaces and parentheses, so counting begins behind it.
double StatField(size_t field) {
  const auto stat = ReadFile("/proc/self/stat");
  if (!stat) return kUnknown;
  const size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos || name_end + 2 > stat->size()) return kUnknown;
  const auto fields = base::Split(std::string_view(*stat).substr(name_end + 2), ' ');
  return field - 3 < fields.size() ? ToDouble(fields[field - 3]) : kUnknown;
}

double CpuSeconds() {
  timespec time{};
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) != 0) return kUnknown;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// In seconds since 1970: when the machine booted and how long after that.
double StartTime() {
  const auto stat = ReadFile("/proc/stat");
  if (!stat) return kUnknown;
  for (std::string_view line : base::Split(*stat, '\n')) {
    if (!line.starts_with("btime ")) continue;
    return ToDouble(line.substr(6)) + StatField(22) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  return kUnknown;
}

double OpenFiles() {
  // Without the one that lists them.
  return static_cast<double>(ListDir("/proc/self/fd").size()) - 1;
}

double MostFiles() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kUnknown;
  return static_cast<double>(limit.rlim_cur);
}

}  // namespace

void AddProcessMetrics(base::Metrics& metrics) {
  metrics.AskCounter("process_cpu_seconds_total", "CPU time spent, user and system.", CpuSeconds);
  metrics.AskGauge("process_resident_memory_bytes", "Resident memory.",
                   [] { return StatField(24) * static_cast<double>(sysconf(_SC_PAGESIZE)); });
  metrics.AskGauge("process_virtual_memory_bytes", "Virtual memory.", [] { return StatField(23); });
  metrics.AskGauge("process_start_time_seconds", "Start of the process, since 1970.",
                   [start = StartTime()] { return start; });
  metrics.AskGauge("process_open_fds", "Open file descriptors.", OpenFiles);
  metrics.AskGauge("process_max_fds", "Most file descriptors that may be open.", MostFiles);
}

}  // namespace io
