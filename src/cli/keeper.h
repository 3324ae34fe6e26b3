// Who keeps a job on a cluster: the operator where there is one and we may use it, else a master of
// the job's own.
#pragma once

#include <string>

#include "api/tfjob.h"
#include "backend/cluster/master_objects.h"
#include "base/result.h"
#include "cli/args.h"
#include "cli/cluster.h"

namespace cli {

struct Keeper {
  Store store = Store::kTfJobs;
  std::string why;  // no operator, if it could not be that: "this cluster does not know TFJobs"
  std::string image, service_account;  // of a master
  bool with_events = true;

  // `job` as the server has it.
  backend::cluster::MasterWish MasterOf(const api::Job& job) const;
};

// An elastic job gets a master of ours unless the operator is to give it one: whether the operator
// of this cluster does, nobody can tell from here.
base::Result<Keeper> ChooseKeeper(Cluster& cluster, const Args& args, const std::string& name_space,
                                  bool elastic);

// Another master for a job that is to run again.
base::Result<> StartMasterAgain(Cluster& cluster, const std::string& name_space,
                                const std::string& job);

}  // namespace cli
