#include "backend/sim/kubelet.h"

#include <algorithm>

#include <fmt/core.h>

#include "backend/sim/api_object.h"

namespace backend::sim {
namespace {

using base::Duration;
using base::Json;
using base::JsonArray;
using base::JsonObject;
using namespace std::chrono_literals;

std::string PathOf(const std::string& name_space, const std::string& name,
                   const std::string& subresource = "") {
  return fmt::format("/api/v1/namespaces/{}/pods/{}{}{}", name_space, name,
                     subresource.empty() ? "" : "/", subresource);
}

std::string InSpec(const Json& pod, const char* key) {
  const Json* spec = base::Find(pod, "spec");
  return spec ? base::StringOr(*spec, key) : "";
}

// Of every container, in the same state.
JsonArray ContainerStatuses(const Json& pod, const JsonObject& state, bool ready, int64_t restarts,
                            const JsonObject& last = {}) {
  JsonArray out;
  const Json none = JsonObject();
  const Json* spec = base::Find(pod, "spec");
  for (const Json& container : ArrayAt(spec ? *spec : none, "containers")) {
    out.push_back(JsonObject{{"name", base::StringOr(container, "name")},
                             {"image", base::StringOr(container, "image")},
                             {"imageID", ""},
                             {"ready", ready},
                             {"started", ready},
                             {"restartCount", restarts},
                             {"lastState", last},
                             {"state", state}});
  }
  return out;
}

JsonArray WithCondition(const Json& pod, JsonObject condition) {
  const Json none = JsonObject();
  const Json* status = base::Find(pod, "status");
  JsonArray out = ArrayAt(status ? *status : none, "conditions");
  for (Json& one : out) {
    if (base::StringOr(one, "type") == std::string_view(condition["type"].as_string())) {
      one = std::move(condition);
      return out;
    }
  }
  out.push_back(std::move(condition));
  return out;
}

}  // namespace

Kubelet::Kubelet(Agenda& agenda, ApiServer& server, Random& random)
    : agenda_(agenda), server_(server), random_(random) {
  server.Listen([this](const Change& change) {
    if (change.resource == &kPods) See(change);
  });
}

const Object Kubelet::Pod(const std::string& name_space, const std::string& name) const {
  return server_.store().Get(kPods, KeyOf(name_space, name));
}

void Kubelet::Later(Duration in, const std::string& uid,
                    std::function<void(Run&, const Json&)> deed) {
  agenda_.In(in, [this, uid, deed = std::move(deed)] {
    const auto run = runs_.find(uid);
    if (run == runs_.end()) return;
    const Object pod = Pod(run->second.name_space, run->second.name);
    if (pod && UidOf(*pod) == uid) deed(run->second, *pod);
  });
}

void Kubelet::See(const Change& change) {
  if (!change.after) {
    runs_.erase(UidOf(*change.before));
    return;
  }
  const Json& pod = *change.after;
  const std::string uid = UidOf(pod);
  Run& run = runs_[uid];
  run.name_space = NamespaceOf(pod);
  run.name = NameOf(pod);
  const bool bound = !InSpec(pod, "nodeName").empty();
  if (!bound && !std::exchange(run.binding, true)) {
    Later(random_.Between(10ms, 2s), uid, [this](Run& r, const Json& then) { Bind(r, then); });
  }
  if (bound && !HasEnded(pod) && !std::exchange(run.starting, true)) {
    Later(random_.Between(100ms, 5s), uid, [this](Run& r, const Json& then) {
      if (!IsDeleting(then) && !r.ended && !r.lost) Start(r, then);
    });
  }
  if (bound && IsDeleting(pod)) Stop(uid, pod);
}

void Kubelet::Bind(Run& run, const Json& pod) {
  if (IsDeleting(pod)) return;
  const auto taken = std::ranges::count_if(
      runs_, [](const auto& entry) { return entry.second.bound && !entry.second.ended; });
  if (static_cast<size_t>(taken) < places) {
    run.bound = true;
    server_.Serve({.method = "POST",
                   .path = PathOf(run.name_space, run.name, "binding"),
                   .content_type = "application/json",
                   .body = base::CompactJson(JsonObject{
                       {"metadata", JsonObject{{"name", run.name}, {"uid", UidOf(pod)}}},
                       {"target", JsonObject{{"kind", "Node"}, {"name", "node-1"}}}})});
    return;
  }
  Write(run, pod,
        {{"conditions",
          WithCondition(pod, {{"type", "PodScheduled"},
                              {"status", "False"},
                              {"reason", "Unschedulable"},
                              {"message", "0/1 nodes are available: 1 Too many pods."},
                              {"lastProbeTime", nullptr},
                              {"lastTransitionTime", base::FormatTime(agenda_.now())}})}});
  Later(random_.Between(1s, 5s), UidOf(pod), [this](Run& r, const Json& then) { Bind(r, then); });
}

void Kubelet::Start(Run& run, const Json& pod) {
  run.running = true;
  run.started = agenda_.now();
  const std::string now = base::FormatTime(agenda_.now());
  Write(run, pod,
        {{"phase", "Running"},
         {"startTime", now},
         {"podIP", "10.244.0.1"},
         {"containerStatuses", ContainerStatuses(pod, {{"running", JsonObject{{"startedAt", now}}}},
                                                 true, run.restarts)},
         {"conditions", WithCondition(pod, {{"type", "Ready"},
                                            {"status", "True"},
                                            {"lastProbeTime", nullptr},
                                            {"lastTransitionTime", now}})}});
}

void Kubelet::Write(const Run& run, const Json& pod, JsonObject status) {
  server_.Serve({.method = "PATCH",
                 .path = PathOf(run.name_space, run.name, "status"),
                 .content_type = "application/merge-patch+json",
                 .body = base::CompactJson(JsonObject{{"metadata", JsonObject{{"uid", UidOf(pod)}}},
                                                      {"status", std::move(status)}})});
}

// SIGTERM, and SIGKILL at the end of its grace; then the end is confirmed.
void Kubelet::Stop(const std::string& uid, const Json& pod) {
  Run& run = runs_[uid];
  if (run.lost) return;
  if (run.ended || HasEnded(pod)) {
    if (GraceOf(pod).value_or(0) > 0) Confirm(uid);
    return;
  }
  const base::Time latest = agenda_.now() + std::chrono::seconds(GraceOf(pod).value_or(0));
  if (run.stops && *run.stops <= latest) return;
  run.stops = latest;
  const Duration takes = random_.Between(50ms, 3s);
  const bool killed = agenda_.now() + takes > latest;
  Later(std::min<Duration>(takes, latest - agenda_.now()), uid,
        [this, killed](Run& r, const Json& then) {
          if (r.ended || r.lost) return;
          if (!r.running) {
            Finish(r, then, {.code = 137, .reason = "ContainerStatusUnknown"});
          } else {
            Finish(r, then, {.code = killed ? 137 : stopped_with});
          }
        });
}

void Kubelet::Confirm(const std::string& uid) {
  Later(random_.Between(10ms, 500ms), uid, [this](Run& r, const Json& then) {
    server_.Serve(
        {.method = "DELETE",
         .path = PathOf(r.name_space, r.name),
         .content_type = "application/json",
         .body = base::CompactJson(JsonObject{
             {"gracePeriodSeconds", 0}, {"preconditions", JsonObject{{"uid", UidOf(then)}}}})});
  });
}

void Kubelet::Finish(Run& run, const Json& pod, const Exit& exit) {
  const std::string policy = InSpec(pod, "restartPolicy");
  const std::string now = base::FormatTime(agenda_.now());
  JsonObject terminated{{"exitCode", exit.code},
                        {"reason", !exit.reason.empty() ? exit.reason
                                   : exit.code == 0     ? "Completed"
                                                        : "Error"},
                        {"startedAt", base::FormatTime(run.running ? run.started : agenda_.now())},
                        {"finishedAt", now}};
  if (exit.code > 128) terminated["signal"] = exit.code - 128;
  const std::string uid = UidOf(pod);
  const bool again =
      !IsDeleting(pod) && (policy == "Always" || (policy == "OnFailure" && exit.code != 0));
  if (again) {  // in place, after a pause
    ++run.restarts;
    run.running = false;
    Write(run, pod,
          {{"phase", "Running"},
           {"containerStatuses",
            ContainerStatuses(pod, {{"waiting", JsonObject{{"reason", "CrashLoopBackOff"}}}}, false,
                              run.restarts, {{"terminated", std::move(terminated)}})}});
    Later(random_.Between(1s, 10s), uid, [this](Run& r, const Json& then) {
      if (!IsDeleting(then) && !r.ended && !r.lost) Start(r, then);
    });
    return;
  }
  run.ended = true;
  JsonObject status{
      {"phase", exit.code == 0 ? "Succeeded" : "Failed"},
      {"containerStatuses",
       ContainerStatuses(pod, {{"terminated", std::move(terminated)}}, false, run.restarts)}};
  if (!exit.disruption.empty()) {
    status["conditions"] = WithCondition(pod, {{"type", "DisruptionTarget"},
                                               {"status", "True"},
                                               {"reason", exit.disruption},
                                               {"lastProbeTime", nullptr},
                                               {"lastTransitionTime", now}});
  }
  Write(run, pod, std::move(status));
}

bool Kubelet::End(const std::string& name_space, const std::string& name, const Exit& exit) {
  const Object pod = Pod(name_space, name);
  if (!pod) return false;
  const auto run = runs_.find(UidOf(*pod));
  if (run == runs_.end() || !run->second.running || run->second.ended) return false;
  Finish(run->second, *pod, exit);
  return true;
}

void Kubelet::Evict(const std::string& name_space, const std::string& name) {
  const Object pod = Pod(name_space, name);
  if (!pod || HasEnded(*pod)) return;
  Run& run = runs_[UidOf(*pod)];
  run.ended = true;
  Write(run, *pod,
        {{"phase", "Failed"},
         {"reason", "Evicted"},
         {"message", "The node was low on resource: memory."},
         {"conditions",
          WithCondition(*pod, {{"type", "DisruptionTarget"},
                               {"status", "True"},
                               {"reason", "TerminationByKubelet"},
                               {"lastProbeTime", nullptr},
                               {"lastTransitionTime", base::FormatTime(agenda_.now())}})},
         {"containerStatuses",
          ContainerStatuses(*pod,
                            {{"terminated", JsonObject{{"exitCode", 137},
                                                       {"reason", "ContainerStatusUnknown"},
                                                       {"startedAt", nullptr},
                                                       {"finishedAt", nullptr}}}},
                            false, run.restarts)}});
}

void Kubelet::SetDisruption(const Json& pod, const std::string& reason) {
  Write(runs_[UidOf(pod)], pod,
        {{"conditions",
          WithCondition(pod, {{"type", "DisruptionTarget"},
                              {"status", "True"},
                              {"reason", reason},
                              {"lastProbeTime", nullptr},
                              {"lastTransitionTime", base::FormatTime(agenda_.now())}})}});
}

void Kubelet::Preempt(const std::string& name_space, const std::string& name) {
  const Object pod = Pod(name_space, name);
  if (!pod || HasEnded(*pod) || IsDeleting(*pod)) return;
  SetDisruption(*pod, "PreemptionByScheduler");
  server_.Serve({.method = "DELETE", .path = PathOf(name_space, name)});
}

void Kubelet::LoseNode(const std::string& name_space, const std::string& name) {
  const Object pod = Pod(name_space, name);
  if (!pod || HasEnded(*pod)) return;
  const std::string uid = UidOf(*pod);
  runs_[uid].lost = true;
  SetDisruption(*pod, "DeletionByTaintManager");
  server_.Serve({.method = "DELETE", .path = PathOf(name_space, name)});
  // The garbage collector of pods drops what is on a node that is gone.
  Later(random_.Between(40s, 120s), uid, [this](Run& r, const Json& then) {
    Write(r, then,
          {{"phase", "Failed"},
           {"conditions",
            WithCondition(then, {{"type", "DisruptionTarget"},
                                 {"status", "True"},
                                 {"reason", "DeletionByPodGC"},
                                 {"lastProbeTime", nullptr},
                                 {"lastTransitionTime", base::FormatTime(agenda_.now())}})}});
    server_.Serve({.method = "DELETE",
                   .path = PathOf(r.name_space, r.name),
                   .body = R"({"gracePeriodSeconds":0})"});
  });
}

}  // namespace backend::sim
