#include "api/status.h"

#include <algorithm>

#include "base/strings.h"

namespace api {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;

Json EncodeUnit(const Unit& unit) {
  JsonObject out;
  out["attempt"] = unit.attempt;
  if (unit.failures_in_row) out["failuresInRow"] = unit.failures_in_row;
  if (unit.disruptions_in_row) out["disruptionsInRow"] = unit.disruptions_in_row;
  if (unit.preemptions_in_row) out["preemptionsInRow"] = unit.preemptions_in_row;
  if (unit.preempted_at) out["preemptedAt"] = unit.preempted_at;
  if (unit.planned) out["planned"] = true;
  if (unit.not_before != base::Time()) out["notBefore"] = base::FormatTimeMicro(unit.not_before);
  return out;
}

base::Time TimeAt(const Json& json, std::string_view key) {
  return base::ParseTime(base::StringOr(json, key)).value_or(base::Time());
}

std::optional<base::Time> OptionalTimeAt(const Json& json, std::string_view key) {
  return base::ParseTime(base::StringOr(json, key));
}

// Counters and attempts: none is negative, and there is always room for the next one.
int32_t Int32Or(const Json& json, std::string_view key) {
  constexpr int64_t kMost = 1'000'000'000;
  return static_cast<int32_t>(std::clamp<int64_t>(base::IntOr(json, key), 0, kMost));
}

Unit DecodeUnit(const Json& json) {
  return {.attempt = Int32Or(json, "attempt"),
          .failures_in_row = Int32Or(json, "failuresInRow"),
          .disruptions_in_row = Int32Or(json, "disruptionsInRow"),
          .preemptions_in_row = Int32Or(json, "preemptionsInRow"),
          .preempted_at = base::IntOr(json, "preemptedAt"),
          .not_before = TimeAt(json, "notBefore"),
          .planned = base::BoolOr(json, "planned")};
}

// A thousand replicas in one short line a role: {"Worker": "0-998,1000"}.
Json EncodeSet(const std::set<ReplicaId>& ids) {
  JsonObject out;
  for (auto it = ids.begin(); it != ids.end();) {
    const Role role = it->role;
    std::string ranges;
    while (it != ids.end() && it->role == role) {
      const int32_t first = it->index;
      int32_t last = first;
      for (++it; it != ids.end() && it->role == role && it->index == last + 1; ++it) ++last;
      if (!ranges.empty()) ranges += ',';
      ranges += std::to_string(first);
      if (last != first) ranges += "-" + std::to_string(last);
    }
    out[Name(role)] = ranges;
  }
  return out;
}

std::set<ReplicaId> DecodeSet(const Json& json, std::string_view key) {
  constexpr int64_t kMostReplicas = 1'000'000;
  std::set<ReplicaId> out;
  const Json* map = base::Find(json, key);
  if (!map || !map->is_object()) return out;
  for (const auto& [name, ranges] : map->get_object()) {
    const auto role = RoleFromName(name);
    if (!role || !ranges.is_string()) continue;
    for (std::string_view range : base::Split(ranges.get_string(), ',')) {
      const auto ends = base::Split(range, '-');
      const auto first = base::ParseInt(ends.front()), last = base::ParseInt(ends.back());
      if (!first || !last || *first < 0 || *last >= kMostReplicas) continue;
      for (int64_t i = *first; i <= *last; ++i) out.insert({*role, static_cast<int32_t>(i)});
    }
  }
  return out;
}

Json EncodeIncident(const Incident& incident) {
  JsonObject out;
  out["replica"] = ToString(incident.replica);
  out["attempt"] = incident.attempt;
  out["when"] = base::FormatTimeMicro(incident.when);
  out["what"] = incident.what;
  if (!incident.line.empty()) out["line"] = incident.line;
  if (incident.disruption) out["disruption"] = true;
  JsonArray consequences;
  for (ReplicaId id : incident.consequences) consequences.emplace_back(ToString(id));
  if (!consequences.empty()) out["consequences"] = std::move(consequences);
  return out;
}

Incident DecodeIncident(const Json& json) {
  Incident out{.replica = ReplicaIdFrom(base::StringOr(json, "replica")).value_or(ReplicaId()),
               .attempt = Int32Or(json, "attempt"),
               .when = TimeAt(json, "when"),
               .what = base::StringOr(json, "what"),
               .line = base::StringOr(json, "line"),
               .disruption = base::BoolOr(json, "disruption")};
  if (const Json* list = base::Find(json, "consequences"); list && list->is_array()) {
    for (const Json& item : list->get_array()) {
      if (!item.is_string()) continue;
      if (auto id = ReplicaIdFrom(std::string_view(item.get_string()))) {
        out.consequences.push_back(*id);
      }
    }
  }
  return out;
}

Json EncodeCondition(const Condition& condition) {
  JsonObject out;
  out["type"] = condition.type;
  out["status"] = condition.status ? "True" : "False";
  out["reason"] = condition.reason;
  out["message"] = condition.message;
  out["lastUpdateTime"] = base::FormatTime(condition.last_update);
  out["lastTransitionTime"] = base::FormatTime(condition.last_transition);
  return out;
}

Json EncodeProgress(const Progress& progress) {
  JsonObject out;
  if (progress.percent) out["percent"] = *progress.percent;
  if (progress.step) out["step"] = *progress.step;
  if (progress.remaining) {
    out["remainingSeconds"] =
        std::chrono::duration_cast<std::chrono::seconds>(*progress.remaining).count();
  }
  JsonObject metrics;
  for (const auto& [name, value] : progress.metrics) metrics[name] = value;
  if (!metrics.empty()) out["metrics"] = std::move(metrics);
  return out;
}

Progress DecodeProgress(const Json& json) {
  Progress out;
  if (const Json* percent = base::Find(json, "percent"); percent && percent->is_number()) {
    out.percent = percent->to_number<double>();
  }
  if (base::Find(json, "step")) out.step = base::IntOr(json, "step");
  if (base::Find(json, "remainingSeconds")) {
    out.remaining = std::chrono::seconds(base::IntOr(json, "remainingSeconds"));
  }
  if (const Json* metrics = base::Find(json, "metrics"); metrics && metrics->is_object()) {
    for (const auto& [name, value] : metrics->get_object()) {
      if (value.is_number()) out.metrics[std::string(name)] = value.to_number<double>();
    }
  }
  return out;
}

Json EncodeShards(const Shards& shards) {
  JsonObject out{{"todo", shards.todo},
                 {"doing", shards.doing},
                 {"done", shards.done},
                 {"recordsLeft", shards.records_left}};
  if (shards.records_total) out["recordsTotal"] = shards.records_total;
  if (shards.quarantined) out["recordsQuarantined"] = shards.quarantined;
  if (shards.complete) out["complete"] = true;
  JsonObject replicas;
  for (const auto& [id, share] : shards.replicas) {
    replicas[ToString(id)] = JsonObject{{"doing", share.doing},
                                        {"done", share.done},
                                        {"recordsPerSecond", share.records_per_second}};
  }
  if (!replicas.empty()) out["replicas"] = std::move(replicas);
  return out;
}

std::map<ReplicaId, Share> DecodeShares(const Json& json) {
  std::map<ReplicaId, Share> out;
  if (!json.is_object()) return out;
  for (const auto& [name, item] : json.get_object()) {
    const auto id = ReplicaIdFrom(name);
    if (!id) continue;
    Share& share = out[*id];
    share.doing = base::IntOr(item, "doing");
    share.done = base::IntOr(item, "done");
    if (const Json& rate = base::At(item, "recordsPerSecond"); rate.is_number())
      share.records_per_second = rate.to_number<double>();
  }
  return out;
}

Shards DecodeShards(const Json& json) {
  return {.todo = base::IntOr(json, "todo"),
          .doing = base::IntOr(json, "doing"),
          .done = base::IntOr(json, "done"),
          .records_left = base::IntOr(json, "recordsLeft"),
          .records_total = base::IntOr(json, "recordsTotal"),
          .quarantined = base::IntOr(json, "recordsQuarantined"),
          .complete = base::BoolOr(json, "complete"),
          .replicas = DecodeShares(base::At(json, "replicas"))};
}

}  // namespace

