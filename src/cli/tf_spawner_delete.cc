// `tf-spawner -d` on a cluster.
#include <iostream>

#include <fmt/core.h>
#include <poll.h>

#include "cli/progress_line.h"
#include "cli/refuse.h"
#include "cli/tf_spawner.h"
#include "cli/tf_spawner_command.h"
#include "io/terminal.h"
#include "kube/api.h"

namespace cli {
namespace {

using base::Error;
using base::ErrorKind;
using base::Json;
using base::Result;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::string_view kPod = "pod";
constexpr int kBetweenLooksMs = 200;
constexpr auto kPatience = 60s;  // beyond a pod's grace, for a kubelet that has much to do

struct Tagged {
  std::string_view kind;
  std::string name, path, uid;
};

class Deletion {
 public:
  Deletion(kube::Client& client, const std::string& name_space, const std::string& tag)
      : client_(client), name_space_(name_space), selector_(SelectorOf(tag)) {}

  // Finds what there is. Services go first and pods last, as in TF-Spawner.
  Result<> Look() {
    TRY(LookFor("service", "services"));
    TRY(LookFor("config map", "configmaps"));
    // Without the right to list secrets: ours goes with its config map.
    auto found = LookFor("secret", "secrets");
    if (!found && found.error().kind() != ErrorKind::kForbidden) return found;
    return LookFor(kPod, "pods");
  }

  bool empty() const { return found_.empty(); }

  // What is gone already, or has been replaced by another of its name, is fine.
  Result<> Remove(bool aloud) {
    for (const Tagged& one : found_) {
      if (aloud) io::WriteOut(1, fmt::format("removing '{}' {}\n", one.name, one.kind));
      auto gone = client_.Delete(one.path, one.uid);
      if (!gone && gone.error().kind() != ErrorKind::kNotFound &&
          gone.error().kind() != ErrorKind::kTaken) {
        return gone;
      }
    }
    return {};
  }

  // Until the pods are gone: then their names are free for a new job.
  Result<> Wait() {
    ProgressLine line;
    const auto began = steady_clock::now();
    for (const Tagged& one : found_) {
      if (one.kind != kPod) continue;
      while (const auto grace = TRY(GraceOf(one))) {
        if (steady_clock::now() > began + *grace + kPatience) return Stuck(one);
        line.Show(fmt::format("waiting for {} to end", one.name));
        poll(nullptr, 0, kBetweenLooksMs);
      }
    }
    return {};
  }

 private:
  Result<> LookFor(std::string_view kind, std::string_view resource) {
    const std::string path = kube::Path("v1", resource, name_space_);
    for (const Json& object : TRY(client_.List(path, selector_))) {
      const std::string name = kube::Metadata(object, "name");
      found_.push_back({kind, name, kube::Path("v1", resource, name_space_, name),
                        kube::Metadata(object, "uid")});
    }
    return {};
  }

  // How long a pod may take to end; nothing once it is gone.
  Result<std::optional<std::chrono::seconds>> GraceOf(const Tagged& one) {
    const auto pod = client_.Get(one.path);
    if (!pod && pod.error().kind() == ErrorKind::kNotFound) return std::nullopt;
    if (!pod) return std::unexpected(pod.error());
    if (kube::Metadata(*pod, "uid") != one.uid) return std::nullopt;
    return std::chrono::seconds(
        base::IntOr(*base::Find(*pod, "metadata"), "deletionGracePeriodSeconds"));
  }

  std::unexpected<Error> Stuck(const Tagged& one) {
    return std::unexpected(Error(
        ErrorKind::kUnavailable,
        fmt::format("{} does not end; if its node is lost: kubectl delete pod --force -n {} {}",
                    one.name, name_space_, one.name)));
  }

  kube::Client& client_;
  const std::string name_space_;
  const std::string selector_;
  std::vector<Tagged> found_;
};

}  // namespace

bool IsConfirmed(const Args& args, const std::string& tag) {
  if (args.Has("yes")) return true;
  io::WriteOut(
      1, fmt::format("This will delete the resources tagged with: {}. Confirm with y/[n] ", tag));
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y";
}

int DeleteSpawned(const Args& args, const std::string& tag, const std::string& context) {
  auto cluster = ClusterOf(context);
  if (!cluster) return Refuse(cluster.error());
  const std::string name_space = cluster->NamespaceOf(args);
  Deletion deletion(cluster->client(), name_space, tag);
  if (auto found = deletion.Look(); !found) return Failed(*cluster, found.error());
  if (deletion.empty()) {
    return Refuse(
        fmt::format("nothing in namespace {} has the label {}", name_space, SelectorOf(tag)));
  }
  if (!IsConfirmed(args, tag)) return Refuse("nothing was deleted");
  // Only now: at the question, Ctrl-C is an answer.
  CatchInterrupts();
  auto done = deletion.Remove(!args.json());
  if (done) done = deletion.Wait();
  if (!done) return Failed(*cluster, done.error());
  if (args.json()) {
    const base::JsonObject gone{{"tag", tag}, {"namespace", name_space}, {"deleted", true}};
    io::WriteOut(1, base::CompactJson(gone) + "\n");
  }
  return 0;
}

}  // namespace cli
