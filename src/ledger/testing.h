// For tests: a ledger together with its log, as a master would keep both, one frame a change.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ledger/ledger.h"

namespace ledger::testing {

inline const Job kJob{.uid = "u-1", .name = "mnist"};

inline base::Time At(double second) {
  return base::Time(
      std::chrono::microseconds(1'800'000'000'000'000 + static_cast<int64_t>(second * 1e6)));
}

class Desk {
  template <typename F>
  auto Change(F change) {
    Batch batch;
    auto result = change(batch);
    log += Framed(batch);
    return result;
  }

 public:
  Registered Register(const SetParams& params) {
    return Change([&](Batch& batch) { return ledger.Register(params, batch).value(); });
  }
  void Join(const std::string& member) {
    Change([&](Batch& batch) { return ledger.Join(member, next_number_++, now, batch), 0; });
  }
  Ledger::Left Leave(const std::string& member, bool succeeded) {
    return Change([&](Batch& batch) { return ledger.Leave(member, succeeded, now, batch); });
  }
  std::vector<Lease> Take(const std::string& member, size_t most = 1,
                          std::string_view set = "iris") {
    return Change([&](Batch& batch) { return ledger.Take(set, member, most, now, batch); });
  }
  // The shard that the member takes, which must be there.
  Lease TakeOne(const std::string& member, std::string_view set = "iris") {
    return Take(member, 1, set).at(0);
  }
  Reported Report(int32_t lease, const std::string& error = "") {
    return Change([&](Batch& batch) { return ledger.Report(lease, error, now, batch); });
  }
  bool GiveBack(int32_t lease) {
    return Change([&](Batch& batch) { return ledger.GiveBack(lease, now, batch); });
  }
  void TellEnd(const std::string& member, std::string_view set = "iris") {
    Change([&](Batch& batch) { return ledger.TellEnd(member, set, batch), 0; });
  }
  void Cut(const std::string& member) {
    Change([&](Batch& batch) { return ledger.Cut(member, batch), 0; });
  }
  void Away() {
    Change([&](Batch& batch) { return ledger.Away(now, batch), 0; });
  }
  std::vector<std::string> Expire() {
    return Change([&](Batch& batch) {
      std::vector<std::string> names;
      for (const auto& expired : ledger.Expire(now, batch)) names.push_back(expired.member);
      return names;
    });
  }
  base::Result<> Restore(std::string_view checkpoint, std::string_view set = "iris") {
    return Change([&](Batch& batch) { return ledger.Restore(set, checkpoint, batch); });
  }
  bool Reset(std::string_view set = "iris") {
    return Change([&](Batch& batch) { return ledger.Reset(set, batch); });
  }

  Standing Look(const std::string& member = "", std::string_view set = "iris") const {
    return ledger.Look(set, member);
  }

  base::Time now = At(0);
  Ledger ledger{kJob};
  std::string log = LogHeader(kJob);

 private:
  int32_t next_number_ = 0;
};

}  // namespace ledger::testing
