// The ledger against a model that anybody can check by eye: every shard of every epoch in a list,
// with what became of it. Thousands of random operations on both, with deaths, late reports,
// restores and restarts in between.

#include <algorithm>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "ledger/audit.h"
#include "ledger/ledger.h"
#include "ledger/testing.h"

namespace ledger {
namespace {

using testing::Desk;
using testing::kJob;

struct Model {
  enum class State { kNew, kDue, kOut, kDone, kQuarantined };
  struct Piece {
    int64_t epoch, start, end;
    State state = State::kNew;
    int errors = 0;
    int32_t lease = 0;  // of the one who has it
  };
  struct Given {
    size_t piece;
    std::string member;
    enum { kOut, kTakenBack, kOver } state = kOut;
  };

  std::vector<Piece> pieces;  // in the order of hand-out
  std::map<int32_t, Given> given;
  std::set<std::string> told;
  SetParams params;

  // The order of an epoch is taken from the ledger's first hand-out; that it is a permutation is
  // what MatchesFresh checks.
  explicit Model(const SetParams& of) : params(of) {
    for (int epoch = 1; epoch <= params.epochs; ++epoch) {
      for (int64_t start = 0; start < params.size; start += params.shard_size) {
        pieces.push_back({epoch, start, std::min(start + params.shard_size, params.size)});
      }
    }
  }

  bool Is(size_t i, State state) const { return pieces[i].state == state; }

  size_t Count(State state) const {
    return static_cast<size_t>(std::ranges::count(pieces, state, &Piece::state));
  }

  int64_t RecordsLeft() const {
    int64_t left = 0;
    for (const Piece& piece : pieces) {
      if (piece.state != State::kDone && piece.state != State::kQuarantined) {
        left += piece.end - piece.start;
      }
    }
    return left;
  }

  // What may be handed out now: what came back; else, of the first epoch that is not handed out,
  // anything, unless a barrier waits for the ones before.
  std::set<size_t> Eligible() const {
    std::set<size_t> due, fresh;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (Is(i, State::kDue)) due.insert(i);
      if (!Is(i, State::kNew)) continue;
      if (fresh.empty() || pieces[*fresh.begin()].epoch == pieces[i].epoch) fresh.insert(i);
    }
    if (!due.empty()) return due;
    if (fresh.empty() || !params.barrier) return fresh;
    for (const Piece& piece : pieces) {
      if (piece.epoch < pieces[*fresh.begin()].epoch &&
          (piece.state == State::kOut || piece.state == State::kDue)) {
        return {};
      }
    }
    return fresh;
  }

  void Take(const Lease& lease, const std::string& member) {
    const auto eligible = Eligible();
    const auto found = std::ranges::find_if(eligible, [&](size_t i) {
      return pieces[i].epoch == lease.epoch && pieces[i].start == lease.start;
    });
    ASSERT_NE(found, eligible.end());
    Piece& piece = pieces[*found];
    ASSERT_EQ(piece.end, lease.end);
    piece.state = State::kOut;
    piece.lease = lease.id;
    ASSERT_TRUE(given.emplace(lease.id, Given{*found, member}).second) << "an id twice";
    told.erase(member);
  }

  Reported Report(int32_t id, bool error) {
    const auto found = given.find(id);
    if (found == given.end()) return Reported::kUnknown;
    Given& lease = found->second;
    Piece& piece = pieces[lease.piece];
    if (lease.state == Given::kOver) return Reported::kDouble;
    if (error) {
      if (lease.state == Given::kTakenBack) return Reported::kDouble;
      lease.state = Given::kOver;
      piece.state = ++piece.errors == 3 ? State::kQuarantined : State::kDue;
      return piece.errors == 3 ? Reported::kQuarantined : Reported::kReturned;
    }
    const bool late = lease.state == Given::kTakenBack;
    Done(lease.piece);
    return late ? Reported::kLate : Reported::kDone;
  }

