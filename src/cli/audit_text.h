// An audit as a program and as a person reads it. What was found where the ledger lies travels as
// the first and becomes the second where somebody asked. Pure.
#pragma once

#include <string>

#include "base/json.h"
#include "ledger/audit.h"

namespace cli {

base::Json AuditInJson(const std::string& job, const ledger::Audit& audit);
// Of what AuditInJson made.
std::string AuditInWords(const base::Json& audit);
// The same with so many bytes at most: the ranges go first, then the epochs.
std::string AuditWithin(base::Json audit, size_t bytes);

}  // namespace cli
