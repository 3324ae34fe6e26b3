// `install`, `uninstall`: the operator on a cluster, all of it or nothing.
#include <algorithm>

#include <fmt/core.h>

#include "api/tfjob.h"
#include "cli/cluster.h"
#include "cli/commands.h"
#include "cli/object.h"
#include "cli/refuse.h"
#include "cli/site.h"
#include "io/clock.h"
#include "kube/api.h"

namespace cli {
namespace {

using base::ErrorKind;
using base::Json;
using base::Result;

std::string KindOf(const Item& item) { return base::StringOr(item.wanted, "kind"); }

void Announce(const Cluster& cluster, const Site& site) {
  SayWhere(cluster);
  for (const Item& item : site.items())
    fmt::print("  {}  {}\n", item.there ? "update" : "create", Spoken(item.wanted));
  // Another operator's definition of the same kind is taken over; its operator must go.
  for (const Item& item : site.items()) {
    if (!item.there || KindOf(item) != "CustomResourceDefinition") continue;
    const Json& notes = At(At(*item.there, "metadata"), "annotations");
    if (base::StringOr(notes, "controller-gen.kubebuilder.io/version").empty()) continue;
    fmt::print(
        "  TFJobs are known here already, by another operator: trainyard adopt takes them over\n");
  }
}

// With the storage that was asked for; its claim is where the context trains.
Result<DeploymentWish> WishWithStorage(const Args& args, const Cluster& cluster) {
  DeploymentWish out = WishOf(args);
  out.storage = TRY(args.OneOf("storage", "", {"nfs", "hostpath"}));
  out.claim_namespace = cluster.name_space();
  return out;
}

int Install(const Args& args, Cluster& cluster, base::Duration patience) {
  auto wish = WishWithStorage(args, cluster);
  if (!wish) return Refuse(wish.error());
  Site site(cluster, *wish);
  if (auto looked = site.Look(); !looked) return Fail(cluster.Explain(looked.error()));
  Announce(cluster, site);
  if (!Confirmed(args)) return Refuse("nothing was changed");
  CatchInterrupts();
  auto done = site.Apply();
  if (done) done = site.WaitUntilReady(io::Now() + patience);
  if (!done) return FailUndone(cluster, done.error(), site.Undo());
  fmt::print("ready: trainyard run SCRIPT --on kubernetes{}\n",
             wish->storage.empty() ? "" : " --output " + wish->storage);
  return 0;
}

// ---- Taking it away

// Of what is on the cluster, in the order in which it goes: the operator first, its definition
// last, so that what is left in between is deleted with it. Without their definition no jobs could
// stay.
std::vector<Item> ToRemove(const Site& site, bool keep_jobs) {
  std::vector<Item> out = site.items();
  std::erase_if(out, [&](const Item& item) {
    return !item.there || (keep_jobs && KindOf(item) == "CustomResourceDefinition");
  });
  std::ranges::reverse(out);
  return out;
}

Result<> Delete(Cluster& cluster, const Item& item) {
  kube::Client& client = cluster.client();
  auto gone = client.Delete(item.path);
  if (!gone && gone.error().kind() != ErrorKind::kNotFound) return gone;
  return WaitFor(cluster, "the end of " + Spoken(item.wanted), base::Time::max(),
                 [&] -> Result<bool> {
                   auto there = client.Get(item.path);
                   if (there) return false;
                   if (there.error().kind() == ErrorKind::kNotFound) return true;
                   return std::unexpected(there.error());
                 });
}

Result<> Remove(Cluster& cluster, Site& site, const std::vector<Item>& items,
                const base::JsonArray& jobs) {
  kube::Client& client = cluster.client();
  for (const Json& job : jobs) {
    TRY(client.Delete(
        kube::Path(api::kApiVersion, "tfjobs", Metadata(job, "namespace"), Metadata(job, "name"))));
  }
  for (const Item& item : items) {
    TRY(Delete(cluster, item));
    if (KindOf(item) == "Deployment") TRY(site.ReleasePods());
    fmt::print("  deleted  {}\n", Spoken(item.wanted));
  }
  return {};
}

int Uninstall(const Args& args, Cluster& cluster) {
  auto wish = WishWithStorage(args, cluster);
  if (!wish) return Refuse(wish.error());
  Site site(cluster, *wish);
  if (auto looked = site.Look(); !looked) return Fail(cluster.Explain(looked.error()));
  const bool keep_jobs = args.Has("keep-jobs");
  const std::vector<Item> items = ToRemove(site, keep_jobs);
  if (items.empty())
    return Refuse(fmt::format("there is nothing of Trainyard on the cluster of context {}",
                              cluster.context()));
  auto jobs = keep_jobs ? base::JsonArray() : AllJobs(cluster.client());
  if (!jobs) return Fail(cluster.Explain(jobs.error()));
  if (!jobs->empty() && !args.Has("with-jobs")) {
    return Refuse(
        fmt::format("{} TFJob{} would be deleted with it: delete what is not needed, or "
                    "say --with-jobs, or --keep-jobs",
                    jobs->size(), jobs->size() == 1 ? "" : "s"));
  }
  SayWhere(cluster);
  for (const Item& item : items) fmt::print("  delete  {}\n", Spoken(item.wanted));
  if (!Confirmed(args)) return Refuse("nothing was changed");
  CatchInterrupts();
  auto done = Remove(cluster, site, items, *jobs);
  return done ? 0 : Fail(cluster.Explain(done.error()));
}

}  // namespace

int InstallCommand(const Args& args) {
  auto context = ContextOf(args, "kubernetes");
  if (!context) return Refuse(context.error());
  if (!*context) return Refuse("install is for clusters: --on kubernetes");
  auto patience = PatienceOf(args);
  if (!patience) return Refuse(patience.error());
  auto cluster = Cluster::Connect(**context);
  if (!cluster) return Fail(cluster.error());
  return Install(args, *cluster, *patience);
}

int UninstallCommand(const Args& args) {
  auto context = ContextOf(args, "kubernetes");
  if (!context) return Refuse(context.error());
  if (!*context) return Refuse("uninstall is for clusters: --on kubernetes");
  if (args.Has("with-jobs") && args.Has("keep-jobs"))
    return Refuse("--with-jobs deletes the jobs that --keep-jobs keeps: say one of them");
  auto cluster = Cluster::Connect(**context);
  if (!cluster) return Fail(cluster.error());
  return Uninstall(args, *cluster);
}

}  // namespace cli
