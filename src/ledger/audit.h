// What the log of a ledger says about each record of each epoch: reported once, more than once and
// by whom, or never.
//
// The whole log is replayed, checksums and all, and the account must add up: what the reports say
// against what the state at the end says. Memory goes with the exceptions, not with the records.
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ledger/ledger.h"

namespace ledger {

// Records [start, end) of a set; of one with shuffled records, those at these places of the order.
struct AuditRange {
  int64_t start = 0, end = 0;
  std::vector<std::string> by;  // who reported, each time; or who is assumed to have done it
  std::string error;            // of a quarantined one

  bool operator==(const AuditRange&) const = default;
};

// All but the last line are numbers of records and add up to the size of the set.
struct EpochAudit {
  int64_t epoch = 0;
  int64_t once = 0;
  int64_t more = 0;         // reported for more than one lease: trained more than once
  int64_t assumed = 0;      // never reported, but who had them succeeded after the end was told
  int64_t restored = 0;     // done by the checkpoint that the set was restored from
  int64_t quarantined = 0;  // given up after errors
  int64_t never = 0;        // not reported, so far
  // Neighbours that are alike are one range; at most kMostRanges of each kind.
  std::vector<AuditRange> more_ranges, assumed_ranges, quarantined_ranges, never_ranges;

  bool operator==(const EpochAudit&) const = default;
};

struct SetAudit {
  SetParams params;
  // Those that were begun, but for those that a checkpoint says were done already.
  std::vector<EpochAudit> epochs;
  int64_t epochs_begun = 0;
  int64_t restores = 0, resets = 0;
  // Reports of leases that a restore or a reset had ended: they count for nothing.
  int64_t void_reports = 0;
  int64_t repeats = 0;  // reports of a lease that had been reported already: harmless
  bool complete = false;
};

struct Audit {
  std::vector<SetAudit> sets;
  uint64_t entries = 0;
  size_t good = 0, torn = 0;  // bytes of the log: whole, and torn off at its end
};

inline constexpr size_t kMostRanges = 1000;

// Errors: those of Ledger::Replay, and an account that does not add up.
base::Result<Audit> AuditLog(const Job& job, std::string_view log);

}  // namespace ledger
