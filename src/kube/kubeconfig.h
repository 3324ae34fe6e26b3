// Finds the cluster that is meant, as kubectl does: the files of KUBECONFIG merged (of two entries
// with one name the first file's counts), or else ~/.kube/config, or else the service account of
// the pod that we run in.
//
// A kubeconfig may come from anybody. What it could do to us needs consent: the programs it names
// are run only when they are well known or named in TRAINYARD_EXEC_PLUGINS. What is refused is
// refused in one line that says how to mend it, and no line has a secret in it. Errors are
// kInvalid, but kNotFound when there is no cluster to be found at all.
#pragma once

#include <string>

#include "base/result.h"
#include "base/time.h"
#include "kube/access.h"

namespace kube {

struct Where {
  std::string context;     // empty: the current one
  std::string kubeconfig;  // files joined by ':'; empty: the one in `home`
  std::string home;
  std::string exec_plugins;                // allowed beside the known ones, joined by ','
  std::string service_host, service_port;  // of the API server, in a pod
  std::string service_account = "/var/run/secrets/kubernetes.io/serviceaccount";

  // From KUBECONFIG, HOME, TRAINYARD_EXEC_PLUGINS, KUBERNETES_SERVICE_HOST and _PORT.
  static Where FromEnvironment(std::string context = "");
};

base::Result<Access> FindAccess(const Where& where, base::Time now);

}  // namespace kube
