#include "cli/cluster_run.h"

#include <set>

#include <fmt/core.h>

#include "backend/cluster/objects.h"
#include "backend/cluster/stored.h"
#include "base/quantity.h"
#include "base/yaml.h"
#include "cli/attend.h"
#include "cli/cluster.h"
#include "cli/cluster_place.h"
#include "cli/cluster_plan.h"
#include "cli/header.h"
#include "cli/keeper.h"
#include "cli/made.h"
#include "cli/queue.h"
#include "cli/refuse.h"
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

constexpr int kMostTries = 20;

std::string JobsPath(const std::string& name_space, const std::string& name = "") {
  return kube::Path(api::kApiVersion, "tfjobs", name_space, name);
}

// The namespace of a job: as typed, as its manifest says, else as the context means.
std::string SpaceOf(const ClusterPlan& plan, const Cluster& cluster) {
  const std::string& said = plan.plan.job.metadata.name_space;
  return said.empty() ? cluster.name_space() : said;
}

// The first BASE-N that neither a job nor its code has.
Result<std::string> FreeName(Cluster& cluster, Store store, const std::string& name_space,
                             const std::string& base) {
  std::set<std::string> taken;
  for (const Json& job : TRY(cluster.jobs(store).List(JobsPath(name_space))))
    taken.insert(kube::Metadata(job, "name"));
  for (const Json& map : TRY(cluster.client().List(kube::Path("v1", "configmaps", name_space),
                                                   "app.kubernetes.io/managed-by=trainyard"))) {
    const std::string name = kube::Metadata(map, "name");
    if (name.ends_with("-code")) taken.insert(name.substr(0, name.size() - 5));
  }
  for (int number = 1;; ++number) {
    std::string name = fmt::format("{}-{}", base, number);
    if (!taken.contains(name)) return name;
  }
}

// Makes one object that is not a job, wherever its kind lives.
Result<Json> MakeObject(Cluster& cluster, Made& made, const Json& object,
                        const std::string& name_space) {
  const kube::Kind kind = TRY(kube::FindKind(cluster.client(), base::StringOr(object, "apiVersion"),
                                             base::StringOr(object, "kind")));
  const std::string said = kube::Metadata(object, "namespace");
  if (Interrupted()) return std::unexpected(Error(ErrorKind::kUnavailable, "interrupted"));
  return made.Create(kube::Path(kind.api_version, kind.resource,
                                !kind.namespaced ? ""
                                : said.empty()   ? name_space
                                                 : said),
                     object);
}

Result<> GiveTo(Cluster& cluster, const JsonObject& owner, const std::vector<Json>& objects) {
  for (const Json& object : objects) {
    const std::string kind = base::StringOr(object, "kind");
    const char* resource = kind == "ConfigMap" ? "configmaps" : "secrets";
    TRY(cluster.client().Patch(
        kube::Path("v1", resource, kube::Metadata(object, "namespace"),
                   kube::Metadata(object, "name")),
        JsonObject{{"metadata", JsonObject{{"ownerReferences", JsonArray{owner}}}}}));
  }
  return {};
}

// All of it, or nothing. Returns the job as the server has it.
Result<Json> MakeAll(Cluster& cluster, const Keeper& keeper, const ClusterPlan& plan,
                     const std::string& name, const std::string& name_space) {
  const ClusterObjects objects = ObjectsOf(plan, name, name_space);
  Made made(cluster.server(), cluster.door(keeper.store));
  std::vector<Json> owned;
  for (const Json& object : objects.first) {
    const Json there = TRY(MakeObject(cluster, made, object, name_space));
    const std::string& its = kube::Metadata(there, "name");
    if (its == name + "-code" || its == name + "-env") owned.push_back(there);
  }
  Json job = TRY(made.Create(JobsPath(name_space), objects.job));
  TRY(GiveTo(cluster, OwnerOf(job, keeper.store), owned));
  if (keeper.store == Store::kConfigMaps) {
    const auto stored = backend::cluster::ReadJob(job);
    if (!stored) return base::Invalid("the server answered with no TFJob");
    for (const Json& object : backend::cluster::MasterObjects(keeper.MasterOf(*stored->value),
                                                              OwnerOf(job, keeper.store)))
      TRY(MakeObject(cluster, made, object, name_space));
  }
  if (Interrupted()) return std::unexpected(Error(ErrorKind::kUnavailable, "interrupted"));
  made.Keep();
  return job;
}

