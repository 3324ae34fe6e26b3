// What the host of a job and the master of its data say to each other: one JSON object a line.
//
// The host says who is there, always all of it; the master answers each with its number, and speaks
// unasked when the data changed. Both ends are ours, so a line that lacks something or has it in
// another type is an error that names it; keys that are not known are left alone. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace ledger {

enum class MemberState {
  kLive,
  kLeaving,    // asked to end: gets no new shard, finishes those it has
  kSucceeded,  // ended with exit status 0
  kFailed,     // ended in another way
};

inline bool Lives(MemberState state) {
  return state == MemberState::kLive || state == MemberState::kLeaving;
}

struct HostMember {
  std::string name;  // "worker-0@2": replica and attempt
  int32_t number = 0;
  MemberState state = MemberState::kLive;

  bool operator==(const HostMember&) const = default;
};

struct HostMessage {
  int64_t seq = 0;
  std::vector<HostMember> members;  // one that is absent is gone, as failed

  bool operator==(const HostMessage&) const = default;
};

struct QuarantineReport {
  std::string set;
  int64_t epoch = 0, start = 0, end = 0;
  std::string error;

  bool operator==(const QuarantineReport&) const = default;
};

struct SetReport {
  std::string name;
  int64_t epoch = 0, epochs = 0;
  int64_t todo = 0, doing = 0, done = 0;  // shards of this epoch
  int64_t records_done = 0;               // of all epochs

  bool operator==(const SetReport&) const = default;
};

struct MemberReport {
  std::string name;
  int64_t doing = 0, done = 0;  // shards
  double rate = 0;              // records per second
  base::Time last;              // when it was last heard

  bool operator==(const MemberReport&) const = default;
};

struct EventReport {
  std::string reason, message;
  bool warning = false;

  bool operator==(const EventReport&) const = default;
};

struct DataReport {
  bool registered = false;  // there is a set
  bool complete = false;
  int64_t todo = 0, doing = 0;
  int64_t records_left = 0, records_total = 0;  // -1: endless
  std::vector<QuarantineReport> quarantined;
  std::vector<std::string> misled;
  std::vector<SetReport> sets;
  std::vector<MemberReport> members;
  std::vector<EventReport> events;  // each is said once

  bool operator==(const DataReport&) const = default;
};

struct MasterMessage {
  int64_t seq = 0;  // of the last message of the host, 0 before the first
  int32_t port = 0;
  DataReport data;

  bool operator==(const MasterMessage&) const = default;
};

// A line, with its end.
std::string Encode(const HostMessage& message);
std::string Encode(const MasterMessage& message);
// Of a line, with its end or without.
base::Result<HostMessage> DecodeHostMessage(std::string_view line);
base::Result<MasterMessage> DecodeMasterMessage(std::string_view line);

}  // namespace ledger
