#include "backend/cluster/operator.h"

#include <algorithm>
#include <functional>

#include <fmt/core.h>

#include "backend/cluster/pod_group.h"
#include "core/wishes.h"
#include "kube/api.h"

namespace backend::cluster {
namespace {

const std::string kOurs = fmt::format("{}={}", kOperatorLabel, kOperatorName);

// When the streams of this process end differs from those of another.
uint64_t Jitter(const std::string& identity, std::string_view of) {
  return std::hash<std::string>()(identity + std::string(of));
}

}  // namespace

struct Operator::Parts : Chronicle {
  Parts(kube::Transport& transport, Options given, Observer& watched)
      : options(std::move(given)),
        observer(watched),
        pacer(transport),
        events(pacer.idle(), "tfjob-controller"),
        turns({jobs, pods, services, pod_groups}, pacer, *this, options.settings, options.data),
        job_watch(transport,
                  {.path = kube::Path(api::kApiVersion, "tfjobs", options.name_space),
                   .field_selector = options.job.empty() ? "" : "metadata.name=" + options.job},
                  jobs, Jitter(options.identity, "tfjobs")),
        pod_watch(transport, {kube::Path("v1", "pods", options.name_space), Selector()}, pods,
                  Jitter(options.identity, "pods")),
        service_watch(transport, {kube::Path("v1", "services", options.name_space), Selector()},
                      services, Jitter(options.identity, "services")) {
    if (!options.settings.gang_scheduler.empty()) {
      group_watch.emplace(transport,
                          kube::Watch::Source{.path = kube::Path(PodGroupVersion(options.settings),
                                                                 "podgroups", options.name_space)},
                          pod_groups, Jitter(options.identity, "podgroups"));
    }
    if (!options.identity.empty()) {
      lease.emplace(transport, kube::Lease::Options{.ns = options.lease_namespace,
                                                    .name = options.lease_name,
                                                    .identity = options.identity});
    }
  }

  // Of the pods and services that are ours.
  std::string Selector() const {
    return options.job.empty() ? kOurs : fmt::format("{},{}={}", kOurs, kJobLabel, options.job);
  }

  void Wake(const Key& job) { turns.Wake(job); }

  void Tell(const api::Job& job, const core::Event& event) override {
    events.Record({.api_version = std::string(api::kApiVersion),
                   .kind = std::string(api::kKind),
                   .ns = job.metadata.name_space,
                   .name = job.metadata.name,
                   .uid = job.metadata.uid},
                  event.warning ? "Warning" : "Normal", event.reason, event.message, now);
  }
  void Published(const api::JobStatus& before, const api::Job& after) override {
    observer.Published(before, after);
  }
  void Deleted(const api::Job& job) override { observer.Deleted(job); }
  void TurnOver(bool failed, base::Duration took) override { observer.TurnOver(failed, took); }

  // Every collection that there is, in any order.
  template <typename Visit>
  void ForEachWatch(Visit visit) {
    visit(job_watch);
    visit(pod_watch);
    visit(service_watch);
    if (group_watch) visit(*group_watch);
  }
  bool Synced() {
    bool synced = true;
    ForEachWatch([&](const kube::Watch& watch) { synced &= watch.synced(); });
    return synced;
  }
  bool Leads() const { return !lease || lease->leads(); }

  const Options options;
  base::Time now;  // of the last Advance
  Observer& observer;
  const std::function<void(const Key&)> wake = [this](const Key& job) { Wake(job); };
  Collection<StoredJob> jobs{ReadJob, wake};
  Collection<Pod> pods{ReadPod, wake};
  Collection<Service> services{ReadService, wake};
  Collection<PodGroup> pod_groups{ReadPodGroup, wake};
  Pacer pacer;
  kube::Events events;
  Turns turns;
  kube::Watch job_watch;
  kube::Watch pod_watch;
  kube::Watch service_watch;
  std::optional<kube::Watch> group_watch;  // where there is a gang scheduler
  std::optional<kube::Lease> lease;
};

Operator::Operator(kube::Transport& transport, Options options, Observer& observer)
    : parts_(std::make_unique<Parts>(transport, std::move(options), observer)) {}
Operator::~Operator() = default;

void Operator::Advance(base::Time now) {
  parts_->now = now;
  parts_->ForEachWatch([&](kube::Watch& watch) { watch.Advance(now); });
  if (parts_->lease) parts_->lease->Advance(now);
  // What is missing from an incomplete list would be made a second time.
  if (parts_->Synced() && parts_->Leads()) parts_->turns.Advance(now);
  parts_->events.Advance(now);
  parts_->pacer.Advance(now);
}

void Operator::Hear(const std::vector<core::Event>& events) {
  const Key key{parts_->options.name_space, parts_->options.job};
  if (const StoredJob* job = parts_->jobs.Find(key)) {
    for (const core::Event& event : events) parts_->Tell(*job->value, event);
  }
  parts_->Wake(key);
}

std::optional<base::Time> Operator::next() const {
  std::optional<base::Time> first;
  const auto consider = [&](std::optional<base::Time> time) {
    if (time && (!first || *time < *first)) first = time;
  };
  parts_->ForEachWatch([&](const kube::Watch& watch) { consider(watch.next()); });
  if (parts_->lease) consider(parts_->lease->next());
  if (parts_->Synced() && parts_->Leads()) consider(parts_->turns.next());
  consider(parts_->pacer.next());
  consider(parts_->events.next());
  return first;
}

bool Operator::synced() const { return parts_->Synced(); }
bool Operator::leads() const { return parts_->Leads(); }

std::string Operator::trouble() const {
  for (const std::string* text : {&parts_->jobs.trouble(), &parts_->pods.trouble(),
                                  &parts_->services.trouble(), &parts_->pod_groups.trouble()}) {
    if (!text->empty()) return *text;
  }
  return parts_->lease ? parts_->lease->trouble() : "";
}

bool Operator::behind() const {
  bool any = false;
  parts_->ForEachWatch([&](const kube::Watch& watch) { any |= watch.behind(); });
  return any;
}

bool Operator::rolled_back() const {
  bool any = false;
  parts_->ForEachWatch([&](const kube::Watch& watch) { any |= watch.rolled_back(); });
  return any;
}

size_t Operator::jobs() const { return parts_->jobs.all().size(); }
size_t Operator::pods() const { return parts_->pods.all().size(); }
size_t Operator::waiting() const { return parts_->turns.waiting() + parts_->pacer.waiting(); }

bool Operator::settled() const {
  if (!parts_->Synced() || waiting() > 0 || !parts_->events.idle()) return false;
  const StoredJob* job = parts_->jobs.Find({parts_->options.name_space, parts_->options.job});
  if (!job) return true;
  const bool lasts =
      !job->value->spec.run_policy.ttl_seconds_after_finished || parts_->options.settings.until_end;
  const bool over = core::IsOver(*job->value) && lasts;
  return over && std::ranges::all_of(parts_->pods.all(), [](const auto& entry) {
           return entry.second.finished && !entry.second.held;
         });
}

void Operator::Resign() {
  if (parts_->lease) parts_->lease->Release();
}

bool Operator::resigned() const { return !parts_->lease || parts_->lease->released(); }

}  // namespace backend::cluster
