// `install`, `uninstall`: the operator on a cluster, all of it or nothing.
#include <algorithm>
#include <iostream>

#include <fmt/core.h>
#include <unistd.h>

#include "api/tfjob.h"
#include "backend/cluster/objects.h"
#include "backend/cluster/pod.h"
#include "base/duration.h"
#include "cli/cluster.h"
#include "cli/commands.h"
#include "cli/deployment.h"
#include "cli/findings.h"
#include "cli/progress_line.h"
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
using base::Time;
using namespace std::chrono_literals;

constexpr base::Duration kLookAgain = 200ms;

const Json& At(const Json& object, std::string_view key) {
  static const Json kNothing;
  const Json* found = base::Find(object, key);
  return found ? *found : kNothing;
}

std::string Metadata(const Json& object, std::string_view key) {
  return base::StringOr(At(object, "metadata"), key);
}

bool Confirmed(const Args& args) {
  if (args.Has("yes")) return true;
  io::WriteOut(1, "Go on? y/[n] ");
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y";
}

// One object of the operator, and how it stands on the cluster.
struct Item {
  Json wanted;
  std::string collection, path;
  std::optional<Json> there;  // before we came
};

class Site {
 public:
  Site(Cluster& cluster, const std::vector<Json>& objects)
      : client_(cluster.client()), patient_(cluster.server()), objects_(objects) {}

  // Looks where everything is. The definition of TFJob itself may still be missing.
  Result<> Look() {
    for (const Json& object : objects_) {
      const kube::Kind kind = TRY(kube::FindKind(client_, base::StringOr(object, "apiVersion"),
                                                 base::StringOr(object, "kind")));
      Item item{.wanted = object};
      item.collection = kube::Path(kind.api_version, kind.resource,
                                   kind.namespaced ? Metadata(object, "namespace") : "");
      item.path = item.collection + "/" + Metadata(object, "name");
      auto there = client_.Get(item.path);
      if (there) item.there = *std::move(there);
      if (!there && there.error().kind() != ErrorKind::kNotFound)
        return std::unexpected(there.error());
      items_.push_back(std::move(item));
    }
    return {};
  }

  const std::vector<Item>& items() const { return items_; }

  // Makes everything as it should be. What fails is undone by the caller.
  Result<> Apply() {
    for (const Item& item : items_) {
      if (Interrupted()) return std::unexpected(Error(ErrorKind::kUnavailable, "interrupted"));
      const kube::Response answer = TRY(client_.Call(
          {.method = "PATCH",
           .path = kube::WithQuery(item.path, {{"fieldManager", "trainyard"}, {"force", "true"}}),
           .content_type = "application/apply-patch+yaml",
           .body = base::CompactJson(item.wanted)}));
      if (auto error = kube::ErrorOf(answer))
        return std::unexpected(std::move(*error).Context(Spoken(item.wanted)));
      ++applied_;
    }
    return {};
  }

  // As it was before: what was made goes, what was changed is put back.
  Result<> Undo() {
    Result<> first;
    for (; applied_ > 0; --applied_) {
      const Item& item = items_[applied_ - 1];
      auto undone = item.there ? PutBack(item) : patient_.Delete(item.path);
      if (!undone && undone.error().kind() != ErrorKind::kNotFound && first) first = undone;
    }
    return first;
  }

 private:
  Result<> PutBack(const Item& item) {
    Json before = *item.there;
    JsonObject& metadata = before.get_object()["metadata"].get_object();
    for (const char* key : {"resourceVersion", "managedFields", "uid", "generation"})
      metadata.erase(key);
    const kube::Response answer = TRY(patient_.Call({.method = "PUT",
                                                     .path = item.path,
                                                     .content_type = "application/json",
                                                     .body = base::CompactJson(before)}));
    if (auto error = kube::ErrorOf(answer)) return std::unexpected(*std::move(error));
    return {};
  }

  kube::Client& client_;
  kube::Client patient_;  // undoing is not interrupted
  const std::vector<Json> objects_;
  std::vector<Item> items_;
  size_t applied_ = 0;
};

// Whether the condition of this type holds.
bool Holds(const Json& object, std::string_view type) {
  const Json& conditions = At(At(object, "status"), "conditions");
  return conditions.is_array() && std::ranges::any_of(conditions.get_array(), [&](const Json& c) {
           return base::StringOr(c, "type") == type && base::StringOr(c, "status") == "True";
         });
}

