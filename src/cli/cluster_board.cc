#include "cli/cluster_board.h"

#include <fmt/core.h>

#include "cli/beside.h"
#include "cli/cluster.h"
#include "cli/cluster_place.h"
#include "cli/kept_output.h"
#include "cli/place.h"
#include "cli/refuse.h"

namespace cli {
namespace {

using base::JsonArray;
using base::JsonObject;
using base::Result;

constexpr int kPort = 6006;  // TensorBoard's own
constexpr std::string_view kMount = "/trainyard/board";

// Those that were named, or else all that have somewhere to write to.
Result<std::vector<std::string>> JobsFor(const Args& args, const std::string& name_space) {
  if (!args.operands().empty()) return args.operands();
  auto place = TRY(PlaceOf(args));
  std::vector<std::string> out;
  for (const Listing& listing : TRY(place->List(name_space))) {
    auto job = TRY(place->Find(name_space, listing.name));
    const std::string output = TRY(job->Look()).job.extensions.output;
    if (!output.empty() && output.find("://") == std::string::npos) out.push_back(listing.name);
  }
  if (out.empty())
    return base::Invalid(
        fmt::format("no job in namespace {} keeps its logs on a claim", name_space));
  return out;
}

Result<BesideWish> WishFor(Cluster& cluster, const Args& args, const std::string& name_space) {
  const std::vector<std::string> jobs = TRY(JobsFor(args, name_space));
  const bool one = jobs.size() == 1;
  BesideWish out{.name = one ? jobs[0] + "-board" : "board",
                 .name_space = name_space,
                 .what = "TensorBoard",
                 .command = {"python3", "-m", "tensorboard.main", "--logdir", std::string(kMount),
                             "--host", "0.0.0.0", "--port", std::to_string(kPort)},
                 .ports = {{.name = "http", .number = kPort}},
                 .ready_path = "/"};
  for (const std::string& job : jobs) {
    const KeptOutput output = TRY(OutputThere(cluster, args, name_space, job));
    if (!output.url.empty())
      return base::Invalid(
          fmt::format("the logs of {} are in an object store: tensorboard "
                      "--logdir {}/tensorboard",
                      job, output.url));
    out.image = output.image;
    const std::string volume = fmt::format("logs-{}", out.volumes.size());
    out.volumes.push_back(ClaimVolume(volume, output.claim));
    out.mounts.push_back(
        JsonObject{{"name", volume},
                   {"mountPath", fmt::format("{}/{}", kMount, job)},
                   {"subPath", output.path.empty() ? "tensorboard" : output.path + "/tensorboard"},
                   {"readOnly", true}});
  }
  // It goes with its job, should it stay longer than we do.
  if (one) out.owners = OwnersThere(cluster, name_space, jobs[0]);
  return out;
}

}  // namespace

int BoardThere(const Args& args, const std::string& context) {
  if (args.Has("python")) return Refuse("--python is for this machine, not for clusters");
  auto cluster = Cluster::Connect(context);
  if (!cluster) return Fail(cluster.error());
  auto wish = WishFor(*cluster, args, cluster->NamespaceOf(args));
  if (!wish) return Fail(cluster->Explain(wish.error()));
  const auto port = args.Number("port", 0, 1, 65535);
  CatchInterrupts();
  wish->ports[0].local = static_cast<int>(*port);
  auto done =
      Reach(*cluster, *wish, args.Has("keep") ? Stay::kAfterCtrlC : Stay::kUntilCtrlC,
            [&](const std::vector<int>& local) {
              TellBoard(args, fmt::format("http://127.0.0.1:{}/", local[0]), wish->volumes.size());
            });
  if (done) return 0;
  const int status = Fail(cluster->Explain(done.error()));
  return Interrupted() ? 128 + Interrupted() : status;
}

}  // namespace cli
