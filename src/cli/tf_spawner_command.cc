// `tf-spawner`: the command line of TF-Spawner, with its objects on a cluster (cli/tf_spawner.h).
#include "cli/tf_spawner_command.h"

#include <random>

#include <fmt/core.h>
#include <unistd.h>

#include "base/env_file.h"
#include "cli/commands.h"
#include "cli/ending.h"
#include "cli/made.h"
#include "cli/progress_line.h"
#include "cli/refuse.h"
#include "cli/spawned.h"
#include "cli/tf_spawner.h"
#include "io/files.h"
#include "io/terminal.h"
#include "kube/api.h"
#include "templates.h"

namespace cli {
namespace {

using base::Error;
using base::ErrorKind;
using base::Invalid;
using base::Json;
using base::JsonObject;
using base::Result;

constexpr int kExitInterrupted = 130;
constexpr size_t kMostRead = 16 << 20;  // of a script; what is too large for a ConfigMap is told

// Eight hexadecimal digits. The first is a letter, as it must be in the name of a service.
std::string RandomTag() {
  std::random_device random;
  return fmt::format("{:x}{:07x}", 0xa + random() % 6, random() & 0xfffffff);
}

Result<std::string> TagOf(const Args& args) {
  if (!args.Has("delete")) {
    if (args.Has("randomize-tag")) return RandomTag();
    return args.Get("tag", kDefaultTag);
  }
  if (args.Has("randomize-tag")) return Invalid("-d: with -r there is nothing to delete yet");
  // TF-Spawner's manual has both -d -t TAG and -d TAG.
  const std::string word = args.operand(0);
  if (word.empty()) return args.Get("tag", kDefaultTag);
  if (args.Has("tag") && args.Get("tag") != word) {
    return Invalid(fmt::format("-d: one tag at a time, not both {} and {}", args.Get("tag"), word));
  }
  return word;
}

// The file that is named, else the pod.yaml that lies here, else ours.
Result<Json> PodTemplate(const Args& args) {
  const std::string path = args.Get("pod-file", "pod.yaml");
  if (!args.Has("pod-file") && !io::Exists(path)) return ReadPodFile(templates::kPodYaml, path);
  return ReadPodFile(TRY_AS("--pod-file", io::ReadFile(path, 1 << 20)), path);
}

Result<Spawn> SpawnOf(const Args& args, const std::string& tag) {
  Spawn spawn{.tag = tag};
  spawn.workers = static_cast<int32_t>(TRY(args.Number("workers", spawn.workers, 1, 1000)));
  spawn.port = static_cast<int32_t>(TRY(args.Number("port", spawn.port, 1, 65535)));
  spawn.script = TRY_AS("script", io::ReadFile(args.operand(0), kMostRead));
  if (args.Has("command")) {
    spawn.command = TRY_AS("--command", io::ReadFile(args.Get("command"), kMostRead));
  }
  if (args.Has("env-file")) {
    const std::string text = TRY_AS("--env-file", io::ReadFile(args.Get("env-file")));
    spawn.env = TRY_AS("--env-file " + args.Get("env-file"), base::ParseEnvFile(text));
  }
  spawn.image = args.Get("image");
  spawn.pod = TRY(PodTemplate(args));
  TRY(CheckSpawn(spawn));
  return spawn;
}

// The words that follow a tag on the command lines that we name.
std::string Where(const Args& args) {
  return args.Has("namespace") ? " -n " + args.Get("namespace") : "";
}

Result<> CheckTagIsFree(const Args& args, const std::string& tag, const Cluster& cluster) {
  // Pods may take a while to end after all else was deleted.
  for (const char* resource : {"configmaps", "pods"}) {
    const auto found = TRY(cluster.client().List(
        kube::Path("v1", resource, cluster.NamespaceOf(args)), SelectorOf(tag)));
    if (found.empty()) continue;
    return Invalid(fmt::format(
        "a job with label {} exists already: choose another tag (-t TAG, or -r), or delete it: "
        "tf-spawner -d -t {}{}",
        SelectorOf(tag), tag, Where(args)));
  }
  return {};
}

Result<> Make(const Spawn& spawn, const std::string& name_space, Made& made) {
  std::vector<Piece> pieces = PiecesOf(spawn);
  ProgressLine line;
  // What others rest on comes first, one by one; then all services, then all pods.
  size_t at = 0;
  Json script;
  for (; at < pieces.size() && pieces[at].resource != "services"; ++at) {
    Piece& piece = pieces[at];
    if (Interrupted()) return std::unexpected(Error(ErrorKind::kUnavailable, "interrupted"));
    // Whoever deletes the script, by whatever means, leaves no credentials behind.
    if (piece.resource == "secrets") SetOwner(piece.object, script);
    Json there = TRY_AS(std::string(piece.kind),
                        made.Create(kube::Path("v1", piece.resource, name_space), piece.object));
    if (at == 0) script = std::move(there);
  }
  while (at < pieces.size()) {
    const size_t first = at;
    std::vector<Made::New> alike;
    for (; at < pieces.size() && pieces[at].resource == pieces[first].resource; ++at)
      alike.push_back({kube::Path("v1", pieces[at].resource, name_space), pieces[at].object});
    const auto all = made.CreateAll(alike, [&](size_t count) {
      line.Show(fmt::format("making {} of {}", first + count + 1, pieces.size()));
      return Interrupted() == 0;
    });
    if (Interrupted()) return std::unexpected(Error(ErrorKind::kUnavailable, "interrupted"));
    TRY_AS(std::string(pieces[first].kind), all);
  }
  made.Keep();
  return {};
}

// All of it, or nothing.
Result<> MakeOrTakeBack(const Spawn& spawn, const std::string& name_space, const Cluster& cluster) {
  Made made(cluster.server(), cluster.server());
  auto done = Make(spawn, name_space, made);
  if (done) return {};
  const auto undone = made.TakeBack();
  return std::unexpected(Error(
      done.error().kind(),
      done.error().text() +
          (undone ? "; what had been made is taken back"
                  : "; not all that had been made could be taken back: " + undone.error().text())));
}

void Tell(const Args& args, const Spawn& spawn, const std::string& name_space) {
  const std::string label = SelectorOf(spawn.tag), where = Where(args);
  if (args.json()) {
    const JsonObject made{
        {"tag", spawn.tag}, {"namespace", name_space}, {"workers", spawn.workers}};
    return io::WriteOut(1, base::CompactJson(made) + "\n");
  }
  // On standard output this line and no other, as TF-Spawner: programs read it.
  io::WriteOut(1, fmt::format("generated with label {}\n", label));
  io::WriteOut(
      2, fmt::format("  look    kubectl get pods -l {}{}\n"
                     "  follow  trainyard logs -f {}{} --on kubernetes\n"
                     "  wait    trainyard wait {}{} --on kubernetes\n"
                     "  delete  tf-spawner -d -t {}{}\n",
                     label, where, spawn.tag, where, spawn.tag, where, spawn.tag, where));
}

// Until the job has ended; its exit status.
int WaitThere(const Args& args, const std::string& tag, Cluster cluster) {
  const std::string name_space = cluster.NamespaceOf(args);
  const auto job = OpenSpawned(cluster, name_space, tag, " --on kubernetes" + Where(args));
  auto over = job->WaitUntilOver(std::nullopt);
  if (!over) return Failed(cluster, over.error());
  if (!*over) {
    fmt::print(stderr, "trainyard: left; {} goes on\n", tag);
    return kExitInterrupted;
  }
  auto standing = job->Look();
  if (!standing) return Failed(cluster, standing.error());
  io::WriteOut(2, Ending(standing->job, job->WhatIsKept(standing->job), io::TerminalOf(2)));
  return ExitStatus(standing->job.status);
}

int SpawnThere(const Args& args, const std::string& tag, const std::string& context) {
  auto spawn = SpawnOf(args, tag);
  if (!spawn) return Refuse(spawn.error());
  auto cluster = ClusterOf(context);
  if (!cluster) return Refuse(cluster.error());
  CatchInterrupts();
  if (auto free = CheckTagIsFree(args, tag, *cluster); !free) return Failed(*cluster, free.error());
  const std::string name_space = cluster->NamespaceOf(args);
  if (auto made = MakeOrTakeBack(*spawn, name_space, *cluster); !made) {
    return Failed(*cluster, made.error());
  }
  Tell(args, *spawn, name_space);
  return args.Has("wait") ? WaitThere(args, tag, *std::move(cluster)) : 0;
}

}  // namespace

int Failed(const Cluster& cluster, const Error& error) {
  const int status = Fail(cluster.Explain(error));
  return Interrupted() ? kExitInterrupted : status;
}

int TfSpawnerCommand(const Args& args) {
  auto context = ContextOf(args, "kubernetes");
  if (!context) return Refuse(context.error());
  auto tag = TagOf(args);
  if (!tag) return Refuse(tag.error());
  if (auto good = CheckTag(*tag); !good) return Refuse(good.error());
  if (!args.Has("delete")) {
    if (args.operands().empty()) return Refuse("which script? usage: tf-spawner [-w N] SCRIPT");
    return *context ? SpawnThere(args, *tag, **context) : SpawnHere(args, *tag);
  }
  if (!args.Has("yes") && !isatty(0)) {
    return Refuse("-d: there is no terminal to ask at: confirm with --yes");
  }
  return *context ? DeleteSpawned(args, *tag, **context) : DeleteSpawnedHere(args, *tag);
}

}  // namespace cli
