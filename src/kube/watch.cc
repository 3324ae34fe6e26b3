// All that is asked of the server is asked from Advance; answers only note what is due next. A due
// time is a pause until the next Advance, which alone knows the time.
//
// The pause grows with each failure in a row, and only news from a stream ends the row: a server
// that answers lists well and breaks every watch at once is not asked for lists without end.
#include "kube/watch.h"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

#include "base/strings.h"
#include "kube/api.h"

namespace kube {
namespace {

using base::Duration;
using base::Error;
using base::ErrorKind;
using base::Json;
using base::Time;
using namespace std::chrono_literals;

constexpr Duration kPageTimeout = 60s;
// Bookmarks come about once a minute, so twice that is no mere quiet.
constexpr Duration kSilence = 120s;
// A little less than the 5 to 10 minutes after which API servers end a watch by themselves.
constexpr uint64_t kStreamSeconds = 290;
constexpr uint64_t kStreamSpread = 60;
// A server that restarts is away for some seconds, and jobs wait for us when it is back: the pauses
// of the first minute are short. One that is away for longer, or breaks every watch, is asked less
// and less often.
constexpr Duration kFirstPause = 100ms;
constexpr Duration kLongestPauseAtFirst = 1s;
constexpr int kFailuresAtFirst = 60;
constexpr Duration kLongestPause = 30s;
constexpr Duration kLongestRetryAfter = 5min;
// etcd takes no object over 1.5 MiB by default, and JSON is some times its size there.
constexpr size_t kMostEvent = size_t{16} << 20;
constexpr int kMostPages = 10'000;
constexpr int32_t kSmallestPage = 10;
// A version that the server will not watch from, whatever it says, is left behind by a list.
constexpr int kWatchesBeforeList = 8;
// A stream that lasted this long without even a bookmark may be from a version that the server does
// not have: after a restore it says nothing until it gets there. A list tells.
constexpr Duration kQuietStream = 100s;
// A list without a resourceVersion is a consistent read of etcd: even an API server that lags does
// not answer with an older version. A proxy that caches may. A restored server takes about as long
// as its backup is old to reach the version that was seen.
constexpr Duration kCatchesUp = 30s;
// After this many failures in a row, the server may have been restored in the meantime.
constexpr int kFailuresBeforeCheck = 2;

bool IsObjectWithName(const Json& value) {
  const Json* metadata = base::Find(value, "metadata");
  return metadata && !base::StringOr(*metadata, "name").empty();
}

}  // namespace

Version VersionOf(const Json& object) {
  const Json* metadata = base::Find(object, "metadata");
  const std::string text = metadata ? base::StringOr(*metadata, "resourceVersion") : "";
  Version version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  return error == std::errc() && end == text.data() + text.size() ? version : 0;
}

struct Watch::State {
  // kCheck asks only for the server's version, before a watch from the last version seen.
  enum class Step { kList, kPage, kCheck, kWatch };

  Transport& transport;
  const Source source;
  Sink& sink;
  uint64_t random;
  std::shared_ptr<State*> self;  // what answers that outlive us find empty

  Step step = Step::kList;  // what is under way, or else comes next
  bool under_way = false;
  std::optional<Duration> pause = Duration(0);  // until the step, from the next Advance on
  std::optional<Time> due;
  Time now{};        // of the last Advance
  int failures = 0;  // in a row

  int32_t page_size;
  int pages = 0;
  std::string continued;  // the token of the next page
  Version list_version = 0;
  Version version = 0;  // to watch from
  Version highest = 0;  // seen so far
  bool synced = false;
  bool again = false;                // the list that is under way was begun too early
  std::optional<Time> behind_since;  // lists are older than what was seen
  bool rolled_back = false;

  std::unique_ptr<Stream> stream;
  std::string line;   // the begin of one
  bool news = false;  // came from this stream
  Time opened{};      // this stream

  State(Transport& door, Source what, Sink& to, uint64_t jitter)
      : transport(door),
        source(std::move(what)),
        sink(to),
        random(jitter),
        self(std::make_shared<State*>(this)),
        page_size(source.page) {}
  ~State() { *self = nullptr; }

  // A transport's callback that does nothing once we are gone.
  template <typename Argument>
  auto Guarded(void (State::*method)(Argument)) {
    return [weak = std::weak_ptr(self), method](Argument argument) {
      const auto alive = weak.lock();
      if (alive && *alive) ((*alive)->*method)(std::move(argument));
    };
  }

