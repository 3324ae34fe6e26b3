// `logs`: the merged logs of a job.
#include <algorithm>

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
  const auto source = TRY(job.OpenLogs(wish));
  const Printer printer(args, wish.replicas);
  LogView view(args.Has("raw"));
  for (bool first = true; !source->ended(); first = false) {
    const base::Time now = io::Now();
    for (const TimedChunk& chunk : TRY(source->Read()))
      view.Feed(chunk.id, chunk.bytes, chunk.time);
    std::vector<LogLine> lines = source->ended() ? view.TakeAll() : view.Take(now);
    if (first && tail >= 0 && lines.size() > static_cast<size_t>(tail)) {
      lines.erase(lines.begin(), lines.end() - static_cast<ptrdiff_t>(tail));
    }
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
