// `fetch`: brings home what a job on a cluster has made, through a pod that lives as long as that
// takes.
#include <cstdlib>

#include <fmt/core.h>
#include <poll.h>

#include "base/quantity.h"
#include "base/strings.h"
#include "base/tar.h"
#include "cli/cluster.h"
#include "cli/commands.h"
#include "cli/kept_output.h"
#include "cli/local_place.h"
#include "cli/made.h"
#include "cli/object.h"
#include "cli/place.h"
#include "cli/pod_troubles.h"
#include "cli/progress_line.h"
#include "cli/refuse.h"
#include "cli/wait_for.h"
#include "io/clock.h"
#include "io/files.h"
#include "io/unpack.h"
#include "kube/api.h"
#include "kube/exec.h"
#include "pod_scripts.h"

namespace cli {
namespace {

using base::Error;
using base::ErrorKind;
using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::Result;
using namespace std::chrono_literals;

constexpr base::Duration kStartsWithin = 3min;
constexpr int64_t kPodSeconds = 24 * 3600;  // it ends by itself if we cannot end it
constexpr std::string_view kMount = "/claim";
constexpr size_t kMostSaid = 1 << 20;

Json FetchPod(const KeptOutput& source, const std::string& name) {
  JsonObject container{
      {"name", "fetch"},
      {"image", source.image},
      {"command", JsonArray{Json("python3"), Json("-c"),
                            Json(fmt::format("import time; time.sleep({})", kPodSeconds))}},
      {"volumeMounts",
       JsonArray{JsonObject{{"name", "claim"}, {"mountPath", kMount}, {"readOnly", true}}}}};
  JsonObject spec = ReaderPod(std::move(container), JsonArray{ClaimVolume("claim", source.claim)});
  spec["restartPolicy"] = "Never";
  spec["activeDeadlineSeconds"] = kPodSeconds;
  return JsonObject{
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata",
       JsonObject{{"generateName", name + "-fetch-"},
                  {"labels", JsonObject{{"app.kubernetes.io/managed-by", "trainyard"}}}}},
      {"spec", std::move(spec)}};
}

Result<> WaitUntilRunning(Cluster& cluster, const std::string& path) {
  Json pod;
  const auto runs = [&] -> Result<bool> {
    pod = TRY(cluster.client().Get(path));
    const std::string phase = base::StringOr(At(pod, "status"), "phase");
    if (phase == "Failed" || phase == "Succeeded")
      return std::unexpected(Error(ErrorKind::kUnavailable, "the pod that reads the claim ended"));
    return phase == "Running";
  };
  return WaitFor(cluster, "a pod that reads the claim", io::Now() + kStartsWithin, runs, [&] {
    return StartTrouble(pod, WarningsAboutPods(cluster, Metadata(pod, "namespace")),
                        PodKind::kReader);
  });
}

// Returns the paths that were not sent (send_files.py).
Result<std::vector<std::string>> Receive(Cluster& cluster, const std::string& name_space,
                                         const std::string& pod, const KeptOutput& source,
                                         io::Unpack& to) {
  base::TarReader reader(to);
  auto exec = TRY(kube::Exec::Start(
      cluster.server(),
      {.ns = name_space,
       .pod = pod,
       .command = {"python3", "-c", std::string(pod_scripts::kSendFilesPy),
                   std::string(kMount) + (source.path.empty() ? "" : "/" + source.path)}}));
  ProgressLine line;
  std::string said;
  while (!exec->status()) {
    if (Interrupted()) return std::unexpected(Error(ErrorKind::kUnavailable, "interrupted"));
    pollfd ready{exec->fd(), static_cast<short>(exec->wants_write() ? POLLIN | POLLOUT : POLLIN),
                 0};
    if (!exec->more()) poll(&ready, 1, 100);
    Result<> fed;
    TRY(exec->Advance([&](int fd, std::string_view bytes) {
      if (fd == 2 && said.size() < kMostSaid) said += bytes;
      if (fd == 1 && fed) fed = reader.Feed(bytes);
    }));
    TRY(std::move(fed));
    line.Show(fmt::format("{} files, {}", to.files(), base::FormatBytes(to.bytes())));
  }
  const int status = TRY(Result<int>(*exec->status()));
  if (status != 0)
    return std::unexpected(
        Error(ErrorKind::kInternal, fmt::format("reading the claim failed: {}", base::Trim(said))));
  if (!reader.complete())
    return std::unexpected(
        Error(ErrorKind::kUnavailable, "the connection ended before the last file"));
  std::vector<std::string> skipped;
  for (std::string_view path : base::Split(base::Trim(said), '\n')) {
    if (!path.empty()) skipped.push_back(base::OneLine(path, 300));
  }
  return skipped;
}

struct Fetched {
  int64_t files = 0;
  int64_t bytes = 0;
  std::vector<std::string> skipped;
};

// Into a directory beside `destination` first, so that nobody ever sees half of it.
Result<Fetched> Fetch(Cluster& cluster, const std::string& name_space, const std::string& name,
                      const KeptOutput& source, const std::string& destination) {
  const std::string pods = kube::Path("v1", "pods", name_space);
  Made made(cluster.server(), cluster.server());
  const Json pod = TRY(made.Create(pods, FetchPod(source, name)));
  const std::string pod_name = base::StringOr(At(pod, "metadata"), "name");
  TRY(WaitUntilRunning(cluster, pods + "/" + pod_name));
  const std::string part = destination + ".part";
  TRY(io::RemoveTree(part));
  TRY(io::MakeDirs(part));
  Fetched out;
  const auto received = [&]() -> Result<> {
    io::Unpack to = TRY(io::Unpack::Into(part));
    auto skipped = TRY(Receive(cluster, name_space, pod_name, source, to));
    out = {to.files(), to.bytes(), std::move(skipped)};
    if (rename(part.c_str(), destination.c_str()) != 0) return base::FromErrno(destination, errno);
    return {};
  }();
  if (!received) {
    base::IgnoreError(io::RemoveTree(part), "the first error is the one to tell");
    return std::unexpected(received.error());
  }
  return out;
}

}  // namespace

