// The audit of an elastic job on a cluster: from the ledger beside its master while that runs, and
// afterwards from what the master wrote down when the job was over.
#pragma once

#include <string>

#include "api/tfjob.h"
#include "base/json.h"
#include "base/result.h"
#include "cli/cluster.h"

namespace cli {

// Where a master's pod has the ledger.
inline constexpr std::string_view kLedgerMount = "/var/lib/trainyard";

// Of a job that is kept in a ConfigMap.
base::Result<base::Json> AuditThere(Cluster& cluster, const api::Job& job);

// Writes it down, for when the ledger is gone with the master's pod.
base::Result<> SaveAudit(Cluster& cluster, const api::Job& job, const base::Json& audit);

}  // namespace cli