std::string_view Name(Role role) {
  switch (role) {
    case Role::kChief:
      return "Chief";
    case Role::kEvaluator:
      return "Evaluator";
    case Role::kMaster:
      return "Master";
    case Role::kPs:
      return "PS";
    case Role::kWorker:
      return "Worker";
  }
  return "";
}

std::string_view LowerName(Role role) {
  switch (role) {
    case Role::kChief:
      return "chief";
    case Role::kEvaluator:
      return "evaluator";
    case Role::kMaster:
      return "master";
    case Role::kPs:
      return "ps";
    case Role::kWorker:
      return "worker";
  }
  return "";
}

std::optional<Role> RoleFromName(std::string_view name) {
  const std::string lower = base::Lower(name);
  for (Role role : kRoles) {
    if (LowerName(role) == lower) return role;
  }
  return std::nullopt;
}

std::string ToString(ReplicaId id) {
  return std::string(LowerName(id.role)) + "-" + std::to_string(id.index);
}

std::string Spoken(ReplicaId id) {
  return std::string(LowerName(id.role)) + "/" + std::to_string(id.index);
}

std::optional<ReplicaId> ReplicaIdFrom(std::string_view text) {
  const size_t split = text.find_last_of("-/");
  if (split == std::string_view::npos) return std::nullopt;
  const auto role = RoleFromName(text.substr(0, split));
  const auto index = base::ParseInt(text.substr(split + 1));
  if (!role || !index || *index < 0 || *index > 1'000'000) return std::nullopt;
  return ReplicaId{*role, static_cast<int32_t>(*index)};
}