Result<Json> MakeNamed(Cluster& cluster, const Keeper& keeper, const ClusterPlan& plan,
                       const std::string& name_space) {
  const std::string& chosen = plan.plan.job.metadata.name;
  if (!chosen.empty()) {
    auto made = MakeAll(cluster, keeper, plan, chosen, name_space);
    if (made || made.error().kind() != ErrorKind::kTaken) return made;
    return std::unexpected(
        Error(ErrorKind::kTaken, fmt::format("{} exists already in namespace {}: choose another "
                                             "--name, or trainyard delete {}",
                                             chosen, name_space, chosen)));
  }
  for (int tries = 1;; ++tries) {
    const std::string name = TRY(FreeName(cluster, keeper.store, name_space, plan.plan.base_name));
    auto made = MakeAll(cluster, keeper, plan, name, name_space);
    if (made || made.error().kind() != ErrorKind::kTaken || tries == kMostTries) return made;
  }
}

std::string Where(const Cluster& cluster, const std::string& name_space, Store store) {
  return fmt::format("kubernetes:{}/{} by {}", cluster.context(), name_space,
                     store == Store::kTfJobs ? "the operator" : "a master of its own");
}

int AttendOrLeave(Cluster& cluster, Store store, const Args& args, const std::string& name_space,
                  const std::string& name) {
  const std::string again = TypedAgain(args);
  if (args.Has("detach")) {
    io::WriteOut(1, args.json() ? base::CompactJson(JsonObject{{"job", name}}) + "\n"
                                : fmt::format("  follow  trainyard logs -f {}{}\n", name, again));
    return 0;
  }
  return Attend(cluster, store, name_space, name,
                {.raw = args.Has("raw"), .json = args.json(), .again = again});
}

int Interruption() {
  fmt::print(stderr, "trainyard: interrupted: nothing was left behind\n");
  return 128 + Interrupted();
}

// The change that makes a job run again: another life if it has failed, no suspension, no stop.
JsonObject ResumePatch(const api::Job& job) {
  JsonObject annotations{{"trainyard.dev/stopped-by", nullptr}};
  if (api::Has(job.status, "Failed"))
    annotations["trainyard.dev/life"] = std::to_string(job.status.life + 1);
  return {{"metadata", JsonObject{{"annotations", std::move(annotations)}}},
          {"spec", JsonObject{{"runPolicy", JsonObject{{"suspend", false}}}}}};
}

Result<> AddMemory(const Args& args, api::Job job, JsonObject& patch) {
  if (!args.Has("worker-memory")) return {};
  const int64_t bytes = TRY_AS("--worker-memory", base::ParseMemory(args.Get("worker-memory")));
  JsonObject replicas;
  for (auto& [role, spec] : job.spec.replicas) {
    if (role == api::Role::kPs) continue;
    api::SetMemoryLimit(spec.pod_template, bytes);
    replicas[api::Name(role)] = JsonObject{{"template", spec.pod_template}};
  }
  patch["spec"].get_object()["tfReplicaSpecs"] = std::move(replicas);
  return {};
}

}  // namespace

int RunOnCluster(const Args& args, const std::string& context) {
  auto plan = MakeClusterPlan(args);
  if (!plan) return Refuse(plan.error());
  for (const std::string& warning : plan->plan.warnings)
    fmt::print(stderr, "trainyard: warning: {}\n", warning);
  auto cluster = Cluster::Connect(context);
  if (!cluster) return Fail(cluster.error());
  CatchInterrupts();
  const std::string space = SpaceOf(*plan, *cluster);
  Keeper keeper;
  const auto made = [&]() -> Result<Json> {
    const bool elastic = plan->plan.job.extensions.elastic.has_value();
    keeper = TRY(ChooseKeeper(*cluster, args, space, elastic));
    return MakeNamed(*cluster, keeper, *plan, space);
  }();
  if (!made) return Interrupted() ? Interruption() : Fail(cluster->Explain(made.error()));
  const auto stored = backend::cluster::ReadJob(*made);
  if (!stored) return Refuse("the server answered with no TFJob");
  if (!args.json()) {
    io::WriteOut(1, Header(*stored->value, Where(*cluster, space, keeper.store),
                           plan->plan.script_text, plan->image));
    if (!keeper.why.empty()) io::WriteOut(1, fmt::format("trainyard: {}\n", keeper.why));
  }
  return AttendOrLeave(*cluster, keeper.store, args, space, stored->key.name);
}

