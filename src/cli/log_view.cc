#include "cli/log_view.h"

#include <algorithm>

#include <fmt/core.h>

#include "backend/local/local_backend.h"
#include "base/strings.h"
#include "events/plain_text.h"

namespace cli {
namespace {

using api::ReplicaId;

constexpr std::string_view kTraceback = "Traceback (most recent call last)";

bool IsIndented(std::string_view line) { return line.starts_with(' ') || line.starts_with('\t'); }

// Between the frames of a traceback and the next one that it led to.
bool JoinsTracebacks(std::string_view line) {
  return line.empty() || line.starts_with("During handling of the above exception") ||
         line.starts_with("The above exception was the direct cause");
}

}  // namespace

void LogView::Expect(const std::vector<ReplicaId>& replicas) {
  expected_.clear();
  for (const ReplicaId& id : replicas) ++expected_[id.role];
}

void LogView::Feed(ReplicaId id, std::string_view bytes, base::Time now) {
  Source& source = sources_[id];
  source.last = now;
  source.partial += bytes;
  size_t begin = 0;
  for (size_t end; (end = source.partial.find('\n', begin)) != std::string::npos; begin = end + 1) {
    AddLine(id, source, std::string_view(source.partial).substr(begin, end - begin), now);
  }
  source.partial.erase(0, begin);
  // A bar that is redrawn without ever ending its line must not grow for ever.
  if (source.partial.size() > (64 << 10))
    source.partial.erase(0, source.partial.size() - (32 << 10));
}

void LogView::AddLine(ReplicaId id, Source& source, std::string_view raw_line, base::Time now) {
  if (raw_line.starts_with(backend::local::kMark)) {
    source.progress = {};
    if (raw_) ready_.push_back({id, std::string(raw_line), now});
    return;
  }
  const std::string line = events::CollapseCarriageReturns(raw_line);
  const std::optional<events::LineProgress> progress = source.progress.Add(line, now);
  if (raw_) {
    ready_.push_back({id, std::string(raw_line), now});
    return;
  }
  if (line.find(kTraceback) != std::string::npos) {
    if (source.traceback.empty()) source.since = now;
    source.traceback.push_back(line);
    source.in_frames = true;
    return;
  }
  if (!source.traceback.empty()) {
    source.traceback.push_back(line);
    if (source.in_frames && !IsIndented(line)) {
      source.in_frames = false;  // the exception itself; another traceback may follow from it
    } else if (!source.in_frames && !JoinsTracebacks(line) && !IsIndented(line)) {
      Release(id, source, now);
    }
    return;
  }
  if (progress && progress->is_bar) return;  // the live block shows it
  if (base::Trim(line).empty()) return;
  AddReady({id, line, now});
}

// The same words from several replicas of a role at about the same time are said once.
void LogView::AddReady(LogLine line) {
  for (auto other = ready_.rbegin(); other != ready_.rend(); ++other) {
    if (line.time - other->time > kFold) break;
    if (other->id.role != line.id.role || other->text != line.text) continue;
    if (other->id != line.id && other->others.insert(line.id).second) return;
  }
  ready_.push_back(std::move(line));
}

// Unfolded: half a traceback under another's name helps nobody.
void LogView::Release(ReplicaId id, Source& source, base::Time now) {
  for (std::string& line : source.traceback) ready_.push_back({id, std::move(line), now});
  source.traceback.clear();
  source.in_frames = false;
}

base::Time LogView::DueTime(const LogLine& line) const {
  const auto expected = expected_.find(line.id.role);
  const bool alone = expected != expected_.end() && line.others.size() + 1 >= expected->second;
  return alone ? line.time : line.time + kFold;
}

std::vector<LogLine> LogView::Take(base::Time now) {
  for (auto& [id, source] : sources_) {
    if (!source.traceback.empty() && now >= source.since + kPatience) Release(id, source, now);
  }
  const auto due =
      raw_ ? ready_.end()
           : std::ranges::find_if(ready_, [&](const LogLine& line) { return DueTime(line) > now; });
  std::vector<LogLine> out(std::make_move_iterator(ready_.begin()), std::make_move_iterator(due));
  ready_.erase(ready_.begin(), due);
  return out;
}

std::vector<LogLine> LogView::TakeAll() {
  for (auto& [id, source] : sources_) {
    if (!source.partial.empty()) {
      const std::string rest = std::exchange(source.partial, "");
      AddLine(id, source, rest, source.last);
    }
    Release(id, source, source.last);
  }
  return std::exchange(ready_, {});
}

std::optional<base::Time> LogView::look_again() const {
  std::optional<base::Time> out;
  if (!ready_.empty()) out = DueTime(ready_.front());
  for (const auto& [id, source] : sources_) {
    if (source.traceback.empty()) continue;
    const base::Time time = source.since + kPatience;
    if (!out || time < *out) out = time;
  }
  return out;
}

const events::ProgressTracker* LogView::progress(ReplicaId id) const {
  const auto it = sources_.find(id);
  return it == sources_.end() ? nullptr : &it->second.progress;
}

std::optional<base::Time> LogView::last(ReplicaId id) const {
  const auto it = sources_.find(id);
  if (it == sources_.end()) return std::nullopt;
  return it->second.last;
}

std::string Prefixed(const LogLine& line, size_t width, bool colour) {
  std::string name = line.others.empty() ? api::Spoken(line.id)
                                         : fmt::format("{}/* x{}", api::LowerName(line.id.role),
                                                       line.others.size() + 1);
  if (name.size() < width) name.resize(width, ' ');
  if (!colour) return name + "  " + line.text;
  // One colour a role, a shade an index: the same replica looks the same all day.
  constexpr int kColours[5][2] = {{35, 95}, {33, 93}, {35, 95}, {34, 94}, {36, 32}};
  const int code = kColours[static_cast<size_t>(line.id.role)][line.id.index % 2];
  return fmt::format("\x1b[{}m{}\x1b[0m  {}", code, name, line.text);
}

size_t PrefixWidth(const std::vector<ReplicaId>& replicas) {
  size_t width = 0;
  std::map<api::Role, int> counts;
  for (ReplicaId id : replicas) {
    width = std::max(width, api::Spoken(id).size());
    const int count = ++counts[id.role];
    if (count > 1)
      width = std::max(width, fmt::format("{}/* x{}", api::LowerName(id.role), count).size());
  }
  return width;
}

}  // namespace cli
