// What a job needs that has a master of its own: who it is, what it may do, and the pod that it
// runs in. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace cli {

struct Right {
  std::string group, resource;
  std::vector<std::string> verbs;
};

// What a master does, in its namespace only. Events are told if that is allowed.
std::vector<Right> MasterRights(bool with_events);

struct MasterWish {
  std::string job, name_space;
  std::string image;
  std::string service_account;  // empty: one of its own is made
  bool with_events = true;
  bool elastic = false;  // it hands out the job's data as well
  // Of an elastic job: the claim that keeps the ledger, and the path in it. Empty: it is in the
  // pod, outlives the master's process and goes with its node.
  std::string ledger_claim, ledger_path;
};

// In the order in which they must be made. The owner is what `owner` says: they go with the job.
std::vector<base::Json> MasterObjects(const MasterWish& wish, const base::JsonObject& owner);

}  // namespace cli
