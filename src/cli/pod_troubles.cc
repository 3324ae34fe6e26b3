#include "cli/pod_troubles.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/strings.h"
#include "cli/cluster_place.h"
#include "cli/deployment.h"
#include "cli/object.h"
#include "core/dialect.h"
#include "kube/api.h"
#include "kube/logs.h"

namespace cli {
namespace {

using base::Json;
using base::JsonArray;

// The pods that are to stay, the newest first.
std::vector<Json> PodsOf(Cluster& cluster, const Workload& workload) {
  std::vector<Json> out;
  auto list = cluster.client().List(kube::Path("v1", "pods", workload.name_space),
                                    workload.selector);
  for (Json& pod : list ? *list : JsonArray()) {
    if (!base::Find(At(pod, "metadata"), "deletionTimestamp")) out.push_back(std::move(pod));
  }
  std::ranges::stable_sort(out, std::greater(), [](const Json& pod) {
    return Metadata(pod, "creationTimestamp");
  });
  return out;
}

bool Runs(const Json& pod) {
  return base::StringOr(At(pod, "status"), "phase") == "Running" && !StartTrouble(pod, {}, {});
}

// Why a Deployment or a Job has no pod at all: the server rejects it.
std::optional<Trouble> WhyNoPods(Cluster& cluster, const Workload& workload) {
  const auto object = cluster.client().Get(workload.path);
  if (!object) return std::nullopt;
  std::string words;
  for (const Json& condition : ListAt(At(*object, "status"), "conditions")) {
    const bool failed = base::StringOr(condition, "type") == "ReplicaFailure" &&
                        base::StringOr(condition, "status") == "True";
    if (failed) words = base::StringOr(condition, "message");
  }
  if (words.empty()) {
    auto events = EventsOf(cluster, workload.name_space, Metadata(*object, "name"),
                           Metadata(*object, "uid"));
    for (const Json& event : events.value_or(std::vector<Json>())) {
      if (base::StringOr(event, "reason") == "FailedCreate")
        words = base::StringOr(event, "message");
    }
  }
  if (words.empty()) return std::nullopt;
  words = base::OneLine(words, 400);
  return Trouble{"its pod cannot be made: " + words, FixFor("FailedCreate", words, workload.kind)};
}

Workload MasterOf(const api::Job& job) {
  const std::string& name_space = job.metadata.name_space;
  if (job.extensions.dialect == api::Dialect::kElasticDl)
    return {.name_space = name_space,
            .selector = fmt::format("elasticdl-job-name={},elasticdl-replica-type=edl-master",
                                    job.metadata.name),
            .kind = PodKind::kMaster};
  const std::string name = job.metadata.name + "-master";
  return {.name_space = name_space,
          .selector = "job-name=" + name,
          .path = kube::Path("batch/v1", "jobs", name_space, name),
          .kind = PodKind::kMaster};
}

// The last line that the pod of a workload has printed.
std::string LastLine(Cluster& cluster, const Workload& workload) {
  for (const Json& pod : PodsOf(cluster, workload)) {
    const auto log = cluster.client().Call(
        {.path = kube::LogPath(
             {.ns = workload.name_space, .pod = Metadata(pod, "name"), .tail_lines = 1})});
    if (log && !kube::ErrorOf(*log)) return base::OneLine(base::Trim(log->body), 400);
  }
  return "";
}

}  // namespace

std::vector<Warning> WarningsAboutPods(Cluster& cluster, const std::string& name_space) {
  std::vector<std::pair<std::string, Warning>> found;
  const auto list = cluster.client().Get(
      kube::WithQuery(kube::Path("v1", "events", name_space),
                      {{"fieldSelector", "involvedObject.kind=Pod,type=Warning"}}));
  for (const Json& event : list ? ListAt(*list, "items") : JsonArray()) {
    found.emplace_back(TimeOfEvent(event),
                       Warning{.uid = base::StringOr(At(event, "involvedObject"), "uid"),
                               .reason = base::StringOr(event, "reason"),
                               .message = base::StringOr(event, "message")});
  }
  std::ranges::stable_sort(found, {}, &std::pair<std::string, Warning>::first);
  std::vector<Warning> out;
  for (auto& [time, warning] : found) out.push_back(std::move(warning));
  return out;
}

std::optional<Trouble> WhyNotRunning(Cluster& cluster, const Workload& workload) {
  const std::vector<Json> pods = PodsOf(cluster, workload);
  if (std::ranges::any_of(pods, Runs)) return std::nullopt;
  if (pods.empty())
    return workload.path.empty() ? std::nullopt : WhyNoPods(cluster, workload);
  const std::vector<Warning> warnings = WarningsAboutPods(cluster, workload.name_space);
  for (const Json& pod : pods) {
    if (auto trouble = StartTrouble(pod, warnings, workload.kind)) return trouble;
  }
  return std::nullopt;
}

std::optional<Trouble> MasterTrouble(Cluster& cluster, const api::Job& job) {
  auto trouble = WhyNotRunning(cluster, MasterOf(job));
  if (trouble) trouble->what = "its master does not run: " + trouble->what;
  return trouble;
}

Trouble WhyNobodyKeeps(Cluster& cluster, Store store, const api::Job& job,
                       const std::string& again) {
  if (store == Store::kTfJobs) {
    const Workload operators{
        .name_space = std::string(kSystemNamespace),
        .selector = fmt::format("app.kubernetes.io/name={}", kOperatorDeployment),
        .path = kube::Path("apps/v1", "deployments", kSystemNamespace, kOperatorDeployment),
        .kind = PodKind::kOperator};
    auto trouble = WhyNotRunning(cluster, operators);
    if (!trouble) return {"no operator looks after it", "trainyard install" + again};
    trouble->what = "the operator does not run: " + trouble->what;
    return *trouble;
  }
  if (auto trouble = MasterTrouble(cluster, job)) return *trouble;
  const Workload master = MasterOf(job);
  const std::string name_space = master.name_space;
  if (const std::string line = LastLine(cluster, master); !line.empty())
    return {"its master runs and has not taken it up: " + line,
            FixFor("", line, PodKind::kMaster)};
  return {"its master does not run",
          fmt::format("kubectl -n {} describe pods -l {} tells why", name_space, master.selector)};
}

}  // namespace cli
