#include "cli/ledger_audit.h"

#include "cli/audit_text.h"
#include "io/files.h"
#include "ledger/audit.h"

namespace cli {
namespace {

using base::Error;
using base::ErrorKind;

// Of a few terabytes of records; a log has some 40 bytes a shard.
constexpr size_t kMostLog = size_t{1} << 36;

}  // namespace

ledger::Job LedgerJob(const api::Job& job) {
  const api::Metadata& metadata = job.metadata;
  return {.uid = metadata.uid.empty() ? metadata.name_space : metadata.uid, .name = metadata.name};
}

base::Result<base::Json> AuditLedger(const ledger::Job& job, const std::string& directory) {
  const auto log = io::ReadFile(directory + "/log", kMostLog);
  if (!log) {
    return std::unexpected(
        Error(ErrorKind::kNotFound, job.name + " has no ledger yet: " + log.error().text()));
  }
  const auto audit = ledger::AuditLog(job, *log);
  if (!audit) {
    return std::unexpected(
        Error(ErrorKind::kInternal, "the ledger of " + job.name + ": " + audit.error().text()));
  }
  return AuditInJson(job.name, *audit);
}

Error NotElastic(const std::string& job) {
  return Error(ErrorKind::kInvalid, job + " is not elastic: nobody handed out its data");
}

}  // namespace cli