  void Done(size_t index) {
    pieces[index].state = State::kDone;
    for (auto& [id, lease] : given) {
      if (lease.piece == index) lease.state = Given::kOver;
    }
  }

  void Leave(const std::string& member, bool succeeded) {
    for (auto& [id, lease] : given) {
      if (lease.member != member || lease.state != Given::kOut) continue;
      if (succeeded && told.contains(member)) {
        Done(lease.piece);
      } else {
        TakeBack(lease);
      }
    }
    told.erase(member);
  }

  void TakeBack(Given& lease) {
    lease.state = Given::kTakenBack;
    pieces[lease.piece].state = State::kDue;
  }

  // Back to what `then` was when it was saved: what was out is due, and no lease counts.
  void Restore(const Model& then) {
    pieces = then.pieces;
    for (Piece& piece : pieces) {
      if (piece.state == State::kOut) piece.state = State::kDue;
    }
    for (auto& [id, lease] : given) lease.state = Given::kOver;
  }
};

class Both {
 public:
  Both(const SetParams& params, uint32_t seed) : model_(params), random_(seed) {
    desk_.Register(params);
    for (int i = 0; i < 4; ++i) Born();
  }

  bool Complete() const { return desk_.ledger.Complete(); }

  void Step() {
    desk_.now += std::chrono::milliseconds(Draw(2000));
    const int what = Draw(100);
    const std::string member = names_[static_cast<size_t>(Draw(static_cast<int>(names_.size())))];
    if (what < 45) {
      for (const Lease& lease : desk_.Take(member, 1 + static_cast<size_t>(Draw(3)))) {
        model_.Take(lease, member);
      }
    } else if (what < 80) {
      const int32_t id = AnyLease();
      const bool error = Draw(8) == 0;
      EXPECT_EQ(desk_.Report(id, error ? "no" : ""), model_.Report(id, error));
    } else if (what < 88) {
      const bool succeeded = Draw(2) == 0;
      desk_.Leave(member, succeeded);
      model_.Leave(member, succeeded);
      std::erase(names_, member);
      Born();
    } else if (what < 92) {
      desk_.TellEnd(member);
      model_.told.insert(member);
    } else if (what < 95) {
      saved_.emplace_back(desk_.ledger.Checkpoint("iris"), model_);
    } else if (what < 96 && !saved_.empty()) {
      const auto& [text, then] = saved_[static_cast<size_t>(Draw(static_cast<int>(saved_.size())))];
      ASSERT_TRUE(desk_.Restore(text));
      model_.Restore(then);
    } else if (what < 98) {
      Restart();
    } else if (what == 98) {
      desk_.now += std::chrono::hours(24);
      for (const std::string& silent : desk_.Expire()) TakeBack(silent);
    } else if (Draw(2) == 0) {
      const int32_t id = AnyLease();
      const auto lease = model_.given.find(id);
      const bool out = lease != model_.given.end() && lease->second.state == Model::Given::kOut;
      EXPECT_EQ(desk_.GiveBack(id), out);
      if (out) model_.TakeBack(lease->second);
    } else {
      desk_.Cut(member);
    }
  }

  void Compare() {
    using State = Model::State;
    const Standing standing = desk_.Look();
    ASSERT_EQ(standing.records_left, model_.RecordsLeft());
    ASSERT_EQ(standing.doing, static_cast<int64_t>(model_.Count(State::kOut)));
    ASSERT_EQ(standing.todo > 0, !model_.Eligible().empty());
    ASSERT_EQ(desk_.ledger.Quarantined().size(), model_.Count(State::kQuarantined));
    ASSERT_EQ(standing.complete, model_.Count(State::kDone) + model_.Count(State::kQuarantined) ==
                                     model_.pieces.size());
  }

