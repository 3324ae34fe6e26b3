// The cluster that a command talks to, with the rights of the person who types.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backend/cluster/config_map_jobs.h"
#include "base/result.h"
#include "cli/args.h"
#include "kube/client.h"
#include "kube/server.h"

namespace cli {

// What --on or else TRAINYARD_ON asks for: nothing for this machine, else the context of a cluster
// (empty: the current one). `unless_said` counts when neither says anything.
base::Result<std::optional<std::string>> ContextOf(const Args& args,
                                                   const std::string& unless_said = "local");

// How a job is kept: as a TFJob that an operator looks after, or in a ConfigMap by a master of its
// own.
enum class Store { kTfJobs, kConfigMaps };

class Cluster {
 public:
  // Finds the cluster and says nothing to it yet. Warnings about the kubeconfig go to standard
  // error. kNotFound: there is none to be found.
  static base::Result<Cluster> Connect(const std::string& context);

  kube::Server& server() const { return *server_; }
  kube::Client& client() const { return *client_; }
  // The same to whoever asks for TFJobs, however they are kept.
  kube::Client& jobs(Store store) const { return *(store == Store::kTfJobs ? client_ : kept_); }
  kube::Transport& door(Store store) const;
  const std::string& context() const { return server_->access().context; }
  // The one that the context means.
  const std::string& name_space() const { return server_->access().ns; }
  // Of this command line.
  std::string NamespaceOf(const Args& args) const { return args.Get("namespace", name_space()); }

  // Whether we may do this, as the server's own rules say ("create", "kubeflow.org", "tfjobs").
  base::Result<bool> May(const std::string& verb, const std::string& group,
                         const std::string& resource, const std::string& name_space) const;

  // The same for a service account of the namespace. kForbidden: we may not ask that.
  base::Result<bool> AccountMay(const std::string& account, const std::string& verb,
                                const std::string& group, const std::string& resource,
                                const std::string& name_space) const;

  // What an error of this cluster comes down to, for a person: who cannot be reached, or what is
  // not allowed, and what to do.
  base::Error Explain(const base::Error& error) const;

 private:
  explicit Cluster(std::unique_ptr<kube::Server> server);

  std::unique_ptr<kube::Server> server_;
  std::unique_ptr<kube::Client> client_;
  std::unique_ptr<backend::cluster::ConfigMapJobs> config_maps_;
  std::unique_ptr<kube::Client> kept_;  // through the door of config_maps_
};

// Cluster::Connect for the command lines of other systems, which mean a cluster unless told
// otherwise: where none is found, the error says the way out.
base::Result<Cluster> ClusterOf(const std::string& context);

// From here on Ctrl-C and SIGTERM end what a client waits for, and the command cleans up.
void CatchInterrupts();
// The signal that came; 0: none.
int Interrupted();
// The same, for whoever answers it; from then on nothing is interrupted any more.
int TakeInterrupt();

}  // namespace cli
