#include "cli/beside.h"

#include <optional>

#include <fmt/core.h>

#include "cli/kept_output.h"
#include "cli/made.h"
#include "cli/object.h"
#include "cli/site.h"
#include "io/clock.h"
#include "kube/api.h"
#include "kube/port_forward.h"

namespace cli {
namespace {

using base::Error;
using base::ErrorKind;
using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::Result;
using namespace std::chrono_literals;

constexpr base::Duration kLookAgain = 1s;  // whether its pod is still the same
constexpr const char* kNameLabel = "app.kubernetes.io/name";

JsonObject Container(const BesideWish& wish) {
  JsonArray command;
  for (const std::string& word : wish.command) command.emplace_back(word);
  return {{"name", "server"},
          {"image", wish.image},
          {"command", std::move(command)},
          {"env", JsonArray{JsonObject{{"name", "HOME"}, {"value", "/tmp"}}}},
          {"ports", JsonArray{JsonObject{{"name", "http"}, {"containerPort", wish.port}}}},
          {"readinessProbe",
           JsonObject{{"httpGet", JsonObject{{"path", wish.ready_path}, {"port", wish.port}}},
                      {"periodSeconds", 1}}},
          {"volumeMounts", wish.mounts}};
}

Result<> Make(Made& made, const BesideWish& wish) {
  for (const Json& object : BesideObjects(wish)) {
    const bool service = base::StringOr(object, "kind") == "Service";
    auto there = made.Create(kube::Path(service ? "v1" : "apps/v1",
                                        service ? "services" : "deployments", wish.name_space),
                             object);
    // One that was kept, or that a colleague has made.
    if (!there && there.error().kind() != ErrorKind::kTaken) return std::unexpected(there.error());
  }
  return {};
}

class Reaching {
 public:
  Reaching(Cluster& cluster, const BesideWish& wish) : cluster_(cluster), wish_(wish) {}

  // The name of a pod that is ready.
  Result<std::string> WaitForPod(base::Time until) {
    std::string name, trouble;
    auto ready = WaitFor(cluster_, wish_.what, until, [&] -> Result<bool> {
      for (const Json& pod : TRY(cluster_.client().List(kube::Path("v1", "pods", wish_.name_space),
                                                        kNameLabel + ("=" + wish_.name)))) {
        if (base::Find(At(pod, "metadata"), "deletionTimestamp")) continue;
        trouble = StartTrouble(pod);
        if (!Holds(pod, "Ready")) continue;
        name = Metadata(pod, "name");
        return true;
      }
      return false;
    });
    if (!ready)
      return std::unexpected(Error(ready.error().kind(),
                                   ready.error().text() + (trouble.empty() ? "" : ": ") + trouble));
    return name;
  }

  // Until the pod is gone; the same port next time.
  Result<> Forward(const std::string& pod, int& local_port,
                   const std::function<void(int port)>& tell) {
    auto forward = TRY(kube::PortForward::Listen(
        cluster_.server(), {.ns = wish_.name_space, .pod = pod, .port = wish_.port}, local_port));
    local_port = forward->port();
    if (tell) tell(local_port);
    std::optional<base::Time> look = io::Now() + kLookAgain;
    bool gone = false;
    while (!gone && !Interrupted()) {
      const base::Time now = io::Now();
      if (look && now >= *look) {
        look.reset();
        cluster_.server().Send(
            {.method = "GET", .path = kube::Path("v1", "pods", wish_.name_space, pod)}, 10s,
            [&](Result<kube::Response> answer) {
              gone = answer && answer->status == 404;
              look = io::Now() + kLookAgain;
            });
      }
      forward->Advance(now);
      std::vector<pollfd> waits = forward->Waits();
      const base::Time wake = std::min(forward->next().value_or(now + 200ms), now + 200ms);
      cluster_.server().Poll(std::max<base::Duration>(wake - now, 1ms), waits);
    }
    // What was asked is answered before what it would be told to is gone.
    while (!look) cluster_.server().Poll(100ms);
    return {};
  }

 private:
  Cluster& cluster_;
  const BesideWish& wish_;
};

}  // namespace

std::vector<Json> BesideObjects(const BesideWish& wish) {
  const JsonObject labels{{kNameLabel, wish.name}, {"app.kubernetes.io/managed-by", "trainyard"}};
  JsonObject metadata{{"name", wish.name}, {"namespace", wish.name_space}, {"labels", labels}};
  if (!wish.owners.empty()) metadata["ownerReferences"] = wish.owners;
  const JsonObject selector{{kNameLabel, wish.name}};
  return {
      JsonObject{
          {"apiVersion", "apps/v1"},
          {"kind", "Deployment"},
          {"metadata", metadata},
          {"spec", JsonObject{{"replicas", 1},
                              {"strategy", JsonObject{{"type", "Recreate"}}},
                              {"selector", JsonObject{{"matchLabels", selector}}},
                              {"template",
                               JsonObject{{"metadata", JsonObject{{"labels", labels}}},
                                          {"spec", ReaderPod(Container(wish), wish.volumes)}}}}}},
      JsonObject{
          {"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", metadata},
          {"spec",
           JsonObject{{"selector", selector},
                      {"ports", JsonArray{JsonObject{{"name", "http"}, {"port", wish.port}}}}}}}};
}

Result<> Reach(Cluster& cluster, const BesideWish& wish, const ReachOptions& options,
               const std::function<void(int port)>& tell) {
  Made made(cluster.server(), cluster.server());
  TRY(Make(made, wish));
  Reaching reaching(cluster, wish);
  int port = options.local_port;
  for (bool told = false; !Interrupted(); told = true) {
    auto pod = reaching.WaitForPod(io::Now() + options.patience);
    if (!pod && Interrupted() && told) break;
    if (!pod) return std::unexpected(pod.error());
    TRY(reaching.Forward(*pod, port, told ? nullptr : tell));
  }
  if (options.keep) made.Keep();
  return {};
}

}  // namespace cli
