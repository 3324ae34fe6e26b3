// `audit`: how often each record of an elastic job was reported, epoch by epoch, from the log of
// its ledger.
#include "ledger/audit.h"

#include <fmt/core.h>

#include "base/json.h"
#include "base/strings.h"
#include "cli/cluster.h"
#include "cli/commands.h"
#include "cli/elastic_world.h"
#include "cli/local_jobs.h"
#include "cli/refuse.h"
#include "io/terminal.h"

namespace cli {
namespace {

using base::JsonArray;
using base::JsonObject;
using ledger::AuditRange;
using ledger::EpochAudit;
using ledger::SetAudit;

// Of a few terabytes of records; a log has some 40 bytes a shard.
constexpr size_t kMostLog = size_t{1} << 36;
// In the table; --json has all that the audit keeps.
constexpr size_t kMostShown = 10;

JsonArray RangesInJson(const std::vector<AuditRange>& ranges) {
  JsonArray out;
  for (const AuditRange& range : ranges) {
    JsonObject entry{{"start", range.start}, {"end", range.end}};
    JsonArray by;
    for (const std::string& member : range.by) by.emplace_back(member);
    if (!by.empty()) entry["by"] = std::move(by);
    if (!range.error.empty()) entry["error"] = range.error;
    out.push_back(std::move(entry));
  }
  return out;
}

base::Json InJson(const SetAudit& set) {
  JsonArray epochs;
  for (const EpochAudit& epoch : set.epochs) {
    JsonObject entry{{"epoch", epoch.epoch},       {"once", epoch.once},
                     {"more", epoch.more},         {"assumed", epoch.assumed},
                     {"restored", epoch.restored}, {"quarantined", epoch.quarantined},
                     {"never", epoch.never}};
    for (const auto& [name, ranges] : {std::pair("moreRanges", &epoch.more_ranges),
                                       std::pair("assumedRanges", &epoch.assumed_ranges),
                                       std::pair("quarantinedRanges", &epoch.quarantined_ranges),
                                       std::pair("neverRanges", &epoch.never_ranges)}) {
      if (!ranges->empty()) entry[name] = RangesInJson(*ranges);
    }
    epochs.push_back(std::move(entry));
  }
  return JsonObject{{"name", set.params.name},         {"size", set.params.size},
                    {"epochs", std::move(epochs)},     {"complete", set.complete},
                    {"restores", set.restores},        {"resets", set.resets},
                    {"voidReports", set.void_reports}, {"repeats", set.repeats}};
}

std::string InWords(const std::vector<AuditRange>& ranges, const char* what) {
  std::string out;
  for (size_t i = 0; i < ranges.size() && i < kMostShown; ++i) {
    const AuditRange& range = ranges[i];
    out += fmt::format("    {} to {} {}", range.start, range.end - 1, what);
    if (!range.by.empty()) out += " by " + base::Join(range.by, ", ");
    out += (range.error.empty() ? "" : ": " + range.error) + "\n";
  }
  if (ranges.size() > kMostShown) {
    out += fmt::format("    and {} ranges more: --json\n", ranges.size() - kMostShown);
  }
  return out;
}

std::string InWords(const SetAudit& set) {
  std::string out = fmt::format("{}: {} records, {}\n", set.params.name, set.params.size,
                                set.complete ? "complete" : "not complete");
  for (const EpochAudit& epoch : set.epochs) {
    std::vector<std::string> parts;
    for (const auto& [count, what] :
         {std::pair(epoch.once, "once"), std::pair(epoch.more, "more than once"),
          std::pair(epoch.assumed, "assumed"), std::pair(epoch.restored, "before it was restored"),
          std::pair(epoch.quarantined, "set aside"), std::pair(epoch.never, "never")}) {
      if (count > 0) parts.push_back(fmt::format("{} {}", count, what));
    }
    out += fmt::format("  epoch {}: {}\n", epoch.epoch, base::Join(parts, ", "));
    out += InWords(epoch.more_ranges, "more than once,") +
           InWords(epoch.assumed_ranges, "assumed,") +
           InWords(epoch.quarantined_ranges, "set aside") + InWords(epoch.never_ranges, "never");
  }
  return out;
}

}  // namespace

int AuditCommand(const Args& args) {
  auto context = ContextOf(args);
  if (!context) return Refuse(context.error());
  if (*context) return Refuse("audit reads the ledger of a job of this machine");
  auto found = FindLocalJob(args.name_space(), args.operand(0));
  if (!found) return Refuse(found.error());
  auto job = found->dir.LoadJob();
  if (!job) return Refuse(job.error());
  if (!job->extensions.elastic) {
    return Refuse(found->name + " is not elastic: nobody handed out its data");
  }
  auto log = io::ReadFile(found->dir.File("ledger/log"), kMostLog);
  if (!log) return Refuse(found->name + " has no ledger yet: " + log.error().text());
  auto audit = ledger::AuditLog(LedgerJob(*job), *log);
  if (!audit) return Fail(std::move(audit).error().Context("the ledger of " + found->name));
  if (args.json()) {
    JsonArray sets;
    for (const SetAudit& set : audit->sets) sets.push_back(InJson(set));
    io::WriteOut(1,
                 base::IndentedJson(JsonObject{{"job", found->name}, {"sets", std::move(sets)}}));
    return 0;
  }
  std::string text;
  for (const SetAudit& set : audit->sets) text += InWords(set);
  io::WriteOut(1, text.empty() ? "no data has been registered\n" : text);
  return 0;
}

}  // namespace cli