const Condition* FindCondition(const JobStatus& status, std::string_view type) {
  const auto it = std::ranges::find(status.conditions, type, &Condition::type);
  return it == status.conditions.end() ? nullptr : &*it;
}

bool Has(const JobStatus& status, std::string_view type) {
  const Condition* condition = FindCondition(status, type);
  return condition && condition->status;
}

bool IsTerminal(const JobStatus& status) {
  return Has(status, "Succeeded") || Has(status, "Failed");
}

Json EncodeStatus(const JobStatus& status) {
  JsonObject out;
  JsonArray conditions;
  for (const Condition& condition : status.conditions) {
    conditions.push_back(EncodeCondition(condition));
  }
  out["conditions"] = std::move(conditions);
  JsonObject replicas;
  for (const auto& [role, counts] : status.replica_statuses) {
    JsonObject entry;
    if (counts.active) entry["active"] = counts.active;
    if (counts.succeeded) entry["succeeded"] = counts.succeeded;
    if (counts.failed) entry["failed"] = counts.failed;
    replicas[Name(role)] = std::move(entry);
  }
  out["replicaStatuses"] = std::move(replicas);
  if (status.start_time) out["startTime"] = base::FormatTime(*status.start_time);
  if (status.completion_time) out["completionTime"] = base::FormatTime(*status.completion_time);
  out["restarts"] = status.restarts;
  out["disruptions"] = status.disruptions;
  out["attempt"] = status.attempt;
  if (status.life != 0) out["life"] = status.life;
  Json progress = EncodeProgress(status.progress);
  if (!progress.get_object().empty()) out["progress"] = std::move(progress);
  if (status.shards) out["shards"] = EncodeShards(*status.shards);
  if (status.verdict) {
    out["verdict"] = JsonObject{{"result", status.verdict->result},
                                {"cause", status.verdict->cause},
                                {"advice", status.verdict->advice},
                                {"exitStatus", status.verdict->exit_status}};
  }
  if (status.gang != Unit()) out["gang"] = EncodeUnit(status.gang);
  JsonObject units;
  for (const auto& [id, unit] : status.units) units[ToString(id)] = EncodeUnit(unit);
  if (!units.empty()) out["units"] = std::move(units);
  if (!status.completed.empty()) out["completed"] = EncodeSet(status.completed);
  if (!status.seen.empty()) out["seen"] = EncodeSet(status.seen);
  JsonObject shape;
  for (const auto& [role, count] : status.shape) shape[Name(role)] = count;
  if (!shape.empty()) out["shape"] = std::move(shape);
  JsonArray incidents;
  for (const Incident& incident : status.incidents) incidents.push_back(EncodeIncident(incident));
  if (!incidents.empty()) out["incidents"] = std::move(incidents);
  return out;
}