bool IsReady(const Json& object) {
  const std::string kind = base::StringOr(object, "kind");
  if (kind == "CustomResourceDefinition") return Holds(object, "Established");
  if (kind != "Deployment") return true;
  const Json& status = At(object, "status");
  return Holds(object, "Available") &&
         base::IntOr(status, "observedGeneration") >=
             base::IntOr(At(object, "metadata"), "generation") &&
         base::IntOr(status, "updatedReplicas") == base::IntOr(status, "replicas");
}

// Why the operator's pod does not start, as far as its own words tell.
std::string WhyNotReady(kube::Client& client, const std::string& name_space) {
  auto pods = client.List(kube::Path("v1", "pods", name_space),
                          fmt::format("app.kubernetes.io/name={}", kOperatorDeployment));
  if (!pods) return "";
  for (const Json& pod : *pods) {
    const Json& statuses = At(At(pod, "status"), "containerStatuses");
    if (!statuses.is_array()) continue;
    for (const Json& status : statuses.get_array()) {
      const Json& waiting = At(At(status, "state"), "waiting");
      const std::string reason = base::StringOr(waiting, "reason");
      if (reason.empty() || reason == "ContainerCreating") continue;
      const std::string words = base::StringOr(waiting, "message");
      const std::string fix = FixFor(reason, words);
      return fmt::format(": {}: {}{}", reason, words, fix.empty() ? "" : "; " + fix);
    }
  }
  return "";
}

Result<> WaitUntilReady(Cluster& cluster, const Site& site, const std::string& name_space,
                        base::Duration patience) {
  ProgressLine line;
  const Time until = io::Now() + patience;
  for (const Item& item : site.items()) {
    while (true) {
      if (Interrupted()) return std::unexpected(Error(ErrorKind::kUnavailable, "interrupted"));
      const Json there = TRY(cluster.client().Get(item.path));
      if (IsReady(there)) break;
      line.Show("waiting for " + Spoken(item.wanted));
      if (io::Now() >= until) {
        return std::unexpected(Error(ErrorKind::kUnavailable,
                                     fmt::format("{} is not ready after {}{}", Spoken(item.wanted),
                                                 base::FormatDuration(patience),
                                                 WhyNotReady(cluster.client(), name_space))));
      }
      cluster.server().Poll(kLookAgain);
    }
  }
  return {};
}

// Says what will be done. False: there is nothing to do.
void Announce(const Cluster& cluster, const Site& site) {
  fmt::print("on the cluster of context {} ({}):\n", cluster.context(),
             cluster.server().access().server);
  for (const Item& item : site.items())
    fmt::print("  {}  {}\n", item.there ? "update" : "create", Spoken(item.wanted));
  // Another operator's definition of the same kind is taken over; its operator must go.
  for (const Item& item : site.items()) {
    if (!item.there || base::StringOr(item.wanted, "kind") != "CustomResourceDefinition") continue;
    const Json& labels = At(At(*item.there, "metadata"), "annotations");
    if (base::StringOr(labels, "controller-gen.kubebuilder.io/version").empty()) continue;
    fmt::print(
        "  TFJobs are known here already, by another operator: trainyard adopt takes them over\n");
  }
}

Result<> Deleted(kube::Client& client, kube::Server& server, const Item& item) {
  ProgressLine line;
  auto gone = client.Delete(item.path);
  if (!gone && gone.error().kind() != ErrorKind::kNotFound) return gone;
  while (true) {
    auto there = client.Get(item.path);
    if (!there && there.error().kind() == ErrorKind::kNotFound) return {};
    if (!there) return std::unexpected(there.error());
    if (Interrupted()) return std::unexpected(Error(ErrorKind::kUnavailable, "interrupted"));
    line.Show("waiting until it is gone: " + Spoken(item.wanted));
    server.Poll(kLookAgain);
  }
}

Result<JsonArray> AllJobs(kube::Client& client) {
  auto jobs = client.List(kube::Path(api::kApiVersion, "tfjobs"));
  if (!jobs && jobs.error().kind() == ErrorKind::kNotFound) return JsonArray();
  return jobs;
}

// Nobody will take our finalizer off any more once the operator is gone.
Result<> ReleasePods(kube::Client& client) {
  const JsonArray pods = TRY(client.List(
      kube::Path("v1", "pods"),
      fmt::format("{}={}", backend::cluster::kOperatorLabel, backend::cluster::kOperatorName)));
  for (const Json& pod : pods) {
    const auto read = backend::cluster::ReadPod(pod);
    if (!read || !read->held) continue;
    JsonArray others;
    for (const Json& one : At(At(pod, "metadata"), "finalizers").get_array()) {
      if (one != Json(backend::cluster::kFinalizer)) others.push_back(one);
    }
    auto released = client.Patch(
        kube::Path("v1", "pods", read->key.name_space, read->key.name),
        JsonObject{
            {"metadata", JsonObject{{"uid", read->uid}, {"finalizers", std::move(others)}}}});
    if (!released && released.error().kind() != ErrorKind::kNotFound)
      return std::unexpected(released.error());
  }
  return {};
}

