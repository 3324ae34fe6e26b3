// Workers that wait for each other.

#include "base/json.h"
#include "io/files.h"
#include "master/master.h"

namespace master {

std::set<int32_t> Master::Workers() const {
  std::set<int32_t> workers;
  for (const auto& [number, member] : members_)
    if (Lives(member.state) && member.name.starts_with("worker-")) workers.insert(number);
  return workers;
}

void Master::SaveSyncs() const {
  base::IgnoreError(
      io::ReplaceFileDurably(directory_ + "/syncs", base::CompactJson(syncs_.ToJson())),
      "it is needed only by a master that starts again, and then the ledger's own writes fail too");
}

void Master::WorkerSync(const std::string& name, int32_t number,
                        std::function<void(std::optional<bool>)> answer) {
  const std::lock_guard lock(mutex_);
  Turn turn = Begin();
  std::optional<bool> ready;
  if (const Member* member = Find(number); member && Lives(member->state)) {
    ledger_.Heard(member->name, turn.now);
    const Syncs before = syncs_;
    ready = syncs_.Arrive(name, number, Workers());
    if (syncs_ != before) SaveSyncs();
  }
  turn.thens.push_back([answer = std::move(answer), ready] { answer(ready); });
  End(turn);
}

void Master::WaitSync(const std::string& name, bool notify, std::function<void(bool)> answer) {
  const std::lock_guard lock(mutex_);
  Turn turn = Begin();
  const Syncs before = syncs_;
  const bool ready = syncs_.Wait(name, notify);
  if (syncs_ != before) SaveSyncs();
  turn.thens.push_back([answer = std::move(answer), ready] { answer(ready); });
  End(turn);
}

void Master::DeleteSync(const std::string& name, bool all, std::function<void()> answer) {
  const std::lock_guard lock(mutex_);
  Turn turn = Begin();
  all ? syncs_.DeleteAll() : syncs_.Delete(name);
  SaveSyncs();
  turn.thens.push_back([answer = std::move(answer)] { answer(); });
  End(turn);
}

}  // namespace master
