// The block at the bottom of the terminal while a job runs: a row a replica, then progress. Pure:
// values in, lines out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"

namespace cli {

struct LiveRow {
  std::string name;   // "worker/0"
  std::string state;  // "running", "waiting 4s", "done"
  std::optional<int64_t> step;
  std::optional<double> steps_per_second;
  std::optional<double> loss;
  std::optional<double> cpu_percent;
  std::optional<int64_t> memory_bytes;
  std::optional<base::Duration> since_output;
};

struct LiveModel {
  std::vector<LiveRow> rows;
  std::optional<double> percent;
  std::optional<base::Duration> eta;
  std::vector<double> losses;  // over time, for the sparkline
  // Of data in shards; nothing done and nothing there: the job has none.
  int64_t records_done = 0, records_total = 0;
  int restarts = 0;
  std::string note;  // "stopping: Ctrl-C again to kill at once"
};

// No line is wider than `width`: columns are dropped from the right before anything wraps. At most
// 16 rows; the rest is told in one.
std::vector<std::string> RenderBlock(const LiveModel& model, int width, bool unicode);

// The same in one line, for pipes: "worker/0 step 412 loss 0.291 · 41% · ETA 38s · restarts 0".
std::string RenderLine(const LiveModel& model, bool unicode);

// Cuts to at most `width` columns, on whole UTF-8 characters.
std::string Elide(const std::string& text, int width);
int DisplayWidth(std::string_view text);

}  // namespace cli