  // The audit of the log comes to the same numbers.
  void CompareAudit() {
    const auto audit = AuditLog(kJob, desk_.log);
    ASSERT_TRUE(audit) << audit.error().text();
    EXPECT_EQ(audit->torn, 0u);
    std::map<int64_t, std::array<int64_t, 3>> expected;  // never, quarantined, done
    for (const Model::Piece& piece : model_.pieces) {
      auto& [never, quarantined, done] = expected[piece.epoch];
      auto& count = piece.state == Model::State::kDone          ? done
                    : piece.state == Model::State::kQuarantined ? quarantined
                                                                : never;
      count += piece.end - piece.start;
    }
    for (const EpochAudit& epoch : audit->sets.at(0).epochs) {
      const auto& [never, quarantined, done] = expected.at(epoch.epoch);
      EXPECT_EQ(epoch.never, never);
      EXPECT_EQ(epoch.quarantined, quarantined);
      EXPECT_EQ(epoch.once + epoch.more + epoch.assumed + epoch.restored, done);
    }
  }

 private:
  int Draw(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  void Born() {
    names_.push_back("w" + std::to_string(born_++));
    desk_.Join(names_.back());
  }

  void TakeBack(const std::string& member) {
    for (auto& [id, lease] : model_.given) {
      if (lease.member == member && lease.state == Model::Given::kOut) model_.TakeBack(lease);
    }
  }

  // Mostly one that is out, at times one that is over, at times none at all.
  int32_t AnyLease() {
    std::vector<int32_t> out, all;
    for (const auto& [id, lease] : model_.given) {
      all.push_back(id);
      if (lease.state == Model::Given::kOut) out.push_back(id);
    }
    const auto& from = out.empty() || Draw(4) == 0 ? all : out;
    if (from.empty() || Draw(50) == 0) return 1'000'000 + Draw(100);
    return from[static_cast<size_t>(Draw(static_cast<int>(from.size())))];
  }

  // From the log, or from a snapshot and the rest of the log: the same either way.
  void Restart() {
    const std::string state = desk_.ledger.Snapshot(0);
    size_t good = 0;
    auto replayed = Ledger::Replay(kJob, desk_.log, &good);
    ASSERT_TRUE(replayed) << replayed.error().text();
    ASSERT_EQ(good, desk_.log.size());
    ASSERT_EQ(replayed->Snapshot(0), state);
    if (!snapshot_.empty()) {
      uint64_t offset = 0;
      auto quick = Ledger::FromSnapshot(kJob, snapshot_, &offset);
      ASSERT_TRUE(quick) << quick.error().text();
      const auto rest = quick->Continue(std::string_view(desk_.log).substr(offset), offset);
      ASSERT_TRUE(rest) << rest.error().text();
      ASSERT_EQ(offset + *rest, desk_.log.size());
      ASSERT_EQ(quick->Snapshot(0), state);
    }
    snapshot_ = desk_.ledger.Snapshot(desk_.log.size());
    desk_.ledger = *std::move(replayed);
  }

  Desk desk_;
  Model model_;
  std::mt19937 random_;
  std::vector<std::string> names_;
  int born_ = 0;
  std::vector<std::pair<std::string, Model>> saved_;
  std::string snapshot_;
};

TEST(LedgerModel, TheLedgerDoesWhatTheModelDoes) {
  int complete = 0;
  for (uint32_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(seed);
    const SetParams params{.name = "iris",
                           .size = 1 + seed % 37,
                           .shard_size = 1 + seed % 4,
                           .epochs = static_cast<int32_t>(1 + seed % 3),
                           .shuffle_shards = seed % 2 == 1,
                           .barrier = seed % 5 < 2,
                           .seed = seed};
    Both both(params, seed);
    for (int step = 0; step < 300; ++step) {
      both.Step();
      both.Compare();
      if (::testing::Test::HasFatalFailure() || ::testing::Test::HasNonfatalFailure()) return;
    }
    both.CompareAudit();
    complete += both.Complete();
  }
  // The runs are long enough to see the end of some, and short enough to see the middle of others.
  EXPECT_GT(complete, 10);
  EXPECT_LT(complete, 110);
}

}  // namespace
}  // namespace ledger
