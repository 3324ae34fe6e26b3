// The audit of an elastic job where its ledger lies.
#pragma once

#include <string>

#include "api/tfjob.h"
#include "base/json.h"
#include "base/result.h"
#include "ledger/log.h"

namespace cli {

// What the ledger of a job is bound to.
ledger::Job LedgerJob(const api::Job& job);

// As AuditInJson has it. kNotFound: there is no ledger; kInternal: it is damaged, or another's.
base::Result<base::Json> AuditLedger(const ledger::Job& job, const std::string& directory);

// Where nobody hands out data.
base::Error NotElastic(const std::string& job);

}  // namespace cli
