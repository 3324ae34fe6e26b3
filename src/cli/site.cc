#include "cli/site.h"

#include <iostream>

#include <fmt/core.h>

#include "api/tfjob.h"
#include "backend/cluster/objects.h"
#include "backend/cluster/pod.h"
#include "base/duration.h"
#include "cli/cluster_gone.h"
#include "cli/object.h"
#include "cli/pod_troubles.h"
#include "cli/refuse.h"
#include "io/clock.h"
#include "io/terminal.h"
#include "kube/api.h"
#include "kube/discovery.h"

namespace cli {
namespace {

using base::Error;
using base::ErrorKind;
using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::Result;
using namespace std::chrono_literals;

constexpr base::Duration kLookAgain = 200ms;
// Of the operator's pod, whose grace is 10 s; one on a lost node would keep us for ever.
constexpr base::Duration kLongestEnd = 30s;

Error StoppedBySignal() { return Error(ErrorKind::kUnavailable, "interrupted"); }

bool IsReady(const Json& object) {
  const std::string kind = base::StringOr(object, "kind");
  if (kind == "CustomResourceDefinition") return Holds(object, "Established");
  if (kind == "Job") return Holds(object, "Complete");
  if (kind == "PersistentVolumeClaim")
    return base::StringOr(At(object, "status"), "phase") == "Bound";
  if (kind != "Deployment") return true;
  const Json& status = At(object, "status");
  return Holds(object, "Available") &&
         base::IntOr(status, "observedGeneration") >=
             base::IntOr(At(object, "metadata"), "generation") &&
         base::IntOr(status, "updatedReplicas") == base::IntOr(status, "replicas");
}

bool KindHasPods(const Json& object) {
  const std::string kind = base::StringOr(object, "kind");
  return kind == "Deployment" || kind == "Job";
}

// Selects the pods of a Deployment or a Job.
std::string PodSelector(const Json& object) {
  std::string selector;
  const Json& labels = At(At(At(At(object, "spec"), "template"), "metadata"), "labels");
  for (const auto& [key, value] : labels.is_object() ? labels.get_object() : JsonObject())
    selector += fmt::format("{}{}={}", selector.empty() ? "" : ",", std::string(key),
                            std::string(value.as_string()));
  return selector.empty() ? "job-name=" + Metadata(object, "name") : selector;
}

}  // namespace

Site::Site(Cluster& cluster, DeploymentWish wish)
    : cluster_(cluster),
      client_(cluster.client()),
      patient_(cluster.server()),
      wish_(std::move(wish)) {}

Result<> Site::Look() {
  for (Json& object : OperatorObjects(wish_)) {
    const kube::Kind kind = TRY(kube::FindKind(client_, base::StringOr(object, "apiVersion"),
                                               base::StringOr(object, "kind")));
    Item item{.path = kube::Path(kind.api_version, kind.resource,
                                 kind.namespaced ? Metadata(object, "namespace") : "",
                                 Metadata(object, "name"))};
    auto there = client_.Get(item.path);
    if (!there && there.error().kind() != ErrorKind::kNotFound)
      return std::unexpected(there.error());
    if (there) item.there = *std::move(there);
    item.wanted = std::move(object);
    items_.push_back(std::move(item));
  }
  return {};
}

Result<> Site::Apply() {
  for (const Item& item : items_) {
    if (Interrupted()) return std::unexpected(StoppedBySignal());
    // Counted before the answer, which may be lost: what was not made is undone without harm.
    ++applied_;
    const kube::Response answer = TRY(client_.Call(
        {.method = "PATCH",
         .path = kube::WithQuery(item.path, {{"fieldManager", "trainyard"}, {"force", "true"}}),
         .content_type = "application/apply-patch+yaml",
         .body = base::CompactJson(item.wanted)}));
    if (auto error = kube::ErrorOf(answer))
      return std::unexpected(std::move(*error).Context(Spoken(item.wanted)));
  }
  return {};
}

Result<> Site::Undo() {
  Result<> first;
  for (; applied_ > 0; --applied_) {
    const Item& item = items_[applied_ - 1];
    auto undone = item.there ? PutBack(item) : patient_.Delete(item.path);
    if (!undone && undone.error().kind() != ErrorKind::kNotFound && first) first = undone;
  }
  return first;
}

Result<> Site::PutBack(const Item& item) {
  const Json now = TRY(patient_.Get(item.path));
  Json before = *item.there;
  JsonObject& metadata = before.get_object()["metadata"].get_object();
  for (const char* key : {"managedFields", "uid", "generation"}) metadata.erase(key);
  // A definition is not replaced by one that does not name the version it replaces.
  metadata["resourceVersion"] = Metadata(now, "resourceVersion");
  const kube::Response answer = TRY(patient_.Call({.method = "PUT",
                                                   .path = item.path,
                                                   .content_type = "application/json",
                                                   .body = base::CompactJson(before)}));
  if (auto error = kube::ErrorOf(answer)) return std::unexpected(*std::move(error));
  return {};
}

Result<> Site::WaitUntilReady(base::Time until) {
  for (const Item& item : items_) {
    const Workload workload{.name_space = Metadata(item.wanted, "namespace"),
                            .selector = PodSelector(item.wanted),
                            .path = item.path,
                            .kind = PodKind::kOperator};
    const bool has_pods = KindHasPods(item.wanted);
    TRY(WaitFor(
        cluster_, Spoken(item.wanted) + " to be ready", until,
        [&] -> Result<bool> { return IsReady(TRY(client_.Get(item.path))); },
        [&] { return has_pods ? WhyNotRunning(cluster_, workload) : std::nullopt; }));
  }
  return {};
}

Result<> Site::ReleasePods() {
  for (const base::Time until = io::Now() + kLongestEnd; io::Now() < until;) {
    if (TRY(OperatorPods(patient_)).empty()) break;
    cluster_.server().Poll(kLookAgain);
  }
  const JsonArray pods = TRY(patient_.List(
      kube::Path("v1", "pods"),
      fmt::format("{}={}", backend::cluster::kOperatorLabel, backend::cluster::kOperatorName)));
  for (const Json& pod : pods) {
    TRY(Release(patient_, pod));
  }
  return {};
}

Result<JsonArray> Site::OperatorPods(kube::Client& client) {
  return client.List(kube::Path("v1", "pods", wish_.name_space),
                     fmt::format("app.kubernetes.io/name={}", kOperatorDeployment));
}

void SayWhere(const Cluster& cluster) {
  fmt::print("on the cluster of context {} ({}):\n", cluster.context(),
             cluster.server().access().server);
}

bool Confirmed(const Args& args) {
  if (args.Has("yes")) return true;
  io::WriteOut(1, "Go on? y/[n] ");
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y";
}

int FailUndone(const Cluster& cluster, const Error& why, const Result<>& undone) {
  const int status = Fail(cluster.Explain(why));
  fmt::print(stderr, "trainyard: {}\n",
             undone ? "everything is as it was before"
                    : "not all of it could be undone: " + undone.error().text());
  return Interrupted() ? 128 + Interrupted() : status;
}

DeploymentWish WishOf(const Args& args) {
  DeploymentWish out{.image = args.Get("image")};
  if (args.Has("namespace")) out.name_space = args.Get("namespace");
  return out;
}

Result<base::Duration> PatienceOf(const Args& args) {
  auto patience = base::ParseDuration(args.Get("timeout", "3m"));
  if (!patience) return std::unexpected(std::move(patience).error().Context("--timeout"));
  return patience;
}

Result<JsonArray> AllJobs(kube::Client& client) {
  auto jobs = client.List(kube::Path(api::kApiVersion, "tfjobs"));
  if (!jobs && jobs.error().kind() == ErrorKind::kNotFound) return JsonArray();
  return jobs;
}

}  // namespace cli
