#include "cli/cluster.h"

#include <atomic>
#include <csignal>
#include <cstdlib>

#include <fmt/core.h>

#include "io/clock.h"
#include "io/signals.h"
#include "kube/api.h"
#include "kube/kubeconfig.h"

namespace cli {
namespace {

using base::Error;
using base::ErrorKind;
using base::Json;
using base::JsonObject;
using base::Result;

std::atomic<int> caught = 0;

// What is asked of an access review.
JsonObject Attributes(const std::string& verb, const std::string& group,
                      const std::string& resource, const std::string& name_space) {
  JsonObject wish{{"verb", verb}, {"group", group}};
  const size_t slash = resource.find('/');
  wish["resource"] = resource.substr(0, slash);
  if (slash != std::string::npos) wish["subresource"] = resource.substr(slash + 1);
  if (!name_space.empty()) wish["namespace"] = name_space;
  return wish;
}

}  // namespace

void CatchInterrupts() {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (!io::IsIgnored(signal)) std::signal(signal, [](int number) { caught = number; });
  }
  std::signal(SIGPIPE, SIG_IGN);
}

int Interrupted() { return caught; }

int TakeInterrupt() { return caught.exchange(0); }

Result<std::optional<std::string>> ContextOf(const Args& args, const std::string& unless_said) {
  const char* env = std::getenv("TRAINYARD_ON");
  const bool said = env && *env;
  const std::string wish = args.Get("on", said ? env : unless_said);
  constexpr std::string_view kCluster = "kubernetes";
  if (wish == "local") return std::nullopt;
  if (wish == kCluster) return "";
  if (wish.starts_with(std::string(kCluster) + ":")) return wish.substr(kCluster.size() + 1);
  return base::Invalid(fmt::format("{}: must be local, kubernetes or kubernetes:CONTEXT, not '{}'",
                                   args.Has("on") ? "--on" : "TRAINYARD_ON", wish));
}

Cluster::Cluster(std::unique_ptr<kube::Server> server)
    : server_(std::move(server)),
      client_(std::make_unique<kube::Client>(*server_, [] { return Interrupted() != 0; })),
      config_maps_(std::make_unique<backend::cluster::ConfigMapJobs>(*server_)),
      kept_(std::make_unique<kube::Client>(*server_, *config_maps_,
                                           [] { return Interrupted() != 0; })) {}

kube::Transport& Cluster::door(Store store) const {
  if (store == Store::kTfJobs) return *server_;
  return *config_maps_;
}

Result<Cluster> Cluster::Connect(const std::string& context) {
  kube::Access access = TRY(kube::FindAccess(kube::Where::FromEnvironment(context), io::Wall()));
  for (const std::string& warning : access.warnings)
    fmt::print(stderr, "trainyard: warning: {}\n", warning);
  return Cluster(TRY(kube::Server::Connect(std::move(access))));
}

Result<bool> Cluster::AccountMay(const std::string& account, const std::string& verb,
                                 const std::string& group, const std::string& resource,
                                 const std::string& name_space) const {
  const base::JsonArray groups = {Json("system:serviceaccounts"),
                                  Json("system:serviceaccounts:" + name_space),
                                  Json("system:authenticated")};
  const Json answer = TRY(client_->Create(
      kube::Path("authorization.k8s.io/v1", "localsubjectaccessreviews", name_space),
      JsonObject{
          {"apiVersion", "authorization.k8s.io/v1"},
          {"kind", "LocalSubjectAccessReview"},
          {"metadata", JsonObject{{"namespace", name_space}}},
          {"spec",
           JsonObject{{"user", fmt::format("system:serviceaccount:{}:{}", name_space, account)},
                      {"groups", groups},
                      {"resourceAttributes", Attributes(verb, group, resource, name_space)}}}}));
  return base::BoolOr(base::At(answer, "status"), "allowed");
}

Result<bool> Cluster::May(const std::string& verb, const std::string& group,
                          const std::string& resource, const std::string& name_space) const {
  JsonObject wish = Attributes(verb, group, resource, name_space);
  const Json answer = TRY(
      client_->Create(kube::Path("authorization.k8s.io/v1", "selfsubjectaccessreviews"),
                      JsonObject{{"apiVersion", "authorization.k8s.io/v1"},
                                 {"kind", "SelfSubjectAccessReview"},
                                 {"spec", JsonObject{{"resourceAttributes", std::move(wish)}}}}));
  const Json* status = base::Find(answer, "status");
  return status && base::BoolOr(*status, "allowed");
}

Result<Cluster> ClusterOf(const std::string& context) {
  auto cluster = Cluster::Connect(context);
  if (cluster || cluster.error().kind() != ErrorKind::kNotFound) return cluster;
  return base::Invalid(cluster.error().text() +
                       "; or train on this machine, with TRAINYARD_ON=local");
}

Error Cluster::Explain(const Error& error) const {
  // What a client could not ask begins with what it asked; the rest is somebody's own words.
  const bool asked = error.text().find(" /api") < sizeof "DELETE";
  if (error.kind() != ErrorKind::kUnavailable || !asked || Interrupted()) return error;
  return Error(error.kind(), fmt::format("no answer from the cluster of context {} ({}): {}",
                                         context(), server_->access().server, error.text()));
}

}  // namespace cli
