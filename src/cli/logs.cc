// `logs`: the merged logs of a job.
#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/core.h>

#include "base/duration.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/log_view.h"
#include "cli/place.h"
#include "cli/refuse.h"
#include "io/clock.h"
#include "io/terminal.h"

namespace cli {
namespace {

using api::ReplicaId;
using base::Result;

constexpr int64_t kMostLines = 1'000'000;  // of each replica, that are read for --tail

// "worker/1", "worker-1" or "worker": does the replica match?
Result<std::vector<ReplicaId>> Matching(const std::string& wish,
                                        const std::vector<ReplicaId>& there) {
  if (wish.empty()) return there;
  std::vector<ReplicaId> out;
  const auto exact = api::ReplicaIdFrom(wish);
  const auto role = api::RoleFromName(wish);
  for (ReplicaId id : there) {
    if ((exact && *exact == id) || (role && *role == id.role)) out.push_back(id);
  }
  if (!out.empty()) return out;
  std::vector<std::string> names;
  for (ReplicaId id : there) names.push_back(api::Spoken(id));
  return base::Invalid(
      fmt::format("-i {}: no such replica; there are {}", wish, base::Join(names, ", ")));
}

class Printer {
 public:
  Printer(const Args& args, const std::vector<ReplicaId>& replicas)
      : grep_(args.Get("grep")), json_(args.json()), width_(PrefixWidth(replicas)) {}

  void Print(const std::vector<LogLine>& lines) const {
    std::string text;
    for (const LogLine& line : lines) {
      if (!grep_.empty() && line.text.find(grep_) == std::string::npos) continue;
      text += json_ ? base::CompactJson(
                          base::JsonObject{{"replica", api::Spoken(line.id)}, {"line", line.text}})
                    : Prefixed(line, width_, terminal_.colour);
      text += "\n";
    }
    io::WriteOut(1, text);
  }

 private:
  const std::string grep_;
  const bool json_;
  const size_t width_;
  const io::Terminal terminal_ = io::TerminalOf(1);
};

Result<> PrintLogs(const Args& args, PlacedJob& job) {
  LogWish wish{.follow = args.Has("follow")};
  wish.replicas = TRY(Matching(args.Get("replica"), TRY(job.WithLogs())));
  const int64_t tail = TRY(args.Number("tail", -1, 0, 1'000'000'000));
  if (args.Has("since"))
    wish.since = io::Now() - TRY_AS("--since", base::ParseDuration(args.Get("since")));
  if (tail >= 0) wish.tail = tail;
  const Printer printer(args, wish.replicas);
  std::unique_ptr<LogSource> source;
  std::optional<LogView> view;
  for (bool first = true; first || !source->ended();) {
    if (first) {
      source = TRY(job.OpenLogs(wish));
      view.emplace(args.Has("raw"));
    }
    const base::Time now = io::Now();
    for (const TimedChunk& chunk : TRY(source->Read()))
      view->Feed(chunk.id, chunk.bytes, chunk.time);
    std::vector<LogLine> lines = source->ended() ? view->TakeAll() : view->Take(now);
    if (first && tail >= 0) {
      // Several lines of a log may be shown as one: then more of them are needed.
      if (std::ssize(lines) < tail && source->skipped() && *wish.tail < kMostLines) {
        wish.tail = *wish.tail * 16;
        continue;
      }
      if (std::ssize(lines) > tail)
        lines.erase(lines.begin(), lines.end() - static_cast<ptrdiff_t>(tail));
    }
    first = false;
    printer.Print(lines);
  }
  return {};
}

}  // namespace

int LogsCommand(const Args& args) {
  auto found = FindJob(args);
  if (!found) return Fail(found.error());
  auto done = PrintLogs(args, *found->job);
  return done ? 0 : Fail(done.error());
}

}  // namespace cli
