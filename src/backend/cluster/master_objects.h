// What a job needs that has a master of its own: who it is, what it may do, and the pod that it
// runs in. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/tfjob.h"
#include "backend/cluster/objects.h"
#include "base/json.h"

namespace backend::cluster {

// Where a master's pod has the ledger.
inline constexpr std::string_view kLedgerMount = "/var/lib/trainyard";
inline constexpr std::string_view kMasterImage = "trainyard:latest";
// The role of masters that came with the operator (deploy/rbac.yaml).
inline constexpr std::string_view kMasterRole = "trainyard-master";

struct Right {
  std::string group, resource;
  std::vector<std::string> verbs;
};

// What the master of a job in a ConfigMap does, in its namespace only. Events are told if that is
// allowed.
std::vector<Right> MasterRights(bool with_events);

struct MasterWish {
  std::string job, name_space;
  std::string image;
  std::string service_account;  // empty: one of its own is made
  bool own_role = true;         // one is made for it; else it is given kMasterRole
  bool with_events = true;
  bool tfjob = false;    // the job is a TFJob, and not kept in a ConfigMap
  bool elastic = false;  // it hands out the job's data as well
  // Of an elastic job: the claim that keeps the ledger, and the path in it. Empty: it is in the
  // pod, outlives the master's process and goes with its node.
  std::string ledger_claim, ledger_path;
  base::JsonArray pull_secrets;  // for its image, which may lie where the replicas' does
  Settings settings;             // that the master keeps the job by
};

// For this job: its name, and where its ledger lies. The rest is the caller's to say.
MasterWish MasterFor(const api::Job& job);

// In the order in which they must be made. The owner is what `owner` says: they go with the job.
std::vector<base::Json> MasterObjects(const MasterWish& wish, const base::JsonObject& owner);

}  // namespace backend::cluster
