// `operator`: keeps every TFJob of a cluster, or of one namespace, as its author asked.
//
// Runs until it is told to stop. It never exits because of what is in the cluster: a job that
// cannot be is set aside with the reason in its status, and a server that is away is waited for.
#include "backend/cluster/operator.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <optional>

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include "backend/cluster/master_objects.h"
#include "backend/cluster/operator_metrics.h"
#include "base/metrics.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/refuse.h"
#include "cli/settings.h"
#include "io/clock.h"
#include "io/files.h"
#include "io/http_routes.h"
#include "io/http_server.h"
#include "io/process_metrics.h"
#include "io/signals.h"
#include "kube/kubeconfig.h"
#include "kube/server.h"

namespace cli {
namespace {

using backend::cluster::Operator;
using base::Result;

std::string Environment(const char* name, std::string_view fallback = "") {
  const char* value = std::getenv(name);
  return value && *value ? value : std::string(fallback);
}

constexpr const char* kNotListed = "the cluster is not listed yet";
constexpr const char* kBehind =
    "the API server has older data than this operator: it is behind, or was restored from a backup";

void Say(const std::string& text) {
  fmt::print(stderr, "{} {}\n", base::FormatTime(io::Wall()), text);
}

// ":8080", "127.0.0.1:8080", "[::1]:8080"; "0": none.
Result<std::optional<io::HttpServer::Options>> Address(const Args& args, std::string_view flag,
                                                       std::string_view fallback) {
  const std::string text = args.Get(flag, fallback);
  if (text == "0" || text.empty()) return std::nullopt;
  const size_t colon = text.rfind(':');
  const auto port = base::ParseInt(std::string_view(text).substr(colon + 1));
  if (colon == std::string::npos || !port || *port < 0 || *port > 65'535) {
    return base::Invalid(
        fmt::format("--{}: must be ADDRESS:PORT, :PORT or 0 for none, not '{}'", flag, text));
  }
  std::string address = text.substr(0, colon);
  if (address.starts_with('[') && address.ends_with(']')) {
    address = address.substr(1, address.size() - 2);
  }
  return io::HttpServer::Options{.address = address.empty() ? "::" : address,
                                 .port = static_cast<uint16_t>(*port)};
}

// The name that this process goes by in the lease.
std::string Identity() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return fmt::format("{}_{}", host, getpid());
}

Result<Operator::Options> OptionsFrom(const Args& args, const std::string& own_namespace) {
  Operator::Options out;
  out.name_space = args.Get("namespace", Environment("KUBEFLOW_NAMESPACE"));
  out.settings = SettingsFrom(args);
  out.settings.master_image = args.Get("master-image", backend::cluster::kMasterImage);
  if (args.Has("enable-scheme") && base::Lower(args.Get("enable-scheme")) != "tfjob") {
    return base::Invalid(
        fmt::format("--enable-scheme: only tfjob is served, not '{}'", args.Get("enable-scheme")));
  }
  if (args.Has("leader-elect")) {
    out.identity = Identity();
    out.lease_name = args.Get("leader-election-id", "trainyard-operator");
    out.lease_namespace = Environment("MY_POD_NAMESPACE", own_namespace);
  }
  return out;
}

// Health and metrics. `not_ready` is set by the operator's thread and read by the servers'.
struct Pages {
  base::Metrics metrics;
  std::atomic<const char*> not_ready = kNotListed;  // why; null: it is ready

  void Look(const Operator& it) {
    not_ready = it.behind() ? kBehind : it.synced() ? nullptr : kNotListed;
  }

