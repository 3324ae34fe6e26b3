#include "cli/job_follow.h"

#include <algorithm>

#include <fmt/core.h>

#include "backend/cluster/objects.h"
#include "cli/queue.h"
#include "core/wishes.h"
#include "kube/api.h"

namespace cli {

using backend::cluster::Pod;
using backend::cluster::StoredJob;
using base::Time;

JobFollow::JobFollow(kube::Transport& jobs, kube::Transport& pods, const std::string& name_space,
                     const std::string& name)
    : key_{name_space, name},
      jobs_(backend::cluster::ReadJob, [this](const auto&) { news_ = true; }),
      pods_(backend::cluster::ReadPod, [this](const auto&) { news_ = true; }),
      job_watch_(jobs,
                 {.path = kube::Path(api::kApiVersion, "tfjobs", name_space),
                  .field_selector = "metadata.name=" + name},
                 jobs_, 0),
      pod_watch_(pods,
                 {.path = kube::Path("v1", "pods", name_space),
                  .label_selector = fmt::format("{}={}", backend::cluster::kJobLabel, name)},
                 pods_, 0) {}

void JobFollow::Advance(Time now) {
  if (synced() && IsDecided() && !PodsAreCurrent()) {
    listed_for_ = job()->version;
    pod_watch_.ListAgain();
  }
  job_watch_.Advance(now);
  pod_watch_.Advance(now);
}

std::optional<Time> JobFollow::next() const {
  const auto a = job_watch_.next(), b = pod_watch_.next();
  return a && b ? std::min(*a, *b) : a ? a : b;
}

const StoredJob* JobFollow::job() const { return jobs_.Find(key_); }

std::vector<const Pod*> JobFollow::pods() const {
  std::vector<const Pod*> out = pods_.Of(key_);
  const StoredJob* stored = job();
  std::erase_if(out, [&](const Pod* pod) {
    return stored && backend::cluster::IsOfAnother(*pod, stored->uid);
  });
  return out;
}

bool JobFollow::AnyPodLives() const {
  return std::ranges::any_of(pods(), [](const Pod* pod) { return !pod->finished; });
}

// It has ended or is suspended, whatever of it still runs.
bool JobFollow::IsDecided() const {
  const StoredJob* stored = job();
  if (!stored) return false;
  const api::Job& value = *stored->value;
  if (value.extensions.life > value.status.life) return false;  // it is to run again
  return api::IsTerminal(value.status) ||
         (api::Has(value.status, "Suspended") && value.spec.run_policy.suspend);
}

// Seen as they were at the job's version or later. A list that was asked for since is believed
// whatever its version: pods may be kept in another store than jobs.
bool JobFollow::PodsAreCurrent() const {
  return std::max(pods_.heard(), listed_for_) >= job()->version;
}

bool JobFollow::over() const {
  if (!synced() || !IsDecided() || !PodsAreCurrent()) return false;
  const api::Job& value = *job()->value;
  // By cleanPodPolicy None, what still runs at the end runs on, a parameter server for ever.
  const bool left_alone = api::IsTerminal(value.status) && !core::WasStopped(value.status) &&
                          !value.extensions.end_leftovers &&
                          value.spec.run_policy.clean_pod_policy == api::CleanPodPolicy::kNone;
  return left_alone || !AnyPodLives();
}

bool JobFollow::IsQueued() const { return job() && !QueueOf(*job()->value).empty(); }

std::string JobFollow::trouble() const {
  return jobs_.trouble().empty() ? pods_.trouble() : jobs_.trouble();
}

}  // namespace cli