int FetchCommand(const Args& args) {
  auto context = ContextOf(args);
  if (!context) return Refuse(context.error());
  if (!*context)
    return Refuse(
        "jobs of this machine have their output here: trainyard why JOB says where; "
        "--on kubernetes means a cluster");
  auto cluster = Cluster::Connect(**context);
  if (!cluster) return Fail(cluster.error());
  const std::string space = cluster->NamespaceOf(args);
  std::string name = args.operand(0);
  if (name.empty()) {
    auto latest = FindJob(args);
    if (!latest) return Fail(latest.error());
    name = latest->job->name();
  }
  auto source = OutputThere(*cluster, args, space, name);
  if (!source) return Fail(cluster->Explain(source.error()));
  if (!source->url.empty()) {
    fmt::print("{}\n", source->url);
    return 0;
  }
  const std::string destination = args.operands().size() > 1 ? args.operand(1) : name;
  if (io::Exists(destination))
    return Refuse(fmt::format("{} is there already: name another directory: trainyard fetch {} DIR",
                              destination, name));
  CatchInterrupts();
  auto fetched = Fetch(*cluster, space, name, *source, destination);
  if (!fetched) {
    const int status = Fail(cluster->Explain(fetched.error()));
    return Interrupted() ? 128 + Interrupted() : status;
  }
  for (const std::string& path : fetched->skipped) {
    fmt::print(stderr,
               "trainyard: warning: {} was not fetched: it is not a file, or a link that leads to "
               "none in the output\n",
               path);
  }
  if (args.json()) {
    JsonArray skipped;
    for (const std::string& path : fetched->skipped) skipped.emplace_back(path);
    fmt::print("{}\n", base::CompactJson(JsonObject{{"job", name},
                                                    {"directory", io::AbsolutePath(destination)},
                                                    {"files", fetched->files},
                                                    {"bytes", fetched->bytes},
                                                    {"skipped", std::move(skipped)}}));
    return 0;
  }
  fmt::print("{} files, {}, in {}\n", fetched->files, base::FormatBytes(fetched->bytes),
             destination);
  if (const std::string model = NewestModel(destination); !model.empty())
    fmt::print("  model   {}\n", model);
  return 0;
}

}  // namespace cli
