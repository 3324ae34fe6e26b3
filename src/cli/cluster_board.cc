#include "cli/cluster_board.h"

#include <map>

#include <fmt/core.h>

#include "cli/beside.h"
#include "cli/bundle.h"
#include "cli/cluster.h"
#include "cli/cluster_place.h"
#include "cli/kept_output.h"
#include "cli/place.h"
#include "cli/refuse.h"
#include "cli/sweep_store.h"
#include "io/files.h"

namespace cli {
namespace {

using base::ErrorKind;
using base::JsonArray;
using base::JsonObject;
using base::Result;

constexpr int kPort = 6006;  // TensorBoard's own
constexpr std::string_view kMount = "/trainyard/board";

// What is shown: event files below paths of claims, each as a run or as a folder of runs.
class Shown {
 public:
  Shown(Cluster& cluster, const Args& args, std::string name_space)
      : cluster_(cluster), args_(args), name_space_(std::move(name_space)) {}

  Result<> AddNamed(const std::string& name) {
    auto added = AddJob(name, name_space_, name);
    if (added || added.error().kind() != ErrorKind::kNotFound) return added;
    auto sweep = SweepStore::Open(args_.name_space(), name);
    return sweep ? AddSweep(*sweep) : std::move(added);
  }

  // Every job that has somewhere to write to.
  Result<> AddAll() {
    auto place = TRY(PlaceOf(args_));
    for (const Listing& listing : TRY(place->List(name_space_))) {
      auto job = TRY(place->Find(name_space_, listing.name));
      const std::string output = TRY(job->Look()).job.extensions.output;
      if (!output.empty() && output.find("://") == std::string::npos)
        TRY(AddJob(listing.name, name_space_, listing.name));
    }
    if (mounts_.empty())
      return base::Invalid(
          fmt::format("no job in namespace {} keeps its logs on a claim", name_space_));
    return {};
  }

  size_t runs() const { return runs_; }

  BesideWish Wish(const std::string& name) && {
    return {.name = name,
            .name_space = name_space_,
            .what = "TensorBoard",
            .image = image_,
            .command = {"python3", "-m", "tensorboard.main", "--logdir", std::string(kMount),
                        "--host", "0.0.0.0", "--port", std::to_string(kPort)},
            .ports = {{.name = "http", .number = kPort}},
            .ready_path = "/",
            .mounts = std::move(mounts_),
            .volumes = std::move(volumes_),
            .owners = std::move(owners_)};
  }

 private:
  Result<> AddJob(const std::string& job, const std::string& name_space, const std::string& run) {
    const KeptOutput output = TRY(OutputThere(cluster_, args_, name_space, job));
    if (!output.url.empty())
      return base::Invalid(
          fmt::format("the logs of {} are in an object store: tensorboard "
                      "--logdir {}/tensorboard",
                      job, output.url));
    image_ = output.image;
    const std::string ours = output.path.empty() ? "tensorboard" : output.path + "/tensorboard";
    Mount(output.claim, output.plain ? output.path : ours, run);
    ++runs_;
    Own(name_space, job);
    return {};
  }

  // The trials that are there; on a claim that they share, those to come as well.
  Result<> AddSweep(SweepStore& sweep) {
    const SweepPlan& plan = sweep.plan();
    name_space_ = plan.job_space;
    const auto output = ParseOutput(plan.output.empty() ? "new" : plan.output);
    const bool shared = output && output->kind == OutputWish::Kind::kClaim;
    const sweep::Study study = TRY(sweep.Load());
    bool any = false;
    for (const sweep::Trial& trial : study.trials()) {
      const std::string job = sweep.JobName(trial.number);
      if (shared && any) {
        Own(plan.job_space, job);
        ++runs_;
        continue;
      }
      const std::string run = fmt::format("{}/{}", plan.name, io::BaseName(sweep.TrialDir(trial)));
      const size_t mounts = mounts_.size();
      auto added = AddJob(job, plan.job_space, run);
      // Not begun yet, or deleted.
      if (!added && added.error().kind() == ErrorKind::kNotFound) continue;
      TRY(std::move(added));
      any = true;
      if (!shared) continue;
      mounts_.resize(mounts);
      Mount(output->claim, (output->path.empty() ? "" : output->path + "/") + plan.name, plan.name);
    }
    if (any) return {};
    return base::Invalid(fmt::format("no trial of {} is in namespace {}: trainyard sweep show {}",
                                     plan.name, plan.job_space, plan.name));
  }

  // One volume a claim, since a pod with several of the same does not start everywhere.
  void Mount(const std::string& claim, const std::string& path, const std::string& run) {
    const auto [volume, fresh] = names_.try_emplace(claim, fmt::format("logs-{}", names_.size()));
    if (fresh) volumes_.push_back(ClaimVolume(volume->second, claim));
    mounts_.push_back(JsonObject{{"name", volume->second},
                                 {"mountPath", fmt::format("{}/{}", kMount, run)},
                                 {"subPath", path},
                                 {"readOnly", true}});
  }

  // It goes with the last of its jobs, should it stay longer than we do.
  void Own(const std::string& name_space, const std::string& job) {
    for (base::Json& owner : OwnersThere(cluster_, name_space, job))
      owners_.push_back(std::move(owner));
  }

  Cluster& cluster_;
  const Args& args_;
  std::string name_space_, image_;
  std::map<std::string, std::string> names_;  // of volumes, by claim
  JsonArray volumes_, mounts_, owners_;
  size_t runs_ = 0;  // one mount may hold those of a whole sweep
};

Result<BesideWish> WishFor(Shown shown, const Args& args, size_t& runs) {
  for (const std::string& name : args.operands()) TRY(shown.AddNamed(name));
  if (args.operands().empty()) TRY(shown.AddAll());
  runs = shown.runs();
  const bool one = args.operands().size() == 1;
  return std::move(shown).Wish(one ? args.operand(0) + "-board" : "board");
}

}  // namespace

int BoardThere(const Args& args, const std::string& context) {
  if (args.Has("python")) return Refuse("--python is for this machine, not for clusters");
  auto cluster = Cluster::Connect(context);
  if (!cluster) return Fail(cluster.error());
  size_t runs = 0;
  auto wish = WishFor(Shown(*cluster, args, cluster->NamespaceOf(args)), args, runs);
  if (!wish) return Fail(cluster->Explain(wish.error()));
  const auto port = args.Number("port", 0, 1, 65535);
  CatchInterrupts();
  wish->ports[0].local = static_cast<int>(*port);
  auto done =
      Reach(*cluster, *wish, args.Has("keep") ? Stay::kAfterCtrlC : Stay::kUntilCtrlC,
            [&](const std::vector<int>& local) {
              TellBoard(args, fmt::format("http://127.0.0.1:{}/", local[0]), runs);
            });
  if (done) return 0;
  const int status = Fail(cluster->Explain(done.error()));
  return Interrupted() ? 128 + Interrupted() : status;
}

}  // namespace cli
