// An entry is one Event object: what it should say, and what the server knows of it. Between the
// two stands a queue of entries that differ. An event that happens often while its entry waits or
// is under way only raises the entry's count, so that a flood becomes few requests, and the patch
// of an event never overtakes its creation.
#include "kube/events.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>

#include "kube/api.h"
#include "kube/lru.h"

namespace kube {
namespace {

using base::Duration;
using base::JsonObject;
using base::Time;
using namespace std::chrono_literals;

// client-go's numbers.
constexpr size_t kMostEntries = 4096;
constexpr size_t kSimilar = 10;
constexpr Duration kSimilarWithin = 10min;
constexpr double kBurst = 25;
constexpr Duration kRefill = 5min;
constexpr size_t kMostMessage = 1024;
// Ours.
constexpr Duration kTimeout = 10s;
constexpr int kTries = 5;
constexpr Duration kFirstPause = 1s;
constexpr Duration kLongestPause = 1min;
// Names have at most 253 bytes; ours end with a dot and 16 digits.
constexpr size_t kMostObjectName = 253 - 17;

// At most `most` bytes, cut between characters.
std::string Cut(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most;
  while (end > 0 && (text[end] & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

struct Bucket {
  double tokens = kBurst;
  Time filled{};

  bool Take(Time now) {
    const double passed = std::max<double>(0, static_cast<double>((now - filled).count()));
    tokens = std::min(kBurst, tokens + passed / static_cast<double>(kRefill.count()));
    filled = now;
    if (tokens < 1) return false;
    tokens -= 1;
    return true;
  }
};

struct Similar {
  std::set<std::string> messages;
  Time last{};
};

struct Entry {
  About about;
  std::string type, reason, message;
  std::string name;
  int64_t count = 0;
  Time first{}, last{};

  bool exists = false;     // on the server
  int64_t sent_count = 0;  // what it knows, or is being told
  bool queued = false;
  bool under_way = false;
  int failures = 0;  // in a row

  bool IsBusy() const { return queued || under_way; }
};

}  // namespace

struct Events::State {
  Transport& transport;
  const std::string component;
  const size_t at_once;
  std::shared_ptr<State*> self;  // what answers that outlive us find empty

  Lru<Bucket> buckets{kMostEntries};
  Lru<Similar> similar{kMostEntries};
  Lru<Entry> entries{kMostEntries};
  std::multimap<Time, std::string> queue;  // when due; keys of entries
  size_t under_way = 0;
  uint64_t dropped = 0;
  uint64_t names = 0;
  Time now{};

  State(Transport& door, std::string who, size_t most)
      : transport(door),
        component(std::move(who)),
        at_once(most),
        self(std::make_shared<State*>(this)) {}
  ~State() { *self = nullptr; }

  std::string NewName(const About& about) {
    const auto stamp =
        static_cast<uint64_t>(now.time_since_epoch().count()) * 1000 + names++ % 1000;
    return fmt::format("{}.{:016x}", Cut(about.name, kMostObjectName), stamp);
  }

  std::string NamespaceOf(const Entry& entry) const {
    return entry.about.ns.empty() ? "default" : entry.about.ns;
  }

  void Queue(const std::string& key, Entry& entry, Time due) {
    if (!std::exchange(entry.queued, true)) queue.emplace(due, key);
  }

  Request RequestFor(Entry& entry);
  void Tell(const std::string& key, Entry& entry);
  void Take(const std::string& key, const base::Result<Response>& answer);
};

Request Events::State::RequestFor(Entry& entry) {
  if (entry.exists) {
    return {.method = "PATCH",
            .path = Path("v1", "events", NamespaceOf(entry), entry.name),
            .content_type = "application/merge-patch+json",
            .body = base::CompactJson(JsonObject{{"count", entry.count},
                                                 {"message", entry.message},
                                                 {"lastTimestamp", base::FormatTime(entry.last)}})};
  }
  // Kept when it is sent again: one that got through without an answer is not to be doubled.
  if (entry.name.empty()) entry.name = NewName(entry.about);
  const About& about = entry.about;
  const JsonObject event{
      {"apiVersion", "v1"},
      {"kind", "Event"},
      {"metadata", JsonObject{{"name", entry.name}, {"namespace", NamespaceOf(entry)}}},
      {"involvedObject", JsonObject{{"apiVersion", about.api_version},
                                    {"kind", about.kind},
                                    {"namespace", about.ns},
                                    {"name", about.name},
                                    {"uid", about.uid}}},
      {"type", entry.type},
      {"reason", entry.reason},
      {"message", entry.message},
      {"source", JsonObject{{"component", component}}},
      {"reportingComponent", component},
      {"count", entry.count},
      {"firstTimestamp", base::FormatTime(entry.first)},
      {"lastTimestamp", base::FormatTime(entry.last)}};
  return {.method = "POST",
          .path = Path("v1", "events", NamespaceOf(entry)),
          .content_type = "application/json",
          .body = base::CompactJson(event)};
}

void Events::State::Tell(const std::string& key, Entry& entry) {
  entry.sent_count = entry.count;
  entry.under_way = true;
  ++under_way;
  transport.Send(RequestFor(entry), kTimeout, [weak = std::weak_ptr(self), key](auto answer) {
    const auto alive = weak.lock();
    if (alive && *alive) (*alive)->Take(key, answer);
  });
}

void Events::State::Take(const std::string& key, const base::Result<Response>& answer) {
  --under_way;
  Entry* entry = entries.Find(key);  // busy ones are not forgotten
  entry->under_way = false;
  const int status = answer ? answer->status : 0;
  if (entry->exists && status == 404) {  // events live for an hour or so: tell it as a new one
    entry->exists = false;
    entry->name.clear();
    return Queue(key, *entry, now);
  }
  // 409: it was created by an attempt whose answer got lost.
  if ((status >= 200 && status < 300) || (!entry->exists && status == 409)) {
    entry->exists = true;
    entry->failures = 0;
    if (entry->count != entry->sent_count) Queue(key, *entry, now);
    return;
  }
  const bool may_pass = status == 0 || status == 429 || status >= 500;
  if (may_pass && ++entry->failures < kTries) {
    Duration pause = kFirstPause * (1 << entry->failures);
    if (answer && answer->retry_after) {
      pause = std::max(pause, std::min(*answer->retry_after, kLongestPause));
    }
    return Queue(key, *entry, now + pause);
  }
  ++dropped;
  entry->failures = 0;
}

Events::Events(Transport& transport, std::string component, size_t at_once)
    : state_(std::make_unique<State>(transport, std::move(component), at_once)) {}

Events::~Events() = default;

void Events::Record(const About& about, const std::string& type, const std::string& reason,
                    const std::string& message, Time now) {
  State& s = *state_;
  s.now = now;
  const std::string object = base::CompactJson(
      base::JsonArray{about.api_version, about.kind, about.ns, about.name, about.uid});
  const std::string kind = object + base::CompactJson(base::JsonArray{type, reason});
  std::string text = Cut(message, kMostMessage);
  std::string key = kind + text;

  Similar& similar = s.similar.FindOrMake(kind);
  if (now - similar.last > kSimilarWithin) similar.messages.clear();
  similar.last = now;
  similar.messages.insert(text);
  if (similar.messages.size() >= kSimilar) {
    similar.messages.erase(similar.messages.begin());
    text = Cut("(combined from similar events): " + message, kMostMessage);
    key = kind;
  }
  if (!s.buckets.FindOrMake(object + type).Take(now)) {
    ++s.dropped;
    return;
  }
  Entry* entry = s.entries.FindOrMake(key, [](const Entry& e) { return !e.IsBusy(); });
  if (!entry) {
    ++s.dropped;
    return;
  }
  if (entry->count == 0) {
    *entry = {.about = about, .type = type, .reason = Cut(reason, 128), .first = now};
  }
  ++entry->count;
  entry->message = std::move(text);
  entry->last = now;
  if (!entry->IsBusy()) s.Queue(key, *entry, now);
}

void Events::Advance(Time now) {
  State& s = *state_;
  s.now = now;
  while (!s.queue.empty() && s.under_way < s.at_once) {
    const auto [due, key] = *s.queue.begin();
    if (now < due) return;
    s.queue.erase(s.queue.begin());
    Entry& entry = *s.entries.Find(key);  // busy ones are not forgotten
    entry.queued = false;
    s.Tell(key, entry);
  }
}

std::optional<Time> Events::next() const {
  const State& s = *state_;
  if (s.under_way >= s.at_once || s.queue.empty()) return std::nullopt;
  return s.queue.begin()->first;
}

bool Events::idle() const { return state_->queue.empty() && state_->under_way == 0; }

uint64_t Events::dropped() const { return state_->dropped; }

}  // namespace kube
