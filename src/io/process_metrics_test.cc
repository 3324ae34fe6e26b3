#include "io/process_metrics.h"

#include <ctime>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/strings.h"
#include "io/clock.h"

namespace io {
namespace {

double ValueOf(const base::Metrics& metrics, std::string_view name) {
  const std::string page = metrics.Text();
  for (std::string_view line : base::Split(page, '\n')) {
    if (line.starts_with(std::string(name) + " ")) {
      return std::stod(std::string(line.substr(name.size() + 1)));
    }
  }
  ADD_FAILURE() << name << " is not in\n" << page;
  return 0;
}

TEST(ProcessMetrics, TellMemoryCpuAndBirthOfThisProcess) {
  base::Metrics metrics;
  AddProcessMetrics(metrics);
  EXPECT_GT(ValueOf(metrics, "process_resident_memory_bytes"), 1e5);
  EXPECT_GE(ValueOf(metrics, "process_virtual_memory_bytes"),
            ValueOf(metrics, "process_resident_memory_bytes"));
  EXPECT_GT(ValueOf(metrics, "process_cpu_seconds_total"), 0);
  const double now = static_cast<double>(Now().time_since_epoch().count()) * 1e-6;
  EXPECT_LE(ValueOf(metrics, "process_start_time_seconds"), now + 1);
  EXPECT_GT(ValueOf(metrics, "process_start_time_seconds"), now - 3600);
  EXPECT_GE(ValueOf(metrics, "process_max_fds"), ValueOf(metrics, "process_open_fds"));
}

TEST(ProcessMetrics, CountTheOpenDescriptors) {
  base::Metrics metrics;
  AddProcessMetrics(metrics);
  const double before = ValueOf(metrics, "process_open_fds");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(ValueOf(metrics, "process_open_fds"), before + 2);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace io
