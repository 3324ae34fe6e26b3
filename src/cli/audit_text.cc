#include "cli/audit_text.h"

#include <fmt/core.h>

#include "base/strings.h"

namespace cli {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;
using ledger::AuditRange;
using ledger::EpochAudit;
using ledger::SetAudit;

// In the table; JSON has all that the audit keeps.
constexpr size_t kMostShown = 10;

// What the records of an epoch are counted as: in JSON, in words, and where the ranges are.
struct Kind {
  const char *key, *words, *ranges, *told;
};
constexpr Kind kKinds[] = {
    {"once", "once", "", ""},
    {"more", "more than once", "moreRanges", "more than once,"},
    {"assumed", "assumed", "assumedRanges", "assumed,"},
    {"restored", "before it was restored", "", ""},
    {"quarantined", "set aside", "quarantinedRanges", "set aside"},
    {"never", "never", "neverRanges", "never"},
};

JsonArray InJson(const std::vector<AuditRange>& ranges) {
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

Json InJson(const SetAudit& set) {
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
      if (!ranges->empty()) entry[name] = InJson(*ranges);
    }
    epochs.push_back(std::move(entry));
  }
  return JsonObject{{"name", set.params.name},         {"size", set.params.size},
                    {"epochs", std::move(epochs)},     {"complete", set.complete},
                    {"restores", set.restores},        {"resets", set.resets},
                    {"voidReports", set.void_reports}, {"repeats", set.repeats}};
}

template <typename Visit>
void ForEach(const Json& list, Visit visit) {
  if (!list.is_array()) return;
  for (const Json& item : list.get_array()) visit(item);
}

std::string RangesInWords(const Json& ranges, const char* what) {
  std::string out;
  size_t shown = 0;
  ForEach(ranges, [&](const Json& range) {
    if (++shown > kMostShown) return;
    out += fmt::format("    {} to {} {}", base::IntOr(range, "start"),
                       base::IntOr(range, "end") - 1, what);
    std::vector<std::string> by;
    ForEach(base::At(range, "by"), [&](const Json& member) {
      if (member.is_string()) by.emplace_back(member.get_string());
    });
    const std::string error = base::StringOr(range, "error");
    out += (by.empty() ? "" : " by " + base::Join(by, ", ")) + (error.empty() ? "" : ": " + error) +
           "\n";
  });
  if (shown > kMostShown)
    out += fmt::format("    and {} ranges more: --json\n", shown - kMostShown);
  return out;
}

// What is told of an epoch, behind its number.
std::string EpochInWords(const Json& epoch) {
  std::vector<std::string> parts;
  std::string ranges;
  for (const Kind& kind : kKinds) {
    if (const int64_t count = base::IntOr(epoch, kind.key); count > 0)
      parts.push_back(fmt::format("{} {}", count, kind.words));
    if (*kind.ranges) ranges += RangesInWords(base::At(epoch, kind.ranges), kind.told);
  }
  return base::Join(parts, ", ") + "\n" + ranges;
}

// Epochs in a row of which the same is told share a line, where that saves any.
std::string EpochsInWords(const Json& epochs) {
  std::string out, words;
  int64_t first = 0, last = 0;
  const auto flush = [&] {
    if (words.empty()) return;
    if (last - first >= 2) {
      out += fmt::format("  epochs {} to {}, each: {}", first, last, words);
      return;
    }
    for (int64_t epoch = first; epoch <= last; ++epoch)
      out += fmt::format("  epoch {}: {}", epoch, words);
  };
  ForEach(epochs, [&](const Json& epoch) {
    const std::string its = EpochInWords(epoch);
    const int64_t number = base::IntOr(epoch, "epoch");
    if (its != words || number != last + 1) {
      flush();
      first = number;
    }
    words = its;
    last = number;
  });
  flush();
  return out;
}

bool IsTrue(const Json& object, std::string_view key) {
  const Json* value = base::Find(object, key);
  return value && value->is_bool() && value->get_bool();
}

// The sum of all epochs, in place of each.
void AddUp(JsonObject& set) {
  JsonObject sum;
  ForEach(set["epochs"], [&](const Json& epoch) {
    for (const Kind& kind : kKinds)
      sum[kind.key] = base::IntOr(Json(sum), kind.key) + base::IntOr(epoch, kind.key);
  });
  set["sum"] = std::move(sum);
  set["epochs"] = JsonArray();
}

}  // namespace

Json AuditInJson(const std::string& job, const ledger::Audit& audit) {
  JsonArray sets;
  for (const SetAudit& set : audit.sets) sets.push_back(InJson(set));
  return JsonObject{{"job", job}, {"sets", std::move(sets)}};
}

std::string AuditInWords(const Json& audit) {
  std::string out;
  ForEach(base::At(audit, "sets"), [&](const Json& set) {
    out +=
        fmt::format("{}: {} records, {}\n", base::StringOr(set, "name"), base::IntOr(set, "size"),
                    IsTrue(set, "complete") ? "complete" : "not complete");
    out += EpochsInWords(base::At(set, "epochs"));
    if (const Json* sum = base::Find(set, "sum")) {
      std::vector<std::string> parts;
      for (const Kind& kind : kKinds) {
        if (const int64_t count = base::IntOr(*sum, kind.key); count > 0)
          parts.push_back(fmt::format("{} {}", count, kind.words));
      }
      out += fmt::format("  all epochs: {}\n", base::Join(parts, ", "));
    }
  });
  return out.empty() ? "no data has been registered\n" : out;
}

std::string AuditWithin(Json audit, size_t bytes) {
  std::string text = base::CompactJson(audit);
  const auto shorten = [&](auto change) {
    if (text.size() <= bytes) return;
    for (Json& set : audit.get_object()["sets"].get_array()) change(set.get_object());
    text = base::CompactJson(audit);
  };
  shorten([](JsonObject& set) {
    for (Json& epoch : set["epochs"].get_array())
      for (const Kind& kind : kKinds) epoch.get_object().erase(kind.ranges);
  });
  shorten([](JsonObject& set) { AddUp(set); });
  return text.size() <= bytes ? text : "";
}

}  // namespace cli
