#include "kube/lease.h"

#include <fmt/core.h>

#include "base/json.h"
#include "kube/api.h"

namespace kube {
namespace {

using base::Json;
using base::JsonObject;

constexpr std::string_view kVersion = "coordination.k8s.io/v1";
constexpr base::Duration kLong = std::chrono::seconds(15);
constexpr base::Duration kDeadline = std::chrono::seconds(10);
constexpr base::Duration kEvery = std::chrono::seconds(2);
constexpr base::Duration kPatience = std::chrono::seconds(5);

}  // namespace

struct Lease::State {
  Transport& transport;
  const Options options;
  base::Time now;
  base::Time next;    // when to look, or to renew
  bool busy = false;  // a request is under way
  bool resigned = false;

  bool looked = false;  // `object` is what the server has, as far as we know
  Json object;          // null: there is none
  std::string holder;
  // When the lease was last seen to change, by our own clock: those of others are not trusted.
  base::Time changed;
  std::string mark;    // tells one state of the lease from the next
  base::Time renewed;  // by us: when that request was sent
  std::string trouble;

  bool Ours() const { return looked && holder == options.identity; }
  bool Free() const { return looked && (holder.empty() || now >= changed + kLong); }

  void Learn(Json read) {
    looked = true;
    object = std::move(read);
    const Json* spec = base::Find(object, "spec");
    holder = spec ? base::StringOr(*spec, "holderIdentity") : "";
    const std::string seen = holder + (spec ? base::StringOr(*spec, "renewTime") : "");
    if (seen == mark) return;
    mark = seen;
    changed = now;
  }

  // The lease as it is to be, held by `who`; nobody, when that is empty.
  Request Write(const std::string& who) const {
    const bool there = object.is_object();
    JsonObject metadata = {{"name", options.name}, {"namespace", options.name_space}};
    JsonObject spec;
    if (there) {
      const Json* had = base::Find(object, "metadata");
      metadata["resourceVersion"] = had ? base::StringOr(*had, "resourceVersion") : "";
      had = base::Find(object, "spec");
      if (had && had->is_object()) spec = had->get_object();
    }
    const std::string time = base::FormatTimeMicro(now);
    if (holder != who) {
      spec["acquireTime"] = time;
      spec["leaseTransitions"] = base::IntOr(spec, "leaseTransitions") + there;
    }
    spec["holderIdentity"] = who;
    spec["leaseDurationSeconds"] = std::chrono::duration_cast<std::chrono::seconds>(kLong).count();
    spec["renewTime"] = time;
    const Json lease = JsonObject{{"apiVersion", kVersion},
                                  {"kind", "Lease"},
                                  {"metadata", std::move(metadata)},
                                  {"spec", std::move(spec)}};
    return {there ? "PUT" : "POST",
            Path(kVersion, "leases", options.name_space, there ? options.name : ""),
            "application/json", base::CompactJson(lease)};
  }

  void Answered(bool write, base::Time asked, base::Result<Response> response) {
    busy = false;
    if (!response) {
      trouble = response.error().text();
      return;
    }
    const auto error = ErrorOf(*response);
    const bool missing = error && error->kind() == base::ErrorKind::kNotFound;
    const bool beaten = error && error->kind() == base::ErrorKind::kTaken;
    trouble = error && !missing && !beaten ? error->text() : "";
    if (error) {
      looked = missing && !write;  // else look at it again
      object = nullptr;
      holder.clear();
    } else if (auto read = base::ParseJson(response->body)) {
      Learn(std::move(*read));
      if (write && Ours()) renewed = asked;
    }
    if (!write && Free()) next = now;  // take it at once
  }
};

Lease::Lease(Transport& transport, Options options)
    : state_(
          std::make_shared<State>(State{.transport = transport, .options = std::move(options)})) {}
Lease::~Lease() = default;

void Lease::Advance(base::Time now) {
  State& s = *state_;
  s.now = now;
  if (s.busy || s.resigned || now < s.next) return;
  s.next = now + kEvery;
  s.busy = true;
  const bool write = s.Ours() || s.Free();
  s.transport.Send(
      write ? s.Write(s.options.identity)
            : Request{.path = Path(kVersion, "leases", s.options.name_space, s.options.name)},
      kPatience, [state = state_, write, now](base::Result<Response> response) {
        state->Answered(write, now, std::move(response));
      });
}

std::optional<base::Time> Lease::next() const {
  if (state_->busy || state_->resigned) return std::nullopt;
  return state_->next;
}

bool Lease::leads() const {
  return !state_->resigned && state_->Ours() && state_->now < state_->renewed + kDeadline;
}

const std::string& Lease::holder() const { return state_->holder; }
const std::string& Lease::trouble() const { return state_->trouble; }

void Lease::Resign(base::Time now) {
  State& s = *state_;
  s.now = now;
  const bool held = leads();
  s.resigned = true;
  if (held) s.transport.Send(s.Write(""), kPatience, [](base::Result<Response>) {});
}

}  // namespace kube
