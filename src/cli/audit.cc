// `audit`: how often each record of an elastic job was reported, epoch by epoch, from the log of
// its ledger.
#include "cli/audit_text.h"
#include "cli/commands.h"
#include "cli/ledger_audit.h"
#include "cli/place.h"
#include "cli/refuse.h"
#include "io/terminal.h"

namespace cli {
namespace {

// Of --ledger: the ledger of the job NAME/UID in this directory, wherever it was copied from.
base::Result<base::Json> AuditOf(const std::string& job, const std::string& directory) {
  const size_t slash = job.rfind('/');
  if (slash == std::string::npos) return base::Invalid("--ledger: name the job as NAME/UID");
  return AuditLedger({.uid = job.substr(slash + 1), .name = job.substr(0, slash)}, directory);
}

}  // namespace

int AuditCommand(const Args& args) {
  base::Result<base::Json> audit = base::Json();
  if (args.Has("ledger")) {
    audit = AuditOf(args.operand(0), args.Get("ledger"));
  } else {
    auto found = FindJob(args);
    if (!found) return Refuse(found.error());
    audit = found->job->Audit();
  }
  if (!audit) {
    const bool damaged = audit.error().kind() == base::ErrorKind::kInternal;
    return damaged ? Fail(audit.error()) : Refuse(audit.error());
  }
  io::WriteOut(1, args.json() ? base::IndentedJson(*audit) : AuditInWords(*audit));
  return 0;
}

}  // namespace cli
