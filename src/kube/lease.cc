// One request at a time: read the lease, or write it. What an answer means is decided in Advance,
// which knows the time.
#include "kube/lease.h"

#include <algorithm>

#include "base/json.h"
#include "kube/api.h"

namespace kube {
namespace {

using base::Duration;
using base::Json;
using base::JsonObject;
using base::Time;
using namespace std::chrono_literals;

// What a lease of somebody else may say at most.
constexpr Duration kLongestForeign = 5min;

const Json& SpecOf(const Json& lease) {
  static const Json none = JsonObject();
  const Json* spec = base::Find(lease, "spec");
  return spec && spec->is_object() ? *spec : none;
}

}  // namespace

struct Lease::State {
  enum class Asked { kNothing, kRead, kWrite, kRelease };

  Transport& transport;
  const Options options;
  std::shared_ptr<State*> self;  // what answers that outlive us find empty

  Json lease;  // as last seen; null: not seen, or not there
  bool exists = false;
  Time seen{};  // when it last changed
  bool leads = false;
  Time renewed{};  // when the last write that got through was sent
  Time sent{};
  Asked asked = Asked::kNothing;
  std::optional<base::Result<Response>> answer;
  Time due{};
  Time now{};
  bool releasing = false, released = false;
  std::string holder, trouble;

  State(Transport& door, Options given)
      : transport(door), options(std::move(given)), self(std::make_shared<State*>(this)) {}
  ~State() { *self = nullptr; }

  void Ask(Asked what, Request request);
  void Read();
  void Write(bool release);
  void TakeAnswer();
  void See(const Json& object);
  bool IsFree() const;
  void Fail(const base::Error& error) {
    trouble = error.text();
    due = now + options.retry;
  }
};

void Lease::State::Ask(Asked what, Request request) {
  asked = what;
  sent = now;
  transport.Send(std::move(request), options.renew_within / 2,
                 [weak = std::weak_ptr(self)](auto result) {
                   const auto alive = weak.lock();
                   if (alive && *alive) (*alive)->answer = std::move(result);
                 });
}

void Lease::State::Read() {
  Ask(Asked::kRead, {.path = Path("coordination.k8s.io/v1", "leases", options.ns, options.name)});
}

void Lease::State::Write(bool release) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(options.duration).count();
  const Json& old = SpecOf(lease);
  const bool changes_hands = holder != options.identity;
  JsonObject spec{{"holderIdentity", release ? "" : options.identity},
                  {"leaseDurationSeconds", release ? 1 : seconds},
                  {"acquireTime",
                   changes_hands ? base::FormatTimeMicro(now)
                                 : base::StringOr(old, "acquireTime", base::FormatTimeMicro(now))},
                  {"renewTime", base::FormatTimeMicro(now)},
                  {"leaseTransitions",
                   base::IntOr(old, "leaseTransitions") + (exists && changes_hands ? 1 : 0)}};
  JsonObject object = exists ? lease.get_object() : JsonObject();
  if (!exists) {
    object = {{"apiVersion", "coordination.k8s.io/v1"},
              {"kind", "Lease"},
              {"metadata", JsonObject{{"name", options.name}, {"namespace", options.ns}}}};
  }
  object["spec"] = std::move(spec);
  Ask(release ? Asked::kRelease : Asked::kWrite,
      {.method = exists ? "PUT" : "POST",
       .path = Path("coordination.k8s.io/v1", "leases", options.ns, exists ? options.name : ""),
       .content_type = "application/json",
       .body = base::CompactJson(object)});
}

void Lease::State::See(const Json& object) {
  if (!exists || object != lease) seen = now;
  exists = true;
  lease = object;
  holder = base::StringOr(SpecOf(lease), "holderIdentity");
}

bool Lease::State::IsFree() const {
  if (!exists || holder.empty() || holder == options.identity) return true;
  const Duration said = std::chrono::seconds(
      std::clamp<int64_t>(base::IntOr(SpecOf(lease), "leaseDurationSeconds"), 1, 300));
  return now >= seen + std::min(said, kLongestForeign);
}

void Lease::State::TakeAnswer() {
  const Asked what = std::exchange(asked, Asked::kNothing);
  const auto response = *std::exchange(answer, std::nullopt);
  if (what == Asked::kRelease) {  // whatever came of it: the others wait a little then
    released = true;
    return;
  }
  if (!response) return Fail(response.error());
  if (what == Asked::kRead && response->status == 404) {
    exists = false;
    lease = nullptr;
    holder.clear();
  } else if (auto error = ErrorOf(*response)) {
    // Somebody else was quicker, or it was deleted: it is not as we thought.
    if (response->status == 409 || response->status == 404) leads = exists = false;
    return Fail(*error);
  } else {
    const auto object = base::ParseJson(response->body);
    if (!object || !object->is_object()) {
      return Fail(base::Error(base::ErrorKind::kUnavailable, "the answer is no Lease"));
    }
    See(*object);
  }
  trouble.clear();
  if (what == Asked::kWrite) {
    leads = holder == options.identity;
    renewed = sent;
  }
  const bool writes_now = what == Asked::kRead && IsFree();
  due = writes_now ? now : now + options.retry;
  if (what == Asked::kRead && holder != options.identity) leads = false;
}

Lease::Lease(Transport& transport, Options options)
    : state_(std::make_unique<State>(transport, std::move(options))) {}

Lease::~Lease() = default;

void Lease::Advance(Time now) {
  State& s = *state_;
  s.now = now;
  bool just_read = false;
  if (s.answer) {
    just_read = s.asked == State::Asked::kRead && *s.answer &&
                ((*s.answer)->status == 200 || (*s.answer)->status == 404);
    s.TakeAnswer();
  }
  if (s.leads && now >= s.renewed + s.options.renew_within) s.leads = false;
  if (s.asked != State::Asked::kNothing || s.released) return;
  if (s.releasing) {
    if (s.exists && s.holder == s.options.identity) return s.Write(true);
    s.released = true;
    return;
  }
  if (now < s.due) return;
  const bool renews = s.leads && s.exists;
  if (renews || (just_read && s.IsFree())) return s.Write(false);
  s.Read();
}

Time Lease::next() const {
  const State& s = *state_;
  if (s.answer || (s.releasing && !s.released && s.asked == State::Asked::kNothing)) return s.now;
  const Time lost = s.leads ? s.renewed + s.options.renew_within : Time::max();
  const bool waits = s.asked != State::Asked::kNothing || s.released;
  return std::min(waits ? Time::max() : s.due, lost);
}

bool Lease::leads() const { return state_->leads && !state_->releasing; }
const std::string& Lease::holder() const { return state_->holder; }
const std::string& Lease::trouble() const { return state_->trouble; }
void Lease::Release() { state_->releasing = true; }
bool Lease::released() const { return state_->released; }

}  // namespace kube
