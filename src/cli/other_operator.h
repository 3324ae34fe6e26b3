// The operator that looks after a cluster's TFJobs before ours does: training-operator, or
// tf-operator before it. How it is found, what of it is in our way, and how that is set aside and
// put back.
//
// All that is changed of it are numbers and lists in its objects, by patches whose opposites are
// known before the first is sent; nothing of it is deleted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/cluster.h"
#include "cli/deployment.h"

namespace cli {

// A kind beside TFJob that training-operator runs, where it is defined.
struct OtherKind {
  std::string kind;    // "PyTorchJob"
  std::string scheme;  // "pytorchjob", as --enable-scheme calls it
  size_t live = 0;     // objects that have not ended
};

base::Result<std::vector<OtherKind>> FindOtherKinds(kube::Client& client);

// A change of an object, and its opposite: merge patches.
struct Change {
  std::string words;  // "scale to 0: Deployment kubeflow/training-operator"
  std::string path;
  base::Json patch, back;
};

class OtherOperator {
 public:
  // The Deployment with a name or the label of theirs, in any namespace; with `named`
  // ("NAMESPACE/NAME"), that one. An error: there is none, or there are several at work.
  static base::Result<OtherOperator> Find(Cluster& cluster, const std::string& named);

  // `deployment` as the server shows it.
  explicit OtherOperator(base::Json deployment);

  std::string Name() const;  // "kubeflow/training-operator"
  // It has pods, and they look after TFJobs.
  bool Runs() const;
  // What it was told and ours must be told too: its gang scheduler, namespace and cluster domain.
  void CopySettings(DeploymentWish& wish) const;

  // What takes TFJobs from it: with `keep` it goes on with those kinds, otherwise it has no pods.
  std::vector<Change> StandDown(const std::vector<OtherKind>& keep) const;
  // The entries for TFJob of webhooks that its pods answer. Once they do not, the API server would
  // refuse every TFJob.
  base::Result<std::vector<Change>> DropWebhooks(kube::Client& client) const;
  // Whether its pods are those that its Deployment asks for now, and no others.
  base::Result<bool> HasSettled(kube::Client& client) const;

 private:
  std::string NameSpace() const;
  std::string Path() const;
  std::vector<std::string> Words() const;
  std::string Flag(std::string_view name) const;
  std::string Variable(std::string_view name) const;
  base::Result<bool> Answers(kube::Client& client, const base::Json& webhook) const;

  base::Json deployment_;
};

}  // namespace cli
