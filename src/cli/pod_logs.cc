#include "cli/pod_logs.h"

#include <algorithm>

#include <fmt/core.h>

#include "api/tfjob.h"
#include "backend/local/local_backend.h"
#include "base/strings.h"
#include "io/clock.h"
#include "kube/api.h"

namespace cli {
namespace {

using api::ReplicaId;
using backend::cluster::Pod;
using base::Result;
using base::Time;

// "2026-11-15T21:49:57.220145123Z": nodes write nanoseconds, without the zeros at the end.
Time TimeOf(std::string_view stamp) {
  std::string text(stamp);
  if (const size_t dot = text.find('.'); dot != std::string::npos) {
    std::string fraction = text.substr(dot + 1, text.find('Z') - dot - 1);
    fraction.resize(6, '0');
    text = text.substr(0, dot + 1) + fraction + "Z";
  }
  return base::ParseTime(text).value_or(Time());
}

kube::LogQuery QueryFor(const Pod& pod, const LogRange& range) {
  return {.ns = pod.key.name_space,
          .pod = pod.key.name,
          .container = pod.container,
          .timestamps = true,
          .tail_lines = range.tail_lines,
          .since_seconds = range.since_seconds,
          .uid = pod.uid};
}

// The container was started, so there is something to read.
bool HasLog(const Pod& pod) {
  return pod.replica.phase != core::Phase::kPending || core::HasEnded(pod.replica);
}

// A node reports up to a second late that a container runs. So its log is asked for as soon as a
// node has the pod, where that is a matter of few requests.
constexpr size_t kMostEarly = 8;

bool MayStartAnyMoment(const Pod& pod) { return !pod.node.empty() && pod.trouble.empty(); }

bool IsChosen(const std::set<ReplicaId>& chosen, ReplicaId id) {
  return chosen.empty() || chosen.contains(id);
}

void SortByTime(std::vector<TimedChunk>& chunks) {
  std::ranges::stable_sort(chunks, {}, &TimedChunk::time);
}

}  // namespace

LogRange RangeOf(const LogWish& wish) {
  LogRange out{.tail_lines = wish.tail};
  if (wish.since) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(io::Now() - *wish.since);
    out.since_seconds = std::max<int64_t>(1, seconds.count());
  }
  return out;
}

void PodLogs::Watch(const std::vector<const Pod*>& pods, const std::set<ReplicaId>& chosen,
                    const LogRange& range) {
  HurryEarly(pods);
  for (const Pod* pod : pods) {
    const ReplicaId id = pod->replica.id;
    if (!IsChosen(chosen, id) || follows_.contains(pod->uid)) continue;
    const bool early = !HasLog(*pod);
    if (early && (follows_.size() >= kMostEarly || !MayStartAnyMoment(*pod))) continue;
    Forget(pod->key.name);
    // What the one before it said of its progress says nothing of this one.
    if (!seen_.insert(id).second)
      taken_.push_back(
          {.id = id,
           .bytes = fmt::format("{}attempt {}\n", backend::local::kMark, pod->replica.attempt)});
    names_[pod->key.name] = pod->uid;
    follows_[pod->uid] = {
        std::make_unique<kube::LogFollow>(
            transport_, QueryFor(*pod, range),
            [this, id](std::string_view line, std::string_view when) {
              if (when.empty()) return;  // the node's own words about the log
              taken_.push_back({.id = id, .time = TimeOf(when), .bytes = std::string(line) + "\n"});
            }),
        early};
  }
}

// What an early one waits for has happened: the pod runs, or is gone.
void PodLogs::HurryEarly(const std::vector<const Pod*>& pods) {
  for (auto& [uid, followed] : follows_) {
    if (!followed.early) continue;
    const auto pod = std::ranges::find(pods, uid, &Pod::uid);
    if (pod != pods.end() && !HasLog(**pod)) continue;
    followed.early = false;
    followed.log->Hurry();
  }
}

// A log is found by the name of its pod: whoever still follows the one before would read this
// one's.
void PodLogs::Forget(const std::string& name) {
  if (const auto before = names_.find(name); before != names_.end()) follows_.erase(before->second);
}

void PodLogs::Advance(Time now) {
  for (auto& [uid, followed] : follows_) {
    if (!followed.log->ended()) followed.log->Advance(now);
  }
}

std::optional<Time> PodLogs::next() const {
  std::optional<Time> out;
  for (const auto& [uid, followed] : follows_) {
    const auto due = followed.log->ended() ? std::nullopt : followed.log->next();
    if (due && (!out || *due < *out)) out = due;
  }
  return out;
}

std::vector<TimedChunk> PodLogs::Take() {
  std::vector<TimedChunk> out = std::exchange(taken_, {});
  // A mark has no time of its own: it belongs before what follows it.
  for (auto it = out.rbegin(); it != out.rend(); ++it) {
    if (it->time != Time()) continue;
    const auto after = std::find_if(it.base(), out.end(), [&](const TimedChunk& chunk) {
      return chunk.id == it->id && chunk.time != Time();
    });
    if (after != out.end()) it->time = after->time;
  }
  SortByTime(out);
  return out;
}

bool PodLogs::ended(const std::vector<const Pod*>& pods) const {
  const auto runs = [&](const std::string& uid) {
    return std::ranges::any_of(pods,
                               [&](const Pod* pod) { return pod->uid == uid && !pod->finished; });
  };
  return taken_.empty() && std::ranges::all_of(follows_, [&](const auto& entry) {
           return entry.second.log->ended() || runs(entry.first);
         });
}

Result<PrintedLogs> ReadPodLogs(kube::Client& client, const std::vector<const Pod*>& pods,
                                const std::set<ReplicaId>& chosen, const LogRange& range) {
  PrintedLogs out;
  for (const Pod* pod : pods) {
    if (!HasLog(*pod) || !IsChosen(chosen, pod->replica.id)) continue;
    const std::string path = kube::LogPath(QueryFor(*pod, range));
    const kube::Response answer = TRY(client.Call({.path = path}));
    if (auto error = kube::ErrorOf(answer)) {
      if (error->kind() == base::ErrorKind::kNotFound) continue;  // gone since we looked
      return std::unexpected(std::move(*error).Context("the log of " + pod->key.name));
    }
    int64_t lines = 0;
    for (std::string_view line : base::Split(answer.body, '\n')) {
      lines += line.empty() ? 0 : 1;
      const size_t space = line.find(' ');
      if (line.empty() || space == std::string_view::npos) continue;
      out.chunks.push_back({.id = pod->replica.id,
                            .time = TimeOf(line.substr(0, space)),
                            .bytes = std::string(line.substr(space + 1)) + "\n"});
    }
    out.skipped |= range.tail_lines && lines >= *range.tail_lines;
  }
  SortByTime(out.chunks);
  return out;
}

}  // namespace cli
