// The place of the operator on a cluster: its objects as they should be and as they were found, and
// the way from one to the other, all of it or nothing. For `install`, `uninstall` and `adopt`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/args.h"
#include "cli/cluster.h"
#include "cli/deployment.h"
#include "cli/wait_for.h"

namespace cli {

// One object of the operator, and how it stands on the cluster.
struct Item {
  base::Json wanted;
  std::string path;
  std::optional<base::Json> there;  // before we came
};

class Site {
 public:
  // `cluster` outlives it.
  Site(Cluster& cluster, DeploymentWish wish);

  // Looks where everything is. The definition of TFJob itself may still be missing.
  base::Result<> Look();
  const std::vector<Item>& items() const { return items_; }

  // Makes everything as it should be. What fails is undone by the caller.
  base::Result<> Apply();
  // Until the operator says that it is.
  base::Result<> WaitUntilReady(base::Time until);
  // As it was before: what was made goes, what was changed is put back. Is not interrupted.
  base::Result<> Undo();
  // Takes our finalizer off all pods of jobs: nobody will any more once the operator is gone. Waits
  // for that, since it would put them on again. Is not interrupted.
  base::Result<> ReleasePods();

 private:
  base::Result<> PutBack(const Item& item);
  base::Result<base::JsonArray> OperatorPods(kube::Client& client);

  Cluster& cluster_;
  kube::Client& client_;
  kube::Client patient_;  // undoing is not interrupted
  const DeploymentWish wish_;
  std::vector<Item> items_;
  size_t applied_ = 0;
};

// "on the cluster of context c (https://...):"
void SayWhere(const Cluster& cluster);
// By --yes, or by the person.
bool Confirmed(const Args& args);
// Says what went wrong and whether that could be undone, and returns the exit status.
int FailUndone(const Cluster& cluster, const base::Error& why, const base::Result<>& undone);

// What --namespace, --image and --timeout ask for.
DeploymentWish WishOf(const Args& args);
base::Result<base::Duration> PatienceOf(const Args& args);

// Every TFJob there is; none where they are not defined.
base::Result<base::JsonArray> AllJobs(kube::Client& client);

}  // namespace cli