  Result<std::optional<io::HttpServer>> Serve(
      const Result<std::optional<io::HttpServer::Options>>& options, bool health) {
    if (!options) return std::unexpected(options.error());
    if (!*options) return std::nullopt;
    std::vector<io::HttpRoute> routes;
    const auto add = [&](std::string path, auto handler) {
      routes.push_back({"GET", std::move(path), std::move(handler)});
    };
    if (health) {
      add("/healthz", [](const auto&) { return io::ServerResponse{.body = "ok"}; });
      add("/readyz", [this](const auto&) {
        const char* why = not_ready;
        return why ? io::ServerResponse{.status = 503, .body = why}
                   : io::ServerResponse{.body = "ok"};
      });
    } else {
      add("/metrics", [this](const auto&) {
        return io::ServerResponse{.content_type = std::string(base::Metrics::kContentType),
                                  .body = metrics.Text()};
      });
    }
    return TRY(io::HttpServer::Listen(**options, io::Routes(std::move(routes))));
  }
};

// Says what changed about how well we know the cluster, and nothing twice.
class Condition {
 public:
  void Look(const Operator& it) {
    const std::string trouble = it.trouble();
    if (trouble != trouble_) Say(trouble.empty() ? "all is well again" : "waiting: " + trouble);
    trouble_ = trouble;
    if (it.synced() && !synced_) {
      Say(fmt::format("the cluster is listed: {} jobs, {} pods", it.jobs(), it.pods()));
    }
    synced_ |= it.synced();
    if (it.leads() != leads_) Say(it.leads() ? "leading" : "another operator leads");
    leads_ = it.leads();
  }

 private:
  std::string trouble_;
  bool synced_ = false;
  bool leads_ = false;
};

int Keep(kube::Server& server, const Operator::Options& options, Pages& pages,
         const io::Signals& told) {
  backend::cluster::OperatorMetrics metrics(pages.metrics);
  std::optional<Operator> it(std::in_place, server, options, metrics);
  Condition condition;
  pollfd stop{.fd = told.fd(), .events = POLLIN};
  while (!(stop.revents & POLLIN)) {
    const base::Time now = io::Now();
    it->Advance(now);
    condition.Look(*it);
    metrics.Look(*it);
    pages.Look(*it);
    if (it->rolled_back()) {
      Say("the data of the cluster was restored from a backup: listing everything again");
      it.emplace(server, options, metrics);
      condition = {};
      continue;
    }
    const base::Time next = it->next().value_or(now + std::chrono::minutes(1));
    server.Poll(std::max(next - io::Now(), base::Duration(0)), {&stop, 1});
  }
  // Whoever waits for the lease gets it now. What is under way is left: the next one finds it.
  it->Resign();
  const base::Time patience = io::Now() + std::chrono::seconds(2);
  for (base::Time now = io::Now(); !it->resigned() && now < patience; now = io::Now()) {
    it->Advance(now);
    server.Poll(std::chrono::milliseconds(50));
  }
  Say("stopped");
  return 0;
}

}  // namespace

int OperatorCommand(const Args& args) {
  const io::Signals told({SIGINT, SIGTERM});  // before the first thread
  kube::Where where = kube::Where::FromEnvironment(args.Get("context"));
  if (args.Has("kubeconfig")) where.kubeconfig = args.Get("kubeconfig");
  auto access = kube::FindAccess(where, io::Wall());
  if (!access) return Refuse(access.error());
  for (const std::string& warning : access->warnings) Say("warning: " + warning);
  auto options = OptionsFrom(args, access->ns);
  if (!options) return Refuse(options.error());
  for (std::string_view flag : {"controller-threads", "kube-api-qps", "kube-api-burst"}) {
    if (args.Has(flag)) {
      Say(fmt::format("--{} has no effect: requests are paced by the server's own answers", flag));
    }
  }
  Pages pages;
  io::AddProcessMetrics(pages.metrics);
  auto health = pages.Serve(Address(args, "health-probe-bind-address", ":8081"), true);
  if (!health) return Refuse(health.error());
  auto metrics = pages.Serve(Address(args, "metrics-bind-address", ":8080"), false);
  if (!metrics) return Refuse(metrics.error());
  if (*health) Say(fmt::format("health on port {}", (*health)->port()));
  if (*metrics) Say(fmt::format("metrics on port {}", (*metrics)->port()));
  Say(fmt::format("trainyard operator: TFJobs of {} at {}",
                  options->name_space.empty() ? "all namespaces" : options->name_space,
                  access->server));
  auto server = kube::Server::Connect(std::move(*access), 64);
  if (!server) return Refuse(server.error());
  return Keep(**server, *options, pages, told);
}

}  // namespace cli
