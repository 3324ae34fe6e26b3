#include "cli/display.h"

#include <algorithm>
#include <cerrno>

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include "backend/local/replica.h"
#include "base/json.h"
#include "cli/watch.h"

namespace cli {
namespace {

using api::ReplicaId;
using base::Duration;
using base::Time;
using namespace std::chrono_literals;

constexpr Duration kRedraw = 100ms;  // at most ten times a second
constexpr Duration kSample = 1s;     // CPU and memory, while somebody looks
constexpr Duration kSummary = 10s;   // one line, when the output is no terminal
// A pipe that is ready takes this much without blocking.
constexpr size_t kChunk = 4096;
constexpr size_t kMostPending = 16 << 20;
constexpr size_t kMostLosses = 64;

std::string StateOf(const api::Job& job, const Scene& scene, ReplicaId id, Time now) {
  if (job.status.completed.contains(id)) return "done";
  if (auto state = scene.StateOf(id)) return *state;
  if (api::IsTerminal(job.status)) return "ended";
  const auto unit = job.status.units.find(id);
  const Time not_before =
      unit != job.status.units.end() ? unit->second.not_before : job.status.gang.not_before;
  if (not_before <= now) return "waiting";
  return fmt::format("waits {}s",
                     std::chrono::ceil<std::chrono::seconds>(not_before - now).count());
}

}  // namespace

Display::Display(bool quiet, bool json)
    : quiet_(quiet), json_(json), terminal_(io::TerminalOf(1)) {}

void Display::Say(const std::string& line) {
  said_.push_back(line);
  stale_ = true;
}

void Display::Resized() {
  terminal_ = io::TerminalOf(1);
  stale_ = true;
}

std::optional<Time> Display::look_again(const LogView& lines) const {
  if (quiet_) return std::nullopt;
  std::optional<Time> next;
  if (stale_ || !pending_.empty()) next = drawn_ + kRedraw;
  if (auto due = lines.look_again()) {
    const Time time = std::max(*due, drawn_ + kRedraw);
    next = std::min(next.value_or(time), time);
  }
  if (terminal_.is_terminal && !json_)
    next = std::min(next.value_or(sampled_ + kSample), sampled_ + kSample);
  return next;
}

LiveModel Display::Model(const api::Job& job, const Scene& scene, const LogView& lines,
                         Time now) const {
  LiveModel model;
  for (ReplicaId id : backend::local::ReplicasInOrder(job.spec)) {
    LiveRow row{.name = api::Spoken(id), .state = StateOf(job, scene, id, now)};
    if (const events::ProgressTracker* tracker = lines.progress(id)) {
      const events::Progress seen = tracker->At(now);
      row.step = seen.global_step;
      row.steps_per_second = seen.steps_per_second;
      for (const events::Metric& metric : seen.metrics) {
        if (metric.name == "loss") row.loss = metric.value;
      }
      if (id == Leader(job.spec)) {
        model.percent = seen.percent;
        model.eta = seen.eta;
      }
    }
    if (const auto sample = samples_.find(id); sample != samples_.end()) {
      row.cpu_percent = sample->second.cpu_percent;
      row.memory_bytes = sample->second.memory;
    }
    if (auto last = lines.last(id)) row.since_output = now - *last;
    model.rows.push_back(std::move(row));
  }
  if (const auto& shards = job.status.shards; shards && shards->records_total > 0) {
    model.records_total = shards->records_total;
    model.records_done = shards->records_total - shards->records_left;
    model.percent = job.status.progress.percent;
    model.eta = job.status.progress.remaining;
  }
  model.losses = losses_;
  model.restarts = job.status.restarts + job.status.disruptions;
  model.note = note_;
  return model;
}

void Display::Print(const LogLine& line, size_t width, Time now) {
  if (!json_) {
    pending_ += Prefixed(line, width, terminal_.colour) + "\n";
    return;
  }
  pending_ += base::CompactJson(base::JsonObject{{"time", base::FormatTimeMicro(now)},
                                                 {"replica", api::Spoken(line.id)},
                                                 {"copies", line.others.size() + 1},
                                                 {"line", line.text}}) +
              "\n";
}

// Logs scroll above, the block stays at the bottom: take the block away, write the lines, draw it
// again.
void Display::Show(const api::Job& job, Scene& scene, LogView& lines, Time now, bool last) {
  if (quiet_) {
    lines.TakeAll();  // nobody wants them
    said_.clear();
    return;
  }
  const bool block = terminal_.is_terminal && !json_;
  const std::vector<api::ReplicaId> replicas = backend::local::ReplicasInOrder(job.spec);
  lines.Expect(replicas);
  if (auto due = lines.look_again(); due && *due <= now) stale_ = true;
  if (block && now >= sampled_ + kSample) {
    samples_ = scene.Measure(now);
    sampled_ = now;
    stale_ = true;
  }
  if (!last && (!stale_ || now < drawn_ + kRedraw)) return Write(false);
  drawn_ = now;
  if (pending_.size() > kMostPending)
    return Write(last);  // they scroll by when the output moves again
  if (block && block_lines_ > 0) pending_ += fmt::format("\x1b[{}A\r\x1b[J", block_lines_);
  block_lines_ = 0;
  const size_t width = PrefixWidth(replicas);
  for (const LogLine& line : last ? lines.TakeAll() : lines.Take(now)) Print(line, width, now);
  for (const std::string& line : said_) {
    if (!json_) pending_ += "trainyard: " + line + "\n";
  }
  said_.clear();
  if (job.status.progress.metrics.contains("loss")) {
    const double loss = job.status.progress.metrics.at("loss");
    if (losses_.empty() || losses_.back() != loss) losses_.push_back(loss);
    if (losses_.size() > kMostLosses) losses_.erase(losses_.begin());
  }
  if (block && !last) {
    pending_ += "\n";
    const auto rows =
        RenderBlock(Model(job, scene, lines, now), terminal_.width - 1, terminal_.unicode);
    for (const std::string& row : rows) pending_ += row + "\n";
    block_lines_ = static_cast<int>(rows.size()) + 1;
  } else if (!terminal_.is_terminal && !json_ && !last && now >= summary_ + kSummary) {
    if (summary_ != Time()) {
      pending_ +=
          "trainyard: " + RenderLine(Model(job, scene, lines, now), terminal_.unicode) + "\n";
    }
    summary_ = now;
  }
  stale_ = false;
  Write(last);
}

// As much as the output takes without blocking, or all of it.
void Display::Write(bool all) {
  if (all) {
    io::WriteOut(1, pending_);
    pending_.clear();
    return;
  }
  size_t written = 0;
  while (written < pending_.size()) {
    pollfd ready{1, POLLOUT, 0};
    if (poll(&ready, 1, 0) <= 0) break;
    const ssize_t size =
        write(1, pending_.data() + written, std::min(kChunk, pending_.size() - written));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) {
      written = pending_.size();  // the reader is gone; the job is not
      break;
    }
    written += static_cast<size_t>(size);
  }
  pending_.erase(0, written);
}

}  // namespace cli
