#include "master/host_line.h"

#include <array>
#include <future>
#include <thread>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/testing/temp_dir.h"
#include "master/master.h"

namespace master {
namespace {

class HostLineTest : public testing::Test {
 protected:
  HostLineTest() {
    std::array<int, 2> ends;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    const int room = 4096;
    CHECK(setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room) == 0);
    host_ = io::Fd(ends[0]);
    line_ = std::move(*HostLine::Open(ends[1]));
    master_ = std::make_unique<Master>(
        std::move(*LedgerFile::Open(dir_.path(), {.uid = "u-1", .name = "mnist"}, {})), dir_.path(),
        Master::Options{.changed = [this](bool urgent) { line_->Changed(urgent); }});
    thread_ = std::thread([this] { ended_ = line_->Serve(*master_, 4242); });
  }
  ~HostLineTest() override { Close(); }

  void Close() {
    host_.reset();
    if (thread_.joinable()) thread_.join();
  }
  void Send(const std::string& line) {
    CHECK(write(host_.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()));
  }
  ledger::MasterMessage Next() {
    while (buffer_.find('\n') == std::string::npos) {
      std::array<char, 4096> bytes;
      const ssize_t got = read(host_.get(), bytes.data(), bytes.size());
      CHECK(got > 0);
      buffer_.append(bytes.data(), static_cast<size_t>(got));
    }
    const size_t end = buffer_.find('\n');
    auto message = ledger::DecodeMasterMessage(buffer_.substr(0, end));
    buffer_.erase(0, end + 1);
    CHECK(message.has_value());
    return std::move(*message);
  }

  const io::testing::TempDir dir_;
  io::Fd host_;
  std::string buffer_;
  std::unique_ptr<HostLine> line_;
  std::unique_ptr<Master> master_;
  std::thread thread_;
  base::Result<> ended_;
};

TEST_F(HostLineTest, EachMessageIsAnsweredWithItsNumberAndThePort) {
  Send(ledger::Encode(ledger::HostMessage{.seq = 7, .members = {}}) +
       ledger::Encode(ledger::HostMessage{.seq = 8, .members = {}}));
  for (const int64_t seq : {7, 8}) {
    const auto message = Next();
    EXPECT_EQ(message.seq, seq);
    EXPECT_EQ(message.port, 4242);
    EXPECT_FALSE(message.data.registered);
  }
}

TEST_F(HostLineTest, SaysUnaskedWhenTheDataIsComplete) {
  Send(ledger::Encode(
      ledger::HostMessage{.seq = 1, .members = {{.name = "worker-0@0", .number = 0}}}));
  Next();
  master_->Register({.name = "iris", .size = 1, .shard_size = 1}, [](const auto&) {});
  master_->Take({.number = 0, .set = "iris"}, [this](Taken taken) {
    master_->Report({.done = {taken.leases[0].id}, .failed = {}}, [](Counts) {});
  });
  while (!Next().data.complete) {
  }
}

TEST_F(HostLineTest, AHostThatDoesNotReadFindsTheLastStateNotAllThatWere) {
  for (int i = 0; i < 1000; ++i) {
    line_->Changed(true);
    std::promise<void> answered;
    master_->Report([&answered](const auto&) { answered.set_value(); });
    answered.get_future().wait();
  }
  Send(ledger::Encode(ledger::HostMessage{.seq = 1, .members = {}}));
  int lines = 1;
  while (Next().seq != 1) ++lines;
  EXPECT_LT(lines, 100);  // the socket takes some
}

TEST_F(HostLineTest, EndsWhenTheHostIsGone) {
  Close();
  EXPECT_TRUE(ended_.has_value());
}

TEST_F(HostLineTest, WhatCannotBeUnderstoodIsAnError) {
  Send("{\"seq\":\n");
  thread_.join();
  ASSERT_FALSE(ended_.has_value());
  EXPECT_TRUE(ended_.error().text().starts_with("the job's host: "));
}

}  // namespace
}  // namespace master
