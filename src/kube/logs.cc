// A line is known by its time stamp and by how many lines of the same stamp came before it. After a
// break the log is asked for from the second of the last stamp on (the API knows whole seconds),
// and what was told already is passed over. Nodes write stamps with nine digits and one zone, so
// that they compare as text.
//
// That a stream ends does not mean that the container did: the log of a pod that has no node yet
// ends at once, empty, and nodes restart. So the pod is looked at, and once it is over the log is
// read again from the last line on, since something may have been written meanwhile.
#include "kube/logs.h"

#include <algorithm>

#include "base/json.h"
#include "kube/api.h"

namespace kube {
namespace {

using base::Duration;
using base::Error;
using base::ErrorKind;
using base::Json;
using base::Time;
using namespace std::chrono_literals;

constexpr size_t kMostLine = size_t{1} << 20;
constexpr Duration kFirstPause = 200ms;
constexpr Duration kStartPause = 100ms;  // containers mostly start within a second or two
constexpr int kStartTries = 15;
constexpr Duration kLongestPause = 10s;
// Nodes ask the API server who may read a log, and keep a "no" for 30 seconds. With the pauses in
// between, so many of them take longer than that.
constexpr int kMostRefusals = 8;
// A container may say nothing for long. A dead connection is noticed by the kernel.
constexpr Duration kSilence = 24h;
constexpr Duration kLookTimeout = 30s;

// "2026-11-15T21:49:57.220145678Z".
bool IsStamp(std::string_view text) {
  return text.size() >= 20 && text.size() <= 40 && text[4] == '-' && text[10] == 'T' &&
         text[13] == ':';
}

// A refusal that only means: later. There is no other sign of it than these words.
bool HasNotStarted(const std::string& text) {
  return text.contains("is waiting to start") || text.contains("does not have a host assigned") ||
         text.contains("is not available");
}

// Nothing more will come of this container.
bool IsOver(const Json& pod, const std::string& container) {
  const Json none = base::JsonObject();
  const auto part = [&](const Json& of, std::string_view key) -> const Json& {
    const Json* found = base::Find(of, key);
    return found ? *found : none;
  };
  const std::string phase = base::StringOr(part(pod, "status"), "phase");
  if (phase == "Succeeded" || phase == "Failed") return true;
  const std::string policy = base::StringOr(part(pod, "spec"), "restartPolicy");
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    const Json& statuses = part(part(pod, "status"), list);
    if (!statuses.is_array()) continue;
    for (const Json& status : statuses.get_array()) {
      if (!container.empty() && base::StringOr(status, "name") != container) continue;
      const Json* terminated = base::Find(part(status, "state"), "terminated");
      if (!terminated) return false;
      const bool well = base::IntOr(*terminated, "exitCode", -1) == 0;
      const bool is_init = std::string_view(list).starts_with("init");
      return policy == "Never" || (well && (is_init || policy == "OnFailure"));
    }
  }
  return false;
}

std::string Seconds(const std::string& stamp) {
  // Without its fraction, the zone kept.
  const size_t dot = stamp.find('.');
  if (dot == std::string::npos) return stamp;
  const size_t zone = stamp.find_first_of("Z+-", dot);
  return stamp.substr(0, dot) + (zone == std::string::npos ? "Z" : stamp.substr(zone));
}

}  // namespace

std::string LogPath(const LogQuery& query) {
  const auto number = [](const std::optional<int64_t>& value) {
    return value ? std::to_string(*value) : "";
  };
  return WithQuery(Path("v1", "pods", query.ns, query.pod, "log"),
                   {{"container", query.container},
                    {"follow", query.follow ? "true" : ""},
                    {"timestamps", query.timestamps ? "true" : ""},
                    {"previous", query.previous ? "true" : ""},
                    {"tailLines", number(query.tail_lines)},
                    {"sinceSeconds", number(query.since_seconds)}});
}

struct LogFollow::State {
  Transport& transport;
  LogQuery query;
  Line line;
  std::shared_ptr<State*> self;  // what answers that outlive us find empty

  std::unique_ptr<Stream> stream;
  bool under_way = false;
  bool looks = false;    // at the pod next, not at the log
  bool waited = false;   // before that look, so not once more after it
  bool is_over = false;  // the container was, before the stream was opened
  std::optional<Duration> pause = Duration(0);
  std::optional<Time> due;
  Time now{};
  int failures = 0;
  int starts = 0;    // times that it was asked for before it had started
  int refusals = 0;  // in a row
  bool ended = false;
  std::optional<Error> error;

  std::string partial;
  bool is_continued = false;  // a begin of this line was taken already
  bool passes_over = false;   // this line, as it was told already
  std::string stamp;          // of the last line told
  size_t of_stamp = 0;        // lines told with it
  size_t passed = 0;          // lines with it seen since the stream began

  State(Transport& door, LogQuery what, Line to)
      : transport(door),
        query(std::move(what)),
        line(std::move(to)),
        self(std::make_shared<State*>(this)) {
    query.follow = query.timestamps = true;
  }
  ~State() { *self = nullptr; }

  template <typename Argument>
  auto Guarded(void (State::*method)(Argument)) {
    return [weak = std::weak_ptr(self), method](Argument argument) {
      const auto alive = weak.lock();
      if (alive && *alive) ((*alive)->*method)(std::move(argument));
    };
  }

  void Open();
  void TakeBytes(std::string_view bytes);
  void TakeLine(std::string_view text, bool whole);
  void TakeEnd(base::Result<Response> answer);
  void TakePod(base::Result<Response> answer);
  bool IsFinal(int status);
  void Again(std::optional<Duration> retry_after);
  void AgainForStart();
};

