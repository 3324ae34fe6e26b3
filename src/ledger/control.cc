#include "ledger/control.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/strings.h"

namespace ledger {
namespace {

using base::Find;
using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::Result;

constexpr std::array<std::pair<MemberState, std::string_view>, 4> kStates = {{
    {MemberState::kLive, "live"},
    {MemberState::kLeaving, "leaving"},
    {MemberState::kSucceeded, "succeeded"},
    {MemberState::kFailed, "failed"},
}};

// Readers of one member of an object, which must be there.

Result<const Json*> Member(const Json& from, std::string_view key) {
  if (!from.is_object()) return base::Invalid("not an object");
  if (const Json* value = Find(from, key)) return value;
  return base::Invalid(fmt::format("{} is missing", key));
}

Result<int64_t> Int(const Json& from, std::string_view key, int64_t least, int64_t most) {
  const Json* value = TRY(Member(from, key));
  if (!value->is_int64()) return base::Invalid(fmt::format("{} is not a whole number", key));
  const int64_t number = value->get_int64();
  if (number >= least && number <= most) return number;
  return base::Invalid(fmt::format("{} is {}, outside of {} to {}", key, number, least, most));
}

Result<int64_t> Count(const Json& from, std::string_view key) {
  return Int(from, key, 0, std::numeric_limits<int64_t>::max());
}

Result<int64_t> CountOrEndless(const Json& from, std::string_view key) {
  return Int(from, key, -1, std::numeric_limits<int64_t>::max());
}

Result<bool> Bool(const Json& from, std::string_view key) {
  const Json* value = TRY(Member(from, key));
  if (!value->is_bool()) return base::Invalid(fmt::format("{} is not true or false", key));
  return value->get_bool();
}

Result<std::string> Text(const Json& from, std::string_view key) {
  const Json* value = TRY(Member(from, key));
  if (!value->is_string()) return base::Invalid(fmt::format("{} is not a text", key));
  return std::string(value->get_string());
}

Result<double> Real(const Json& from, std::string_view key) {
  const Json* value = TRY(Member(from, key));
  if (value->is_int64()) return static_cast<double>(value->get_int64());
  if (!value->is_double() || !std::isfinite(value->get_double())) {
    return base::Invalid(fmt::format("{} is not a number", key));
  }
  return value->get_double();
}

Result<base::Time> TimeAt(const Json& from, std::string_view key) {
  const std::string text = TRY(Text(from, key));
  if (const auto time = base::ParseTime(text)) return *time;
  return base::Invalid(fmt::format("{} is not a time: {}", key, base::OneLine(text)));
}

// The elements of a list, each read by `read`.
template <typename T>
Result<std::vector<T>> List(const Json& from, std::string_view key,
                            Result<T> (*read)(const Json&)) {
  const Json* value = TRY(Member(from, key));
  if (!value->is_array()) return base::Invalid(fmt::format("{} is not a list", key));
  std::vector<T> list;
  for (const Json& element : value->get_array()) {
    list.push_back(TRY_AS(fmt::format("{}[{}]", key, list.size()), read(element)));
  }
  return list;
}

template <typename T>
JsonArray ToList(const std::vector<T>& values, Json (*write)(const T&)) {
  JsonArray list;
  for (const T& value : values) list.push_back(write(value));
  return list;
}

Json Write(const HostMember& member) {
  const auto state =
      std::ranges::find(kStates, member.state, [](auto& pair) { return pair.first; });
  return JsonObject{{"name", member.name}, {"number", member.number}, {"state", state->second}};
}

Result<HostMember> ReadHostMember(const Json& from) {
  HostMember member;
  member.name = TRY(Text(from, "name"));
  member.number =
      static_cast<int32_t>(TRY(Int(from, "number", 0, std::numeric_limits<int32_t>::max())));
  const std::string state = TRY(Text(from, "state"));
  const auto found = std::ranges::find(kStates, state, [](auto& pair) { return pair.second; });
  if (found == kStates.end()) return base::Invalid("no state is called " + base::OneLine(state));
  member.state = found->first;
  return member;
}

Json Write(const QuarantineReport& report) {
  return JsonObject{{"set", report.set},
                    {"epoch", report.epoch},
                    {"start", report.start},
                    {"end", report.end},
                    {"error", report.error}};
}

Result<QuarantineReport> ReadQuarantine(const Json& from) {
  return QuarantineReport{.set = TRY(Text(from, "set")),
                          .epoch = TRY(Count(from, "epoch")),
                          .start = TRY(Count(from, "start")),
                          .end = TRY(Count(from, "end")),
                          .error = TRY(Text(from, "error"))};
}

Json Write(const SetReport& report) {
  return JsonObject{{"name", report.name},
                    {"epoch", report.epoch},
                    {"epochs", report.epochs},
                    {"todo", report.todo},
                    {"doing", report.doing},
                    {"done", report.done},
                    {"recordsDone", report.records_done}};
}

Result<SetReport> ReadSet(const Json& from) {
  return SetReport{.name = TRY(Text(from, "name")),
                   .epoch = TRY(Count(from, "epoch")),
                   .epochs = TRY(Count(from, "epochs")),
                   .todo = TRY(Count(from, "todo")),
                   .doing = TRY(Count(from, "doing")),
                   .done = TRY(Count(from, "done")),
                   .records_done = TRY(Count(from, "recordsDone"))};
}

Json Write(const MemberReport& report) {
  return JsonObject{{"name", report.name},
                    {"doing", report.doing},
                    {"done", report.done},
                    {"rate", report.rate},
                    {"last", base::FormatTimeMicro(report.last)}};
}

Result<MemberReport> ReadMember(const Json& from) {
  return MemberReport{.name = TRY(Text(from, "name")),
                      .doing = TRY(Count(from, "doing")),
                      .done = TRY(Count(from, "done")),
                      .rate = TRY(Real(from, "rate")),
                      .last = TRY(TimeAt(from, "last"))};
}

Json Write(const EventReport& report) {
  return JsonObject{
      {"reason", report.reason}, {"message", report.message}, {"warning", report.warning}};
}

Result<EventReport> ReadEvent(const Json& from) {
  return EventReport{.reason = TRY(Text(from, "reason")),
                     .message = TRY(Text(from, "message")),
                     .warning = TRY(Bool(from, "warning"))};
}

Json Write(const std::string& text) { return Json(text); }

Result<std::string> ReadText(const Json& from) {
  if (!from.is_string()) return base::Invalid("not a text");
  return std::string(from.get_string());
}

Result<DataReport> ReadData(const Json& from) {
  return DataReport{.registered = TRY(Bool(from, "registered")),
                    .complete = TRY(Bool(from, "complete")),
                    .todo = TRY(Count(from, "todo")),
                    .doing = TRY(Count(from, "doing")),
                    .records_left = TRY(CountOrEndless(from, "recordsLeft")),
                    .records_total = TRY(CountOrEndless(from, "recordsTotal")),
                    .quarantined = TRY(List(from, "quarantined", ReadQuarantine)),
                    .misled = TRY(List(from, "misled", ReadText)),
                    .sets = TRY(List(from, "sets", ReadSet)),
                    .members = TRY(List(from, "members", ReadMember)),
                    .events = TRY(List(from, "events", ReadEvent))};
}

std::string Line(Json json) { return base::CompactJson(json) + "\n"; }

}  // namespace

std::string Encode(const HostMessage& message) {
  return Line(
      JsonObject{{"seq", message.seq}, {"members", ToList<HostMember>(message.members, Write)}});
}

std::string Encode(const MasterMessage& message) {
  const DataReport& data = message.data;
  return Line(JsonObject{
      {"seq", message.seq},
      {"port", message.port},
      {"data", JsonObject{{"registered", data.registered},
                          {"complete", data.complete},
                          {"todo", data.todo},
                          {"doing", data.doing},
                          {"recordsLeft", data.records_left},
                          {"recordsTotal", data.records_total},
                          {"quarantined", ToList<QuarantineReport>(data.quarantined, Write)},
                          {"misled", ToList<std::string>(data.misled, Write)},
                          {"sets", ToList<SetReport>(data.sets, Write)},
                          {"members", ToList<MemberReport>(data.members, Write)},
                          {"events", ToList<EventReport>(data.events, Write)}}}});
}

Result<HostMessage> DecodeHostMessage(std::string_view line) {
  const Json json = TRY(base::ParseJson(line));
  return HostMessage{.seq = TRY(Count(json, "seq")),
                     .members = TRY(List(json, "members", ReadHostMember))};
}

Result<MasterMessage> DecodeMasterMessage(std::string_view line) {
  const Json json = TRY(base::ParseJson(line));
  const Json* data = TRY(Member(json, "data"));
  return MasterMessage{.seq = TRY(Count(json, "seq")),
                       .port = static_cast<int32_t>(TRY(Int(json, "port", 0, 65535))),
                       .data = TRY_AS("data", ReadData(*data))};
}

}  // namespace ledger
