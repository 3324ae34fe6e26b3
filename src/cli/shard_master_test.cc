// The host's end of the line to a master, with a shell script on the other.
#include "cli/shard_master.h"

#include <csignal>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "io/clock.h"
#include "io/testing/temp_dir.h"

namespace cli {
namespace {

using ledger::MemberState;
using namespace std::chrono_literals;

// Answers each list by its number, and tells how often it was started.
constexpr std::string_view kAnswers = R"(
echo start >> starts
while read -r -u 3 line; do
  seq=${line#*\"seq\":}; seq=${seq%%,*}
  echo "$line" >> heard
  printf '%s\n' "${ANSWER//SEQ/$seq}" >&3
done
)";

std::string Answer(const ledger::DataReport& data) {
  // A number that the script can find and replace.
  std::string line = ledger::Encode(ledger::MasterMessage{.seq = 4242, .port = 1, .data = data});
  line.pop_back();
  line.replace(line.find("4242"), 4, "SEQ");
  return line;
}

class ShardMasterTest : public ::testing::Test {
 protected:
  void Make(std::string_view script, const ledger::DataReport& data = {}) {
    const std::string path = dir_.path() + "/master";
    ASSERT_TRUE(io::WriteFile(
        path, fmt::format("#!/bin/bash\ncd {}\nANSWER='{}'\n{}", dir_.path(), Answer(data), script),
        0755));
    master_.emplace(ShardMaster::Options{.program = path,
                                         .job = {.uid = "1", .name = "mnist"},
                                         .ledger = dir_.path(),
                                         .log = dir_.path() + "/log",
                                         .port = 1,
                                         .lock = 0});
  }

  // Lets it live until the condition holds.
  template <typename Condition>
  bool Until(const Condition& condition) {
    const base::Time deadline = io::Now() + 30s;
    while (!condition()) {
      if (io::Now() > deadline) return false;
      master_->Tend(io::Now());
      pollfd fd = master_->Poll();
      if (poll(&fd, 1, 20) > 0) master_->Collect(io::Now());
    }
    return true;
  }

  size_t Starts() const {
    const std::string text = io::ReadFile(dir_.path() + "/starts").value_or("");
    return static_cast<size_t>(std::ranges::count(text, '\n'));
  }

  io::testing::TempDir dir_;
  std::optional<ShardMaster> master_;
};

const ledger::HostMember kLive{"worker-0@0", 0, MemberState::kLive};
const ledger::HostMember kDone{"worker-0@0", 0, MemberState::kSucceeded};

TEST_F(ShardMasterTest, AMemberIsKnownOnceItWasAnswered) {
  Make(kAnswers, {.registered = true, .todo = 7});
  master_->Tell({kLive});
  EXPECT_FALSE(master_->Knows("worker-0@0", MemberState::kLive));
  ASSERT_TRUE(Until([&] { return master_->Knows("worker-0@0", MemberState::kLive); }));
  EXPECT_EQ(master_->data().todo, 7);
  master_->Tell({kDone});
  EXPECT_FALSE(master_->Knows("worker-0@0", MemberState::kSucceeded));
  EXPECT_TRUE(Until([&] { return master_->Knows("worker-0@0", MemberState::kSucceeded); }));
}

TEST_F(ShardMasterTest, WhatHasNotChangedIsNotSaidAgain) {
  Make(kAnswers);
  for (int i = 0; i < 5; ++i) master_->Tell({kLive});
  ASSERT_TRUE(Until([&] { return master_->Knows("worker-0@0", MemberState::kLive); }));
  for (int i = 0; i < 5; ++i) master_->Tell({kLive});
  master_->Tell({kDone});
  ASSERT_TRUE(Until([&] { return master_->Knows("worker-0@0", MemberState::kSucceeded); }));
  const std::string heard = io::ReadFile(dir_.path() + "/heard").value_or("");
  EXPECT_EQ(std::ranges::count(heard, '\n'), 2) << heard;
}

TEST_F(ShardMasterTest, OneThatIsKilledIsStartedAgainAndToldAll) {
  Make(kAnswers);
  master_->Tell({kLive});
  ASSERT_TRUE(Until([&] { return master_->Knows("worker-0@0", MemberState::kLive); }));
  kill(master_->pid(), SIGKILL);
  ASSERT_TRUE(Until([&] { return !master_->Knows("worker-0@0", MemberState::kLive); }));
  ASSERT_TRUE(Until([&] { return master_->Knows("worker-0@0", MemberState::kLive); }));
  EXPECT_EQ(Starts(), 2u);
  const std::vector<core::Event> events = master_->TakeEvents();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0], (core::Event{true, "MasterLost", "the master was killed by SIGKILL"}));
  EXPECT_EQ(master_->broken(), "");
}

TEST_F(ShardMasterTest, OneThatNeverAnswersIsBrokenAndItsLastWordsSayWhy) {
  Make("echo start >> starts\necho the ledger is of another job\nexit 2\n");
  ASSERT_TRUE(Until([&] { return !master_->broken().empty(); }));
  EXPECT_EQ(master_->broken(), "the master exited with status 2: the ledger is of another job");
  EXPECT_EQ(Starts(), 5u);
  EXPECT_EQ(master_->look_again(), std::nullopt);
}

TEST_F(ShardMasterTest, OneThatWaitsForAnotherToLeaveTheLedgerIsStartedUntilItHasIt) {
  Make(std::string("[[ $(wc -l < starts) -ge 6 ]] || { echo start >> starts; exit 3; }\n") +
       std::string(kAnswers));
  ASSERT_TRUE(io::WriteFile(dir_.path() + "/starts", ""));
  master_->Tell({{"worker-0@0", 0, MemberState::kLive}});
  EXPECT_TRUE(Until([&] { return master_->Knows("worker-0@0", MemberState::kLive); }));
  EXPECT_EQ(Starts(), 7u);
  EXPECT_EQ(master_->broken(), "");
}

TEST_F(ShardMasterTest, EndsWhenItsHostIsDoneWithIt) {
  Make(kAnswers);
  master_->Tell({kLive});
  ASSERT_TRUE(Until([&] { return master_->Knows("worker-0@0", MemberState::kLive); }));
  const pid_t pid = master_->pid();
  master_.reset();
  EXPECT_NE(kill(pid, 0), 0);
}

}  // namespace
}  // namespace cli