void LogFollow::State::Open() {
  partial.clear();
  is_continued = false;
  passed = 0;
  std::string path = LogPath(query);
  if (!stamp.empty()) {
    LogQuery rest = query;
    rest.tail_lines.reset();
    rest.since_seconds.reset();
    path = LogPath(rest) + "&sinceTime=" + PercentEncoded(Seconds(stamp));
  }
  stream = transport.Open({.path = path}, kSilence, Guarded(&State::TakeBytes),
                          Guarded(&State::TakeEnd));
}

void LogFollow::State::TakeBytes(std::string_view bytes) {
  failures = starts = refusals = 0;
  error.reset();
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    partial += bytes.substr(0, end);
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    const bool whole = end != std::string_view::npos;
    if (!whole && partial.size() < kMostLine) return;
    TakeLine(std::exchange(partial, {}), whole);
  }
}

void LogFollow::State::TakeLine(std::string_view text, bool whole) {
  if (std::exchange(is_continued, !whole)) {
    if (!passes_over) line(text, stamp);
    return;
  }
  passes_over = false;
  const size_t space = text.find(' ');
  const std::string_view when = text.substr(0, space);
  // The node's own words about the log have no stamp.
  if (!IsStamp(when)) {
    line(text, "");
    return;
  }
  const std::string_view rest =
      space == std::string_view::npos ? std::string_view() : text.substr(space + 1);
  if (when == stamp) ++passed;
  passes_over = when < stamp || (when == stamp && passed <= of_stamp);
  if (passes_over) return;
  if (when == stamp) {
    ++of_stamp;
  } else {
    stamp = when;
    passed = of_stamp = 1;
  }
  line(rest, when);
}

void LogFollow::State::Again(std::optional<Duration> retry_after) {
  const Duration growing = kFirstPause * (1 << std::min(failures++, 10));
  pause = std::min(std::max(growing, retry_after.value_or(0s)), kLongestPause);
}

void LogFollow::State::AgainForStart() {
  if (++starts > kStartTries) return Again(std::nullopt);
  failures = 0;
  pause = kStartPause;
}

// Whether an answer with this status is a refusal, and the last word.
bool LogFollow::State::IsFinal(int status) {
  if (status < 400 || status == 429 || status >= 500) return false;
  return query.uid.empty() || ++refusals > kMostRefusals;
}

void LogFollow::State::TakeEnd(base::Result<Response> answer) {
  under_way = false;
  error = answer ? ErrorOf(*answer) : answer.error();
  if (!error) {
    refusals = 0;
    if (!partial.empty()) TakeLine(std::exchange(partial, {}), true);
    ended = is_over;
    looks = true;
    pause = Duration(0);
    return;
  }
  const int status = answer ? answer->status : 0;
  // A node that has not heard of a pod yet knows no log of it: the pod will tell whether it is
  // gone.
  const bool unheard_of = status == 404 && !query.uid.empty() && !is_over;
  const bool starts_later = unheard_of || (status == 400 && HasNotStarted(error->text()));
  ended = !starts_later && IsFinal(status);
  looks = waited = !query.uid.empty();
  if (starts_later) return AgainForStart();
  Again(answer ? answer->retry_after : std::nullopt);
}

void LogFollow::State::TakePod(base::Result<Response> answer) {
  under_way = false;
  error = answer ? ErrorOf(*answer) : answer.error();
  const auto pod = error ? base::Result<Json>(Json()) : base::ParseJson(answer->body);
  if (!error && !pod) error = pod.error();
  const Json* metadata = pod ? base::Find(*pod, "metadata") : nullptr;
  if (!error && !query.uid.empty() &&
      (!metadata || base::StringOr(*metadata, "uid") != query.uid)) {
    ended = true;  // as if it were gone
    return;
  }
  if (!error) {
    looks = false;
    is_over = IsOver(*pod, query.container);
    if (std::exchange(waited, false) || is_over) {
      pause = Duration(0);
    } else {
      Again(std::nullopt);
    }
    return;
  }
  if (error->kind() == ErrorKind::kNotFound) {
    ended = true;  // gone, and all of the log that there was has been told
    error.reset();
    return;
  }
  ended = IsFinal(answer ? answer->status : 0);
  Again(answer ? answer->retry_after : std::nullopt);
}

LogFollow::LogFollow(Transport& transport, LogQuery query, Line line)
    : state_(std::make_unique<State>(transport, std::move(query), std::move(line))) {}

LogFollow::~LogFollow() = default;

void LogFollow::Advance(Time now) {
  State& s = *state_;
  s.now = now;
  if (s.under_way) return;
  s.stream.reset();
  if (s.ended) return;
  if (s.pause) s.due = now + *std::exchange(s.pause, std::nullopt);
  if (now < *s.due) return;
  s.under_way = true;
  if (s.looks) {
    s.transport.Send({.path = Path("v1", "pods", s.query.ns, s.query.pod)}, kLookTimeout,
                     s.Guarded(&State::TakePod));
  } else {
    s.Open();
  }
}

void LogFollow::Hurry() {
  State& s = *state_;
  s.failures = s.starts = s.refusals = 0;
  if (!s.under_way && s.due) s.pause = Duration(0);
}

std::optional<Time> LogFollow::next() const {
  if (state_->under_way || state_->ended) return std::nullopt;
  return state_->pause ? state_->now : state_->due;
}

bool LogFollow::ended() const { return state_->ended; }
const std::optional<Error>& LogFollow::error() const { return state_->error; }

}  // namespace kube
