// `adopt`: the live TFJobs of a cluster go over from another operator to ours, and their pods do
// not notice. Two operators must never look after the same jobs, so the other one is gone before
// ours comes; in between nobody does, which a running pod can bear.
#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "backend/cluster/stored.h"
#include "cli/cluster.h"
#include "cli/commands.h"
#include "cli/other_operator.h"
#include "cli/refuse.h"
#include "cli/site.h"
#include "io/clock.h"

namespace cli {
namespace {

using backend::cluster::StoredJob;
using base::Json;
using base::Result;

std::string Counted(size_t count, const std::string& kind) {
  return fmt::format("{} {}{}", count, kind, count == 1 ? "" : "s");
}

bool IsLive(const StoredJob& job) {
  return !job.deleting && !api::IsTerminal(job.value->status) &&
         backend::cluster::IsOurs(*job.value);
}

Result<std::vector<StoredJob>> LiveJobs(kube::Client& client) {
  std::vector<StoredJob> out;
  for (const Json& object : TRY(AllJobs(client))) {
    auto job = backend::cluster::ReadJob(object);
    if (job && IsLive(*job)) out.push_back(*std::move(job));
  }
  return out;
}

// Our operator has looked at it and remembers what it saw. Of a suspended job there is nothing to
// remember.
bool IsTaken(const StoredJob& job) {
  return !job.value->status.shape.empty() || api::Has(job.value->status, "Suspended");
}

class Adoption {
 public:
  Adoption(Cluster& cluster, const Args& args) : cluster_(cluster), args_(args) {}

  // Finds out everything that must be known before the first change. Refuses what cannot go well.
  Result<> Look();
  void Announce() const;
  Result<> Do(base::Time until);
  Result<> Undo();
  void Report() const;

 private:
  Result<> CheckKinds();
  Result<> CheckJobs() const;
  Result<> WaitUntilTaken(base::Time until);

  Cluster& cluster_;
  const Args& args_;
  std::optional<OtherOperator> other_;
  std::vector<OtherKind> keep_;  // kinds that the other operator goes on with
  std::vector<Change> changes_;
  size_t changed_ = 0;
  std::vector<StoredJob> jobs_;  // live ones, as they were found
  DeploymentWish wish_;
  std::optional<Site> site_;
};

Result<> Adoption::Look() {
  kube::Client& client = cluster_.client();
  other_ = TRY(OtherOperator::Find(cluster_, args_.Get("operator")));
  TRY(CheckKinds());
  jobs_ = TRY(LiveJobs(client));
  TRY(CheckJobs());
  wish_ = WishOf(args_);
  other_->CopySettings(wish_);
  // Before its pods go: a webhook that nobody answers refuses every TFJob.
  changes_ = TRY(other_->DropWebhooks(client));
  for (Change& change : other_->StandDown(keep_)) changes_.push_back(std::move(change));
  site_.emplace(cluster_, wish_);
  return site_->Look();
}

Result<> Adoption::CheckKinds() {
  const std::vector<OtherKind> kinds = TRY(FindOtherKinds(cluster_.client()));
  if (args_.Has("leave-others")) {
    keep_ = kinds;
    return {};
  }
  for (const OtherKind& kind : kinds) {
    if (kind.live == 0 || !other_->Runs()) continue;
    return base::Invalid(fmt::format(
        "{} would be left alone without {}: with --leave-others it stays for them, without TFJob",
        Counted(kind.live, kind.kind), other_->Name()));
  }
  return {};
}

// What ours cannot read it would end.
Result<> Adoption::CheckJobs() const {
  for (const StoredJob& job : jobs_) {
    if (job.invalid.empty()) continue;
    return base::Invalid(fmt::format("TFJob {}/{} cannot be taken over: {}", job.key.name_space,
                                     job.key.name, job.invalid));
  }
  return {};
}

void Adoption::Announce() const {
  SayWhere(cluster_);
  for (const Change& change : changes_) fmt::print("  {}\n", change.words);
  for (const Item& item : site_->items())
    fmt::print("  {}: {}\n", item.there ? "update" : "create", Spoken(item.wanted));
  fmt::print("  take over: {}; no pod is restarted\n", Counted(jobs_.size(), "live TFJob"));
}

Result<> Adoption::Do(base::Time until) {
  kube::Client& client = cluster_.client();
  for (const Change& change : changes_) {
    ++changed_;
    TRY(client.Patch(change.path, change.patch));
  }
  TRY(WaitFor(cluster_, "the end of the pods of " + other_->Name(), until,
              [&] { return other_->HasSettled(client); }));
  TRY(site_->Apply());
  TRY(site_->WaitUntilReady(until));
  return WaitUntilTaken(until);
}

Result<> Adoption::WaitUntilTaken(base::Time until) {
  std::set<std::string> missing;
  for (const StoredJob& job : jobs_) missing.insert(job.uid);
  return WaitFor(cluster_, "our operator to take over every job", until, [&] -> Result<bool> {
    std::set<std::string> still;
    for (const StoredJob& job : TRY(LiveJobs(cluster_.client()))) {
      if (missing.contains(job.uid) && !IsTaken(job)) still.insert(job.uid);
    }
    missing = std::move(still);
    return missing.empty();
  });
}

// In the opposite order: ours is gone before the other one comes back, unless it was here before.
Result<> Adoption::Undo() {
  kube::Client patient(cluster_.server());
  Result<> first = site_->Undo();
  const bool ours_stays = std::ranges::any_of(site_->items(), [](const Item& item) {
    return item.there && base::StringOr(item.wanted, "kind") == "Deployment";
  });
  const auto released = ours_stays ? Result<>() : site_->ReleasePods();
  if (first) first = released;
  for (; changed_ > 0; --changed_) {
    const Change& change = changes_[changed_ - 1];
    auto undone = patient.Patch(change.path, change.back);
    if (!undone && first) first = std::unexpected(undone.error());
  }
  return first;
}

void Adoption::Report() const {
  fmt::print("taken over: {}\n", Counted(jobs_.size(), "live TFJob"));
  if (keep_.empty())
    fmt::print("no longer needed: Deployment {}; docs/from-kubeflow.md tells the way back\n",
               other_->Name());
}

}  // namespace

int AdoptCommand(const Args& args) {
  auto context = ContextOf(args, "kubernetes");
  if (!context) return Refuse(context.error());
  if (!*context) return Refuse("adopt is for clusters: --on kubernetes");
  auto patience = PatienceOf(args);
  if (!patience) return Refuse(patience.error());
  auto cluster = Cluster::Connect(**context);
  if (!cluster) return Fail(cluster.error());
  Adoption adoption(*cluster, args);
  if (auto looked = adoption.Look(); !looked) return Fail(cluster->Explain(looked.error()));
  adoption.Announce();
  if (!Confirmed(args)) return Refuse("nothing was changed");
  CatchInterrupts();
  auto done = adoption.Do(io::Now() + *patience);
  if (!done) return FailUndone(*cluster, done.error(), adoption.Undo());
  adoption.Report();
  return 0;
}

}  // namespace cli
