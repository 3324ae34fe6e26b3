// The audit of an elastic job on a cluster: from the ledger beside its master while that runs, and
// afterwards from what the master wrote down when the job was over.
#pragma once

#include <string>

#include "api/tfjob.h"
#include "base/json.h"
#include "base/result.h"
#include "cli/cluster.h"

namespace cli {

base::Result<base::Json> AuditThere(Cluster& cluster, Store store, const api::Job& job);

// Writes it down, for when the ledger is gone with the master's pod: with a job that is kept in a
// ConfigMap, and beside a TFJob in one of its own.
base::Result<> SaveAudit(Cluster& cluster, Store store, const api::Job& job,
                         const base::Json& audit);

}  // namespace cli
