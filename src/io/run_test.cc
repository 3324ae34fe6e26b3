#include <gtest/gtest.h>

#include "io/process.h"

namespace io {
namespace {

using namespace std::chrono_literals;

base::Result<Ended> Shell(const std::string& script, base::Duration timeout = 20s) {
  return RunToItsEnd({.argv = {"/bin/sh", "-c", script}, .env = {"PATH=/usr/bin:/bin", "A=b"}},
                     timeout, 100'000);
}

TEST(RunToItsEnd, GivesStatusAndOutput) {
  const auto ended = Shell("echo $A; exit 3");
  ASSERT_TRUE(ended) << ended.error().text();
  EXPECT_EQ(ended->status, 3);
  EXPECT_EQ(ended->output, "b\n");
}

TEST(RunToItsEnd, ASignalIsAStatusToo) { EXPECT_EQ(Shell("kill -9 $$")->status, 137); }

TEST(RunToItsEnd, KillsWhatTakesTooLong) {
  const auto ended = Shell("sleep 1000 & sleep 1000", 100ms);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().text(), "it did not end within 0.1 s");
}

TEST(RunToItsEnd, KillsWhatClosedItsOutputAndStays) {
  EXPECT_FALSE(Shell("exec >&- 2>&-; sleep 1000", 100ms));
}

TEST(RunToItsEnd, KillsWhatSaysTooMuch) {
  const auto ended = Shell("while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done");
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().text(), "it said more than 100000 bytes");
}

TEST(RunToItsEnd, DoesNotWaitForAChildThatHoldsTheOutput) {
  const auto ended = Shell("sleep 2 & echo done");
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->output, "done\n");
}

TEST(RunToItsEnd, WhatDoesNotExistIsAnError) {
  EXPECT_FALSE(RunToItsEnd({.argv = {"/does/not/exist"}}, 1s, 10));
}

TEST(RunInSight, GivesTheStatus) {
  EXPECT_EQ(RunInSight({.argv = {"/bin/sh", "-c", "exit 3"}}, [] { return false; }), 3);
  EXPECT_FALSE(RunInSight({.argv = {"/nonexistent"}}, [] { return false; }));
}

TEST(RunInSight, EndsItWhenToldTo) {
  EXPECT_EQ(RunInSight({.argv = {"/bin/sh", "-c", "sleep 1000"}}, [] { return true; }), 143);
}

}  // namespace
}  // namespace io
