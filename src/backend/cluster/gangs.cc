#include "backend/cluster/gangs.h"

#include <algorithm>
#include <tuple>

#include "base/json.h"
#include "base/strings.h"
#include "core/restart_policy.h"

namespace backend::cluster {
namespace {

using base::At;
using base::Json;
using namespace std::chrono_literals;

// How long a gang gets no more places before it may back off. The scheduler itself tries again
// within some seconds after anything has changed.
constexpr base::Duration kPatience = 10s;
// Gangs that wait nearly as long as the first are considered with it. One by one, all of them would
// back off, though the places of some suffice for the others.
constexpr base::Duration kTogether = 2s;
// For the oldest of those that back off; the others return one after another.
constexpr base::Duration kFirstPause = 10s;

// "0/3 nodes are available: 1 Insufficient cpu, 2 Too many pods. preemption: ..."
std::set<std::string> LackedResources(std::string_view message) {
  constexpr std::string_view kInsufficient = "Insufficient ";
  std::set<std::string> out;
  for (size_t at = message.find(kInsufficient); at != std::string_view::npos;
       at = message.find(kInsufficient, at)) {
    at += kInsufficient.size();
    std::string_view name = message.substr(at, message.find_first_of(", ;", at) - at);
    while (name.ends_with('.')) name.remove_suffix(1);
    out.emplace(name);
  }
  if (message.find("Too many pods") != std::string_view::npos) out.insert("pods");
  return out;
}

void ReadTemplate(const Json& pod_template, Gang& gang) {
  const Json& spec = At(pod_template, "spec");
  if (const Json& containers = At(spec, "containers"); containers.is_array()) {
    for (const Json& container : containers.get_array()) {
      for (const char* kind : {"requests", "limits"}) {
        const Json& resources = At(At(container, "resources"), kind);
        if (!resources.is_object()) continue;
        for (const auto& entry : resources.get_object()) gang.requests.emplace(entry.key());
      }
    }
  }
  if (const Json& selector = At(spec, "nodeSelector"); selector.is_object()) {
    for (const auto& [key, value] : selector.get_object()) {
      if (value.is_string()) gang.node_selector[key] = value.get_string();
    }
  }
}

// Its pods are placed by the scheduler that comes with Kubernetes.
bool IsPlacedOneByOne(const Json& pod_template) {
  const std::string name = base::StringOr(At(pod_template, "spec"), "schedulerName");
  return name.empty() || name == "default-scheduler";
}

bool Competes(const Gang& older, const Gang& younger) {
  const bool same_nodes = std::ranges::none_of(older.node_selector, [&](const auto& entry) {
    const auto other = younger.node_selector.find(entry.first);
    return other != younger.node_selector.end() && other->second != entry.second;
  });
  return same_nodes && std::ranges::any_of(older.lacks, [&](const std::string& resource) {
           return younger.requests.contains(resource);
         });
}

}  // namespace

std::optional<Gang> GangOf(const Key& key, const api::Job& job, const std::vector<Pod>& pods) {
  const api::JobStatus& status = job.status;
  const api::Condition* created = api::FindCondition(status, "Created");
  if (!created || api::IsTerminal(status) || job.spec.run_policy.suspend ||
      job.extensions.elastic || job.spec.enable_dynamic_worker) {
    return std::nullopt;
  }
  // A job that lost a replica after all of them had a place goes on without it, unless that is a
  // parameter server or the coordinator.
  const auto in_gang = [](api::ReplicaId id) { return core::InGang(id.role); };
  const bool has_run =
      std::ranges::any_of(status.units, [&](const auto& e) { return in_gang(e.first); }) ||
      std::ranges::any_of(status.completed, in_gang);
  const std::set<api::ReplicaId> coordinators = core::Coordinators(job);
  if (has_run && coordinators.empty()) return std::nullopt;
  const auto needs = [&](api::ReplicaId id) {
    return !has_run || ((id.role == api::Role::kPs || coordinators.contains(id)) &&
                        !status.completed.contains(id));
  };
  Gang out{.job = key, .created = created->last_transition, .requests = {"pods"}};
  for (const auto& [role, spec] : job.spec.replicas) {
    if (!core::InGang(role)) continue;
    if (!IsPlacedOneByOne(spec.pod_template)) return std::nullopt;
    for (int32_t i = 0; i < spec.replicas; ++i) out.missing += needs({role, i});
  }
  for (const Pod& pod : pods) {
    const api::ReplicaId id = pod.replica.id;
    const auto alone = status.units.find(id);
    const int32_t attempt = (alone == status.units.end() ? status.gang : alone->second).attempt;
    if (pod.owner != job.metadata.uid || !core::InGang(id.role) || pod.replica.attempt != attempt ||
        pod.replica.deleting || (has_run && core::HasEnded(pod.replica))) {
      continue;
    }
    out.priority = std::max(out.priority, pod.priority);
    if (!pod.node.empty()) {
      ++out.placed;
      out.missing -= needs(id) && out.missing > 0;
    } else if (needs(id) && pod.trouble == "Unschedulable") {
      out.lacks.merge(LackedResources(pod.trouble_message));
    }
  }
  if (out.missing == 0) return std::nullopt;
  for (const auto& [role, spec] : job.spec.replicas) {
    if (core::InGang(role)) ReadTemplate(spec.pod_template, out);
  }
  // Admission may add requests to a pod: those of a LimitRange, or of a sidecar.
  out.requests.insert(out.lacks.begin(), out.lacks.end());
  return out;
}

std::vector<Key> GangsToBackOff(std::vector<Gang> gangs) {
  std::ranges::sort(
      gangs, {}, [](const Gang& g) { return std::tuple(-g.priority, g.created, g.job); });
  const auto oldest = std::ranges::find_if(gangs, [](const Gang& g) { return g.placed > 0; });
  if (oldest == gangs.end()) return {};
  std::vector<const Gang*> others;
  size_t freed = 0;
  for (auto gang = std::next(oldest); gang != gangs.end(); ++gang) {
    if (!Competes(*oldest, *gang)) continue;
    others.push_back(&*gang);
    freed += gang->placed;
  }
  if (freed == 0) return {};  // those that hold nothing are in nobody's way
  // As many as the places suffice for, as far as one place is like another, stay.
  size_t needed = oldest->missing;
  auto first = others.begin();
  while (first != others.end() && (*first)->placed > 0 &&
         freed - (*first)->placed >= needed + (*first)->missing) {
    freed -= (*first)->placed;
    needed += (*first)->missing;
    ++first;
  }
  std::vector<Key> out;
  for (; first != others.end(); ++first) out.push_back((*first)->job);
  return out;
}

void GangAdmission::Due(base::Time when) { due_ = due_ ? std::min(*due_, when) : when; }

void GangAdmission::Observe(const Key& job, std::optional<Gang> gang, bool away, base::Time now) {
  if (away && gang) {
    waiting_.erase(job);
    away_[job] = gang->created;
    if (waiting_.empty()) Due(now);
    return;
  }
  away_.erase(job);
  if (!gang) {
    times_.erase(job);
    if (waiting_.erase(job) && waiting_.empty() && !away_.empty()) Due(now);
    return;
  }
  const auto known = waiting_.find(job);
  const bool same = known != waiting_.end() && known->second.gang.placed == gang->placed &&
                    known->second.gang.missing == gang->missing;
  const bool ready = !gang->lacks.empty();
  const bool was_ready = known != waiting_.end() && !known->second.gang.lacks.empty();
  const base::Time since = same && ready == was_ready ? known->second.since : now;
  waiting_[job] = {*std::move(gang), since};
  if (ready) Due(std::max(since + kPatience, now));
}

void GangAdmission::Forget(const Key& job) {
  if (waiting_.erase(job) && waiting_.empty() && !away_.empty()) due_ = base::Time();
  away_.erase(job);
  starts_.erase(job);
  times_.erase(job);
}

std::vector<Key> GangAdmission::Advance(base::Time now) {
  if (!due_ || now < *due_) return {};
  due_.reset();
  if (waiting_.empty()) {
    if (away_.empty()) return {};
    const auto oldest =
        std::ranges::min_element(away_, {}, [](const auto& entry) { return entry.second; });
    const Key job = oldest->first;
    away_.erase(oldest);
    starts_[job] = now;
    return {job};
  }
  std::vector<Gang> ripe;
  for (const auto& [job, one] : waiting_) {
    if (one.gang.lacks.empty()) continue;
    const base::Time when = one.since + kPatience;
    when <= now + kTogether ? ripe.push_back(one.gang) : Due(when);
  }
  std::vector<Key> out = GangsToBackOff(std::move(ripe));
  int place = 1;
  for (const Key& job : out) {
    const base::Duration pause = kFirstPause * place++ * (1 << std::min(times_[job]++, 5));
    starts_[job] = now + std::min(pause, core::kLongestPause);
    waiting_.erase(job);
  }
  return out;
}

std::optional<base::Time> GangAdmission::TakeStart(const Key& job) {
  const auto found = starts_.find(job);
  if (found == starts_.end()) return std::nullopt;
  const base::Time when = found->second;
  starts_.erase(found);
  return when;
}

}  // namespace backend::cluster