int ResumeOnCluster(const Args& args, const std::string& context) {
  for (const char* flag : {"code", "env"}) {
    if (args.Has(flag))
      return Refuse(fmt::format(
          "--{} is for jobs of this machine: on a cluster, submit the job again with run", flag));
  }
  auto cluster = Cluster::Connect(context);
  if (!cluster) return Fail(cluster.error());
  auto place = PlaceOf(args);
  if (!place) return Fail(place.error());
  const std::string space = cluster->NamespaceOf(args);
  auto job = (*place)->Find(space, args.operand(0));
  if (!job) return Fail(job.error());
  const std::string name = (*job)->name();
  auto standing = (*job)->Look();
  if (!standing) return Fail(standing.error());
  const api::Job& now = standing->job;
  if (api::Has(now.status, "Succeeded"))
    return Refuse(name + " has succeeded: there is nothing to resume");
  if (!api::Has(now.status, "Failed") && !now.spec.run_policy.suspend)
    return Refuse(
        fmt::format("{} is running already: trainyard logs -f {}{}", name, name, TypedAgain(args)));
  if (const std::string refusal = WhyNotResumed(*cluster, now, TypedAgain(args)); !refusal.empty())
    return Refuse(refusal);
  const bool elasticdl = now.extensions.dialect == api::Dialect::kElasticDl;
  if (elasticdl && api::IsTerminal(now.status))
    return Refuse(name +
                  " has ended, and its master with it: submit it again with elasticdl train");
  JsonObject patch = ResumePatch(now);
  if (auto added = AddMemory(args, now, patch); !added) return Refuse(added.error());
  const auto store = StoreOf(*cluster, space, name);
  if (!store) return Fail(store.error());
  auto patched = cluster->jobs(*store).Patch(JobsPath(space, name), patch);
  if (patched && *store == Store::kConfigMaps && !elasticdl) {
    if (auto again = StartMasterAgain(*cluster, space, name); !again)
      return Fail(cluster->Explain(again.error()));
  }
  if (!patched) return Fail(cluster->Explain(patched.error()));
  if (!args.json()) {
    const Json* container =
        api::TensorFlowContainer(now.spec.replicas.begin()->second.pod_template);
    io::WriteOut(1, Header(now, Where(*cluster, space, *store), "",
                           container ? base::StringOr(*container, "image") : ""));
  }
  return AttendOrLeave(*cluster, *store, args, space, name);
}

int RenderForCluster(const Args& args, const std::string& context) {
  auto plan = MakeClusterPlan(args);
  if (!plan) return Refuse(plan.error());
  for (const std::string& warning : plan->plan.warnings)
    fmt::print(stderr, "trainyard: warning: {}\n", warning);
  auto cluster = Cluster::Connect(context);
  if (!cluster) return Fail(cluster.error());
  const std::string& chosen = plan->plan.job.metadata.name;
  for (auto& [key, value] : plan->env) value = "(set)";
  ClusterObjects objects = ObjectsOf(*plan, chosen.empty() ? plan->plan.base_name + "-1" : chosen,
                                     SpaceOf(*plan, *cluster));
  objects.first.push_back(std::move(objects.job));
  if (args.json()) {
    io::WriteOut(1, base::IndentedJson(JsonObject{
                        {"apiVersion", "v1"},
                        {"kind", "List"},
                        {"items", JsonArray(objects.first.begin(), objects.first.end())}}));
    return 0;
  }
  std::string text;
  for (const Json& object : objects.first)
    text += (text.empty() ? "" : "---\n") + base::WriteYaml(object);
  io::WriteOut(1, text);
  return 0;
}

}  // namespace cli