JobStatus DecodeStatus(const Json& json) {
  JobStatus out;
  if (const Json* list = base::Find(json, "conditions"); list && list->is_array()) {
    for (const Json& item : list->get_array()) {
      if (base::StringOr(item, "type").empty()) continue;
      out.conditions.push_back({.type = base::StringOr(item, "type"),
                                .status = base::StringOr(item, "status") == "True",
                                .reason = base::StringOr(item, "reason"),
                                .message = base::StringOr(item, "message"),
                                .last_update = TimeAt(item, "lastUpdateTime"),
                                .last_transition = TimeAt(item, "lastTransitionTime")});
    }
  }
  if (const Json* map = base::Find(json, "replicaStatuses"); map && map->is_object()) {
    for (const auto& [name, item] : map->get_object()) {
      if (auto role = RoleFromName(name)) {
        out.replica_statuses[*role] = {.active = Int32Or(item, "active"),
                                       .succeeded = Int32Or(item, "succeeded"),
                                       .failed = Int32Or(item, "failed")};
      }
    }
  }
  out.start_time = OptionalTimeAt(json, "startTime");
  out.completion_time = OptionalTimeAt(json, "completionTime");
  out.restarts = Int32Or(json, "restarts");
  out.disruptions = Int32Or(json, "disruptions");
  out.attempt = Int32Or(json, "attempt");
  out.life = Int32Or(json, "life");
  if (const Json* progress = base::Find(json, "progress")) out.progress = DecodeProgress(*progress);
  if (const Json* shards = base::Find(json, "shards")) out.shards = DecodeShards(*shards);
  if (const Json* verdict = base::Find(json, "verdict")) {
    out.verdict = Verdict{.result = base::StringOr(*verdict, "result"),
                          .cause = base::StringOr(*verdict, "cause"),
                          .advice = base::StringOr(*verdict, "advice"),
                          .exit_status = Int32Or(*verdict, "exitStatus")};
  }
  if (const Json* gang = base::Find(json, "gang")) out.gang = DecodeUnit(*gang);
  if (const Json* units = base::Find(json, "units"); units && units->is_object()) {
    for (const auto& [name, item] : units->get_object()) {
      if (auto id = ReplicaIdFrom(name)) out.units[*id] = DecodeUnit(item);
    }
  }
  out.completed = DecodeSet(json, "completed");
  out.seen = DecodeSet(json, "seen");
  if (const Json* shape = base::Find(json, "shape"); shape && shape->is_object()) {
    for (const auto& [name, item] : shape->get_object()) {
      auto role = RoleFromName(name);
      if (role && item.is_int64()) out.shape[*role] = static_cast<int32_t>(item.get_int64());
    }
  }
  if (const Json* list = base::Find(json, "incidents"); list && list->is_array()) {
    for (const Json& item : list->get_array()) out.incidents.push_back(DecodeIncident(item));
  }
  return out;
}

}  // namespace api