  uint64_t Random() {  // splitmix64
    uint64_t z = random += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  Duration NextPause();
  void Next(Step next, Duration after);
  void Fail(Step next, Error error, std::optional<Duration> retry_after = std::nullopt);
  void AskForPage();
  void TakePage(base::Result<Response> answer);
  void TakeList(const Json& list);
  void OpenStream();
  void TakeBytes(std::string_view bytes);
  void TakeEvent(std::string_view text);
  void TakeEnd(base::Result<Response> answer);
  void See(Version seen);
};

Duration Watch::State::NextPause() {
  const int later = std::clamp(failures - kFailuresAtFirst, 0, 10);
  const Duration longest =
      later > 0 ? std::min(kLongestPause, kLongestPauseAtFirst * (1 << later))
                : std::min(kLongestPauseAtFirst, kFirstPause * (1 << std::min(failures, 10)));
  ++failures;
  return longest / 2 + Duration(Random() % static_cast<uint64_t>((longest / 2).count()));
}

void Watch::State::Next(Step next, Duration after) {
  step = next;
  under_way = false;
  pause = after;
}

void Watch::State::Fail(Step next, Error error, std::optional<Duration> retry_after) {
  const Duration asked = std::min(retry_after.value_or(Duration(0)), kLongestRetryAfter);
  const char* doing = step == Step::kWatch ? "watch " : "list ";
  const Duration after = std::max(NextPause(), asked);
  const bool check = next == Step::kWatch && failures >= kFailuresBeforeCheck;
  Next(check ? Step::kCheck : next, after);
  sink.Trouble(std::move(error).Context(doing + source.path));
}

void Watch::State::See(Version seen) { highest = std::max(highest, seen); }

// --- The list

void Watch::State::AskForPage() {
  if (step != Step::kPage) {
    continued.clear();
    pages = 0;
    again = false;
  }
  const int32_t limit = step == Step::kCheck ? 1 : page_size;
  transport.Send({.path = WithQuery(source.path, {{"labelSelector", source.label_selector},
                                                  {"fieldSelector", source.field_selector},
                                                  {"limit", std::to_string(limit)},
                                                  {"continue", continued}})},
                 kPageTimeout, Guarded(&State::TakePage));
}

void Watch::State::TakePage(base::Result<Response> answer) {
  if (!answer) {
    // Perhaps because the page was too large for the line, or for us.
    if (step != Step::kCheck) {
      page_size = std::max(page_size / 2, std::min(kSmallestPage, source.page));
    }
    return Fail(step, answer.error());
  }
  if (auto error = ErrorOf(*answer)) {
    const bool expired = answer->status == 410;
    return Fail(expired ? Step::kList : step, *std::move(error), answer->retry_after);
  }
  const auto list = base::ParseJson(answer->body);
  if (!list) return Fail(step, list.error());
  TakeList(*list);
}

void Watch::State::TakeList(const Json& list) {
  const Json* items = base::Find(list, "items");
  const Version its_version = VersionOf(list);
  if (its_version == 0 || (items && !items->is_array() && !items->is_null())) {
    return Fail(Step::kList, Error(ErrorKind::kUnavailable, "the answer is no list of objects"));
  }
  if (step != Step::kPage && its_version < highest) {
    if (!behind_since) behind_since = now;
    rolled_back = now - *behind_since >= kCatchesUp;
    return Fail(Step::kList,
                Error(ErrorKind::kUnavailable,
                      fmt::format("the server lists version {}, but version {} was seen already: "
                                  "it is behind, or its data was restored from a backup",
                                  its_version, highest)));
  }
  if (step == Step::kCheck) return Next(Step::kWatch, Duration(0));
  if (step == Step::kList) {
    behind_since.reset();
    list_version = its_version;
    sink.ListBegin();
  }
  size_t unreadable = 0;
  if (items && items->is_array()) {
    for (const Json& item : items->get_array()) {
      if (IsObjectWithName(item)) {
        sink.Apply(item);
      } else {
        ++unreadable;
      }
    }
  }
  const std::string token = base::StringOr(list.at("metadata"), "continue");
  if (!token.empty() && (token == continued || ++pages >= kMostPages)) {
    return Fail(Step::kList, Error(ErrorKind::kUnavailable,
                                   fmt::format("the list does not end after {} pages", pages)));
  }
  // One bad object is not to keep the others from being seen.
  if (unreadable > 0) {
    sink.Trouble(Error(ErrorKind::kInvalid, fmt::format("list {}: {} objects without a name are "
                                                        "left out",
                                                        source.path, unreadable)));
  }
  if (!token.empty()) {
    continued = token;
    return Next(Step::kPage, Duration(0));
  }
  page_size = source.page;
  version = list_version;
  See(version);
  sink.ListEnd(version);
  if (again) return Next(Step::kList, Duration(0));
  synced = true;
  Next(Step::kWatch, Duration(0));
}

// --- The stream

void Watch::State::OpenStream() {
  line.clear();
  news = false;
  opened = now;
  const uint64_t seconds = kStreamSeconds - Random() % kStreamSpread;
  stream = transport.Open(
      {.path = WithQuery(source.path, {{"watch", "1"},
                                       {"allowWatchBookmarks", "true"},
                                       {"labelSelector", source.label_selector},
                                       {"fieldSelector", source.field_selector},
                                       {"resourceVersion", std::to_string(version)},
                                       {"timeoutSeconds", std::to_string(seconds)}})},
      kSilence, Guarded(&State::TakeBytes), Guarded(&State::TakeEnd));
}

void Watch::State::TakeBytes(std::string_view bytes) {
  while (under_way && !bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (line.size() + part.size() > kMostEvent) {
      return Fail(Step::kList, Error(ErrorKind::kUnavailable, "an event is too large"));
    }
    if (end == std::string_view::npos) {
      line += part;
      return;
    }
    bytes.remove_prefix(end + 1);
    if (line.empty()) {
      TakeEvent(part);
    } else {
      line += part;
      TakeEvent(std::exchange(line, {}));
    }
  }
}

void Watch::State::TakeEvent(std::string_view text) {
  if (base::Trim(text).empty()) return;
  const auto event = base::ParseJson(text);
  if (!event) return Fail(Step::kList, event.error());
  const Json* object = base::Find(*event, "object");
  const std::string type = base::StringOr(*event, "type");
  if (type == "ERROR" && object) {
    const Response status{.status = static_cast<int>(base::IntOr(*object, "code")),
                          .body = base::CompactJson(*object)};
    auto error = ErrorOf(status);
    // Whatever it is, a list tells whether it is over.
    return Fail(Step::kList, error ? *std::move(error)
                                   : Error(ErrorKind::kUnavailable, "an error without a code"));
  }
  const Version its_version = object ? VersionOf(*object) : 0;
  const bool is_bookmark = type == "BOOKMARK";
  if (its_version == 0 || (!is_bookmark && !IsObjectWithName(*object))) {
    return Fail(Step::kList, Error(ErrorKind::kUnavailable, "an event without an object"));
  }
  if (type == "DELETED") {
    sink.Remove(*object);
  } else if (type == "ADDED" || type == "MODIFIED") {
    sink.Apply(*object);
  } else if (is_bookmark) {
    sink.Reached(its_version);
  } else {
    return Fail(Step::kList, Error(ErrorKind::kUnavailable, "an event of an unknown type"));
  }
  news = true;
  failures = 0;
  version = std::max(version, its_version);
  See(version);
}

void Watch::State::TakeEnd(base::Result<Response> answer) {
  if (!under_way) return;  // given up already
  if (!answer) return Fail(Step::kWatch, answer.error());
  if (auto error = ErrorOf(*answer)) {
    const bool expired = answer->status == 410 || (failures + 1) % kWatchesBeforeList == 0;
    return Fail(expired ? Step::kList : Step::kWatch, *std::move(error), answer->retry_after);
  }
  // As it should: its time was over. Without any news perhaps for another reason, which the pause
  // takes care of.
  Next(Step::kWatch, NextPause());
  if (news) failures = 0;
}

// ---

Watch::Watch(Transport& transport, Source source, Sink& sink, uint64_t jitter)
    : state_(std::make_unique<State>(transport, std::move(source), sink, jitter)) {}

Watch::~Watch() = default;

void Watch::Advance(Time now) {
  State& s = *state_;
  s.now = now;
  if (s.under_way) return;
  if (std::exchange(s.stream, nullptr) && !s.news && now >= s.opened + kQuietStream) {
    s.step = State::Step::kList;
  }
  if (s.pause) s.due = now + *std::exchange(s.pause, std::nullopt);
  if (now < *s.due) return;
  s.under_way = true;
  if (s.step == State::Step::kWatch) {
    s.OpenStream();
  } else {
    s.AskForPage();
  }
}

std::optional<Time> Watch::next() const {
  if (state_->under_way) return std::nullopt;
  return state_->pause ? state_->now : state_->due;
}

bool Watch::synced() const { return state_->synced && !behind(); }
bool Watch::behind() const { return state_->behind_since.has_value(); }
bool Watch::rolled_back() const { return state_->rolled_back; }

void Watch::ListAgain() {
  State& s = *state_;
  s.synced = false;
  s.again = s.under_way && (s.step == State::Step::kList || s.step == State::Step::kPage);
  if (s.again) return;
  s.stream.reset();
  s.Next(State::Step::kList, Duration(0));
}

}  // namespace kube