Result<DeploymentWish> WishOf(const Args& args) {
  DeploymentWish out{.image = args.Get("image")};
  if (args.Has("namespace")) out.name_space = args.Get("namespace");
  return out;
}

int Install(const Args& args, Cluster& cluster, const DeploymentWish& wish,
            base::Duration patience) {
  Site site(cluster, OperatorObjects(wish));
  if (auto looked = site.Look(); !looked) return Fail(cluster.Explain(looked.error()));
  Announce(cluster, site);
  if (!Confirmed(args)) return Refuse("nothing was changed");
  CatchInterrupts();
  auto done = site.Apply();
  if (done) done = WaitUntilReady(cluster, site, wish.name_space, patience);
  if (done) {
    fmt::print("ready: trainyard run SCRIPT --on kubernetes\n");
    return 0;
  }
  const auto undone = site.Undo();
  const int status = Fail(cluster.Explain(done.error()));
  fmt::print(stderr, "trainyard: {}\n",
             undone ? "everything is as it was before"
                    : "not all of it could be undone: " + undone.error().text());
  return Interrupted() ? 128 + Interrupted() : status;
}

// The operator goes first, its definition last: what is left in between is deleted with it.
Result<> Remove(Cluster& cluster, const Site& site) {
  std::vector<Item> items = site.items();
  std::ranges::reverse(items);
  kube::Client& client = cluster.client();
  for (const Json& job : TRY(AllJobs(client))) {
    TRY(client.Delete(
        kube::Path(api::kApiVersion, "tfjobs", Metadata(job, "namespace"), Metadata(job, "name"))));
  }
  for (const Item& item : items) {
    if (!item.there) continue;
    TRY(Deleted(client, cluster.server(), item));
    if (base::StringOr(item.wanted, "kind") == "Deployment") TRY(ReleasePods(client));
    fmt::print("  deleted  {}\n", Spoken(item.wanted));
  }
  return {};
}

}  // namespace

int InstallCommand(const Args& args) {
  auto context = ContextOf(args, "kubernetes");
  if (!context) return Refuse(context.error());
  if (!*context) return Refuse("install is for clusters: --on kubernetes");
  auto patience = base::ParseDuration(args.Get("timeout", "3m"));
  if (!patience) return Refuse("--timeout: " + patience.error().text());
  auto wish = WishOf(args);
  if (!wish) return Refuse(wish.error());
  auto cluster = Cluster::Connect(**context);
  if (!cluster) return Fail(cluster.error());
  return Install(args, *cluster, *wish, *patience);
}

int UninstallCommand(const Args& args) {
  auto context = ContextOf(args, "kubernetes");
  if (!context) return Refuse(context.error());
  if (!*context) return Refuse("uninstall is for clusters: --on kubernetes");
  auto wish = WishOf(args);
  if (!wish) return Refuse(wish.error());
  auto cluster = Cluster::Connect(**context);
  if (!cluster) return Fail(cluster.error());
  Site site(*cluster, OperatorObjects(*wish));
  if (auto looked = site.Look(); !looked) return Fail(cluster->Explain(looked.error()));
  if (std::ranges::none_of(site.items(), [](const Item& item) { return item.there.has_value(); }))
    return Refuse(fmt::format("there is nothing of Trainyard on the cluster of context {}",
                              cluster->context()));
  auto jobs = AllJobs(cluster->client());
  if (!jobs) return Fail(cluster->Explain(jobs.error()));
  if (!jobs->empty() && !args.Has("with-jobs")) {
    return Refuse(
        fmt::format("{} TFJob{} would be deleted with it: delete what is not needed, or "
                    "say --with-jobs",
                    jobs->size(), jobs->size() == 1 ? "" : "s"));
  }
  fmt::print("on the cluster of context {} ({}):\n", cluster->context(),
             cluster->server().access().server);
  for (const Item& item : site.items()) {
    if (item.there) fmt::print("  delete  {}\n", Spoken(item.wanted));
  }
  if (!Confirmed(args)) return Refuse("nothing was changed");
  CatchInterrupts();
  auto done = Remove(*cluster, site);
  return done ? 0 : Fail(cluster->Explain(done.error()));
}

}  // namespace cli
