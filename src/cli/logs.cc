// `logs`: the merged logs of a job, from its files.
#include <algorithm>

#include <fmt/core.h>
#include <poll.h>

#include "base/duration.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/jobs.h"
#include "cli/log_tail.h"
#include "cli/log_view.h"
#include "cli/refuse.h"
#include "io/clock.h"
#include "io/files.h"
#include "io/terminal.h"

namespace cli {
namespace {

using api::ReplicaId;

constexpr int kFollowMs = 100;

// "worker/1", "worker-1" or "worker": does the replica match?
base::Result<std::vector<ReplicaId>> Matching(const std::string& wish,
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

std::vector<ReplicaId> WithLogs(const backend::local::JobDir& dir) {
  std::vector<ReplicaId> out;
  for (const std::string& file : io::ListDir(dir.File("logs"))) {
    if (!file.ends_with(".log")) continue;
    if (auto id = api::ReplicaIdFrom(file.substr(0, file.size() - 4))) out.push_back(*id);
  }
  return out;
}

}  // namespace

int LogsCommand(const Args& args) {
  auto found = FindJob(args);
  if (!found) return Refuse(found.error());
  auto chosen = Matching(args.Get("replica"), WithLogs(found->dir));
  if (!chosen) return Refuse(chosen.error());
  auto tail = args.Number("tail", -1, 0, 1'000'000'000);
  if (!tail) return Refuse(tail.error());
  std::optional<base::Time> since;
  if (args.Has("since")) {
    auto duration = base::ParseDuration(args.Get("since"));
    if (!duration) return Refuse("--since: " + duration.error().text());
    since = io::Now() - *duration;
  }
  const std::string grep = args.Get("grep");
  const io::Terminal terminal = io::TerminalOf(1);
  const size_t width = PrefixWidth(*chosen);
  LogView view(args.Has("raw"));
  std::map<ReplicaId, LogTail> tails;
  for (ReplicaId id : *chosen) {
    auto [it, made] = tails.try_emplace(id, found->dir.LogFile(id));
    if (since) it->second.SkipTo(OffsetAt(found->dir.LogFile(id), *since));
  }
  const auto print = [&](const std::vector<LogLine>& lines) {
    std::string text;
    for (const LogLine& line : lines) {
      if (!grep.empty() && line.text.find(grep) == std::string::npos) continue;
      text += args.json() ? base::CompactJson(base::JsonObject{{"replica", api::Spoken(line.id)},
                                                               {"line", line.text}}) +
                                "\n"
                          : Prefixed(line, width, terminal.colour) + "\n";
    }
    io::WriteOut(1, text);
  };
  bool first = true;
  while (true) {
    const bool alive = found->dir.IsAlive();
    const base::Time now = io::Now();
    bool grew = false;
    for (const TimedChunk& chunk : ReadInOrder(tails, found->dir)) {
      grew = true;
      view.Feed(chunk.id, chunk.bytes, chunk.time);
    }
    const bool last = !args.Has("follow") || (!alive && !grew);
    std::vector<LogLine> lines = last ? view.TakeAll() : view.Take(now);
    if (first && *tail >= 0 && lines.size() > static_cast<size_t>(*tail)) {
      lines.erase(lines.begin(), lines.end() - static_cast<ptrdiff_t>(*tail));
    }
    print(lines);
    if (last) return 0;
    first = false;
    poll(nullptr, 0, kFollowMs);
  }
}

}  // namespace cli
