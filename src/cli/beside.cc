#include "cli/beside.h"

#include <optional>

#include <fmt/core.h>

#include "cli/kept_output.h"
#include "cli/made.h"
#include "cli/object.h"
#include "cli/pod_troubles.h"
#include "cli/wait_for.h"
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
constexpr base::Duration kBlink = 200ms;   // how long a signal may go unseen
constexpr base::Duration kStartsWithin = 3min;
constexpr const char* kNameLabel = "app.kubernetes.io/name";

JsonObject Container(const BesideWish& wish) {
  JsonArray command;
  for (const std::string& word : wish.command) command.emplace_back(word);
  JsonArray ports;
  for (const BesideWish::Port& port : wish.ports)
    ports.push_back(JsonObject{{"name", port.name}, {"containerPort", port.number}});
  return {
      {"name", "server"},
      {"image", wish.image},
      {"imagePullPolicy", "IfNotPresent"},  // one that was only given to the node is good too
      {"command", std::move(command)},
      {"env", JsonArray{JsonObject{{"name", "HOME"}, {"value", "/tmp"}}}},
      {"ports", std::move(ports)},
      {"readinessProbe", JsonObject{{"httpGet", JsonObject{{"path", wish.ready_path},
                                                           {"port", wish.ports.back().number}}},
                                    {"periodSeconds", 1}}},
      // Long enough for a large model to be loaded.
      {"livenessProbe", JsonObject{{"tcpSocket", JsonObject{{"port", wish.ports.back().number}}},
                                   {"initialDelaySeconds", 60},
                                   {"periodSeconds", 30}}},
      {"volumeMounts", wish.mounts}};
}

std::string CollectionOf(const Json& object, const std::string& name_space) {
  const std::string kind = base::StringOr(object, "kind");
  return kube::Path(base::StringOr(object, "apiVersion"),
                    kind == "Service"   ? "services"
                    : kind == "Ingress" ? "ingresses"
                                        : "deployments",
                    name_space);
}

Result<> Make(Made& made, const BesideWish& wish) {
  for (const Json& object : BesideObjects(wish)) {
    if (Interrupted()) return std::unexpected(Error(ErrorKind::kUnavailable, "interrupted"));
    auto there = made.Create(CollectionOf(object, wish.name_space), object);
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
    const Workload workload{
        .name_space = wish_.name_space,
        .selector = kNameLabel + ("=" + wish_.name),
        .path = kube::Path("apps/v1", "deployments", wish_.name_space, wish_.name),
        .kind = wish_.kind};
    std::string name;
    const auto is_ready = [&] -> Result<bool> {
      for (const Json& pod : TRY(cluster_.client().List(kube::Path("v1", "pods", wish_.name_space),
                                                        workload.selector))) {
        if (base::Find(At(pod, "metadata"), "deletionTimestamp") || !Holds(pod, "Ready")) continue;
        name = Metadata(pod, "name");
        return true;
      }
      return false;
    };
    TRY(WaitFor(cluster_, wish_.what, until, is_ready,
                [&] { return WhyNotRunning(cluster_, workload); }));
    return name;
  }

  // Until the pod is gone; the same ports next time.
  Result<> Forward(const std::string& pod, std::vector<int>& local,
                   const std::function<void(const std::vector<int>&)>& tell) {
    std::vector<std::unique_ptr<kube::PortForward>> forwards;
    for (size_t i = 0; i < wish_.ports.size(); ++i) {
      const int port = wish_.ports[i].number;
      forwards.push_back(TRY(kube::PortForward::Listen(
          cluster_.server(), {.ns = wish_.name_space, .pod = pod, .port = port}, local[i])));
      local[i] = forwards.back()->port();
    }
    if (tell) tell(local);
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
      base::Time wake = now + kBlink;
      std::vector<pollfd> waits;
      for (const auto& forward : forwards) {
        forward->Advance(now);
        for (const pollfd& wait : forward->Waits()) waits.push_back(wait);
        wake = std::min(wake, forward->next().value_or(wake));
      }
      cluster_.server().Poll(std::max<base::Duration>(wake - now, 1ms), waits);
    }
    // What was asked is answered before what it would be told to is gone.
    while (!look) cluster_.server().Poll(kBlink);
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
  JsonArray ports;
  for (const BesideWish::Port& port : wish.ports)
    ports.push_back(JsonObject{{"name", port.name}, {"port", port.number}});
  std::vector<Json> out = {
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
      JsonObject{{"apiVersion", "v1"},
                 {"kind", "Service"},
                 {"metadata", metadata},
                 {"spec", JsonObject{{"selector", selector}, {"ports", std::move(ports)}}}}};
  if (wish.ingress.empty()) return out;
  const JsonObject backend{
      {"service", JsonObject{{"name", wish.name},
                             {"port", JsonObject{{"number", wish.ports.back().number}}}}}};
  const JsonObject path{{"path", "/"}, {"pathType", "Prefix"}, {"backend", backend}};
  out.push_back(JsonObject{
      {"apiVersion", "networking.k8s.io/v1"},
      {"kind", "Ingress"},
      {"metadata", metadata},
      {"spec", JsonObject{{"rules", JsonArray{JsonObject{
                                        {"host", wish.ingress},
                                        {"http", JsonObject{{"paths", JsonArray{path}}}}}}}}}});
  return out;
}

Result<> Reach(Cluster& cluster, const BesideWish& wish, Stay stay,
               const std::function<void(const std::vector<int>&)>& tell) {
  Made made(cluster.server(), cluster.server());
  TRY(Make(made, wish));
  Reaching reaching(cluster, wish);
  std::vector<int> local;
  for (const BesideWish::Port& port : wish.ports) local.push_back(port.local);
  for (bool told = false; !Interrupted(); told = true) {
    auto pod = reaching.WaitForPod(io::Now() + kStartsWithin);
    if (!pod && Interrupted() && told) break;
    if (!pod) return std::unexpected(pod.error());
    if (stay == Stay::kDetached) {
      tell({});
      break;
    }
    TRY(reaching.Forward(*pod, local, told ? nullptr : tell));
  }
  if (stay != Stay::kUntilCtrlC) made.Keep();
  return {};
}

}  // namespace cli
