#include "cli/cluster_serve.h"

#include <fmt/core.h>

#include "cli/beside.h"
#include "cli/cluster.h"
#include "cli/cluster_place.h"
#include "cli/kept_output.h"
#include "cli/place.h"
#include "cli/refuse.h"
#include "cli/sweep_store.h"

namespace cli {
namespace {

using base::Invalid;
using base::JsonArray;
using base::JsonObject;
using base::Result;

constexpr int kPort = 8500, kRestPort = 8501;  // of TensorFlow Serving
constexpr std::string_view kMount = "/trainyard/model";
constexpr std::string_view kOfficialImage = "tensorflow/serving:2.19.1";
constexpr std::string_view kOurImage = "trainyard-serving:latest";  // by script/image --serving

std::vector<std::string> Command(bool ours, const std::string& model) {
  const std::string path(kMount);
  if (ours) return {"trainyard", "serve", path, "--name", model, "--host", "0.0.0.0", "--open"};
  return {"tensorflow_model_server", fmt::format("--port={}", kPort),
          fmt::format("--rest_api_port={}", kRestPort), "--model_name=" + model,
          "--model_base_path=" + path};
}

// `model` is what the model is called.
Result<BesideWish> WishFor(Cluster& cluster, const Args& args, const std::string& name_space,
                           const std::string& job, const std::string& model) {
  const bool ours =
      TRY(args.OneOf("server", "tensorflow", {"tensorflow", "trainyard"})) == "trainyard";
  const KeptOutput output = TRY(OutputThere(cluster, args, name_space, job));
  if (!output.url.empty())
    return Invalid(fmt::format("the output of {} is in an object store: serve {} from there", job,
                               output.url));
  BesideWish out{
      .name = job + "-serve",
      .name_space = name_space,
      .what = "the server of " + model,
      // Our own server is what the cure for the other names.
      .kind = ours ? PodKind::kReader : PodKind::kServer,
      .image = args.Get("image", ours ? kOurImage : kOfficialImage),
      .command = Command(ours, model),
      .ports = {{.name = "grpc",
                 .number = kPort,
                 .local = static_cast<int>(TRY(args.Number("port", kPort, 0, 65535)))},
                {.name = "http",
                 .number = kRestPort,
                 .local = static_cast<int>(TRY(args.Number("rest-port", kRestPort, 0, 65535)))}},
      // Not the model's own page, which answers while it is still being loaded.
      .ready_path = "/v1/models/" + model + "/metadata",
      .ingress = args.Get("ingress")};
  const std::string below = args.Get("path");
  const std::string folder = output.path.empty() ? "output" : output.path + "/output";
  out.volumes.push_back(ClaimVolume("output", output.claim));
  out.mounts.push_back(
      JsonObject{{"name", "output"},
                 {"mountPath", kMount},
                 {"subPath", (output.plain ? output.path : folder) +
                                 (below.empty() ? "" : "/" + below)},
                 {"readOnly", true}});
  // It goes with its job, should it stay longer than we do.
  out.owners = OwnersThere(cluster, name_space, job);
  return out;
}

void Tell(const Args& args, const BesideWish& wish, const std::string& model,
          const std::vector<int>& local) {
  const std::string inside = fmt::format("{}.{}.svc", wish.name, wish.name_space);
  const std::string grpc =
      local.empty() ? fmt::format("{}:{}", inside, kPort) : fmt::format("127.0.0.1:{}", local[0]);
  const std::string rest = local.empty() ? fmt::format("http://{}:{}", inside, kRestPort)
                                         : fmt::format("http://127.0.0.1:{}", local[1]);
  if (args.json()) {
    fmt::print("{}\n", base::CompactJson(JsonObject{{"grpc", grpc}, {"rest", rest}}));
    return;
  }
  fmt::print("{} · gRPC {} · REST {}/v1/models/{}{}\n", wish.what, grpc, rest, model,
             local.empty() ? "" : " · Ctrl-C ends it");
}

}  // namespace

int ServeThere(const Args& args, const std::string& context) {
  for (const char* flag :
       {"host", "config", "python", "batch", "batch-wait", "runs", "threads", "queue",
        "rest-timeout", "max-request", "poll", "token-file", "certificate", "key", "open"}) {
    if (args.Has(flag))
      return Refuse(fmt::format("--{} is for this machine, not for clusters", flag));
  }
  auto cluster = Cluster::Connect(context);
  if (!cluster) return Fail(cluster.error());
  std::string job = args.operand(0);
  if (job.empty()) {
    auto latest = FindJob(args);
    if (!latest) return Fail(latest.error());
    job = latest->job->name();
  }
  const std::string model = args.Get("name", job);
  auto wish = WishFor(*cluster, args, cluster->NamespaceOf(args), job, model);
  // A sweep stands for its best trial, which is served under the name of the sweep.
  const bool no_job = !wish && wish.error().kind() == base::ErrorKind::kNotFound;
  if (const auto best = no_job ? BestJobOf(args.name_space(), job) : std::nullopt)
    wish = WishFor(*cluster, args, best->name_space, best->name, model);
  if (!wish) return Fail(cluster->Explain(wish.error()));
  CatchInterrupts();
  auto done = Reach(
      *cluster, *wish, args.Has("detach") ? Stay::kDetached : Stay::kUntilCtrlC,
      [&](const std::vector<int>& local) { Tell(args, *wish, model, local); });
  if (done) return 0;
  const int status = Fail(cluster->Explain(done.error()));
  return Interrupted() ? 128 + Interrupted() : status;
}

}  // namespace cli
